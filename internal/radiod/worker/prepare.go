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
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// maxAirMembers bounds the memory of a network's pathloss, 4 bytes for each pair of members and moment.
	maxAirMembers = 2048
	// lookAhead is how long before its time a moment is prepared, as far as there is room.
	lookAhead = 2 * time.Second
	// maxAhead and maxAheadBytes bound what is prepared; two moments always are.
	maxAhead      = 64
	maxAheadBytes = 8 << 20
	// pairSpacing is, for each pair of members, the least time between two steps of the scenario: more of them would take more
	// than a few percent of a processor. Changes in between come with the next step.
	pairSpacing = time.Microsecond
)

// surroundings are what the air of a network depends on.
type surroundings struct {
	// zero is T0 by CLOCK_REALTIME; 0 where it is not set.
	zero    int64
	members []v1alpha1.Member
	// heights of the members' antennas above the ground, in metres; jammers have commonHeight.
	heights      []float64
	commonHeight float64
	source       v1alpha1.PathlossSource
	// effects tells that the scenario's comm effects are wanted, and no pathloss.
	effects  bool
	scenario *scenario.Scenario // nil for none
	// frequencyHertz and bandwidthHertz as the network begins.
	frequencyHertz float64
	// fixedGains of the members' antennas in dBi as the network begins; nil where no member has an antenna profile.
	fixedGains []float64
	// changes with jammers and frequencies, and with fixed gains where they count, in order.
	changes []v1alpha1.TimedRadioChange
}

// surroundingsOf a network.
func surroundingsOf(spec *v1alpha1.RadioNetworkSpec, compiled *scenario.Scenario) *surroundings {
	physical := cmp.Or(spec.Waveform.PHY(), &v1alpha1.PHY{})
	s := &surroundings{effects: spec.CommEffects, members: spec.Members, source: cmp.Or(physical.Pathloss, v1alpha1.PathlossScenario), scenario: compiled,
		frequencyHertz: physical.Frequency.Hertz(), commonHeight: physical.AntennaMetres(nil, "", "")}
	for i := range spec.Members {
		s.heights = append(s.heights, physical.AntennaMetres(spec.Radios, spec.Members[i].Node, spec.Members[i].Group))
	}
	s.fixedGains = fixedGainsOf(spec, compiled)
	if spec.T0 == nil {
		return s
	}
	s.zero = spec.T0.UnixNano()
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

// antenna at a position. For two rays only its height above flat ground counts, of which an altitude above the sea says nothing.
func (s *surroundings) antenna(at geo.Position, height float64) geo.Position {
	if s.source == v1alpha1.PathlossTwoRay {
		at.Altitude = height
	}
	return at
}

// model of the pathloss that positions have.
func (s *surroundings) model() propagation.Model {
	if s.source == v1alpha1.PathlossTwoRay {
		return propagation.TwoRay{}
	}
	return propagation.FreeSpace{}
}

// preparer makes a network's moments, in order.
type preparer struct {
	*surroundings
	cursor    *scenario.Cursor // nil without a scenario
	platforms []int            // the members' indexes in the scenario, -1 for none
	still     []geo.Position   // of members that stand still
	stands    []bool
	// What holds at the last moment.
	frequencies []float64 // by sender
	retuned     bool      // since then
	jammers     []v1alpha1.Jammer
	carriedOut  int // of the changes
	antennas    *antennas
	tail        *moment
}

func newPreparer(s *surroundings) *preparer {
	n := len(s.members)
	p := &preparer{surroundings: s, platforms: make([]int, n), still: make([]geo.Position, n), stands: make([]bool, n), frequencies: make([]float64, n)}
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
			p.still[i], p.stands[i] = positionOf(member.Position), true
		}
	}
	if s.fixedGains != nil {
		p.antennas = newAntennas(s.fixedGains)
	}
	return p
}

func positionOf(p *v1alpha1.Position) geo.Position {
	return geo.Position{Latitude: p.Latitude.Float(), Longitude: p.Longitude.Float(), Altitude: p.Altitude.Float()}
}

// moment that holds at a time after T0 in nanoseconds, which is no earlier than the one before.
func (p *preparer) moment(at int64) (*moment, error) {
	if p.cursor != nil {
		if err := p.cursor.Seek(time.Duration(max(at, 0))); err != nil {
			return nil, fmt.Errorf("scenario at %v: %w", time.Duration(max(at, 0)), err)
		}
	}
	for p.carriedOut < len(p.changes) && p.changes[p.carriedOut].AtNanoseconds <= at {
		p.apply(&p.changes[p.carriedOut].RadioChange)
		p.carriedOut++
	}
	m := &moment{at: at}
	p.place(m)
	if p.effects {
		p.affect(m)
	} else {
		p.attenuate(m)
		p.jam(m)
	}
	p.tail = m
	return m, nil
}

// apply carries out a change of a jammer or of frequencies.
func (p *preparer) apply(change *v1alpha1.RadioChange) {
	if change.Radio != nil && change.Radio.Frequency != nil {
		for i := range p.members {
			if means(change.From, &p.members[i]) {
				p.frequencies[i], p.retuned = change.Radio.Frequency.Hertz(), true
			}
		}
	}
	if change.Radio != nil && change.Radio.AntennaGain != nil && p.antennas != nil {
		for i := range p.members {
			if means(change.From, &p.members[i]) {
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

// place gives the members their positions.
func (p *preparer) place(m *moment) {
	m.positions, m.placed = make([]geo.Position, len(p.members)), make([]bool, len(p.members))
	for i := range p.members {
		switch {
		case p.stands[i]:
			m.positions[i], m.placed[i] = p.still[i], true
		case p.platforms[i] >= 0:
			m.positions[i], m.placed[i] = p.cursor.Position(p.platforms[i])
		}
	}
}

var unknownLoss = float32(math.NaN())

// attenuate gives each pair of members its pathloss.
func (p *preparer) attenuate(m *moment) {
	n := len(p.members)
	m.pathloss, m.version = make([]float32, n*n), versions.Add(1)
	if p.source == v1alpha1.PathlossScenario {
		p.read(m)
	} else {
		p.reckon(m)
	}
	if p.antennas != nil {
		p.aim(m)
	}
	if p.tail != nil && bytesEqual(p.tail.pathloss, m.pathloss) {
		m.pathloss, m.version = p.tail.pathloss, p.tail.version // there is nothing to learn, and less to keep
	}
	if p.antennas == nil {
		m.bare = m.pathloss
	}
}

// affect takes the scenario's comm effects as they are.
func (p *preparer) affect(m *moment) {
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

// bytesEqual compares bit by bit, as an unknown pathloss equals nothing.
func bytesEqual(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// reckon reckons the pathloss from the positions.
func (p *preparer) reckon(m *moment) {
	n, model, before := len(p.members), p.model(), p.tail
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
				m.pathloss[k] = before.bare[k]
			case j < i && p.frequencies[i] == p.frequencies[j]:
				m.pathloss[k] = m.pathloss[j*n+i] // there is as far as back
			default:
				m.pathloss[k] = lossOf(model.Pathloss(p.antenna(m.positions[i], p.heights[i]), p.antenna(m.positions[j], p.heights[j]), p.frequencies[i]))
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

// read takes the pathloss of the scenario as it is.
func (p *preparer) read(m *moment) {
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

// jam reckons the jammers' power at each member.
func (p *preparer) jam(m *moment) {
	for i := range p.jammers {
		m.jammers = append(m.jammers, p.jamming(&p.jammers[i], m))
	}
}

func (p *preparer) jamming(j *v1alpha1.Jammer, m *moment) jamming {
	result := jamming{milliwatts: make([]float64, len(p.members))}
	if j.Power == nil {
		return result
	}
	if j.Frequency != nil {
		result.frequencyHertz = j.Frequency.Hertz()
	}
	if j.Bandwidth != nil {
		result.bandwidthHertz = j.Bandwidth.Hertz()
	}
	model, power := p.model(), j.Power.DBm()
	for i := range p.members {
		switch {
		case j.Pathloss != nil:
			result.milliwatts[i] = phy.Milliwatts(power - j.Pathloss.DB())
		case j.Position != nil && m.placed[i]:
			frequency := cmp.Or(result.frequencyHertz, p.frequencies[i])
			loss := model.Pathloss(p.antenna(positionOf(j.Position), p.commonHeight), p.antenna(m.positions[i], p.heights[i]), frequency)
			result.milliwatts[i] = phy.Milliwatts(power - loss + p.antennas.gainOver(i, positionOf(j.Position)))
		}
	}
	return result
}

// following is when something changes after the last moment.
func (p *preparer) following(last int64) (at int64, more bool) {
	if p.carriedOut < len(p.changes) {
		at, more = p.changes[p.carriedOut].AtNanoseconds, true
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

// ahead is how many moments may be prepared that are not reached yet.
func (p *preparer) ahead() int {
	bytes := 4
	if p.antennas != nil {
		bytes *= 2
	}
	if p.effects {
		bytes = int(unsafe.Sizeof(effect{}))
	}
	return min(max(maxAheadBytes/(bytes*len(p.members)*len(p.members)+1), 2), maxAhead)
}

// outlook prepares a network's track while the network runs.
type outlook struct {
	*track
	preparer *preparer
	steps    *stepCounters
	stop     context.CancelFunc
}

// newOutlook prepares what holds now, and what is to come in the background until stop; what has been prepared by then goes on
// to hold. failed is called, and must return at once, when something could not be prepared, and with nil when it could again.
func newOutlook(s *surroundings, steps *stepCounters, failed func(error)) (*outlook, error) {
	if len(s.members) > maxAirMembers {
		return nil, fmt.Errorf("members: %d: networks with a physical layer have up to %d", len(s.members), maxAirMembers)
	}
	p := newPreparer(s)
	o := &outlook{preparer: p, steps: steps, stop: func() {}}
	var zero, now int64 = math.MaxInt64 / 2, math.MinInt64 / 2
	if s.zero != 0 {
		zero = s.zero - clockOffset()
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
	o.track = newTrack(nems, first)
	o.track.zero.Store(zero)
	if _, more := p.following(now); more && s.zero != 0 {
		ctx, cancel := context.WithCancel(context.Background())
		o.stop = cancel
		go o.run(ctx, first, failed)
	}
	return o, nil
}

// run prepares moments ahead of their time, until nothing changes any more.
func (o *outlook) run(ctx context.Context, last *moment, failed func(error)) {
	var coming []int64 // times of the moments that have been prepared and are to come
	var trouble error
	for ctx.Err() == nil {
		o.zero.Store(o.preparer.zero - clockOffset()) // CLOCK_REALTIME may have been set
		now := clock.Monotonic()
		o.at(now) // lets go of what is past, whether the loop asks or not
		now -= o.zero.Load()
		coming = slices.DeleteFunc(coming, func(at int64) bool { return at <= now })
		at, more := o.preparer.following(last.at)
		switch {
		case trouble == nil && !more:
			return
		case trouble == nil && (len(coming) >= o.preparer.ahead() || at > now+int64(lookAhead)):
			pause(ctx, min(max(time.Duration(at-now)-lookAhead, 50*time.Millisecond), time.Second))
			continue
		case at < now-int64(lookAhead):
			at = now // the host stood still
		}
		next, err := o.preparer.moment(at)
		if err != nil || trouble != nil {
			failed(err)
		}
		if trouble = err; err != nil {
			pause(ctx, time.Second)
			continue
		}
		last.next.Store(next)
		o.steps.add(clock.Monotonic() - o.zero.Load() - next.at)
		last = next
		coming = append(coming, at)
	}
}

// stepCounters count the steps of a network's surroundings, and how late they were.
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
	if late > int64(lateChange) {
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

// clockOffset is CLOCK_REALTIME less CLOCK_MONOTONIC, nanoseconds.
func clockOffset() int64 {
	best, offset := int64(math.MaxInt64), int64(0)
	for range 5 { // the least disturbed of a few
		before, realtime := clock.Monotonic(), clock.Realtime()
		if took := clock.Monotonic() - before; took < best {
			best, offset = took, realtime-before-took/2
		}
	}
	return offset
}
