package driver_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
)

// Other programs can only add to delays, so the best frame shows the driver's own lateness.
func TestDelayThroughTAPsIsThatOfTheModel(t *testing.T) {
	const rate, delay, length = 250e3, 20 * time.Millisecond, 900
	const want = delay + time.Duration(8e9*length/rate)
	b := radiotest.NewBed(t, 2, link.New(link.Config{Default: link.Parameters{RateBitsPerSecond: rate, Delay: delay}}))
	best := time.Duration(math.MaxInt64)
	for i := range 40 {
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(b.Nodes[1].MAC, uint64(i), length)); err != nil {
			t.Fatal(err)
		}
		r, ok, err := b.Nodes[1].Receive(5 * time.Second)
		if err != nil || !ok || r.Length != length || r.Delay() < want {
			t.Fatalf("frame %d: %+v, %v, %v; want %v", i, r, ok, err, want)
		}
		if best = min(best, r.Delay()); best-want < 300*time.Microsecond && i > 5 {
			break
		}
	}
	if best-want > 500*time.Microsecond {
		t.Errorf("the best frame took %v; want %v and less than 0.5 ms more", best, want)
	}
	b.Conserved(t)
}

func TestTwinNetworksAtFullLoadNeverExchangeAFrame(t *testing.T) {
	one := radiotest.NewBed(t, 3, link.New(link.Config{Seed: 1}))
	two := radiotest.NewBed(t, 3, link.New(link.Config{Seed: 1})) // equal in every name, address and MAC
	const frames = 3000
	var wait sync.WaitGroup
	for marker, b := range []*radiotest.Bed{one, two} {
		for _, n := range b.Nodes {
			wait.Go(func() {
				for i := range frames {
					to := b.Nodes[i%3].MAC
					if i%2 == 0 {
						to = radiotest.Broadcast
					}
					// An error is a full queue of the kernel: load, not a fault.
					_ = n.Send(n.Frame(to, uint64(marker), 200))
				}
			})
		}
	}
	wait.Wait()
	for marker, b := range []*radiotest.Bed{one, two} {
		received := 0
		for _, n := range b.Nodes {
			all, err := n.ReceiveAll(100 * time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			received += len(all)
			for _, r := range all {
				if r.Sequence != uint64(marker) {
					t.Fatalf("a frame of network %d reached a node of network %d", r.Sequence, marker)
				}
			}
		}
		if received < frames {
			t.Errorf("only %d frames arrived in network %d: not a load", received, marker)
		}
		b.Conserved(t)
	}
}
