package worker

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

var errNoPathloss = errors.New("pathloss: Scenario needs a scenario with pathloss, and the experiment has none")

var errNoEffects = errors.New("commEffects need a scenario, and the experiment has none")

// surround makes the air of a network what its object says; the lock is held. An error says what is missing for it.
func (m *Manager) surround(n *network) error {
	spec := &n.object.Spec
	if spec.Waveform.PHY() == nil && !spec.CommEffects {
		return nil
	}
	var compiled *scenario.Scenario
	if spec.Scenario != "" {
		var err error
		if compiled, err = m.library.get(spec.Scenario); err != nil {
			n.forgetOutlook()
			return err
		}
	}
	s := surroundingsOf(spec, compiled)
	if s.effects && compiled == nil {
		n.forgetOutlook()
		return errNoEffects
	}
	if !s.effects && s.source == v1alpha1.PathlossScenario && (compiled == nil || !compiled.HasPathloss()) {
		n.forgetOutlook()
		return refuse(errNoPathloss)
	}
	if n.outlook != nil && n.outlook.preparer.same(s) {
		return nil
	}
	steps := &n.steps
	if spec.Engine == v1alpha1.EngineEMANE {
		steps = &stepCounters{} // the events to EMANE are what counts
	}
	o, err := newOutlook(s, steps, func(err error) { go m.noteSurroundings(n, err) })
	n.forgetOutlook()
	if err != nil {
		return refuse(err)
	}
	n.outlook = o
	n.air.track.Store(o.track)
	return nil
}

// same tells that two surroundings are the same.
func (s *surroundings) same(other *surroundings) bool {
	return s.effects == other.effects && s.scenario == other.scenario && s.zero == other.zero && s.source == other.source && s.frequencyHertz == other.frequencyHertz &&
		slices.Equal(s.fixedGains, other.fixedGains) &&
		equality.Semantic.DeepEqual(s.members, other.members) && equality.Semantic.DeepEqual(s.changes, other.changes)
}

// forgetOutlook ends the preparation of what is to come.
func (n *network) forgetOutlook() {
	if n.outlook != nil {
		n.outlook.stop()
		n.outlook = nil
	}
}

// noteSurroundings takes what went wrong in preparing them; nil when it goes well again.
func (m *Manager) noteSurroundings(n *network, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.Log.Error("what is between a network's radios", "network", n.object.Name, "error", err)
	}
	n.failing = refuse(err)
	m.Changed(n.object)
}

// FetchScenarios gets the scenarios that networks wait for, until ctx ends.
func (m *Manager) FetchScenarios(ctx context.Context) error {
	m.library.fetch(ctx, m.Scenarios, m.scenarioArrived)
	return nil
}

// scenarioArrived lets networks work that waited for a scenario, or say why they still wait.
func (m *Manager) scenarioArrived(digest string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.networks {
		if n.object.Spec.Scenario != digest || n.running == nil && n.driver == nil {
			continue
		}
		if n.driver != nil {
			m.drive(string(n.object.UID), n)
			continue
		}
		if err := m.changeNetwork(n, &n.object.Spec); err != nil {
			n.message = err.Error()
		}
		m.Changed(n.object)
	}
}

// keepScenarios removes those that no network needs any more.
func (m *Manager) keepScenarios() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := map[string]bool{}
	for _, n := range m.networks {
		used[n.object.Spec.Scenario] = true
	}
	return m.library.keep(used)
}
