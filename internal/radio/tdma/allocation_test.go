package tdma

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
)

// carrier is a network without costs, so that only the model is measured.
type carrier struct {
	*simulation
	free     []*radio.Frame
	arrivals int
}

func (c *carrier) Keep(f *radio.Frame) *radio.Frame {
	if len(c.free) == 0 {
		c.free = append(c.free, &radio.Frame{})
	}
	kept := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	*kept = *f
	return kept
}

func (c *carrier) Drop(f *radio.Frame, _ radio.Reason) { c.free = append(c.free, f) }

func (c *carrier) Radiate(_ int64, f *radio.Frame) {
	c.arrivals += len(f.Receivers)
	c.free = append(c.free, f)
}

func (c *carrier) pass(d time.Duration) {
	for end := c.now + int64(d); c.wakeAt != never && c.wakeAt <= end; {
		c.now, c.wakeAt = c.wakeAt, never
		c.model.Continue(c, c.now)
	}
	c.now += int64(d)
}

// round has every node send a frame, and waits until all have arrived.
func (c *carrier) round(frame *radio.Frame) {
	for _, p := range c.ports {
		frame.Source, frame.Sent = p, c.now
		c.model.Offer(c, c.now, frame)
	}
	c.pass(2 * time.Second)
}

func newCarrier(b testing.TB, nodes, length int) (*carrier, *radio.Frame) {
	s := newSimulation(b, nodes, func(c *Config) { c.Schedule = schedule(b, nodes, milliseconds(nodes, 5*time.Millisecond), 1e6) })
	return &carrier{simulation: s}, &radio.Frame{Destination: everybody, Data: make([]byte, length)}
}

func TestFramesAreSentWithoutAllocations(t *testing.T) {
	for _, length := range []int{500, 1500} { // whole, and in parts
		for _, distributed := range []bool{false, true} {
			c, frame := newCarrier(t, 24, length)
			if distributed {
				c.ship = func(*radio.Shipment) {}
			}
			c.round(frame)
			if n := testing.AllocsPerRun(20, func() { c.round(frame) }); n > 0 {
				t.Errorf("%g allocations for 24 broadcasts of %d bytes, shipped to other hosts %v; want none", n, length, distributed)
			}
			if c.arrivals != 23*24*22 {
				t.Errorf("%d deliveries; want all", c.arrivals)
			}
		}
	}
}
