package link_test

import (
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
)

// effects by the names of sender and receiver; they may be changed while frames pass.
type effects struct {
	atomic.Pointer[map[[2]int]link.Effect]
}

func (e *effects) Effect(from, to *radio.Port, _ int64) (link.Effect, bool) {
	found, known := (*e.Load())[[2]int{from.NEM, to.NEM}]
	return found, known
}

func TestEachPairOfNodesHasTheEffectThatHoldsForIt(t *testing.T) {
	var e effects
	b := newBed(t, 4, link.Config{Default: link.Parameters{Delay: 400 * time.Millisecond}, Effects: &e})
	one, two, three := b.Ports[0].NEM, b.Ports[1].NEM, b.Ports[2].NEM
	e.Store(&map[[2]int]link.Effect{{one, two}: {Latency: 5 * time.Millisecond, Broadcast: 80_000}, {one, three}: {Loss: 1}})
	arrival := func(node int) time.Duration {
		t.Helper()
		r, ok, err := b.Nodes[node].Receive(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return -1
		}
		return r.Delay()
	}
	near := func(got, want time.Duration) bool { return got >= want && got < want+200*time.Millisecond } // on a busy machine
	send := func(sequence uint64, to []byte) {
		t.Helper()
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(to, sequence, 100)); err != nil {
			t.Fatal(err)
		}
	}

	send(1, b.Nodes[1].MAC)
	if got := arrival(1); !near(got, 5*time.Millisecond) {
		t.Errorf("unicast to the second node took %v; want 5 ms", got)
	}
	send(2, radiotest.Broadcast)
	if got := arrival(1); !near(got, 15*time.Millisecond) {
		t.Errorf("broadcast to the second node took %v; want 5 ms and 800 bit at 80 kbit/s", got)
	}
	if got := arrival(2); got != -1 {
		t.Errorf("broadcast to the third node took %v; want it lost", got)
	}
	if got := arrival(3); got < 400*time.Millisecond {
		t.Errorf("broadcast to the fourth node took %v; want the network's own 400 ms", got)
	}
	e.Store(&map[[2]int]link.Effect{{one, three}: {Latency: 8 * time.Millisecond}})
	send(3, b.Nodes[2].MAC)
	if got := arrival(2); !near(got, 8*time.Millisecond) {
		t.Errorf("unicast to the third node after a change took %v; want 8 ms", got)
	}
	b.Conserved(t)
}
