package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/argo"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/timeline"
)

// driveWorkflow performs the suspended steps of a running experiment's workflow.
func (r *Reconciler) driveWorkflow(ctx context.Context, s *scope) (bool, error) {
	if failure := s.failure(); s.phase() != v1alpha1.PhaseRunning || failure != nil && failure.Reason == ReasonEvicted {
		return false, nil // an evicted run is not collected and analysed, because others wait for its quota
	}
	workflow, err := r.workflow(ctx, s)
	if err != nil || workflow == nil {
		return s.failure() == nil || s.justFailed, err
	}
	flow := argo.Read(workflow)
	if flow.Finished() {
		s.fail(ReasonWorkflowFailed, "the workflow ended before the run was over: %s", flow.Failure())
		s.experiment.Status.Phase = v1alpha1.PhaseCollecting
		return true, nil
	}
	step := flow.Current()
	s.setStep(step.Name)
	// An operator killed between the resume and the status write finds the last suspended step finished.
	drained := step.Name == argo.StepDrain && step.Phase == argo.Succeeded
	if !drained && (step.Name == "" || step.Phase != argo.Running) {
		s.requeueAfter(runningPoll)
		return r.awaitNextStep(ctx, s, workflow, step)
	}
	if drained || !step.Suspend {
		s.requeueAfter(runningPoll)
		err = r.enterCollecting(ctx, s, step)
		return !s.unrecoverable, err
	}
	err = r.driveStep(ctx, s, workflow, step)
	return !s.unrecoverable, err
}

// enterCollecting handles a workflow that has reached a pod step. The operator resumes it only once the run is closed.
// If somebody else did, the measurement is incomplete and the run fails.
func (r *Reconciler) enterCollecting(ctx context.Context, s *scope, step argo.Step) error {
	state, err := r.loadRunState(ctx, s)
	if runs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if state.Plan.MeasureEndNanoseconds == nil {
		s.fail(ReasonWorkflowFailed, "the workflow came to step %s before the run was over: somebody else resumed it", step.Name)
	}
	s.experiment.Status.Phase = v1alpha1.PhaseCollecting
	return nil
}

const (
	// argoStartTimeout is the time in which Argo's controller must start a workflow.
	argoStartTimeout = 2 * time.Minute
	// argoStepTimeout is the maximum time between two steps; Argo's controller may restart in between.
	argoStepTimeout = 10 * time.Minute
)

// awaitNextStep waits for the workflow's next step, or fails the run if Argo does not go on. It returns false if later
// stages must run.
func (r *Reconciler) awaitNextStep(ctx context.Context, s *scope, workflow *unstructured.Unstructured, step argo.Step) (bool, error) {
	switch {
	case step.Name == "" && s.ageOf(workflow) > argoStartTimeout:
		s.fail(ReasonWorkflowFailed, "Argo has not begun Workflow %s within %s: is its controller running?", workflow.GetName(), argoStartTimeout)
		return s.justFailed, nil
	case !step.Finished.IsZero() && s.now.Sub(step.Finished) > argoStepTimeout:
		s.failUnrecoverably(ReasonArgoStalled, "Argo has not gone on after step %s of Workflow %s within %s: is its controller running?", step.Name, workflow.GetName(), argoStepTimeout)
		return !s.unrecoverable, nil
	case s.failure() == nil && step.Name == "":
		s.experiment.Status.Message = "waiting for Argo to begin the workflow"
	}
	return true, r.nudge(ctx, s, workflow, step)
}

// driveStep does the work of a suspended step and then resumes the workflow.
func (r *Reconciler) driveStep(ctx context.Context, s *scope, workflow *unstructured.Unstructured, step argo.Step) error {
	s.requeueAfter(r.statePollInterval(s))
	if _, err := r.loadPods(ctx, s); err != nil {
		return err
	}
	state, err := r.loadRunState(ctx, s)
	if runs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.now = r.Clock.Now() // the answer may have taken seconds, and new actions must reach agents in time
	lost, err := r.recordLosses(ctx, s, state)
	if err != nil {
		return err
	}
	s.updateNodeCount(lost)
	if err := r.recordEMANELosses(ctx, s, state.Incidents); err != nil {
		return err
	}
	r.checkRunFailures(s, state, lost)
	if s.justFailed {
		return nil
	}
	if s.failure() == nil {
		if err := r.checkRadioNetworks(ctx, s, state); err != nil || s.justFailed {
			return err
		}
	}
	if s.failure() == nil && r.needsT0(s, state, workflow) {
		r.setT0(s, workflow)
		return nil // the status must hold T0 before the server or an agent learns it
	}
	plan, err := r.nextPlan(ctx, s, state)
	if err != nil || s.justFailed {
		return err
	}
	v := r.stepView(s, state, plan, lost)
	result := stepResult{done: true}
	if s.failure() == nil {
		result = v.result(step.Name)
	}
	if result.lateAgents != "" {
		s.fail(ReasonArmedTooLate, "agents did not receive their actions in time: %s", result.lateAgents)
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
func (r *Reconciler) statePollInterval(s *scope) time.Duration {
	poll := r.runUpdates.pollAfter(s.experiment, runningPoll)
	if s.timeline.Live() {
		return poll
	}
	return min(poll, max(runningPoll, s.timeline.End(nil)/minProgressUpdates))
}

// loadRunState returns the server's state of the run. If the server has lost the run's record, the run fails.
func (r *Reconciler) loadRunState(ctx context.Context, s *scope) (runapi.State, error) {
	state, err := r.Runs.State(ctx, string(s.experiment.UID))
	switch {
	case runs.IsNotFound(err):
		s.failUnrecoverably(ReasonRunRecordLost, "the server has no record of this run any more: its archive was lost or deleted")
	case err != nil && s.failure() == nil:
		s.experiment.Status.Message = "the server does not answer; trying again"
	}
	return state, err
}

// publishAndResume publishes the plan and the progress, and then resumes the workflow if the step is done.
func (r *Reconciler) publishAndResume(ctx context.Context, s *scope, workflow *unstructured.Unstructured, step argo.Step, state runapi.State, plan runapi.Plan, result stepResult) error {
	leaving := result.done && (step.Name == argo.StepDrain || s.failure() != nil)
	if leaving {
		closePlan(s, &plan)
		if stop, err := r.ensureShared(ctx, s); stop || err != nil { // the workflow's next pods need it
			return err
		}
	}
	if err := r.publish(ctx, s, state, plan); err != nil {
		return err
	}
	r.describeProgress(s, step, plan)
	if !result.done {
		s.requeueAfter(max(result.wait, armingPoll))
		return nil
	}
	if err := r.resume(ctx, workflow, step, s.now); err != nil {
		return err
	}
	if leaving {
		s.experiment.Status.Phase = v1alpha1.PhaseCollecting
	}
	s.requeueAfter(armingPoll)
	return nil
}

// publish updates the radios before the server, so that the run record has no change that no radio got. At the
// end it updates the server first, so that no ended capture starts again.
func (r *Reconciler) publish(ctx context.Context, s *scope, state runapi.State, plan runapi.Plan) error {
	over := plan.MeasureEndNanoseconds != nil || s.failure() != nil
	updates, err := r.planRadioUpdates(ctx, s, &plan, over)
	if err != nil {
		return err
	}
	if !over {
		if err := r.applyRadioUpdates(ctx, updates); err != nil {
			return err
		}
	}
	if !samePlan(state.Plan, plan) {
		if _, err := r.Runs.PutPlan(ctx, plan); err != nil {
			return err
		}
	}
	if over {
		if err := r.applyRadioUpdates(ctx, updates); err != nil {
			return err
		}
	}
	return updates.writeLiveStatuses(ctx)
}

// closePlan ends the measuring window and lets the agents finish.
func closePlan(s *scope, plan *runapi.Plan) {
	if plan.MeasureEndNanoseconds == nil && s.experiment.Status.T0 != nil {
		plan.MeasureEndNanoseconds = ptr.To(max(int64(s.elapsed()), 0))
	}
	plan.Phase = v1alpha1.PhaseCollecting
	if failure := s.failure(); failure != nil {
		plan.Message = failure.Message
	}
}

const (
	// t0Timeout is the time from the workflow's creation after which T0 is not moved any more.
	t0Timeout = 10 * time.Minute
	// maxPostponement is the most by which T0 is moved at a time.
	maxPostponement = 2 * time.Minute
)

// needsT0 reports whether T0 is not set yet or is too near for every agent to receive it. In a slow cluster, writing T0
// may take as long as the lead. Agents read T0 from the server's plan, so it may change until that plan has it.
func (r *Reconciler) needsT0(s *scope, state runapi.State, workflow *unstructured.Unstructured) bool {
	if s.experiment.Status.T0 == nil {
		return true
	}
	return state.Plan.T0 == nil && s.elapsed() > -r.t0Lead(s)/2 && s.ageOf(workflow) < t0Timeout
}

func (s *scope) ageOf(workflow *unstructured.Unstructured) time.Duration {
	return s.now.Sub(workflow.GetCreationTimestamp().Time)
}

// A cluster that started the nodes slowly also distributes T0 slowly. The lead is therefore a fraction of the start time.
const (
	leadFraction = 4
	maxLead      = 30 * time.Second
)

// t0Lead is the time from now to T0, in which every agent must receive T0.
func (r *Reconciler) t0Lead(s *scope) time.Duration {
	startTime := s.now.Sub(s.firstNodeCreated())
	return max(r.Options.StartLead, min(startTime/leadFraction, maxLead))
}

// setT0 sets T0 far enough ahead for every agent to receive it. A second T0 has a longer lead, by the time spent so far.
func (r *Reconciler) setT0(s *scope, workflow *unstructured.Unstructured) {
	lead, event, message := r.t0Lead(s), "Started", "T0 is set"
	if s.experiment.Status.T0 != nil {
		lead, event, message = max(lead, min(s.ageOf(workflow), maxPostponement)), "Postponed", "T0 is postponed: it was too near to reach every agent in time"
	}
	t0 := metav1.NewMicroTime(s.now.Add(lead).Truncate(time.Microsecond))
	s.experiment.Status.T0 = &t0
	s.experiment.Status.Message = message
	s.normalEvent(event, "T0 is %s", t0.UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	s.requeueAfter(0)
}

// nextPlan adds T0 and all actions to the server's plan. An early stop replaces the actions.
func (r *Reconciler) nextPlan(ctx context.Context, s *scope, state runapi.State) (runapi.Plan, error) {
	plan := state.Plan
	environment, err := r.runEnvironment(ctx, s, plan.Environment)
	if err != nil {
		return plan, err
	}
	plan.Environment = environment
	if s.experiment.Status.T0 == nil {
		return plan, nil
	}
	if plan.MeasureEndNanoseconds != nil { // the run was closed, but the workflow was not resumed
		return plan, nil
	}
	plan.T0 = ptr.To(s.experiment.Status.T0.UTC())
	plan.Phase = v1alpha1.PhaseRunning
	plan.MeasureStartNanoseconds = ptr.To(int64(s.timeline.MeasureStart()))
	if s.failure() != nil {
		return plan, nil
	}
	switch {
	case s.experiment.Spec.Stop && plan.ArmedVersion < timeline.StoppedVersion:
		plan.Armed, plan.ArmedVersion = s.timeline.StopEarly(s.elapsed()), timeline.StoppedVersion
	case plan.ArmedVersion < timeline.TimelineVersion:
		plan.Armed, plan.ArmedVersion = s.timeline.Actions, timeline.TimelineVersion
	}
	return plan, nil
}

// stepView collects the input of a decision about a step.
func (r *Reconciler) stepView(s *scope, state runapi.State, plan runapi.Plan, lost map[runapi.Target]bool) stepView {
	v := stepView{
		timeline: s.timeline, armed: plan.Armed, lost: lost,
		agents: map[runapi.Target]runapi.AgentState{}, drain: s.experiment.Spec.Drain,
	}
	for _, agent := range state.Agents {
		v.agents[runapi.Target{Node: agent.Node, App: agent.App}] = agent
	}
	if t0 := s.experiment.Status.T0; t0 != nil {
		v.t0, v.elapsed = t0.Time, s.elapsed()
		if last := state.Counters.LastReceivedNanoseconds; last > 0 {
			v.lastReceived = time.Unix(0, last).Sub(t0.Time)
		}
	}
	return v
}

// checkRunFailures fails the run for a failed agent, late actions, the loss of all nodes or a stop.
func (r *Reconciler) checkRunFailures(s *scope, state runapi.State, lost map[runapi.Target]bool) {
	if agent := failedAgent(state); agent != nil {
		s.fail(agentFailureReason(agent), "%s", agent.Message)
	}
	if late := describeTooLate(state); late != "" {
		s.fail(ReasonArmedTooLate, "%s", late)
	}
	if len(s.livingNodes(lost)) == 0 {
		s.fail(ReasonAllNodesFailed, "all %d nodes have failed", len(s.topology.Nodes))
	}
	s.checkStop()
}

// recordLosses records each lost node and app once. It returns the targets that are lost.
func (r *Reconciler) recordLosses(ctx context.Context, s *scope, state runapi.State) (map[runapi.Target]bool, error) {
	lost := map[runapi.Target]bool{}
	if err := r.findMissingPods(ctx, s, state.Incidents); err != nil {
		return nil, err
	}
	all := losses(s.topology, s.pods, s.vms)
	for _, l := range append(all, r.silentGuests(s, state, all)...) {
		lost[runapi.Target{Node: l.node, App: l.app}] = true
		for _, agent := range render.AgentsOf(s.topology) {
			if agent.Node == l.node && (l.app == "" || l.app == agent.App) {
				lost[agent] = true
			}
		}
		if isRecorded(state.Incidents, l) {
			continue
		}
		if s.experiment.Status.T0 == nil || s.elapsed() < 0 {
			s.fail(ReasonNodeFailed, "node %s failed before T0: %s%s", l.node, l.reason, r.consoleTail(ctx, s, l.node))
			continue
		}
		l.reason += r.consoleTail(ctx, s, l.node)
		incident := runapi.Incident{What: l.what, Node: l.node, FromSeconds: s.secondsAfterT0(l.at), Reason: l.reason}
		if err := r.Runs.Incident(ctx, string(s.experiment.UID), incident); err != nil {
			return nil, err
		}
		s.warningEvent(l.what, "node %s, %.1f s after T0: %s; the run goes on without it", l.node, incident.FromSeconds, l.reason)
	}
	return lost, nil
}

// livingNodes returns the nodes that have a living agent, or a living guest without an agent.
func (s *scope) livingNodes(lost map[runapi.Target]bool) map[string]bool {
	alive := map[string]bool{}
	for _, agent := range render.AgentsOf(s.topology) {
		if !lost[agent] {
			alive[agent.Node] = true
		}
	}
	for _, node := range s.topology.Nodes {
		if !node.HasAgent() && !lost[runapi.Target{Node: node.Name}] {
			alive[node.Name] = true
		}
	}
	return alive
}

// updateNodeCount sets the number of living nodes in the status.
func (s *scope) updateNodeCount(lost map[runapi.Target]bool) {
	s.setNodes(len(s.livingNodes(lost)), len(s.topology.Nodes))
}

// isRecorded reports whether a loss is recorded already. A node is lost once, whatever its pod's status is later.
func isRecorded(incidents []runapi.Incident, l loss) bool {
	return slices.ContainsFunc(incidents, func(i runapi.Incident) bool {
		if i.Node != l.node {
			return false
		}
		if l.what == incidentAppFailed {
			return i.What == incidentAppFailed && i.Reason == l.reason
		}
		return i.What == incidentNodeFailed || i.What == incidentEvicted
	})
}

func (s *scope) secondsAfterT0(at time.Time) float64 {
	if at.IsZero() {
		at = s.now
	}
	return max(at.Sub(s.experiment.Status.T0.Time), 0).Seconds()
}

// recordUnreported records actions that no agent has reported at the end of the drain.
func (r *Reconciler) recordUnreported(ctx context.Context, s *scope, plan runapi.Plan, silent []string) error {
	if len(silent) == 0 {
		return nil
	}
	end := s.timeline.End(plan.Armed).Seconds()
	return r.Runs.Incident(ctx, plan.UID, runapi.Incident{What: "NotReported", FromSeconds: end, Reason: "no agent reported action " + someOf(silent, "actions")})
}

// describeProgress sets the run's progress and message in the status.
func (r *Reconciler) describeProgress(s *scope, step argo.Step, plan runapi.Plan) {
	status := &s.experiment.Status
	if s.failure() != nil || status.T0 == nil {
		return
	}
	end := s.timeline.End(plan.Armed)
	if !s.timeline.Live() || s.elapsed() >= end { // a live cluster has no end, and so no progress
		status.Progress = progress(s.elapsed(), end)
	}
	switch {
	case step.Name == argo.StepDrain:
		status.Message = "waiting for messages that are still in transit"
	case plan.ArmedVersion == timeline.StoppedVersion:
		status.Message = "stopping, as spec.stop asks"
	case s.timeline.Live():
		status.Message = "live cluster: up until it is stopped"
	default:
		status.Message = fmt.Sprintf("running for %s from T0", end)
	}
}

// workflow returns the experiment's Workflow, which is created once, before T0. It is nil if there is none.
func (r *Reconciler) workflow(ctx context.Context, s *scope) (*unstructured.Unstructured, error) {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(render.WorkflowKind)
	key := client.ObjectKeyFromObject(s.experiment)
	err := r.Client.Get(ctx, key, w)
	if apierrors.IsNotFound(err) { // the cache may be behind
		err = r.Live.Get(ctx, key, w)
	}
	if apierrors.IsNotFound(err) {
		return nil, r.createWorkflow(ctx, s)
	}
	if err == nil && !metav1.IsControlledBy(w, s.experiment) {
		return nil, r.awaitWorkflowName(s, w)
	}
	return w, err
}

// awaitWorkflowName waits until another Workflow with the run's name is gone. It will be if it is being deleted or belonged
// to a deleted experiment of this name. The Workflow of anybody else stays, and the run fails.
func (r *Reconciler) awaitWorkflowName(s *scope, taken *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(taken)
	willGo := !taken.GetDeletionTimestamp().IsZero() || owner != nil && owner.Kind == "Experiment" && owner.Name == s.experiment.Name
	started := s.experiment.Status.StartTime
	if !willGo || started != nil && s.now.Sub(started.Time) > r.Options.ProvisioningDeadline+argoStartTimeout {
		s.fail(ReasonWorkflowNameTaken, "there is a Workflow %s that belongs to somebody else", taken.GetName())
		return nil
	}
	s.experiment.Status.Message = fmt.Sprintf("waiting for the deletion of Workflow %s of an earlier experiment", taken.GetName())
	s.requeueAfter(2 * pollInterval)
	return nil
}

func (r *Reconciler) createWorkflow(ctx context.Context, s *scope) error {
	status := s.experiment.Status
	if status.T0 != nil || status.Step != "" || status.Phase != v1alpha1.PhaseRunning {
		s.fail(ReasonWorkflowDeleted, "Workflow %s was deleted during the run, and a run is never repeated", s.experiment.Name)
		return nil
	}
	if s.failure() != nil {
		return nil
	}
	err := r.Client.Create(ctx, render.Workflow(s.renderInput()))
	s.requeueAfter(pollInterval)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		s.fail(ReasonWorkflowFailed, "the workflow is refused: %v", err)
		return nil
	}
	return err
}

// resume resumes a suspended step. Argo's Workflow has no status subresource; its resource version is the lock.
func (r *Reconciler) resume(ctx context.Context, workflow *unstructured.Unstructured, step argo.Step, now time.Time) error {
	resumed := workflow.DeepCopy()
	if err := argo.Resume(resumed, step, now); err != nil {
		return err
	}
	return r.Client.Update(ctx, resumed)
}

// radioNetworks returns the experiment's RadioNetworks, selected by its UID.
func (r *Reconciler) radioNetworks(ctx context.Context, s *scope) ([]v1alpha1.RadioNetwork, error) {
	var list v1alpha1.RadioNetworkList
	err := r.Client.List(ctx, &list, selectOwnedBy(s.experiment, r.Options.Render.Namespace)...)
	return slices.DeleteFunc(list.Items, func(n v1alpha1.RadioNetwork) bool { return n.Spec.Experiment.UID != s.experiment.UID }), err
}
