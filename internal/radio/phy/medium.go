package phy

import (
	"math"
	"slices"

	"vignette.dev/vignette/internal/radio"
)

// MarginDB below its sensitivity at which a receiver is taken to be out of reach. Signals in between are counted as
// radio.BelowSensitivity, weaker ones not at all, so that a frame costs nothing at radios that are far away.
const MarginDB = 10

// Config of a network's medium.
type Config struct {
	// Seed of the draws.
	Seed int64
	// Radio of a port as it is now. It is called by Members and Configure only.
	Radio       func(p *radio.Port) Radio
	Environment Environment
	// Interference that counts as noise.
	Interference Interference
	// HalfDuplex radios receive nothing while they send.
	HalfDuplex bool
	// PCR curve; nil for a step: what is not below the noise is received.
	PCR *Curve
	// Missed counts broadcasts that a port has missed.
	Missed func(p *radio.Port, reason radio.Reason, transmissions uint64)
}

// Transmission is one burst over the air.
type Transmission struct {
	Source *radio.Port
	// Index of the transmission among those of its source, for the draws.
	Index uint64
	// Start and End on the air, nanoseconds of CLOCK_MONOTONIC.
	Start, End int64
	// FrequencyHertz and PowerDBm at the antenna's connector.
	FrequencyHertz, PowerDBm float64
	// RateBitsPerSecond and Bytes, for the PCR curve.
	RateBitsPerSecond float64
	Bytes             int

	// What Begin fills in from the source's radio.
	bandwidthHertz float64
	subID          int
	milliwatts     float64
}

// Neighbour is a receiver of which a sender is within reach, or nearly.
type Neighbour struct {
	Port *radio.Port
	// GainDB from the sender's to the receiver's connector: both antennas' gains - pathloss.
	GainDB float64

	ratio  float64 // GainDB as a ratio of powers, of those that a survey found where others' transmissions matter
	member *member // that Port is
	slot   int     // likewise
}

// Radio of the receiver, as Config gave it last.
func (n *Neighbour) Radio() *Radio { return &n.member.radio }

// member is an attached port.
type member struct {
	port  *radio.Port
	radio Radio
	// thermal is the noise of the receiver and its sensitivity as a power in milliwatts, antenna its gain as a ratio.
	thermal, antenna float64
	// reachDBm is the highest power that has been asked about, or that the radio has.
	reachDBm float64
	// neighbours as of a version of the environment, for powers up to surveyedDBm.
	neighbours  []Neighbour
	surveyed    bool
	version     uint64
	surveyedDBm float64
	links       []link   // what others heard of it, by the receiver's slot: what one transmission changes lies together
	heard       int      // those of links on which something was sent
	audience    audience // of its broadcasts
}

// ear is what a member hears with. Together, those of all take few lines of a cache, as members do not.
type ear struct {
	// thermalDBm is the noise of the receiver and its sensitivity.
	antennaGainDBi, thermalDBm, frequencyHertz, bandwidthHertz float64
	subID                                                      int
	here                                                       bool
}

// within tells whether a power reaches the receiver, or nearly; NaN does not.
func (e *ear) within(powerDBm float64) bool { return powerDBm >= e.thermalDBm-MarginDB }

// Medium is what the radios of one network share. It belongs to the thread of the network's loop; nothing it does per
// transmission allocates.
type Medium struct {
	config    Config
	versioned Versioned // the environment, where it is one
	batched   Batched   // likewise
	draws     draws
	members   []*member
	// Of the members, by their slot.
	ears  []ear
	nems  []int
	ports []*radio.Port
	// radios counts how often they were read.
	radios    uint64
	air       air
	untallied []*member         // those with uncounted transmissions
	missed    [][reasons]uint64 // by slot, of what is tallied, while Config.Missed has not been told
	// Scratch.
	losses []float64 // by member
	one    Neighbour
}

// NewMedium makes a medium without members.
func NewMedium(config Config) *Medium {
	m := &Medium{}
	m.Configure(config)
	return m
}

// Configure changes the medium: receptions that end from now on meet what holds now.
func (m *Medium) Configure(config Config) {
	m.config = config
	m.readRadios()
}

// Members tells who is attached, for a Model's Members. It sets the ports' Slot to their place in the list.
func (m *Medium) Members(ports []*radio.Port) {
	m.Tally(len(m.untallied))
	known := make(map[*radio.Port]*member, len(m.members))
	before := make(map[*radio.Port]int, len(m.members))
	for slot, r := range m.members {
		known[r.port], before[r.port] = r, slot
	}
	members, from := make([]*member, len(ports)), make([]int, len(ports))
	for slot, p := range ports {
		members[slot], from[slot] = known[p], -1
		if members[slot] == nil {
			members[slot] = &member{port: p}
		} else {
			from[slot] = before[p]
		}
		p.Slot = slot
	}
	for _, r := range members {
		r.moveLinks(from)
	}
	m.members, m.losses, m.missed = members, make([]float64, len(ports)), make([][reasons]uint64, len(ports))
	m.readRadios()
}

// readRadios takes every radio as it is now; who reaches whom is reckoned anew when it is asked for.
func (m *Medium) readRadios() {
	m.air.prepared = nil
	m.radios++
	m.versioned, _ = m.config.Environment.(Versioned)
	m.batched, _ = m.config.Environment.(Batched)
	m.draws = newDraws(m.config.Seed)
	m.ears, m.nems, m.ports = m.ears[:0], m.nems[:0], m.ports[:0]
	for _, r := range m.members {
		r.radio = m.config.Radio(r.port)
		thermalDBm := r.radio.SensitivityDBm()
		r.thermal, r.antenna = Milliwatts(thermalDBm), Milliwatts(r.radio.AntennaGainDBi)
		r.surveyed, r.reachDBm = false, r.radio.TransmitPowerDBm
		m.ears = append(m.ears, ear{r.radio.AntennaGainDBi, thermalDBm, r.radio.FrequencyHertz, r.radio.BandwidthHertz, r.radio.SubID, r.port.Here()})
		m.nems, m.ports = append(m.nems, r.port.NEM), append(m.ports, r.port)
	}
}

// member that a port is, or nil where it is not attached any more.
func (m *Medium) member(p *radio.Port) *member {
	if p.Slot >= len(m.members) || m.members[p.Slot].port != p {
		return nil
	}
	return m.members[p.Slot]
}

// Radio of an attached port, as Config gave it last; nil for one that is not attached any more.
func (m *Medium) Radio(p *radio.Port) *Radio {
	r := m.member(p)
	if r == nil {
		return nil
	}
	return &r.radio
}

// Begin notes a transmission that starts, whoever may hear it, as interference to others and for HalfDuplex. It must be
// called before Receive for it and for what overlaps with it. A source's transmissions do not overlap.
func (m *Medium) Begin(t *Transmission) {
	t.milliwatts = Milliwatts(t.PowerDBm)
	if s := m.member(t.Source); s != nil {
		t.bandwidthHertz, t.subID = s.radio.BandwidthHertz, s.radio.SubID
	}
	if !m.quiet() {
		m.air.note(t)
	}
}

// Neighbours of a source that sends with at most the given power, in the order of Members: all receivers but those at
// which it is more than MarginDB below the sensitivity, at the highest power that has been asked for or that the source's
// radio has. The slice must not be changed, and is valid until the next call for the same source, or of Members or Configure.
func (m *Medium) Neighbours(now int64, source *radio.Port, powerDBm float64) []Neighbour {
	s := m.member(source)
	if s == nil {
		return nil
	}
	return m.neighbours(now, s, powerDBm)
}

// version of the environment, which is another one at every moment where it does not tell.
func (m *Medium) version(now int64) uint64 {
	if m.versioned != nil {
		return m.versioned.Version(now)
	}
	return uint64(now) //nolint:gosec // any mapping does that tells times apart
}

// reach of a sender that has been asked about with a power, too.
func (r *member) reach(powerDBm float64) (reachDBm float64) {
	r.reachDBm = max(r.reachDBm, powerDBm)
	return r.reachDBm
}

func (m *Medium) neighbours(now int64, s *member, powerDBm float64) []Neighbour {
	version, reachDBm := m.version(now), s.reach(powerDBm)
	if !s.surveyed || s.version != version || s.surveyedDBm != reachDBm {
		s.surveyed, s.version, s.surveyedDBm = true, version, reachDBm
		m.survey(now, s)
	}
	return s.neighbours
}

// survey finds who is within reach of a sender.
func (m *Medium) survey(now int64, s *member) {
	s.neighbours = s.neighbours[:0]
	m.lossesFrom(s.port.Slot, now, m.losses)
	for slot, loss := range m.losses {
		r := m.members[slot]
		n, within := m.neighbour(s, r, slot, loss)
		if r == s || !within {
			continue
		}
		if !m.quiet() {
			n.ratio = Milliwatts(n.GainDB)
		}
		s.neighbours = append(s.neighbours, n)
	}
}

// neighbour that a member in a slot is of a sender, if the sender is within its reach.
func (m *Medium) neighbour(s, r *member, slot int, lossDB float64) (n Neighbour, within bool) {
	e := &m.ears[slot]
	n = Neighbour{Port: r.port, GainDB: s.radio.AntennaGainDBi + e.antennaGainDBi - lossDB, member: r, slot: slot}
	return n, e.within(s.reachDBm + n.GainDB)
}

// lossesFrom the member in a slot to all but itself, by their slots; NaN is unknown.
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

// Neighbour that a port is of a source, for a frame to that port alone; nil where the source is far out of its reach. It must not be changed, and is
// valid until the next call of any method.
func (m *Medium) Neighbour(now int64, source, to *radio.Port, powerDBm float64) *Neighbour {
	s, r := m.member(source), m.member(to)
	if s == nil || r == nil || s == r {
		return nil
	}
	s.reach(powerDBm)
	loss, within := m.config.Environment.Pathloss(source, to, now)
	if within {
		m.one, within = m.neighbour(s, r, to.Slot, loss)
	}
	if !within {
		return nil
	}
	return &m.one
}

func find(all []Neighbour, to *radio.Port) (i int, found bool) {
	i, found = slices.BinarySearchFunc(all, to.Slot, func(n Neighbour, slot int) int { return n.Port.Slot - slot })
	return i, found && all[i].Port == to
}
