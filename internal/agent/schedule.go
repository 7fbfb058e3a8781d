package agent

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

// prepareLead before an action's time its id is written, so that the action itself does not wait for that.
const prepareLead = 200 * time.Millisecond

// executorStep is how often the executor reads the clock, which may be stepped, and tries to hold processes again, such as
// of an instance whose earlier process was still ending.
const executorStep = 250 * time.Millisecond

// schedule has the actions of the run, and those that wait for their time.
type schedule struct {
	mu                sync.Mutex
	t0                time.Time
	version           int64
	all, pending      []runapi.Action
	seen, executedIDs map[string]bool
	// changed wakes the executor: a new action may be earlier than the one it waits for.
	changed bell.Bell
}

func newSchedule() *schedule {
	return &schedule{seen: map[string]bool{}, executedIDs: map[string]bool{}, changed: bell.New()}
}

// zero is T0; the zero time until it is known.
func (s *schedule) zero() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t0
}

// stopAfter is the time of the first planned stop after a time; zero for none.
func (s *schedule) stopAfter(planned time.Time) (stop time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		at := s.timeOf(a)
		if a.Verb == runapi.VerbStop && at.After(planned) && (stop.IsZero() || at.Before(stop)) {
			stop = at
		}
	}
	return stop
}

// next returns the earliest action and its time.
func (s *schedule) next() (a runapi.Action, planned time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return a, planned, false
	}
	a = s.pending[0]
	return a, s.timeOf(a), true
}

func (s *schedule) timeOf(a runapi.Action) time.Time {
	return s.t0.Add(time.Duration(a.AtNanoseconds))
}

// notExecuted names the actions whose time did not come before the end.
func (s *schedule) notExecuted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return ""
	}
	return "not executed, as the run ended before: " + listIDs(s.pending)
}

// listIDs joins the ids of actions, with a limit.
func listIDs(actions []runapi.Action) string {
	const limit = 10
	var ids []string
	for _, a := range actions[:min(len(actions), limit)] {
		ids = append(ids, a.ID)
	}
	if len(actions) > limit {
		ids = append(ids, fmt.Sprintf("and %d more", len(actions)-limit))
	}
	return strings.Join(ids, ", ")
}

func (s *schedule) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.pending {
		if a.ID == id {
			s.pending = append(s.pending[:i:i], s.pending[i+1:]...)
			return
		}
	}
}

// restore puts back an action that was removed and not executed.
func (s *schedule) restore(action runapi.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = insert(s.pending, action)
}

// accept replaces the actions by those of a plan, and reports that it has them.
func (a *Agent) accept(plan runapi.AgentPlan) {
	s := a.schedule
	s.mu.Lock()
	defer s.mu.Unlock()
	if plan.T0 == nil {
		return
	}
	if s.t0.IsZero() {
		s.t0 = plan.T0.Round(0) // nodes share the wall-clock time
	} else if !s.t0.Equal(*plan.T0) {
		a.fail(fmt.Sprintf("T0 was moved from %s to %s: a run's T0 must not change", s.t0.UTC().Format(time.RFC3339Nano), plan.T0.UTC().Format(time.RFC3339Nano)), 0)
		return
	}
	if plan.ArmedVersion < s.version {
		return
	}
	a.replaceActions(plan)
	a.state.armed(s.version, s.countExecuted())
	s.changed.Ring()
}

// replaceActions removes waiting actions that the plan no longer has, and accepts new ones; the schedule is locked.
func (a *Agent) replaceActions(plan runapi.AgentPlan) {
	s := a.schedule
	known := map[string]bool{}
	for _, action := range plan.Actions {
		known[action.ID] = true
	}
	var withdrawn []runapi.Action
	s.pending = slices.DeleteFunc(s.pending, func(action runapi.Action) bool {
		if !known[action.ID] {
			withdrawn = append(withdrawn, action)
		}
		return !known[action.ID]
	})
	before := len(s.pending)
	for _, action := range plan.Actions {
		a.acceptAction(action)
	}
	if more := len(s.pending) - before; more > 0 || len(withdrawn) > 0 {
		message := fmt.Sprintf("version %d: %d new actions", plan.ArmedVersion, more)
		if len(withdrawn) > 0 {
			message += ", withdrawn: " + listIDs(withdrawn)
		}
		a.events.add(runapi.AgentEvent{Event: eventArmed, Message: message})
	}
	s.version, s.all = plan.ArmedVersion, plan.Actions
}

// countExecuted counts executed actions; the schedule is locked.
func (s *schedule) countExecuted() (count int) {
	for _, action := range s.all {
		if s.executedIDs[action.ID] {
			count++
		}
	}
	return count
}

// noteExecuted records an action and reports it.
func (a *Agent) noteExecuted(id string) {
	s := a.schedule
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executedIDs[id] = true
	a.state.armed(s.version, s.countExecuted())
}

// acceptAction classifies one action; the schedule is locked.
func (a *Agent) acceptAction(action runapi.Action) {
	s := a.schedule
	at, now := s.timeOf(action), wallClock()
	status, err := classifyAction(action, at, now, func(id string) bool { return s.seen[id] || a.ledger.has(id) })
	s.seen[action.ID] = true
	switch status {
	case accepted:
		s.pending = insert(s.pending, action)
	case tooLate:
		a.events.add(runapi.AgentEvent{Event: eventArmedTooLate, ActionID: action.ID,
			Message: fmt.Sprintf("%s arrived %v after its time and is not executed", action.Verb, now.Sub(at).Round(time.Millisecond))})
		a.state.armedTooLate(action.ID)
	case invalid:
		a.fail(err.Error(), 0)
	}
}

// startExecutor executes actions on a thread until ctx ends, and returns a channel that is closed then. The thread stays locked
// until the instances have ended, as they die with it.
func (a *Agent) startExecutor(ctx context.Context, instancesEnded <-chan struct{}) (done <-chan struct{}) {
	executed := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if a.locator.wait(ctx) { // an app that started before would report made-up positions
			a.execute(ctx)
		}
		close(executed)
		<-instancesEnded
	}()
	return executed
}

// execute executes actions at their times until ctx ends.
func (a *Agent) execute(ctx context.Context) {
	defer a.endHeld()
	for ctx.Err() == nil {
		action, planned, ok := a.schedule.next()
		if action.Verb != runapi.VerbStart {
			a.endHeld() // its start was withdrawn
		}
		if !ok {
			select {
			case <-ctx.Done():
			case <-a.schedule.changed:
			}
			continue
		}
		a.hold(action, planned)
		if wait := planned.Add(-prepareLead).Sub(wallClock()); wait > 0 {
			select {
			case <-ctx.Done():
			case <-a.schedule.changed:
			case <-time.After(min(wait, executorStep)): // in steps, as the clock may jump
			}
			continue
		}
		a.executeAction(ctx, action, planned)
	}
}

func (a *Agent) executeAction(ctx context.Context, action runapi.Action, planned time.Time) {
	a.schedule.remove(action.ID)
	if err := a.ledger.add(action.ID); err != nil {
		a.fail(fmt.Sprintf("action %s is not executed, as it could be repeated: %v", action.ID, err), 0)
		return
	}
	executed := clock.SleepUntil(ctx, planned) == nil
	switch {
	case !executed: // execute ends held processes
	case action.Verb == runapi.VerbStart:
		a.releaseStart(planned)
		executed = a.startInstances(ctx, action.ID, planned)
	default:
		a.stopInstances(action.ID, planned)
	}
	if !executed {
		a.schedule.restore(action) // notExecuted names it
		return
	}
	a.updatePhase()
	a.noteExecuted(action.ID)
}

// startInstances logs nothing until all have begun, so that nothing delays them. It returns false if ctx ended before.
func (a *Agent) startInstances(ctx context.Context, actionID string, planned time.Time) bool {
	a.haltDraining()
	var begun []runapi.AgentEvent
	var waited time.Duration
	for _, in := range a.instances {
		event, ok := in.begin(ctx, actionID, planned, &waited)
		if !ok {
			break
		}
		begun = append(begun, event)
	}
	for _, event := range begun {
		a.events.add(event)
	}
	return len(begun) == len(a.instances)
}

// haltDraining asks all instances that a stop left running to end. A start waits for them one by one.
func (a *Agent) haltDraining() {
	for _, in := range a.instances {
		if in.isDraining() {
			in.halt(syscall.SIGTERM)
		}
	}
}

// stopInstances first signals all processes, which then compete for the processors.
func (a *Agent) stopInstances(actionID string, planned time.Time) {
	var stopped []runapi.AgentEvent
	var asked []*instance
	var pids []int
	signal := syscall.SIGTERM
	if a.config.DrainOnStop {
		signal = syscall.SIGUSR1 // asks to stop sending and to keep receiving
	}
	for _, in := range a.instances {
		if !in.isActive() {
			continue
		}
		if a.config.DrainOnStop {
			pids = append(pids, in.drain())
		} else if in.markUnwanted() {
			asked, pids = append(asked, in), append(pids, in.runningPID())
		}
		stopped = append(stopped, runapi.AgentEvent{Event: eventStopped, Instance: in.spec.Name, ActionID: actionID, PlannedNanoseconds: planned.UnixNano()})
	}
	now := wallClock()
	for _, pid := range pids {
		if pid != 0 {
			_ = syscall.Kill(pid, signal) // it may just have ended
		}
	}
	for k := range stopped {
		stopped[k].TimeNanoseconds, stopped[k].LatenessSeconds = now.UnixNano(), now.Sub(planned).Seconds()
	}
	for _, in := range asked {
		in.killAfterGrace(syscall.SIGTERM)
	}
	for _, event := range stopped {
		a.state.noteLateness(time.Duration(event.TimeNanoseconds - event.PlannedNanoseconds))
		a.events.add(event)
	}
}
