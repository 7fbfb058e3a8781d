package phy

import (
	"cmp"
	"slices"
	"sort"

	"vignette.dev/vignette/internal/radio"
)

// lateness in nanoseconds that a reception may be decided after its end without missing what interfered with it.
const lateness = 1e9

// air is what is and was sent lately. It is the place of EMANE's noise bins, with exact times instead of bins of 20 µs.
type air struct {
	sent []Transmission // from head on, by Start
	head int
	// longest transmission among them, nanoseconds.
	longest int64

	// The transmission that is being decided about and what overlaps with it.
	prepared *Transmission
	start    int64
	others   []*Transmission
	// Scratch: what interferes at one receiver, by Start and by End.
	starts, ends []signal
}

// signal is what a receiver has of an interfering transmission.
type signal struct {
	start, end int64
	milliwatts float64
}

// note keeps a transmission for as long as a reception may overlap with it.
func (a *air) note(t *Transmission) {
	a.prepared = nil
	a.longest = max(a.longest, t.End-t.Start)
	horizon := t.Start - a.longest - lateness
	for a.head < len(a.sent) && a.sent[a.head].End < horizon {
		a.sent[a.head].Source = nil
		a.head++
	}
	if a.head == len(a.sent) {
		a.sent, a.head, a.longest = a.sent[:0], 0, t.End-t.Start
	} else if len(a.sent) == cap(a.sent) && a.head > len(a.sent)/2 {
		a.sent = a.sent[:copy(a.sent, a.sent[a.head:])]
		a.head = 0
	}
	a.sent = append(a.sent, *t)
	for i := len(a.sent) - 1; i > a.head && a.sent[i-1].Start > t.Start; i-- {
		a.sent[i-1], a.sent[i] = a.sent[i], a.sent[i-1]
	}
}

// prepare finds what overlaps with a transmission, once for all its receivers.
func (a *air) prepare(t *Transmission) {
	if a.prepared == t && a.start == t.Start {
		return
	}
	a.prepared, a.start, a.others = t, t.Start, a.others[:0]
	noted := a.sent[a.head:]
	first := sort.Search(len(noted), func(i int) bool { return noted[i].Start >= t.Start-a.longest })
	for i := first; i < len(noted) && noted[i].Start < t.End; i++ {
		if o := &noted[i]; o.End > t.Start && o.Source != t.Source {
			a.others = append(a.others, o)
		}
	}
}

// sends tells whether a port sends while the prepared transmission is on the air.
func (a *air) sends(p *radio.Port) bool {
	for _, o := range a.others {
		if o.Source == p {
			return true
		}
	}
	return false
}

// peak is the highest sum of the signals at any moment of a reception, milliwatts.
func (a *air) peak(t *Transmission) float64 {
	a.ends = append(a.ends[:0], a.starts...)
	slices.SortFunc(a.ends, func(x, y signal) int { return cmp.Compare(x.end, y.end) })
	sum, highest, ended := 0.0, 0.0, 0
	for _, s := range a.starts {
		for ended < len(a.ends) && a.ends[ended].end <= max(s.start, t.Start) {
			sum -= a.ends[ended].milliwatts
			ended++
		}
		sum += s.milliwatts
		highest = max(highest, sum)
	}
	return highest
}

// interference at a receiver that listens on a frequency, milliwatts: the highest at any moment of the reception. As in
// EMANE, what lies below the receiver's sensitivity does not count.
func (m *Medium) interference(now int64, t *Transmission, r *member, listenHertz float64) float64 {
	jamming := m.config.Environment.Jamming(r.port, now, listenHertz, r.radio.BandwidthHertz) * r.antenna
	if jamming < r.thermal {
		jamming = 0
	}
	a, sum := &m.air, 0.0
	a.starts = a.starts[:0]
	for _, o := range a.others {
		if p := m.heard(now, o, r, listenHertz); p >= r.thermal {
			a.starts = append(a.starts, signal{o.Start, o.End, p})
			sum += p
		}
	}
	if len(a.starts) > 1 {
		sum = a.peak(t)
	}
	return jamming + sum
}

// heard is the power of another transmission in a receiver's band, milliwatts; 0 where it does not count.
func (m *Medium) heard(now int64, o *Transmission, r *member, listenHertz float64) float64 {
	if o.Source == r.port || m.config.Interference == OutOfBand && o.subID == r.radio.SubID && o.FrequencyHertz == listenHertz {
		return 0
	}
	share := overlap(o.FrequencyHertz, o.bandwidthHertz, listenHertz, r.radio.BandwidthHertz)
	s := m.member(o.Source)
	if share == 0 || s == nil {
		return 0
	}
	all := m.neighbours(now, s, o.PowerDBm)
	i, found := find(all, r.port)
	if !found {
		return 0
	}
	return o.milliwatts * all[i].ratio * share
}
