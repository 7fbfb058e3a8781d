package run

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

func TestNothingIsKeptOfSilentGuestsOnceTheirRunIsOver(t *testing.T) {
	e := &v1alpha1.Experiment{}
	e.UID = "u1"
	s := &scope.Scope{Experiment: e, Now: time.Unix(1000, 0), Pods: map[string]*corev1.Pod{"nor": {}},
		Topology: &topology.Topology{Nodes: []topology.Node{{Name: "nor", Runtime: v1alpha1.RuntimeVM}}}}
	reports := func(node string, at int64) runapi.AgentState {
		return runapi.AgentState{Node: node, ReportedAt: time.Unix(at, 0)}
	}
	state, r := runapi.State{Agents: []runapi.AgentState{reports("nor", 900), reports("prt", 1000)}}, &Runner{}
	if lost := r.silentGuests(s, state, nil); len(lost) > 0 {
		t.Errorf("lost at once: %+v", lost)
	}
	s.Now = s.Now.Add(gracePeriod)
	if lost := r.silentGuests(s, state, nil); len(lost) != 1 || lost[0].Node != "nor" {
		t.Errorf("lost are %+v; want nor", lost)
	}
	r.Forget(e.UID)
	if len(r.silence.since) > 0 {
		t.Errorf("kept: %v", r.silence.since)
	}
}
