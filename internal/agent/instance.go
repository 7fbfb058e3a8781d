package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
)

// Environment of instances beside messagelog.EnvPath and appinstance.EnvStart.
const (
	envInstance = "VIGNETTE_INSTANCE"
	envNode     = "VIGNETTE_NODE"
	envApp      = "VIGNETTE_APP"
)

// pipeDelay is how long output is read after an instance has ended: its children may still have the pipes.
const pipeDelay = 2 * time.Second

// exitCannotStart is the shell's code for a command that cannot be started.
const exitCannotStart = 127

// killedCode is the code of a process that SIGKILL ended.
const killedCode = 128 + int(syscall.SIGKILL)

// instance supervises one process of the app: starts it, restarts it when it fails, stops it.
type instance struct {
	agent  *Agent
	number int // from 1, in file names
	spec   agentconfig.Instance
	stdout *tee
	stderr *tee
	// splitter precedes stdout if message events come on it, and writes them to messages; else both are nil.
	splitter *splitter
	messages *messagelog.Backlog

	// held waits for the next start; notHeld is a start whose process could not be held. Only the executor uses them.
	held    *heldProcess
	notHeld time.Time

	mu      sync.Mutex
	process *process
	// active from a start until the process has ended finally; wanted from a start until a stop.
	active, wanted bool
	// draining after a stop that left the instance running, to receive messages under way.
	draining bool
	planned  time.Time
	// ended is closed when the instance is no longer active.
	ended chan struct{}
	// stop is closed to end the wait for a restart.
	stop chan struct{}
}

// process is one process of an instance, which may be restarted.
type process struct {
	pid     int
	command *exec.Cmd
	started time.Time     // with Go's monotonic reading: steps of the clock do not change how long it ran
	done    chan struct{} // closed once code is valid
	code    int
	// killed is set when its grace had passed; the instance's lock guards it.
	killed bool
}

// begin starts the instance's first process, or takes the held one, and returns once it exists. The caller logs the event when
// all instances have begun. If an earlier process is still ending, begin waits for that. If ctx ends first, it starts none and
// returns false. A running instance is left alone.
// The time that the app's instances take to end is no lateness: begin adds its wait to waited.
func (in *instance) begin(ctx context.Context, actionID string, planned time.Time, waited *time.Duration) (runapi.AgentEvent, bool) {
	ready := in.takeReleased()
	in.mu.Lock()
	previous, running := in.ended, in.active && in.wanted && !in.draining
	in.mu.Unlock()
	if running {
		return runapi.AgentEvent{Event: eventStarted, Instance: in.spec.Name, ActionID: actionID, Message: "was running already"}, true
	}
	if previous != nil {
		asked := time.Now()
		in.halt(syscall.SIGTERM)
		select {
		case <-previous:
		case <-ctx.Done():
			return runapi.AgentEvent{}, false
		}
		*waited += time.Since(asked)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.active, in.wanted, in.draining, in.planned = true, true, false, planned
	in.ended, in.stop = make(chan struct{}), make(chan struct{})
	now, err := in.adopt(ready)
	event := runapi.AgentEvent{TimeNanoseconds: now.UnixNano(), Event: eventStarted, Instance: in.spec.Name, ActionID: actionID,
		PlannedNanoseconds: planned.UnixNano()}
	late := now.Sub(planned)
	if ready == nil && *waited > 0 {
		late -= *waited
		event.Message = fmt.Sprintf("waited %.3f s for the app's earlier process to end, which is not counted as late", waited.Seconds())
	}
	if err != nil {
		event.Message = err.Error()
	}
	event.LatenessSeconds = late.Seconds()
	in.agent.state.noteLateness(late)
	go in.supervise(in.process)
	return event, true
}

// adopt makes a held process the instance's, or launches one if there is none; the caller has in.mu.
func (in *instance) adopt(h *heldProcess) (time.Time, error) {
	if h == nil {
		return in.launch()
	}
	h.process.started = h.started
	in.process = h.process
	return h.started, nil
}

// command is the instance's command, for a start at the planned time.
func (in *instance) command(planned time.Time) *exec.Cmd {
	command := exec.Command(in.spec.Command[0], in.spec.Command[1:]...)
	command.Env = in.environment(planned)
	command.Stdout, command.Stderr = in.stdout, in.stderr
	if in.splitter != nil {
		command.Stdout = in.splitter
	}
	command.WaitDelay = pipeDelay
	// A process group, so that a kill also ends the app's children.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command
}

// launch starts a process; the caller has in.mu. A command that cannot be started counts as a process that failed at once.
func (in *instance) launch() (time.Time, error) {
	command := in.command(in.planned)
	if in.draining {
		command.Env = append(command.Env, appinstance.EnvQuiet+"="+appinstance.QuietFromStart)
	}
	err := in.agent.children.start(command)
	p := newProcess(command)
	p.started = time.Now()
	in.process = p
	if err != nil {
		err = explainStart(command.Path, err)
		fmt.Fprintf(in.stderr, "cannot start %s: %v\n", in.spec.Command[0], err)
		p.code = exitCannotStart
		close(p.done)
		return p.started, err
	}
	go p.wait(&in.agent.children)
	return p.started, nil
}

// newProcess returns the process of a command, started or not.
func newProcess(command *exec.Cmd) *process {
	p := &process{command: command, done: make(chan struct{})}
	if command.Process != nil {
		p.pid = command.Process.Pid
	}
	return p
}

// wait records the process's end.
func (p *process) wait(c *children) {
	err := p.command.Wait()
	c.forget(p.pid)
	if s, ok := p.command.Stdout.(*splitter); ok {
		s.flush()
	}
	p.code = exitCode(p.command, err)
	close(p.done)
}

func (in *instance) environment(planned time.Time) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, agentconfig.Env+"=") { // the app has no use for it
			env = append(env, entry)
		}
	}
	if in.splitter == nil {
		env = append(env, messagelog.EnvPath+"="+in.messagesFile())
	}
	if t0 := in.agent.schedule.zero(); !t0.IsZero() {
		env = append(env, appinstance.EnvT0+"="+strconv.FormatInt(t0.UnixNano(), 10))
	}
	if stop := in.agent.schedule.stopAfter(planned); !stop.IsZero() {
		env = append(env, appinstance.EnvStop+"="+strconv.FormatInt(stop.UnixNano(), 10))
	}
	if path := in.agent.locator.movementFile(in.number); path != "" {
		env = append(env, appinstance.EnvMovement+"="+path)
	}
	return append(env,
		envInstance+"="+in.spec.Name,
		envNode+"="+in.agent.config.Node,
		envApp+"="+in.agent.config.App,
		appinstance.EnvStart+"="+strconv.FormatInt(planned.UnixNano(), 10))
}

func (in *instance) messagesFile() string {
	return filepath.Join(in.agent.logDir, fmt.Sprintf("messages-%d.jsonl", in.number))
}

// exitCode is the process's code, or 128 + n if signal n ended it.
func exitCode(command *exec.Cmd, err error) int {
	state := command.ProcessState
	if state == nil {
		return exitCannotStart
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok && !errors.Is(err, exec.ErrWaitDelay) && state.Success() {
		return 1 // its output could not be read to the end
	}
	return state.ExitCode()
}

// supervise waits for the end of a process and restarts it while the instance is wanted.
func (in *instance) supervise(p *process) {
	var policy restartPolicy
	for {
		<-p.done
		if !in.isWanted() {
			in.killGroup(p)
			break
		}
		code := p.code
		ran := time.Since(p.started)
		in.agent.events.add(runapi.AgentEvent{Event: eventExited, Instance: in.spec.Name, ExitCode: &code,
			Message: fmt.Sprintf("by itself, %.1f s after its start", ran.Seconds())})
		if code == 0 {
			break
		}
		in.killGroup(p)
		wait, giveUp := policy.failed(ran)
		if giveUp {
			if !in.spec.Aside {
				in.agent.fail(in.failure(code), code)
			}
			break
		}
		if p = in.restartAfter(wait); p == nil {
			break
		}
	}
	in.mu.Lock()
	in.active, in.wanted = false, false
	close(in.ended)
	in.ended = nil
	in.mu.Unlock()
	in.agent.updatePhase()
}

// failure is the message for people when an app is given up.
func (in *instance) failure(code int) string {
	text := fmt.Sprintf("app %s on node %s exited with code %d", in.agent.config.App, in.agent.config.Node, code)
	if code == killedCode && outOfMemory(in.agent.cgroupDir) {
		text += " (OOMKilled): the container's memory limit was used up, which resources.limits.memory of the app sets"
	}
	if lines := in.stderr.lastLines(3); lines != "" {
		text += ": " + lines
	} else if lines := in.stdout.lastLines(3); lines != "" {
		text += ": " + lines
	}
	return text
}

// restartAfter starts the next process after a wait, or returns nil if a stop came first.
func (in *instance) restartAfter(wait time.Duration) *process {
	in.mu.Lock()
	stop := in.stop
	in.mu.Unlock()
	select {
	case <-stop:
		return nil
	case <-time.After(wait):
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.wanted {
		return nil
	}
	_, err := in.launch()
	event := runapi.AgentEvent{Event: eventRestarted, Instance: in.spec.Name}
	if err != nil {
		event.Message = err.Error()
	}
	in.agent.events.add(event)
	in.agent.state.restarted()
	return in.process
}

func (in *instance) isWanted() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.wanted
}

func (in *instance) isActive() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.active
}

func (in *instance) isDraining() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.draining
}

// signal passes a signal to the instance's process.
func (in *instance) signal(s syscall.Signal) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if p := in.signalTarget(); p != nil {
		_ = p.command.Process.Signal(s) // it may just have ended
	}
}

// runningPID is that of the process that would receive a signal; 0 for none.
func (in *instance) runningPID() (pid int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if p := in.signalTarget(); p != nil {
		return p.pid
	}
	return 0
}

// signalTarget is the process for signals, nil for none; the caller has in.mu.
func (in *instance) signalTarget() *process {
	if p := in.process; p != nil && in.active && p.pid != 0 && !p.isDone() {
		return p
	}
	return nil
}

// drain notes that the instance was asked to stop sending and to keep receiving. It returns the process to ask, 0 for none: one that
// is launched later knows it from its environment.
func (in *instance) drain() (pid int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.draining = true
	if p := in.signalTarget(); p != nil {
		return p.pid
	}
	return 0
}

// halt asks the instance to end, and returns at once; it is killed after the grace.
func (in *instance) halt(s syscall.Signal) {
	if in.markUnwanted() {
		in.signal(s)
		in.killAfterGrace(s)
	}
}

// markUnwanted notes that the instance was asked to end; false if it is not running, or was asked before.
func (in *instance) markUnwanted() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.active || !in.wanted {
		return false
	}
	in.wanted = false
	close(in.stop)
	return true
}

// killAfterGrace kills a process that has not ended after the present grace.
func (in *instance) killAfterGrace(s syscall.Signal) {
	in.mu.Lock()
	p, ended := in.process, in.ended
	in.mu.Unlock()
	if ended == nil {
		return
	}
	grace := in.agent.grace()
	go func() {
		select {
		case <-ended:
		case <-time.After(grace):
			in.kill(p, fmt.Sprintf("still running %v after %v", grace, s))
		}
	}()
}

// kill logs the kill before it happens: after the end the log may be closed.
func (in *instance) kill(p *process, why string) {
	in.mu.Lock()
	again := p.killed || p.isDone()
	p.killed = true
	in.mu.Unlock()
	if again {
		return
	}
	in.agent.events.add(runapi.AgentEvent{Event: eventKilled, Instance: in.spec.Name, Message: why})
	in.killGroup(p)
}

// killGroup ends the rest of a process and of its group.
func (in *instance) killGroup(p *process) {
	if p.pid != 0 {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // usually nothing is left
	}
}

// endedChannel returns a channel that is closed when the instance is not active; nil if it is not active now.
func (in *instance) endedChannel() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended
}

func (p *process) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
