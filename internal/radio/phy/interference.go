package phy

import (
	"cmp"
	"slices"
	"sort"

	"vignette.dev/vignette/internal/radio"
)

// decisionDelay in nanoseconds by which a reception may be decided after its end. Interfering transmissions are
// kept that long.
const decisionDelay = 1e9

// recentTransmissions has current and recent transmissions. It replaces EMANE's noise bins of 20 µs with exact times.
type recentTransmissions struct {
	sent []Transmission // from head on, ordered by Start
	head int
	// longest of their durations, nanoseconds.
	longest int64

	// The transmission that is being decided, and those that overlap with it.
	overlapsOf    *Transmission
	overlapsStart int64
	others        []*Transmission
	// Scratch: the interference at one receiver, by Start and by End.
	starts, ends []signal
}

// signal is an interfering transmission at a receiver.
type signal struct {
	start, end int64
	milliwatts float64
}

// add keeps a transmission for as long as a reception may overlap with it.
func (a *recentTransmissions) add(t *Transmission) {
	a.overlapsOf = nil
	a.longest = max(a.longest, t.End-t.Start)
	horizon := t.Start - a.longest - decisionDelay
	for a.head < len(a.sent) && a.sent[a.head].End < horizon {
		a.sent[a.head].Source = nil
		a.head++
	}
	if a.head == len(a.sent) {
		a.sent, a.head, a.longest = a.sent[:0], 0, t.End-t.Start
	} else if len(a.sent) == cap(a.sent) && a.head > len(a.sent)/2 {
		a.sent = a.sent[:copy(a.sent, a.sent[a.head:])]
		a.head, a.longest = 0, t.End-t.Start
		for i := range a.sent {
			a.longest = max(a.longest, a.sent[i].End-a.sent[i].Start)
		}
	}
	a.sent = append(a.sent, *t)
	for i := len(a.sent) - 1; i > a.head && a.sent[i-1].Start > t.Start; i-- {
		a.sent[i-1], a.sent[i] = a.sent[i], a.sent[i-1]
	}
}

// findOverlaps finds the transmissions that overlap with one, once for all its receivers.
func (a *recentTransmissions) findOverlaps(t *Transmission) {
	if a.overlapsOf == t && a.overlapsStart == t.Start {
		return
	}
	a.overlapsOf, a.overlapsStart, a.others = t, t.Start, a.others[:0]
	noted := a.sent[a.head:]
	first := sort.Search(len(noted), func(i int) bool { return noted[i].Start >= t.Start-a.longest })
	for i := first; i < len(noted) && noted[i].Start < t.End; i++ {
		if o := &noted[i]; o.End > t.Start && o.Source != t.Source {
			a.others = append(a.others, o)
		}
	}
}

// isSending reports whether a port sends during the prepared transmission.
func (a *recentTransmissions) isSending(p *radio.Port) bool {
	for _, o := range a.others {
		if o.Source == p {
			return true
		}
	}
	return false
}

// peak is the highest sum of the signals at any moment of a reception, milliwatts.
func (a *recentTransmissions) peak(t *Transmission) float64 {
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

// interference at a receiver that listens on a frequency, milliwatts: the highest at any moment of the
// reception. As in EMANE, signals below the receiver's sensitivity do not count.
func (m *Medium) interference(now int64, t *Transmission, r *member, listenHertz float64) float64 {
	jamming := m.config.Environment.Jamming(r.port, now, listenHertz, r.radio.BandwidthHertz) * r.antenna
	if jamming < r.thermal {
		jamming = 0
	}
	a, sum := &m.recent, 0.0
	a.starts = a.starts[:0]
	for _, o := range a.others {
		if p := m.interferingPower(now, o, r, listenHertz); p >= r.thermal {
			a.starts = append(a.starts, signal{o.Start, o.End, p})
			sum += p
		}
	}
	if len(a.starts) > 1 {
		sum = a.peak(t)
	}
	return jamming + sum
}

// interferingPower is the power of another transmission in a receiver's band, milliwatts; 0 if it does not count.
func (m *Medium) interferingPower(now int64, o *Transmission, r *member, listenHertz float64) float64 {
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
	return o.milliwatts * all[i].gainRatio * share
}
