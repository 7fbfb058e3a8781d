package tdma

import (
	"cmp"
	"math"
	"slices"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// Carrier is what a Model needs of a radio.Network. Those who want to see what the model does at times they choose have one
// of their own, and call Offer and Continue.
type Carrier interface {
	Keep(f *radio.Frame) *radio.Frame
	Drop(f *radio.Frame, reason radio.Reason)
	Deliver(now int64, f *radio.Frame)
	Radiate(now int64, f *radio.Frame)
	Miss(p *radio.Port, reason radio.Reason)
	Find(m radio.MAC) *radio.Port
	WakeAt(due int64)
	Distributed() bool
	ShipParts(s *radio.Shipment, reached []*radio.Port)
}

// never is the slot, or the time, of what does not come.
const never = math.MaxInt64

// Model is the TDMA of one network.
type Model struct {
	config Config
	medium *phy.Medium
	rates  []Rate // of config, ascending
	time   timing
	// network the model belongs to, once a frame has come.
	network  Carrier
	stations []*station // by the ports' slots
	// nextSlot is the first in which a station has something to send, by its absolute index; wakeAt is when the model is
	// woken, or never.
	nextSlot, wakeAt int64
	// compareAt is when the clocks are compared again.
	compareAt int64
	// airOffset is time.offset as it was when the clock was last set: slots do not overlap on the air as clocks are slewed.
	airOffset int64

	// busy are the slots in which something is sent and has not arrived, by when they end; current is the one that begins or
	// ends now.
	busy    []*slotInUse
	current *slotInUse

	free       []*entry
	freeBursts []*burst
	freeSlots  []*slotInUse
	verdicts   []verdict // by receiver, of the burst with the number judged
	judged     uint64
	heard      []heard // by receiver, in a slot with several bursts
	// Scratch.
	reached  []*radio.Port
	shipment radio.Shipment
	parts    []radio.Part
	frame    radio.Frame
}

// slotInUse is a slot in which something is sent.
type slotInUse struct {
	// slot by its absolute index, of a schedule whose slots take so many nanoseconds.
	slot, duration int64
	ends           int64
	// listens on this frequency, by receiver; 0 where it does not.
	listens []float64
	bursts  []*burst // by NEM ids
	// own tells that a station of this host sends.
	own bool
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
	plan plan // nil where the schedule does not name it
	queues
	// next slot to send in by its absolute index, or never. resume is the first one of a new schedule.
	next, resume int64
	// checked is when fragments to it were looked through last, nanoseconds of CLOCK_MONOTONIC: after the burst with the
	// number checkedBy, before which it was checkedBefore.
	checked, checkedBefore int64
	checkedBy              uint64
	// What it sends in the slot that goes on, unless it is another host's; coming are frames of such a one of which parts have
	// come, of which there is one at a time for each class and addressee.
	burst
	coming map[stream]*entry
	index  uint64
	slots  SlotStatistics
	// missedIn is when slots were missed.
	missedIn radio.Intervals
}

// New makes a model without members.
func New(config Config) *Model {
	m := &Model{nextSlot: never, wakeAt: never}
	m.take(config)
	m.airOffset = m.time.offset
	m.medium = phy.NewMedium(m.phy())
	return m
}

// take makes the config the model's, with defaults for what it leaves out.
func (m *Model) take(config Config) {
	if config.EpochOffset == nil {
		config.EpochOffset = EpochOffset
	}
	if config.Now == nil {
		config.Now = clock.Monotonic
	}
	if config.Schedule == nil {
		config.Schedule = &Schedule{structure: Structure{Frames: 1, Slots: 1, SlotDuration: mostSlotDuration, BandwidthHertz: 1}}
	}
	m.rates = slices.SortedFunc(slices.Values(config.AdaptiveRates), func(a, b Rate) int { return cmp.Compare(a.BitsPerSecond, b.BitsPerSecond) })
	m.config = config
	m.time = newTiming(config.Schedule.structure, config.EpochOffset())
}

// phy is the physical layer's part of the config. The schedule has the bandwidth.
func (m *Model) phy() phy.Config {
	of, bandwidth := m.config.Radio, float64(m.config.Schedule.structure.BandwidthHertz)
	return phy.Config{Seed: m.config.Seed, Environment: m.config.Environment, Interference: m.config.Interference, PCR: m.config.PCR,
		Radio: func(p *radio.Port) phy.Radio {
			r := of(p)
			r.BandwidthHertz = bandwidth
			return r
		}}
}

// Configure changes the radios and the schedule. What is being sent in a slot is not disturbed. A node whose schedule
// becomes another one listens by the new one at once, and sends by it from the start of its next multiframe on, until which it
// sends nothing, as in EMANE; a node whose schedule stays as it is goes on.
func (m *Model) Configure(config Config) {
	before, offset := m.config.Schedule, m.time.offset
	m.take(config)
	m.time.offset = offset // followed by followClock alone
	m.medium.Configure(m.phy())
	now := m.config.Now()
	resume := m.time.multiframe(now)
	if own := m.ownSlot(); own != nil {
		resume = m.time.multiframe(max(now, own.ends))
	}
	same := sameness{before, m.config.Schedule, map[[2]*frame]bool{}}
	for _, s := range m.stations {
		s.plan = m.config.Schedule.plans[s.port.NEM]
		if !same.of(s.port.NEM) {
			s.resume, s.next = resume, never
		}
	}
	m.plan(now)
}

// Members implements radio.Model.
func (m *Model) Members(ports []*radio.Port) {
	before := make(map[*radio.Port]*station, len(m.stations))
	from := make(map[*radio.Port]int, len(m.stations))
	for slot, s := range m.stations {
		before[s.port], from[s.port] = s, slot
	}
	stations, moved := make([]*station, len(ports)), make([]int, len(ports))
	for slot, p := range ports {
		stations[slot], moved[slot] = before[p], -1
		if s := before[p]; s != nil {
			moved[slot] = from[p]
			delete(before, p)
		} else {
			stations[slot] = m.join(p)
		}
	}
	for _, s := range before {
		m.leave(s)
	}
	m.stations = stations
	m.verdicts, m.heard = make([]verdict, len(ports)), make([]heard, len(ports))
	m.medium.Members(ports)
	m.move(moved)
	m.plan(m.config.Now())
}

// move puts what is kept by receiver into the slots that they have from now on; from has their slots until now, -1 for those
// who were not there.
func (m *Model) move(from []int) {
	for _, s := range m.stations {
		s.moveFates(from)
	}
	for _, u := range m.busy {
		before := u.listens
		u.listens = make([]float64, len(from))
		for slot, was := range from {
			if was >= 0 {
				u.listens[slot] = before[was]
			}
		}
		for _, b := range u.bursts {
			b.moveFates(from)
		}
	}
}

func (m *Model) join(p *radio.Port) *station {
	s := &station{port: p, plan: m.config.Schedule.plans[p.NEM], next: never, resume: m.time.multiframe(m.config.Now())}
	s.burst.station, s.options = s, &m.config.Queue
	if len(m.rates) > 0 {
		s.may = func(e *entry) bool { return m.rateFor(s, e) >= s.air.RateBitsPerSecond }
	}
	return s
}

// leave ends the frames of a node that has gone, whatever became of them: its radio is off.
func (m *Model) leave(s *station) {
	for _, u := range m.busy {
		u.bursts = slices.DeleteFunc(u.bursts, func(b *burst) bool {
			gone := b.station == s
			if gone {
				m.abandon(b)
			}
			return gone
		})
		u.own = slices.ContainsFunc(u.bursts, (*burst).isOwn)
	}
	for key := range s.coming {
		m.forget(s, key)
	}
	for class := range s.lines {
		for s.lines[class].first != nil {
			e := s.lines[class].first
			s.remove(e)
			m.drop(e, radio.InFlightAtEnd)
		}
	}
}

// abandon drops the frames that end with a burst.
func (m *Model) abandon(b *burst) {
	for _, p := range b.parts {
		if p.entry != nil && p.last {
			m.drop(p.entry, radio.InFlightAtEnd)
		}
	}
	m.recycle(b)
}

// Transmit implements radio.Model.
func (m *Model) Transmit(n *radio.Network, now int64, f *radio.Frame) { m.Offer(n, now, f) }

// Due implements radio.Model. Frames are never held.
func (m *Model) Due(n *radio.Network, _ int64, f *radio.Frame) { n.Drop(f, radio.Loss) }

// Wake implements radio.Waker.
func (m *Model) Wake(n *radio.Network, now int64) { m.Continue(n, now) }

// Offer is Transmit for any Carrier.
func (m *Model) Offer(n Carrier, now int64, f *radio.Frame) {
	m.network = n
	s := m.stations[f.Source.Slot]
	e := m.entry()
	e.frame, e.to, e.length, e.dscp = n.Keep(f), f.Destination, len(f.Data), dscpOf(f.Data)
	e.class, e.nem, e.missedBefore = classOf(e.dscp), addressee(n, f.Destination), s.slots.Missed
	if dropped := s.push(e, m.config.Queue.Depth); dropped != nil {
		m.overflow(s, dropped)
	}
	if s.next != never && !m.selective() {
		return // the first slot to send in stays the first
	}
	s.next = m.useful(s, m.time.after(now))
	if s.next < m.nextSlot {
		m.nextSlot = s.next
		m.arm()
	}
}

// overflow drops a frame for which a queue has no room. Had its node missed no slot since it came, it might have been sent.
func (m *Model) overflow(s *station, e *entry) {
	reason := radio.QueueFull
	if s.slots.Missed > e.missedBefore {
		reason = radio.MissedSlot
	}
	s.disown(e)
	m.drop(e, reason)
}

// disown keeps an entry that goes from being taken for sent.
func (b *burst) disown(e *entry) {
	for i := range b.parts {
		if b.parts[i].entry == e {
			b.parts[i].entry = nil
		}
	}
}

// addressee of a frame by its NEM id, as EMANE has it: groups are everybody, and an address that nobody has is read as one.
func addressee(n Carrier, to radio.MAC) int {
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
	m.release(e)
}

// entry gives an empty one.
func (m *Model) entry() *entry {
	if len(m.free) == 0 {
		return &entry{}
	}
	e := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	return e
}

func (m *Model) release(e *entry) {
	*e = entry{fates: e.fates[:0]}
	m.free = append(m.free, e)
}

// Statistics of all attached nodes, to be called by radio.Network.Do. With reset, WorstLateness starts anew, and MissedIn is handed over.
func (m *Model) Statistics(reset bool) []PortStatistics {
	all := make([]PortStatistics, len(m.stations))
	for i, s := range m.stations {
		all[i], _ = m.StatisticsOf(s.port, reset)
		all[i].Links = m.medium.Links(s.port)
	}
	return all
}

// Medium that the radios share. To be asked by radio.Network.Do.
func (m *Model) Medium() *phy.Medium { return m.medium }

// StatisticsOf one attached node, without its Links: a large network's are better asked for node by node, from Medium, so
// that no slot waits for them. To be called by radio.Network.Do.
func (m *Model) StatisticsOf(p *radio.Port, reset bool) (statistics PortStatistics, attached bool) {
	if p.Slot >= len(m.stations) || m.stations[p.Slot].port != p {
		return PortStatistics{}, false
	}
	s := m.stations[p.Slot]
	statistics = PortStatistics{Port: p, Slots: s.slots}
	for class := range s.lines {
		statistics.QueueDepth[class] = s.lines[class].count
	}
	if reset {
		s.slots.WorstLateness = 0
		statistics.MissedIn = s.missedIn.Take()
	}
	return statistics, true
}
