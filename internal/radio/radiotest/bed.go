package radiotest

import (
	"sync"
	"testing"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
)

// Bed is a network of real TAPs in namespaces, for a test.
type Bed struct {
	Network *driver.Network
	Nodes   []*Node
	Ports   []*driver.Port
}

// drivers is the driver of all beds of a process.
var drivers = sync.OnceValues(func() (*driver.Driver, error) { return driver.New(driver.Options{Nice: driver.DefaultNice}) })

// NewBed makes a network of that many nodes, with NEM ids 1, 2, …, over a model. It ends with the test. The
// test is skipped if nodes cannot be made.
func NewBed(t testing.TB, nodes int, model radio.Model) *Bed {
	t.Helper()
	if err := Missing(); err != nil {
		t.Skip(err)
	}
	d, err := drivers()
	if err != nil {
		t.Fatal(err)
	}
	b := &Bed{}
	b.Network, err = d.NewNetwork(radio.NetworkOptions{Model: model, MTU: 1500})
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

// Conserved fails the test unless every frame is accounted for.
func (b *Bed) Conserved(t testing.TB) {
	t.Helper()
	for _, s := range b.Network.Snapshot(false) {
		if !s.AddUp() {
			t.Errorf("%s: %d frames sent, %d copies, but not all accounted for: %+v", s.Port.Name, s.FramesSent, s.Copies, s.Counters)
		}
	}
}
