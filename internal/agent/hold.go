package agent

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/runapi"
)

const (
	// holdLead before a start its processes are made and held, so that neither fork nor exec lies between
	// the planned time and the app.
	holdLead = 2 * time.Second
	// holdMinimum is the least lead that is worth the attempt on a busy processor.
	holdMinimum = prepareLead + 50*time.Millisecond
)

// held is an instance's process that has executed its program and was stopped before the first instruction:
// it asked to be traced, and the kernel stops such a process at the end of its exec (ptrace(2), PTRACE_TRACEME),
// from where it goes over to being stopped by SIGSTOP. SIGCONT lets it go. It dies with the agent.
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
	left := due.Sub(wallClock())
	if a.neverHold || action.Verb != runapi.VerbStart || left > holdLead || left < holdMinimum {
		return
	}
	for _, in := range a.instances {
		in.hold(due)
	}
}

func (a *Agent) heldFor(due time.Time) (all []*held) {
	for _, in := range a.instances {
		if in.held != nil && in.held.planned.Equal(due) {
			all = append(all, in.held)
		}
	}
	return all
}

// letGo lets all processes run that are held for a start at this time. One that was killed meanwhile is found to have ended, like any other.
func (a *Agent) letGo(due time.Time) {
	for _, h := range a.heldFor(due) {
		h.started = wallClock()
		_ = syscall.Kill(h.process.pid, syscall.SIGCONT)
	}
}

// releaseHeld ends what is held for starts that will not be carried out.
func (a *Agent) releaseHeld() {
	for _, in := range a.instances {
		in.release()
	}
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
