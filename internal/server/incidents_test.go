package server

import (
	"context"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/runapi"
)

func TestLongTextsOfAgentsAndIncidentsAreCut(t *testing.T) {
	l := newLab(t)
	l.plan()
	long := strings.Repeat("é", 10_000)
	if err := l.as("operator").Incident(context.Background(), runUID, runapi.Incident{What: long, Node: "nor", Reason: long}); err != nil {
		t.Fatal(err)
	}
	report := runapi.AgentReport{App: "bft", Phase: runapi.AgentFailed, Message: long, Gaps: []runapi.AgentGap{{Reason: long}}}
	if err := l.as("nor").Report(context.Background(), report); err != nil {
		t.Fatal(err)
	}
	state, err := l.as("operator").State(context.Background(), runUID)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{state.Incidents[0].What, state.Incidents[0].Reason, state.Agents[0].Message, state.Agents[0].Gaps[0].Reason} {
		if !strings.HasSuffix(text, "é… (10000 characters)") || len(text) > 5000 {
			t.Errorf("%d bytes are kept of a long text", len(text))
		}
	}
}

func TestIncidentsThatBeginTogetherAreAllKept(t *testing.T) {
	l := newLab(t)
	l.plan()
	end := 9.0
	for _, incident := range []runapi.Incident{
		{What: "AppFailed", Node: "nor", FromSeconds: 3, Reason: "app hub ended"},
		{What: "AppFailed", Node: "nor", FromSeconds: 3, Reason: "app bft ended"},
		{What: "AppFailed", Node: "nor", FromSeconds: 3, Reason: "app hub ended", ToSeconds: &end},
	} {
		if err := l.as("operator").Incident(context.Background(), runUID, incident); err != nil {
			t.Fatal(err)
		}
	}
	state, err := l.as("operator").State(context.Background(), runUID)
	if err != nil || len(state.Incidents) != 2 || state.Incidents[0].ToSeconds == nil || state.Incidents[1].Reason != "app bft ended" {
		t.Errorf("incidents are %+v (%v), want both, the first one ended", state.Incidents, err)
	}
}
