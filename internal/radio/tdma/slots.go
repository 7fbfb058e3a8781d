package tdma

import (
	"cmp"
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// offsetInterval in nanoseconds, after which the clocks are compared again.
const offsetInterval = 1e9

// Wake implements radio.Waker: it ends the slots that are over and begins the current one.
func (m *Model) Wake(n *radio.Network, now int64) {
	m.network, m.wakeAt = n, never
	m.finishUntil(now)
	if m.followClock(now) {
		return
	}
	if slot := m.time.slotAt(now); m.localSlot() == nil && m.nextSlot <= slot {
		m.begin(now, slot)
	}
	m.scheduleWake()
}

// localSlot returns the slot in which a station of this host sends, or nil.
func (m *Model) localSlot() *slotInUse {
	for _, u := range m.busy {
		if u.hasLocal {
			return u
		}
	}
	return nil
}

// openSlot returns a slot for transmissions.
func (m *Model) openSlot(slot int64) *slotInUse {
	if u := m.findInUse(slot, m.time.duration); u != nil {
		return u
	}
	return m.newSlotInUse(slot, m.time.duration, m.time.start(slot+1), slot)
}

func (m *Model) findInUse(slot, duration int64) *slotInUse {
	for _, u := range m.busy {
		if u.slot == slot && u.duration == duration {
			return u
		}
	}
	return nil
}

// newSlotInUse adds a slot, with stations listening as in the slot listening.
func (m *Model) newSlotInUse(slot, duration, ends, listening int64) *slotInUse {
	u := m.slots.Get()
	*u = slotInUse{slot: slot, duration: duration, end: ends, listensOn: u.listensOn[:0], bursts: u.bursts[:0]}
	m.listen(u, listening)
	at, _ := slices.BinarySearchFunc(m.busy, ends, func(u *slotInUse, ends int64) int { return cmp.Compare(u.end, ends) })
	m.busy = slices.Insert(m.busy, at, u)
	return u
}

// finishUntil ends the slots that are over.
func (m *Model) finishUntil(now int64) {
	over := 0
	for ; over < len(m.busy) && m.busy[over].end <= now; over++ {
		m.finishSlot(now, m.busy[over])
	}
	m.slots.Keep(m.busy[:over]...)
	m.busy = slices.Delete(m.busy, 0, over)
}

// add a burst, in the order of NEM ids. So outcomes do not depend on which host has a station.
func (u *slotInUse) add(b *burst) {
	at, _ := slices.BinarySearchFunc(u.bursts, b.station.port.NEM, func(b *burst, nem int) int { return cmp.Compare(b.station.port.NEM, nem) })
	u.bursts = slices.Insert(u.bursts, at, b)
	u.hasLocal = u.hasLocal || b.isLocal()
}

func (u *slotInUse) start() int64 { return u.end - u.duration }

// airStart is when a slot begins, by a clock that is never slewed.
func (m *Model) airStart(u *slotInUse) int64 { return u.slot*u.duration - m.airOffset }

// isLocal reports whether a burst is of a station of this host.
func (b *burst) isLocal() bool { return b == &b.station.burst }

// followClock compares the clocks once a second. After a step of CLOCK_REALTIME by a slot or more, stations
// start again at a multiframe, and no slot counts as missed.
func (m *Model) followClock(now int64) (stepped bool) {
	if now < m.nextClockCheck {
		return false
	}
	m.nextClockCheck = now + offsetInterval
	before := m.time.offset
	m.time.offset = m.config.EpochOffset()
	if step := m.time.offset - before; step < m.time.duration && -step < m.time.duration {
		return false
	}
	m.airOffset = m.time.offset
	resume := m.time.nextMultiframe(now)
	for _, s := range m.stations {
		s.resume, s.next = resume, never
	}
	m.planSlots(now)
	return true
}

// begin makes all stations send that have the slot.
func (m *Model) begin(now, slot int64) {
	m.current = m.openSlot(slot)
	m.nextSlot = never
	for _, s := range m.stations {
		if s.next < slot {
			m.countMissedSlots(s, now, slot)
		}
		if s.next == slot {
			if m.send(s, slot, now) {
				m.current.add(&s.burst)
			}
			s.next = m.nextUsefulSlot(s, slot+1)
		}
		m.nextSlot = min(m.nextSlot, s.next)
	}
	if len(m.current.bursts) == 0 { // such as under radio silence
		m.busy = slices.DeleteFunc(m.busy, func(u *slotInUse) bool { return u == m.current })
		m.slots.Keep(m.current)
	}
}

// countMissedSlots counts a station's slots for which the loop was too late. Their frames wait for the next slot.
func (m *Model) countMissedSlots(s *station, now, slot int64) {
	missed := radio.Interval{From: m.time.start(s.next), To: now}
	for ; s.next < slot; s.next = m.nextUsefulSlot(s, s.next+1) {
		late := now - m.time.start(s.next)
		s.slots.addLateness(late)
		s.slots.Missed++
		missed.Count++
		missed.Worst = max(missed.Worst, late)
	}
	if s.next != never {
		missed.To = m.time.start(s.next)
	}
	s.missedIn.Add(missed)
}

// addLateness counts the lateness of the loop at a slot.
func (c *SlotStatistics) addLateness(lateness int64) {
	lateness = max(lateness, 0)
	c.Lateness.Add(radio.LatenessBounds, lateness)
	c.WorstLateness = max(c.WorstLateness, lateness)
}

// listen records the frequency on which each station listens in a slot.
func (m *Model) listen(u *slotInUse, slot int64) {
	frame, index := m.time.position(slot)
	for _, s := range m.stations {
		listens := 0.0
		if s.plan != nil {
			if is := m.slot(s, frame, index); is.Kind == Receive {
				listens = float64(is.FrequencyHertz)
			}
		}
		u.listensOn = append(u.listensOn, listens)
	}
}

// send fills a station's slot and begins to send it. It reports whether anything is sent.
func (m *Model) send(s *station, slot, now int64) bool {
	frame, index := m.time.position(slot)
	is := m.slot(s, frame, index)
	structure := &m.config.Schedule.structure
	power := is.PowerDBm
	if is.OwnPower {
		power = m.medium.Radio(s.port).TransmitPowerDBm
	}
	s.air = phy.Transmission{Source: s.port, Start: m.airStart(m.current), FrequencyHertz: float64(is.FrequencyHertz), PowerDBm: power}
	s.filling.reset()
	s.destination = is.Destination
	rate := is.RateBitsPerSecond
	for {
		if len(m.rates) > 0 {
			e := s.head(&m.config.Queue, is.Class, is.Destination)
			if e == nil {
				break
			}
			s.air.RateBitsPerSecond = m.rateFor(s, e)
			rate = uint64(s.air.RateBitsPerSecond)
		}
		s.room = structure.Capacity(rate)
		s.fill(&s.filling, is.Class)
		// If only too large frames were taken, the next one may need another rate.
		if !m.dropTooLarge(s) || s.bytes > 0 {
			break
		}
	}
	if s.bytes == 0 {
		return false
	}
	if !m.medium.Radio(s.port).Transmit {
		m.dropSilenced(s)
		return false
	}
	s.slots.addLateness(now - m.time.start(slot))
	s.slots.Used++
	s.air.Index = s.index
	s.index++
	s.air.RateBitsPerSecond = float64(rate)
	s.air.Bytes = messageBytes(slot, rate, s.parts)
	s.air.End = s.air.Start + min(radio.TimeOnAir(s.bytes, float64(rate)), m.current.duration-1)
	m.medium.Begin(&s.air)
	if m.network.Distributed() {
		m.ship(s, slot)
	}
	return true
}

func (m *Model) dropTooLarge(s *station) (any bool) {
	any = len(s.tooLarge) > 0
	for _, e := range s.tooLarge {
		m.drop(e, radio.TooLarge)
	}
	clear(s.tooLarge)
	s.tooLarge = s.tooLarge[:0]
	return any
}

// dropSilenced drops what a radio under radio silence would have sent.
func (m *Model) dropSilenced(s *station) {
	for i := range s.parts {
		p := &s.parts[i]
		p.incomplete = true
		if p.last {
			m.drop(p.entry, radio.EmissionControl)
		}
	}
	s.filling.reset()
}

// rateFor returns the adaptive rate for a frame: the highest whose threshold is reached at the addressee, or
// at the worst receiver in range of a broadcast. It is the lowest rate if nobody is in range.
func (m *Model) rateFor(s *station, e *entry) float64 {
	lowest, worst := float64(m.rates[0].BitsPerSecond), 0.0
	found := false
	if e.nem != BroadcastNEM {
		if to := m.network.Find(e.to); to != nil {
			if n := m.medium.Neighbour(m.current.start(), s.port, to, s.air.PowerDBm); n != nil {
				worst, found = m.sinr(s, n)
			}
		}
	} else {
		all := m.medium.Neighbours(m.current.start(), s.port, s.air.PowerDBm)
		for i := range all {
			if sinr, hears := m.sinr(s, &all[i]); hears && (!found || sinr < worst) {
				worst, found = sinr, true
			}
		}
	}
	if !found {
		return lowest
	}
	for i := len(m.rates) - 1; i > 0; i-- {
		if worst >= m.rates[i].SINRDB {
			return float64(m.rates[i].BitsPerSecond)
		}
	}
	return lowest
}

// sinr at a listening receiver, over thermal noise and jammers. A sender cannot know who else will send in
// the slot.
func (m *Model) sinr(s *station, to *phy.Neighbour) (dB float64, hears bool) {
	r := to.Radio()
	power, noise := s.air.PowerDBm+to.GainDB, r.SensitivityDBm()
	if power < noise || m.current.listensOn[to.Port.Slot] != s.air.FrequencyHertz {
		return 0, false
	}
	if m.config.Interference != phy.None {
		if jamming := m.config.Environment.Jamming(to.Port, m.current.start(), s.air.FrequencyHertz, r.BandwidthHertz); jamming > 0 {
			noise = max(noise, phy.DBm(jamming)+r.AntennaGainDBi)
		}
	}
	return power - noise, true
}
