package samples

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/runapi"
)

// sceneLines of a sample's sample by their distinguishing fields.
func sceneLines(t *testing.T, c *networkLog, n *figures.Network) (positions []runapi.RadioPositions, links []runapi.RadioLinks, steps []runapi.RadioSteps) {
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
func missedBy(reason radio.Reason) (missed figures.Missed) {
	missed[reason-radio.BelowSensitivity] = 1
	return missed
}

func TestSamplesHaveWhatIsNewOfPositionsLinksAndSteps(t *testing.T) {
	n := &figures.Network{Network: "vhf", Positions: map[string][3]float64{"a": {58, 8, 3}, "b": {58.1, 8, 3}}, Steps: 2, LateSteps: 1,
		WorstStepLateness: 30 * time.Millisecond, Links: []figures.Link{
			{Receiver: "a", From: "b", SINRDB: 3.14159, PathlossDB: math.NaN(), Heard: 4, Missed: missedBy(radio.LowSINR)},
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
	n.Links[1].Missed = missedBy(radio.HalfDuplex)
	positions, links, _ = sceneLines(t, c, n)
	if len(positions) != 1 || len(positions[0].Positions) != 1 || positions[0].Positions["b"][0] != 58.2 {
		t.Errorf("positions %+v; want that of b, which has moved", positions)
	}
	if len(links) != 1 || links[0].Receiver != "b" || links[0].From[0].Missed["halfDuplex"] != 1 {
		t.Errorf("links %+v; want that to b, which missed one", links)
	}
}
