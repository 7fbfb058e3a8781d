package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/position"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/scenario"
)

// hills is a scenario in which platform 1 goes north, platform 2 stands, and platform 3 has pathloss alone.
func hills(t *testing.T) (digest string, content []byte) {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	err := errors.Join(b.Position(0, 1, geo.Position{Latitude: 58}), b.Position(5*time.Second, 1, geo.Position{Latitude: 59}),
		b.Position(0, 2, geo.Position{Latitude: 10}), b.Pathloss(0, 1, 3, 90))
	if err != nil {
		t.Fatal(err)
	}
	var compiled bytes.Buffer
	if digest, err = b.Write(&compiled); err != nil {
		t.Fatal(err)
	}
	return digest, compiled.Bytes()
}

// planOfPlatforms says which platforms carry the nodes; 0 for none.
func planOfPlatforms(digest string, platforms ...int32) func(*runapi.Plan) {
	return func(p *runapi.Plan) {
		p.Scenario = &runapi.PlannedScenario{Name: "hills", Digest: digest}
		for i, platform := range platforms {
			if platform > 0 {
				p.Nodes[i].Platform = &platform
			}
		}
	}
}

func TestAnAgentReadsTheMovementOfItsOwnPlatform(t *testing.T) {
	l := newLab(t)
	digest, content := hills(t)
	if err := l.as("operator").PutScenario(context.Background(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	l.plan(planOfPlatforms(digest, 1, 2))
	for agent, want := range map[string]float64{"nor": 59, "prt": 10} {
		content, err := l.as(agent).Movement(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		m, err := position.New(content)
		if err != nil {
			t.Fatal(err)
		}
		if p, _, err := m.At(5 * time.Second); err != nil || p.Latitude != want {
			t.Errorf("%s is at latitude %v, %v; want %v", agent, p.Latitude, err, want)
		}
	}
}

func TestAPlatformWithoutPositionsHasAnEmptyMovement(t *testing.T) {
	l := newLab(t)
	digest, content := hills(t)
	if err := l.as("operator").PutScenario(context.Background(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	l.plan(planOfPlatforms(digest, 3))
	if content, err := l.as("nor").Movement(context.Background()); err != nil || len(content) != 0 {
		t.Errorf("%d bytes, %v; want none", len(content), err)
	}
}

func TestAMovementThatCannotBeHadIsRefusedWithAReason(t *testing.T) {
	digest, _ := hills(t)
	garbage := []byte("no scenario")
	for name, c := range map[string]struct {
		token  string
		change func(*runapi.Plan)
		want   int
	}{
		"no scenario in the plan": {"nor", func(*runapi.Plan) {}, http.StatusNotFound},
		"a node without platform": {"hq", planOfPlatforms(digest, 1), http.StatusNotFound},
		"a deleted scenario":      {"nor", planOfPlatforms(digest, 1), http.StatusNotFound},
		"a damaged scenario":      {"nor", planOfPlatforms(digestOf(garbage), 1), http.StatusUnprocessableEntity},
		"a user":                  {"admin", planOfPlatforms(digest, 1), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if err := l.as("operator").PutScenario(context.Background(), digestOf(garbage), bytes.NewReader(garbage)); err != nil {
				t.Fatal(err)
			}
			l.plan(c.change)
			if _, err := l.as(c.token).Movement(context.Background()); status(err) != c.want {
				t.Errorf("%v; want status %d", err, c.want)
			}
		})
	}
}
