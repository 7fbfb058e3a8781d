package samples

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// archive is a server's radio log of one run, in memory.
type archive struct {
	mu      sync.Mutex
	content []byte
	down    bool
	sealed  bool
	noQuota bool
}

func (a *archive) AppendRadio(_ context.Context, _, _ string, offset int64, content io.Reader) (runapi.LogPosition, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := int64(len(a.content))
	switch {
	case a.down:
		return runapi.LogPosition{}, errors.New("connection refused")
	case a.sealed:
		return runapi.LogPosition{}, &client.Error{Status: http.StatusGone, Message: "sealed"}
	case a.noQuota:
		return runapi.LogPosition{}, &client.Error{Status: http.StatusInsufficientStorage, Message: "quota", Quota: true}
	case offset != size:
		return runapi.LogPosition{}, &client.Error{Status: 409, Message: "offset", Size: &size}
	}
	text, err := io.ReadAll(content)
	a.content = append(a.content, text...)
	return runapi.LogPosition{Size: int64(len(a.content))}, err
}

func openTestSpool(t *testing.T, directory string) *spool {
	t.Helper()
	s, err := openSpool(directory, "run", new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ship(t *testing.T, s *spool, a *archive) {
	t.Helper()
	for range 20 {
		done, err := s.ship(t.Context(), a, "host")
		if err != nil {
			t.Fatalf("ship: %v", err)
		}
		if done {
			return
		}
	}
	t.Fatal("20 rounds do not ship everything")
}

func TestABacklogIsShippedAtABoundedRate(t *testing.T) {
	a := &archive{}
	s := openTestSpool(t, t.TempDir())
	add(t, s, strings.Repeat("y", 3*chunksPerRound*chunk/2-1)+"\n")
	done, err := s.ship(t.Context(), a, "host")
	if err != nil || done || len(a.content) != chunksPerRound*chunk {
		t.Errorf("the first round ships %d bytes, done %v, %v; want %d and more to come", len(a.content), done, err, chunksPerRound*chunk)
	}
	ship(t, s, a)
}

func add(t *testing.T, s *spool, text string) {
	t.Helper()
	if err := s.append(1, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestASpoolShipsEveryByteOnce(t *testing.T) {
	directory, a := t.TempDir(), &archive{}
	s := openTestSpool(t, directory)
	add(t, s, "one\n")
	ship(t, s, a)
	a.down = true
	add(t, s, "two\n")
	if _, err := s.ship(t.Context(), a, "host"); err == nil {
		t.Error("no error while the server is down")
	}
	a.down = false
	// Another worker does not know how far the server is, and learns it.
	s = openTestSpool(t, directory)
	add(t, s, "three\n")
	ship(t, s, a)
	if got := string(a.content); got != "one\ntwo\nthree\n" {
		t.Errorf("the archive has %q", got)
	}
}

func TestASpoolIsCompactedAndReopened(t *testing.T) {
	directory, a := t.TempDir(), &archive{}
	s := openTestSpool(t, directory)
	line := strings.Repeat("x", 99) + "\n"
	for range 2 {
		add(t, s, strings.Repeat(line, compactAbove/100*3/4))
		ship(t, s, a)
	}
	add(t, s, "rest\n")
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v; want one", files, err)
	}
	if info, _ := os.Stat(files[0]); info.Size() > compactAbove {
		t.Errorf("the spool still has %d bytes", info.Size())
	}
	s = openTestSpool(t, directory)
	ship(t, s, a)
	if want := strings.Repeat(line, compactAbove/100*3/4*2) + "rest\n"; string(a.content) != want {
		t.Errorf("the archive has %d bytes; want %d", len(a.content), len(want))
	}
}

func TestAWorkerThatIsKilledWhileItWritesLosesNoWholeLine(t *testing.T) {
	for name, c := range map[string]struct {
		archived string
		files    map[string]string
	}{
		"a line":                 {"one\n", map[string]string{"run.0.jsonl": "one\ntwo\nthr"}},
		"a first line":           {"one\ntwo\n", map[string]string{"run.8.jsonl": "thr"}},
		"a long line":            {"one\n", map[string]string{"run.0.jsonl": "one\ntwo\n" + strings.Repeat("x", 200<<10)}},
		"a compacted file":       {"one\n", map[string]string{"run.0.jsonl": "one\ntwo\n", "run.4.jsonl": "tw"}},
		"nothing of it yet":      {"one\n", map[string]string{"run.0.jsonl": "one\ntwo\n", "run.4.jsonl": ""}},
		"all of it":              {"one\n", map[string]string{"run.0.jsonl": "one\ntwo\n", "run.4.jsonl": "two\n"}},
		"nothing, and there was": {"one\ntwo\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			directory, a := t.TempDir(), &archive{content: []byte(c.archived)}
			for file, content := range c.files {
				if err := os.WriteFile(filepath.Join(directory, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := openTestSpool(t, directory)
			add(t, s, "four\n")
			ship(t, s, a)
			if got := string(a.content); got != "one\ntwo\nfour\n" {
				t.Errorf("the archive has %.60q; want each whole line once", got)
			}
			if left, _ := filepath.Glob(filepath.Join(directory, "*")); len(left) != 1 {
				t.Errorf("files %v; want one", left)
			}
		})
	}
}

func TestAFullSpoolNamesTheGap(t *testing.T) {
	a := &archive{down: true}
	s := openTestSpool(t, t.TempDir())
	big := strings.Repeat("y", spoolLimit-10) + "\n"
	add(t, s, big)
	for i, text := range []string{"does not fit\n", "nor does this\n"} {
		if err := s.append(int64(i+5), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	a.down = false
	ship(t, s, a)
	if err := s.append(9, []byte("fits\n")); err != nil {
		t.Fatal(err)
	}
	ship(t, s, a)
	tail := string(a.content[len(big):])
	if tail != `{"ts":9,"gap":"spoolFull","fromTs":5,"bytes":27}`+"\nfits\n" {
		t.Errorf("after the gap: %q", tail)
	}
}

func TestTheSpoolsOfAllRunsShareTheHostsMemory(t *testing.T) {
	a, directory, all := &archive{}, t.TempDir(), new(atomic.Int64)
	all.Store(spoolsLimit - 200)
	s, err := openSpool(directory, "run", all)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, strings.Repeat("y", 89)+"\n")
	add(t, s, "beyond the limit\n")
	ship(t, s, a)
	add(t, s, "fits again\n")
	ship(t, s, a)
	add(t, s, "waits\n")
	if !strings.Contains(string(a.content), `"gap":"spoolFull"`) || !strings.HasSuffix(string(a.content), "fits again\n") {
		t.Errorf("archived %q; want the gap, and what followed", a.content)
	}
	if err := s.remove(); err != nil || all.Load() != spoolsLimit-200 {
		t.Errorf("after the removal %d bytes wait in all (%v); want the others' %d", all.Load(), err, spoolsLimit-200)
	}
}

func TestSamplesForWhichTheRunHasNoRoomAreAGap(t *testing.T) {
	a, all := &archive{noQuota: true}, new(atomic.Int64)
	s, err := openSpool(t.TempDir(), "run", all)
	if err != nil {
		t.Fatal(err)
	}
	for ts, line := range []string{`{"ts":0}`, `{"ts":1}`, `{"ts":2}`, `{"ts":3}`} {
		if err := s.append(int64(ts), []byte(line+"\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ship(t.Context(), a, "host"); ts == 2 && err == nil {
			t.Error("no error of a used up quota")
		}
		if ts == 0 {
			a.noQuota = false
			ship(t, s, a)
			a.noQuota = true
			add(t, s, `{"ts":1,"first":true}`+"\n")
		}
	}
	if all.Load() != int64(len(`{"ts":1,"first":true}`+"\n")) {
		t.Errorf("%d bytes wait, want the first line's", all.Load())
	}
	a.noQuota = false
	ship(t, s, a)
	if err := s.append(9, []byte("fits\n")); err != nil {
		t.Fatal(err)
	}
	ship(t, s, a)
	want := `{"ts":0}` + "\n" + `{"ts":1,"first":true}` + "\n" + `{"ts":9,"gap":"spoolFull","fromTs":1,"bytes":27}` + "\nfits\n"
	if string(a.content) != want {
		t.Errorf("archived %q, want %q", a.content, want)
	}
}

func TestSamplesThatCouldNotBeWrittenAreAGap(t *testing.T) {
	a := &archive{}
	s := openTestSpool(t, t.TempDir())
	writable := s.file
	unwritable, err := os.Open(writable.Name())
	if err != nil {
		t.Fatal(err)
	}
	s.file = unwritable
	if err := s.append(1, []byte("lost\n")); err == nil {
		t.Fatal("no error")
	}
	s.file = writable
	add(t, s, "fits\n")
	ship(t, s, a)
	if got := string(a.content); got != `{"ts":1,"gap":"spoolFull","fromTs":1,"bytes":5}`+"\nfits\n" {
		t.Errorf("archived %q; want the gap and what followed", got)
	}
}

func TestASpoolWhoseServerIsAheadGoesOnThere(t *testing.T) {
	a := &archive{content: []byte("of an earlier boot\n")}
	s := openTestSpool(t, t.TempDir())
	add(t, s, "now\n")
	ship(t, s, a)
	if got := string(a.content); got != "of an earlier boot\nnow\n" {
		t.Errorf("the archive has %q", got)
	}
}

func TestASealedRunTakesNothing(t *testing.T) {
	a := &archive{sealed: true}
	s := openTestSpool(t, t.TempDir())
	add(t, s, "late\n")
	ship(t, s, a) // done, as nothing is left to do
	add(t, s, "later\n")
	if s.end != int64(len("late\n")) {
		t.Error("a sealed run's spool still grows")
	}
}

func newSampler(directory string) *Sampler {
	return &Sampler{Host: "host", Directory: directory, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), runs: map[string]*runLog{}}
}

func countersOf(sent uint64, inFlight int) []figures.Network {
	n := figures.Node{Node: "hq", RingDrops: 2, Settings: map[string]string{"net.ipv4.ip_forward": "1"}}
	n.FramesSent, n.InFlight = sent, inFlight
	n.Drops[radio.Loss] = 1
	return []figures.Network{{UID: "net", Network: "vhf", Experiment: v1alpha1.ExperimentReference{Namespace: "team", Name: "exp", UID: "run"},
		Nodes: []figures.Node{n}}}
}

// lines returns the spool's lines and the samples among them.
func lines(t *testing.T, directory string) (all []string, samples []runapi.RadioSample) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, spoolName("run", 0)))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		all = append(all, line)
		var s runapi.RadioSample
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		if s.Node != "" {
			samples = append(samples, s)
		}
	}
	return all, samples
}

func TestSamplesFollowAHeaderOfTheNodesSettings(t *testing.T) {
	s := newSampler(t.TempDir())
	counters := countersOf(10, 4)
	for _, node := range []string{"nor", "pol"} {
		same := counters[0].Nodes[0]
		same.Node = node
		counters[0].Nodes = append(counters[0].Nodes, same)
	}
	counters[0].Nodes[2].Settings = map[string]string{"net.ipv4.ip_forward": "0"}
	for _, now := range []int64{100, 200} {
		if err := s.sample(now, counters); err != nil {
			t.Fatal(err)
		}
	}
	late := counters[0].Nodes[0]
	late.Node = "late"
	counters[0].Nodes = append(counters[0].Nodes, late)
	if err := s.sample(300, counters); err != nil {
		t.Fatal(err)
	}
	all, samples := lines(t, s.Directory)
	if len(all) != 13 || len(samples) != 10 {
		t.Fatalf("%d lines, %d samples: %q; want 3 headers and 10 samples", len(all), len(samples), all)
	}
	for line, want := range map[int][2]string{0: {`"nodes":["hq","nor"]`, `"1"`}, 1: {`"nodes":["pol"]`, `"0"`}, 8: {`"nodes":["late"]`, `"1"`}} {
		if !strings.Contains(all[line], want[0]) || !strings.Contains(all[line], `"net.ipv4.ip_forward":`+want[1]) {
			t.Errorf("line %d is %s; want a header with %s and ip_forward %s", line, all[line], want[0], want[1])
		}
	}
}

func TestWhatALogHasOfChangesIsRepeatedAfterAGap(t *testing.T) {
	s := newSampler(t.TempDir())
	s.Source = still{networks: countersOf(10, 4), routes: []figures.Routes{{Node: "hq", RunUID: "run", Domain: olsrv2, Networks: []string{"vhf"}, Finder: foundRoutes{routeTo(2, 2, 0, 5)}}}}
	s.Sample()
	written, _ := lines(t, s.Directory)
	s.runs["run"].spool.noQuota = true
	s.Sample()
	s.runs["run"].spool.noQuota = false
	s.Sample() // writes the gap
	s.Sample()
	s.Sample()
	all, _ := lines(t, s.Directory)
	isHeader := func(line string) bool { return strings.Contains(line, `"settings"`) }
	isRoutes := func(line string) bool { return strings.Contains(line, `"whole":true`) }
	for name, is := range map[string]func(string) bool{"headers": isHeader, "lines of all routes": isRoutes} {
		if before, now := count(written, is), count(all, is); before != 1 || now != 2 {
			t.Errorf("%d %s at first and %d in all; want 1 and 2: %q", before, name, now, all)
		}
	}
}

func count(lines []string, is func(string) bool) (n int) {
	for _, line := range lines {
		if is(line) {
			n++
		}
	}
	return n
}

// still is a source whose figures do not change.
type still struct {
	networks []figures.Network
	routes   []figures.Routes
}

func (s still) ReadRings()                        {}
func (s still) Counters(bool) []figures.Network   { return s.networks }
func (s still) Routes() []figures.Routes          { return s.routes }
func (s still) LateIntervals() [][]radio.Interval { return nil }
func (s still) ForgetLateIntervals()              {}

func TestLateTimesAreWrittenIntoTheLogsOfTheRunsThatTheirLoopServes(t *testing.T) {
	s := newSampler(t.TempDir())
	counters := countersOf(10, 4)
	node := &counters[0].Nodes[0]
	node.Lateness.Buckets = [18]uint64{4, 0, 2}
	node.Slots.MissedIn = []radio.Interval{{From: 5e9, To: 6e9, Count: 3}}
	counters[0].LateChanges = []radio.Interval{{From: 1000, To: 4000}}
	if err := s.sample(100, counters); err != nil {
		t.Fatal(err)
	}
	ofLoop := func(loop int) [][]radio.Interval {
		all := make([][]radio.Interval, 2)
		all[loop] = []radio.Interval{{From: 1e9, To: 3e9, Worst: 5e8}}
		return all
	}
	// A loop of other runs, its own, its own just after it ended, and later.
	for _, late := range []struct {
		networks []figures.Network
		loop     int
	}{{counters, 1}, {counters, 0}, {nil, 0}, {nil, 0}} {
		if err := s.sampleLate(100, late.networks, ofLoop(late.loop)); err != nil {
			t.Fatal(err)
		}
	}
	all, samples := lines(t, s.Directory)
	if got := samples[0].LatenessCounts; !slices.Equal(got, []uint64{4, 0, 2}) {
		t.Errorf("lateness %v; want the buckets up to the last that is used", got)
	}
	var missed runapi.RadioMissedSlots
	if err := json.Unmarshal([]byte(all[2]), &missed); err != nil || missed.TimeNanoseconds-missed.FromNanoseconds != 1e9 ||
		missed.Network != "vhf" || missed.Node != "hq" || missed.Slots != 3 {
		t.Errorf("%q: want three slots that were missed in a second", all[2])
	}
	if len(all) != 6 || all[3] != `{"ts":4000,"changeDueTs":1000,"network":"vhf"}` {
		t.Fatalf("%d lines: %q; want two late times after header, sample, missed slots and the late change", len(all), all)
	}
	now := time.Now().UnixNano()
	for _, line := range all[4:] {
		var late runapi.RadioLateTime
		if err := json.Unmarshal([]byte(line), &late); err != nil || late.TimeNanoseconds-late.FromNanoseconds != 2e9 || late.LateSeconds != 0.5 {
			t.Errorf("%q: want 2 s in which the loop was 0.5 s late", line)
		}
		if since := now - late.TimeNanoseconds; since < clock.Monotonic()-4e9 || since > clock.Monotonic() {
			t.Errorf("%q is %v ago; want 3 s after the kernel began", line, time.Duration(since))
		}
	}
}

func TestGapsAndLastCountersAreWrittenAtOnce(t *testing.T) {
	s := newSampler(t.TempDir())
	gap := runapi.RadioGap{TimeNanoseconds: 9, Gap: "radiodRestarted", FromNanoseconds: 5, ToNanoseconds: 9, Reason: "because", FramesLost: 3}
	if err := s.Record("run", []runapi.RadioGap{gap}, countersOf(10, 4)); err != nil {
		t.Fatal(err)
	}
	all, samples := lines(t, s.Directory)
	if len(all) != 2 || all[0] != `{"ts":9,"gap":"radiodRestarted","fromTs":5,"toTs":9,"reason":"because","framesLost":3}` {
		t.Fatalf("lines %q; want the gap and a sample", all)
	}
	if len(samples) != 1 || samples[0].FramesSent != 10 || samples[0].QueueDepth != 4 || samples[0].Drops["tapRing"] != 2 {
		t.Errorf("samples %+v; want 10 sent, 4 under way, 2 dropped by the ring", samples)
	}
}

func TestRoutingPacketsThatARouterIsTooLateForAreDropsOfTheirOwn(t *testing.T) {
	node := countersOf(10, 4)[0].Nodes[0]
	node.Routing = &figures.Routing{Counters: routing.Counters{ReceiveDrops: 7}}
	if drops := sampleOf(1, "vhf", &node).Drops; drops["routerSocket"] != 7 || drops["tapRing"] != 2 {
		t.Errorf("drops %v; want 7 in the router's socket beside 2 in the ring", drops)
	}
}

func TestARunIsForgottenOnceShipped(t *testing.T) {
	s := newSampler(t.TempDir())
	if err := s.sample(100, countersOf(1, 0)); err != nil {
		t.Fatal(err)
	}
	r := s.runs["run"]
	if s.isDone(r, true) {
		t.Error("a run with attachments is over")
	}
	s.markFinished(nil)
	if s.isDone(r, true) {
		t.Error("a run is over at once: its last sample could not be shipped")
	}
	r.finished = r.finished.Add(-10 * Interval)
	if s.isDone(r, false) || !s.isDone(r, true) {
		t.Error("a finished run must be over once it is shipped, and not before")
	}
	r.finished = r.finished.Add(-keepFinished)
	if !s.isDone(r, false) {
		t.Error("a finished run is kept for ever when nobody takes it")
	}
	s.forget("run", r)
	if files, _ := filepath.Glob(filepath.Join(s.Directory, "*")); len(files) != 0 {
		t.Errorf("files are left: %v", files)
	}
}

func FuzzParseSpoolName(f *testing.F) {
	f.Add("uid.0.jsonl")
	f.Add("uid.-1.jsonl")
	f.Fuzz(func(t *testing.T, name string) {
		uid, base, ok := parseSpoolName(name)
		if ok && (base < 0 || strings.Contains(uid, ".")) {
			t.Errorf("parseSpoolName(%q) = %q, %d", name, uid, base)
		}
	})
}
