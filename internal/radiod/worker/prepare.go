package worker

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
	"unsafe"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// maxEnvironmentMembers bounds the memory of a network's pathloss, 4 bytes for each pair of members and moment.
	maxEnvironmentMembers = 2048
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

// environmentInputs are the inputs of a network's environment.
type environmentInputs struct {
	// t0 is T0 by CLOCK_REALTIME; 0 if it is not set.
	t0      int64
	members []v1alpha1.Member
	// heights of the members' antennas above the ground, in metres; jammers have commonHeight.
	heights      []float64
	commonHeight float64
	source       v1alpha1.PathlossSource
	// effects reports whether the scenario's comm effects are used instead of pathloss.
	effects  bool
	scenario *scenario.Scenario // nil for none
	// frequencyHertz at the network's start.
	frequencyHertz float64
	// fixedGains of the members' antennas in dBi as the network begins; nil where no member has an antenna profile.
	fixedGains []float64
	// changes with jammers and frequencies, and with fixed gains where they count, in order.
	changes []v1alpha1.TimedRadioChange
}

// environmentInputsOf returns the inputs of a network's environment.
func environmentInputsOf(spec *v1alpha1.RadioNetworkSpec, compiled *scenario.Scenario) *environmentInputs {
	physical := cmp.Or(spec.Waveform.PHY(), &v1alpha1.PHY{})
	s := &environmentInputs{effects: spec.CommEffects, members: spec.Members, source: cmp.Or(physical.Pathloss, v1alpha1.PathlossScenario), scenario: compiled,
		frequencyHertz: physical.Frequency.Hertz(), commonHeight: physical.AntennaMetres(nil, "", "")}
	for i := range spec.Members {
		s.heights = append(s.heights, physical.AntennaMetres(spec.Radios, spec.Members[i].Node, spec.Members[i].Group))
	}
	s.fixedGains = fixedGainsOf(spec, compiled)
	if spec.T0 == nil {
		return s
	}
	s.t0 = spec.T0.UnixNano()
	for _, c := range spec.Changes {
		retunes := spec.Waveform.RFPipe != nil && c.Radio != nil && c.Radio.Frequency != nil
		regains := s.fixedGains != nil && c.Radio != nil && c.Radio.AntennaGain != nil
		if c.Jammer != nil || retunes || regains {
			s.changes = append(s.changes, c)
		}
	}
	slices.SortStableFunc(s.changes, func(a, b v1alpha1.TimedRadioChange) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
	return s
}

// preparer makes a network's moments, in order.
type preparer struct {
	*environmentInputs
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

func newPreparer(s *environmentInputs) *preparer {
	n := len(s.members)
	p := &preparer{environmentInputs: s, platforms: make([]int, n), fixedPositions: make([]geo.Position, n), isFixed: make([]bool, n), frequencies: make([]float64, n)}
	if s.scenario != nil {
		p.cursor = s.scenario.NewCursor()
	}
	for i := range s.members {
		member := &s.members[i]
		p.frequencies[i], p.platforms[i] = s.frequencyHertz, -1
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
	if p.cursor != nil {
		if err := p.cursor.Seek(time.Duration(max(at, 0))); err != nil {
			return nil, fmt.Errorf("scenario at %v: %w", time.Duration(max(at, 0)), err)
		}
	}
	for p.applied < len(p.changes) && p.changes[p.applied].AtNanoseconds <= at {
		p.apply(&p.changes[p.applied].RadioChange)
		p.applied++
	}
	m := &moment{at: at}
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

// apply applies a change of a jammer or of frequencies.
func (p *preparer) apply(change *v1alpha1.RadioChange) {
	if change.Radio != nil && change.Radio.Frequency != nil {
		for i := range p.members {
			if linkbudget.Includes(change.From, &p.members[i]) {
				p.frequencies[i], p.retuned = change.Radio.Frequency.Hertz(), true
			}
		}
	}
	if change.Radio != nil && change.Radio.AntennaGain != nil && p.antennas != nil {
		for i := range p.members {
			if linkbudget.Includes(change.From, &p.members[i]) {
				p.antennas.fixed[i] = change.Radio.AntennaGain.DBi()
			}
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
	m.pathloss, m.version = make([]float32, n*n), versions.Add(1)
	if p.source == v1alpha1.PathlossScenario {
		p.readPathloss(m)
	} else {
		p.computePathloss(m)
	}
	if p.antennas != nil {
		p.aimAntennas(m)
	}
	if p.tail != nil && bytesEqual(p.tail.pathloss, m.pathloss) {
		m.pathloss, m.version = p.tail.pathloss, p.tail.version // there is nothing to learn, and less to keep
	}
	if p.antennas == nil {
		m.withoutAntennas = m.pathloss
	}
}

// setEffects copies the scenario's comm effects.
func (p *preparer) setEffects(m *moment) {
	n := len(p.members)
	m.effects = make([]effect, n*n)
	for i, from := range p.platforms {
		for j, to := range p.platforms {
			if from < 0 || to < 0 || i == j {
				continue
			}
			if e, known := p.cursor.CommEffect(from, to); known {
				m.effects[i*n+j] = effect{link.Effect{Latency: e.Latency, Jitter: e.Jitter, Loss: e.LossPercent / 100, Duplicate: e.DuplicationPercent / 100,
					Unicast: float64(e.UnicastBitsPerSecond), Broadcast: float64(e.BroadcastBitsPerSecond)}, true}
			}
		}
	}
	if p.tail != nil && slices.Equal(p.tail.effects, m.effects) {
		m.effects = p.tail.effects // less to keep
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
			case i == j || !m.placed[i] || !m.placed[j]:
				m.pathloss[k] = unknownLoss
			case before != nil && before.placed[i] && before.placed[j] && before.positions[i] == m.positions[i] && before.positions[j] == m.positions[j]:
				m.pathloss[k] = before.withoutAntennas[k]
			case j < i && p.frequencies[i] == p.frequencies[j]:
				m.pathloss[k] = m.pathloss[j*n+i] // there is as far as back
			default:
				m.pathloss[k] = lossOf(model.Pathloss(linkbudget.Antenna(p.source, m.positions[i], p.heights[i]), linkbudget.Antenna(p.source, m.positions[j], p.heights[j]), p.frequencies[i]))
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
			m.pathloss[i*n+j] = unknownLoss
			if from < 0 || to < 0 || i == j {
				continue
			}
			if loss, known := p.cursor.PathlossAt(from, to, uint64(p.frequencies[i])); known {
				m.pathloss[i*n+j] = lossOf(loss)
			}
		}
	}
}

// addJammers computes the jammers' power at each member.
func (p *preparer) addJammers(m *moment) {
	for i := range p.jammers {
		m.jammers = append(m.jammers, p.jamming(&p.jammers[i], m))
	}
}

func (p *preparer) jamming(j *v1alpha1.Jammer, m *moment) jamming {
	result := jamming{noise: linkbudget.NoiseOf(j), milliwatts: make([]float64, len(p.members))}
	if j.Power == nil {
		return result
	}
	power := j.Power.DBm()
	for i := range p.members {
		switch {
		case j.Pathloss != nil:
			result.milliwatts[i] = phy.Milliwatts(power - j.Pathloss.DB())
		case j.Position != nil && m.placed[i]:
			from, to := linkbudget.End{Position: linkbudget.Position(j.Position), Height: p.commonHeight}, linkbudget.End{Position: m.positions[i], Height: p.heights[i]}
			loss := linkbudget.JammerLoss(p.source, result.noise, from, to, p.frequencies[i])
			result.milliwatts[i] = phy.Milliwatts(power - loss + p.antennas.gainDifferenceTowards(i, linkbudget.Position(j.Position)))
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
		bytes = int(unsafe.Sizeof(effect{}))
	}
	return min(max(maxAheadBytes/(bytes*len(p.members)*len(p.members)+1), 2), maxAhead)
}

// backgroundPreparer prepares a network's moments while the network runs.
type backgroundPreparer struct {
	*momentChain
	preparer *preparer
	steps    *stepCounters
	stop     context.CancelFunc
}

// newBackgroundPreparer prepares the current moment, and later ones in the background until stop. Prepared
// moments continue to hold then. failed is called when a moment cannot be prepared, and with nil when it can
// again. It must return at once.
func newBackgroundPreparer(s *environmentInputs, steps *stepCounters, failed func(error)) (*backgroundPreparer, error) {
	if len(s.members) > maxEnvironmentMembers {
		return nil, fmt.Errorf("members: %d: networks with a physical layer have up to %d", len(s.members), maxEnvironmentMembers)
	}
	p := newPreparer(s)
	o := &backgroundPreparer{preparer: p, steps: steps, stop: func() {}}
	var zero, now int64 = math.MaxInt64 / 2, math.MinInt64 / 2
	if s.t0 != 0 {
		zero = s.t0 - clockOffset()
		now = clock.Monotonic() - zero
	}
	first, err := p.moment(now)
	if err != nil {
		return nil, err
	}
	nems := make([]int, len(s.members))
	for i := range s.members {
		nems[i] = int(s.members[i].NEM)
	}
	o.momentChain = newMomentChain(nems, first)
	o.momentChain.t0.Store(zero)
	if _, more := p.nextChange(now); more && s.t0 != 0 {
		ctx, cancel := context.WithCancel(context.Background())
		o.stop = cancel
		go o.run(ctx, first, failed)
	}
	return o, nil
}

// run prepares moments ahead of their time, until nothing changes any more.
func (o *backgroundPreparer) run(ctx context.Context, last *moment, failed func(error)) {
	var coming []int64 // times of prepared moments that are still to come
	var trouble error
	for ctx.Err() == nil {
		o.t0.Store(o.preparer.t0 - clockOffset()) // CLOCK_REALTIME may have been set
		now := clock.Monotonic()
		o.momentAt(now) // releases past moments, even if the loop does not query
		now -= o.t0.Load()
		coming = slices.DeleteFunc(coming, func(at int64) bool { return at <= now })
		at, more := o.preparer.nextChange(last.at)
		switch {
		case trouble == nil && !more:
			return
		case trouble == nil && (len(coming) >= o.preparer.maxPrepared() || at > now+int64(lookAhead)):
			clock.Pause(ctx, min(max(time.Duration(at-now)-lookAhead, 50*time.Millisecond), time.Second))
			continue
		case at < now-int64(lookAhead):
			at = now // the host stalled
		}
		next, err := o.preparer.moment(at)
		if err != nil || trouble != nil {
			failed(err)
		}
		if trouble = err; err != nil {
			clock.Pause(ctx, time.Second)
			continue
		}
		last.next.Store(next)
		o.steps.add(clock.Monotonic() - o.t0.Load() - next.at)
		last = next
		coming = append(coming, at)
	}
}

// stepCounters count the steps of a network's environment, and their lateness.
type stepCounters struct {
	mu sync.Mutex
	stepSums
}

type stepSums struct {
	steps, late uint64
	// worst lateness since the last snapshot that reset it, nanoseconds.
	worst int64
}

func (c *stepCounters) add(late int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps++
	c.worst = max(c.worst, late)
	if late > int64(lateChangeThreshold) {
		c.late++
	}
}

func (c *stepCounters) snapshot(reset bool) stepSums {
	c.mu.Lock()
	defer c.mu.Unlock()
	sums := c.stepSums
	if reset {
		c.worst = 0
	}
	return sums
}

// clockOffset is CLOCK_REALTIME minus CLOCK_MONOTONIC, nanoseconds.
func clockOffset() int64 {
	best, offset := int64(math.MaxInt64), int64(0)
	for range 5 { // takes the least disturbed measurement
		before, realtime := clock.Monotonic(), clock.Realtime()
		if took := clock.Monotonic() - before; took < best {
			best, offset = took, realtime-before-took/2
		}
	}
	return offset
}
