package worker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
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

// ringRecord is what the kernel writes into a processor's ring.
type ringRecord struct {
	kind uint32
	size uint16
	at   int64 // milliseconds, of a sample
}

func fired(milliseconds ...int64) (all []ringRecord) {
	for _, at := range milliseconds {
		all = append(all, ringRecord{unix.PERF_RECORD_SAMPLE, 16, at})
	}
	return all
}

// write records into the ring as the kernel does.
func (p *stillProcessor) write(records ...ringRecord) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&p.ring[0]))
	ring := p.ring[os.Getpagesize():]
	put := func(at, word uint64) { binary.NativeEndian.PutUint64(ring[at%uint64(len(ring)):], word) }
	for _, r := range records {
		var header [8]byte
		binary.NativeEndian.PutUint32(header[:], r.kind)
		binary.NativeEndian.PutUint16(header[6:], r.size)
		put(page.Data_head, binary.NativeEndian.Uint64(header[:]))
		put(page.Data_head+8, uint64(r.at*stillMS))
		page.Data_head += uint64(r.size)
	}
}

func TestAProcessorStoodStillWhereItsTimerDidNotFire(t *testing.T) {
	lost, throttled := ringRecord{kind: unix.PERF_RECORD_LOST, size: 24}, ringRecord{kind: unix.PERF_RECORD_THROTTLE, size: 32}
	for _, c := range []struct {
		name    string
		records []ringRecord
		wakes   []int64 // milliseconds
		want    []span
	}{
		{name: "it has not fired yet"},
		{name: "the first time", records: fired(1000)},
		{name: "on time", records: fired(1000, 1002, 1004, 1006)},
		{name: "as late as timers are", records: fired(1000, 1006, 1008)},
		{name: "late", records: fired(1000, 1002, 1046, 1048), want: spans(1006, 1046)},
		{name: "late twice", records: fired(1000, 1010, 1030), want: spans(1004, 1010, 1014, 1030)},
		{name: "late, but the thread on it woke up", records: fired(1000, 1002, 1046, 1048), wakes: []int64{1008, 1011, 1016, 1021, 1026, 1031, 1036, 1041}},
		{name: "late, and so was the thread", records: fired(1000, 1002, 1046, 1048), wakes: []int64{1000, 1004, 1045, 1050}, want: spans(1008, 1045)},
		{name: "some are lost", records: slices.Concat(fired(1000), []ringRecord{lost}, fired(1040, 1042))},
		{name: "the kernel throttled it", records: slices.Concat(fired(1000), []ringRecord{throttled}, fired(1040, 1060)), want: spans(1044, 1060)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := watchOf(1).processors[0]
			p.write(c.records...)
			for _, at := range c.wakes {
				p.wake(at * stillMS)
			}
			p.collect()
			if !slices.Equal(p.still, c.want) {
				t.Errorf("it stood still %v; want %v", p.still, c.want)
			}
		})
	}
}

func TestARingIsReadRoundItsEnd(t *testing.T) {
	p := watchOf(1).processors[0]
	p.write(ringRecord{kind: unix.PERF_RECORD_LOST, size: 24}) // so that samples go round the end
	at := int64(1000)
	for range 3 * len(p.ring) / 16 / 100 {
		for range 100 {
			at += 2
			p.write(fired(at)...)
		}
		p.collect()
	}
	p.write(fired(at + 42)...)
	p.collect()
	if want := spans(at+4, at+42); !slices.Equal(p.still, want) {
		t.Errorf("it stood still %v; want %v", p.still, want)
	}
}

func TestWakesThatWereNotReadInTimeAreMissing(t *testing.T) {
	p := watchOf(1).processors[0]
	p.wake(1000 * stillMS)
	p.collect()
	for at := range int64(3 * mostWakes) {
		p.wake((1100 + 10*at) * stillMS)
	}
	p.collect()
	if len(p.still) > 0 {
		t.Errorf("it stood still %v; want nothing, as most wakes are missing", p.still)
	}
	last := 1100 + 10*int64(3*mostWakes-1)
	p.wake((last + 30) * stillMS)
	p.collect()
	if want := spans(last+4, last+30); !slices.Equal(p.still, want) {
		t.Errorf("then it stood still %v; want %v", p.still, want)
	}
}

// watchThisMachine until the end of the test, or skips the test.
func watchThisMachine(t *testing.T) *stillWatch {
	t.Helper()
	w := &stillWatch{}
	if err := w.start(radio.Options{}); err != nil {
		t.Skipf("this kernel does not tell: %v", err)
	}
	t.Cleanup(w.stop)
	return w
}

func TestTheWatchHasThePriorityOfLoops(t *testing.T) {
	w := &stillWatch{}
	if err := w.start(radio.Options{Nice: -3}); err != nil {
		t.Skipf("this kernel does not tell: %v", err)
	}
	t.Cleanup(w.stop)
	const want = -13
	found := 0
	for end := time.Now().Add(10 * time.Second); found < len(w.processors); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d threads have niceness %d; want one for each of %d processors", found, want, len(w.processors))
		}
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		found = 0
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			if a, err := unix.SchedGetAttr(id, 0); err == nil && a.Nice == want && a.Policy == unix.SCHED_NORMAL {
				found++
			}
		}
	}
}

func TestTheWatchGoesOnUntilItsEnd(t *testing.T) {
	w := watchThisMachine(t)
	begin := clock.Monotonic()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		w.stops()
		if !slices.ContainsFunc(w.processors, func(p *stillProcessor) bool { return p.known() < begin+100*stillMS }) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a processor's timer has not fired for 10 s")
		}
	}
	w.stop()
	if len(w.processors) != 0 {
		t.Errorf("%d processors are watched after the end", len(w.processors))
	}
	if err := w.start(radio.Options{}); err != nil {
		t.Errorf("a second start: %v", err)
	}
}

func TestAStopIsToldOnceWhenEveryProcessorHasComeBack(t *testing.T) {
	w := watchOf(2)
	w.processors[0].came(110, 10, 60, 80, 110)
	w.processors[1].came(50, 12, 50)
	told := func(when string, host []span, each ...processorStop) {
		t.Helper()
		if gotHost, gotEach := w.stops(); !slices.Equal(gotHost, host) || !slices.Equal(gotEach, each) {
			t.Errorf("%s: the host %v, processors %v; want %v, %v", when, gotHost, gotEach, host, each)
		}
	}
	stop := func(processor int, from, to int64) processorStop { return processorStop{processor, spans(from, to)[0]} }
	told("one has not come back from the second", spans(12, 50), stop(1, 12, 50))
	w.processors[1].came(107, 85, 107)
	told("then", spans(85, 107), stop(0, 10, 60), stop(1, 85, 107))
	w.processors[0].came(300)
	w.processors[1].came(300)
	told("in the end", nil, stop(0, 80, 110))
	for _, p := range w.processors {
		if len(p.still) > 0 {
			t.Errorf("%v are kept of processor %d", p.still, p.number)
		}
	}
}

// watchOf so many processors, whose rings the test writes.
func watchOf(count int) *stillWatch {
	w := &stillWatch{}
	for number := range count {
		w.processors = append(w.processors, &stillProcessor{number: number, ring: make([]byte, (1+ringPages)*os.Getpagesize())})
	}
	return w
}

// came is what a processor's timer does that fired at that time, in milliseconds, and did not in some spans before; what else it wrote down is lost.
func (p *stillProcessor) came(at int64, still ...int64) {
	lost := ringRecord{kind: unix.PERF_RECORD_LOST, size: 24}
	for _, s := range spans(still...) {
		p.write(append([]ringRecord{lost}, fired((s.from-stillTick)/stillMS, s.to/stillMS)...)...)
	}
	p.write(append([]ringRecord{lost}, fired(at)...)...)
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
	var still runapi.RadioStill
	var zero, one runapi.RadioProcessorStill
	for i, line := range []any{&still, &zero, &one} {
		if err := json.Unmarshal([]byte(written[len(written)-3+i]), line); err != nil {
			t.Fatal(err)
		}
	}
	ago := now - still.TimeNanoseconds
	if still.StillSeconds != 0.047 || ago < 50*stillMS || ago > 5000*stillMS || strings.Count(string(a.content), `"stillSeconds"`) != 1 {
		t.Errorf("the run's log has %+v, %v before now; want 0.047 s that ended 50 ms ago, once", still, time.Duration(ago))
	}
	ended := still.TimeNanoseconds
	if zero != (runapi.RadioProcessorStill{TimeNanoseconds: ended, StillSeconds: 0.05}) || one != (runapi.RadioProcessorStill{TimeNanoseconds: ended, Processor: 1, StillSeconds: 0.047}) {
		t.Errorf("the run's log ends with %+v and %+v; want each processor's own stop", zero, one)
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

func TestAProcessorThatHasSomethingElseToDoDoesNotStandStill(t *testing.T) {
	w := watchThisMachine(t)
	const busy = 150 * time.Millisecond
	if err := teststall.Occupy(0, time.Now(), busy); err != nil {
		t.Skipf("no processor can be occupied here: %v", err)
	}
	p := w.processors[0]
	p.collect()
	for _, s := range p.still {
		// Beside what a hypervisor does in that time.
		if stood := time.Duration(s.to - s.from); stood > busy/2 {
			t.Errorf("the processor is said to have stood still for %v while something ran on it for %v", stood, busy)
		}
	}
}
