package metrics

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestMetricsHaveTheirNamesAndLabels(t *testing.T) {
	node := figures.Node{Node: "hq", RingDrops: 2}
	node.FramesSent, node.InFlight, node.Delay.Count = 10, 4, 3
	node.Delay.Buckets[0], node.Drops[radio.Loss] = 2, 1
	collector := Collector{func() []figures.Network {
		return []figures.Network{{Network: "vhf", Experiment: v1alpha1.ExperimentReference{Namespace: "team", Name: "exp"}, Nodes: []figures.Node{node}}}
	}}
	const labels = `experiment="exp",namespace="team",network="vhf",node="hq"`
	want := "# HELP vignette_radio_drops_total Frames dropped, by reason.\n# TYPE vignette_radio_drops_total counter\n" +
		"vignette_radio_drops_total{" + labels + `,reason="loss"} 1` + "\nvignette_radio_drops_total{" + labels + `,reason="tapRing"} 2` + "\n" +
		"# HELP vignette_radio_frames_sent_total Frames that the node handed to its radio.\n# TYPE vignette_radio_frames_sent_total counter\n" +
		"vignette_radio_frames_sent_total{" + labels + "} 10\n" +
		"# HELP vignette_radio_queue_frames Frames of the node that wait or are under way.\n# TYPE vignette_radio_queue_frames gauge\n" +
		"vignette_radio_queue_frames{" + labels + "} 4\n"
	err := testutil.CollectAndCompare(collector, bytes.NewBufferString(want), "vignette_radio_drops_total", "vignette_radio_frames_sent_total", "vignette_radio_queue_frames")
	if err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(collector); err != nil || len(problems) != 0 {
		t.Errorf("problems %v, %v", problems, err)
	}
}

// TestOverloadIsThereBeforeItHappens: of a series that begins with its first frames Prometheus sees no increase, and no alert would fire.
func TestOverloadIsThereBeforeItHappens(t *testing.T) {
	nodes := []figures.Node{{Node: "hq", Routing: &figures.Routing{}, Classes: []int{0}}, {Node: "veh"}}
	collector := Collector{func() []figures.Network { return []figures.Network{{Network: "vhf", Nodes: nodes}} }}
	want := "# HELP vignette_radio_drops_total Frames dropped, by reason.\n# TYPE vignette_radio_drops_total counter\n"
	for _, labels := range []string{`node="hq",reason="missedSlot"`, `node="hq",reason="routerSocket"`, `node="hq",reason="tapRing"`, `node="veh",reason="tapRing"`} {
		want += `vignette_radio_drops_total{experiment="",namespace="",network="vhf",` + labels + "} 0\n"
	}
	if err := testutil.CollectAndCompare(collector, bytes.NewBufferString(want), "vignette_radio_drops_total"); err != nil {
		t.Error(err)
	}
}
