package run

import (
	"slices"
	"time"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/scope"
)

// guestSilenceLimit is how much older a guest's last report may be than that of any other agent. Agents report every
// five seconds.
const guestSilenceLimit = 45 * time.Second

// silentGuests are running virtual machines whose agents have stopped reporting. A hanging guest, or one whose kernel has
// panicked, is lost although its machine runs.
func (r *Runner) silentGuests(s *scope.Scope, state runapi.State, known []nodes.Loss) (found []nodes.Loss) {
	last, newest, over := map[string]time.Time{}, time.Time{}, map[string]bool{}
	for _, agent := range state.Agents {
		if agent.ReportedAt.After(last[agent.Node]) {
			last[agent.Node] = agent.ReportedAt
		}
		if agent.ReportedAt.After(newest) {
			newest = agent.ReportedAt
		}
		over[agent.Node] = over[agent.Node] || agent.Phase == runapi.AgentDone || agent.Phase == runapi.AgentFailed
	}
	silent := map[string]string{}
	for _, node := range render.VMNodes(s.Topology) {
		at, launcher := last[node.Name], s.Pods[node.Name]
		if at.IsZero() || over[node.Name] || launcher == nil || slices.ContainsFunc(known, func(l nodes.Loss) bool { return l.Node == node.Name }) {
			continue
		}
		if newest.Sub(at) > guestSilenceLimit {
			silent[node.Name] = "its virtual machine runs, but its guest has stopped reporting"
		}
	}
	for _, node := range scope.SortedKeys(r.silence.lasting(s.Experiment.UID, s.Now, silent)) { // after an outage of the server some agents report before others
		found = append(found, nodes.Loss{Node: node, What: nodes.IncidentNodeFailed, At: last[node], Reason: silent[node]})
	}
	return found
}
