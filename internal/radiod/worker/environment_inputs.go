package worker

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

var errNoPathloss = errors.New("pathloss: Scenario needs a scenario with pathloss, and the experiment has none")

var errNoEffects = errors.New("commEffects need a scenario, and the experiment has none")

// updateEnvironment updates a network's environment to its object; the lock is held. An error says what is missing.
func (n *network) updateEnvironment() error {
	spec := &n.object.Spec
	if spec.Waveform.PHY() == nil && !spec.CommEffects {
		return nil
	}
	var compiled *scenario.Scenario
	if spec.Scenario != "" {
		var err error
		if compiled, err = n.room.library.get(spec.Scenario); err != nil {
			n.stopPreparer()
			return err
		}
	}
	s := environmentInputsOf(spec, compiled)
	if s.effects && compiled == nil {
		n.stopPreparer()
		return errNoEffects
	}
	if !s.effects && s.source == v1alpha1.PathlossScenario && (compiled == nil || !compiled.HasPathloss()) {
		n.stopPreparer()
		return refusal.Of(errNoPathloss)
	}
	if n.preparer != nil && n.preparer.preparer.equal(s) {
		return nil
	}
	steps := &n.steps
	if spec.Engine == v1alpha1.EngineEMANE {
		steps = &stepCounters{} // the events to EMANE are counted instead
	}
	o, err := newBackgroundPreparer(s, steps, func(err error) { go n.preparationFailed(err) })
	n.stopPreparer()
	if err != nil {
		return refusal.Of(err)
	}
	n.preparer = o
	n.environment.moments.Store(o.momentChain)
	return nil
}

// equal reports whether two inputs are equal.
func (s *environmentInputs) equal(other *environmentInputs) bool {
	return s.effects == other.effects && s.scenario == other.scenario && s.t0 == other.t0 && s.source == other.source && s.frequencyHertz == other.frequencyHertz &&
		slices.Equal(s.fixedGains, other.fixedGains) &&
		equality.Semantic.DeepEqual(s.members, other.members) && equality.Semantic.DeepEqual(s.changes, other.changes)
}

// stopPreparer ends the preparation of future moments.
func (n *network) stopPreparer() {
	if n.preparer != nil {
		n.preparer.stop()
		n.preparer = nil
	}
}

// preparationFailed records a failed preparation; nil when it succeeds again.
func (n *network) preparationFailed(err error) {
	n.room.mu.Lock()
	if err != nil {
		n.room.Log.Error("prepare a network's pathloss", "network", n.object.Name, "error", err)
	}
	n.preparationError = refusal.Of(err)
	uid := string(n.object.UID)
	n.room.mu.Unlock()
	n.room.Changed(uid)
}

// FetchScenarios fetches the scenarios that networks wait for, until ctx ends.
func (m *Networks) FetchScenarios(ctx context.Context) error {
	m.library.fetch(ctx, m.Scenarios, m.scenarioArrived)
	return nil
}

// scenarioArrived updates networks that waited for a scenario.
func (m *Networks) scenarioArrived(digest string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, n := range m.networks {
		if n.object.Spec.Scenario != digest || n.running == nil && n.driver == nil {
			continue
		}
		if n.driver != nil {
			n.updateDriver()
			continue
		}
		if err := n.change(&n.object.Spec); err != nil {
			n.message = err.Error()
		}
		m.Changed(uid)
	}
}

// RemoveUnusedScenarios removes the scenarios that no network needs any more.
func (m *Networks) RemoveUnusedScenarios() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := map[string]bool{}
	for _, n := range m.networks {
		used[n.object.Spec.Scenario] = true
	}
	return m.library.removeUnused(used)
}
