package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

const (
	// holdLead before a start its processes are made and held, so that neither fork nor exec lies between
	// the planned time and the app.
	holdLead = 2 * time.Second
	// holdMinimum is the least lead that is worth the attempt on a busy processor.
	holdMinimum = prepareLead + 50*time.Millisecond
	// sleepStep is how often the executor looks for a withdrawal in the last prepareLead. After each look Go's monitor is awake for some
	// milliseconds (undisturbed), and an agent of few shares that has just had the processor waits for it longer.
	sleepStep = 100 * time.Millisecond
	// undisturbed before an action's time Go's scheduler no longer knows of the executor's sleep: it could
	// give its place away and keep the thread waiting for another. Its monitor looks every 20 µs for some 5 ms then, which with the
	// agents of many nodes takes the processors; it would wake up a thread that is out of sight for 10 ms.
	undisturbed = 9 * time.Millisecond
)

// held is an instance's process that has executed its program and was stopped before the first instruction:
// it asked to be traced, and the kernel stops such a process at the end of its exec (ptrace(2), PTRACE_TRACEME),
// from where it goes over to being stopped by SIGSTOP. One system call lets all go that are held (volley). It dies with the
// agent. A process of ours that slept and then executed the app would be slower on a busy processor: an exec waits until the
// other threads of Go's runtime have had their turn to end.
type held struct {
	process *process
	planned time.Time
	// started is when it was let go; zero before.
	started time.Time
}

// hold makes the process of a start ahead of time. Where that is not possible, begin starts one at the time
// itself. Only the executor may call it, as the process dies with the thread that made it.
func (in *instance) hold(planned time.Time) {
	if in.held != nil && !in.held.planned.Equal(planned) {
		in.release()
	}
	if in.held != nil || in.notHeld.Equal(planned) || in.isActive() {
		return
	}
	command := in.command(planned)
	preread(command.Path)
	command.SysProcAttr.Ptrace, command.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	p, err := in.startHeld(command)
	if err != nil {
		in.notHeld = planned // the next attempt would fail as well
		in.agent.events.add(runapi.AgentEvent{Event: eventNotHeld, Instance: in.spec.Name,
			Message: fmt.Sprintf("will be started at its time, not held ready before, for which it needs its program and ptrace: %v", err)})
		return
	}
	in.held = &held{process: p, planned: planned}
}

// startHeld starts a command that asks to be traced, and waits until it is stopped and no longer traced.
func (in *instance) startHeld(command *exec.Cmd) (*process, error) {
	if err := in.agent.children.start(command); err != nil {
		return nil, err
	}
	p := newProcess(command)
	err := waitForStop(p.pid)
	if err == nil {
		err = detachStopped(p.pid)
	}
	if err == nil {
		err = waitForStop(p.pid)
	}
	if err != nil {
		in.killGroup(p)
		p.wait(&in.agent.children)
		return nil, err
	}
	return p, nil
}

func waitForStop(pid int) error {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, unix.WALL|unix.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case !status.Stopped():
			return fmt.Errorf("it ended while it was made, with status %#x", int(status))
		default:
			return nil
		}
	}
}

// detachStopped ends the tracing of a process with SIGSTOP, which it takes before it runs.
func detachStopped(pid int) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(unix.SIGSTOP), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("ptrace", errno)
	}
	return nil
}

// takeHeld gives the process that was let go for this start, if any; another one is ended.
func (in *instance) takeHeld() *held {
	h := in.held
	if h == nil || h.started.IsZero() {
		in.release()
		return nil
	}
	in.held = nil
	go h.process.wait(&in.agent.children)
	return h
}

// release ends a held process that was not let go.
func (in *instance) release() {
	h := in.held
	in.held = nil
	if h == nil {
		return
	}
	in.killGroup(h.process)
	h.process.wait(&in.agent.children)
}

// hold makes the processes of a start that is due soon, if there is the time for it.
func (a *Agent) hold(action runapi.Action, due time.Time) {
	left := due.Sub(a.clock.Now())
	if a.neverHold || action.Verb != runapi.VerbStart || left > holdLead || left < holdMinimum {
		return
	}
	for _, in := range a.instances {
		in.hold(due)
	}
}

// aim prepares the signal of an action: that lets go what is held for a start, or that asks what runs to end.
func (a *Agent) aim(action runapi.Action, due time.Time) *volley {
	var pids []int
	if action.Verb == runapi.VerbStart {
		for _, h := range a.heldFor(due) {
			pids = append(pids, h.process.pid)
		}
		return newVolley(syscall.SIGCONT, pids)
	}
	for _, in := range a.instances {
		if pid := in.running(); pid != 0 {
			pids = append(pids, pid)
		}
	}
	return newVolley(a.stopSignal(), pids)
}

// stopSignal is how a stop is told: what drains sends no more but goes on receiving.
func (a *Agent) stopSignal() syscall.Signal {
	if a.config.DrainOnStop {
		return syscall.SIGUSR1
	}
	return syscall.SIGTERM
}

func (a *Agent) heldFor(due time.Time) (all []*held) {
	for _, in := range a.instances {
		if in.held != nil && in.held.planned.Equal(due) {
			all = append(all, in.held)
		}
	}
	return all
}

// letGo lets all processes run that are held for a start at this time. They have started just before the one call that does: after it
// they may have taken the processor. One that was killed meanwhile is found to have ended, like any other.
func (a *Agent) letGo(due time.Time, v *volley) {
	now := a.clock.Now()
	v.fire(nil)
	for _, h := range a.heldFor(due) {
		h.started = now
		// For those that the volley did not reach: a kernel in a sandbox may take what it asks for without doing it. To a process that
		// runs it says nothing.
		_ = syscall.Kill(h.process.pid, syscall.SIGCONT)
	}
}

// releaseHeld ends what is held for starts that will not be carried out.
func (a *Agent) releaseHeld() {
	for _, in := range a.instances {
		in.release()
	}
}

// sleepAndSignal waits for an action's time on the executor's own thread, as nothing in this program must be needed to wake it, and then
// lets go what is held for a start at that time, or tells what runs to end.
func (a *Agent) sleepAndSignal(ctx context.Context, action runapi.Action, due time.Time, v *volley) error {
	clock.SetTimerSlack(1)
	defer clock.SetTimerSlack(0) // before a process is made that would inherit it
	return a.clock.At(ctx, due, func() {
		switch action.Verb {
		case runapi.VerbStart:
			a.letGo(due, v)
		case runapi.VerbStop:
			a.stopInstances(action.ID, due, v)
		}
	})
}

// sleepOnThread blocks the thread until the time, or until ctx has ended, within sleepStep of that.
func sleepOnThread(ctx context.Context, due time.Time) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := time.Duration(due.UnixNano() - clock.Realtime())
		switch {
		case left <= 0:
			return nil
		case left <= undisturbed:
			rawSleepUntil(due)
		default:
			nap(due.Add(-max(left-sleepStep, undisturbed))) // the loop looks again
		}
	}
}

// nap on the calling thread until a time of CLOCK_REALTIME, or a signal.
func nap(until time.Time) {
	deadline := unix.NsecToTimespec(until.UnixNano())
	_ = unix.ClockNanosleep(unix.CLOCK_REALTIME, unix.TIMER_ABSTIME, &deadline, nil)
}

// rawSleepUntil keeps the thread's place in Go's scheduler, which short sleeps may.
func rawSleepUntil(due time.Time) {
	deadline := unix.NsecToTimespec(due.UnixNano())
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_REALTIME, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&deadline)), 0, 0, 0)
}

// preread has the kernel read a program, or a script and its interpreter, into its page cache. Whatever
// is wrong with the file shows at the exec.
func preread(path string) {
	for range 2 {
		f, err := os.Open(path)
		if err != nil {
			return
		}
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_WILLNEED)
		head := make([]byte, 256)
		n, _ := f.Read(head)
		f.Close()
		if path = interpreter(string(head[:n])); path == "" {
			return
		}
	}
}

// interpreter is the path in a script's first line; empty for anything else.
func interpreter(head string) string {
	line, isScript := strings.CutPrefix(head, "#!")
	if !isScript {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	path, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	return path
}
