package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

// runAsProcess starts the agent in a process of its own.
func (n *node) runAsProcess() *exec.Cmd {
	n.t.Helper()
	text, err := json.Marshal(n.config)
	if err != nil {
		n.t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "AGENT_TEST_ROLE=agent", "AGENT_TEST_DIR="+filepath.Dir(n.options.LogDir), agentconfig.Env+"="+string(text))
	if err := command.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = command.Process.Kill() })
	return command
}

// newHolder is an agent that is not running, with one instance; the test is its executor.
func newHolder(t *testing.T, command ...string) (*Agent, *instance) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	n := newNode(t, newFakeServer(t))
	n.config.Instances = []agentconfig.Instance{{Name: "nor/bft", Command: command}}
	a, err := New(n.config, n.options)
	if err != nil {
		t.Fatal(err)
	}
	in := a.instances[0]
	t.Cleanup(func() { // what is told after the test's end would be a panic
		in.halt(syscall.SIGKILL)
		if ended := in.endedChannel(); ended != nil {
			<-ended
		}
		a.events.mu.Lock()
		defer a.events.mu.Unlock()
	})
	return a, in
}

func output(t *testing.T, a *Agent, stream string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.logDir, stream+"-1.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAHeldProcessRunsNothingUntilItsRelease(t *testing.T) {
	a, in := newHolder(t, "sh", "-c", `echo $$ $VIGNETTE_START_NS $(ulimit -S -n); exec sleep 60`)
	due := time.Now().Add(400 * time.Millisecond).Round(0)
	in.hold(due)
	if in.held == nil || in.isActive() {
		t.Fatal("want a held process, and the instance not active yet")
	}
	p := in.held.process
	pid := p.pid
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process %d has group %d, %v; want its own", pid, group, err)
	}
	time.Sleep(150 * time.Millisecond)
	if got := output(t, a, "stdout"); got != "" {
		t.Errorf("printed %q before its time", got)
	}
	if err := clock.SleepUntil(t.Context(), due); err != nil {
		t.Fatal(err)
	}
	a.releaseStart(due)
	event, _ := in.begin(t.Context(), "a1", due, new(time.Duration))
	waitFor(t, "its output", func() bool { return strings.HasSuffix(output(t, a, "stdout"), "\n") })
	in.halt(syscall.SIGTERM)
	<-p.done
	if late := time.Duration(event.LatenessSeconds * 1e9); late < 0 || late > 10*time.Second || event.Message != "" {
		t.Errorf("event %+v; want it late by 0 to 10 s, without a message", event)
	}
	plain, _ := exec.Command("sh", "-c", "ulimit -S -n").Output()
	if got, want := output(t, a, "stdout"), fmt.Sprintf("%d %d %s", pid, due.UnixNano(), plain); got != want {
		t.Errorf("printed %q; want %q", got, want)
	}
	if p.code != 128+15 {
		t.Errorf("process %d ended with %d; want 143", pid, p.code)
	}
}

func TestHowLongAProcessRanDoesNotFollowStepsOfTheClock(t *testing.T) {
	for _, held := range []bool{true, false} {
		a, in := newHolder(t, "sleep", "60")
		due := time.Now().Add(300 * time.Millisecond).Round(0)
		if held {
			in.hold(due)
			a.releaseStart(due)
		}
		in.begin(t.Context(), "a1", due, new(time.Duration))
		if started := in.process.started; started == started.Round(0) { // which only has the time of day
			t.Errorf("held %t: started %v; want Go's monotonic reading too", held, started)
		}
	}
}

func TestAnInstanceKnowsItsNextPlannedStop(t *testing.T) {
	a, in := newHolder(t, "true")
	t0 := time.Unix(1_000_000_000, 0)
	a.schedule.t0 = t0
	for i, verb := range []runapi.Verb{runapi.VerbStop, runapi.VerbStart, runapi.VerbStop, runapi.VerbStart} {
		a.schedule.all = append(a.schedule.all, runapi.Action{Verb: verb, AtNanoseconds: int64(i) * 1e9})
	}
	for after, want := range map[time.Duration]string{-1: "1000000000000000000", 0: "1000000002000000000", time.Second: "1000000002000000000", 3 * time.Second: ""} {
		got := ""
		for _, entry := range in.environment(t0.Add(after)) {
			if value, ok := strings.CutPrefix(entry, appinstance.EnvStop+"="); ok {
				got = value
			}
		}
		if got != want {
			t.Errorf("started %v after T0: the stop is %q; want %q", after, got, want)
		}
	}
}

func TestAWithdrawnStartEndsItsHeldProcess(t *testing.T) {
	s := newFakeServer(t)
	n := newNode(t, s, "touch "+filepath.Join(t.TempDir(), "marker"))
	n.run()
	n.waitPhase(runapi.AgentReady)
	due := s.arm("a1", runapi.VerbStart, 2500*time.Millisecond)
	held := func() int { return len(stoppedChildren(t, os.Getpid(), n.config.Instances[0].Command[2])) }
	waitFor(t, "a held process, or its start", func() bool { return held() > 0 || s.lastReport().ExecutedActions > 0 })
	s.set(func(s *fakeServer) { s.plan.ArmedVersion, s.plan.Actions = 2, nil })
	waitFor(t, "the newer list", func() bool { return s.lastReport().ArmedVersion == 2 })
	if time.Now().After(due) {
		t.Skip("the machine is too busy to withdraw a start in 2.5 s")
	}
	waitFor(t, "its end", func() bool { return held() == 0 })
	s.finish()
	n.waitExit()
	if started := s.event(t, eventStarted); len(started) > 0 {
		t.Errorf("started %+v; want nothing", started)
	}
}

func TestAWithdrawnStartLeavesNothing(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	s := newFakeServer(t)
	n := newNode(t, s, "touch "+marker, "touch "+marker)
	n.run()
	n.waitPhase(runapi.AgentReady)
	due := s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	var held []int
	waitFor(t, "two held processes", func() bool {
		held = stoppedChildren(t, os.Getpid(), "touch "+marker)
		return len(held) == 2 || time.Now().After(due)
	})
	s.finish()
	if code := n.waitExit(); code != 0 {
		t.Errorf("exit code %d; want 0", code)
	}
	if time.Now().After(due) {
		t.Skip("the machine is too busy to withdraw a start in 1.5 s")
	}
	for _, pid := range held {
		if isRunning(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
	time.Sleep(time.Until(due) + 100*time.Millisecond)
	if _, err := os.Stat(marker); err == nil {
		t.Error("the app ran, although its start was withdrawn")
	}
	if left := s.event(t, eventFinished); len(left) != 1 || !strings.Contains(left[0].Message, "a1") || s.lastReport().ExecutedActions != 0 {
		t.Errorf("events %+v, report %+v; want a1 named as not carried out", left, s.lastReport())
	}
}

// stoppedChildren are a process's children that are stopped and have this in their command line.
func stoppedChildren(t *testing.T, parent int, part string) (pids []int) {
	t.Helper()
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if strings.Contains(string(line), part) && strings.Contains(string(stat), ") T "+strconv.Itoa(parent)+" ") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestAStartCutOffAtItsLastMomentIsNamed(t *testing.T) {
	a, _ := newHolder(t, "true")
	due := time.Now().Add(time.Minute)
	t0 := due.Add(-time.Second).Round(0)
	a.accept(runapi.AgentPlan{T0: &t0, Actions: []runapi.Action{{ID: "a1", Verb: runapi.VerbStart, AtNanoseconds: int64(time.Second)}}})
	action, due, _ := a.schedule.next()
	ended, end := context.WithCancel(t.Context())
	end()
	a.executeAction(ended, action, due)
	if left := a.schedule.notExecuted(); !strings.Contains(left, "a1") {
		t.Errorf("not carried out: %q; want a1 named", left)
	}
}

func TestAnEarlierStartTakesTheHeldProcessesPlace(t *testing.T) {
	s := newFakeServer(t)
	n := newNode(t, s, `echo $VIGNETTE_START_NS; exec sleep 60`)
	n.run()
	n.waitPhase(runapi.AgentReady)
	s.arm("later", runapi.VerbStart, 1900*time.Millisecond)
	time.Sleep(300 * time.Millisecond)
	due := s.arm("earlier", runapi.VerbStart, 1000*time.Millisecond)
	waitFor(t, "both", func() bool { return s.lastReport().ExecutedActions == 2 })
	waitFor(t, "the app's output", func() bool { return s.log("stdout-1.log") != "" })
	s.finish()
	n.waitExit()
	if got, want := s.log("stdout-1.log"), fmt.Sprintln(due.UnixNano()); got != want {
		t.Errorf("printed %q; want one start, of %q", got, want)
	}
	if started := s.event(t, eventStarted); len(started) != 2 || started[1].Message != "was running already" {
		t.Errorf("events %+v; want the later start to find it running", started)
	}
}

func TestACommandThatCannotBeExecutedIsReportedAtItsTimeByName(t *testing.T) {
	dir := t.TempDir()
	busy, text := filepath.Join(dir, "busy"), filepath.Join(dir, "text")
	writer, err := os.OpenFile(busy, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := os.WriteFile(text, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, why := range map[string]string{busy: "text file busy", text: "permission denied", "/no/such/program": "no such file", "nosuchprogram": "not found"} {
		a, in := newHolder(t, path)
		due := time.Now().Add(300 * time.Millisecond).Round(0)
		in.hold(due)
		if in.held != nil {
			t.Errorf("%s: a process is held; want none", path)
		}
		event, _ := in.begin(t.Context(), "a1", due, new(time.Duration))
		in.mu.Lock()
		p := in.process // or the one that was started in its place since
		in.mu.Unlock()
		<-p.done
		in.halt(syscall.SIGTERM)
		if got := output(t, a, "stderr"); !strings.Contains(got, "cannot start "+path) || !strings.Contains(got, why) || !strings.Contains(event.Message, why) || p.code != 127 {
			t.Errorf("%s: %q, event %+v, code %d; want %q and 127", path, got, event, p.code, why)
		}
	}
}

func TestAHeldProcessThatIsKilledCountsAsAnAppThatWasKilled(t *testing.T) {
	a, in := newHolder(t, "sleep", "60")
	due := time.Now().Add(300 * time.Millisecond).Round(0)
	in.hold(due)
	p := in.held.process
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.releaseStart(due)
	in.begin(t.Context(), "a1", due, new(time.Duration))
	<-p.done
	in.halt(syscall.SIGTERM)
	if p.code != 128+9 {
		t.Errorf("code %d; want 137", p.code)
	}
}

func TestAHeldProcessDiesWithItsAgent(t *testing.T) {
	s := newFakeServer(t)
	marker := filepath.Join(t.TempDir(), "marker")
	n := newNode(t, s, "touch "+marker)
	agent := n.runAsProcess()
	n.waitPhase(runapi.AgentReady)
	due := s.arm("a1", runapi.VerbStart, 2500*time.Millisecond)
	waitFor(t, "a held process", func() bool { return len(stoppedChildren(t, agent.Process.Pid, "touch "+marker)) == 1 })
	_ = agent.Process.Kill()
	_ = agent.Wait()
	time.Sleep(time.Until(due) + 200*time.Millisecond)
	if _, err := os.Stat(marker); err == nil {
		t.Error("the app ran without its agent")
	}
}

func TestWhereTracingIsForbiddenTheAppStartsAtItsTimeAndTheLogSaysSo(t *testing.T) {
	s := newFakeServer(t)
	n := newNode(t, s, `echo $VIGNETTE_START_NS`)
	t.Setenv("AGENT_TEST_NO_PTRACE", "1")
	agent := n.runAsProcess()
	n.waitPhase(runapi.AgentReady)
	due := s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	n.waitPhase(runapi.AgentStopped)
	s.finish()
	if err := agent.Wait(); err != nil {
		t.Error(err)
	}
	if got, want := s.log("stdout-1.log"), fmt.Sprintln(due.UnixNano()); got != want {
		t.Errorf("printed %q; want %q", got, want)
	}
	if events := s.event(t, eventNotHeld); len(events) != 1 || !strings.Contains(events[0].Message, "ptrace") {
		t.Errorf("events %+v; want one that names ptrace", s.events(t))
	}
	checkAction(t, s.event(t, eventStarted), "a1", due)
}

// forbidPtrace does what some runtimes' seccomp profiles do.
func forbidPtrace() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_PTRACE},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}

func TestTheInterpreterOfAScript(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"#!/bin/sh\necho":              "/bin/sh",
		"#! /usr/bin/env python3\nabc": "/usr/bin/env",
		"#!/bin/sh":                    "/bin/sh",
		"#!":                           "",
		"\x7fELF":                      "",
		"":                             "",
	} {
		if got := interpreter(head); got != want {
			t.Errorf("%q: %q; want %q", head, got, want)
		}
	}
}
