package references

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scenarios"
	"vignette.dev/vignette/operators/experiment/scope"
)

// measureTimeout limits how long the distances of an experiment's networks are looked for. Afterwards they count as unknown.
const measureTimeout = 20 * time.Second

// measured are the greatest distances of an experiment's networks in a scenario.
type measured struct {
	digest   string
	networks []render.Roaming
	farthest map[string]render.Separation
}

// measureDistances finds the distances that the networks of a waiting experiment need in its scenario.
func (r *Resolver) measureDistances(ctx context.Context, s *scope.Scope) {
	if !s.Valid || s.Scenario == nil || r.Scenarios == nil || s.Phase() == v1alpha1.PhaseProvisioning { // it was accepted
		return
	}
	networks := render.RoamingNetworks(&s.Experiment.Spec, s.Topology, s.Waveforms, s.Scenario)
	if len(networks) == 0 {
		return
	}
	uid, all := s.Experiment.UID, r.distances.entries()
	known, _ := all.Get(uid)
	m, ok := known.(*measured)
	if !ok || m.digest != s.Scenario.Digest || !reflect.DeepEqual(m.networks, networks) {
		m = &measured{digest: s.Scenario.Digest, networks: networks, farthest: map[string]render.Separation{}}
		if err := scenarios.Use(ctx, r.Scenarios, m.digest, func(compiled *scenario.Scenario) error { return m.measure(ctx, compiled) }); err != nil {
			s.AddFinding(scope.ReasonScenarioNotReady, field.Invalid(field.NewPath("spec", "scenario", "ref"), s.Scenario.Name, fmt.Sprintf("its positions cannot be read from the server: %v", err)))
			return
		}
		all.Add(uid, m)
	}
	s.Scenario.Farthest = m.farthest
}

// measure leaves out networks for which there is no time.
func (m *measured) measure(ctx context.Context, compiled *scenario.Scenario) error {
	limited, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	for _, network := range m.networks {
		far, err := network.Separation(limited, compiled)
		switch {
		case limited.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
		m.farthest[network.Network] = far
	}
	return nil
}
