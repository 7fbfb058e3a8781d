package provisioning

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/configmaps"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/provisioning/emane"
	"vignette.dev/vignette/operators/experiment/scope"
)

// awaitAgents ends Provisioning once every agent has connected and written its files and every node has its radios.
func (p *Provisioner) awaitAgents(ctx context.Context, s *scope.Scope) (bool, error) {
	state, err := p.Record.State(ctx, string(s.Experiment.UID))
	if err != nil {
		return true, err
	}
	ready, waiting := readyNodes(s, state)
	status := &s.Experiment.Status
	s.SetNodes(ready, len(s.Topology.Nodes))
	if agent := nodes.FailedAgent(state); agent != nil {
		s.Fail(nodes.AgentFailureReason(agent), "%s", agent.Message)
		return false, nil
	}
	if len(waiting) > 0 {
		status.Message = "waiting for " + scope.SomeOf(waiting, "agents")
		s.RequeueAfter(p.Updates.PollAfter(s.Experiment, scope.PollInterval))
		return true, nil
	}
	networks, err := p.Objects.RadioNetworks(ctx, s)
	if err != nil {
		return true, err
	}
	pods, err := p.Objects.EMANEPods(ctx, s, networks)
	if err != nil {
		return true, err
	}
	for i := range networks {
		if reason, message := nodes.RadioRefusal(&networks[i]); reason != "" {
			s.Fail(reason, "%s", message)
			return false, nil
		}
	}
	if lacking := missingRadios(networks, emane.Progress(networks, pods)); len(lacking) > 0 {
		status.Message = scope.Shorten("waiting for radios of " + scope.SomeOf(lacking, "networks"))
		s.RequeueAfter(scope.PollInterval)
		return true, nil
	}
	if err := p.checkConfigMapsUnchanged(ctx, s, state.Plan.ConfigMaps); err != nil || s.JustFailed {
		return true, err
	}
	warnOfCPULimit(s)
	s.NormalEvent("NodesReady", "all nodes are ready: %s", status.Nodes.Summary)
	// Phase and name are written before the Workflow is created, so that it is created only once.
	status.Phase, status.Message, status.Workflow = v1alpha1.PhaseRunning, "every agent is ready", s.Experiment.Name
	return true, nil
}

// warnOfCPULimit warns of an app whose CPU limit is the default of a LimitRange, as throttling looks like delay of the radio.
func warnOfCPULimit(s *scope.Scope) {
	for _, app := range s.Experiment.Spec.Apps {
		if app.Resources != nil && !app.Resources.Limits.Cpu().IsZero() {
			continue
		}
		for _, node := range scope.SortedKeys(s.Pods) {
			for _, c := range s.Pods[node].Spec.Containers {
				if limit := c.Resources.Limits.Cpu(); c.Name == app.Name && !limit.IsZero() {
					s.WarningEvent("CPULimited", "app %s on node %s, and maybe others, has a CPU limit of %s by a LimitRange of namespace %s, and waits where it needs more: "+
						"remove that default, or set resources.limits.cpu of the apps", app.Name, node, limit, s.Experiment.Namespace)
					return
				}
			}
		}
	}
}

// missingRadios describes the networks whose members are not all attached or whose radios do not work yet. A running pod
// is no proof. A user who can change annotations or NetworkAttachmentDefinitions can prevent its radio, and so the rules
// that close eth0.
func missingRadios(networks []v1alpha1.RadioNetwork, notes map[string]string) (lacking []string) {
	for i := range networks {
		attached, members, note := int32(0), len(networks[i].Spec.Members), notes[networks[i].Spec.Network]
		troubled := false
		for _, host := range networks[i].Status.Hosts {
			attached += host.Attached
			if host.Message != "" {
				note += fmt.Sprintf("; host %s: %s", host.Host, host.Message)
				troubled = true
			}
		}
		if int(attached) < members || troubled {
			lacking = append(lacking, fmt.Sprintf("%s (%d of %d are attached%s)", networks[i].Spec.Network, attached, members, note))
		}
	}
	return lacking
}

// readyNodes counts the nodes whose agents have all reported, and names the agents that have not. A report counts only
// while the pod that the server knows is running. An earlier pod of the node may have reported too, before the experiment
// went back to the queue.
func readyNodes(s *scope.Scope, state runapi.State) (ready int, waiting []string) {
	runs := map[string]bool{}
	for _, node := range state.Plan.Nodes {
		pod := s.Pods[node.Name]
		runs[node.Name] = pod != nil && string(pod.UID) == node.PodUID && pod.Status.Phase == corev1.PodRunning
	}
	reported := map[runapi.Target]bool{}
	for _, agent := range state.Agents {
		reported[runapi.Target{Node: agent.Node, App: agent.App}] = runs[agent.Node]
	}
	lacking := map[string]bool{}
	for _, agent := range render.AgentsOf(s.Topology) {
		if !reported[agent] {
			lacking[agent.Node] = true
			waiting = append(waiting, agent.Node+"/"+agent.App+nodes.Progress(s, agent.Node))
		}
	}
	for _, node := range s.Topology.Nodes {
		if vm := s.VMs[node.Name]; !node.HasAgent() && (!runs[node.Name] || vm == nil || vm.Status.Phase != kubevirtv1.Running) {
			lacking[node.Name] = true
			waiting = append(waiting, node.Name+nodes.Progress(s, node.Name))
		}
	}
	return len(s.Topology.Nodes) - len(lacking), waiting
}

// releasedConfigMaps are the versions from before the first node was released, as far as the server has them.
func (p *Provisioner) releasedConfigMaps(ctx context.Context, s *scope.Scope) ([]runapi.PlannedConfigMap, error) {
	if len(s.ConfigMaps) == 0 || !p.anyReleased(s.Pods) {
		return s.ConfigMaps, nil
	}
	state, err := p.Record.State(ctx, string(s.Experiment.UID))
	if runs.IsNotFound(err) {
		return s.ConfigMaps, nil
	}
	return state.Plan.ConfigMaps, err
}

// checkConfigMapsUnchanged fails a run if a ConfigMap changed between the release of the first node and the readiness of
// the last, because nodes may then have different contents.
func (p *Provisioner) checkConfigMapsUnchanged(ctx context.Context, s *scope.Scope, given []runapi.PlannedConfigMap) error {
	if len(given) == 0 {
		return nil
	}
	now, err := configmaps.Read(ctx, p.Objects.Live, s, func(string, *field.Error) {})
	if err != nil {
		return err
	}
	if changed := configmaps.Changed(given, now); len(changed) > 0 {
		s.Fail(scope.ReasonReferenceLost, "%s was changed while the nodes were starting: nodes may have different contents", scope.SomeOf(changed, "keys"))
	}
	return nil
}
