package mapdata

import (
	"context"
	"slices"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// expected are the links that a network's radios could have at a time: received power above the receiver's sensitivity, without
// interference and jammers. Nil for the link model, for radios with antenna profiles, and while the network is silent.
// The caller's turn to work bounds how many scenarios are read at a time.
func (m *Maps) expected(ctx context.Context, s Source, spec *v1alpha1.RadioNetworkSpec, at time.Duration) ([]Link, error) {
	if spec.Waveform.PHY() == nil || silentAt(spec, at) {
		return nil, nil
	}
	var compiled *scenario.Scenario
	if spec.Scenario != "" {
		var err error
		if compiled, err = m.scenario(ctx, s, spec.Scenario); err != nil {
			return nil, err
		}
		if len(compiled.AntennaPlatforms()) > 0 {
			return nil, nil
		}
	}
	b, err := newBudget(spec, compiled, at)
	if err != nil {
		return nil, errorOf(err)
	}
	return b.links(), ctx.Err()
}

// silentAt reports whether all radios of a network are silent at a time after T0.
func silentAt(spec *v1alpha1.RadioNetworkSpec, at time.Duration) bool {
	silent := false
	for i := range spec.Changes {
		if c := &spec.Changes[i]; c.Silent != nil && c.AtNanoseconds <= int64(at) {
			silent = *c.Silent
		}
	}
	return silent || spec.Silent
}

// budget of a network's links at a time.
type budget struct {
	spec   *v1alpha1.RadioNetworkSpec
	source v1alpha1.PathlossSource
	radios []linkbudget.Radio
	// sends and listens are the members' frequencies by the network's own schedule; nil without one, as each radio has one frequency.
	sends, listens [][]uint64
	antennas       []geo.Position
	placed         []bool
	// cursor at the time, nil without a scenario, and the members' indexes in it, -1 for none.
	cursor    *scenario.Cursor
	platforms []int
}

func newBudget(spec *v1alpha1.RadioNetworkSpec, compiled *scenario.Scenario, at time.Duration) (*budget, error) {
	physical, n := spec.Waveform.PHY(), len(spec.Members)
	b := &budget{spec: spec, source: physical.PathlossFrom(), antennas: make([]geo.Position, n), placed: make([]bool, n), platforms: make([]int, n)}
	b.radios, _ = linkbudget.Radios(spec, "")
	for i := range spec.Changes {
		if c := &spec.Changes[i]; c.Radio != nil && c.AtNanoseconds <= int64(at) {
			linkbudget.Patch(b.radios, spec.Members, c.From, c.Radio)
		}
	}
	b.followSchedule(at)
	if compiled != nil {
		b.cursor = compiled.NewCursor()
		if err := b.cursor.Seek(at); err != nil {
			return nil, err
		}
	}
	for i := range spec.Members {
		member := &spec.Members[i]
		b.platforms[i] = -1
		if member.Platform != nil && compiled != nil {
			if index, known := compiled.Index(int(*member.Platform)); known {
				b.platforms[i] = index
				b.antennas[i], b.placed[i] = b.cursor.Position(index)
			}
		}
		if member.Position != nil {
			b.antennas[i], b.placed[i] = linkbudget.Position(member.Position), true
		}
		b.antennas[i] = linkbudget.Antenna(b.source, b.antennas[i], physical.AntennaMetres(spec.Radios, member.Node, member.Group))
	}
	return b, nil
}

// followSchedule gives the radios the frequencies of the schedule at a time.
func (b *budget) followSchedule(at time.Duration) {
	if b.spec.Waveform.TDMA == nil {
		return
	}
	current, later, _ := linkbudget.Schedules(b.spec, b.spec.Changes) // radiod reports the error
	for i := range b.spec.Changes {
		if c := &b.spec.Changes[i]; later[&c.RadioChange] != nil && c.AtNanoseconds <= int64(at) {
			current = later[&c.RadioChange]
		}
	}
	if current == nil || current.Generated() {
		return
	}
	for i, hertz := range linkbudget.Frequencies(b.spec, current) {
		nem := int(b.spec.Members[i].NEM)
		b.radios[i].FrequencyHertz = hertz
		b.sends, b.listens = append(b.sends, current.Frequencies(nem, tdma.Transmit)), append(b.listens, current.Frequencies(nem, tdma.Receive))
	}
}

// hears reports whether a member listens where another sends.
func (b *budget) hears(to, from int) bool {
	if b.radios[from].SubID != b.radios[to].SubID {
		return false
	}
	if b.sends == nil {
		return b.radios[from].FrequencyHertz == b.radios[to].FrequencyHertz
	}
	return slices.ContainsFunc(b.sends[from], func(hertz uint64) bool { return slices.Contains(b.listens[to], hertz) })
}

// pathloss from one member to another.
func (b *budget) pathloss(i, j int) (dB float64, known bool) {
	if b.source != v1alpha1.PathlossScenario {
		return linkbudget.Model(b.source).Pathloss(b.antennas[i], b.antennas[j], b.radios[i].FrequencyHertz), b.placed[i] && b.placed[j]
	}
	if b.cursor == nil || b.platforms[i] < 0 || b.platforms[j] < 0 {
		return 0, false
	}
	return b.cursor.PathlossAt(b.platforms[i], b.platforms[j], uint64(b.radios[i].FrequencyHertz))
}

func (b *budget) links() []Link {
	links := []Link{}
	for i := range b.radios {
		for j := range b.radios {
			from, to := &b.radios[i], &b.radios[j]
			if i == j || !from.Transmit || !b.hears(j, i) {
				continue
			}
			loss, known := b.pathloss(i, j)
			sinr := from.TransmitPowerDBm + from.AntennaGainDBi + to.AntennaGainDBi - loss - to.SensitivityDBm()
			if known && sinr >= 0 { // NaN is not
				sinr, loss = round(sinr, 100), round(loss, 100)
				links = append(links, Link{From: b.spec.Members[i].Node, To: b.spec.Members[j].Node, SINR: &sinr, Pathloss: &loss, Expected: true})
			}
		}
	}
	return links
}

// withExpected adds the expected links that are not there.
func withExpected(links, expected []Link) []Link {
	there := map[pair]bool{}
	for i := range links {
		there[pair{links[i].From, links[i].To}] = true
	}
	for i := range expected {
		if !there[pair{expected[i].From, expected[i].To}] {
			links = append(links, expected[i])
		}
	}
	slices.SortFunc(links, byNodes)
	return links
}
