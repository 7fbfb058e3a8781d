package emane

import (
	"cmp"
	"math"
	"slices"
	"time"

	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// heardFor is how long a receiver counts after it has heard a sender.
	heardFor = 10 * time.Second
	// raiseAfter is how long a higher rate must be possible before it is taken. A new schedule starts with the next
	// multiframe, until which the node does not send.
	raiseAfter = 5 * time.Second
)

// Adapter chooses the rates of members of a TDMA network by the SINR at their receivers: EMANE's slots have fixed rates.
// It is for one goroutine.
type Adapter struct {
	rates   []tdma.Rate // ascending
	heard   map[direction]reception
	local   map[int]bool
	senders map[int]*sender
}

// direction from a sender to a receiver, by NEM ids.
type direction struct{ from, to int }

// reception of a sender's last transmission above the sensitivity.
type reception struct {
	sinrDB float64
	above  uint64
	at     time.Duration
}

// sender has its rate, and since when a higher one has been possible.
type sender struct {
	rate     uint64
	possible bool
	since    time.Duration
	// keptUntil is how long the rate is kept while nobody is known to have heard the sender.
	keptUntil time.Duration
}

// NewAdapter of a network, nil for one without adaptive rates.
func NewAdapter(w *v1alpha1.WaveformSpec) *Adapter {
	if w.TDMA == nil || len(w.TDMA.AdaptiveRates) == 0 {
		return nil
	}
	a := &Adapter{heard: map[direction]reception{}, local: map[int]bool{}, senders: map[int]*sender{}}
	for _, r := range w.TDMA.AdaptiveRates {
		a.rates = append(a.rates, tdma.Rate{BitsPerSecond: uint64(r.Rate.BitsPerSecond()), SINRDB: r.SINR.DB()})
	}
	slices.SortFunc(a.rates, func(x, y tdma.Rate) int { return cmp.Compare(x.BitsPerSecond, y.BitsPerSecond) })
	return a
}

// ThermalNoiseDBm of a member's receiver, whose bandwidth is its schedule's.
func ThermalNoiseDBm(spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member, schedule *tdma.Schedule) float64 {
	return -174 + phyOf(spec, member).noiseFigureDB + 10*math.Log10(float64(schedule.Structure().BandwidthHertz))
}

// Observe takes a receiver's statistics and noise at a time. The SINR is that over thermal noise.
func (a *Adapter) Observe(now time.Duration, s *Statistics, noiseDBm float64) {
	a.local[s.NEM] = true
	for from, power := range s.PowerDBm {
		counts := s.bursts[from]
		if counts == nil || from == s.NEM {
			continue
		}
		key := direction{from, s.NEM}
		if last, known := a.heard[key]; !known || last.above != counts.above {
			a.heard[key] = reception{power - noiseDBm, counts.above, now}
		}
	}
}

// Rate returns the rate of a sender at a time: the highest whose threshold the SINR at its worst receiver reaches, else the
// lowest. Of receivers on other hosts, the SINR is that of their transmissions here.
func (a *Adapter) Rate(now time.Duration, nem int) (bitsPerSecond uint64) {
	worst, any := math.Inf(1), false
	for key, r := range a.heard {
		counts := key.from == nem || key.to == nem && !a.local[key.from]
		if counts && now-r.at <= heardFor {
			worst, any = min(worst, r.sinrDB), true
		}
	}
	s := a.senderOf(nem)
	if !any && now < s.keptUntil {
		return s.rate
	}
	possible := a.rates[0].BitsPerSecond
	for _, r := range a.rates {
		if any && worst >= r.SINRDB {
			possible = r.BitsPerSecond
		}
	}
	return s.follow(now, possible)
}

// Resume begins with the rate that a sender has already, if it is one of the network's.
func (a *Adapter) Resume(now time.Duration, nem int, bitsPerSecond uint64) {
	if slices.ContainsFunc(a.rates, func(r tdma.Rate) bool { return r.BitsPerSecond == bitsPerSecond }) {
		a.senders[nem] = &sender{rate: bitsPerSecond, keptUntil: now + heardFor}
	}
}

func (a *Adapter) senderOf(nem int) *sender {
	if a.senders[nem] == nil {
		a.senders[nem] = &sender{rate: a.rates[0].BitsPerSecond}
	}
	return a.senders[nem]
}

// follow takes a lower rate at once, and a higher one if it has been possible for a while.
func (s *sender) follow(now time.Duration, possible uint64) uint64 {
	switch {
	case possible <= s.rate:
		s.rate, s.possible = possible, false
	case !s.possible:
		s.possible, s.since = true, now
	case now-s.since >= raiseAfter:
		s.rate, s.possible = possible, false
	}
	return s.rate
}
