package phy

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
)

// audience is who is within reach of a sender's transmissions to everybody, or nearly, for those that are alike. In a large network most receivers
// have no chance, and many of the others are certain to receive. To find that anew for each transmission would be most of what it costs: they are
// counted together, some time later.
type audience struct {
	of terms
	// known tells that the rest holds for the sender's neighbours as they are.
	known   bool
	certain []*radio.Port
	open    []Neighbour
	settled []settled
	// uncounted transmissions to the settled ones, the last of them at a time.
	uncounted uint32
	last      int64
}

// terms of a transmission decide whose fate is settled, its size does not.
type terms struct {
	frequencyHertz, bandwidthHertz, powerDBm, rateBitsPerSecond float64
	subID                                                       int
}

// settled is a receiver that is certain to receive, or to miss, every such transmission.
type settled struct {
	port      *radio.Port
	slot      int
	reception Reception
}

func (t *Transmission) terms() terms {
	return terms{t.FrequencyHertz, t.bandwidthHertz, t.PowerDBm, t.RateBitsPerSecond, t.subID}
}

// Audience of a transmission to everybody is those of its Neighbours that this host serves and that may receive it, if each listens on its radio's
// frequency: those that are certain to, and those of which Receive decides. What becomes of the others, and of the certain ones, is counted by Tally.
// The slices must not be changed, and are valid until the next call for the same source, or of Neighbours, Members or Configure.
func (m *Medium) Audience(now int64, t *Transmission) (certain []*radio.Port, open []Neighbour) {
	s := m.member(t.Source)
	if s == nil {
		return nil, nil
	}
	all, a := m.neighbours(now, s, t.PowerDBm), &s.audience
	if of := t.terms(); !a.known || a.of != of {
		m.tally(s)
		a.of, a.known = of, true
		m.divide(all, t, a)
	}
	if len(a.settled) > 0 {
		if a.uncounted == 0 {
			m.untallied = append(m.untallied, s)
		}
		a.uncounted++
		a.last = now
	}
	return a.certain, a.open
}

// divide neighbours into those whose fate is settled and those whose is not.
func (m *Medium) divide(all []Neighbour, t *Transmission, a *audience) {
	a.certain, a.open, a.settled = a.certain[:0], a.open[:0], a.settled[:0]
	for i := range all {
		to := &all[i]
		e := &m.ears[to.slot]
		if !e.here {
			continue
		}
		c, open := m.signal(t, to, e.frequencyHertz)
		if open && m.quiet() {
			open = c.settle(m.config.PCR, t.RateBitsPerSecond)
		}
		if open {
			a.open = append(a.open, *to)
			continue
		}
		a.settled = append(a.settled, settled{to.Port, to.slot, c})
		if c.Received {
			a.certain = append(a.certain, to.Port)
		}
	}
}

// settle what becomes of a signal that nothing interferes with, unless a draw decides.
func (c *Reception) settle(curve *Curve, rateBitsPerSecond float64) (open bool) {
	switch {
	case curve.always(c.SINRDB, rateBitsPerSecond):
		c.Received = true
	case curve.never(c.SINRDB, rateBitsPerSecond):
		c.Reason = radio.LowSINR
	default:
		return true
	}
	return false
}

// Tally counts what became of transmissions of so many senders where that was settled, for Links and by Config.Missed, as far as it was not counted
// yet. It tells whether that is all.
func (m *Medium) Tally(senders int) (all bool) {
	for range min(senders, len(m.untallied)) {
		last := len(m.untallied) - 1
		m.tally(m.untallied[last])
	}
	return len(m.untallied) == 0
}

// tally counts for one sender.
func (m *Medium) tally(s *member) {
	a := &s.audience
	if a.uncounted == 0 {
		return
	}
	for i := range a.settled {
		to := &a.settled[i]
		s.hears(to.slot, a.last, &to.reception, a.uncounted)
		if !to.reception.Received {
			m.config.Missed(to.port, to.reception.Reason, uint64(a.uncounted))
		}
	}
	a.uncounted = 0
	i := slices.Index(m.untallied, s)
	m.untallied = slices.Delete(m.untallied, i, i+1)
}
