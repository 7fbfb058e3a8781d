package worker

import (
	"math"
	"sync/atomic"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
)

// environment is the environment of a network's radios: pathloss and jamming as functions of time, and the clock of
// its time slots. It is read on the thread of the network's loop, and extended by a preparation in the
// background.
type environment struct {
	moments atomic.Pointer[momentChain]
	clock   slotClock
}

// Pathloss from one port to another in dB; nothing is received if it is unknown. It implements
// phy.Environment.
func (a *environment) Pathloss(from, to *radio.Port, now int64) (dB float64, known bool) {
	t := a.moments.Load()
	if t == nil {
		return 0, false
	}
	i, j := t.member(from.NEM), t.member(to.NEM)
	if i < 0 || j < 0 {
		return 0, false
	}
	loss := t.momentAt(now).pathloss[i*t.members+j]
	return float64(loss), loss == loss //nolint:staticcheck // unknown is NaN, which differs from itself
}

// between is the pathloss from one antenna to another in dB, without the gains of antenna profiles.
func (a *environment) between(from, to *radio.Port, now int64) (dB float64, known bool) {
	t := a.moments.Load()
	if t == nil {
		return 0, false
	}
	i, j, m := t.member(from.NEM), t.member(to.NEM), t.momentAt(now)
	if i < 0 || j < 0 || m.withoutAntennas == nil {
		return 0, false
	}
	loss := m.withoutAntennas[i*t.members+j]
	return float64(loss), loss == loss //nolint:staticcheck // unknown is NaN, which differs from itself
}

// PathlossToAll writes the pathloss in dB from one port to others, by NEM ids; NaN if unknown. It implements
// phy.Batched.
func (a *environment) PathlossToAll(from int, to []int, now int64, dB []float64) {
	var row []float32
	t := a.moments.Load()
	if t != nil {
		if i := t.member(from); i >= 0 {
			row = t.momentAt(now).pathloss[i*t.members:]
		}
	}
	for k, nem := range to {
		dB[k] = math.NaN()
		if row == nil {
			continue
		}
		if j := t.member(nem); j >= 0 {
			dB[k] = float64(row[j])
		}
	}
}

// Version of the pathloss at a time. It implements phy.Versioned.
func (a *environment) Version(now int64) uint64 {
	t := a.moments.Load()
	if t == nil {
		return 0
	}
	return t.momentAt(now).version
}

// versions numbers the pathloss of all networks; 0 means none.
var versions atomic.Uint64

// Jamming is the jammers' power at a port's antenna, before its gain, in the given band. It implements phy.Environment.
func (a *environment) Jamming(at *radio.Port, now int64, frequencyHertz, bandwidthHertz float64) (milliwatts float64) {
	t := a.moments.Load()
	if t == nil {
		return 0
	}
	i := t.member(at.NEM)
	if i < 0 {
		return 0
	}
	jammers := t.momentAt(now).jammers
	for k := range jammers {
		j := &jammers[k]
		milliwatts += j.milliwatts[i] * j.noise.Share(frequencyHertz, bandwidthHertz)
	}
	return milliwatts
}

// Effect of a scenario's comm effects on frames from one port to another. It implements link.Effects.
func (a *environment) Effect(from, to *radio.Port, now int64) (e link.Effect, known bool) {
	t := a.moments.Load()
	if t == nil {
		return e, false
	}
	i, j := t.member(from.NEM), t.member(to.NEM)
	effects := t.momentAt(now).effects
	if i < 0 || j < 0 || effects == nil {
		return e, false
	}
	k := i*t.members + j
	return effects[k].Effect, effects[k].known
}

// effect of a scenario on a pair of members, if it has one.
type effect struct {
	link.Effect
	known bool
}

// moment is the state from one time until the next moment. It does not change once it is linked.
type moment struct {
	// at is its time after T0, nanoseconds.
	at int64
	// pathloss in dB from the one member to the other, by rows of senders; NaN is unknown. It carries by how much
	// the gains of antenna profiles differ from the fixed ones.
	pathloss []float32
	// withoutAntennas is the pathloss without the gains of antenna profiles, as it is reported; pathloss itself where no member has one.
	withoutAntennas []float32
	// version of the pathloss.
	version uint64
	// effects on links from one member to another, by rows of senders; nil for networks without comm effects.
	effects []effect
	// positions of the members; placed reports which are known.
	positions []geo.Position
	placed    []bool
	jammers   []jamming
	next      atomic.Pointer[moment]
}

// jamming is the effect of one jammer.
type jamming struct {
	noise phy.Noise
	// milliwatts at the members' antennas.
	milliwatts []float64
}

// momentChain is a chain of moments, prepared ahead of their times.
type momentChain struct {
	members int
	index   []int32 // members by NEM id, -1 for none
	// t0 is T0 by CLOCK_MONOTONIC.
	t0 atomic.Int64
	// current is the moment of the last query.
	current atomic.Pointer[moment]
}

func newMomentChain(nems []int, first *moment) *momentChain {
	t := &momentChain{members: len(nems)}
	for i, nem := range nems {
		for len(t.index) <= nem {
			t.index = append(t.index, -1)
		}
		t.index[nem] = int32(i) //nolint:gosec // as many as a network has members
	}
	t.current.Store(first)
	return t
}

func (t *momentChain) member(nem int) int {
	if nem < 0 || nem >= len(t.index) {
		return -1
	}
	return int(t.index[nem])
}

// momentAt returns the moment that holds at a time of CLOCK_MONOTONIC, or a later one that was already queried.
func (t *momentChain) momentAt(now int64) *moment {
	current := t.current.Load()
	next := current.next.Load()
	if next == nil || now-t.t0.Load() < next.at {
		return current
	}
	for next != nil && now-t.t0.Load() >= next.at {
		current = next
		next = next.next.Load()
	}
	t.current.Store(current)
	return current
}
