package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func compile(t *testing.T, entries ...v1alpha1.TimelineEntry) (*Timeline, string) {
	t.Helper()
	return compileFor(t, "60s", entries...)
}

func compileFor(t *testing.T, duration v1alpha1.Duration, entries ...v1alpha1.TimelineEntry) (*Timeline, string) {
	t.Helper()
	spec := &v1alpha1.ExperimentSpec{
		Duration: duration, Timeline: entries,
		Networks: []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24"}},
		Apps: []v1alpha1.App{
			{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}},
			{Name: "bft", Publisher: &v1alpha1.Publisher{}},
			{Name: "sub", Subscriber: &v1alpha1.Subscriber{}},
		},
		Nodes: []v1alpha1.Node{
			{Name: "hq", Apps: []string{"broker", "sub"}},
			{Name: "veh", Count: ptr.To(int32(2)), Group: "field", Apps: []string{"bft"}},
		},
	}
	expanded, errs := topology.Expand(spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	compiled, errs := Compile(spec, expanded)
	if len(errs) > 0 {
		return compiled, errs.ToAggregate().Error()
	}
	return compiled, ""
}

// describeActions for actions: "5s start veh-1/bft veh-2/bft".
func describeActions(actions []runapi.Action) (lines []string) {
	for _, a := range actions {
		line := fmt.Sprintf("%s %s", time.Duration(a.AtNanoseconds), a.Verb)
		for _, target := range a.Targets {
			line += " " + target.Node + "/" + target.App
		}
		lines = append(lines, line)
	}
	return lines
}

func entry(when v1alpha1.Duration, start, stop string) v1alpha1.TimelineEntry {
	return v1alpha1.TimelineEntry{At: when, Start: strings.Fields(start), Stop: strings.Fields(stop)}
}

func entryOver(when, over v1alpha1.Duration, start, stop string) v1alpha1.TimelineEntry {
	e := entry(when, start, stop)
	e.Over = &over
	return e
}

func TestATimelineBecomesActions(t *testing.T) {
	const rest = "0s start hq/broker hq/sub"
	cases := map[string]struct {
		entries []v1alpha1.TimelineEntry
		want    []string
	}{
		"nothing said: all starts at T0 and publishers stop at the duration": {
			nil, []string{"0s start hq/broker hq/sub veh-1/bft veh-2/bft", "1m0s stop veh-1/bft veh-2/bft"}},
		"an app's name means every node that runs it": {
			[]v1alpha1.TimelineEntry{entry("5s", "bft", ""), entry("50s", "", "bft")},
			[]string{rest, "5s start veh-1/bft veh-2/bft", "50s stop veh-1/bft veh-2/bft"}},
		"what one node's entry leaves out runs from T0": {
			[]v1alpha1.TimelineEntry{entry("5s", "veh-1/bft", "")},
			[]string{"0s start hq/broker hq/sub veh-2/bft", "5s start veh-1/bft", "1m0s stop veh-1/bft veh-2/bft"}},
		"a group, and the name of a node with a count": {
			[]v1alpha1.TimelineEntry{entry("5s", "field/bft", ""), entry("9s", "", "veh/bft")},
			[]string{rest, "5s start veh-1/bft veh-2/bft", "9s stop veh-1/bft veh-2/bft"}},
		"a restart stops first": {
			[]v1alpha1.TimelineEntry{entry("5s", "bft", ""), entry("9s", "veh-1/bft", "veh-1/bft")},
			[]string{rest, "5s start veh-1/bft veh-2/bft", "9s stop veh-1/bft", "9s start veh-1/bft", "1m0s stop veh-1/bft veh-2/bft"}},
		"a stop written after a start at the same time comes first too": {
			[]v1alpha1.TimelineEntry{entry("5s", "bft", ""), entry("5s", "", "bft")},
			[]string{rest, "5s stop veh-1/bft veh-2/bft", "5s start veh-1/bft veh-2/bft", "1m0s stop veh-1/bft veh-2/bft"}},
		"a stop at T0 comes before the start": {
			[]v1alpha1.TimelineEntry{entry("0s", "", "veh-1/bft")},
			[]string{"0s stop veh-1/bft", "0s start hq/broker hq/sub veh-1/bft veh-2/bft", "1m0s stop veh-1/bft veh-2/bft"}},
		"entries in any order, and one target named twice": {
			[]v1alpha1.TimelineEntry{entry("9s", "", "bft"), entry("5s", "bft veh-2/bft", "")},
			[]string{rest, "5s start veh-1/bft veh-2/bft", "9s stop veh-1/bft veh-2/bft"}},
		"a broker's stop is not implied": {
			[]v1alpha1.TimelineEntry{entry("30s", "", "broker")},
			[]string{"0s start hq/broker hq/sub veh-1/bft veh-2/bft", "30s stop hq/broker", "1m0s stop veh-1/bft veh-2/bft"}},
		"starts and stops that are spread over a time": {
			[]v1alpha1.TimelineEntry{entryOver("5s", "4s", "bft", ""), entryOver("50s", "10s", "", "bft")},
			[]string{rest, "5s start veh-1/bft", "7s start veh-2/bft", "50s stop veh-1/bft", "55s stop veh-2/bft"}},
		"all that an entry names is spread over one time, in the order of nodes, and each restart stops first": {
			[]v1alpha1.TimelineEntry{entryOver("9s", "3s", "veh-2/bft broker", "bft")},
			[]string{"0s start hq/sub veh-1/bft", "9s start hq/broker", "10s stop veh-1/bft", "11s stop veh-2/bft", "11s start veh-2/bft", "1m0s stop veh-2/bft"}},
		"what is spread may come after an entry that begins later": {
			[]v1alpha1.TimelineEntry{entryOver("10s", "20s", "bft", ""), entry("15s", "", "bft")},
			[]string{rest, "10s start veh-1/bft", "15s stop veh-1/bft veh-2/bft", "20s start veh-2/bft", "1m0s stop veh-2/bft"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			compiled, problem := compile(t, c.entries...)
			if diff := cmp.Diff(c.want, describeActions(compiled.Actions)); diff != "" || problem != "" {
				t.Errorf("%s %s", problem, diff)
			}
		})
	}
}

func TestAReferenceToNothingIsNamed(t *testing.T) {
	cases := map[string]struct{ reference, want string }{
		"no such app":   {"x", `spec.timeline[0].start[0]: Invalid value: "x": there is no app "x"`},
		"no such group": {"x/bft", `neither a node nor a group "x" runs app "bft"`},
		"wrong node":    {"hq/bft", `neither a node nor a group "hq" runs app "bft"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, problem := compile(t, entry("1s", c.reference, "")); !strings.Contains(problem, c.want) {
				t.Errorf("got %q, want %q", problem, c.want)
			}
		})
	}
}

func TestActionIDsAreUnique(t *testing.T) {
	compiled, _ := compile(t, entry("5s", "bft", ""), entry("9s", "bft", "bft"), entry("20s", "", "sub"))
	seen := map[string]bool{EarlyStopID: true}
	for _, a := range compiled.Actions {
		if seen[a.ID] {
			t.Errorf("id %s twice", a.ID)
		}
		seen[a.ID] = true
	}
}

func TestAnEarlyStop(t *testing.T) {
	compiled, _ := compile(t, entry("5s", "veh-1/bft", ""), entry("20s", "veh-2/bft", ""), entry("30s", "", "veh-1/bft"))
	begun := []string{"0s start hq/broker hq/sub", "5s start veh-1/bft"}
	cases := map[string]struct {
		now  time.Duration
		want []string
	}{
		"takes back what comes later":                {6 * time.Second, append(begun[:2:2], "8s stop veh-1/bft veh-2/bft")},
		"leaves what comes before it":                {18 * time.Second, append(begun[:2:2], "20s start veh-2/bft", "20s stop veh-1/bft veh-2/bft")},
		"stops all, as an agent may hear of it late": {40 * time.Second, append(begun[:2:2], "20s start veh-2/bft", "30s stop veh-1/bft", "42s stop veh-1/bft veh-2/bft")},
		"before T0 counts from T0":                   {-3 * time.Second, append(begun[:1:1], "2s stop veh-1/bft veh-2/bft")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stopped := compiled.StopEarly(c.now)
			if diff := cmp.Diff(c.want, describeActions(stopped)); diff != "" {
				t.Errorf("armed (-want +got):\n%s", diff)
			}
			if end := compiled.End(stopped); end != time.Duration(stopped[len(stopped)-1].AtNanoseconds) {
				t.Errorf("the run ends at %s", end)
			}
		})
	}
}

func TestWhenStepsEnd(t *testing.T) {
	cases := map[string]struct {
		entries      []v1alpha1.TimelineEntry
		starts, ends time.Duration
		measured     time.Duration
	}{
		"a plain run":               {nil, 60 * time.Second, 60 * time.Second, 0},
		"a late start":              {[]v1alpha1.TimelineEntry{entry("50s", "bft", "")}, 60 * time.Second, 60 * time.Second, 50 * time.Second},
		"an early stop of one":      {[]v1alpha1.TimelineEntry{entry("10s", "", "veh-1/bft")}, 10 * time.Second, 60 * time.Second, 0},
		"a stop after the duration": {[]v1alpha1.TimelineEntry{entry("90s", "", "bft")}, 90 * time.Second, 90 * time.Second, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			compiled, _ := compile(t, c.entries...)
			if got := compiled.StartStepEnd(nil); got != c.starts {
				t.Errorf("starts end at %s, want %s", got, c.starts)
			}
			if got := compiled.End(nil); got != c.ends {
				t.Errorf("the run ends at %s, want %s", got, c.ends)
			}
			if got := compiled.MeasureStart(); got != c.measured {
				t.Errorf("the measuring window starts at %s, want %s", got, c.measured)
			}
		})
	}
}

func TestALiveClusterHasNoEndOfItsOwn(t *testing.T) {
	cases := map[string]struct {
		entries []v1alpha1.TimelineEntry
		want    []string
		starts  time.Duration
	}{
		"without a timeline": {nil, []string{"0s start hq/broker hq/sub veh-1/bft veh-2/bft"}, 0},
		"with entries": {[]v1alpha1.TimelineEntry{entry("5s", "bft", ""), entry("50s", "", "veh-1/bft")},
			[]string{"0s start hq/broker hq/sub", "5s start veh-1/bft veh-2/bft", "50s stop veh-1/bft"}, 50 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			compiled, _ := compileFor(t, "", c.entries...)
			if diff := cmp.Diff(c.want, describeActions(compiled.Actions)); diff != "" {
				t.Error(diff)
			}
			if !compiled.Live() || compiled.End(nil) != Never || compiled.StartStepEnd(nil) != c.starts {
				t.Errorf("live %v, ends at %s, starts end at %s", compiled.Live(), compiled.End(nil), compiled.StartStepEnd(nil))
			}
			armed := compiled.StopEarly(time.Hour)
			if end := compiled.End(armed); end != time.Hour+EarlyStopLead {
				t.Errorf("stopped after an hour it ends at %s", end)
			}
		})
	}
}
