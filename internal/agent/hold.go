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
	// holdLead before a start its processes are prepared and held, so that neither fork nor exec delays the app.
	holdLead = 2 * time.Second
	// holdMinimum is the shortest lead for which it is worth trying on a busy processor.
	holdMinimum = prepareLead + 50*time.Millisecond
)

// heldProcess has executed its program and is stopped before the first instruction. It asked to be traced, so that the kernel
// stops it at the end of its exec (ptrace(2), PTRACE_TRACEME); then the tracing is replaced by SIGSTOP. SIGCONT releases it.
// It dies with the agent.
type heldProcess struct {
	process *process
	planned time.Time
	// started is when it was released; zero before.
	started time.Time
}

// hold prepares the process of a start. If that is not possible, begin starts it at its time.
// Only the executor may call it, as the process dies with the thread that made it.
func (in *instance) hold(planned time.Time) {
	if in.held != nil && !in.held.planned.Equal(planned) {
		in.endHeld()
	}
	if in.held != nil || in.notHeld.Equal(planned) || in.isActive() {
		return
	}
	command := in.command(planned)
	preread(command.Path)
	command.SysProcAttr.Ptrace, command.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	p, err := in.startHeld(command)
	if err != nil {
		in.notHeld = planned // another attempt would fail too
		in.agent.events.add(runapi.AgentEvent{Event: eventNotHeld, Instance: in.spec.Name,
			Message: fmt.Sprintf("will be started at its time and could not be held ready before, which needs the program and ptrace: %v", err)})
		return
	}
	in.held = &heldProcess{process: p, planned: planned}
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
			return fmt.Errorf("it ended while it was prepared, with status %#x", int(status))
		default:
			return nil
		}
	}
}

// detachStopped ends the tracing of a process with a SIGSTOP, which stops it before it runs.
func detachStopped(pid int) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(unix.SIGSTOP), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("ptrace", errno)
	}
	return nil
}

// takeReleased returns the process that was released for this start, if any; it ends another one.
func (in *instance) takeReleased() *heldProcess {
	h := in.held
	if h == nil || h.started.IsZero() {
		in.endHeld()
		return nil
	}
	in.held = nil
	go h.process.wait(&in.agent.children)
	return h
}

// endHeld ends a held process that was not released.
func (in *instance) endHeld() {
	h := in.held
	in.held = nil
	if h == nil {
		return
	}
	in.killGroup(h.process)
	h.process.wait(&in.agent.children)
}

// hold prepares the processes of a start that is near, if there is time for it. Those that still drain end first.
func (a *Agent) hold(action runapi.Action, planned time.Time) {
	left := planned.Sub(wallClock())
	if action.Verb != runapi.VerbStart || left > holdLead {
		return
	}
	a.haltDraining()
	if a.neverHold || left < holdMinimum {
		return
	}
	for _, in := range a.instances {
		in.hold(planned)
	}
}

func (a *Agent) heldFor(planned time.Time) (all []*heldProcess) {
	for _, in := range a.instances {
		if in.held != nil && in.held.planned.Equal(planned) {
			all = append(all, in.held)
		}
	}
	return all
}

// releaseStart releases all processes that are held for a start at this time. If one was killed meanwhile, supervise notices.
func (a *Agent) releaseStart(planned time.Time) {
	for _, h := range a.heldFor(planned) {
		h.started = time.Now()
		_ = syscall.Kill(h.process.pid, syscall.SIGCONT)
	}
}

// endHeld ends processes held for starts that will not be executed.
func (a *Agent) endHeld() {
	for _, in := range a.instances {
		in.endHeld()
	}
}

// preread makes the kernel read a program, or a script and its interpreter, into its page cache. Errors show at the exec.
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

// interpreter is the path in a script's first line; empty for other files.
func interpreter(head string) string {
	line, isScript := strings.CutPrefix(head, "#!")
	if !isScript {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	line = strings.TrimLeft(line, " \t")
	if end := strings.IndexAny(line, " \t"); end >= 0 {
		line = line[:end]
	}
	return line
}
