package networks

import (
	"context"
	"errors"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/preparation"
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
		if compiled, err = n.networks.library.Get(spec.Scenario); err != nil {
			n.stopPreparer()
			return err
		}
	}
	needsPathloss := !spec.CommEffects && spec.Waveform.PHY().PathlossFrom() == v1alpha1.PathlossScenario
	switch {
	case spec.CommEffects && compiled == nil:
		n.stopPreparer()
		return errNoEffects
	case needsPathloss && (compiled == nil || !compiled.HasPathloss()):
		n.stopPreparer()
		return refusal.Of(errNoPathloss)
	}
	inputs := preparation.InputsOf(spec, n.neighbours(), compiled)
	if n.preparer != nil && n.preparer.IsOf(inputs) {
		return nil
	}
	steps := &n.steps
	if spec.Engine == v1alpha1.EngineEMANE {
		steps = &preparation.StepCounters{} // the events to EMANE are counted instead
	}
	p, err := preparation.New(inputs, steps)
	n.stopPreparer()
	if err != nil {
		return refusal.Of(err)
	}
	n.preparer = p
	return nil
}

// beginPreparation hands the network's environment to the data plane, unless it has it; the lock is held.
func (n *network) beginPreparation() error {
	if n.preparer == nil {
		return nil
	}
	set := n.networks.Plane.SetEnvironment
	if n.object.Spec.Engine == v1alpha1.EngineEMANE {
		set = func(*dataplane.Environment) error { return nil } // EMANE gets events
	}
	return n.preparer.Begin(string(n.object.UID), set, func(err error) { go n.preparationFailed(err) })
}

// stopPreparer ends the preparation of future moments.
func (n *network) stopPreparer() {
	if n.preparer != nil {
		n.preparer.Stop()
		n.preparer = nil
	}
}

// preparationFailed records a failed preparation; nil when it succeeds again.
func (n *network) preparationFailed(err error) {
	n.networks.mu.Lock()
	if err != nil {
		n.networks.Log.Error("prepare a network's pathloss", "network", n.object.Name, "error", err)
	}
	n.preparationError = refusal.Of(err)
	uid := string(n.object.UID)
	n.networks.mu.Unlock()
	n.networks.Changed(uid)
}

// FetchScenarios fetches the scenarios that networks wait for, until ctx ends.
func (m *Networks) FetchScenarios(ctx context.Context) error {
	m.library.Fetch(ctx, m.Scenarios, m.scenarioArrived)
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
	return m.library.RemoveUnused(used)
}
