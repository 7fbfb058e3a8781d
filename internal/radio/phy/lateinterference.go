package phy

import (
	"math"
	"sort"

	"vignette.dev/vignette/internal/radio"
)

// receivedBurst is a transmission that a local port has received; until is the latest end of those received so far.
type receivedBurst struct {
	Transmission
	until                  int64
	to                     *radio.Port
	powerDBm, listenHertz  float64
	interferenceMilliwatts float64
}

// keepReceived keeps a reception for as long as an overlapping transmission of another host or network may become known.
func (m *Medium) keepReceived(t *Transmission, to *member, c *Reception, listenHertz float64) {
	if !m.distributed || m.config.Interference == None {
		return
	}
	b := receivedBurst{Transmission: *t, until: t.End, to: to.port, powerDBm: c.PowerDBm, listenHertz: listenHertz}
	if noise := Milliwatts(c.NoiseDBm); noise > to.thermal {
		b.interferenceMilliwatts = noise
	}
	if n := len(m.received); n > 0 {
		b.until = max(b.until, m.received[n-1].until)
	}
	if len(m.received) == cap(m.received) {
		old := sort.Search(len(m.received), func(i int) bool { return m.received[i].until > b.until-decisionDelay })
		if old > len(m.received)/2 {
			m.received = m.received[:copy(m.received, m.received[old:])]
		}
	}
	m.received = append(m.received, b)
}

// countLate counts the decided receptions that a transmission would have made fail, as it began before their end.
// Several such transmissions count as if at once.
func (m *Medium) countLate(t *Transmission) {
	for i := len(m.received) - 1; i >= 0 && m.received[i].until > t.Start; i-- {
		b := &m.received[i]
		if b.End <= t.Start || b.Start >= t.End || b.Source == t.Source {
			continue
		}
		r := m.member(b.to)
		if r == nil {
			continue
		}
		power := m.interferingPower(t.Start, t, r, b.listenHertz)
		if power < r.thermal {
			continue
		}
		b.interferenceMilliwatts += power
		sinr := roundedSINR(b.powerDBm, b.interferenceMilliwatts)
		if m.draws.uniform(b.Transmission.Source.NEM, b.to.NEM, b.Index) >= m.config.PCR.Completion(sinr, b.Bytes, b.RateBitsPerSecond) {
			b.End = math.MinInt64 // counts once, whatever overlaps with it later
			b.to.AddLateInterference()
		}
	}
}

// roundedSINR hides rounding errors of logarithms at the ends of curves: signals of equal strength are at 0 dB.
func roundedSINR(powerDBm, noiseMilliwatts float64) float64 {
	return math.Round((powerDBm-DBm(noiseMilliwatts))/roundingDB) * roundingDB
}
