package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/metrics"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/scenario"
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

func (h heard) Links(_ string, receivers []dataplane.PortID) (links [][]dataplane.Link, err error) {
	for _, id := range receivers {
		var to []dataplane.Link
		for from := range h.nodes {
			if from != int(id)-1 {
				to = append(to, dataplane.Link{From: fmt.Sprint(from), Received: 1})
			}
		}
		links = append(links, to)
	}
	return links, nil
}

func TestReceiversLinksAreSampledInRotation(t *testing.T) {
	for _, c := range []struct{ nodes, atOnce, rounds, metrics int }{{20, 380, 1, 380}, {50, 490, 5, 2450}, {60, 472, 8, 0}} {
		plane := heard{nodes: c.nodes}
		m := &Networks{NetworksOptions: NetworksOptions{Plane: plane}}
		n := &network{room: m, object: &v1alpha1.RadioNetwork{Spec: v1alpha1.RadioNetworkSpec{Waveform: radiodtest.RFPipe()}}}
		count := func(reset bool) *NetworkCounters {
			counted := &NetworkCounters{Nodes: make([]NodeCounters, c.nodes)}
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

func TestSamplesAndMetricsOfAPhysicalNetwork(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.TDMA())
	b.play(radiodtest.Compile(t, func(s *scenario.Builder) error {
		for i := 1; i <= 3; i++ {
			if err := s.Position(0, i, geo.Position{Latitude: 58 + float64(i)/100, Longitude: 8, Altitude: 3}); err != nil {
				return err
			}
			for j := 1; j <= 3; j++ {
				if i != j {
					if err := s.Pathloss(0, i, j, 80); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}))
	b.begin(t)
	b.ready(t)
	b.receives(t, "in range", 1, 2, 3)
	for _, s := range []string{"slots_used_total", "slot_lateness_seconds", "queue_class_frames", "links", "link_sinr_decibels", "link_pathloss_decibels", "link_heard_total", "scenario_steps_total"} {
		if testutil.CollectAndCount(metrics.Collector{Counters: func() []figures.Network { return b.Counters(false) }}, "vignette_radio_"+s) == 0 {
			t.Errorf("there is no metric vignette_radio_%s", s)
		}
	}
	sampler := newSampler(t, b.Manager)
	sampler.Sample()
	text, err := os.ReadFile(filepath.Join(sampler.Directory, "run.0.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(text)
	last := &recorder{}
	b.Options.Recorder, b.Networks.Recorder = last, last
	if err := b.RemoveNetwork(string(b.object.UID)); err != nil {
		t.Fatal(err)
	}
	if used := last.last["node-1"].Slots.Used; used != 1 {
		t.Errorf("the last counters have %d slots used; want the one that was", used)
	}
	for _, part := range []string{`"slotsUsed":1`, `"positions":{"node-1":[58.01,8,3],"node-2":[58.02,8,3],"node-3":[58.03,8,3]}`,
		`"receiver":"node-2","from":[{"node":"node-1","sinrDB":30,"pathlossDB":80,"heard":1}]`} {
		if !strings.Contains(log, part) {
			t.Errorf("the radio log lacks %s:\n%s", part, log)
		}
	}
}
