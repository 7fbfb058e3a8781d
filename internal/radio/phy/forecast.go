package phy

import "vignette.dev/vignette/internal/radio"

// Forecast is what becomes of a transmission to everybody that is about to end, where nothing interferes. It implements radio.Reckoning: what it reckons
// is its own until the medium books it, and what it reads is not changed meanwhile. So if its thread stands still, another one may forecast the same anew.
type Forecast struct {
	view         *view
	now          int64
	transmission Transmission
	slot         int // of the source
	gainDBi      float64
	// audience of the transmission, which is new where the source has none that holds.
	audience *audience
	isNew    bool
	received []bool // by those of the audience that are open
	reached  []*radio.Port
	// pending: it was prepared, and is not booked yet.
	pending bool
	// spare audience and scratch.
	spare  *audience
	losses []float64 // by slot
}

// Prepare to forecast what becomes of a transmission to everybody that ends now: to be reckoned, and then booked by Broadcast. It gives nil where that cannot
// be told from the transmission alone. The forecast before it, if it was not booked, may still be reckoned by a thread that was left behind.
func (m *Medium) Prepare(now int64, t *Transmission) *Forecast {
	s := m.member(t.Source)
	if s == nil || !m.quiet() {
		return nil
	}
	f := m.forecast
	if f.pending {
		f.audience.lent = true
		f = &Forecast{}
		m.forecast = f
	}
	f.view, f.now, f.transmission, f.slot, f.gainDBi, f.pending = m.view, now, *t, s.port.Slot, s.radio.AntennaGainDBi, true
	holds := condition{m.view, t.terms(), m.version(now), s.reach(t.PowerDBm)}
	f.audience, f.isNew = s.audience, s.audience == nil || s.audience.condition != holds
	if f.isNew {
		f.audience = f.vacant()
		f.audience.condition = holds
	}
	return f
}

// vacant audience.
func (f *Forecast) vacant() (a *audience) {
	if a, f.spare = f.spare, nil; a == nil {
		a = &audience{}
	}
	return a
}

// Reckon who receives the transmission.
func (f *Forecast) Reckon() {
	if f.isNew {
		f.divide()
	}
	a, t, v := f.audience, &f.transmission, f.view
	f.received = f.received[:0]
	f.reached = append(f.reached[:0], a.certain...)
	for i := range a.open {
		to := &a.open[i]
		received := v.draws.uniform(t.Source.NEM, to.nem, t.Index) < v.pcr.sized(to.completion, t.Bytes)
		f.received = append(f.received, received)
		if received {
			f.reached = append(f.reached, to.port)
		}
	}
}

// divide those within reach, or nearly, by whether their fate is settled.
func (f *Forecast) divide() {
	a, t, v := f.audience, &f.transmission, f.view
	a.certain, a.open, a.settled = a.certain[:0], a.open[:0], a.settled[:0]
	if len(f.losses) != len(v.ears) {
		f.losses = make([]float64, len(v.ears))
	}
	v.lossesFrom(f.slot, f.now, f.losses)
	for slot, loss := range f.losses {
		e := &v.ears[slot]
		gain := f.gainDBi + e.antennaGainDBi - loss
		if !e.within(a.reachDBm+gain) || slot == f.slot || !e.here {
			continue
		}
		c, heard := arrival(t, gain, e, e.frequencyHertz)
		completion := 0.0
		if heard {
			c.Reason = radio.LowSINR
			completion = v.pcr.unsized(c.SINRDB, t.RateBitsPerSecond)
		}
		switch arrive := completion >= 1; {
		case arrive:
			a.certain = append(a.certain, v.ports[slot])
			fallthrough
		case completion <= 0:
			a.settled = append(a.settled, settled{c.sounding(), slot, arrive, c.Reason})
		default:
			a.open = append(a.open, open{at: c.sounding(), slot: slot, nem: v.nems[slot], port: v.ports[slot], completion: completion})
		}
	}
}

// forecastOf a transmission that ends now: the one that was prepared and reckoned, or else one that is.
func (m *Medium) forecastOf(now int64, t *Transmission) *Forecast {
	f := m.forecast
	if !f.pending || f.now != now || f.transmission != *t {
		f = m.Prepare(now, t)
		f.Reckon()
	}
	return f
}

// book what a forecast says of a member's transmission, and give who receives it.
func (m *Medium) book(s *member, f *Forecast) []*radio.Port {
	a := f.audience
	f.pending = false
	if f.isNew {
		m.tally(s)
		if old := s.audience; old != nil && !old.lent {
			f.spare = old
		}
		s.audience = a
	}
	if a.uncounted == 0 {
		m.untallied = append(m.untallied, s)
	}
	a.uncounted++
	a.last = f.now
	for i, received := range f.received {
		if to := &a.open[i]; received {
			to.received++
		} else {
			to.missed++
		}
	}
	return f.reached
}
