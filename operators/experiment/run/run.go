// Package run takes an experiment from "every agent is ready" to the end of the drain. It sets T0, has agents armed, resumes
// the workflow's steps by time and by the agents' reports, and records what fails meanwhile.
package run

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/run/argo"
	"vignette.dev/vignette/operators/experiment/run/live"
	"vignette.dev/vignette/operators/experiment/runrecord"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/experiment/updates"
)

// Runner takes a run from its first step to the end of the drain.
type Runner struct {
	Workflows *argo.Workflows
	Objects   *objects.Objects
	Record    *runrecord.Record
	Live      *live.Live
	// Updates report experiments whose state on the server changed. If it is nil, each experiment polls.
	Updates *updates.Feed
	Console nodes.Console
	Clock   clock.PassiveClock
	// StartLead is the minimum time from "every agent is ready" to T0. It is longer where the nodes started slowly.
	StartLead time.Duration

	radioTroubles, silence troubleTracker
}

// Forget forgets what is remembered of a run that is over.
func (r *Runner) Forget(experiment types.UID) {
	r.radioTroubles.forget(experiment)
	r.silence.forget(experiment)
}

// Drive performs the suspended steps of a running experiment's workflow.
func (r *Runner) Drive(ctx context.Context, s *scope.Scope) (bool, error) {
	if failure := s.Failure(); s.Phase() != v1alpha1.PhaseRunning || failure != nil && failure.Reason == scope.ReasonEvicted {
		return false, nil // an evicted run is not collected and analysed, because others wait for its quota
	}
	workflow, err := r.Workflows.Get(ctx, s)
	if err != nil || workflow == nil {
		return s.Failure() == nil || s.JustFailed, err
	}
	flow := argo.Read(workflow)
	if flow.Finished() {
		s.Fail(scope.ReasonWorkflowFailed, "the workflow ended before the run was over: %s", flow.Failure())
		s.Experiment.Status.Phase = v1alpha1.PhaseCollecting
		return true, nil
	}
	step := flow.Current()
	s.SetStep(step.Name)
	// An operator killed between the resume and the status write finds the last suspended step finished.
	drained := step.Name == v1alpha1.StepDrain && step.Phase == argo.Succeeded
	if !drained && (step.Name == "" || step.Phase != argo.Running) {
		s.RequeueAfter(runningPoll)
		return r.Workflows.AwaitNext(ctx, s, workflow, step)
	}
	if drained || !step.Suspend {
		s.RequeueAfter(runningPoll)
		err = r.enterCollecting(ctx, s, step)
		return !s.Unrecoverable, err
	}
	err = r.driveStep(ctx, s, workflow, step)
	return !s.Unrecoverable, err
}

// enterCollecting handles a workflow that has reached a pod step. The operator resumes it only once the run is closed.
// If somebody else did, the measurement is incomplete and the run fails.
func (r *Runner) enterCollecting(ctx context.Context, s *scope.Scope, step argo.Step) error {
	state, err := r.Record.Load(ctx, s)
	if runs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if state.Plan.MeasureEndNanoseconds == nil {
		s.Fail(scope.ReasonWorkflowFailed, "the workflow came to step %s before the run was over: somebody else resumed it", step.Name)
	}
	s.Experiment.Status.Phase = v1alpha1.PhaseCollecting
	return nil
}

// driveStep does the work of a suspended step and then resumes the workflow.
func (r *Runner) driveStep(ctx context.Context, s *scope.Scope, workflow *unstructured.Unstructured, step argo.Step) error {
	s.RequeueAfter(r.statePollInterval(s))
	if err := r.Objects.LoadNodes(ctx, s); err != nil {
		return err
	}
	state, err := r.Record.Load(ctx, s)
	if runs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Now = r.Clock.Now() // the answer may have taken seconds, and new actions must reach agents in time
	lost, err := r.recordLosses(ctx, s, state)
	if err != nil {
		return err
	}
	updateNodeCount(s, lost)
	if err := r.recordEMANELosses(ctx, s, state); err != nil {
		return err
	}
	r.checkRunFailures(s, state, lost)
	if s.JustFailed {
		return nil
	}
	if s.Failure() == nil {
		if err := r.checkRadioNetworks(ctx, s, state); err != nil || s.JustFailed {
			return err
		}
	}
	if s.Failure() == nil && r.needsT0(s, state, workflow) {
		r.setT0(s, workflow)
		return nil // the status must hold T0 before the server or an agent learns it
	}
	plan, err := r.nextPlan(ctx, s, state)
	if err != nil || s.JustFailed {
		return err
	}
	v := r.stepView(s, state, plan, lost)
	result := stepResult{done: true}
	if s.Failure() == nil {
		result = v.result(step.Name)
	}
	if result.lateAgents != "" {
		s.Fail(scope.ReasonArmedTooLate, "agents did not receive their actions in time: %s", result.lateAgents)
		return nil
	}
	if err := r.recordUnreported(ctx, s, plan, result.unreported); err != nil {
		return err
	}
	return r.publishAndResume(ctx, s, workflow, step, state, plan, result)
}

// minProgressUpdates is how often a run's progress is updated at least, if runningPoll allows it.
const minProgressUpdates = 20

// statePollInterval is the time between two polls of the server while nothing is due.
func (r *Runner) statePollInterval(s *scope.Scope) time.Duration {
	poll := r.Updates.PollAfter(s.Experiment, runningPoll)
	if s.Timeline.Live() {
		return poll
	}
	return min(poll, max(runningPoll, s.Timeline.End(nil)/minProgressUpdates))
}

// publishAndResume publishes the plan and the progress, and then resumes the workflow if the step is done.
func (r *Runner) publishAndResume(ctx context.Context, s *scope.Scope, workflow *unstructured.Unstructured, step argo.Step, state runapi.State, plan runapi.Plan, result stepResult) error {
	leaving := result.done && (step.Name == v1alpha1.StepDrain || s.Failure() != nil)
	if leaving {
		closePlan(s, &plan, result.drained)
		if stop, err := r.Workflows.EnsureAccount(ctx, s); stop || err != nil { // the workflow's next pods need it
			return err
		}
	}
	if err := r.publish(ctx, s, state, plan); err != nil {
		return err
	}
	r.describeProgress(s, step, plan)
	if !result.done {
		s.RequeueAfter(max(result.wait, scope.ArmingPoll))
		return nil
	}
	if err := r.Workflows.Resume(ctx, workflow, step, s.Now); err != nil {
		return err
	}
	if leaving {
		s.Experiment.Status.Phase = v1alpha1.PhaseCollecting
	}
	s.RequeueAfter(scope.ArmingPoll)
	return nil
}

// publish updates the radios before the server, so that the run record has no change that no radio got. At the
// end it updates the server first, so that no ended capture starts again.
func (r *Runner) publish(ctx context.Context, s *scope.Scope, state runapi.State, plan runapi.Plan) error {
	over := plan.MeasureEndNanoseconds != nil || s.Failure() != nil
	changes, err := r.Live.Plan(ctx, s, &plan, over)
	if err != nil {
		return err
	}
	if !over {
		if err := r.Live.Apply(ctx, changes); err != nil {
			return err
		}
	}
	if !runrecord.Same(state.Plan, plan) {
		if _, err := r.Record.PutPlan(ctx, plan); err != nil {
			return err
		}
	}
	if over {
		if err := r.Live.Apply(ctx, changes); err != nil {
			return err
		}
	}
	return changes.WriteStatuses(ctx)
}

// closePlan ends the measuring window and lets the agents finish. The window ends with the drain, or now if the run failed.
func closePlan(s *scope.Scope, plan *runapi.Plan, drained time.Duration) {
	if plan.MeasureEndNanoseconds == nil && s.Experiment.Status.T0 != nil {
		end := drained
		if s.Failure() != nil {
			end = max(s.Elapsed(), 0)
		}
		plan.MeasureEndNanoseconds = ptr.To(int64(end))
	}
	plan.Phase = v1alpha1.PhaseCollecting
	if failure := s.Failure(); failure != nil {
		plan.Message = failure.Message
	}
}

// nextPlan adds T0 and all actions to the server's plan. An early stop replaces the actions.
func (r *Runner) nextPlan(ctx context.Context, s *scope.Scope, state runapi.State) (runapi.Plan, error) {
	plan := state.Plan
	environment, err := r.Record.Environment(ctx, s, plan.Environment)
	if err != nil {
		return plan, err
	}
	plan.Environment = environment
	if s.Experiment.Status.T0 == nil {
		return plan, nil
	}
	if plan.MeasureEndNanoseconds != nil { // the run was closed, but the workflow was not resumed
		return plan, nil
	}
	plan.T0 = ptr.To(s.Experiment.Status.T0.UTC())
	plan.Phase = v1alpha1.PhaseRunning
	plan.MeasureStartNanoseconds = ptr.To(int64(s.Timeline.MeasureStart()))
	if s.Failure() != nil {
		return plan, nil
	}
	switch {
	case s.Experiment.Spec.Stop && plan.ArmedVersion < timeline.StoppedVersion:
		plan.Armed, plan.ArmedVersion = s.Timeline.StopEarly(s.Elapsed()), timeline.StoppedVersion
	case plan.ArmedVersion < timeline.TimelineVersion:
		plan.Armed, plan.ArmedVersion = s.Timeline.Actions, timeline.TimelineVersion
	}
	return plan, nil
}

// stepView collects the input of a decision about a step.
func (r *Runner) stepView(s *scope.Scope, state runapi.State, plan runapi.Plan, lost map[runapi.Target]bool) stepView {
	v := stepView{
		timeline: s.Timeline, armed: plan.Armed, lost: lost,
		agents: map[runapi.Target]runapi.AgentState{}, drain: s.Experiment.Spec.Drain,
	}
	for _, agent := range state.Agents {
		v.agents[runapi.Target{Node: agent.Node, App: agent.App}] = agent
	}
	if t0 := s.Experiment.Status.T0; t0 != nil {
		v.t0, v.elapsed = t0.Time, s.Elapsed()
		if last := state.Counters.LastReceivedNanoseconds; last > 0 {
			v.lastReceived = time.Unix(0, last).Sub(t0.Time)
		}
	}
	return v
}

// checkRunFailures fails the run for a failed agent, late actions, the loss of all nodes or a stop.
func (r *Runner) checkRunFailures(s *scope.Scope, state runapi.State, lost map[runapi.Target]bool) {
	if agent := nodes.FailedAgent(state); agent != nil {
		s.Fail(nodes.AgentFailureReason(agent), "%s", agent.Message)
	}
	if late := describeTooLate(state); late != "" {
		s.Fail(scope.ReasonArmedTooLate, "%s", late)
	}
	if len(livingNodes(s, lost)) == 0 {
		s.Fail(scope.ReasonAllNodesFailed, "all %d nodes have failed", len(s.Topology.Nodes))
	}
	s.FailIfStopped()
}

// describeProgress sets the run's progress and message in the status.
func (r *Runner) describeProgress(s *scope.Scope, step argo.Step, plan runapi.Plan) {
	status := &s.Experiment.Status
	if s.Failure() != nil || status.T0 == nil {
		return
	}
	end := s.Timeline.End(plan.Armed)
	if !s.Timeline.Live() || s.Elapsed() >= end { // a live cluster has no end, and so no progress
		status.Progress = progress(s.Elapsed(), end)
	}
	switch {
	case step.Name == v1alpha1.StepDrain:
		status.Message = "waiting for messages that are still in transit"
	case plan.ArmedVersion == timeline.StoppedVersion:
		status.Message = "stopping, as spec.stop asks"
	case s.Timeline.Live():
		status.Message = "live cluster: up until it is stopped"
	default:
		status.Message = fmt.Sprintf("running for %s from T0", end)
	}
}

// progressInterval limits how often the progress is written.
const progressInterval = 5 * time.Second

// progress is a run's progress in percent. The time from T0 makes up 90, draining, collecting and analysing the rest.
func progress(elapsed, end time.Duration) string {
	switch {
	case elapsed >= end:
		return "90%"
	case elapsed <= 0:
		return "0%"
	}
	return strconv.Itoa(int(90*elapsed.Truncate(progressInterval)/end)) + "%"
}
