package worker

import (
	"math"
	"slices"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// antennas of a network in which members have antenna profiles. The radio model adds the members' fixed gains
// to each power. The pathloss carries by how much the profiles' gains differ from those, so that the model needs
// no directions.
type antennas struct {
	// fixed gains of the members in dBi, as the radio model has them now.
	fixed []float64
	// now are the members' antennas, mounts where they are.
	now    []aimed
	mounts []antenna.Mount
	// towards is each member's gain in dBi towards the others, by rows; only that of members with a profile is kept.
	towards []float64
}

// aimed is what decides the gain of a member's antenna. It is compared, to find out what has changed.
type aimed struct {
	antenna.Platform
	antenna.Pointed
	placed bool
}

// fixedGainsOf a network's members; nil where none of them has an antenna profile.
func fixedGainsOf(spec *v1alpha1.RadioNetworkSpec, compiled *scenario.Scenario) (dBi []float64) {
	if compiled == nil || spec.Waveform.PHY() == nil {
		return nil
	}
	platforms := compiled.AntennaPlatforms()
	if !slices.ContainsFunc(spec.Members, func(m v1alpha1.Member) bool { return m.Platform != nil && slices.Contains(platforms, int(*m.Platform)) }) {
		return nil
	}
	for _, r := range newRadios(spec, "").own {
		dBi = append(dBi, r.AntennaGainDBi)
	}
	return dBi
}

func newAntennas(fixed []float64) *antennas {
	n := len(fixed)
	return &antennas{fixed: slices.Clone(fixed), now: make([]aimed, n), mounts: make([]antenna.Mount, n), towards: make([]float64, n*n)}
}

// aim the members' antennas as they are at a moment, and put their gains into its pathloss.
func (p *preparer) aim(m *moment) {
	n := len(p.members)
	moved := make([]bool, n)
	for i := range p.members {
		now := p.aimed(i, m)
		if moved[i] = now != p.antennas.now[i]; moved[i] {
			p.antennas.now[i], p.antennas.mounts[i] = now, antenna.NewMount(now.Platform, now.placement())
		}
	}
	p.antennas.turn(moved)
	m.bare, m.pathloss = m.pathloss, make([]float32, n*n)
	if p.tail != nil && bytesEqual(p.tail.bare, m.bare) {
		m.bare = p.tail.bare // less to keep
	}
	for i := range n {
		for j := range n {
			m.pathloss[i*n+j] = lossOf(float64(m.bare[i*n+j]) - p.antennas.above(i, j) - p.antennas.above(j, i))
		}
	}
}

// aimed is how a member's antenna is at a moment.
func (p *preparer) aimed(i int, m *moment) (a aimed) {
	a.Position, a.placed = m.positions[i], m.placed[i]
	platform := p.platforms[i]
	if platform < 0 || p.stands[i] {
		return a
	}
	a.Velocity, _ = p.cursor.Velocity(platform) // unknown, it turns nothing
	a.Orientation, _ = p.cursor.Orientation(platform)
	if profile, known := p.cursor.AntennaProfile(platform); known {
		a.Pointed = antenna.Pointed{Profile: p.scenario.Antennas().Find(profile.ID), Azimuth: profile.Azimuth, Elevation: profile.Elevation}
	}
	return a
}

func (a *aimed) placement() antenna.Placement {
	if a.Profile == nil {
		return antenna.Placement{}
	}
	return a.Profile.Placement
}

// turn the antennas towards the others, where one of the two has moved.
func (a *antennas) turn(moved []bool) {
	n := len(a.now)
	for i := range n {
		if a.now[i].Profile == nil {
			continue
		}
		for j := range n {
			if i != j && (moved[i] || moved[j]) {
				a.towards[i*n+j] = a.gain(i, &a.mounts[j], a.now[j].placed)
			}
		}
	}
}

// gain of a member with a profile towards a mount. Where a place is unknown there is no direction, and nothing is received, as in EMANE.
func (a *antennas) gain(i int, to *antenna.Mount, placed bool) float64 {
	if !placed || !a.now[i].placed {
		return math.NaN()
	}
	return a.now[i].Gain(&a.mounts[i], to)
}

// above is how much the gain of one member towards another is above its fixed one: 0 without a profile.
func (a *antennas) above(i, j int) float64 {
	if a.now[i].Profile == nil {
		return 0
	}
	return a.towards[i*len(a.now)+j] - a.fixed[i]
}

// gainOver is how much the gain of a member towards a position is above its fixed one: 0 without a profile.
func (a *antennas) gainOver(i int, position geo.Position) float64 {
	if a == nil || a.now[i].Profile == nil {
		return 0
	}
	to := antenna.NewMount(antenna.Platform{Position: position}, antenna.Placement{})
	return a.gain(i, &to, true) - a.fixed[i]
}
