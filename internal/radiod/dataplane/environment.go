package dataplane

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
)

// Environment of a network's radios as a function of time: steps, prepared ahead of their times.
type Environment struct {
	// Network is the UID of the network.
	Network string
	// Begins replaces the environment: the first of Steps holds until the second, from ever. Otherwise Steps, which are
	// later than those before, add to it.
	Begins bool
	// NEMs of the members, which number them in Steps; with Begins only.
	NEMs []int
	// T0 by CLOCK_MONOTONIC. It changes where CLOCK_REALTIME is set.
	T0    int64
	Steps []Step
}

// Step is the state from one time until the next step.
type Step struct {
	// AtNanoseconds after T0.
	AtNanoseconds int64
	// Version of the pathloss. Steps with the same pathloss have the same version.
	Version uint64
	// Pathloss in dB from one member to another, by rows of senders; NaN is unknown. It may be nil where the version is
	// that of the step before.
	Pathloss Decibels
	// Effects on the links from one member to another, by rows of senders; only of networks with comm effects, and nil
	// where they are those of the step before.
	Effects []Effect
	Jammers []Jamming
}

// Decibels of pairs.
type Decibels []float32

// GobEncode implements gob.GobEncoder. Package gob would spend most of a step's time on single values.
func (d Decibels) GobEncode() ([]byte, error) {
	b := make([]byte, 0, 4*len(d))
	for _, v := range d {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b, nil
}

// GobDecode implements gob.GobDecoder.
func (d *Decibels) GobDecode(b []byte) error {
	*d = make(Decibels, len(b)/4)
	for i := range *d {
		(*d)[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

// Effect of a scenario on a pair of members, if it has one.
type Effect struct {
	link.Effect
	Known bool
}

// Jamming is the effect of one jammer.
type Jamming struct {
	Noise phy.Noise
	// Milliwatts at the members' antennas.
	Milliwatts []float64
}

// environment answers a network's model. The loop's thread reads it while others add steps.
type environment struct {
	members atomic.Pointer[members]
	clock   slotClock
}

// members of a network, and the steps of their environment.
type members struct {
	count int
	index []int32 // members by NEM id, -1 for none
	// t0 is T0 by CLOCK_MONOTONIC.
	t0 atomic.Int64
	// current is the step of the last query, last the newest.
	current atomic.Pointer[step]
	last    *step
}

type step struct {
	Step
	next atomic.Pointer[step]
}

// apply carries out a request. Only one goroutine at a time may call it.
func (a *environment) apply(e *Environment) error {
	m, steps := a.members.Load(), e.Steps
	switch {
	case e.Begins && (len(steps) == 0 || steps[0].Pathloss == nil && steps[0].Effects == nil):
		return fmt.Errorf("environment of network %s: it begins without pathloss or comm effects", e.Network)
	case !e.Begins && m == nil:
		return fmt.Errorf("environment of network %s: it has not begun", e.Network)
	}
	count := len(e.NEMs)
	if !e.Begins {
		count = m.count
	}
	for i := range steps {
		if err := steps[i].check(count); err != nil {
			return fmt.Errorf("environment of network %s: %w", e.Network, err)
		}
	}
	if e.Begins {
		m, steps = newMembers(e.NEMs, &steps[0]), steps[1:]
	}
	m.t0.Store(e.T0)
	for i := range steps {
		next := &step{Step: steps[i]}
		if next.Pathloss == nil {
			next.Pathloss = m.last.Pathloss
		}
		if next.Effects == nil {
			next.Effects = m.last.Effects
		}
		m.last.next.Store(next)
		m.last = next
	}
	m.at(clock.Monotonic()) // releases past steps, even if the loop does not query
	a.members.Store(m)
	return nil
}

// lastSteps returns when the last steps of networks' environments hold, by the networks' UIDs.
func (l *Local) lastSteps(uids []string) map[string]int64 {
	steps := map[string]int64{}
	for _, uid := range uids {
		n, err := l.find(uid)
		if err != nil {
			continue // its first request failed
		}
		n.setting.Lock()
		if m := n.environment.members.Load(); m != nil {
			steps[uid] = m.last.AtNanoseconds
		}
		n.setting.Unlock()
	}
	return steps
}

// check reports whether a step is one of that many members.
func (s *Step) check(members int) error {
	if pairs := members * members; s.Pathloss != nil && len(s.Pathloss) != pairs || s.Effects != nil && len(s.Effects) != pairs {
		return fmt.Errorf("a step with %d pathlosses and %d effects: want %d", len(s.Pathloss), len(s.Effects), pairs)
	}
	for i := range s.Jammers {
		if n := len(s.Jammers[i].Milliwatts); n != members {
			return fmt.Errorf("a jammer's power at %d members: want %d", n, members)
		}
	}
	return nil
}

func newMembers(nems []int, first *Step) *members {
	m := &members{count: len(nems), last: &step{Step: *first}}
	for i, nem := range nems {
		for len(m.index) <= nem {
			m.index = append(m.index, -1)
		}
		m.index[nem] = int32(i) //nolint:gosec // as many as a network has members
	}
	m.current.Store(m.last)
	return m
}

// member returns the number of the member with a NEM id, or -1.
func (m *members) member(nem int) int {
	if nem < 0 || nem >= len(m.index) {
		return -1
	}
	return int(m.index[nem])
}

// at returns the step that holds at a time of CLOCK_MONOTONIC, or a later one that was already queried.
func (m *members) at(now int64) *step {
	current := m.current.Load()
	next := current.next.Load()
	if next == nil || now-m.t0.Load() < next.AtNanoseconds {
		return current
	}
	for next != nil && now-m.t0.Load() >= next.AtNanoseconds {
		current = next
		next = next.next.Load()
	}
	m.current.Store(current)
	return current
}

// Pathloss from one port to another in dB; nothing is received if it is unknown. It implements
// phy.Environment.
func (a *environment) Pathloss(from, to *radio.Port, now int64) (dB float64, known bool) {
	m := a.members.Load()
	if m == nil {
		return 0, false
	}
	i, j := m.member(from.NEM), m.member(to.NEM)
	if i < 0 || j < 0 {
		return 0, false
	}
	loss := m.at(now).Pathloss[i*m.count+j]
	return float64(loss), loss == loss //nolint:staticcheck // unknown is NaN, which differs from itself
}

// PathlossToAll writes the pathloss in dB from one port to others, by NEM ids; NaN if unknown. It implements
// phy.Batched.
func (a *environment) PathlossToAll(from int, to []int, now int64, dB []float64) {
	var row []float32
	m := a.members.Load()
	if m != nil {
		if i := m.member(from); i >= 0 {
			row = m.at(now).Pathloss[i*m.count:]
		}
	}
	for k, nem := range to {
		dB[k] = math.NaN()
		if row == nil {
			continue
		}
		if j := m.member(nem); j >= 0 {
			dB[k] = float64(row[j])
		}
	}
}

// Version of the pathloss at a time. It implements phy.Versioned.
func (a *environment) Version(now int64) uint64 {
	m := a.members.Load()
	if m == nil {
		return 0
	}
	return m.at(now).Version
}

// Jamming is the jammers' power at a port's antenna, before its gain, in the given band. It implements phy.Environment.
func (a *environment) Jamming(at *radio.Port, now int64, frequencyHertz, bandwidthHertz float64) (milliwatts float64) {
	m := a.members.Load()
	if m == nil {
		return 0
	}
	i := m.member(at.NEM)
	if i < 0 {
		return 0
	}
	jammers := m.at(now).Jammers
	for k := range jammers {
		j := &jammers[k]
		milliwatts += j.Milliwatts[i] * j.Noise.Share(frequencyHertz, bandwidthHertz)
	}
	return milliwatts
}

// Effect of a scenario's comm effects on frames from one port to another. It implements link.Effects.
func (a *environment) Effect(from, to *radio.Port, now int64) (e link.Effect, known bool) {
	m := a.members.Load()
	if m == nil {
		return e, false
	}
	i, j := m.member(from.NEM), m.member(to.NEM)
	effects := m.at(now).Effects
	if i < 0 || j < 0 || effects == nil {
		return e, false
	}
	k := i*m.count + j
	return effects[k].Effect, effects[k].Known
}
