package preparation

import (
	"math"
	"slices"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// antennas of a network in which members have antenna profiles. The radio model adds the members' fixed gains
// to each power. The pathloss carries by how much the profiles' gains differ from those, so that the model needs
// no directions.
type antennas struct {
	// fixed gains of the members in dBi, as the radio model has them now.
	fixed []float64
	// states are the members' antennas, mounts their mounts.
	states []antennaState
	mounts []antenna.Mount
	// towards is each member's gain in dBi towards the others, by rows; only for members with a profile.
	towards []float64
}

// antennaState has what determines the gain of a member's antenna. Comparing it shows changes.
type antennaState struct {
	antenna.Platform
	antenna.Pointed
	placed bool
}

// hasProfile reports whether a member of a network has an antenna profile in the scenario.
func hasProfile(spec *v1alpha1.RadioNetworkSpec, compiled *scenario.Scenario) bool {
	if compiled == nil || spec.Waveform.PHY() == nil {
		return false
	}
	platforms := compiled.AntennaPlatforms()
	return slices.ContainsFunc(spec.Members, func(m v1alpha1.Member) bool { return m.Platform != nil && slices.Contains(platforms, int(*m.Platform)) })
}

// fixedGainsOf returns the fixed gains of a network's members.
func fixedGainsOf(spec *v1alpha1.RadioNetworkSpec) (dBi []float64) {
	own, _ := linkbudget.Radios(spec, "")
	for i := range own {
		dBi = append(dBi, own[i].AntennaGainDBi)
	}
	return dBi
}

func newAntennas(fixed []float64) *antennas {
	n := len(fixed)
	return &antennas{fixed: slices.Clone(fixed), states: make([]antennaState, n), mounts: make([]antenna.Mount, n), towards: make([]float64, n*n)}
}

// aimAntennas points the members' antennas at a moment, and includes their gains in its pathloss.
func (p *preparer) aimAntennas(m *moment) {
	n := len(p.members)
	moved := make([]bool, n)
	for i := range p.members {
		now := p.antennaAt(i, m)
		if moved[i] = now != p.antennas.states[i]; moved[i] {
			p.antennas.states[i], p.antennas.mounts[i] = now, antenna.NewMount(now.Platform, now.placement())
		}
	}
	p.antennas.updateGains(moved)
	m.withoutAntennas, m.Pathloss = m.Pathloss, make([]float32, n*n)
	if p.tail != nil && bytesEqual(p.tail.withoutAntennas, m.withoutAntennas) {
		m.withoutAntennas = p.tail.withoutAntennas // saves memory
	}
	for i := range n {
		for j := range n {
			m.Pathloss[i*n+j] = lossOf(float64(m.withoutAntennas[i*n+j]) - p.antennas.gainDifference(i, j) - p.antennas.gainDifference(j, i))
		}
	}
}

// antennaAt returns the state of a member's antenna at a moment.
func (p *preparer) antennaAt(i int, m *moment) (a antennaState) {
	a.Position, a.placed = m.positions[i], m.placed[i]
	platform := p.platforms[i]
	if platform < 0 || p.isFixed[i] {
		return a
	}
	a.Velocity, _ = p.cursor.Velocity(platform) // an unknown one turns nothing
	a.Orientation, _ = p.cursor.Orientation(platform)
	if profile, known := p.cursor.AntennaProfile(platform); known {
		a.Pointed = antenna.Pointed{Profile: p.scenario.Antennas().Find(profile.ID), Azimuth: profile.Azimuth, Elevation: profile.Elevation}
	}
	return a
}

func (a *antennaState) placement() antenna.Placement {
	if a.Profile == nil {
		return antenna.Placement{}
	}
	return a.Profile.Placement
}

// updateGains updates the gains of pairs of which one member has moved.
func (a *antennas) updateGains(moved []bool) {
	n := len(a.states)
	for i := range n {
		if a.states[i].Profile == nil {
			continue
		}
		for j := range n {
			if i != j && (moved[i] || moved[j]) {
				a.towards[i*n+j] = a.gain(i, &a.mounts[j], a.states[j].placed)
			}
		}
	}
}

// gain of a member with a profile towards a mount. Without a known place there is no direction, and nothing
// is received, as in EMANE.
func (a *antennas) gain(i int, to *antenna.Mount, placed bool) float64 {
	if !placed || !a.states[i].placed {
		return math.NaN()
	}
	return a.states[i].Gain(&a.mounts[i], to)
}

// gainDifference is the difference of one member's gain towards another and its fixed gain: 0 without a profile.
func (a *antennas) gainDifference(i, j int) float64 {
	if a.states[i].Profile == nil {
		return 0
	}
	return a.towards[i*len(a.states)+j] - a.fixed[i]
}

// gainDifferenceTowards is the difference of a member's gain towards a position and its fixed gain: 0 without a profile.
func (a *antennas) gainDifferenceTowards(i int, position geo.Position) float64 {
	if a == nil || a.states[i].Profile == nil {
		return 0
	}
	to := antenna.NewMount(antenna.Platform{Position: position}, antenna.Placement{})
	return a.gain(i, &to, true) - a.fixed[i]
}
