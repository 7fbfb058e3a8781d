package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

func TestMain(m *testing.M) {
	switch os.Getenv("AGENT_TEST_ROLE") {
	case "":
		os.Exit(m.Run())
	case "reaper":
		os.Exit(runAsProcessOne())
	case "agent":
		os.Exit(runAsAgent())
	case "publisher":
		os.Exit(runAsPublisher())
	}
}

// runAsAgent is an agent in a process of its own, as in a container.
func runAsAgent() int {
	config, err := agentconfig.FromEnv()
	dir := os.Getenv("AGENT_TEST_DIR")
	if err == nil && os.Getenv("AGENT_TEST_NO_PTRACE") != "" {
		err = forbidPtrace()
	}
	if err == nil {
		var a *Agent
		a, err = New(config, Options{LogDir: filepath.Join(dir, "log"), TokenFile: filepath.Join(dir, "token"),
			CgroupDir: filepath.Join(dir, "cgroup"), NeverHold: os.Getenv("AGENT_TEST_NEVER_HOLD") != ""})
		if err == nil {
			_ = os.Unsetenv("AGENT_TEST_ROLE")
			return a.Run(context.Background(), Signals())
		}
	}
	fmt.Println(err)
	return 1
}

// runAsProcessOne runs the agent's reaping as process 1 of a namespace. It makes an orphan and reports whether it was reaped.
func runAsProcessOne() int {
	var c children
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go c.reapOrphans(ctx)
	// The subshell ends before its sleep, which then belongs to process 1.
	command := exec.Command("sh", "-c", "(sleep 0.2 & echo $!)")
	var out strings.Builder
	command.Stdout = &out
	if err := c.start(command); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := command.Wait(); err != nil {
		fmt.Println("the child's own exit status was taken away:", err)
		return 1
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat("/proc/" + strings.TrimSpace(out.String())); os.IsNotExist(err) {
			return 0
		}
	}
	fmt.Println("orphan", out.String(), "is still there")
	return 1
}

func TestProcessOneReapsOrphans(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root for a pid namespace")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("needs unshare (util-linux)")
	}
	command := exec.Command(unshare, "--pid", "--fork", "--mount-proc", os.Args[0])
	command.Env = append(os.Environ(), "AGENT_TEST_ROLE=reaper")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestBackoffDoublesUpTo8SecondsAndEarlyFailuresGiveUp(t *testing.T) {
	t.Parallel()
	var p restartPolicy
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second} {
		if wait, giveUp := p.failed(time.Second); giveUp || wait != want {
			t.Errorf("early failure %d: wait %v, give up %v; want %v", i+1, wait, giveUp, want)
		}
	}
	if _, giveUp := p.failed(9 * time.Second); !giveUp {
		t.Error("third early failure in a row: want to give up")
	}
	p = restartPolicy{}
	for range 20 {
		if wait, giveUp := p.failed(time.Minute); giveUp || wait != firstBackoff {
			t.Fatalf("a failure after a long life: wait %v, give up %v; want %v", wait, giveUp, firstBackoff)
		}
	}
	p = restartPolicy{backoff: 6 * time.Second}
	if wait, _ := p.failed(time.Second); wait != lastBackoff {
		t.Errorf("wait %v; want %v at most", wait, lastBackoff)
	}
}

func TestThePhaseIsNeverThatOfAnInstanceThatHasEnded(t *testing.T) {
	a, in := newHolder(t, "true")
	active := func(is bool) {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.active = is
	}
	for range 200 {
		active(true)
		a.state.mu.Lock()
		executor := goDone(a.updatePhase)  // is held up after it has looked
		time.Sleep(100 * time.Microsecond) // until it has
		active(false)
		a.state.mu.Unlock()
		a.updatePhase() // the instance's supervisor
		<-executor
		if p := a.state.snapshot().Phase; p != runapi.AgentStopped {
			t.Fatalf("phase %s after the instance's end; want stopped", p)
		}
	}
}

func TestAnAgentThatIsDoneStaysSo(t *testing.T) {
	t.Parallel()
	s := newState("bft")
	s.phase(runapi.AgentDone)
	s.phase(runapi.AgentStopped) // an instance's supervisor is late
	if p := s.snapshot().Phase; p != runapi.AgentDone {
		t.Errorf("phase %s; want done", p)
	}
}

func TestActionsAreClassified(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	good := runapi.Action{ID: "a", Verb: runapi.VerbStart, AtNanoseconds: 1}
	with := func(f func(*runapi.Action)) runapi.Action { a := good; f(&a); return a }
	for name, c := range map[string]struct {
		action runapi.Action
		due    time.Time
		seen   bool
		want   actionStatus
	}{
		"in time":             {good, now.Add(time.Millisecond), false, accepted},
		"at this instant":     {good, now, false, tooLate},
		"in the past":         {good, now.Add(-time.Hour), false, tooLate},
		"a stop that is late": {with(func(a *runapi.Action) { a.Verb = runapi.VerbStop }), now.Add(-time.Hour), false, accepted},
		"known":               {good, now.Add(-time.Hour), true, alreadyKnown},
		"no id":               {with(func(a *runapi.Action) { a.ID = "" }), now.Add(1), false, invalid},
		"id of two lines":     {with(func(a *runapi.Action) { a.ID = "a\nb" }), now.Add(1), false, invalid},
		"unknown verb":        {with(func(a *runapi.Action) { a.Verb = "jump" }), now.Add(1), false, invalid},
		"before T0":           {with(func(a *runapi.Action) { a.AtNanoseconds = -1 }), now.Add(1), false, invalid},
	} {
		got, err := classifyAction(c.action, c.due, now, func(string) bool { return c.seen })
		if got != c.want || (err != nil) != (c.want == invalid) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

func TestShippingSurvivesWhatServersDo(t *testing.T) {
	t.Parallel()
	const whole = "one\ntwo\nthree\n"
	for name, disturb := range map[string]func(s *fakeServer){
		"nothing":                     func(*fakeServer) {},
		"lost what it had":            func(s *fakeServer) { s.logs["x.log"] = nil },
		"lost a part":                 func(s *fakeServer) { s.logs["x.log"] = []byte("on") },
		"torn connection":             func(s *fakeServer) { s.tear = true },
		"answer lost, bytes archived": func(s *fakeServer) { s.logs["x.log"] = []byte(whole) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t)
			shipper, dir := newTestShipper(t, s)
			writeLog(t, dir, "one\ntwo\n")
			if err := shipper.shipAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.set(disturb)
			writeLog(t, dir, whole)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := shipper.shipAll(ctx); err != nil {
				t.Fatal(err)
			}
			if got := s.log("x.log"); got != whole {
				t.Errorf("archived %q; want %q", got, whole)
			}
		})
	}
}

func newTestShipper(t *testing.T, s *fakeServer) (*shipper, string) {
	t.Helper()
	n := newNode(t, s)
	dir := t.TempDir()
	events, err := openEvents(t.TempDir(), testWriter{t}, func() int64 { return 1 })
	if err != nil {
		t.Fatal(err)
	}
	return newShipper(dir, "bft", client.New(s.URL, httpClient(), client.TokenFile(n.options.TokenFile)), events), dir
}

// newReportingShipper returns a shipper that ships its own events, too.
func newReportingShipper(t *testing.T, s *fakeServer) (*shipper, string) {
	t.Helper()
	shipper, dir := newTestShipper(t, s)
	var err error
	if shipper.events, err = openEvents(dir, testWriter{t}, func() int64 { return 1 }); err != nil {
		t.Fatal(err)
	}
	return shipper, dir
}

func writeLog(t *testing.T, dir, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "x.log"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestALineThatIsBeingWrittenWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	writeLog(t, dir, "one\ntw")
	if whole, err := shipper.shipRound(t.Context(), bytesPerRound, false); err != nil || !whole {
		t.Fatalf("round: whole %v, %v", whole, err)
	}
	if got := s.log("x.log"); got != "one\n" {
		t.Errorf("archived %q; want the whole line only", got)
	}
	if err := shipper.shipAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.log("x.log"); got != "one\ntw" {
		t.Errorf("archived %q at the end; want everything", got)
	}
}

func TestARoundShipsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	writeLog(t, dir, strings.Repeat(strings.Repeat("x", 99)+"\n", 60000))
	whole, err := shipper.shipRound(t.Context(), bytesPerRound, false)
	if err != nil || whole {
		t.Fatalf("round: whole %v, %v; want more to be left", whole, err)
	}
	if got := len(s.log("x.log")); got > bytesPerRound || got < bytesPerRound/2 {
		t.Errorf("archived %d bytes; want up to %d", got, bytesPerRound)
	}
	if err := shipper.shipAll(t.Context()); err != nil || len(s.log("x.log")) != 6000000 {
		t.Errorf("archived %d bytes, %v; want 6000000", len(s.log("x.log")), err)
	}
}

func writeLogs(t *testing.T, dir string, logs int, content string) {
	t.Helper()
	for i := range logs {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("log-%d.log", i)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARoundIsOneRequestAndNothingNewIsNone(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	writeLogs(t, dir, 8, "one\n")
	for _, what := range []string{"new logs", "nothing new"} {
		if whole, err := shipper.shipRound(t.Context(), bytesPerRound, false); err != nil || !whole {
			t.Fatalf("round with %s: whole %v, %v", what, whole, err)
		}
		if got := s.answered(); got != 1 {
			t.Errorf("%d requests after a round with %s; want 1", got, what)
		}
	}
	writeLogs(t, dir, 8, "one\ntwo\n")
	writeLog(t, dir, "a line without end")
	for range 2 {
		if whole, err := shipper.shipRound(t.Context(), bytesPerRound, false); err != nil || !whole {
			t.Fatalf("round: whole %v, %v", whole, err)
		}
	}
	if got := s.answered(); got != 2 {
		t.Errorf("%d requests after more lines; want 2", got)
	}
	for i := range 8 {
		if name := fmt.Sprintf("log-%d.log", i); s.log(name) != "one\ntwo\n" {
			t.Errorf("archived %q of %s; want both lines", s.log(name), name)
		}
	}
}

func TestLogsLargerThanARequestAreShippedInOneRound(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat(strings.Repeat("x", 99)+"\n", 2000) // 200 kB
	for name, c := range map[string]struct {
		logs    int
		content string
	}{
		"many bytes":               {7, lines},
		"lines as long as a chunk": {3, strings.Repeat("x", chunkBytes+10) + "\n"},
		"many logs":                {runapi.MaxLogParts + 6, "x\n"},
		"many empty logs":          {runapi.MaxLogParts + 6, ""},
	} {
		s := newFakeServer(t)
		shipper, dir := newTestShipper(t, s)
		writeLogs(t, dir, c.logs, c.content)
		if whole, err := shipper.shipRound(t.Context(), bytesPerRound, true); err != nil || !whole {
			t.Fatalf("%s: whole %v, %v", name, whole, err)
		}
		s.mu.Lock()
		for i := range c.logs {
			if content, archived := s.logs[fmt.Sprintf("log-%d.log", i)]; !archived || string(content) != c.content {
				t.Errorf("%s: archived %d bytes of log %d, %v; want %d", name, len(content), i, archived, len(c.content))
			}
		}
		if s.requests < 2 {
			t.Errorf("%s: %d requests; want more than one", name, s.requests)
		}
		s.mu.Unlock()
	}
}

func TestASealedArchiveEndsShipping(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	s.set(func(s *fakeServer) { s.sealed = true })
	writeLog(t, dir, "late\n")
	if err := shipper.shipAll(t.Context()); !errors.Is(err, errSealed) {
		t.Errorf("got %v; want %v", err, errSealed)
	}
}

func TestALogWithoutRoomDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	s.set(func(s *fakeServer) { s.full = "x.log" })
	writeLog(t, dir, "no room\n")
	if err := os.WriteFile(filepath.Join(dir, "y.log"), []byte("room\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := shipper.shipRound(t.Context(), bytesPerRound, true); !errors.Is(err, errNoRoom) {
		t.Errorf("got %v; want %v", err, errNoRoom)
	}
	if got := s.log("y.log"); got != "room\n" {
		t.Errorf("archived %q of the other log; want all of it", got)
	}
}

// loseRightToReadAll makes the calling thread read only what its user may read. The thread ends with the test.
func loseRightToReadAll(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
}

func TestALogThatMayNotBeReadDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newReportingShipper(t, s)
	var archivedUntil int64
	shipper.onArchivedUntil = func(nanoseconds int64) { archivedUntil = nanoseconds }
	writeLog(t, dir, "one\n")
	hidden := filepath.Join(dir, "hidden.log")
	if err := os.WriteFile(hidden, []byte("two\n"), 0); err != nil {
		t.Fatal(err)
	}
	loseRightToReadAll(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := shipper.shipAll(ctx); err != nil || archivedUntil == 0 {
		t.Errorf("%v, archived until %d; want the end of shipping", err, archivedUntil)
	}
	if got := s.log("x.log"); got != "one\n" {
		t.Errorf("archived %q of the other log; want all of it", got)
	}
	if told := s.event(t, eventNotArchived); len(told) != 1 || !strings.HasPrefix(told[0].Message, "hidden.log cannot be read by user id ") {
		t.Errorf("events %+v; want one that names hidden.log", told)
	}
	if err := errors.Join(os.Chmod(hidden, 0o600), shipper.shipAll(ctx)); err != nil || s.log("hidden.log") != "two\n" {
		t.Errorf("%v, archived %q; want the log as soon as it may be read", err, s.log("hidden.log"))
	}
}

func TestAFolderOfTheAppsIsNotArchivedAndReportedOnce(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newReportingShipper(t, s)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "traces", "old"), 0o750), os.Mkdir(filepath.Join(dir, ".cache"), 0o750)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := errors.Join(shipper.shipAll(ctx), shipper.shipAll(ctx)); err != nil {
		t.Fatal(err)
	}
	if told := s.event(t, eventNotArchived); len(told) != 1 || !strings.HasPrefix(told[0].Message, "traces is a folder") {
		t.Errorf("events %+v; want one that names the folder", told)
	}
}

func TestALogWhoseNameTheArchiveRefusesDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newReportingShipper(t, s)
	const odd = "app 12:00:00.log"
	for _, name := range []string{odd, "x.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := shipper.shipAll(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.log("x.log"); got != "one\n" {
		t.Errorf("archived %q of the other log; want all of it", got)
	}
	if told := s.event(t, eventNotArchived); len(told) != 1 || !strings.Contains(told[0].Message, odd) {
		t.Errorf("events %+v; want one that names %s", told, odd)
	}
}

func TestEmptyLogsAreArchivedAtTheEnd(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	shipper, dir := newTestShipper(t, s)
	writeLog(t, dir, "")
	if err := shipper.shipAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if content, ok := s.logs["x.log"]; !ok || len(content) != 0 {
		t.Errorf("archived %q, %v; want an empty log, which tells that nothing is missing", content, ok)
	}
}

func TestClockStepsAreNoticedAndSlewingIsNot(t *testing.T) {
	t.Parallel()
	realtime, monotonic := int64(1e18), int64(5e9)
	w := clockWatch{offset: func() int64 { return realtime - monotonic }}
	if jump := w.check(); jump != 0 {
		t.Errorf("first look: %v; want nothing", jump)
	}
	for name, c := range map[string]struct{ passed, jump, want time.Duration }{
		"quiet":         {time.Second, 0, 0},
		"slewing":       {time.Second, 500 * time.Microsecond, 0},
		"step forwards": {time.Second, 20 * time.Millisecond, 20 * time.Millisecond},
		"step back":     {time.Second, -3 * time.Millisecond, -3 * time.Millisecond},
	} {
		realtime += int64(c.passed + c.jump)
		monotonic += int64(c.passed)
		if got := w.check(); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

func TestCPUUseIsReadFromBothCgroupVersions(t *testing.T) {
	t.Parallel()
	v2, v1, none := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(v2, "cpu.stat", "usage_usec 10\nnr_periods 7\nnr_throttled 3\nthrottled_usec 2500\n")
	write(v2, "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n")
	write(v1, "cpu/cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_time 2500000\n")
	for name, c := range map[string]struct {
		root string
		want cpuUse
	}{
		"version 2":     {v2, cpuUse{throttled: 2500 * time.Microsecond, periods: 3, pressure: 1500 * time.Microsecond}},
		"version 1":     {v1, cpuUse{throttled: 2500 * time.Microsecond, periods: 3, pressure: -1}},
		"nothing there": {none, cpuUse{throttled: -1, pressure: -1}},
	} {
		if got := readCPU(c.root); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

func TestTheTailKeepsTheLastLines(t *testing.T) {
	t.Parallel()
	var tl tail
	tl.add([]byte(strings.Repeat("x", 2*tailBytes) + "\n"))
	for i := range 1000 {
		tl.add([]byte(fmt.Sprintf("line %d\n", i)))
	}
	tl.add([]byte("\n\n"))
	if got, want := tl.lines(2), "line 998\nline 999"; got != want {
		t.Errorf("last lines %q; want %q", got, want)
	}
	if len(tl.buf) > tailBytes {
		t.Errorf("keeps %d bytes; want at most %d", len(tl.buf), tailBytes)
	}
}
