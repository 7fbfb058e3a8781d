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
	t     testing.TB
	model *Model
	ports []*radio.Port
	now   int64
	// lateness with which the model is woken, from its time on.
	lateness int64
	wakeAt   int64
	wakes    int
	pathloss [][]float64 // dB by slots of sender and receiver; NaN is unknown
	jamming  float64     // milliwatts
	config   Config

	// ship takes what goes to other hosts; nil where there are none.
	ship func(s *radio.Shipment)

	received map[*radio.Port][]arrival
	dropped  map[radio.Reason]int
	missed   map[*radio.Port]map[radio.Reason]int
	kept     int
	// worst lateness with which a frame was handed over.
	worst int64
}

// arrival of a frame.
type arrival struct {
	from     int // NEM id
	sequence uint64
	length   int
	sent, at int64
}

func (s *simulation) Keep(f *radio.Frame) *radio.Frame {
	s.kept++
	c := *f
	c.Data = slices.Clone(f.Data)
	return &c
}

func (s *simulation) Drop(_ *radio.Frame, reason radio.Reason) {
	s.kept--
	s.dropped[reason]++
}

func (s *simulation) Deliver(now int64, f *radio.Frame) {
	if len(f.Receivers) == 0 {
		s.Drop(f, radio.NoReceiver)
		return
	}
	s.Radiate(now, f)
}

func (s *simulation) Radiate(now int64, f *radio.Frame) {
	s.kept--
	for _, p := range f.Receivers {
		s.worst = max(s.worst, now-f.Due)
		s.received[p] = append(s.received[p], arrival{f.Source.NEM, binary.BigEndian.Uint64(f.Data[sequenceAt:]), len(f.Data), f.Sent, f.Due})
	}
}

func (s *simulation) CountMissed(p *radio.Port, reason radio.Reason) {
	if s.missed[p] == nil {
		s.missed[p] = map[radio.Reason]int{}
	}
	s.missed[p][reason]++
}

func (s *simulation) Find(to radio.MAC) *radio.Port {
	i := slices.IndexFunc(s.ports, func(p *radio.Port) bool { return p.MAC == to })
	if i < 0 {
		return nil
	}
	return s.ports[i]
}

func (s *simulation) Distributed() bool { return s.ship != nil }

func (s *simulation) ShipParts(shipped *radio.Shipment, _ []*radio.Port) { s.ship(shipped) }

func (s *simulation) WakeAt(due int64) { s.wakeAt = due }

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
	s := &simulation{t: t, now: 1e9, wakeAt: never, received: map[*radio.Port][]arrival{}, dropped: map[radio.Reason]int{},
		missed: map[*radio.Port]map[radio.Reason]int{}}
	s.config = Config{Seed: 1, Environment: s, Interference: phy.All, Queue: DefaultQueue(),
		EpochOffset: func() int64 { return epoch },
		Radio: func(*radio.Port) phy.Radio {
			return phy.Radio{FrequencyHertz: 2.4e9, BandwidthHertz: 1, NoiseFigureDB: 4, SubID: 1, Transmit: true}
		}}
	change(&s.config)
	s.model = New(s.config)
	for nem := 1; nem <= count; nem++ {
		s.pathloss = append(s.pathloss, slices.Repeat([]float64{70}, count))
	}
	var ports []*radio.Port
	for nem := 1; nem <= count; nem++ {
		ports = append(ports, &radio.Port{PortOptions: radio.PortOptions{NEM: nem, MAC: radio.MAC(0x020200000000 + nem)}})
	}
	s.attach(ports...)
	return s
}

func (s *simulation) attach(ports ...*radio.Port) {
	s.ports = ports
	s.model.Members(s.now, ports)
}

// configure changes the model's configuration.
func (s *simulation) configure(change func(c *Config)) {
	change(&s.config)
	s.model.Configure(s.now, s.config)
}

// advanceTo lets the time pass up to and including a moment.
func (s *simulation) advanceTo(now int64) {
	for s.wakeAt != never && s.wakeAt+s.lateness <= now {
		s.now = max(s.now, s.wakeAt+s.lateness)
		s.wakeAt = never
		s.wakes++
		s.model.Continue(s, s.now)
	}
	s.now = now
}

func (s *simulation) pass(d time.Duration) { s.advanceTo(s.now + int64(d)) }

// send has a node send a frame now.
func (s *simulation) send(from int, to radio.MAC, dscp uint8, sequence uint64, length int) {
	data := make([]byte, max(length, sequenceAt+8))
	binary.BigEndian.PutUint16(data[12:], typeIPv4)
	data[ethernetHeader+1] = dscp << 2
	binary.BigEndian.PutUint64(data[sequenceAt:], sequence)
	f := &radio.Frame{Source: s.ports[from], Destination: to, Data: data, Sent: s.now}
	s.model.Offer(s, s.now, f)
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
