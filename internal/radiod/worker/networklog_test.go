package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// sceneLines of a sample's sample by their distinguishing fields.
func sceneLines(t *testing.T, c *networkLog, n *NetworkCounters) (positions []runapi.RadioPositions, links []runapi.RadioLinks, steps []runapi.RadioSteps) {
	t.Helper()
	var text bytes.Buffer
	if err := c.sample(json.NewEncoder(&text), 5, n); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		switch {
		case strings.Contains(line, `"positions"`):
			positions = append(positions, decoded[runapi.RadioPositions](t, line))
		case strings.Contains(line, `"receiver"`):
			links = append(links, decoded[runapi.RadioLinks](t, line))
		case strings.Contains(line, `"steps"`):
			steps = append(steps, decoded[runapi.RadioSteps](t, line))
		default:
			t.Errorf("line %s is none of a scene's", line)
		}
	}
	return positions, links, steps
}

func decoded[T any](t *testing.T, line string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// missedBy is one transmission missed for a reason.
func missedBy(reason radio.Reason) (missed [radio.NotListening - radio.BelowSensitivity + 1]uint64) {
	missed[reason-radio.BelowSensitivity] = 1
	return missed
}

func TestSamplesHaveWhatIsNewOfPositionsLinksAndSteps(t *testing.T) {
	n := &NetworkCounters{Network: "vhf", Positions: map[string][3]float64{"a": {58, 8, 3}, "b": {58.1, 8, 3}}, Steps: 2, LateSteps: 1,
		WorstStepLateness: 30 * time.Millisecond, Links: []LinkCounters{
			{Receiver: "a", From: "b", SINRDB: 3.14159, PathlossDB: math.NaN(), Heard: 4, missed: missedBy(radio.LowSINR)},
			{Receiver: "b", From: "a", SINRDB: math.Inf(-1), PathlossDB: 101.234, Heard: 2}}}
	c := &networkLog{}
	positions, links, steps := sceneLines(t, c, n)
	if len(positions) != 1 || !reflect.DeepEqual(positions[0].Positions, n.Positions) || positions[0].Network != "vhf" || positions[0].TimeNanoseconds != 5 {
		t.Errorf("positions %+v; want those of a and b", positions)
	}
	if len(steps) != 1 || steps[0].Steps != 2 || steps[0].LateSteps != 1 || steps[0].WorstStepLatenessSeconds != 0.03 {
		t.Errorf("steps %+v; want 2, one late by 30 ms", steps)
	}
	want := []runapi.RadioLinks{
		{TimeNanoseconds: 5, Network: "vhf", Receiver: "a", From: []runapi.RadioLink{{Node: "b", SINRDecibels: ptr.To(3.14), Received: 4, Missed: map[string]uint64{"lowSINR": 1}}}},
		{TimeNanoseconds: 5, Network: "vhf", Receiver: "b", From: []runapi.RadioLink{{Node: "a", PathlossDecibels: ptr.To(101.23), Received: 2}}}}
	if !reflect.DeepEqual(links, want) {
		t.Errorf("links %+v; want %+v", links, want)
	}
	if positions, links, steps = sceneLines(t, c, n); len(positions)+len(links)+len(steps) != 0 {
		t.Errorf("positions %v, links %v, steps %v again, although nothing is new", positions, links, steps)
	}
	n.Positions = map[string][3]float64{"a": {58, 8, 3}, "b": {58.2, 8, 3}}
	n.Links[1].missed = missedBy(radio.HalfDuplex)
	positions, links, _ = sceneLines(t, c, n)
	if len(positions) != 1 || len(positions[0].Positions) != 1 || positions[0].Positions["b"][0] != 58.2 {
		t.Errorf("positions %+v; want that of b, which has moved", positions)
	}
	if len(links) != 1 || links[0].Receiver != "b" || links[0].From[0].Missed["halfDuplex"] != 1 {
		t.Errorf("links %+v; want that to b, which missed one", links)
	}
}

// heard is a model's settings in which all have received all others.
type heard struct {
	settings
	ports []*radio.Port
}

func (h heard) statistics(radio.Model, *radio.Port, bool) (none nodeStatistics) { return none }

func (h heard) medium(radio.Model) heardLinks { return h }

func (h heard) LinksHeard() int { return len(h.ports) * (len(h.ports) - 1) }

func (h heard) AppendLinks(all []phy.LinkStatistics, p *radio.Port) []phy.LinkStatistics {
	for _, from := range h.ports {
		if from != p {
			all = append(all, phy.LinkStatistics{From: from, Received: 1})
		}
	}
	return all
}

func TestReceiversLinksAreSampledInRotation(t *testing.T) {
	engine, err := driver.New(driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for _, c := range []struct{ nodes, atOnce, rounds, metrics int }{{20, 380, 1, 380}, {50, 490, 5, 2450}, {60, 472, 8, 0}} {
		running, err := engine.NewNetwork(radio.NetworkOptions{MTU: 1400})
		if err != nil {
			t.Fatal(err)
		}
		n := &network{object: &v1alpha1.RadioNetwork{Spec: v1alpha1.RadioNetworkSpec{Waveform: rfpipeOf()}}, running: running, environment: &environment{}}
		var ports []*radio.Port
		for i := range c.nodes {
			ports = append(ports, &radio.Port{PortOptions: radio.PortOptions{Name: fmt.Sprint(i)}})
		}
		n.initialSettings = heard{ports: ports}
		count := func(reset bool) *NetworkCounters {
			counted := &NetworkCounters{Nodes: make([]NodeCounters, c.nodes)}
			n.countRadios(counted, ports, reset)
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
	b := newPhysicalBed(t, 3, tdmaOf())
	b.play(compile(t, func(s *scenario.Builder) error {
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
		if testutil.CollectAndCount(b.Manager, "vignette_radio_"+s) == 0 {
			t.Errorf("there is no metric vignette_radio_%s", s)
		}
	}
	sampler := newSampler(t.TempDir())
	if err := sampler.sample(7, b.Counters(true)); err != nil {
		t.Fatal(err)
	}
	a := &archive{}
	ship(t, sampler.runs["run"].spool, a)
	log := string(a.content)
	last := &recorder{}
	b.Recorder = last
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
