package tdma

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// simulation is a network whose time the test sets.
type simulation struct {
	t       testing.TB
	engine  *radio.Engine
	network *radio.Network
	model   *Model
	order   *anyOrder
	ports   []*radio.Port // in the model's order
	all     []*radio.Port // also those that have gone
	now     int64
	// lateness with which the model is woken, from its time on.
	lateness int64
	wakes    int
	pathloss [][]float64 // dB by slots of sender and receiver; NaN is unknown
	jamming  float64     // milliwatts
	config   Config
	received map[*radio.Port][]arrival
}

// arrival of a frame.
type arrival struct {
	from     int // NEM id
	sequence uint64
	length   int
	sent, at int64
}

// Write implements radio.Output.
func (s *simulation) Write(p *radio.Port, data []byte) radio.Reason {
	s.received[p] = append(s.received[p], arrival{int(data[11]), binary.BigEndian.Uint64(data[sequenceAt:]), len(data),
		int64(binary.BigEndian.Uint64(data[sequenceAt+8:])), s.now})
	return radio.Written
}

// Late implements radio.Output.
func (*simulation) Late(int64, int64) {}

// dropped frames by reason.
func (s *simulation) dropped() map[radio.Reason]int {
	return s.drops(s.all, func(r radio.Reason) bool { return r <= radio.NoReceiver })
}

// missed frames of a port by reason.
func (s *simulation) missed(p *radio.Port) map[radio.Reason]int {
	return s.drops([]*radio.Port{p}, func(r radio.Reason) bool { return r > radio.NoReceiver })
}

// anyMissed is the number of ports that missed something.
func (s *simulation) anyMissed() (count int) {
	for _, p := range s.all {
		if len(s.missed(p)) > 0 {
			count++
		}
	}
	return count
}

func (s *simulation) drops(ports []*radio.Port, among func(radio.Reason) bool) map[radio.Reason]int {
	all := map[radio.Reason]int{}
	for _, p := range ports {
		for reason, frames := range p.CurrentCounters().Drops {
			if r := radio.Reason(reason); frames > 0 && among(r) {
				all[r] += int(frames)
			}
		}
	}
	return all
}

// kept is the number of frames under way.
func (s *simulation) kept() (frames int) {
	for _, p := range s.all {
		frames += p.CurrentCounters().InFlight
	}
	return frames
}

// worst lateness with which a frame was handed over.
func (s *simulation) worst() (lateness int64) {
	for _, p := range s.all {
		lateness = max(lateness, p.CurrentCounters().WorstLateness)
	}
	return lateness
}

func (s *simulation) Pathloss(from, to *radio.Port, _ int64) (float64, bool) {
	dB := s.pathloss[from.NEM-1][to.NEM-1]
	return dB, !math.IsNaN(dB)
}

func (s *simulation) Jamming(*radio.Port, int64, float64, float64) float64 { return s.jamming }

// epoch is the offset of the simulation's clocks, in the middle of some slot.
const epoch = 1_700_000_000_123_456_789

// sequenceAt is where test frames have their sequence number: after the headers of Ethernet and IPv4.
const sequenceAt = 34

const ethernetHeader = 14

// newSimulation makes nodes with the NEM ids 1 to count at 70 dB from each other. Their radios send at 0 dBm.
func newSimulation(t testing.TB, count int, change func(c *Config)) *simulation {
	s := &simulation{t: t, now: 1e9, received: map[*radio.Port][]arrival{}}
	s.engine = radio.NewEngine(s)
	s.config = Config{Seed: 1, Environment: s, Interference: phy.All, Queue: DefaultQueue(),
		EpochOffset: func() int64 { return epoch },
		Radio: func(*radio.Port) phy.Radio {
			return phy.Radio{FrequencyHertz: 2.4e9, BandwidthHertz: 1, NoiseFigureDB: 4, SubID: 1, Transmit: true}
		}}
	change(&s.config)
	s.model = New(s.config)
	s.order = &anyOrder{Model: s.model}
	var err error
	if s.network, err = s.engine.NewNetwork(radio.NetworkOptions{Model: s.order, MTU: 9000}); err != nil {
		t.Fatal(err)
	}
	for range count {
		s.pathloss = append(s.pathloss, slices.Repeat([]float64{70}, count))
	}
	for nem := 1; nem <= count; nem++ {
		s.join(nem, nil)
	}
	return s
}

// join adds a node, here or on another host.
func (s *simulation) join(nem int, host radio.Host) *radio.Port {
	p, err := s.network.Attach(s.now, radio.PortOptions{NEM: nem, MAC: macOf(nem), Host: host})
	if err != nil {
		s.t.Fatal(err)
	}
	s.ports, s.all = append(s.ports, p), append(s.all, p)
	return p
}

// leave removes the node with a port.
func (s *simulation) leave(p *radio.Port) {
	p.Detach(s.now)
	s.ports = slices.DeleteFunc(slices.Clone(s.ports), func(other *radio.Port) bool { return other == p })
}

// reorder gives the model its ports in another order.
func (s *simulation) reorder(ports ...*radio.Port) {
	s.ports = ports
	s.order.Members(s.now, ports, nil)
}

// anyOrder gives a model ports in any order. A network's keep theirs.
type anyOrder struct {
	*Model
	ports []*radio.Port // as the model has them
}

func (m *anyOrder) Members(now int64, ports []*radio.Port, _ []int) {
	from := make([]int, len(ports))
	for slot, p := range ports {
		from[slot], p.Slot = slices.Index(m.ports, p), slot
	}
	m.ports = ports
	m.Model.Members(now, ports, from)
}

func macOf(nem int) radio.MAC { return radio.MAC(0x020200000000 + nem) }

// configure changes the model's configuration.
func (s *simulation) configure(change func(c *Config)) {
	change(&s.config)
	s.model.Configure(s.now, s.config)
}

// advanceTo lets the time pass up to and including a moment.
func (s *simulation) advanceTo(now int64) {
	for next := s.engine.Next(); next != radio.Never && next+s.lateness <= now; next = s.engine.Next() {
		s.now = max(s.now, next+s.lateness)
		s.tick()
	}
	s.now = now
}

func (s *simulation) tick() {
	s.wakes++
	s.engine.Tick(s.now)
}

func (s *simulation) pass(d time.Duration) { s.advanceTo(s.now + int64(d)) }

// send has a node send a frame now.
func (s *simulation) send(from int, to radio.MAC, dscp uint8, sequence uint64, length int) {
	data := make([]byte, max(length, sequenceAt+16))
	for i := range 6 {
		data[i] = byte(to >> (40 - 8*i))
	}
	data[11] = byte(s.ports[from].NEM)
	binary.BigEndian.PutUint16(data[12:], typeIPv4)
	data[ethernetHeader+1] = dscp << 2
	binary.BigEndian.PutUint64(data[sequenceAt:], sequence)
	binary.BigEndian.PutUint64(data[sequenceAt+8:], uint64(s.now))
	s.engine.Receive(s.now, s.ports[from], data)
}

const everybody radio.MAC = 0xffffffffffff

func (s *simulation) address(port int) radio.MAC { return s.ports[port].MAC }

// sequences of the frames that a node has received.
func (s *simulation) sequences(port int) (all []uint64) {
	for _, a := range s.received[s.ports[port]] {
		all = append(all, a.sequence)
	}
	return all
}

// schedule that is generated for nodes 1 to count.
func schedule(t testing.TB, count int, structure Structure, rate uint64) *Schedule {
	t.Helper()
	nems := make([]int, count)
	for i := range nems {
		nems[i] = i + 1
	}
	s, err := Generate(structure, nems, rate, 2.4e9, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func milliseconds(slots int, slot time.Duration) Structure {
	return Structure{Frames: 1, Slots: slots, SlotDuration: slot, BandwidthHertz: 1e6}
}

// of a schedule in EMANE's format.
func parsed(t testing.TB, text string, base *Schedule) *Schedule {
	t.Helper()
	s, err := ParseSchedule([]byte(text), base)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
