// Package provisioning creates the nodes of an admitted experiment with scheduling gates, tells the server and the radios
// who they are, releases them together, and waits until every agent and radio is ready.
package provisioning

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/provisioning/emane"
	"vignette.dev/vignette/operators/experiment/provisioning/secrets"
	"vignette.dev/vignette/operators/experiment/run/argo"
	"vignette.dev/vignette/operators/experiment/runrecord"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/experiment/updates"
	"vignette.dev/vignette/operators/experiment/wakeup"
)

// Provisioner creates the nodes of an admitted experiment.
type Provisioner struct {
	Objects   *objects.Objects
	Record    *runrecord.Record
	Workflows *argo.Workflows
	EMANE     *emane.Pods
	Secrets   *secrets.Secrets
	// Updates report experiments whose state on the server changed. If it is nil, each experiment polls.
	Updates *updates.Feed
	Console nodes.Console
	// LookupHost finds the server's addresses.
	LookupHost func(ctx context.Context, host string) ([]string, error)
	// Deadline is the time from an experiment's start slot to "every agent is ready", for up to 50 nodes.
	Deadline time.Duration
	// Wakeups are requests to use a free slot.
	Wakeups wakeup.Channel
	// Starts limits how many experiments start at once, and how many of them create their nodes at once.
	Starts Limiter

	guests guestTracker
}

// step returns true where later steps must wait for the next reconciliation.
type step func(context.Context, *scope.Scope) (stop bool, err error)

// Provision creates all nodes with a scheduling gate, registers them with the server and radiod, releases them together
// and waits for every agent. It leaves an experiment with a setback to the next stage.
func (p *Provisioner) Provision(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Phase() != v1alpha1.PhaseProvisioning || s.Failure() != nil {
		return false, nil
	}
	defer p.endCreating(s)
	steps := []step{
		p.loadNodes, p.checkStop, p.awaitStartSlot, p.checkProvisioning, p.awaitScenario, p.beginCreating,
		p.Workflows.EnsureAccount, p.ensureAttachments, p.Secrets.Ensure, p.resolveServer, p.ensureBudget, p.ensurePods, p.ensureVMs,
		p.registerNodes, p.releaseVMs, p.releasePods, p.noteReleased,
		p.EMANE.Ensure, p.awaitAgents,
	}
	for _, step := range steps {
		if stop, err := step(ctx, s); stop || err != nil {
			return s.Setback == nil, err
		}
		if s.JustFailed {
			return true, nil
		}
	}
	return true, nil
}

// loadNodes finds the experiment's pods and machines.
func (p *Provisioner) loadNodes(ctx context.Context, s *scope.Scope) (bool, error) {
	return false, p.Objects.LoadNodes(ctx, s)
}

// checkStop fails an experiment that is stopped before T0.
func (p *Provisioner) checkStop(_ context.Context, s *scope.Scope) (bool, error) {
	s.FailIfStopped()
	return false, nil
}

// A busy host with two processors starts about nodesWithinDeadline pods within the deadline, and one more per
// deadlinePerNode. An emulated machine with a disk of the user may take OwnDiskBootTime longer: a Debian with cloud-init
// needs minutes of processor time.
const (
	nodesWithinDeadline = 50
	deadlinePerNode     = 3 * time.Second
	OwnDiskBootTime     = 10 * time.Minute
)

// DeadlineOf is the time from its start slot in which an experiment of so many nodes must become ready. The input needs no topology.
func (p *Provisioner) DeadlineOf(in render.Input, nodes int) time.Duration {
	deadline := p.Deadline + deadlinePerNode*time.Duration(max(0, nodes-nodesWithinDeadline))
	if render.BootsOwnDisks(in) {
		deadline += OwnDiskBootTime
	}
	return deadline
}

// checkProvisioning fails an experiment that cannot become ready.
func (p *Provisioner) checkProvisioning(ctx context.Context, s *scope.Scope) (bool, error) {
	if stop, err := p.checkVMQuota(ctx, s); stop || err != nil {
		return true, err
	}
	if s.Setback = passingTrouble(s); s.Setback != nil { // before that of a virtual machine, whose launcher has the reason
		return true, nil
	}
	for _, name := range scope.SortedKeys(s.VMs) {
		if reason, message := nodes.VMTrouble(s.VMs[name]); reason != "" && s.Failure() == nil {
			s.Fail(reason, "node %s: %s%s", name, message, p.Console.Tail(ctx, s, name))
		}
	}
	for _, name := range scope.SortedKeys(s.Pods) {
		if trouble := nodes.PodTrouble(s.Pods[name], p.Starts.Released(s.Experiment.UID), s.Now); trouble != nil && s.Failure() == nil {
			s.Fail(trouble.Reason, "node %s: %s%s", name, trouble.Message, p.Console.Tail(ctx, s, name))
		}
	}
	if err := p.EMANE.Check(ctx, s); err != nil || s.Setback != nil {
		return true, err
	}
	deadline := p.DeadlineOf(s.RenderInput(), len(s.Topology.Nodes))
	overdue := s.Now.Sub(s.StartingSince) > deadline
	if overdue && s.Failure() == nil {
		p.Secrets.Check(ctx, s)
	}
	if !overdue {
		return false, nil
	}
	hosts, err := p.Objects.UnreadyHosts(ctx, s)
	s.Fail(scope.ReasonProvisioningTimeout, "not ready %s after its nodes began to start, with %d of %d pods running; last: %s%s%s",
		deadline, countRunning(s.Pods), len(s.Topology.Nodes), s.Experiment.Status.Message, wording.InParentheses(hosts), p.unreportedGuest(ctx, s))
	return false, err
}

// scenarioRetry is the time until a scenario that is being compiled is looked at again.
const scenarioRetry = 5 * time.Second

// awaitScenario waits for a scenario that is being compiled again, because the sources of an accepted one were touched.
func (p *Provisioner) awaitScenario(_ context.Context, s *scope.Scope) (bool, error) {
	if s.Experiment.Spec.Scenario == nil || s.Scenario != nil {
		return false, nil
	}
	s.Experiment.Status.Message = fmt.Sprintf("waiting until scenario %s is compiled again: it, or its ConfigMap, was written", s.Experiment.Spec.Scenario.Ref)
	s.RequeueAfter(scenarioRetry)
	return true, nil
}

// passingTrouble returns why a pod has not started that might start again, nil for none.
func passingTrouble(s *scope.Scope) *scope.Setback {
	for _, name := range scope.SortedKeys(s.Pods) {
		if trouble := nodes.PodTrouble(s.Pods[name], time.Time{}, s.Now); trouble != nil && trouble.Passes {
			return &scope.Setback{Reason: trouble.Reason, Err: fmt.Errorf("node %s: %s", name, trouble.Message)}
		}
	}
	return nil
}

func countRunning(pods map[string]*corev1.Pod) (count int) {
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning {
			count++
		}
	}
	return count
}
