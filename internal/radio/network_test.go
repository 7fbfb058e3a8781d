package radio_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/virtual"
)

func TestFramesReachTheOthersInOrder(t *testing.T) {
	for _, delay := range []time.Duration{0, 3 * time.Millisecond} {
		n := virtual.NewOf(3, &virtual.Delay{Time: delay})
		var want []int
		for i := range 50 {
			n.Send(1, virtual.Everybody, 100)
			want = append(want, i)
		}
		n.Settle()
		for nem, want := range map[int][]int{1: nil, 2: want, 3: want} {
			if got := n.Sequences(nem); !slices.Equal(got, want) {
				t.Errorf("after %v node %d has received %v; want %v", delay, nem, got, want)
			}
		}
		for _, a := range n.Received(2) {
			if a.Delay() != delay {
				t.Errorf("frame %d took %v; want %v", a.Sequence, a.Delay(), delay)
			}
		}
	}
}

func TestWhatIsNoFrameOfTheNetworkIsDroppedByName(t *testing.T) {
	const mtu = 100
	n := virtual.New(mtu, &virtual.Delay{})
	n.JoinAll(2)
	n.SendFrame(1, []byte("short"))
	n.Send(1, virtual.Everybody, mtu+radio.HeaderLength+1)
	n.Send(1, virtual.Everybody, mtu+radio.HeaderLength)
	n.Send(1, virtual.Everybody, 60)
	if got := n.Sequences(2); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("received %v; want the two that are no longer than the MTU", got)
	}
	if c := n.Counters(1); c.Drops[radio.Malformed] != 1 || c.Drops[radio.Oversize] != 1 || c.FramesSent != 4 || c.Released != 2 {
		t.Errorf("counters %+v; want one malformed, one oversize, two released of four", c)
	}
}

func TestAFrameToAPortThatWentIsDropped(t *testing.T) {
	n := virtual.NewOf(3, &virtual.Delay{Time: 30 * time.Millisecond})
	n.Send(1, virtual.Everybody, 60)
	n.Leave(3)
	n.Settle()
	if len(n.Received(2)) != 1 || len(n.Received(3)) != 0 {
		t.Errorf("the port that stayed received %d frames, the one that went %d; want 1 and 0", len(n.Received(2)), len(n.Received(3)))
	}
	if last := n.Counters(3); last.Drops[radio.Detached] != 1 {
		t.Errorf("counters %+v; want one frame dropped as detached", last)
	}
}

func TestANetworksEndDropsWhatIsInFlight(t *testing.T) {
	n := virtual.NewOf(2, &virtual.Delay{Time: 30 * time.Millisecond})
	n.Send(1, virtual.Everybody, 60)
	n.Leave(1)
	n.Leave(2)
	n.Hosts[0].Network.Close()
	n.Settle()
	if last := n.Counters(1); len(n.Received(2)) != 0 || last.Drops[radio.InFlightAtEnd] != 1 || last.InFlight != 0 {
		t.Errorf("%d frames arrived, counters %+v; want one frame dropped as inFlightAtEnd", len(n.Received(2)), last)
	}
}

func TestASecondPortWithAMACIsRefused(t *testing.T) {
	n := virtual.NewOf(1, &virtual.Delay{})
	if _, err := n.Hosts[0].Network.Attach(n.Now, radio.PortOptions{Name: "twin", MAC: virtual.Address(1)}); err == nil {
		t.Error("a second port with the same MAC was attached")
	}
}

func TestAnAlarmChangesTheNetworkBetweenTheFramesBeforeAndAfterIt(t *testing.T) {
	const delay = 400 * time.Millisecond
	n := virtual.NewOf(2, &virtual.Delay{Time: delay})
	due := n.Now + int64(delay)
	n.Hosts[0].Network.Schedule(due, func(now int64, _ radio.Model) (bool, int64) {
		if now != due {
			t.Errorf("the alarm came %v after its time", time.Duration(now-due))
		}
		return true, 0
	})
	n.Pass(-1)
	n.Send(1, virtual.Everybody, 60) // due just before the alarm
	n.Pass(1)
	n.Send(1, virtual.Everybody, 60) // due with it
	n.Settle()
	if got := n.Sequences(2); !slices.Equal(got, []int{0}) {
		t.Errorf("received %v; want the frame due before the alarm", got)
	}
	if dropped := n.Counters(1).Drops[radio.Silent]; dropped != 1 {
		t.Errorf("%d frames dropped as silent; want 1", dropped)
	}
}

// A driver that was stopped has the alarm and the frame at once.
func TestAnAlarmComesBeforeAFrameThatIsReadAfterItsTime(t *testing.T) {
	n := virtual.NewOf(2, &virtual.Delay{})
	n.Hosts[0].Network.Schedule(n.Now, func(int64, radio.Model) (bool, int64) { return true, 0 })
	n.Send(1, virtual.Everybody, 60)
	if len(n.Received(2)) != 0 || n.Counters(1).Drops[radio.Silent] != 1 {
		t.Errorf("received %v, counters %+v; want silence", n.Sequences(2), n.Counters(1))
	}
}

func TestAnAlarmRepeatsAsItAsks(t *testing.T) {
	n := virtual.NewOf(2, &virtual.Delay{})
	due := n.Now + 20e6
	want := []int64{due, due + 5e6, due + 5e6} // the last time has passed already
	var rang []int64
	n.Hosts[0].Network.Schedule(due, func(now int64, _ radio.Model) (bool, int64) {
		rang = append(rang, now)
		return false, []int64{due + 5e6, due, 0}[len(rang)-1]
	})
	n.Settle()
	if !slices.Equal(rang, want) {
		t.Errorf("the alarm rang at %v; want %v", rang, want)
	}
}

func TestAnAlarmIsForgottenWhenTheNetworkIsConfiguredAnewOrClosed(t *testing.T) {
	for name, forget := range map[string]func(*radio.Network) error{
		"configured": func(n *radio.Network) error { return n.Configure(100, false) },
		"scheduled": func(n *radio.Network) error {
			n.Schedule(int64(time.Hour), func(int64, radio.Model) (bool, int64) { return false, 0 })
			return nil
		},
		"closed": func(n *radio.Network) error { n.Close(); return nil },
	} {
		n := virtual.NewOf(1, &virtual.Delay{})
		n.Hosts[0].Network.Schedule(n.Now+1, func(int64, radio.Model) (bool, int64) {
			t.Errorf("%s: the alarm rang after all", name)
			return false, 0
		})
		if err := forget(n.Hosts[0].Network); err != nil {
			t.Fatal(err)
		}
		n.Settle()
	}
}

func TestLatenessIsThatOfTheRelease(t *testing.T) {
	n := virtual.NewOf(2, &virtual.Delay{Time: time.Millisecond})
	n.Late = 3 * time.Millisecond
	n.Send(1, virtual.Everybody, 60)
	n.Settle()
	if c := n.Counters(1); c.WorstLateness != 3e6 || c.LateReleases != 1 || n.Received(2)[0].Delay() != 4*time.Millisecond {
		t.Errorf("counters %+v; want one release 3 ms late", c)
	}
}

// frames that an engine has written.
type frames int

func (f *frames) Write(*radio.Port, []byte) radio.Reason { *f++; return radio.Written }

func (*frames) Late(int64, int64) {}

// engineOf a network of some ports.
func engineOf(t testing.TB, ports int, m radio.Model) (e *radio.Engine, written *frames, first *radio.Port) {
	written = new(frames)
	e = radio.NewEngine(written)
	n, err := e.NewNetwork(radio.NetworkOptions{Model: m, MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	for nem := ports; nem > 0; nem-- {
		if first, err = n.Attach(0, radio.PortOptions{NEM: nem, MAC: virtual.Address(nem)}); err != nil {
			t.Fatal(err)
		}
	}
	return e, written, first
}

func TestAFrameCostsNoAllocation(t *testing.T) {
	frame := slices.Repeat([]byte{0xff}, 900)
	for _, delay := range []time.Duration{0, 1} {
		e, written, from := engineOf(t, 3, &virtual.Delay{Time: delay})
		now := int64(0)
		allocations := testing.AllocsPerRun(500, func() {
			now++
			e.Receive(now, from, frame)
			e.Tick(now + 1)
		})
		if allocations != 0 || *written != 2*501 {
			t.Errorf("%v allocations per frame, %d deliveries; want none and %d", allocations, *written, 2*501)
		}
	}
}

// BenchmarkFrame carries a frame to 24 nodes.
func BenchmarkFrame(b *testing.B) {
	for _, delay := range []time.Duration{0, 1} {
		b.Run(fmt.Sprint("held for ", delay), func(b *testing.B) {
			e, _, from := engineOf(b, 25, &virtual.Delay{Time: delay})
			frame, now := slices.Repeat([]byte{0xff}, 900), int64(0)
			for b.Loop() {
				now++
				e.Receive(now, from, frame)
				e.Tick(now + 1)
			}
		})
	}
}

// shipmentRecorder keeps the sequence numbers of the parts that are shipped to a host.
type shipmentRecorder struct{ shipped [][]uint64 }

func (s *shipmentRecorder) Ship(shipment *radio.Shipment) {
	sequences := []uint64{}
	for _, p := range shipment.Parts {
		sequences = append(sequences, p.Sequence)
	}
	s.shipped = append(s.shipped, sequences)
}

func TestEachHostGetsThePartsForItsPorts(t *testing.T) {
	const group, unknown radio.MAC = 1<<40 | 9, 77
	for _, c := range []struct {
		name    string
		reached []int       // ports by NEM id: 2 and 3 are on the first host, 4 on the second
		to      []radio.MAC // of the parts, whose sequence numbers count from 0
		// what the hosts get; nil where nothing is shipped.
		first, second [][]uint64
	}{
		{"a broadcast goes to those whom it reaches", []int{2, 3}, []radio.MAC{group, group}, [][]uint64{{0, 1}}, nil},
		{"others hear of what disturbs them", []int{2, 4}, []radio.MAC{2}, [][]uint64{{0}}, [][]uint64{{}}},
		{"an addressee's host knows what the addressee misses", nil, []radio.MAC{4}, nil, [][]uint64{{0}}},
		{"parts for several hosts", []int{2, 3, 4}, []radio.MAC{3, group, 4, 2}, [][]uint64{{0, 1, 3}}, [][]uint64{{1, 2}}},
		{"a broadcast is not for a host of addressees alone", []int{4}, []radio.MAC{group, 2}, [][]uint64{{1}}, [][]uint64{{0}}},
		{"an address that nobody has", nil, []radio.MAC{unknown}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := virtual.New(1500, &virtual.Delay{}).Hosts[0].Network
			if _, err := n.Attach(0, radio.PortOptions{NEM: 1, MAC: 1}); err != nil {
				t.Fatal(err)
			}
			hosts := [2]*shipmentRecorder{{}, {}}
			for nem := 2; nem <= 4; nem++ {
				if _, err := n.Attach(0, radio.PortOptions{NEM: nem, MAC: radio.MAC(nem), Host: hosts[nem/4]}); err != nil {
					t.Fatal(err)
				}
			}
			s := &radio.Shipment{}
			for i, to := range c.to {
				s.Parts = append(s.Parts, radio.Part{Destination: to, Sequence: uint64(i)})
			}
			var reached []*radio.Port
			for _, nem := range c.reached {
				reached = append(reached, n.Find(radio.MAC(nem)))
			}
			n.ShipParts(s, reached)
			if len(s.Parts) != len(c.to) {
				t.Errorf("%d parts are left of %d", len(s.Parts), len(c.to))
			}
			for i, want := range [][][]uint64{c.first, c.second} {
				if got := hosts[i].shipped; !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("host %d gets %v; want %v", i+1, got, want)
				}
			}
		})
	}
}

// lateOutput collects the calls of Late.
type lateOutput struct{ late []int64 }

func (*lateOutput) Write(*radio.Port, []byte) radio.Reason { return radio.Written }

func (o *lateOutput) Late(due, now int64) { o.late = append(o.late, now-due) }

func TestTheCountersAndTheOutputAgreeOnWhatIsLate(t *testing.T) {
	output := &lateOutput{}
	engine := radio.NewEngine(output)
	n, err := engine.NewNetwork(radio.NetworkOptions{Model: &virtual.Delay{Time: time.Millisecond}, MTU: 100})
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Attach(0, radio.PortOptions{Name: "a", NEM: 1, MAC: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Attach(0, radio.PortOptions{Name: "b", NEM: 2, MAC: 2}); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	for _, late := range []int64{radio.LateThreshold - 1, radio.LateThreshold, radio.LateThreshold + 1} {
		engine.Receive(now, p, make([]byte, radio.HeaderLength))
		now = engine.Next() + late
		engine.Tick(now)
	}
	if c := p.CurrentCounters(); c.LateReleases != 1 || !slices.Equal(output.late, []int64{radio.LateThreshold + 1}) {
		t.Errorf("%d late releases are counted, the output got %v; want only the one after more than the threshold", c.LateReleases, output.late)
	}
}
