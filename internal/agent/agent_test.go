package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

func TestAnAppStartsAndStopsAtItsTimesAndEverythingIsArchived(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `echo hello; echo oops >&2; echo '{"line":1}' > $VIGNETTE_MESSAGE_LOG; exec sleep 60`)
	n.config.Files = []agentconfig.File{{Path: filepath.Join(t.TempDir(), "run", "app.conf"), Content: "x"}}
	n.run()
	n.waitPhase(runapi.AgentReady)
	if text, err := os.ReadFile(n.config.Files[0].Path); err != nil || string(text) != "x" {
		t.Errorf("file of the app: %q, %v; want x", text, err)
	}
	start := s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	stop := s.arm("a2", runapi.VerbStop, 2500*time.Millisecond)
	waitFor(t, "both actions armed", func() bool { return s.lastReport().ArmedVersion == 2 })
	n.waitPhase(runapi.AgentStopped)
	s.finish()
	if code := n.waitExit(); code != 0 {
		t.Errorf("exit code %d; want 0", code)
	}
	report := s.lastReport()
	if report.Phase != runapi.AgentDone || report.ExecutedActions != 2 || report.Restarts != 0 || report.Message != "" {
		t.Errorf("last report %+v; want done, a1 and a2 executed, no restarts, no message", report)
	}
	for file, want := range map[string]string{"stdout-1.log": "hello\n", "stderr-1.log": "oops\n", "messages-1.jsonl": "{\"line\":1}\n"} {
		if got := s.log(file); got != want {
			t.Errorf("archived %s: %q; want %q", file, got, want)
		}
	}
	checkAction(t, s.event(t, eventStarted), "a1", start)
	checkAction(t, s.event(t, eventStopped), "a2", stop)
	if len(s.event(t, eventFinished)) != 1 {
		t.Errorf("the archived log of the agent does not end with finished: %v", s.events(t))
	}
}

func TestNoEarlierReportReplacesTheLastOne(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.slowPhase = runapi.AgentRunning
	n := newNode(t, s, "exec sleep 60")
	n.run()
	n.waitPhase(runapi.AgentReady)
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "a report that the server takes late", func() bool { return s.late.Load() > 0 })
	s.finish()
	n.waitExit()
	time.Sleep(500 * time.Millisecond) // longer than a late report takes
	if p := s.lastReport().Phase; p != runapi.AgentDone {
		t.Errorf("the server's last report has phase %s; want done", p)
	}
}

func checkAction(t *testing.T, events []runapi.AgentEvent, id string, due time.Time) {
	t.Helper()
	if len(events) != 1 || events[0].ActionID != id || events[0].PlannedNanoseconds != due.UnixNano() {
		t.Fatalf("events %+v; want one by %s planned at %d", events, id, due.UnixNano())
	}
	e := events[0]
	late := float64(e.TimeNanoseconds-e.PlannedNanoseconds) / 1e9
	if late < 0 || late > 10 || late-e.LatenessSeconds > 1e-6 || e.LatenessSeconds-late > 1e-6 {
		t.Errorf("%s: %v s after its time, says it was %v s late; want the same, from 0 to 10 s", e.Event, late, e.LatenessSeconds)
	}
}

func TestNodesStartWithin10MillisecondsOfABareSleep(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash, whose EPOCHREALTIME tells when a child really runs")
	}
	// Machines differ in how fast they start processes. So the test compares agents with as many processes that start without them,
	// each by its best time, as other programs may use the processors.
	const nodes, allowed = 4, 10 * time.Millisecond
	agents, controls := time.Hour, time.Hour
	for try := 0; try < 10 && (try == 0 || agents > controls+allowed); try++ {
		controls = min(controls, lastControl(t, nodes, bash))
		agents = min(agents, lastChild(t, nodes, bash))
		t.Logf("after %d tries: the last child of %d nodes ran %v after the planned time, the last of %d processes without an agent %v", try+1, nodes, agents, nodes, controls)
	}
	if agents > controls+allowed {
		t.Errorf("children ran up to %v after the planned time, and %v without an agent; want at most %v more", agents, controls, allowed)
	}
}

// lastChild lets so many nodes start a program at one moment and returns how late the last of them ran.
func lastChild(t *testing.T, nodes int, bash string) (last time.Duration) {
	t.Helper()
	due := time.Now().Add(900 * time.Millisecond).Round(0)
	var started []*node
	for range nodes {
		s := newFakeServer(t)
		s.set(func(s *fakeServer) {
			s.plan.T0 = &due
			s.plan.Actions = []runapi.Action{{ID: "a1", Verb: runapi.VerbStart}}
			s.plan.Revision++
		})
		n := newNode(t, s)
		n.config.Instances = []agentconfig.Instance{{Name: "nor/bft", Command: []string{bash, "-c", "echo $EPOCHREALTIME $VIGNETTE_START_NS"}}}
		n.run()
		started = append(started, n)
	}
	for _, n := range started {
		late := childLateness(t, n, due)
		if late < 0 {
			t.Fatalf("a child ran %v before its time", -late)
		}
		last = max(last, late)
		n.server.finish()
	}
	return last
}

// lastControl starts the same program as often without an agent, each from a thread that only slept, and returns how late the last ran.
func lastControl(t *testing.T, processes int, bash string) (last time.Duration) {
	t.Helper()
	due := time.Now().Add(200 * time.Millisecond).Round(0)
	outputs, failures := make([]string, processes), make([]error, processes)
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			command := exec.Command(bash, "-c", "echo $EPOCHREALTIME")
			if failures[i] = clock.SleepUntil(t.Context(), due); failures[i] != nil {
				return
			}
			var out []byte
			out, failures[i] = command.Output()
			outputs[i] = strings.TrimSpace(string(out))
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		last = max(last, epoch(t, output).Sub(due))
	}
	return last
}

// epoch reads bash's EPOCHREALTIME.
func epoch(t *testing.T, text string) time.Time {
	t.Helper()
	microseconds, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMicro(microseconds)
}

// childLateness reads the child's output: the current time in its clock, and the planned start. If the agent received
// the start too late it is an hour.
func childLateness(t *testing.T, n *node, due time.Time) time.Duration {
	t.Helper()
	var fields []string
	waitFor(t, "the child's output", func() bool {
		text, _ := os.ReadFile(filepath.Join(n.options.LogDir, "stdout-1.log"))
		fields = strings.Fields(string(text))
		return len(fields) == 2 || len(n.server.lastReport().ArmedTooLate) > 0
	})
	if len(fields) != 2 {
		return time.Hour
	}
	if fields[1] != strconv.FormatInt(due.UnixNano(), 10) {
		t.Fatalf("VIGNETTE_START_NS is %s; want %d", fields[1], due.UnixNano())
	}
	return epoch(t, fields[0]).Sub(due.Truncate(time.Microsecond))
}

func TestActionsAreCarriedOutInOrderOfTimeWhateverTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `exec sleep 60`)
	n.run()
	n.waitPhase(runapi.AgentReady)
	s.arm("stop-2", runapi.VerbStop, 3900*time.Millisecond)
	s.arm("start-2", runapi.VerbStart, 3100*time.Millisecond)
	time.Sleep(100 * time.Millisecond) // it waits for start-2 when an earlier one arrives
	s.arm("start-1", runapi.VerbStart, 1500*time.Millisecond)
	s.arm("stop-1", runapi.VerbStop, 2300*time.Millisecond)
	want := []string{"start-1", "stop-1", "start-2", "stop-2"}
	waitFor(t, "all four actions", func() bool { return s.lastReport().ExecutedActions == 4 })
	s.finish()
	n.waitExit()
	var got []string
	for _, e := range s.events(t) {
		if e.Event == eventStarted || e.Event == eventStopped {
			got = append(got, e.ActionID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("carried out %v; want %v", got, want)
	}
}

func TestAnActionThatArrivesTooLateIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	t0 := time.Now().Add(-time.Minute)
	s.set(func(s *fakeServer) {
		s.plan.T0 = &t0
		s.plan.Actions = []runapi.Action{{ID: "a1", Verb: runapi.VerbStart, AtNanoseconds: 1e9}}
	})
	n := newNode(t, s, `echo ran`)
	n.run()
	waitFor(t, "armed too late", func() bool { return slices.Equal(s.lastReport().ArmedTooLate, []string{"a1"}) })
	s.finish()
	n.waitExit()
	if report := s.lastReport(); report.ExecutedActions != 0 {
		t.Errorf("report %+v; want nothing executed", report)
	}
	if got := s.log("stdout-1.log"); got != "" {
		t.Errorf("the app ran and printed %q; want it never started", got)
	}
	if events := s.event(t, eventArmedTooLate); len(events) != 1 {
		t.Errorf("events %v; want one of armedTooLate", s.events(t))
	}
}

func TestANewerListSupersedesWhatWaitsAndALateStopIsCarriedOutAtOnce(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `exec sleep 60`)
	n.run()
	n.waitPhase(runapi.AgentReady)
	s.arm("start", runapi.VerbStart, 1500*time.Millisecond)
	s.arm("again", runapi.VerbStart, time.Minute)
	n.waitPhase(runapi.AgentRunning)
	s.set(func(s *fakeServer) {
		start := s.plan.Actions[0]
		s.plan.ArmedVersion++
		s.plan.Actions = []runapi.Action{start, {ID: "early", Verb: runapi.VerbStop, AtNanoseconds: start.AtNanoseconds + 1}}
	})
	n.waitPhase(runapi.AgentStopped)
	waitFor(t, "the report", func() bool { r := s.lastReport(); return r.ArmedVersion == 3 && r.ExecutedActions == 2 })
	s.finish()
	if code := n.waitExit(); code != 0 {
		t.Errorf("exit code %d; want 0", code)
	}
	stopped := s.event(t, eventStopped)
	if len(stopped) != 1 || stopped[0].ActionID != "early" || stopped[0].LatenessSeconds <= 0 || stopped[0].PlannedNanoseconds == 0 {
		t.Errorf("stopped %+v; want the early stop, with its lateness", stopped)
	}
	if left := s.event(t, eventFinished); len(left) != 1 || left[0].Message != "" {
		t.Errorf("at the end %+v; want that nothing was left to be carried out", left)
	}
}

func TestAnAppThatFailsAtOnceIsGivenUpWithItsLastLines(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `echo "cannot bind: port in use" >&2; exit 7`)
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentFailed)
	report := s.lastReport()
	if want := "app bft on node nor exited with code 7: cannot bind: port in use"; !strings.HasPrefix(report.Message, want) {
		t.Errorf("message %q; want it to begin with %q", report.Message, want)
	}
	if report.Restarts != maxEarlyFailures-1 {
		t.Errorf("%d restarts; want %d", report.Restarts, maxEarlyFailures-1)
	}
	s.finish()
	if code := n.waitExit(); code != 7 {
		t.Errorf("the agent's exit code is %d; want the app's, 7", code)
	}
	if exits := s.event(t, eventExited); len(exits) != maxEarlyFailures || *exits[0].ExitCode != 7 {
		t.Errorf("exits %+v; want %d with code 7", exits, maxEarlyFailures)
	}
	if s.lastReport().Phase != runapi.AgentDone || s.lastReport().Message == "" {
		t.Errorf("last report %+v; want done, with the message kept", s.lastReport())
	}
}

func TestACommandThatDoesNotExistFailsTheAgentBeforeTheRunBegins(t *testing.T) {
	t.Parallel()
	ownClock := filepath.Join(t.TempDir(), "clock.json")
	if err := os.WriteFile(ownClock, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for clockFile, place := range map[string]string{"": "the app's image", ownClock: "the virtual machine"} {
		s := newFakeServer(t)
		n := newNode(t, s)
		n.options.ClockFile = clockFile
		n.config.Instances = []agentconfig.Instance{{Name: "nor/bft", Command: []string{"/no/such/program"}}}
		n.run()
		n.waitPhase(runapi.AgentFailed)
		want := "app bft on node nor cannot run: command /no/such/program does not exist: " + place + " has no such program"
		if m := s.lastReport().Message; m != want {
			t.Errorf("message %q; want %q", m, want)
		}
	}
}

func TestAnotherCongestionControlThanTheExperimentsFailsTheAgentBeforeTheRunBegins(t *testing.T) {
	t.Parallel()
	for wanted, want := range map[string]string{"bbr": "", "": "", "vegas": "app bft on node nor: tcpCongestionControl: the kernel did not take vegas and has bbr: it knows " +
		"reno, bbr, cubic, and allows programs reno, bbr; take one of these, or have the administrator add vegas to the chart's radiod.tcpCongestionControls"} {
		t.Run(wanted, func(t *testing.T) {
			t.Parallel()
			s := newFakeServer(t)
			n := newNode(t, s, "exec sleep 60")
			n.config.TCPCongestionControl, n.options.SysctlDir = wanted, t.TempDir()
			for name, text := range map[string]string{"tcp_congestion_control": "bbr\n", "tcp_available_congestion_control": "reno bbr cubic\n", "tcp_allowed_congestion_control": "reno bbr\n"} {
				if err := os.WriteFile(filepath.Join(n.options.SysctlDir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			n.run()
			if want == "" {
				n.waitPhase(runapi.AgentReady)
				return
			}
			n.waitPhase(runapi.AgentFailed)
			if m := s.lastReport().Message; m != want {
				t.Errorf("message %q; want %q", m, want)
			}
		})
	}
}

func TestASideProcessMayFailOrBeMissing(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, "exec sleep 60", "exit 3")
	n.config.Instances[1].Aside = true
	n.config.Instances = append(n.config.Instances, agentconfig.Instance{Name: "nor/bft/statistics", Command: []string{"/no/such/program"}, Aside: true})
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "both to be given up", func() bool { return len(s.event(t, eventExited)) == 2*maxEarlyFailures })
	if report := s.lastReport(); report.Phase != runapi.AgentRunning || report.Message != "" {
		t.Errorf("report %+v; want a running app", report)
	}
	s.finish()
	if code := n.waitExit(); code != 0 {
		t.Errorf("the agent's exit code is %d; want 0", code)
	}
}

func TestAProgramThatTheKernelRefusesFailsTheAgentWithAnExplanation(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s)
	program := executable(t, "neither a program nor a script\n")
	n.config.Instances = []agentconfig.Instance{{Name: "nor/bft", Command: []string{program}}}
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentFailed)
	if m := s.lastReport().Message; !strings.Contains(m, "exited with code 127") || !strings.Contains(m, "neither a program nor a script with #! at its beginning") {
		t.Errorf("message %q; want code 127 and what is wrong with the file", m)
	}
}

func TestAnAppThatDiesOnceIsRestarted(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	marker := filepath.Join(t.TempDir(), "marker")
	n := newNode(t, s, fmt.Sprintf(`if [ -e %[1]s ]; then echo again; exec sleep 60; fi; touch %[1]s; kill -KILL $$`, marker))
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "one restart", func() bool { return s.lastReport().Restarts == 1 })
	n.waitPhase(runapi.AgentRunning)
	waitFor(t, "the second life's output", func() bool { return s.log("stdout-1.log") == "again\n" })
	s.finish()
	n.waitExit()
	if exits := s.event(t, eventExited); len(exits) != 1 || *exits[0].ExitCode != 128+9 {
		t.Errorf("exits %+v; want one with code 137", exits)
	}
	if got := s.log("stdout-1.log"); got != "again\n" {
		t.Errorf("output %q; want that of the second life", got)
	}
}

func TestAnAppThatEndsWellIsNotRestarted(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `echo once`)
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentStopped)
	time.Sleep(2 * firstBackoff)
	s.finish()
	n.waitExit()
	if got := s.log("stdout-1.log"); got != "once\n" {
		t.Errorf("output %q; want it once", got)
	}
}

func TestARestartedAgentNeverRepeatsAStart(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `echo ran; exec sleep 60`)
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentRunning)
	waitFor(t, "the app's output", func() bool {
		text, _ := os.ReadFile(filepath.Join(n.options.LogDir, "stdout-1.log"))
		return len(text) > 0
	})
	s.set(func(s *fakeServer) { s.refuse = true }) // so that the next agent has to remember by itself
	n.signals <- syscall.SIGTERM
	n.waitExit()
	s.set(func(s *fakeServer) { s.refuse = false })
	n.run()
	n.waitPhase(runapi.AgentFailed)
	if m := s.lastReport().Message; !strings.Contains(m, "restarted during the run") {
		t.Errorf("message %q; want it to speak of the restart", m)
	}
	s.finish()
	n.waitExit()
	if got := s.log("stdout-1.log"); got != "ran\n" {
		t.Errorf("output %q; want one start", got)
	}
	if late := s.lastReport().ArmedTooLate; len(late) != 0 {
		t.Errorf("armed too late %v; want none, a1 was carried out", late)
	}
}

func TestAnArmedAgentNeedsNoServer(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `echo ran; exec sleep 60`)
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "armed", func() bool { return s.lastReport().ArmedVersion == 1 })
	s.set(func(s *fakeServer) { s.refuse = true })
	s.CloseClientConnections()
	waitFor(t, "the app to run", func() bool {
		text, _ := os.ReadFile(filepath.Join(n.options.LogDir, "stdout-1.log"))
		return string(text) == "ran\n"
	})
	s.set(func(s *fakeServer) { s.refuse = false })
	waitFor(t, "the log in the archive", func() bool { return s.log("stdout-1.log") == "ran\n" })
	waitFor(t, "the report", func() bool { return s.lastReport().Phase == runapi.AgentRunning })
}

func TestTheTokenIsReadAgainForEveryRequest(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `true`)
	n.run()
	n.waitPhase(runapi.AgentReady)
	if err := os.WriteFile(n.options.TokenFile, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.set(func(*fakeServer) {})
	waitFor(t, "a request with the new token", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.tokens["Bearer first"] && s.tokens["Bearer second"]
	})
}

func TestSIGTERMStopsTheAppAndShipsWhatThereIs(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done`, `trap '' TERM; echo stubborn; while :; do sleep 0.05; done`)
	n.config.StopGraceSeconds = 30
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "both up", func() bool { return s.log("stdout-1.log") == "up\n" && s.log("stdout-2.log") == "stubborn\n" })
	begin := time.Now()
	n.signals <- syscall.SIGTERM
	n.waitExit()
	if took := time.Since(begin); took > signalGrace+signalShipTime {
		t.Errorf("took %v to end; want less than the pod's 5 s", took)
	}
	if got := s.log("stdout-1.log"); got != "up\nbye\n" {
		t.Errorf("archived output %q; want the app's farewell in it", got)
	}
	if killed := s.event(t, eventKilled); len(killed) != 1 || killed[0].Instance != "nor/bft/2" {
		t.Errorf("killed %+v; want nor/bft/2", killed)
	}
}

func TestSIGTERMShortensTheGraceOfWhatIsEndingAlready(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `trap '' TERM; echo stubborn; while :; do sleep 0.05; done`)
	n.config.StopGraceSeconds = 300
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "the app", func() bool { return s.log("stdout-1.log") == "stubborn\n" })
	s.arm("a2", runapi.VerbStop, 1500*time.Millisecond)
	waitFor(t, "the stop", func() bool { return s.lastReport().ExecutedActions == 2 })
	n.signals <- syscall.SIGTERM
	endThreads(n) // an instance dies with the thread that made it
	n.waitExit()
	if killed := s.event(t, eventKilled); len(killed) != 1 || killed[0].Instance != "nor/bft/1" {
		t.Errorf("killed %+v; want nor/bft/1", killed)
	}
	if finished := s.event(t, eventFinished); len(finished) != 1 {
		t.Errorf("finished %+v; want it after all that was killed", finished)
	}
}

// endThreads has every thread that the node's agent leaves to others end, until the agent does.
func endThreads(n *node) {
	for len(n.exit) == 0 {
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
				time.Sleep(time.Millisecond)
			})
		}
		wait.Wait()
	}
}

func TestSIGTERMDoesNotWaitForARestart(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `trap "echo asked" TERM; echo begun; while :; do sleep 0.1; done`)
	n.config.StopGraceSeconds = 60
	n.run()
	n.waitPhase(runapi.AgentReady)
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "the app", func() bool { return s.log("stdout-1.log") == "begun\n" })
	s.arm("a2", runapi.VerbStop, 1500*time.Millisecond)
	s.arm("a3", runapi.VerbStart, 2*time.Second)
	waitFor(t, "the stop", func() bool { return len(s.event(t, eventStopped)) == 1 })
	time.Sleep(time.Second) // until the start waits for the app's end
	asked := time.Now()
	n.signals <- syscall.SIGTERM
	n.waitExit()
	if took := time.Since(asked); took > signalGrace+signalShipTime {
		t.Errorf("the agent ended %v after SIGTERM; want less than the pod's 5 s", took)
	}
	if got := s.log("stdout-1.log"); got != "begun\nasked\n" {
		t.Errorf("archived output %q; want that of one process", got)
	}
}

func TestSIGTERMWithoutAServerEndsWithin5Seconds(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `exec sleep 60`)
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentRunning)
	s.set(func(s *fakeServer) { s.refuse = true })
	begin := time.Now()
	n.signals <- syscall.SIGTERM
	n.waitExit()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v to end; want less than 5 s", took)
	}
}

func TestAnAppThatDrainsGoesOnUntilTheRunIsFinished(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `trap 'echo quiet' USR1; trap 'echo end; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
	n.config.DrainOnStop = true
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "up", func() bool { return s.log("stdout-1.log") == "up\n" })
	s.arm("a2", runapi.VerbStop, 1500*time.Millisecond)
	waitFor(t, "quiet", func() bool { return s.log("stdout-1.log") == "up\nquiet\n" })
	if p := s.lastReport().Phase; p != runapi.AgentRunning {
		t.Errorf("phase %s; want running, as it still receives", p)
	}
	s.finish()
	n.waitExit()
	if got := s.log("stdout-1.log"); got != "up\nquiet\nend\n" {
		t.Errorf("output %q; want it to end at the finish", got)
	}
}

// slowToEnd takes a second to end while it drains.
const slowToEnd = `trap : USR1; trap 'sleep 1; exit 0' TERM; echo up; while :; do sleep 0.05; done`

// startDraining starts so many instances that are slow to end, and has them stopped 1.5 s later.
func startDraining(t *testing.T, count int) *fakeServer {
	t.Helper()
	s := newFakeServer(t)
	n := newNode(t, s, slices.Repeat([]string{slowToEnd}, count)...)
	n.config.StopGraceSeconds, n.config.DrainOnStop = 30, true
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "up", func() bool { return s.log(fmt.Sprintf("stdout-%d.log", count)) == "up\n" })
	s.arm("a2", runapi.VerbStop, 1500*time.Millisecond)
	return s
}

func TestInstancesThatDrainEndTogetherWhenTheyAreRestarted(t *testing.T) {
	t.Parallel()
	s := startDraining(t, 4)
	s.arm("a3", runapi.VerbStart, 1500*time.Millisecond)
	started := func() []runapi.AgentEvent {
		return slices.DeleteFunc(s.event(t, eventStarted), func(e runapi.AgentEvent) bool { return e.ActionID != "a3" })
	}
	waitFor(t, "the restart of all", func() bool { return len(started()) == 4 })
	all := started()
	if between := time.Duration(all[3].TimeNanoseconds - all[0].TimeNanoseconds); between > 2500*time.Millisecond {
		t.Errorf("the last of 4 starts %v after the first; want no second for each between", between)
	}
}

func TestInstancesThatDrainEndBeforeTheNextStart(t *testing.T) {
	t.Parallel()
	s := startDraining(t, 2)
	s.arm("a3", runapi.VerbStart, 6*time.Second)
	waitFor(t, "the second start", func() bool { return s.lastReport().ExecutedActions == 3 })
	waitFor(t, "its events", func() bool { return len(s.event(t, eventStarted)) == 4 })
	for _, e := range s.event(t, eventStarted)[2:] {
		if after := time.Duration(e.TimeNanoseconds - e.PlannedNanoseconds); after >= time.Second {
			t.Errorf("%s starts %v after its time; want it not to wait for the earlier process", e.Instance, after)
		}
	}
}

func TestTheTimeThatAnAppTakesToEndIsNoLatenessOfItsRestart(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, slowToEnd, `exec sleep 60`)
	n.config.StopGraceSeconds = 30
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "up", func() bool { return s.log("stdout-1.log") == "up\n" })
	s.arm("a2", runapi.VerbStop, 1500*time.Millisecond)
	s.arm("a3", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "the restart", func() bool { return s.lastReport().ExecutedActions == 3 })
	waitFor(t, "its events", func() bool { return len(s.event(t, eventStarted)) == 4 })
	latest := 0.0
	for _, e := range append(s.event(t, eventStarted), s.event(t, eventStopped)...) {
		latest = max(latest, e.LatenessSeconds)
	}
	if worst := s.lastReport().WorstLatenessSeconds; worst != latest {
		t.Errorf("the report has a worst lateness of %v s; want that of the events, %v s", worst, latest)
	}
	for _, e := range s.event(t, eventStarted)[2:] {
		after := time.Duration(e.TimeNanoseconds - e.PlannedNanoseconds).Seconds()
		if after < 1 || e.LatenessSeconds < 0 || after-e.LatenessSeconds < 0.9 || !strings.Contains(e.Message, "s for the app's earlier process to end") {
			t.Errorf("%s, started %v s after its time, is %v s late, %q; want the second of the first one's end told and not counted", e.Instance, after, e.LatenessSeconds, e.Message)
		}
	}
}

func TestAProcessThatIsRestartedInTheDrainIsToldToBeQuiet(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `echo "up$VIGNETTE_QUIET"; trap 'exit 1' USR1; trap 'exit 0' TERM; while :; do sleep 0.05; done`)
	n.config.DrainOnStop = true
	n.run()
	output := func(want string) {
		t.Helper()
		waitFor(t, strconv.Quote(want), func() bool { return s.log("stdout-1.log") == want })
	}
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	output("up\n")
	s.arm("a2", runapi.VerbStop, 1500*time.Millisecond)
	output("up\nup1\n")
	s.arm("a3", runapi.VerbStart, 1500*time.Millisecond)
	output("up\nup1\nup\n")
}

func TestOtherSignalsGoOnToTheApp(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `trap 'echo reload' USR2; echo up; while :; do sleep 0.05; done`)
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "up", func() bool { return s.log("stdout-1.log") == "up\n" })
	n.signals <- syscall.SIGUSR2
	waitFor(t, "reload", func() bool { return s.log("stdout-1.log") == "up\nreload\n" })
}

func TestAStopEndsWhatTheAppHasStarted(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `sleep 1000 & echo $!; wait`)
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "the grandchild's id", func() bool { return s.log("stdout-1.log") != "" })
	pid, err := strconv.Atoi(strings.TrimSpace(s.log("stdout-1.log")))
	if err != nil {
		t.Fatal(err)
	}
	s.arm("a2", runapi.VerbStop, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentStopped)
	waitFor(t, "the end of the grandchild", func() bool { return !isRunning(pid) })
}

// isRunning reports whether a process exists and is no zombie.
func isRunning(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

func TestOutputBeyondTheSpoolLimitIsCutOffWithAnEvent(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `head -c 40000 /dev/zero | tr '\0' x; exec sleep 60`)
	n.config.SpoolLimitBytes = 20000
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitFor(t, "spoolFull", func() bool { return len(s.event(t, eventSpoolFull)) > 0 })
	s.finish()
	n.waitExit()
	if got := len(s.log("stdout-1.log")); got != 10000 {
		t.Errorf("archived %d bytes of output; want half of the limit, 10000", got)
	}
}

func TestAnAgentWithoutAppsIsReadyAndDone(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s)
	n.run()
	n.waitPhase(runapi.AgentReady)
	s.finish()
	if code := n.waitExit(); code != 0 || s.lastReport().Phase != runapi.AgentDone {
		t.Errorf("exit code %d, phase %s; want 0, done", code, s.lastReport().Phase)
	}
}

func TestFilesThatCannotBeWrittenFailTheAgentByName(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, `true`)
	n.config.Files = []agentconfig.File{{Path: "/proc/none/app.conf"}}
	n.run()
	n.waitPhase(runapi.AgentFailed)
	if m := s.lastReport().Message; !strings.Contains(m, "/proc/none") {
		t.Errorf("message %q; want the file's path in it", m)
	}
}

func TestInstallReplacesTheProgramInOneStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		if err := Install(dir); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "agent"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("installed: %v, %v; want mode 0755", info, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files; want only the agent", len(left))
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte(`{"revision":3,"t0":"2030-01-01T00:00:00Z","actions":[{"id":"a","atNanoseconds":5,"verb":"start","targets":[{"node":"n","app":"b"}]}],"finish":true}`))
	f.Add([]byte(`{"t0":"2030-01-01T00:00:00Z","actions":[{"id":"","verb":"jump"},{"id":"x","atNanoseconds":-9223372036854775808,"verb":"stop"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var plan runapi.AgentPlan
		if json.Unmarshal(data, &plan) != nil {
			return
		}
		a, err := New(agentconfig.Config{Server: "http://127.0.0.1:1", RunUID: "u", Node: "n", App: "b"}, Options{LogDir: t.TempDir(), Stderr: &strings.Builder{}})
		if err != nil {
			t.Fatal(err)
		}
		defer a.events.closer.Close()
		a.accept(plan)
		a.accept(plan)
		last := int64(-1)
		ids := map[string]bool{}
		for _, action := range a.schedule.pending {
			if action.AtNanoseconds < last || ids[action.ID] || action.AtNanoseconds < 0 {
				t.Fatalf("pending %+v: want order of time, each id once, none before T0", a.schedule.pending)
			}
			last, ids[action.ID] = action.AtNanoseconds, true
		}
	})
}
