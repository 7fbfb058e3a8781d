package rfpipe_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radio/rfpipe"
)

// wire takes transmissions to another network in the same process, as to a host with the same clock.
type wire struct {
	to *radio.Network
	// whole and bare transmissions: with and without their frames.
	whole, bare int
}

func (w *wire) Ship(s *radio.Shipment) {
	if len(s.Data) > 0 {
		w.whole++
	} else {
		w.bare++
	}
	c := *s
	c.Receivers, c.Data = slices.Clone(s.Receivers), bytes.Clone(s.Data)
	w.to.ReceiveShipment(&c)
}

// distributedBed is a network with one node on each host, and an engine for each host.
type distributedBed struct {
	*bed
	networks []*radio.Network
	// wires from a host to another.
	wires [][]*wire
}

func newDistributedBed(t *testing.T, nodes int, config rfpipe.Config) *distributedBed {
	t.Helper()
	a := &distributedBed{bed: newBed(t, nodes, config)} // only for its nodes; its network carries nothing
	for _, p := range a.Ports {
		p.Detach()
	}
	a.Ports = nil
	for range nodes {
		engine, err := radio.New(radio.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close() })
		n, err := engine.NewNetwork(radio.NetworkOptions{Model: rfpipe.New(config), MTU: 1500})
		if err != nil {
			t.Fatal(err)
		}
		a.networks = append(a.networks, n)
	}
	for i, n := range a.networks {
		var wires []*wire
		for j := range a.networks {
			w := &wire{to: a.networks[j]}
			wires = append(wires, w)
			if i != j {
				a.far(t, n, j, w)
				continue
			}
			ports, err := radiotest.Join(n, a.Nodes[i])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ports[0].Detach() })
		}
		a.wires = append(a.wires, wires)
	}
	return a
}

func (a *distributedBed) far(t *testing.T, n *radio.Network, node int, w *wire) {
	t.Helper()
	mac, err := radio.ParseMAC(a.Nodes[node].MAC.String())
	if err == nil {
		_, err = n.Attach(radio.PortOptions{Name: "far", NEM: a.Nodes[node].NEM, MAC: mac, Host: w})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// own counters of a node.
func (a *distributedBed) own(node int) radio.Counters {
	return a.networks[node].Snapshot(false)[0].Counters
}

func (a *distributedBed) eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 30 s still not: %s; %+v", what, a.own(1))
		}
	}
}

func TestTheSameFramesArriveOnSeveralHostsAsOnOne(t *testing.T) {
	const frames = 200
	config := pipe(everywhere(2, 100), 10e6) // 10 dB: half of them
	config.PCR, config.Seed, config.QueueDepth = curve(t, linearPCR), 4711, 10000
	one := newBed(t, 2, config)
	one.send(t, 0, -1, 0, frames, 200)
	one.AwaitRead(t, 0, frames)
	want := one.settled(t, 1)
	several := newDistributedBed(t, 2, config)
	several.send(t, 0, -1, 0, frames, 200)
	several.eventually(t, "every frame is received or missed", func() bool {
		c := several.own(1)
		return c.FramesReceived+c.Drops[radio.LowSINR] == frames
	})
	arrived, err := several.Nodes[1].ReceiveAll(50 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, r := range arrived {
		got = append(got, int(r.Sequence))
	}
	if len(want) == 0 || len(want) == frames || !slices.Equal(got, want) {
		t.Errorf("on two hosts %d frames arrived, %v; on one %d, %v", len(got), got, len(want), want)
	}
	if sender := several.own(0); sender.Released != frames || sender.InFlight != 0 {
		t.Errorf("the sender's host has %d of %d frames as released, %d under way", sender.Released, frames, sender.InFlight)
	}
	if c := several.own(1); c.Lateness.Count != c.FramesReceived {
		t.Errorf("the lateness of %d frames is known at the receiver, of %d received", c.Lateness.Count, c.FramesReceived)
	}
}

func TestTransmissionsInterfereAcrossHosts(t *testing.T) {
	config := pipe(everywhere(3, 90), 10e3) // alone every frame arrives, and takes 160 ms
	config.PCR, config.Interference = curve(t, linearPCR), phy.All
	several := newDistributedBed(t, 3, config)
	several.send(t, 0, 1, 1, 1, 200)
	several.send(t, 2, 0, 2, 1, 200)
	several.eventually(t, "the frame is missed", func() bool { return several.own(1).Drops[radio.Interfered] == 1 })
	if w := several.wires[2][1]; w.whole != 0 || w.bare != 1 {
		t.Errorf("a frame for another went to a third host %d times whole and %d times without data; want 0 and 1", w.whole, w.bare)
	}
	if w := several.wires[0][1]; w.whole != 1 || w.bare != 0 {
		t.Errorf("a frame went to its addressee's host %d times whole and %d times without data; want 1 and 0", w.whole, w.bare)
	}
}

func TestALocalPortReplacesThatOfAnotherHost(t *testing.T) {
	several := newDistributedBed(t, 2, pipe(everywhere(2, 0), 0))
	ports, err := radiotest.Join(several.networks[0], several.Nodes[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ports[0].Detach() })
	several.send(t, 0, 1, 0, 1, 100)
	r, ok, err := several.Nodes[1].Receive(10 * time.Second)
	if err != nil || !ok {
		t.Fatalf("nothing arrived here: %+v, %v", r, err)
	}
	if several.wires[0][1].whole != 0 {
		t.Error("the frame went to the other host as well")
	}
	mac, _ := radio.ParseMAC(several.Nodes[1].MAC.String())
	if _, err := several.networks[0].Attach(radio.PortOptions{Name: "far", NEM: 2, MAC: mac, Host: several.wires[0][1]}); err == nil {
		t.Error("a port elsewhere took the place of one here")
	}
}
