// Package preparation computes the environment of a network's radios ahead of time: positions, pathloss, antennas' gains,
// comm effects and jamming, as a scenario and a network's changes have them.
package preparation

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// maxMembers bounds the memory of a network's pathloss, 4 bytes for each pair of members and moment.
	maxMembers = 2048
	// lookAhead is how long before its time a moment is prepared, if there is room.
	lookAhead = 2 * time.Second
	// maxAhead and maxAheadBytes bound the prepared moments; two are always allowed.
	maxAhead      = 64
	maxAheadBytes = 8 << 20
	// pairSpacing is the least time between two steps of the scenario, for each pair of members. Changes in
	// between come with the next step. Steps then take a few percent of a processor at most. Antenna profiles add
	// to that, for each pair with a profile of which one member has moved or turned.
	pairSpacing = time.Microsecond
)

// moment is the environment from one time until the next moment. It does not change once it is made.
type moment struct {
	// Step is for the radio model. Its pathloss carries by how much the gains of antenna profiles differ from the fixed ones.
	dataplane.Step
	// withoutAntennas is the pathloss without the gains of antenna profiles, as it is reported; Step.Pathloss itself where
	// no member has one.
	withoutAntennas []float32
	// positions of the members; placed reports which are known.
	positions []geo.Position
	placed    []bool
}

// versions numbers the pathloss of all networks; 0 means none.
var versions atomic.Uint64

// preparer makes a network's moments, in order.
type preparer struct {
	*Inputs
	cursor         *scenario.Cursor // nil without a scenario
	platforms      []int            // the members' indexes in the scenario, -1 for none
	fixedPositions []geo.Position   // of members with a fixed position
	isFixed        []bool
	// The state at the last moment.
	frequencies []float64 // by sender
	retuned     bool      // since then
	jammers     []v1alpha1.Jammer
	applied     int // of the changes
	antennas    *antennas
	tail        *moment
}

func newPreparer(s *Inputs) *preparer {
	n := len(s.members)
	p := &preparer{Inputs: s, platforms: make([]int, n), fixedPositions: make([]geo.Position, n), isFixed: make([]bool, n), frequencies: make([]float64, n)}
	if s.scenario != nil {
		p.cursor = s.scenario.NewCursor()
	}
	for i := range s.members {
		member := &s.members[i]
		p.frequencies[i], p.platforms[i] = s.startFrequencies[i], -1
		if member.Platform != nil && s.scenario != nil {
			if index, ok := s.scenario.Index(int(*member.Platform)); ok {
				p.platforms[i] = index
			}
		}
		if member.Position != nil {
			p.fixedPositions[i], p.isFixed[i] = linkbudget.Position(member.Position), true
		}
	}
	if s.fixedGains != nil {
		p.antennas = newAntennas(s.fixedGains)
	}
	return p
}

// moment makes the moment at a time after T0 in nanoseconds, not earlier than the one before.
func (p *preparer) moment(at int64) (*moment, error) {
	if err := p.seek(at); err != nil {
		return nil, err
	}
	m := &moment{Step: dataplane.Step{AtNanoseconds: at}}
	p.setPositions(m)
	if p.effects {
		p.setEffects(m)
	} else {
		p.setPathloss(m)
		p.addJammers(m)
	}
	p.tail = m
	return m, nil
}

// seek goes to a time, not earlier than that of the last moment.
func (p *preparer) seek(at int64) error {
	if p.cursor != nil {
		if err := p.cursor.Seek(time.Duration(max(at, 0))); err != nil {
			return fmt.Errorf("scenario at %v: %w", time.Duration(max(at, 0)), err)
		}
	}
	for p.applied < len(p.changes) && p.changes[p.applied].AtNanoseconds <= at {
		p.apply(&p.changes[p.applied])
		p.applied++
	}
	return nil
}

// apply applies a change of a jammer or of frequencies.
func (p *preparer) apply(change *change) {
	if change.frequencies != nil {
		copy(p.frequencies[change.first:change.end], change.frequencies)
		p.retuned = true
	}
	for i := change.first; i < change.end; i++ {
		if change.Radio == nil || !linkbudget.Includes(change.From, &p.members[i]) {
			continue
		}
		if change.Radio.Frequency != nil {
			p.frequencies[i], p.retuned = change.Radio.Frequency.Hertz(), true
		}
		if change.Radio.AntennaGain != nil && p.antennas != nil {
			p.antennas.fixed[i] = change.Radio.AntennaGain.DBi()
		}
	}
	if j := change.Jammer; j != nil {
		p.jammers = slices.DeleteFunc(slices.Clone(p.jammers), func(other v1alpha1.Jammer) bool { return other.Name == j.Name })
		if !j.Ended() {
			p.jammers = append(p.jammers, *j)
		}
	}
}

// setPositions sets the members' positions.
func (p *preparer) setPositions(m *moment) {
	m.positions, m.placed = make([]geo.Position, len(p.members)), make([]bool, len(p.members))
	for i := range p.members {
		switch {
		case p.isFixed[i]:
			m.positions[i], m.placed[i] = p.fixedPositions[i], true
		case p.platforms[i] >= 0:
			m.positions[i], m.placed[i] = p.cursor.Position(p.platforms[i])
		}
	}
}

var unknownLoss = float32(math.NaN())

// setPathloss sets the pathloss of each pair of members.
func (p *preparer) setPathloss(m *moment) {
	n := len(p.members)
	m.Pathloss, m.Version = make([]float32, n*n), versions.Add(1)
	if p.source == v1alpha1.PathlossScenario {
		p.readPathloss(m)
	} else {
		p.computePathloss(m)
	}
	if p.antennas != nil {
		p.aimAntennas(m)
	}
	if p.tail != nil && bytesEqual(p.tail.Pathloss, m.Pathloss) {
		m.Pathloss, m.Version = p.tail.Pathloss, p.tail.Version // there is nothing to learn, and less to keep
	}
	if p.antennas == nil {
		m.withoutAntennas = m.Pathloss
	}
}

// setEffects copies the scenario's comm effects.
func (p *preparer) setEffects(m *moment) {
	n := len(p.members)
	m.Effects = make([]dataplane.Effect, n*n)
	for i, from := range p.platforms {
		for j, to := range p.platforms {
			if from < 0 || to < 0 || i == j {
				continue
			}
			if e, known := p.cursor.CommEffect(from, to); known {
				m.Effects[i*n+j] = dataplane.Effect{Effect: link.Effect{Latency: e.Latency, Jitter: e.Jitter, Loss: e.LossPercent / 100, Duplicate: e.DuplicationPercent / 100,
					Unicast: float64(e.UnicastBitsPerSecond), Broadcast: float64(e.BroadcastBitsPerSecond)}, Known: true}
			}
		}
	}
	if p.tail != nil && slices.Equal(p.tail.Effects, m.Effects) {
		m.Effects = p.tail.Effects // less to keep
	}
}

// bytesEqual compares bit by bit, because NaN, an unknown pathloss, equals nothing.
func bytesEqual(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// computePathloss computes the pathloss from the positions.
func (p *preparer) computePathloss(m *moment) {
	n, model, before := len(p.members), linkbudget.Model(p.source), p.tail
	if p.retuned {
		before, p.retuned = nil, false
	}
	for i := range n {
		for j := range n {
			k := i*n + j
			switch {
			case p.nodes[i] == p.nodes[j] || !m.placed[i] || !m.placed[j]:
				m.Pathloss[k] = unknownLoss
			case before != nil && before.placed[i] && before.placed[j] && before.positions[i] == m.positions[i] && before.positions[j] == m.positions[j]:
				m.Pathloss[k] = before.withoutAntennas[k]
			case j < i && p.frequencies[i] == p.frequencies[j]:
				m.Pathloss[k] = m.Pathloss[j*n+i] // there is as far as back
			default:
				m.Pathloss[k] = lossOf(model.Pathloss(linkbudget.Antenna(p.source, m.positions[i], p.heights[i]), linkbudget.Antenna(p.source, m.positions[j], p.heights[j]), p.frequencies[i]))
			}
		}
	}
}

func lossOf(dB float64) float32 {
	if math.IsInf(dB, 1) || math.IsNaN(dB) {
		return unknownLoss
	}
	return float32(dB)
}

// readPathloss copies the scenario's pathloss.
func (p *preparer) readPathloss(m *moment) {
	n := len(p.members)
	for i, from := range p.platforms {
		for j, to := range p.platforms {
			m.Pathloss[i*n+j] = unknownLoss
			if from < 0 || to < 0 || p.nodes[i] == p.nodes[j] {
				continue
			}
			if loss, known := p.cursor.PathlossAt(from, to, uint64(p.frequencies[i])); known {
				m.Pathloss[i*n+j] = lossOf(loss)
			}
		}
	}
}

// addJammers computes the jammers' power at each member.
func (p *preparer) addJammers(m *moment) {
	for i := range p.jammers {
		m.Jammers = append(m.Jammers, p.jamming(&p.jammers[i], m))
	}
}

func (p *preparer) jamming(j *v1alpha1.Jammer, m *moment) dataplane.Jamming {
	result := dataplane.Jamming{Noise: linkbudget.NoiseOf(j), Milliwatts: make([]float64, len(p.members))}
	if j.Power == nil {
		return result
	}
	power := j.Power.DBm()
	for i := range p.members {
		switch {
		case j.Pathloss != nil:
			result.Milliwatts[i] = phy.Milliwatts(power - j.Pathloss.DB())
		case j.Position != nil && m.placed[i]:
			from, to := linkbudget.End{Position: linkbudget.Position(j.Position), Height: p.commonHeight}, linkbudget.End{Position: m.positions[i], Height: p.heights[i]}
			loss := linkbudget.JammerLoss(p.source, result.Noise, from, to, p.frequencies[i])
			result.Milliwatts[i] = phy.Milliwatts(power - loss + p.antennas.gainDifferenceTowards(i, linkbudget.Position(j.Position)))
		}
	}
	return result
}

// nextChange returns when something changes after the last moment.
func (p *preparer) nextChange(last int64) (at int64, more bool) {
	if p.applied < len(p.changes) {
		at, more = p.changes[p.applied].AtNanoseconds, true
	}
	if p.cursor == nil {
		return at, more
	}
	if t, moves := p.cursor.Next(); moves {
		spacing := time.Duration(len(p.members)*len(p.members)) * pairSpacing
		if step := max(int64(t), last+int64(spacing)); !more || step < at {
			at, more = step, true
		}
	}
	return at, more
}

// maxPrepared returns the most future moments that may be prepared.
func (p *preparer) maxPrepared() int {
	bytes := 4
	if p.antennas != nil {
		bytes *= 2
	}
	if p.effects {
		bytes = int(unsafe.Sizeof(dataplane.Effect{}))
	}
	return min(max(maxAheadBytes/(bytes*len(p.members)*len(p.members)+1), 2), maxAhead)
}
