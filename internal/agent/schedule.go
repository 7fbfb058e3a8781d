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

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

// prepareLead before an action's time its id is written down, so that nobody waits for that at the time itself.
const prepareLead = 200 * time.Millisecond

// executorStep is how often the executor looks at the clock, which may be stepped, and holds what it could not
// hold before, such as an instance whose earlier process was still ending.
const executorStep = 250 * time.Millisecond

// schedule holds the actions of the run, and those of them that wait for their time.
type schedule struct {
	mu            sync.Mutex
	t0            time.Time
	version       int64
	all, pending  []runapi.Action
	seen, carried map[string]bool
	// news wakes the executor: an action has come that may be earlier than the one it waits for.
	news chan struct{}
}

func newSchedule() *schedule {
	return &schedule{seen: map[string]bool{}, carried: map[string]bool{}, news: make(chan struct{}, 1)}
}

// next is the earliest action and when it is due.
func (s *schedule) next() (a runapi.Action, due time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return a, due, false
	}
	a = s.pending[0]
	return a, s.due(a), true
}

func (s *schedule) due(a runapi.Action) time.Time {
	return s.t0.Add(time.Duration(a.AtNanoseconds))
}

// left names the actions whose time did not come before the end.
func (s *schedule) left() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return ""
	}
	return "not carried out, as the run ended before their time: " + listed(s.pending)
}

// listed are the ids of actions, the first few of many.
func listed(actions []runapi.Action) string {
	const most = 10
	var ids []string
	for _, a := range actions[:min(len(actions), most)] {
		ids = append(ids, a.ID)
	}
	if len(actions) > most {
		ids = append(ids, fmt.Sprintf("and %d more", len(actions)-most))
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

// restore puts back an action that was removed to be carried out and was not.
func (s *schedule) restore(action runapi.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = insert(s.pending, action)
}

// accept takes the actions of a plan in place of those that it had, and reports that it holds them.
func (a *Agent) accept(plan runapi.AgentPlan) {
	s := a.schedule
	s.mu.Lock()
	defer s.mu.Unlock()
	if plan.T0 == nil {
		return
	}
	if s.t0.IsZero() {
		s.t0 = plan.T0.Round(0) // wall-clock time, which all nodes share
	} else if !s.t0.Equal(*plan.T0) {
		a.fail(fmt.Sprintf("T0 was moved from %s to %s: a run's T0 must not change", s.t0.UTC().Format(time.RFC3339Nano), plan.T0.UTC().Format(time.RFC3339Nano)), 0)
		return
	}
	if plan.ArmedVersion < s.version {
		return
	}
	a.takeActions(plan)
	a.state.armed(s.version, s.executed())
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// takeActions withdraws what waits and is no longer in the plan, and accepts what is new in it; the schedule is locked.
func (a *Agent) takeActions(plan runapi.AgentPlan) {
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
			message += ", withdrawn: " + listed(withdrawn)
		}
		a.events.add(runapi.AgentEvent{Event: eventArmed, Message: message})
	}
	s.version, s.all = plan.ArmedVersion, plan.Actions
}

// executed counts the actions that have been carried out; the schedule is locked.
func (s *schedule) executed() (count int) {
	for _, action := range s.all {
		if s.carried[action.ID] {
			count++
		}
	}
	return count
}

// carriedOut notes an action and tells the server.
func (a *Agent) carriedOut(id string) {
	s := a.schedule
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carried[id] = true
	a.state.armed(s.version, s.executed())
}

// acceptAction judges one action; the schedule is locked.
func (a *Agent) acceptAction(action runapi.Action) {
	s := a.schedule
	due, now := s.due(action), wallClock()
	judged, err := judge(action, due, now, func(id string) bool { return s.seen[id] || a.ledger.has(id) })
	s.seen[action.ID] = true
	switch judged {
	case accepted:
		s.pending = insert(s.pending, action)
	case tooLate:
		a.events.add(runapi.AgentEvent{Event: eventArmedTooLate, ActionID: action.ID,
			Message: fmt.Sprintf("%s arrived %v after its time and is not carried out", action.Verb, now.Sub(due).Round(time.Millisecond))})
		a.state.armedTooLate(action.ID)
	case refused:
		a.fail(err.Error(), 0)
	}
}

// executor carries out actions on a thread of its own until ctx ends, and gives a channel that is closed then. The thread stays locked until
// the instances have ended, as they die with it.
func (a *Agent) executor(ctx context.Context, instancesEnded <-chan struct{}) (done <-chan struct{}) {
	executed := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		a.execute(ctx)
		close(executed)
		<-instancesEnded
	}()
	return executed
}

// execute carries out actions at their times until ctx ends.
func (a *Agent) execute(ctx context.Context) {
	defer a.releaseHeld()
	for ctx.Err() == nil {
		action, due, ok := a.schedule.next()
		if action.Verb != runapi.VerbStart {
			a.releaseHeld() // its start was withdrawn
		}
		if !ok {
			select {
			case <-ctx.Done():
			case <-a.schedule.news:
			}
			continue
		}
		a.hold(action, due)
		if wait := due.Add(-prepareLead).Sub(wallClock()); wait > 0 {
			select {
			case <-ctx.Done():
			case <-a.schedule.news:
			case <-time.After(min(wait, executorStep)): // in steps, as the clock may be stepped
			}
			continue
		}
		a.carryOut(ctx, action, due)
	}
}

func (a *Agent) carryOut(ctx context.Context, action runapi.Action, due time.Time) {
	a.schedule.remove(action.ID)
	if err := a.ledger.add(action.ID); err != nil {
		a.fail(fmt.Sprintf("action %s is not carried out, as it could be repeated: %v", action.ID, err), 0)
		return
	}
	if clock.SleepUntil(ctx, due) != nil {
		a.schedule.restore(action) // to be named among what was not carried out
		return                     // execute releases what is held
	}
	if action.Verb == runapi.VerbStart {
		a.letGo(due)
		a.startInstances(action.ID, due)
	} else {
		a.stopInstances(action.ID, due)
	}
	a.updatePhase()
	a.carriedOut(action.ID)
}

// startInstances logs nothing until all have begun, as nothing should come between them.
func (a *Agent) startInstances(actionID string, due time.Time) {
	var begun []runapi.AgentEvent
	for _, in := range a.instances {
		begun = append(begun, in.begin(actionID, due))
	}
	for _, event := range begun {
		a.events.add(event)
	}
}

// stopInstances signals all before it does anything else, as the signalled processes want the processors too.
func (a *Agent) stopInstances(actionID string, due time.Time) {
	var stopped []runapi.AgentEvent
	var asked []*instance
	var pids []int
	signal := syscall.SIGTERM
	if a.config.DrainOnStop {
		signal = syscall.SIGUSR1 // what drains sends no more but goes on receiving
	}
	for _, in := range a.instances {
		if !in.isActive() {
			continue
		}
		if a.config.DrainOnStop {
			in.drain()
			pids = append(pids, in.running())
		} else if in.unwant() {
			asked, pids = append(asked, in), append(pids, in.running())
		}
		stopped = append(stopped, runapi.AgentEvent{Event: eventStopped, Instance: in.spec.Name, ActionID: actionID, PlannedNanoseconds: due.UnixNano()})
	}
	now := wallClock()
	for _, pid := range pids {
		if pid != 0 {
			_ = syscall.Kill(pid, signal) // it may have ended this moment
		}
	}
	for k := range stopped {
		stopped[k].TimeNanoseconds, stopped[k].LatenessSeconds = now.UnixNano(), now.Sub(due).Seconds()
	}
	for _, in := range asked {
		in.killAfterGrace(syscall.SIGTERM)
	}
	for _, event := range stopped {
		a.state.late(time.Duration(event.TimeNanoseconds - event.PlannedNanoseconds))
		a.events.add(event)
	}
}
