package tdma

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// wire takes transmissions from a host to another.
type wire struct {
	*distributedNetwork
	from, to int
}

func (w wire) Ship(s *radio.Shipment) { w.ship(w.from, w.to, s) }

// distributedNetwork is a network on several hosts, whose clocks differ and drift. Its own time is that of none of them.
type distributedNetwork struct {
	t          testing.TB
	hosts      []*simulation
	skew       []int64   // of the hosts' clocks at 0, nanoseconds
	drift      []float64 // and what they gain
	clockError []int64   // by which a host is mistaken about the time of the slots
	latency    int64
	now        int64
	flying     []flying
	// shipped transmissions, and those that the test wants to be lost by their number.
	shipped int
	lost    map[int]bool
}

// flying is a transmission on its way between hosts.
type flying struct {
	at int64
	to int
	s  radio.Shipment
}

// newDistributedNetwork has nodes with the NEM ids 1 to count, spread over the hosts.
func newDistributedNetwork(t testing.TB, hosts, count int, change func(c *Config)) *distributedNetwork {
	s := &distributedNetwork{t: t, now: 1e9, latency: 200e3, lost: map[int]bool{}}
	for i := range hosts {
		// 250 ms and 80 ppm, and 60 µs that the measurement of clocks does not see.
		s.skew = append(s.skew, int64(i)*250e6)
		s.drift = append(s.drift, []float64{0, 80e-6, -80e-6}[i%3])
		s.clockError = append(s.clockError, []int64{0, 60e3, -60e3}[i%3])
		h := newSimulation(t, 0, func(c *Config) {
			change(c)
			c.EpochOffset = func() int64 { return epoch - s.off(i) + s.clockError[i] }
		})
		s.hosts = append(s.hosts, h)
	}
	for i, h := range s.hosts {
		h.now = s.local(i, s.now)
		for nem := 1; nem <= count; nem++ {
			h.pathloss = append(h.pathloss, slices.Repeat([]float64{70}, count))
		}
		for nem := 1; nem <= count; nem++ {
			if to := s.home(nem - 1); to != i {
				h.join(nem, wire{s, i, to})
			} else {
				h.join(nem, nil)
			}
		}
	}
	return s
}

func (s *distributedNetwork) home(node int) int { return node % len(s.hosts) }

// off is how far a host's clock is ahead by now; local is its time.
func (s *distributedNetwork) off(host int) int64 {
	return s.skew[host] + int64(s.drift[host]*float64(s.now))
}

func (s *distributedNetwork) local(host int, at int64) int64 {
	return at + s.skew[host] + int64(s.drift[host]*float64(at))
}

func (s *distributedNetwork) global(host int, at int64) int64 {
	return int64(float64(at-s.skew[host]) / (1 + s.drift[host]))
}

func (s *distributedNetwork) ship(from, to int, shipped *radio.Shipment) {
	if s.shipped++; s.lost[s.shipped-1] {
		return
	}
	c := *shipped
	c.Parts = slices.Clone(shipped.Parts)
	difference := s.off(to) - s.off(from)
	c.Start, c.Due = c.Start+difference, c.Due+difference
	for i := range c.Parts {
		c.Parts[i].Sent += difference
		c.Parts[i].Data = bytes.Clone(c.Parts[i].Data)
	}
	s.flying = append(s.flying, flying{s.now + s.latency, to, c})
}

// advanceTo lets the time pass.
func (s *distributedNetwork) advanceTo(end int64) {
	for {
		at, host := int64(math.MaxInt64), -1
		for i, h := range s.hosts {
			if next := h.engine.Next(); next != radio.Never && s.global(i, next)+1+h.lateness < at {
				at, host = s.global(i, next)+1+h.lateness, i
			}
		}
		land := len(s.flying) > 0 && s.flying[0].at <= at // of equal latency, and so in order
		if land {
			at = s.flying[0].at
		}
		if at > end || !land && host < 0 {
			break
		}
		s.set(max(at, s.now))
		if land {
			f := s.flying[0]
			s.flying = s.flying[1:]
			h := s.hosts[f.to]
			h.network.ReceiveShipment(h.now, &f.s)
			continue
		}
		s.hosts[host].tick()
	}
	s.set(end)
}

func (s *distributedNetwork) set(now int64) {
	s.now = now
	for i, h := range s.hosts {
		h.now = s.local(i, now)
	}
}

func (s *distributedNetwork) pass(d time.Duration) { s.advanceTo(s.now + int64(d)) }

func (s *distributedNetwork) send(from int, to radio.MAC, dscp uint8, sequence uint64, length int) {
	s.hosts[s.home(from)].send(from, to, dscp, sequence, length)
}

func (s *distributedNetwork) configure(change func(c *Config)) {
	for _, h := range s.hosts {
		h.configure(change)
	}
}

func (s *distributedNetwork) pathloss(from, to int, dB float64) {
	for _, h := range s.hosts {
		h.pathloss[from][to] = dB
	}
}

// of a node, what it received and missed, as its host has it.
func (s *distributedNetwork) received(node int) []arrival {
	h := s.hosts[s.home(node)]
	return h.received[h.ports[node]]
}

func (s *distributedNetwork) missed(node int) map[radio.Reason]int {
	h := s.hosts[s.home(node)]
	return h.missed(h.ports[node])
}

func (s *distributedNetwork) kept() (all int) {
	for _, h := range s.hosts {
		all += h.kept()
	}
	return all
}

// midSlot lets time pass to the middle of a slot of 10 ms, so that all hosts agree on the slot.
func (s *distributedNetwork) midSlot() {
	const slot = int64(slotTime)
	s.advanceTo((s.now+epoch)/slot*slot + slot + slot/4 - epoch)
}

const everyNode = 6

// variants of a network of six nodes in which much goes wrong, and what happens to it half-way.
var variants = map[string]struct {
	config  func(t testing.TB, c *Config)
	halfway func(t testing.TB, s *distributedNetwork)
}{
	"one slot for each": {config: func(t testing.TB, c *Config) {
		c.Schedule = schedule(t, everyNode, milliseconds(everyNode, slotTime), 1e6)
	}},
	"shared slots": {config: shareSlots},
	"shared slots without interference": {config: func(t testing.TB, c *Config) {
		shareSlots(t, c)
		c.Interference = phy.None
	}},
	"adaptive rates": {config: func(t testing.TB, c *Config) {
		c.Schedule = schedule(t, everyNode, milliseconds(everyNode, slotTime), 1e6)
		c.AdaptiveRates = []Rate{{380e3, 0}, {500e3, 6}, {1e6, 12}}
	}},
	"slots of a destination": {config: func(t testing.TB, c *Config) {
		c.Schedule = four(t, `<slot index="0" nodes="1"><tx destination="2"/></slot><slot index="1" nodes="1,4"/><slot index="2" nodes="2,6"><tx class="2"/></slot><slot index="3" nodes="3,5"/>`)
		c.Queue.StrictDequeue = true
	}},
	"another schedule half-way": {config: shareSlots, halfway: func(t testing.TB, s *distributedNetwork) {
		s.configure(func(c *Config) { c.Schedule = schedule(t, everyNode, milliseconds(everyNode, slotTime/2), 500e3) })
	}},
	"radio silence and more power half-way": {config: shareSlots, halfway: func(_ testing.TB, s *distributedNetwork) {
		s.configure(func(c *Config) {
			of := c.Radio
			c.Radio = func(p *radio.Port) phy.Radio {
				r := of(p)
				r.Transmit, r.AntennaGainDBi = p.NEM != 3, 1
				return r
			}
		})
	}},
}

func shareSlots(t testing.TB, c *Config) {
	c.Schedule = four(t, `<slot index="0" nodes="1,4"/><slot index="1" nodes="2,5"/><slot index="2" nodes="3"/><slot index="3" nodes="6"/>`)
}

// playResult is what each node received and missed.
type playResult struct {
	arrivals []string
	at       []int64 // when, by the test's time
	missed   []map[radio.Reason]int
	worst    int64
	kept     int
}

// play sends random frames over random pathloss, on a number of hosts.
func play(t testing.TB, hosts int, config func(t testing.TB, c *Config), halfway func(t testing.TB, s *distributedNetwork)) (o playResult) {
	s := newDistributedNetwork(t, hosts, everyNode, func(c *Config) {
		config(t, c)
		c.PCR = curve(t, "0", "20")
		c.Queue.Depth = 20
	})
	if hosts == 3 {
		s.latency = 30e3 // bursts come before their slot begins here
	}
	random := rand.New(rand.NewPCG(7, 7))
	for i := range everyNode {
		for j := range everyNode {
			s.pathloss(i, j, 88+float64(random.IntN(40)))
		}
	}
	s.pass(time.Second)
	const frames = 1500
	for sequence := range uint64(frames) {
		s.midSlot()
		from, to := random.IntN(everyNode), everybody
		if other := random.IntN(2 * everyNode); other < everyNode {
			to = radio.MAC(0x020200000001 + other)
		}
		s.send(from, to, uint8(random.IntN(64)), sequence, 100+random.IntN(2400))
		if sequence == frames/2 && halfway != nil {
			halfway(t, s)
		}
	}
	s.pass(20 * time.Second)
	for node := range everyNode {
		for _, a := range s.received(node) {
			o.arrivals = append(o.arrivals, fmt.Sprintf("node %d: %d of node %d, %d bytes", node+1, a.sequence, a.from, a.length))
			o.at = append(o.at, s.global(s.home(node), a.at))
		}
		o.missed = append(o.missed, s.missed(node))
	}
	for _, h := range s.hosts {
		o.worst = max(o.worst, h.worst())
	}
	o.kept = s.kept()
	return o
}

func TestTheSameFramesArriveOnSeveralHostsAsOnOne(t *testing.T) {
	// clocks may be off by that much, and slots drift for a second until clocks are compared again.
	const bound = int64(2*60e3 + 2*80e3)
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			one := play(t, 1, v.config, v.halfway)
			for _, hosts := range []int{2, 3} {
				several := play(t, hosts, v.config, v.halfway)
				if len(one.arrivals) < 200 || !slices.Equal(one.arrivals, several.arrivals) {
					t.Fatalf("on %d hosts %d frames arrive, on one %d; first difference: %s", hosts, len(several.arrivals), len(one.arrivals), firstDifference(one.arrivals, several.arrivals))
				}
				for i, at := range several.at {
					if off := at - one.at[i]; max(off, -off) > bound {
						t.Fatalf("on %d hosts %s %v later; want within %v", hosts, one.arrivals[i], time.Duration(off), time.Duration(bound))
					}
				}
				for node := range one.missed {
					if !maps.Equal(one.missed[node], several.missed[node]) {
						t.Errorf("node %d missed %v on %d hosts, and %v on one", node+1, several.missed[node], hosts, one.missed[node])
					}
				}
				if several.kept != one.kept {
					t.Errorf("on %d hosts %d frames are left, on one %d", hosts, several.kept, one.kept)
				}
				if several.worst > 1 {
					t.Errorf("on %d hosts frames were up to %v late", hosts, time.Duration(several.worst))
				}
			}
			t.Logf("%d frames arrived, missed %v", len(one.arrivals), one.missed)
		})
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + " / " + b[i]
		}
	}
	return "one list is longer"
}

// twoHosts has two nodes on two hosts, with a slot of 10 ms each.
func twoHosts(t testing.TB) *distributedNetwork {
	s := newDistributedNetwork(t, 2, 2, func(c *Config) { c.Schedule = schedule(t, 2, milliseconds(2, slotTime), 1e6) })
	s.pass(time.Second)
	return s
}

func sequencesOf(all []arrival) (sequences []uint64) {
	for _, a := range all {
		sequences = append(sequences, a.sequence)
	}
	return sequences
}

func TestABurstThatComesAfterItsSlotIsDecidedAtOnceAndIsLate(t *testing.T) {
	s := twoHosts(t)
	s.latency = int64(17 * time.Millisecond)
	s.midSlot()
	s.send(0, everybody, 0, 1, 500)
	s.send(1, everybody, 0, 2, 500)
	s.pass(time.Second)
	if !slices.Equal(sequencesOf(s.received(1)), []uint64{1}) || !slices.Equal(sequencesOf(s.received(0)), []uint64{2}) || s.kept() != 0 {
		t.Errorf("received %v and %v, %d frames left; want 1 and 2", s.received(1), s.received(0), s.kept())
	}
	late := time.Duration(s.hosts[1].worst())
	if want := 7 * time.Millisecond; (late - want).Abs() > 300*time.Microsecond {
		t.Errorf("handed over %v late; want %v, as the slot takes 10 ms", late, want)
	}
	const tolerance = int64(200 * time.Microsecond)
	if at := (s.global(1, s.received(1)[0].at-s.hosts[1].worst()) + epoch + tolerance) % int64(slotTime); at > 2*tolerance {
		t.Errorf("it should have arrived %v after the end of a slot; want the end", time.Duration(at-tolerance))
	}
}

func TestAPartThatIsLostBetweenHostsCostsItsFrameAlone(t *testing.T) {
	for lost := range 3 {
		s := twoHosts(t)
		s.lost[lost] = true
		s.midSlot()
		s.send(0, everybody, 0, 1, 3000) // 1250 + 1250 + 500
		s.pass(time.Second)
		s.midSlot()
		s.send(0, everybody, 0, 2, 2000)
		s.send(0, s.hosts[0].address(1), 0, 3, 2000)
		s.pass(time.Second)
		if got := sequencesOf(s.received(1)); !slices.Equal(got, []uint64{2, 3}) {
			t.Errorf("part %d lost: received %v; want 2 and 3", lost+1, got)
		}
		if len(s.missed(1)) != 0 {
			t.Errorf("part %d lost: missed %v; want none, as no radio decided that", lost+1, s.missed(1))
		}
		if s.kept() != 0 {
			t.Errorf("part %d lost: %d frames left", lost+1, s.kept())
		}
	}
}

func TestAFrameThatItsSenderGivesUpIsForgotten(t *testing.T) {
	s := twoHosts(t)
	s.configure(func(c *Config) { c.Queue.Depth = 1 })
	s.pass(time.Second)
	for i := range uint64(20) {
		s.midSlot()
		s.send(0, everybody, 0, i, 3000)
		s.pass(25 * time.Millisecond) // one or two of its three parts are sent
	}
	s.pass(time.Second)
	if got := sequencesOf(s.received(1)); !slices.Equal(got, []uint64{19}) {
		t.Errorf("received %v; want the last one alone", got)
	}
	if waiting := len(s.hosts[1].model.stations[0].incoming); waiting != 0 || s.kept() != 0 {
		t.Errorf("%d frames are waited for, %d left; want none", waiting, s.kept())
	}
}

func TestBurstsOfANodeElsewhereThatGoesAreDropped(t *testing.T) {
	for sent := range 4 { // parts of the frame's three that are sent when the node goes; after the third it has come whole
		s := twoHosts(t)
		here, node := s.hosts[1], s.hosts[1].ports[1]
		s.midSlot()
		s.send(0, everybody, 0, 1, 3000)
		for s.shipped < sent {
			s.pass(time.Millisecond)
		}
		s.pass(5 * time.Millisecond) // into the middle of the slot
		here.leave(here.ports[0])
		s.pass(time.Second)
		if len(here.received[node]) != 0 || here.kept() != 0 || len(here.model.busy) != 0 {
			t.Errorf("after %d parts: received %v, %d frames left, %d slots; want none", sent, here.received[node], here.kept(), len(here.model.busy))
		}
		if dropped := here.dropped()[radio.InFlightAtEnd]; dropped != sent/3 {
			t.Errorf("after %d parts: %d frames dropped as inFlightAtEnd; want %d", sent, dropped, sent/3)
		}
	}
}

// Node 1's host keeps the old schedule for 100 ms, as if its clock were behind.
func TestWhileASchedulesStructureChangesHostsMayDiffer(t *testing.T) {
	s := twoHosts(t)
	next := schedule(t, 2, milliseconds(2, 3*time.Millisecond), 1e6)
	s.hosts[1].configure(func(c *Config) { c.Schedule = next })
	s.midSlot()
	for i := range uint64(5) {
		s.send(0, everybody, 0, i, 500)
		s.send(1, everybody, 0, i, 300)
		s.pass(20 * time.Millisecond)
	}
	s.hosts[0].configure(func(c *Config) { c.Schedule = next })
	s.pass(time.Second)
	s.send(0, everybody, 0, 100, 300)
	s.send(1, everybody, 0, 100, 300)
	s.pass(time.Second)
	for node := range 2 {
		got := sequencesOf(s.received(node))
		if len(got) == 0 || got[len(got)-1] != 100 || s.kept() != 0 {
			t.Errorf("node %d received %v, %d frames left; want the last one once both have the schedule", node+1, got, s.kept())
		}
		missed := s.missed(node)
		if len(got)+missed[radio.NotListening]+missed[radio.LowSINR]+missed[radio.Interfered] != 6 {
			t.Errorf("node %d received %v and missed %v; want each of 6 frames to be received or missed", node+1, got, missed)
		}
	}
	for i, h := range s.hosts {
		if h.worst() > 1 {
			t.Errorf("host %d handed frames over %v late", i, time.Duration(h.worst()))
		}
	}
}

// The clock that slots go by is set forward; one host learns of it only when clocks are compared.
func TestABurstOfADistantSlotMakesAHostCheckTheClock(t *testing.T) {
	s := twoHosts(t)
	s.midSlot()
	s.send(1, everybody, 0, 1, 100) // so that host 1 has compared the clocks lately
	s.pass(100 * time.Millisecond)
	for i := range s.clockError {
		s.clockError[i] += int64(time.Hour)
	}
	s.hosts[0].model.nextClockCheck = s.hosts[0].now
	s.send(0, everybody, 0, 2, 100)
	s.pass(200 * time.Millisecond)
	if got := sequencesOf(s.received(1)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("received %v within 200 ms; want 2", got)
	}
}

func TestReceptionsAreDecidedInTheOrderOfNEMIdsWhateverTheOrderOfPorts(t *testing.T) {
	var first []arrival
	for _, turned := range []bool{false, true} {
		s := newSimulation(t, 3, func(c *Config) {
			c.Schedule = four(t, `<slot index="0" nodes="1,3"/><slot index="1" nodes="2"/>`)
			c.Interference = phy.None
		})
		receiver := s.ports[1]
		if turned {
			s.reorder(s.ports[2], s.ports[1], s.ports[0])
		}
		slices.SortFunc(s.ports, func(a, b *radio.Port) int { return cmp.Compare(a.NEM, b.NEM) })
		s.pass(time.Second)
		for i := range uint64(50) {
			s.send(0, everybody, 0, i, 100)
			s.send(2, everybody, 0, i, 100)
			s.pass(40 * time.Millisecond)
		}
		s.pass(time.Second)
		if got := s.received[receiver]; !turned {
			first = got
		} else if len(got) != 50 || !slices.Equal(got, first) {
			t.Errorf("received %d frames, %v; want %d as with the ports in another order, %v", len(got), got, len(first), first)
		}
	}
}
