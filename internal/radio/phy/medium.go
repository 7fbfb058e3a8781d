package phy

import (
	"math"
	"slices"

	"vignette.dev/vignette/internal/radio"
)

// MarginDB below its sensitivity, a receiver is out of range. Signals in between are counted as
// radio.BelowSensitivity, weaker ones not at all, so that far radios cost nothing.
const MarginDB = 10

// Config of a network's medium.
type Config struct {
	// Seed of the draws.
	Seed int64
	// Radio of a port as it is now. Only Members and Configure call it.
	Radio       func(p *radio.Port) Radio
	Environment Environment
	// Interference that counts as noise.
	Interference Interference
	// HalfDuplex radios receive nothing while they send.
	HalfDuplex bool
	// PCR curve; nil for a step: frames at or above the noise are received.
	PCR *Curve
	// Missed counts broadcasts that a port has missed.
	Missed func(p *radio.Port, reason radio.Reason, transmissions uint64)
}

// Transmission is one burst over the air.
type Transmission struct {
	Source *radio.Port
	// Index of the transmission among those of its source, for the draws.
	Index uint64
	// Start and End on the air, nanoseconds of the engine's clock.
	Start, End int64
	// FrequencyHertz and PowerDBm at the antenna's connector.
	FrequencyHertz, PowerDBm float64
	// RateBitsPerSecond and Bytes, for the PCR curve.
	RateBitsPerSecond float64
	Bytes             int

	// Set by Begin from the source's radio.
	bandwidthHertz float64
	subID          int
	milliwatts     float64
}

// Neighbour is a receiver in a sender's range, or nearly.
type Neighbour struct {
	Port *radio.Port
	// GainDB from the sender's to the receiver's connector: both antennas' gains - pathloss.
	GainDB float64

	gainRatio float64 // GainDB as a ratio of powers; only set if transmissions may interfere
	member    *member // of Port
	slot      int     // of Port
}

// Radio of the receiver, as Config gave it last.
func (n *Neighbour) Radio() *Radio { return &n.member.radio }

// member is an attached port.
type member struct {
	port  *radio.Port
	radio Radio
	// thermal is the receiver's noise and sensitivity in milliwatts, antenna its gain as a ratio.
	thermal, antenna float64
	// maxPowerDBm is the highest power asked about so far, or that of the radio.
	maxPowerDBm float64
	// neighbours for a version of the environment and powers up to neighboursDBm.
	neighbours      []Neighbour
	neighboursKnown bool
	version         uint64
	neighboursDBm   float64
	links           []link            // its links by the receiver's slot, so that one transmission changes adjacent memory
	heardLinks      int               // number of links on which something was sent
	broadcasts      broadcastOutcomes // of its broadcasts
}

// receiver has a member's properties as a receiver. Those of all members together fit into few cache lines.
type receiver struct {
	// thermalDBm is the receiver's noise and sensitivity.
	antennaGainDBi, thermalDBm, frequencyHertz, bandwidthHertz float64
	subID                                                      int
	local                                                      bool
}

// inRange reports whether a power reaches the receiver, or nearly; NaN does not.
func (e *receiver) inRange(powerDBm float64) bool { return powerDBm >= e.thermalDBm-MarginDB }

// Medium is what the radios of one network share. It belongs to the network's engine and does not allocate per
// transmission.
type Medium struct {
	config    Config
	versioned Versioned // the environment, if it is Versioned
	batched   Batched   // the environment, if it is Batched
	draws     draws
	members   []*member
	// Properties of the members, by their slot.
	receivers []receiver
	nems      []int
	ports     []*radio.Port
	// radios counts how often the radios were read.
	radios uint64
	recent recentTransmissions
	// received is kept if distributed: some ports are on other hosts.
	received    []receivedBurst
	distributed bool
	untallied   []*member         // senders with uncounted transmissions
	missed      [][reasons]uint64 // by slot: tallied but not yet passed to Config.Missed
	// Scratch.
	losses []float64 // by member
	single Neighbour
}

// NewMedium makes a medium without members.
func NewMedium(config Config) *Medium {
	m := &Medium{}
	m.Configure(config)
	return m
}

// Configure changes the medium for receptions that end from now on.
func (m *Medium) Configure(config Config) {
	m.config = config
	m.readRadios()
}

// Members sets the attached ports, with the arguments of a Model's Members.
func (m *Medium) Members(ports []*radio.Port, from []int) {
	m.Tally(len(m.untallied))
	members := make([]*member, len(ports))
	for slot, was := range from {
		if was >= 0 {
			members[slot] = m.members[was]
		} else {
			members[slot] = &member{port: ports[slot]}
		}
	}
	for _, r := range members {
		r.moveLinks(from)
	}
	m.members, m.losses, m.missed = members, make([]float64, len(ports)), make([][reasons]uint64, len(ports))
	m.readRadios()
}

// readRadios reads every radio. Neighbours are computed again when they are needed.
func (m *Medium) readRadios() {
	m.recent.overlapsOf = nil
	m.radios++
	m.distributed = false
	m.versioned, _ = m.config.Environment.(Versioned)
	m.batched, _ = m.config.Environment.(Batched)
	m.draws = newDraws(m.config.Seed)
	m.receivers, m.nems, m.ports = m.receivers[:0], m.nems[:0], m.ports[:0]
	for _, r := range m.members {
		r.radio = m.config.Radio(r.port)
		thermalDBm := r.radio.SensitivityDBm()
		r.thermal, r.antenna = Milliwatts(thermalDBm), Milliwatts(r.radio.AntennaGainDBi)
		r.neighboursKnown, r.maxPowerDBm = false, r.radio.TransmitPowerDBm
		m.receivers = append(m.receivers, receiver{r.radio.AntennaGainDBi, thermalDBm, r.radio.FrequencyHertz, r.radio.BandwidthHertz, r.radio.SubID, r.port.IsLocal()})
		m.nems, m.ports = append(m.nems, r.port.NEM), append(m.ports, r.port)
		m.distributed = m.distributed || !r.port.IsLocal()
	}
}

// member returns a port's member, or nil if it is not attached any more.
func (m *Medium) member(p *radio.Port) *member {
	if p.Slot >= len(m.members) || m.members[p.Slot].port != p {
		return nil
	}
	return m.members[p.Slot]
}

// Radio of an attached port, as Config gave it last; nil if it is not attached any more.
func (m *Medium) Radio(p *radio.Port) *Radio {
	r := m.member(p)
	if r == nil {
		return nil
	}
	return &r.radio
}

// Begin records a transmission that starts, as interference to others and for HalfDuplex. It must be called
// before Receive for it and for transmissions that overlap with it; those of other hosts and networks that come later are counted by
// radio.Port.AddLateInterference. A source's transmissions do not overlap.
func (m *Medium) Begin(t *Transmission) {
	t.milliwatts = Milliwatts(t.PowerDBm)
	if s := m.member(t.Source); s != nil {
		t.bandwidthHertz, t.subID = s.radio.BandwidthHertz, s.radio.SubID
	}
	if !m.isInterferenceFree() {
		m.recent.add(t)
		m.countLate(t)
	}
}

// Neighbours of a source that sends with at most the given power, in the order of Members. Receivers more
// than MarginDB below their sensitivity are left out, by the highest power asked for so far or the radio's.
// The slice must not be changed. It is valid until the next call for the same source, or of Members or
// Configure.
func (m *Medium) Neighbours(now int64, source *radio.Port, powerDBm float64) []Neighbour {
	s := m.member(source)
	if s == nil {
		return nil
	}
	return m.neighbours(now, s, powerDBm)
}

// version of the environment; without Versioned, each moment has another version.
func (m *Medium) version(now int64) uint64 {
	if m.versioned != nil {
		return m.versioned.Version(now)
	}
	return uint64(now) //nolint:gosec // any mapping that distinguishes times will do
}

// raiseMaxPower returns the highest power that a sender has been asked about, including this one.
func (r *member) raiseMaxPower(powerDBm float64) (reachDBm float64) {
	r.maxPowerDBm = max(r.maxPowerDBm, powerDBm)
	return r.maxPowerDBm
}

func (m *Medium) neighbours(now int64, s *member, powerDBm float64) []Neighbour {
	version, reachDBm := m.version(now), s.raiseMaxPower(powerDBm)
	if !s.neighboursKnown || s.version != version || s.neighboursDBm != reachDBm {
		s.neighboursKnown, s.version, s.neighboursDBm = true, version, reachDBm
		m.findNeighbours(now, s)
	}
	return s.neighbours
}

// findNeighbours finds the receivers in a sender's range.
func (m *Medium) findNeighbours(now int64, s *member) {
	s.neighbours = s.neighbours[:0]
	m.lossesFrom(s.port.Slot, now, m.losses)
	for slot, loss := range m.losses {
		r := m.members[slot]
		n, within := m.neighbour(s, r, slot, loss)
		if r == s || !within {
			continue
		}
		if !m.isInterferenceFree() {
			n.gainRatio = Milliwatts(n.GainDB)
		}
		s.neighbours = append(s.neighbours, n)
	}
}

// neighbour returns a receiver as a sender's neighbour, and whether it is in range.
func (m *Medium) neighbour(s, r *member, slot int, lossDB float64) (n Neighbour, within bool) {
	e := &m.receivers[slot]
	n = Neighbour{Port: r.port, GainDB: s.radio.AntennaGainDBi + e.antennaGainDBi - lossDB, member: r, slot: slot}
	return n, e.inRange(s.maxPowerDBm + n.GainDB)
}

// lossesFrom writes the pathloss from the member in a slot to all others, by their slots; NaN is unknown.
func (m *Medium) lossesFrom(slot int, now int64, dB []float64) {
	if m.batched != nil {
		m.batched.PathlossToAll(m.nems[slot], m.nems, now, dB)
		return
	}
	for to, p := range m.ports {
		dB[to] = math.NaN()
		if to == slot {
			continue
		}
		if loss, known := m.config.Environment.Pathloss(m.ports[slot], p, now); known {
			dB[to] = loss
		}
	}
}

// Neighbour returns a port as a source's neighbour, for a frame to that port alone. It is nil if it is far
// out of range. It must not be changed, and is valid until the next call of any method.
func (m *Medium) Neighbour(now int64, source, to *radio.Port, powerDBm float64) *Neighbour {
	s, r := m.member(source), m.member(to)
	if s == nil || r == nil || s == r {
		return nil
	}
	s.raiseMaxPower(powerDBm)
	loss, within := m.config.Environment.Pathloss(source, to, now)
	if within {
		m.single, within = m.neighbour(s, r, to.Slot, loss)
	}
	if !within {
		return nil
	}
	return &m.single
}

func find(all []Neighbour, to *radio.Port) (i int, found bool) {
	i, found = slices.BinarySearchFunc(all, to.Slot, func(n Neighbour, slot int) int { return n.Port.Slot - slot })
	return i, found && all[i].Port == to
}
