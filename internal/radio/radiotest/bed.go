package radiotest

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
)

// Bed is a network of real TAPs in namespaces, for a test.
type Bed struct {
	Network *radio.Network
	Nodes   []*Node
	Ports   []*radio.Port
}

// engines is the engine of all beds of a process.
var engines = sync.OnceValues(func() (*radio.Engine, error) { return radio.New(radio.Options{Nice: radio.DefaultNice}) })

// NewBed makes a network of that many nodes, with NEM ids 1, 2, …, over a model. It ends with the test. The
// test is skipped if nodes cannot be made.
func NewBed(t testing.TB, nodes int, model radio.Model) *Bed {
	t.Helper()
	if err := Missing(); err != nil {
		t.Skip(err)
	}
	engine, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	b := &Bed{}
	b.Network, err = engine.NewNetwork(radio.NetworkOptions{Model: model, MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		n, err := NewNode(i+1, 1500)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
		b.Nodes = append(b.Nodes, n)
	}
	if b.Ports, err = Join(b.Network, b.Nodes...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range b.Ports {
			p.Detach()
		}
		b.Network.Close()
	})
	return b
}

// AwaitRead waits until the network has read that many frames of a node.
func (b *Bed) AwaitRead(t testing.TB, node int, frames uint64) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); b.Network.Snapshot(false)[node].FramesSent < frames; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d frames of node %d were read; want %d", b.Network.Snapshot(false)[node].FramesSent, node, frames)
		}
	}
}

// Conserved fails the test unless every frame is accounted for.
func (b *Bed) Conserved(t testing.TB) {
	t.Helper()
	for _, s := range b.Network.Snapshot(false) {
		ended := s.Released + uint64(s.InFlight)
		for reason, n := range s.Drops {
			if radio.Reason(reason) <= radio.NoReceiver {
				ended += n
			}
		}
		if s.FramesSent+s.Copies != ended {
			t.Errorf("%s: %d frames sent, %d copies, but %d accounted for: %+v", s.Port.Name, s.FramesSent, s.Copies, ended, s.Counters)
		}
	}
}

// AtOnePercent tests a hypothesis at 1 % with fresh seeds. sample returns why it is rejected, or "". Three
// independent rejections, by chance one in a million, fail the test.
func AtOnePercent(t testing.TB, sample func(seed int64) (rejected string)) {
	t.Helper()
	for round := range 3 {
		seed := rand.Int64()
		rejected := sample(seed)
		if rejected == "" {
			return
		}
		t.Logf("fresh seed %d, rejection %d: %s", seed, round+1, rejected)
	}
	t.Error("three independent samples reject the hypothesis at 1 % each")
}
