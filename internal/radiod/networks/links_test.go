package networks

import (
	"fmt"
	"testing"

	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// heard is a data plane in which all of a network's nodes have received all others.
type heard struct {
	dataplane.Plane
	nodes int
}

func (h heard) snapshot() *dataplane.Snapshot {
	s := &dataplane.Snapshot{LinksHeard: h.nodes * (h.nodes - 1)}
	for i := range h.nodes {
		s.Ports = append(s.Ports, dataplane.PortCounters{ID: dataplane.PortID(i + 1), Name: fmt.Sprint(i)})
	}
	return s
}

func (h heard) Links(_ string, receivers []dataplane.PortID) (links [][]phy.LinkStatistics, err error) {
	for _, id := range receivers {
		var to []phy.LinkStatistics
		for from := range h.nodes {
			if from != int(id)-1 {
				to = append(to, phy.LinkStatistics{From: fmt.Sprint(from), Received: 1})
			}
		}
		links = append(links, to)
	}
	return links, nil
}

func TestReceiversLinksAreSampledInRotation(t *testing.T) {
	for _, c := range []struct{ nodes, atOnce, rounds, metrics int }{{20, 380, 1, 380}, {50, 490, 5, 2450}, {60, 472, 8, 0}} {
		plane := heard{nodes: c.nodes}
		m := &Networks{Options: Options{Plane: plane}}
		n := &network{networks: m, object: &v1alpha1.RadioNetwork{Spec: v1alpha1.RadioNetworkSpec{Waveform: radiodtest.RFPipe()}}}
		count := func(reset bool) *figures.Network {
			counted := &figures.Network{Nodes: make([]figures.Node, c.nodes)}
			n.countRadios(counted, plane.snapshot(), reset)
			if counted.LinksHeard != c.nodes*(c.nodes-1) {
				t.Errorf("%d nodes: %d links heard; want %d", c.nodes, counted.LinksHeard, c.nodes*(c.nodes-1))
			}
			return counted
		}
		seen := map[[2]string]bool{}
		for range c.rounds {
			links := count(true).Links
			if len(links) > c.atOnce {
				t.Errorf("%d nodes: %d links at once; want up to %d", c.nodes, len(links), c.atOnce)
			}
			for _, l := range links {
				seen[[2]string{l.Receiver, l.From}] = true
			}
		}
		if all := c.nodes * (c.nodes - 1); len(seen) != all {
			t.Errorf("%d nodes: %d links in %d seconds; want all %d", c.nodes, len(seen), c.rounds, all)
		}
		if links := count(false).Links; len(links) != c.metrics {
			t.Errorf("%d nodes: %d links have metrics; want %d", c.nodes, len(links), c.metrics)
		}
	}
}
