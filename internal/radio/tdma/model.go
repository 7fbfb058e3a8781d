package tdma

import (
	"cmp"
	"math"
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// never is the slot or time of what does not happen.
const never = math.MaxInt64

// Model is the TDMA of one network.
type Model struct {
	config Config
	medium *phy.Medium
	rates  []Rate // of config, ascending
	time   timing
	// network is set when the first frame comes.
	network  *radio.Network
	stations []*station // by the ports' slots
	// nextSlot is the absolute index of the first slot in which a station has frames to send. wakeAt is when
	// the model is woken, or never.
	nextSlot, wakeAt int64
	// nextClockCheck is when the clocks are compared again.
	nextClockCheck int64
	// airOffset is time.offset at the last step of the clock. So slots do not overlap on the air while clocks
	// are slewed.
	airOffset int64

	// busy are the slots with transmissions that have not ended, ordered by their end. current is the one
	// that begins or ends now.
	busy    []*slotInUse
	current *slotInUse

	entries     radio.Recycled[entry]
	bursts      radio.Recycled[burst]
	slots       radio.Recycled[slotInUse]
	outcomes    []burstOutcome // by receiver, for the burst number burstNumber
	burstNumber uint64
	inRange     []burstsInRange // by receiver, in a slot with several bursts
	// Scratch.
	receivers []*radio.Port
	shipment  radio.Shipment
	parts     []radio.Part
	frame     radio.Frame
}

// slotInUse is a slot with transmissions.
type slotInUse struct {
	// slot is its absolute index, in a schedule whose slots take duration nanoseconds.
	slot, duration int64
	end            int64
	// listensOn is the frequency on which each receiver listens; 0 if it does not.
	listensOn []float64
	bursts    []*burst // ordered by NEM id
	// hasLocal reports whether a station of this host sends.
	hasLocal bool
}

// burst is all that a node sends in a slot.
type burst struct {
	station *station
	filling
	air phy.Transmission
}

// station is one node.
type station struct {
	port *radio.Port
	plan plan // nil if the schedule does not name it
	queues
	// next is the absolute index of the next slot to send in, or never. resume is the first slot of a new
	// schedule.
	next, resume int64
	// lastCheck is when fragments to it were last checked, nanoseconds of the engine's clock. It was after the
	// burst with the number checkBurst; the check before was at previousCheck.
	lastCheck, previousCheck int64
	checkBurst               uint64
	// The burst that it sends in the current slot, unless it is on another host. incoming are incomplete frames of a
	// station on another host, at most one for each class and addressee.
	burst
	incoming map[streamKey]*entry
	index    uint64
	slots    SlotStatistics
	// missedIn are the times in which slots were missed.
	missedIn radio.Intervals
}

// New makes a model without members.
func New(config Config) *Model {
	m := &Model{nextSlot: never, wakeAt: never}
	m.setConfig(config)
	m.airOffset = m.time.offset
	m.medium = phy.NewMedium(m.mediumConfig())
	return m
}

// setConfig sets the config, with defaults for missing fields.
func (m *Model) setConfig(config Config) {
	if config.Schedule == nil {
		config.Schedule = &Schedule{structure: Structure{Frames: 1, Slots: 1, SlotDuration: maxSlotDuration, BandwidthHertz: 1}}
	}
	m.rates = slices.SortedFunc(slices.Values(config.AdaptiveRates), func(a, b Rate) int { return cmp.Compare(a.BitsPerSecond, b.BitsPerSecond) })
	m.config = config
	m.time = newTiming(config.Schedule.structure, config.EpochOffset())
}

// mediumConfig is the physical layer's part of the config. Members have the schedule's bandwidth, radios of other
// networks their own.
func (m *Model) mediumConfig() phy.Config {
	of, bandwidth := m.config.Radio, float64(m.config.Schedule.structure.BandwidthHertz)
	return phy.Config{Seed: m.config.Seed, Environment: m.config.Environment, Interference: m.config.Interference, PCR: m.config.PCR,
		Radio: func(p *radio.Port) phy.Radio {
			r := of(p)
			if !p.Neighbour {
				r.BandwidthHertz = bandwidth
			}
			return r
		}}
}

// Configure changes the radios and the schedule, without disturbing what is being sent. A node whose schedule
// changes listens by the new one at once. As in EMANE, it sends nothing until the start of the next
// multiframe. A node whose schedule stays the same continues.
func (m *Model) Configure(now int64, config Config) {
	before, offset := m.config.Schedule, m.time.offset
	m.setConfig(config)
	m.time.offset = offset // only followClock changes it
	m.medium.Configure(m.mediumConfig())
	resume := m.time.nextMultiframe(now)
	if own := m.localSlot(); own != nil {
		resume = m.time.nextMultiframe(max(now, own.end))
	}
	same := scheduleComparison{before, m.config.Schedule, map[[2]*frame]bool{}}
	for _, s := range m.stations {
		m.setPlan(s)
		if !same.samePlan(s.port.NEM) {
			s.resume, s.next = resume, never
		}
	}
	m.planSlots(now)
}

// Members implements radio.Model.
func (m *Model) Members(now int64, ports []*radio.Port, from []int) {
	before, stations := m.stations, make([]*station, len(ports))
	for slot, was := range from {
		if was >= 0 {
			stations[slot], before[was] = before[was], nil
		} else {
			stations[slot] = m.newStation(now, ports[slot])
		}
	}
	for _, s := range before {
		if s != nil {
			m.removeStation(s)
		}
	}
	m.stations = stations
	m.outcomes, m.inRange = make([]burstOutcome, len(ports)), make([]burstsInRange, len(ports))
	m.medium.Members(ports, from)
	m.moveReceivers(from)
	m.planSlots(now)
}

// moveReceivers moves data kept by receiver to the receivers' new slots. from has their previous slots, -1 for new
// ones.
func (m *Model) moveReceivers(from []int) {
	for _, s := range m.stations {
		s.moveOutcomes(from)
	}
	for _, u := range m.busy {
		before := u.listensOn
		u.listensOn = make([]float64, len(from))
		for slot, was := range from {
			if was >= 0 {
				u.listensOn[slot] = before[was]
			}
		}
		for _, b := range u.bursts {
			b.moveOutcomes(from)
		}
	}
}

func (m *Model) newStation(now int64, p *radio.Port) *station {
	s := &station{port: p, next: never, resume: m.time.nextMultiframe(now)}
	s.burst.station, s.options = s, &m.config.Queue
	m.setPlan(s)
	return s
}

// setPlan gives a station its plan of the schedule.
func (m *Model) setPlan(s *station) {
	s.plan = m.config.Schedule.plans[s.port.NEM]
	s.slotless, s.longest = [Classes]bool{}, 0
	if !m.config.Queue.Fragmentation {
		s.slotless, s.longest = m.config.Schedule.slotless(s.port.NEM)
	}
	if len(m.rates) > 0 {
		s.longest = 0
	}
	m.limitJoining(s)
}

// limitJoining keeps frames out of a station's slots that need a lower rate than those before them.
func (m *Model) limitJoining(s *station) {
	s.mayJoin = nil
	if len(m.rates) > 0 {
		s.mayJoin = func(e *entry) bool { return m.rateFor(s, e) >= s.air.RateBitsPerSecond }
	}
}

// removeStation drops the frames of a node that has gone, because its radio is off.
func (m *Model) removeStation(s *station) {
	for _, u := range m.busy {
		u.bursts = slices.DeleteFunc(u.bursts, func(b *burst) bool {
			gone := b.station == s
			if gone {
				m.dropBurst(b)
			}
			return gone
		})
		u.hasLocal = slices.ContainsFunc(u.bursts, (*burst).isLocal)
	}
	for key := range s.incoming {
		m.dropIncoming(s, key)
	}
	for class := range s.classes {
		for s.classes[class].first != nil {
			e := s.classes[class].first
			s.remove(e)
			m.drop(e, radio.InFlightAtEnd)
		}
	}
}

// dropBurst drops the frames that end with a burst.
func (m *Model) dropBurst(b *burst) {
	for _, p := range b.parts {
		if p.entry != nil && p.last {
			m.drop(p.entry, radio.InFlightAtEnd)
		}
	}
	m.recycle(b)
}

// Due implements radio.Model. Frames are never held.
func (m *Model) Due(n *radio.Network, _ int64, f *radio.Frame) { n.Drop(f, radio.Loss) }

// Transmit implements radio.Model.
func (m *Model) Transmit(n *radio.Network, now int64, f *radio.Frame) {
	m.network = n
	s := m.stations[f.Source.Slot]
	e := m.entries.Get()
	e.frame, e.to, e.length, e.dscp = n.Keep(f), f.Destination, len(f.Data), dscpOf(f.Data)
	e.class, e.nem, e.missedBefore = classOf(e.dscp), addressee(n, f.Destination), s.slots.Missed
	if dropped := s.push(e, m.config.Queue.Depth); dropped != nil {
		m.overflow(s, dropped)
	}
	if s.next != never && !m.hasSelectiveSlots() {
		return // the first slot to send in does not change
	}
	s.next = m.nextUsefulSlot(s, m.time.slotFrom(now))
	if s.next < m.nextSlot {
		m.nextSlot = s.next
		m.scheduleWake()
	}
}

// overflow drops a frame for which a queue has no room. If its node missed slots since the frame came, that
// may be the reason.
func (m *Model) overflow(s *station, e *entry) {
	reason := radio.QueueFull
	if s.slots.Missed > e.missedBefore {
		reason = radio.MissedSlot
	}
	s.removeEntry(e)
	m.drop(e, reason)
}

// removeEntry removes a dropped entry from the burst, so that it is not taken for sent.
func (b *burst) removeEntry(e *entry) {
	for i := range b.parts {
		if b.parts[i].entry == e {
			b.parts[i].entry = nil
		}
	}
}

// addressee returns the NEM id of a frame's addressee, as in EMANE. Multicasts are broadcasts, and the NEM id
// is read from an unknown address.
func addressee(n *radio.Network, to radio.MAC) int {
	if to.IsMulticast() {
		return BroadcastNEM
	}
	if p := n.Find(to); p != nil {
		return p.NEM
	}
	return int(to & 0xffff)
}

func (m *Model) drop(e *entry, reason radio.Reason) {
	m.network.Drop(e.frame, reason)
	m.freeEntry(e)
}

func (m *Model) freeEntry(e *entry) {
	*e = entry{outcomes: e.outcomes[:0]}
	m.entries.Keep(e)
}

// Medium that the radios share. It is for the thread of the network's loop, as is StatisticsOf.
func (m *Model) Medium() *phy.Medium { return m.medium }

// StatisticsOf one attached node. With reset, WorstLateness starts again at 0, and MissedIn is returned. Medium has
// its links.
func (m *Model) StatisticsOf(p *radio.Port, reset bool) (statistics PortStatistics) {
	if p.Slot >= len(m.stations) || m.stations[p.Slot].port != p {
		return statistics
	}
	s := m.stations[p.Slot]
	statistics.Slots = s.slots
	for class := range s.classes {
		statistics.QueueDepth[class] = s.classes[class].count
	}
	if reset {
		s.slots.WorstLateness = 0
		statistics.Slots.MissedIn = s.missedIn.Take()
	}
	return statistics
}
