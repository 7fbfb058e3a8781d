package worker

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/teststall"
)

const stillMS = int64(time.Millisecond)

func spans(milliseconds ...int64) (all []span) {
	for i := 0; i < len(milliseconds); i += 2 {
		all = append(all, span{milliseconds[i] * stillMS, milliseconds[i+1] * stillMS})
	}
	return all
}

func TestAHostStoodStillWhereEveryProcessorDid(t *testing.T) {
	for _, c := range []struct {
		name  string
		still [][]span
		known int64
		want  []span
	}{
		{name: "no processor is watched", known: 100},
		{name: "one processor alone is the host", still: [][]span{spans(10, 30)}, known: 100, want: spans(10, 30)},
		{name: "only what all have in common", still: [][]span{spans(10, 30), spans(20, 50)}, known: 100, want: spans(20, 30)},
		{name: "one of two went on", still: [][]span{spans(10, 30), nil}, known: 100},
		{name: "one after the other", still: [][]span{spans(10, 30), spans(30, 50)}, known: 100},
		{name: "too short in common", still: [][]span{spans(10, 30), spans(28, 50)}, known: 100},
		{name: "one long stop covers two", still: [][]span{spans(10, 60), spans(15, 25, 40, 55)}, known: 100, want: spans(15, 25, 40, 55)},
		{name: "of three processors", still: [][]span{spans(10, 30), spans(12, 28), spans(15, 40)}, known: 100, want: spans(15, 28)},
		{name: "what not all have told of yet waits", still: [][]span{spans(10, 30), spans(12, 28)}, known: 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hostStops(c.still, c.known*stillMS); !slices.Equal(got, c.want) {
				t.Errorf("stops %v; want %v", got, c.want)
			}
		})
	}
}

func TestAProcessorStoodStillWhereItsTimerDidNotFire(t *testing.T) {
	for _, c := range []struct {
		name                string
		late, queued, slept int64 // milliseconds, but for how often it slept
		want                bool
		wantStill           int64
	}{
		{name: "it was late and had waited for nothing", late: 40, slept: 1, want: true, wantStill: 40},
		{name: "it had waited in the run queue for all of it", late: 40, queued: 40, slept: 1},
		{name: "it had waited in the run queue for a part", late: 40, queued: 10, slept: 1, want: true, wantStill: 30},
		{name: "it was on time", slept: 1},
		{name: "it was late as timers are", late: 2, slept: 1},
		{name: "it slept twice, for something else", late: 40, slept: 2},
		{name: "it never slept", late: 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			due := int64(1e12)
			before := waits{queued: 5 * stillMS, slept: 7}
			after := waits{queued: before.queued + c.queued*stillMS, slept: before.slept + c.slept}
			got, ok := stoodStill(due, due+c.late*stillMS, before, after)
			if ok != c.want || ok && got != (span{due, due + c.wantStill*stillMS}) {
				t.Errorf("stood still %v, %v; want %v, for %d ms", ok, got, c.want, c.wantStill)
			}
		})
	}
}

func TestWhatTheKernelTellsOfWaits(t *testing.T) {
	for text, want := range map[string]struct {
		queued int64
		ok     bool
	}{
		"123 4567 89\n": {4567, true},
		"123 0 89\n":    {0, true},
		"0 0 0\n":       {0, false}, // it does not count
		"123 4567\n":    {4567, false},
		"1 2 3 4\n":     {0, false},
		"-1 2 3\n":      {0, false},
		"1 2 3":         {0, false},
		"":              {0, false},
	} {
		if queued, ok := parseSchedstat([]byte(text)); ok != want.ok || ok && queued != want.queued {
			t.Errorf("%q: %d, %v; want %d, %v", text, queued, ok, want.queued, want.ok)
		}
	}
}

func TestTheWatchGoesOnAndEndsWithItsThreads(t *testing.T) {
	var w stillWatch
	if err := w.start(); err != nil {
		t.Skipf("this kernel does not tell: %v", err)
	}
	defer w.stop()
	begin := clock.Monotonic()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		w.stops()
		if !slices.ContainsFunc(w.processors, func(p *stillProcessor) bool { return p.seen.Load() < begin+100*stillMS }) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a processor's thread has not looked for 10 s")
		}
	}
	w.stop()
	if len(w.processors) != 0 {
		t.Errorf("%d processors are watched after the end", len(w.processors))
	}
	if err := w.start(); err != nil {
		t.Errorf("a second start: %v", err)
	}
}

func TestAStopIsToldOnceWhenEveryProcessorHasComeBack(t *testing.T) {
	w := watchOf(2)
	w.processors[0].came(110, 10, 60, 80, 110)
	w.processors[1].came(50, 12, 50)
	if got := w.stops(); !slices.Equal(got, spans(12, 50)) {
		t.Errorf("%v while one has not come back from the second; want the first alone", got)
	}
	w.processors[1].came(107, 85, 107)
	if got := w.stops(); !slices.Equal(got, spans(85, 107)) {
		t.Errorf("then %v; want the second", got)
	}
	w.processors[0].came(300)
	w.processors[1].came(300)
	if got := w.stops(); got != nil {
		t.Errorf("in the end %v; want nothing twice", got)
	}
	for _, p := range w.processors {
		if len(p.still) > 0 {
			t.Errorf("%v are kept of processor %d", p.still, p.number)
		}
	}
}

// watchOf so many processors, without threads.
func watchOf(count int) *stillWatch {
	w := &stillWatch{}
	for number := range count {
		w.processors = append(w.processors, newStillProcessor(number))
	}
	return w
}

// came is what a processor's thread does that has looked at that time, in milliseconds, and found that it stood still.
func (p *stillProcessor) came(at int64, still ...int64) {
	for _, s := range spans(still...) {
		p.told <- s
	}
	p.seen.Store(at * stillMS)
}

func TestAStopOfTheHostIsWrittenIntoEveryActiveRun(t *testing.T) {
	s := newSampler(t.TempDir())
	s.still.processors = watchOf(2).processors
	over, err := s.run("over")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.sample(1e9, countersOf(1, 0)); err != nil {
		t.Fatal(err)
	}
	at := clock.Monotonic() / stillMS
	s.still.processors[0].came(at, at-100, at-50)
	s.still.processors[1].came(at, at-97, at-50)
	now := clock.Realtime()
	if err := s.sampleStill(now); err != nil {
		t.Fatal(err)
	}
	a, gone := &archive{}, &archive{}
	ship(t, s.runs["run"].spool, a)
	ship(t, over.spool, gone)
	written := strings.Split(strings.TrimSuffix(string(a.content), "\n"), "\n")
	var line runapi.RadioStill
	if err := json.Unmarshal([]byte(written[len(written)-1]), &line); err != nil {
		t.Fatal(err)
	}
	ago := now - line.TimeNanoseconds
	if line.StillSeconds != 0.047 || ago < 50*stillMS || ago > 5000*stillMS || strings.Count(string(a.content), "stillSeconds") != 1 {
		t.Errorf("the run's log ends with %q, %v before now; want 0.047 s that ended 50 ms ago, once", written[len(written)-1], time.Duration(ago))
	}
	if len(gone.content) > 0 {
		t.Errorf("a run without attachments got %q; want nothing", gone.content)
	}
}

func TestWithoutAnActiveRunNobodyWatches(t *testing.T) {
	s := newSampler(t.TempDir())
	threads := runtime.GOMAXPROCS(0)
	if err := errors.Join(s.sample(1e9, countersOf(1, 0)), s.sampleStill(1e9)); err != nil {
		t.Fatal(err)
	}
	if s.still.refused {
		t.Skip("this kernel does not tell")
	}
	if got := runtime.GOMAXPROCS(0); len(s.still.processors) == 0 || got != threads+len(s.still.processors) {
		t.Errorf("%d processors are watched with GOMAXPROCS %d; want all, with a P for each beside the %d", len(s.still.processors), got, threads)
	}
	if err := errors.Join(s.sample(2e9, nil), s.sampleStill(2e9)); err != nil {
		t.Fatal(err)
	}
	if got := runtime.GOMAXPROCS(0); len(s.still.processors) > 0 || got != threads {
		t.Errorf("after the run %d processors are watched with GOMAXPROCS %d; want none, with %d as before", len(s.still.processors), got, threads)
	}
}

// onThisThread has the calling goroutine be a processor's thread.
func onThisThread(t *testing.T, processor int) *stillProcessor {
	t.Helper()
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	p := newStillProcessor(processor)
	if err := p.begin(); err != nil {
		t.Skipf("this kernel does not tell: %v", err)
	}
	t.Cleanup(func() { _ = unix.Close(p.schedstat) })
	return p
}

// worst is how late the thread was until then, and for how much of that its processor is said to have stood still at most.
func (p *stillProcessor) worst(until time.Time) (late, claimed int64) {
	for time.Now().Before(until) {
		before := clock.Monotonic()
		p.tick()
		late = max(late, clock.Monotonic()-before-stillTick)
	}
	p.collect()
	for _, s := range p.still {
		claimed = max(claimed, s.to-s.from)
	}
	return late, claimed
}

func TestATickAllocatesNothing(t *testing.T) {
	p := onThisThread(t, 0)
	if got := testing.AllocsPerRun(20, func() { p.tick() }); got != 0 {
		t.Errorf("%v allocations for a tick; want none", got)
	}
}

func TestAProcessorThatHasSomethingElseToDoDoesNotStandStill(t *testing.T) {
	p := onThisThread(t, 0)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2))
	const busy = 150 * time.Millisecond
	begin := time.Now().Add(50 * time.Millisecond)
	occupied := make(chan error, 1)
	go func() { occupied <- teststall.Occupy(0, begin, busy) }()
	late, claimed := p.worst(begin.Add(2 * busy))
	if err := <-occupied; err != nil {
		t.Skipf("no processor can be occupied here: %v", err)
	}
	if late < busy.Nanoseconds()/2 {
		t.Skipf("the thread was late by %v only", time.Duration(late))
	}
	// Beside what a hypervisor does in that time.
	if claimed > late/2 {
		t.Errorf("the thread was late by %v, as something else ran for %v, and the processor is said to have stood still for %v", time.Duration(late), busy, time.Duration(claimed))
	}
}

func TestAQuotaThatIsUsedUpIsNoStop(t *testing.T) {
	group := cgroupWithQuota(t)
	p := onThisThread(t, 0)
	join := func() error {
		return os.WriteFile(filepath.Join(group, "tasks"), strconv.AppendInt(nil, int64(unix.Gettid()), 10), 0)
	}
	if err := join(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		_ = os.WriteFile("/sys/fs/cgroup/cpu/tasks", strconv.AppendInt(nil, int64(unix.Gettid()), 10), 0)
	})
	var ended atomic.Bool
	burnt := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with its group
		err := errors.Join(join(), clock.Bind(0, 0))
		for x := 1.0; err == nil && !ended.Load(); x = math.Sqrt(x) + 1 {
		}
		burnt <- err
	}()
	late, claimed := p.worst(time.Now().Add(time.Second))
	ended.Store(true)
	if err := <-burnt; err != nil {
		t.Skip(err)
	}
	stat, _ := os.ReadFile(filepath.Join(group, "cpu.stat"))
	if late < 30*stillMS || strings.Contains(string(stat), "nr_throttled 0\n") {
		t.Skipf("the thread was late by %v only: %q", time.Duration(late), stat)
	}
	t.Logf("late by %v, claimed %v: %q", time.Duration(late), time.Duration(claimed), stat)
	if claimed > late/2 {
		t.Errorf("the thread was late by %v for its quota, and the processor is said to have stood still for %v", time.Duration(late), time.Duration(claimed))
	}
}

// cgroupWithQuota of a fifth of a processor.
func cgroupWithQuota(t *testing.T) string {
	t.Helper()
	group, err := os.MkdirTemp("/sys/fs/cgroup/cpu", "still-test-")
	if err != nil {
		t.Skip("no cgroup of version 1 can be made here: ", err)
	}
	t.Cleanup(func() {
		for range 100 { // until its threads have ended
			if os.Remove(group) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s is left", group)
	})
	if err := os.WriteFile(filepath.Join(group, "cpu.cfs_quota_us"), []byte("20000"), 0); err != nil {
		t.Skip(err)
	}
	return group
}
