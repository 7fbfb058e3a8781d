package run

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/scope"
)

// silenceTracker remembers since when guests are silent, by the UIDs of their launchers.
type silenceTracker struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// silentFor is how long a guest has been silent, 0 if it is not.
func (g *silenceTracker) silentFor(launcher types.UID, isSilent bool, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	since, known := g.since[launcher]
	switch {
	case !isSilent:
		delete(g.since, launcher)
		return 0
	case !known && g.since == nil:
		g.since = map[types.UID]time.Time{}
		fallthrough
	case !known:
		g.since[launcher], since = now, now
	}
	return now.Sub(since)
}

const (
	// guestSilenceLimit is how much older a guest's last report may be than that of any other agent. Agents report every
	// five seconds.
	guestSilenceLimit = 45 * time.Second
	// silenceConfirmation is how long a guest must be silent to be lost. After an outage of the server some agents report
	// before others.
	silenceConfirmation = 15 * time.Second
)

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
	for _, node := range render.VMNodes(s.Topology) {
		at, launcher := last[node.Name], s.Pods[node.Name]
		if at.IsZero() || over[node.Name] || launcher == nil || slices.ContainsFunc(known, func(l nodes.Loss) bool { return l.Node == node.Name }) {
			continue
		}
		if r.silence.silentFor(launcher.UID, newest.Sub(at) > guestSilenceLimit, s.Now) >= silenceConfirmation {
			found = append(found, nodes.Loss{Node: node.Name, What: nodes.IncidentNodeFailed, At: at, Reason: "its virtual machine runs, but its guest has stopped reporting"})
		}
	}
	return found
}
