package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func loss(network string, share v1alpha1.Percent) v1alpha1.RadioChange {
	return v1alpha1.RadioChange{Network: network, Link: &v1alpha1.LinkPatch{Loss: &share}}
}

// inputWithChanges is the quickstart with a base, changes and captures, and no duration.
func inputWithChanges(t *testing.T) (Input, map[string]v1alpha1.WaveformSpec) {
	t.Helper()
	in := quickstart(t)
	spec := &in.Experiment.Spec
	spec.Duration = ""
	spec.Networks[1].Base = []string{"nor", "field"}
	spec.Networks[1].Links = []v1alpha1.GroupLink{{From: "field", To: "*", LinkModel: v1alpha1.LinkModel{Delay: "7ms"}}}
	spec.Timeline = append(spec.Timeline,
		v1alpha1.TimelineEntry{At: "40s", Set: []v1alpha1.RadioChange{loss("wan", "9%"), loss("lan", "8%")}},
		v1alpha1.TimelineEntry{At: "30s", Set: []v1alpha1.RadioChange{{Network: "wan", Silent: ptr.To(true)}}},
		v1alpha1.TimelineEntry{At: "40s", Set: []v1alpha1.RadioChange{loss("wan", "1%")}})
	spec.Collect = &v1alpha1.Collect{Captures: []string{"wan", "lan/veh-2", "lan/nor"}, CaptureFilter: "udp", CaptureSnapLengthBytes: ptr.To(int32(96))}
	known := waveforms(in)
	lan := known["lan"]
	lan.Downlink = &v1alpha1.LinkModel{Delay: "2ms", Limit: 50}
	known["lan"] = lan
	if errs := append(CheckRadio(spec, in.Topology), CheckBase(spec, known)...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return in, known
}

func TestBasesChangesAndCapturesMatchTheirGoldenFile(t *testing.T) {
	in, known := inputWithChanges(t)
	var objects []any
	for _, n := range RadioNetworks(in, known, uids(in)) {
		objects = append(objects, n)
	}
	checkGolden(t, "radionetworks-steered", objects...)
	checkGolden(t, "workflow-live", Workflow(in).Object)
	want := []runapi.PlannedCapture{{Name: "run", Network: "wan", Nodes: []string{"nor", "prt"}, Filter: "udp", LimitBytes: 256 << 20}, {Name: "run", Network: "lan", Nodes: []string{"nor", "veh-2"}, Filter: "udp", LimitBytes: 256 << 20}}
	if diff := cmp.Diff(want, Plan(in, known, uids(in)).Captures); diff != "" {
		t.Errorf("planned captures (-want +got):\n%s", diff)
	}
}

func TestManualChangesComeAfterThoseOfTheTimelineAtTheSameTime(t *testing.T) {
	at := func(second int64, share v1alpha1.Percent) v1alpha1.TimedRadioChange {
		return v1alpha1.TimedRadioChange{AtNanoseconds: second * 1e9, RadioChange: loss("wan", share)}
	}
	got := AddChanges([]v1alpha1.TimedRadioChange{at(1, "1%"), at(5, "5%")}, at(5, "50%"), at(3, "30%"))
	if diff := cmp.Diff([]v1alpha1.TimedRadioChange{at(1, "1%"), at(3, "30%"), at(5, "5%"), at(5, "50%")}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestCapturesAreLimitedToWholeBytes(t *testing.T) {
	for text, want := range map[string]string{"1": "", "256Mi": "", "0": "above zero", "-1Mi": "above zero", "256m": "whole bytes", "1500m": "whole bytes"} {
		limit := resource.MustParse(text)
		errs := CheckCaptureAlone(&v1alpha1.CaptureSpec{Limit: &limit})
		if (len(errs) == 0) != (want == "") || len(errs) > 0 && (errs[0].Field != "spec.limit" || !strings.Contains(errs[0].Detail, want)) {
			t.Errorf("limit %s: %v; want %q", text, errs, want)
		}
	}
}

// largestNetwork is a RadioNetwork of an experiment whose spec is at all limits.
func largestNetwork(t *testing.T) *v1alpha1.RadioNetwork {
	t.Helper()
	in := quickstart(t)
	in.Experiment.Name = strings.Repeat("e", 40)
	spec := &in.Experiment.Spec
	spec.Networks = []v1alpha1.Network{{Name: "twelve-chars", Subnet: "10.0.0.0/8", Link: &v1alpha1.LinkModel{}}}
	spec.Nodes = []v1alpha1.Node{{Name: "sixteen-chars-00", Group: strings.Repeat("g", 24), Count: ptr.To(int32(1000)), NEM: ptr.To(int32(60000)), Networks: []string{"twelve-chars"}}}
	model := v1alpha1.GilbertElliott{GoodToBad: "12.123456789%", BadToGood: "12.123456789%", LossInBad: "12.123456789%", LossInGood: "12.123456789%"}
	full := v1alpha1.RadioChange{Network: "twelve-chars", From: strings.Repeat("g", 24), To: strings.Repeat("g", 24), Link: &v1alpha1.LinkPatch{
		Rate: ptr.To(v1alpha1.DataRate(strings.Repeat("9", 29) + "bit")), Delay: ptr.To(v1alpha1.Duration(strings.Repeat("9", 30) + "ms")),
		Jitter: ptr.To(v1alpha1.Duration(strings.Repeat("9", 30) + "ms")), GilbertElliott: &model, Duplicate: ptr.To(v1alpha1.Percent("12.123456789%")),
		Limit: ptr.To(int32(1000000)), LimitBytes: ptr.To(int64(4294967296)), Reorder: ptr.To(false), JitterDistribution: ptr.To(v1alpha1.JitterUniform),
	}}
	spec.Timeline = nil
	for range 40 {
		entry := v1alpha1.TimelineEntry{At: "99999h"}
		for range 8 {
			entry.Set = append(entry.Set, full)
		}
		spec.Timeline = append(spec.Timeline, entry)
	}
	for i := range 64 {
		spec.Networks[0].Links = append(spec.Networks[0].Links, v1alpha1.GroupLink{From: fmt.Sprintf("%024d", i), To: full.To, LinkModel: v1alpha1.LinkModel{
			Rate: full.Link.Rate, Delay: *full.Link.Delay, Jitter: *full.Link.Jitter, GilbertElliott: &model, Duplicate: "12.123456789%", Limit: 1000000, LimitBytes: full.Link.LimitBytes}})
	}
	expanded, errs := topology.Expand(spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	in.Topology = expanded
	pods := map[string]types.UID{}
	for _, node := range expanded.Nodes {
		pods[node.Name] = "11111111-2222-3333-4444-555555555555"
	}
	return RadioNetworks(in, nil, pods)[0]
}

func TestTheLargestSpecLeavesRoomForManualChangesAndThenNoMoreFit(t *testing.T) {
	spec := largestNetwork(t).Spec
	if !Fits(&spec) {
		t.Fatal("an experiment's own spec does not fit")
	}
	full, made := spec.Changes[0], len(spec.Changes)
	for Fits(&spec) {
		for range 16 {
			spec.Changes = append(spec.Changes, full)
		}
	}
	t.Logf("%d of the largest changes fit beside %d of the timeline and 1000 members", len(spec.Changes)-made-16, made)
	if len(spec.Changes)-made < 160 {
		t.Error("not even ten LiveChanges of 16 changes fit")
	}
}
