package phy

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
)

// audience is who is within reach of a sender's transmissions to everybody, or nearly, for those that are alike. In a large network most receivers
// have no chance, and to find that anew for each transmission would be most of what it costs: they are counted together, some time later.
type audience struct {
	of terms
	// known tells that the rest holds for the sender's neighbours as they are.
	known    bool
	chances  []Neighbour
	hopeless []hopeless
	// uncounted transmissions to the hopeless, the last of them at a time.
	uncounted uint32
	last      int64
}

// terms of a transmission decide who has a chance, its size does not.
type terms struct {
	frequencyHertz, bandwidthHertz, powerDBm, rateBitsPerSecond float64
	subID                                                       int
}

// hopeless is a receiver that misses every such transmission.
type hopeless struct {
	port      *radio.Port
	reception Reception
}

func (t *Transmission) terms() terms {
	return terms{t.FrequencyHertz, t.bandwidthHertz, t.PowerDBm, t.RateBitsPerSecond, t.subID}
}

// Audience of a transmission to everybody is those of its Neighbours that this host serves and that have a chance of receiving it, if each listens on
// its radio's frequency; Receive decides. That the others miss it is counted by Tally. The slice must not be changed, and is valid until the next
// call for the same source, or of Neighbours, Members or Configure.
func (m *Medium) Audience(now int64, t *Transmission) []Neighbour {
	s := m.member(t.Source)
	if s == nil {
		return nil
	}
	all, a := m.neighbours(now, s, t.PowerDBm), &s.audience
	if of := t.terms(); !a.known || a.of != of {
		m.tally(s)
		a.of, a.known = of, true
		m.divide(all, t, a)
	}
	if len(a.hopeless) > 0 {
		if a.uncounted == 0 {
			m.untallied = append(m.untallied, s)
		}
		a.uncounted++
		a.last = now
	}
	return a.chances
}

// divide neighbours into those with a chance and those without.
func (m *Medium) divide(all []Neighbour, t *Transmission, a *audience) {
	a.chances, a.hopeless = a.chances[:0], a.hopeless[:0]
	for i := range all {
		to := &all[i]
		if !to.Port.Here() {
			continue
		}
		c, heard := m.signal(t, to, to.Radio().FrequencyHertz)
		if heard && m.quiet() && m.config.PCR.never(c.SINRDB, t.RateBitsPerSecond) {
			c.Reason, heard = radio.LowSINR, false
		}
		if heard {
			a.chances = append(a.chances, *to)
		} else {
			a.hopeless = append(a.hopeless, hopeless{to.Port, c})
		}
	}
}

// Tally counts what of so many senders has been missed by those without a chance and was not counted yet, for Links and by Config.Missed. It tells
// whether that is all.
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
	for i := range a.hopeless {
		h := &a.hopeless[i]
		s.links[h.port.Slot].add(a.last, &h.reception, a.uncounted)
		m.config.Missed(h.port, h.reception.Reason, uint64(a.uncounted))
	}
	a.uncounted = 0
	i := slices.Index(m.untallied, s)
	m.untallied = slices.Delete(m.untallied, i, i+1)
}
