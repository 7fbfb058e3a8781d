package run

import (
	"context"
	"fmt"
	"slices"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/scope"
)

// recordLosses records each lost node and app once. It returns the targets that are lost.
func (r *Runner) recordLosses(ctx context.Context, s *scope.Scope, state runapi.State) (map[runapi.Target]bool, error) {
	lost := map[runapi.Target]bool{}
	if err := r.Objects.FindMissing(ctx, s, func(node string) bool {
		return isRecorded(state.Incidents, nodes.Loss{Node: node, What: nodes.IncidentNodeFailed})
	}); err != nil {
		return nil, err
	}
	all := nodes.Losses(s.Topology, s.Pods, s.VMs)
	for _, l := range append(all, r.silentGuests(s, state, all)...) {
		lost[runapi.Target{Node: l.Node, App: l.App}] = true
		for _, agent := range render.AgentsOf(s.Topology) {
			if agent.Node == l.Node && (l.App == "" || l.App == agent.App) {
				lost[agent] = true
			}
		}
		if isRecorded(state.Incidents, l) {
			continue
		}
		if s.Experiment.Status.T0 == nil || s.Elapsed() < 0 {
			s.Fail(scope.ReasonNodeFailed, "node %s failed before T0: %s%s", l.Node, l.Reason, r.Console.Tail(ctx, s, l.Node))
			continue
		}
		l.Reason += r.Console.Tail(ctx, s, l.Node)
		incident := runapi.Incident{What: l.What, Node: l.Node, FromSeconds: s.SecondsAfterT0(l.At), Reason: l.Reason}
		if err := r.Record.Incident(ctx, string(s.Experiment.UID), incident); err != nil {
			return nil, err
		}
		s.WarningEvent(l.What, "node %s, %.1f s after T0: %s; the run goes on without it", l.Node, incident.FromSeconds, l.Reason)
	}
	return lost, nil
}

// livingNodes returns the nodes that have a living agent, or a living guest without an agent.
func livingNodes(s *scope.Scope, lost map[runapi.Target]bool) map[string]bool {
	alive := map[string]bool{}
	for _, agent := range render.AgentsOf(s.Topology) {
		if !lost[agent] {
			alive[agent.Node] = true
		}
	}
	for _, node := range s.Topology.Nodes {
		if !node.HasAgent() && !lost[runapi.Target{Node: node.Name}] {
			alive[node.Name] = true
		}
	}
	return alive
}

// updateNodeCount sets the number of living nodes in the status.
func updateNodeCount(s *scope.Scope, lost map[runapi.Target]bool) {
	s.SetNodes(len(livingNodes(s, lost)), len(s.Topology.Nodes))
}

// isRecorded reports whether a loss is recorded already. A node is lost once, whatever its pod's status is later.
func isRecorded(incidents []runapi.Incident, l nodes.Loss) bool {
	return slices.ContainsFunc(incidents, func(i runapi.Incident) bool {
		if i.Node != l.Node {
			return false
		}
		if l.What == nodes.IncidentAppFailed {
			return i.What == nodes.IncidentAppFailed && i.Reason == l.Reason
		}
		return i.What == nodes.IncidentNodeFailed || i.What == nodes.IncidentEvicted
	})
}

// recordUnreported records actions that no agent has reported at the end of the drain.
func (r *Runner) recordUnreported(ctx context.Context, s *scope.Scope, plan runapi.Plan, silent []string) error {
	if len(silent) == 0 {
		return nil
	}
	hosts, err := r.Objects.UnreadyHosts(ctx, s)
	if err != nil {
		return err
	}
	end := s.Timeline.End(plan.Armed).Seconds()
	reason := "no agent reported action " + scope.SomeOf(silent, "actions") + wording.InParentheses(hosts)
	return r.Record.Incident(ctx, plan.UID, runapi.Incident{What: "NotReported", FromSeconds: end, Reason: reason})
}

// IncidentEMANEFailed is for a network that has lost an EMANE pod.
const IncidentEMANEFailed = "EMANEFailed"

// recordEMANELosses records lost EMANE pods, each once. Before T0 the run fails, later it continues without the network.
func (r *Runner) recordEMANELosses(ctx context.Context, s *scope.Scope, state runapi.State) error {
	if !s.UsesEMANE() {
		return nil
	}
	networks, err := r.Objects.RadioNetworks(ctx, s)
	if err != nil {
		return err
	}
	pods, err := r.Objects.EMANEPods(ctx, s, networks)
	if err != nil {
		return err
	}
	for i := range networks {
		for _, entry := range networks[i].Spec.EMANE {
			begin := fmt.Sprintf("EMANE of network %s on host %s: ", networks[i].Spec.Network, entry.Host)
			if hasIncident(state, IncidentEMANEFailed, begin) {
				continue
			}
			name := render.EMANEPodName(networks[i].Name, entry.Host)
			if pods[name] == nil { // the cache may be behind
				if pods, err = r.Objects.Uncached().EMANEPods(ctx, s, networks); err != nil {
					return err
				}
			}
			l := nodes.LossOf(entry.Host, pods[name])
			if l == nil {
				continue
			}
			if s.Experiment.Status.T0 == nil || s.Elapsed() < 0 {
				s.Fail(scope.ReasonNodeFailed, "before T0: %s%s", begin, l.Reason)
				return nil
			}
			incident := runapi.Incident{What: IncidentEMANEFailed, FromSeconds: s.SecondsAfterT0(l.At), Reason: begin + l.Reason}
			if err := r.recordOnce(ctx, s, state, incident, begin); err != nil {
				return err
			}
		}
	}
	return nil
}
