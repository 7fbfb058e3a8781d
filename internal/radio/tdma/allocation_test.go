package tdma

import (
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
)

// counting is an output that counts what nodes receive.
type counting struct{ arrivals int }

func (c *counting) Write(*radio.Port, []byte) radio.Reason {
	c.arrivals++
	return radio.Written
}

func (*counting) Late(int64, int64) {}

func (*counting) Ship(*radio.Shipment) {}

// round sends a frame from every local node, and waits until all have arrived.
func round(s *simulation, frame []byte) {
	for _, p := range s.ports {
		if p.IsLocal() {
			s.engine.Receive(s.now, p, frame)
		}
	}
	s.pass(2 * time.Second)
}

func TestFramesAreSentWithoutAllocations(t *testing.T) {
	const nodes = 24
	for _, length := range []int{500, 1500} { // whole, and in parts
		for _, distributed := range []bool{false, true} {
			output := &counting{}
			s := newSimulation(t, 0, func(c *Config) { c.Schedule = schedule(t, nodes, milliseconds(nodes, 5*time.Millisecond), 1e6) })
			s.pathloss = slices.Repeat([][]float64{slices.Repeat([]float64{70}, nodes)}, nodes)
			s.engine = radio.NewEngine(output)
			s.network, _ = s.engine.NewNetwork(radio.NetworkOptions{Model: s.model, MTU: 1500})
			for nem := 1; nem <= nodes; nem++ {
				s.join(nem, nil)
			}
			if distributed {
				s.join(nodes+1, output)
				for i := range s.pathloss {
					s.pathloss[i] = append(s.pathloss[i], 70)
				}
			}
			frame := slices.Repeat([]byte{255}, length)
			round(s, frame)
			if n := testing.AllocsPerRun(20, func() { round(s, frame) }); n > 0 {
				t.Errorf("%g allocations for 24 broadcasts of %d bytes, shipped to other hosts %v; want none", n, length, distributed)
			}
			if output.arrivals != (nodes-1)*nodes*22 {
				t.Errorf("%d deliveries; want all", output.arrivals)
			}
		}
	}
}
