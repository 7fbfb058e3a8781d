package validate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
)

// protocolsOfE7 are named as the scenario's apps.
var protocolsOfE7 = map[string]string{"amqp": "amqp", "mqtt": "mqtt", "mqtt-sn": "mqtt-sn", "stomp": "stomp", "wsn": "ws-notification", "xmpp": "xmpp"}

// TestE7HasEveryPairOfProtocols takes the pairs from the plan's table of streams.
func TestE7HasEveryPairOfProtocols(t *testing.T) {
	for file, perBurst := range map[string]int{"e7/pairs.yaml": 1, "e7/short/all-at-once.yaml": 6} {
		e, _ := scenario(t, file)
		expanded, errs := topology.Expand(&e.Spec)
		if errs = append(errs, expanded.CheckReferences(&e.Spec)...); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		plan := render.Plan(render.Input{Experiment: &e, Topology: expanded}, nil, nil)
		pairs, bursts := map[string]int{}, 0
		for _, row := range plan.Streams.Rows {
			bursts++
			for _, heard := range row.Heard {
				for _, into := range plan.Streams.Audiences[heard.Audience] {
					pairs[protocolsOfE7[path.Base(row.Publishers[0])]+" to "+protocolsOfE7[strings.TrimPrefix(path.Base(into), "sub-")]]++
				}
			}
		}
		var want []string
		for _, out := range protocolsOfE7 {
			for _, into := range protocolsOfE7 {
				want = append(want, out+" to "+into)
			}
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(pairs)); !slices.Equal(got, want) || bursts != 36/perBurst || len(e.Spec.Timeline) != bursts {
			t.Errorf("%s: %d bursts, %d started one by one, of the pairs %q; want %d of %q", file, bursts, len(e.Spec.Timeline), got, 36/perBurst, want)
		}
		for pair, n := range pairs {
			if n != 1 {
				t.Errorf("%s: %s %d times; want once", file, pair, n)
			}
		}
		starts := map[string]bool{}
		for _, entry := range e.Spec.Timeline {
			starts[fmt.Sprint(entry.Start)] = true
		}
		if len(starts) != bursts {
			t.Errorf("%s: the timeline starts some app twice: %v", file, starts)
		}
	}
}
