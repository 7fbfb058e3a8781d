package server

import (
	"context"
	"testing"

	"vignette.dev/vignette/internal/runapi"
)

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
