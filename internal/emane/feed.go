package emane

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/emane/emanepb"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// unknownDB replaces a pathloss that is not known any more, because EMANE cannot forget one.
const unknownDB = 1000

// Feed makes the events with a scenario's positions and pathlosses for a network's members. A Feed is for one
// goroutine.
type Feed struct {
	cursor        *scenario.Cursor
	members       []feedMember
	hasPathlosses bool     // the scenario has pathlosses, which are not computed from positions
	needsLocation bool     // EMANE computes pathlosses, antenna gains or fading from locations
	frequencies   []uint64 // with pathlosses of their own
	published     map[link]float64
	positions     map[int]*emanepb.Location // as published, by member
	antennas      *Antennas
	pointed       map[int]*emanepb.AntennaProfile // as published, by NEM id
	// effect of the links that the scenario has none for, with EMANE's comm effect model; nil for other models.
	effect        *scenario.CommEffect
	fromScenario  bool // the scenario's comm effects hold
	effects       map[link]scenario.CommEffect
	selectsFading bool                     // a member's fading is by events
	selected      map[link]scenario.Fading // as published
}

// link from one member to another by their indexes, at a frequency with pathlosses of its own, or at 0, all others.
type link struct {
	from, to  int
	frequency uint64
}

// feedMember is one member of the network, or of a neighbour.
type feedMember struct {
	nem   int
	index int // in the scenario, -1 for a member that it does not move
	fixed *geo.Position
	// neighbour reports whether it is in another network of the spectrum. Events say what it sends, not what it receives.
	neighbour bool
}

// NewFeed makes the feed of a network's members from a scenario, which may be nil if no member moves. neighbours are the
// members of the other networks of its spectrum, with NEM ids of their own.
func NewFeed(spec *v1alpha1.RadioNetworkSpec, s *scenario.Scenario, neighbours ...v1alpha1.Member) (*Feed, error) {
	f := &Feed{published: map[link]float64{}, positions: map[int]*emanepb.Location{}, antennas: NewAntennas(spec, s), pointed: map[int]*emanepb.AntennaProfile{},
		selectsFading: anyFading(spec, func(model string) bool { return model == fadingByEvent }), selected: map[link]scenario.Fading{}}
	if s != nil {
		f.cursor = s.NewCursor()
	}
	for i, m := range slices.Concat(spec.Members, neighbours) {
		one := feedMember{nem: int(m.NEM), index: -1, neighbour: i >= len(spec.Members)}
		if m.Position != nil {
			one.fixed = &geo.Position{Latitude: m.Position.Latitude.Float(), Longitude: m.Position.Longitude.Float(), Altitude: m.Position.Altitude.Float()}
		}
		if m.Platform != nil && (spec.Waveform.PHY() != nil || spec.CommEffects) {
			ok := false
			if s != nil {
				one.index, ok = s.Index(int(*m.Platform))
			}
			if !ok {
				return nil, fmt.Errorf("platform %d of %s: the scenario has none of this number", *m.Platform, m.Node)
			}
		}
		f.members = append(f.members, one)
	}
	f.hasPathlosses = readsPathlosses(spec)
	if f.cursor != nil {
		f.frequencies = f.cursor.PathlossFrequencies()
	}
	f.needsLocation = spec.Waveform.PHY() != nil && (!f.hasPathlosses || f.antennas != nil || Fades(spec))
	if w := spec.Waveform.EMANE; w != nil && w.Model == v1alpha1.EMANECommEffect {
		f.effect, f.effects = effectOf(w.Effect), map[link]scenario.CommEffect{}
		f.fromScenario = spec.CommEffects && s != nil
	}
	return f, nil
}

// readsPathlosses reports whether a network takes its pathlosses from the scenario.
func readsPathlosses(spec *v1alpha1.RadioNetworkSpec) bool {
	p := spec.Waveform.PHY()
	return p != nil && p.PathlossFrom() == v1alpha1.PathlossScenario
}

// Changes returns the events at a moment of the scenario since the previous call, and the next moment with
// changes.
func (f *Feed) Changes(t time.Duration) (events []Event, next time.Duration, more bool, err error) {
	if next, more, err = f.next(t); err != nil {
		return nil, 0, false, err
	}
	return f.events(false), next, more, nil
}

// next goes to a moment, not earlier than the last one, and returns the next one with changes.
func (f *Feed) next(t time.Duration) (next time.Duration, more bool, err error) {
	if f.cursor == nil {
		return 0, false, nil
	}
	if err := f.cursor.Seek(t); err != nil {
		return 0, false, err
	}
	next, more = f.cursor.Next()
	return next, more, nil
}

// All returns all current events, for processes that started since the last changes: EMANE's event
// channel does not repeat events.
func (f *Feed) All() []Event { return f.events(true) }

func (f *Feed) events(all bool) []Event {
	events := slices.Concat(f.locations(all), f.pointings(all), f.commEffects(all), f.fadings(all))
	if !f.hasPathlosses {
		return events
	}
	for to := range f.members {
		if f.members[to].neighbour {
			continue
		}
		var here []*emanepb.Pathloss
		var byFrequency []*emanepb.FrequencyPathloss
		for from := range f.members {
			if p := f.pathloss(from, to, all); p != nil {
				here = append(here, p)
			}
			byFrequency = append(byFrequency, f.pathlossEx(from, to, all)...)
		}
		for some := range slices.Chunk(here, maxEntries) {
			events = append(events, event(f.members[to].nem, PathlossEvent, &emanepb.Pathlosses{Pathlosses: some}))
		}
		for some := range slices.Chunk(byFrequency, maxEntries) {
			events = append(events, event(f.members[to].nem, PathlossExEvent, &emanepb.FrequencyPathlosses{Pathlosses: some}))
		}
	}
	return events
}

// maxEntries of an event, so that IP does not fragment its datagram.
const maxEntries = 16

// pathloss from one member to another, nil if it is not to be published.
func (f *Feed) pathloss(from, to int, all bool) *emanepb.Pathloss {
	there, tell := f.change(link{from: from, to: to}, all)
	if !tell {
		return nil
	}
	back, known := f.pathlossAt(link{from: to, to: from})
	if !known {
		back = unknownDB
	}
	return &emanepb.Pathloss{From: f.nem(from), Forward: proto.Float32(float32(there)), Reverse: proto.Float32(float32(back))}
}

// pathlossEx has the pathlosses at frequencies of their own that are to be published.
func (f *Feed) pathlossEx(from, to int, all bool) (some []*emanepb.FrequencyPathloss) {
	for _, hertz := range f.frequencies {
		if dB, tell := f.change(link{from, to, hertz}, all); tell {
			entry := &emanepb.FrequencyPathloss_Entry{FrequencyHertz: &hertz, Loss: proto.Float32(float32(dB))}
			some = append(some, &emanepb.FrequencyPathloss{From: f.nem(from), Entries: []*emanepb.FrequencyPathloss_Entry{entry}})
		}
	}
	return some
}

// nem id of a member.
func (f *Feed) nem(member int) *uint32 { return new(uint32(f.members[member].nem)) }

// change returns a link's pathloss, and whether it is to be published.
func (f *Feed) change(l link, all bool) (dB float64, tell bool) {
	dB, known := f.pathlossAt(l)
	before, told := f.published[l]
	if !known {
		dB = unknownDB
	}
	if l.from == l.to || !known && !told || told && dB == before && !all {
		return dB, false
	}
	f.published[l] = dB
	return dB, true
}

func (f *Feed) pathlossAt(l link) (dB float64, known bool) {
	a, b := f.members[l.from].index, f.members[l.to].index
	if l.from == l.to || a < 0 || b < 0 || a == b {
		return 0, false
	}
	return f.cursor.PathlossAt(a, b, l.frequency)
}

func effectOf(e *v1alpha1.EMANEEffect) *scenario.CommEffect {
	if e == nil {
		return &scenario.CommEffect{}
	}
	made := &scenario.CommEffect{Latency: e.Delay.Std(), Jitter: e.Jitter.Std(), LossPercent: 100 * e.Loss.Fraction(), DuplicationPercent: 100 * e.Duplicate.Fraction()}
	if e.Rate != nil {
		made.UnicastBitsPerSecond = uint64(e.Rate.BitsPerSecond())
		made.BroadcastBitsPerSecond = made.UnicastBitsPerSecond
	}
	return made
}

// commEffects that have changed, or all.
func (f *Feed) commEffects(all bool) (events []Event) {
	if f.effect == nil {
		return nil
	}
	return toReceivers(f, CommEffectEvent, func(to int) (here []*emanepb.CommEffect) {
		for from, e := range changed(f, f.effects, to, all, f.commEffect) {
			here = append(here, &emanepb.CommEffect{
				From:                   f.nem(from),
				LatencySeconds:         proto.Float32(float32(e.Latency.Seconds())),
				JitterSeconds:          proto.Float32(float32(e.Jitter.Seconds())),
				LossPercent:            proto.Float32(float32(e.LossPercent)),
				DuplicationPercent:     proto.Float32(float32(e.DuplicationPercent)),
				UnicastBitsPerSecond:   &e.UnicastBitsPerSecond,
				BroadcastBitsPerSecond: &e.BroadcastBitsPerSecond,
			})
		}
		return here
	}, func(some []*emanepb.CommEffect) proto.Message { return &emanepb.CommEffects{Effects: some} })
}

// toReceivers returns events with the entries for each receiver. Members of the spectrum's other networks have a feed of their own.
func toReceivers[E any](f *Feed, id EventID, entries func(to int) []E, message func([]E) proto.Message) (events []Event) {
	for to := range f.members {
		if f.members[to].neighbour {
			continue
		}
		for some := range slices.Chunk(entries(to), maxEntries) {
			events = append(events, event(f.members[to].nem, id, message(some)))
		}
	}
	return events
}

// changed returns the values, by sender, of links to a member that differ from what was published, or all. It takes them as published.
func changed[V comparable](f *Feed, published map[link]V, to int, all bool, value func(from, to int) V) iter.Seq2[int, V] {
	return func(yield func(int, V) bool) {
		for from := range f.members {
			l, v := link{from: from, to: to}, value(from, to)
			if before, told := published[l]; from == to || told && before == v && !all {
				continue
			}
			published[l] = v
			if !yield(from, v) {
				return
			}
		}
	}
}

func (f *Feed) commEffect(from, to int) scenario.CommEffect {
	a, b := f.members[from].index, f.members[to].index
	if f.fromScenario && a >= 0 && b >= 0 && a != b {
		if e, known := f.cursor.CommEffect(a, b); known {
			return e
		}
	}
	return *f.effect
}

// locations returns none that EMANE does not need: with locations it adds propagation delays, by which it loses
// bursts that fill their slots.
func (f *Feed) locations(all bool) (events []Event) {
	if !f.needsLocation {
		return nil
	}
	var moved []*emanepb.Location
	for i := range f.members {
		if l := f.location(i); l != nil && (all || !proto.Equal(f.positions[i], l)) {
			f.positions[i] = l
			moved = append(moved, l)
		}
	}
	for some := range slices.Chunk(moved, maxEntries/2) {
		events = append(events, event(0, LocationEvent, &emanepb.Locations{Locations: some}))
	}
	return events
}

// location of a member, nil if it is not known.
func (f *Feed) location(member int) *emanepb.Location {
	m := &f.members[member]
	at, known := geo.Position{}, m.fixed != nil
	switch {
	case m.index >= 0:
		at, known = f.cursor.Position(m.index)
	case known:
		at = *m.fixed
	}
	if !known {
		return nil
	}
	l := &emanepb.Location{Nem: f.nem(member), Position: &emanepb.Position{Latitude: &at.Latitude, Longitude: &at.Longitude, Altitude: &at.Altitude}}
	if m.index < 0 {
		return l
	}
	if v, ok := f.cursor.Velocity(m.index); ok {
		l.Velocity = &emanepb.Velocity{Azimuth: &v.Azimuth, Elevation: &v.Elevation, Speed: &v.Speed}
	}
	if o, ok := f.cursor.Orientation(m.index); ok {
		l.Orientation = &emanepb.Orientation{Roll: &o.Roll, Pitch: &o.Pitch, Yaw: &o.Yaw}
	}
	return l
}
