package worker

import (
	"math"
	"sync/atomic"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
)

// air is what lies between a network's radios: pathloss and jamming as functions of time, and the clock that their time slots
// go by. It is asked on the thread of the network's loop, and told by whoever prepares what comes.
type air struct {
	track atomic.Pointer[track]
	clock slotClock
}

// Pathloss from one port to another in dB; unknown where nothing can be received. It implements phy.Environment.
func (a *air) Pathloss(from, to *radio.Port, now int64) (dB float64, known bool) {
	t := a.track.Load()
	if t == nil {
		return 0, false
	}
	i, j := t.member(from.NEM), t.member(to.NEM)
	if i < 0 || j < 0 {
		return 0, false
	}
	loss := t.at(now).pathloss[i*t.members+j]
	return float64(loss), loss == loss //nolint:staticcheck // unknown is NaN, which differs from itself
}

// between is the pathloss from one antenna to another in dB, without the gains of antenna profiles.
func (a *air) between(from, to *radio.Port, now int64) (dB float64, known bool) {
	t := a.track.Load()
	if t == nil {
		return 0, false
	}
	i, j, m := t.member(from.NEM), t.member(to.NEM), t.at(now)
	if i < 0 || j < 0 || m.bare == nil {
		return 0, false
	}
	loss := m.bare[i*t.members+j]
	return float64(loss), loss == loss //nolint:staticcheck // unknown is NaN, which differs from itself
}

// PathlossToAll writes the pathloss in dB from one port to others, by NEM ids, NaN where it is unknown. It implements phy.Batched.
func (a *air) PathlossToAll(from int, to []int, now int64, dB []float64) {
	var row []float32
	t := a.track.Load()
	if t != nil {
		if i := t.member(from); i >= 0 {
			row = t.at(now).pathloss[i*t.members:]
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
func (a *air) Version(now int64) uint64 {
	t := a.track.Load()
	if t == nil {
		return 0
	}
	return t.at(now).version
}

// versions numbers the pathloss of all networks; 0 is that of none.
var versions atomic.Uint64

// Jamming is the jammers' power at a port's antenna, before its gain, in the given band. It implements phy.Environment.
func (a *air) Jamming(at *radio.Port, now int64, frequencyHertz, bandwidthHertz float64) (milliwatts float64) {
	t := a.track.Load()
	if t == nil {
		return 0
	}
	i := t.member(at.NEM)
	if i < 0 {
		return 0
	}
	jammers := t.at(now).jammers
	for k := range jammers {
		j := &jammers[k]
		milliwatts += j.milliwatts[i] * j.overlap(frequencyHertz, bandwidthHertz)
	}
	return milliwatts
}

// Effect of a scenario's comm effects on what one port sends to another. It implements link.Effects.
func (a *air) Effect(from, to *radio.Port, now int64) (e link.Effect, known bool) {
	t := a.track.Load()
	if t == nil {
		return e, false
	}
	i, j := t.member(from.NEM), t.member(to.NEM)
	effects := t.at(now).effects
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

// moment is what holds from one time on until the next moment. It is not changed once it is linked.
type moment struct {
	// at is its time after T0, nanoseconds.
	at int64
	// pathloss in dB from the one member to the other, by rows of senders; NaN is unknown. It carries by how much
	// the gains of antenna profiles differ from the fixed ones.
	pathloss []float32
	// bare is the pathloss without the gains of antenna profiles, as it is reported; pathloss itself where no member has one.
	bare []float32
	// version of the pathloss.
	version uint64
	// effects on links from the one member to the other, by rows of senders; nil for networks that take none.
	effects []effect
	// positions of the members; placed tells which are known.
	positions []geo.Position
	placed    []bool
	jammers   []jamming
	next      atomic.Pointer[moment]
}

// jamming is what one jammer does.
type jamming struct {
	// frequencyHertz and bandwidthHertz of the noise; 0 for those of the receiver.
	frequencyHertz, bandwidthHertz float64
	// milliwatts at the members' antennas.
	milliwatts []float64
}

// overlap is the share of the jammer's power, which is spread evenly over its band, that lies in a receiver's band.
func (j *jamming) overlap(frequencyHertz, bandwidthHertz float64) float64 {
	frequency, bandwidth := j.frequencyHertz, j.bandwidthHertz
	if frequency == 0 {
		frequency = frequencyHertz
	}
	if bandwidth == 0 {
		bandwidth = bandwidthHertz
	}
	if bandwidth <= 0 {
		return 0
	}
	low := math.Max(frequency-bandwidth/2, frequencyHertz-bandwidthHertz/2)
	high := math.Min(frequency+bandwidth/2, frequencyHertz+bandwidthHertz/2)
	return math.Max(high-low, 0) / bandwidth
}

// track is a chain of moments, prepared ahead of the time at which each holds.
type track struct {
	members int
	index   []int32 // members by NEM id, -1 for none
	// zero is T0 by CLOCK_MONOTONIC.
	zero atomic.Int64
	// current was reached by whoever asked last.
	current atomic.Pointer[moment]
}

func newTrack(nems []int, first *moment) *track {
	t := &track{members: len(nems)}
	for i, nem := range nems {
		for len(t.index) <= nem {
			t.index = append(t.index, -1)
		}
		t.index[nem] = int32(i) //nolint:gosec // as many as a network has members
	}
	t.current.Store(first)
	return t
}

func (t *track) member(nem int) int {
	if nem < 0 || nem >= len(t.index) {
		return -1
	}
	return int(t.index[nem])
}

// at is the moment that holds at a time of CLOCK_MONOTONIC, or a later one that was asked for already.
func (t *track) at(now int64) *moment {
	current := t.current.Load()
	next := current.next.Load()
	if next == nil || now-t.zero.Load() < next.at {
		return current
	}
	for next != nil && now-t.zero.Load() >= next.at {
		current = next
		next = next.next.Load()
	}
	t.current.Store(current)
	return current
}
