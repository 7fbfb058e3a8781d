package references

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scenarios"
	"vignette.dev/vignette/operators/experiment/scope"
)

const (
	// measureTimeout limits how long the distances of an experiment's networks are looked for. Afterwards they count as unknown.
	measureTimeout = 20 * time.Second
	// positionsRetry is the time between two tries to read a scenario's positions.
	positionsRetry = 5 * time.Second
)

// errMeasuring means that the distances of other networks are being measured.
var errMeasuring = errors.New("other distances are being measured")

// distances are the greatest ones of networks in scenarios. Runs over one scenario share them.
type distances struct {
	once  sync.Once
	known *lru.Cache
	// measuring is held while some are measured, so that a slow server holds up one worker at most.
	measuring sync.Mutex
}

// measureDistances finds the distances that the networks of a waiting experiment need in its scenario. It returns true if
// the experiment must wait for them.
func (r *Resolver) measureDistances(ctx context.Context, s *scope.Scope) (wait bool) {
	if !s.Valid || s.Scenario == nil || r.Scenarios == nil || s.Experiment.Spec.Stop || s.Phase() == v1alpha1.PhaseProvisioning { // it was accepted
		return false
	}
	networks := render.RoamingNetworks(&s.Experiment.Spec, s.Topology, s.Waveforms, s.Scenario)
	if len(networks) == 0 {
		return false
	}
	farthest, err := r.distances.of(ctx, r.Scenarios, s.Scenario.Digest, networks)
	var unavailable *scenarios.UnavailableError
	switch {
	case err == nil:
		s.Scenario.Farthest = farthest
	case errors.Is(err, errMeasuring) || errors.As(err, &unavailable):
		if len(s.Findings) > 0 { // it is refused anyway
			return false
		}
		log.FromContext(ctx).Info("the distances in a scenario are not known yet; trying again", "scenario", s.Scenario.Name, "error", err.Error())
		// The message is always the same, because each change of the status makes a reconciliation.
		waitForScenario(s, scope.ReasonScenarioUnavailable, fmt.Sprintf("waiting until the server has given the positions of scenario %s", s.Scenario.Name))
		s.RequeueAfter(positionsRetry)
		return true
	default:
		s.AddFinding(scope.ReasonScenarioNotReady, field.Invalid(field.NewPath("spec", "scenario", "ref"), s.Scenario.Name, fmt.Sprintf("its positions cannot be read from the server: %v", err)))
	}
	return false
}

// waitForScenario keeps an experiment queued, and does not refuse it, as nobody has to change anything.
func waitForScenario(s *scope.Scope, reason, message string) {
	status := &s.Experiment.Status
	if status.Phase == "" {
		status.Phase = v1alpha1.PhaseQueued
		s.NormalEvent(string(v1alpha1.PhaseQueued), "waiting to be admitted")
	}
	status.Message = message
	s.SetCondition(v1alpha1.ConditionAccepted, metav1.ConditionUnknown, reason, message)
}

// of returns the greatest distances of networks in a scenario by the networks' names, or errMeasuring.
func (d *distances) of(ctx context.Context, store scenarios.Store, digest string, networks []render.Roaming) (map[string]render.Separation, error) {
	d.once.Do(func() { d.known = lru.New(maxCachedExperiments) })
	text, err := json.Marshal(networks)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(append([]byte(digest), text...))
	if farthest, found := d.known.Get(key); found {
		return farthest.(map[string]render.Separation), nil
	}
	if !d.measuring.TryLock() {
		return nil, errMeasuring
	}
	defer d.measuring.Unlock()
	farthest := map[string]render.Separation{}
	err = scenarios.Use(ctx, store, digest, func(compiled *scenario.Scenario) error { return measure(ctx, compiled, networks, farthest) })
	if err != nil {
		return nil, err
	}
	d.known.Add(key, farthest)
	return farthest, nil
}

// measure adds the greatest distances of networks. It leaves out those for which there is no time.
func measure(ctx context.Context, compiled *scenario.Scenario, networks []render.Roaming, to map[string]render.Separation) error {
	limited, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	for _, network := range networks {
		far, err := network.Separation(limited, compiled)
		switch {
		case limited.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
		to[network.Network] = far
	}
	return nil
}
