package server

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
)

// liveRun is a run with a publisher and a subscriber, whose logs have four messages, of which three were sent and two arrived.
func liveRun(t *testing.T, now func() time.Time) *run {
	t.Helper()
	store, err := archive.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	runs, err := openRegistry(store, 0, now)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runs.ensure(archive.Key{Namespace: "team-nor", Name: "bft", UID: "u-1"})
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Unix(1_700_001_000, 0)
	plan := runapi.Plan{Namespace: "team-nor", Name: "bft", UID: "u-1", T0: &t0, Phase: "Running",
		ArmedVersion: 1, Armed: []runapi.Action{{ID: "a", AtNanoseconds: 5e9, Verb: runapi.VerbStart, Targets: []runapi.Target{{Node: "veh", App: "bft"}}},
			{ID: "b", AtNanoseconds: 5.9e9, Verb: runapi.VerbStart, Targets: []runapi.Target{{Node: "hq", App: "bft"}}}},
		Nodes: []runapi.PlannedNode{
			{Name: "veh", Group: "veh", Apps: []runapi.PlannedApp{{Name: "bft", Instances: []string{"veh/bft"}}}},
			{Name: "hq", Group: "hq", Apps: []runapi.PlannedApp{{Name: "picture", Instances: []string{"hq/picture"}}}},
		},
		Streams: &runapi.Streams{Rows: []runapi.PlannedStream{{Publishers: []string{"veh/bft"}, Topic: "/bft", Heard: []runapi.Heard{{}}}}, Audiences: [][]string{{"hq/picture"}}}}
	if err := r.putPlan(plan); err != nil {
		t.Fatal(err)
	}
	r.touch()
	archiveLines(t, r, "logs/veh/bft/messages-1.jsonl", `{"ts":1700001001000000000,"instance":"veh/bft","status":"sent","id":"m1","bytes":100}`,
		`{"ts":1700001002000000000,"instance":"veh/bft","status":"sent","id":"m2","bytes":100}`, `{"ts":1700001003000000000,"instance":"veh/bft","status":"sent","id":"m3","bytes":100}`,
		`{"ts":1700001004000000000,"instance":"veh/bft","status":"triggered","id":"m4","bytes":100}`)
	archiveLines(t, r, "logs/hq/picture/messages-1.jsonl", `{"ts":1700001001100000000,"instance":"hq/picture","status":"received","id":"m1","topic":"/bft"}`,
		`{"ts":1700001002100000000,"instance":"hq/picture","status":"received","id":"m2","topic":"/bft"}`)
	archiveLines(t, r, "radio/host-a.jsonl", `{"ts":1700001001000000000,"network":"vhf","positions":{"veh":[59.5,10.25,120]}}`)
	return r
}

func archiveLines(t *testing.T, r *run, path string, lines ...string) {
	t.Helper()
	if _, err := r.files.Append(path, 0, []byte(strings.Join(lines, "\n")+"\n")); err != nil {
		t.Fatal(err)
	}
}

func gathered(t *testing.T, r *run, now func() time.Time) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&liveMetrics{runs: func() []*run { return []*run{r} }, now: now})
	return registry
}

const liveText = `
# HELP vignette_experiment_deliveries_expected Deliveries expected of the messages sent so far: each message once per other instance that subscribes to it.
# TYPE vignette_experiment_deliveries_expected gauge
vignette_experiment_deliveries_expected{experiment="bft",group="all",namespace="team-nor",uid="u-1"} 3
vignette_experiment_deliveries_expected{experiment="bft",group="cross",namespace="team-nor",uid="u-1"} 3
vignette_experiment_deliveries_expected{experiment="bft",group="radio",namespace="team-nor",uid="u-1"} 3
vignette_experiment_deliveries_expected{experiment="bft",group="veh",namespace="team-nor",uid="u-1"} 3
# HELP vignette_experiment_deliveries_offered Deliveries to expect if every message triggered so far had been sent.
# TYPE vignette_experiment_deliveries_offered gauge
vignette_experiment_deliveries_offered{experiment="bft",group="all",namespace="team-nor",uid="u-1"} 4
vignette_experiment_deliveries_offered{experiment="bft",group="cross",namespace="team-nor",uid="u-1"} 4
vignette_experiment_deliveries_offered{experiment="bft",group="radio",namespace="team-nor",uid="u-1"} 4
vignette_experiment_deliveries_offered{experiment="bft",group="veh",namespace="team-nor",uid="u-1"} 4
# HELP vignette_experiment_event_time_seconds Time of an event of a run, Unix seconds: T0, starts and stops of apps, changes by hand, incidents, the end of the drain.
# TYPE vignette_experiment_event_time_seconds gauge
vignette_experiment_event_time_seconds{event="T0",experiment="bft",namespace="team-nor",uid="u-1"} 1.700001e+09
vignette_experiment_event_time_seconds{event="start bft",experiment="bft",namespace="team-nor",uid="u-1"} 1.700001005e+09
# HELP vignette_experiment_headline 1 for the headline group: radio, or all if no delivery goes to another node.
# TYPE vignette_experiment_headline gauge
vignette_experiment_headline{experiment="bft",group="radio",namespace="team-nor",uid="u-1"} 1
# HELP vignette_experiment_messages_sent_total Messages sent, each once.
# TYPE vignette_experiment_messages_sent_total counter
vignette_experiment_messages_sent_total{experiment="bft",namespace="team-nor",uid="u-1"} 3
# HELP vignette_experiment_messages_triggered_total Messages that apps wanted to send, each once.
# TYPE vignette_experiment_messages_triggered_total counter
vignette_experiment_messages_triggered_total{experiment="bft",namespace="team-nor",uid="u-1"} 4
# HELP vignette_experiment_node_latitude_degrees Latitude of a node, WGS 84.
# TYPE vignette_experiment_node_latitude_degrees gauge
vignette_experiment_node_latitude_degrees{experiment="bft",namespace="team-nor",node="veh",uid="u-1"} 59.5
# HELP vignette_experiment_receiver_deliveries_received Deliveries that arrived at a node.
# TYPE vignette_experiment_receiver_deliveries_received gauge
vignette_experiment_receiver_deliveries_received{experiment="bft",namespace="team-nor",node="hq",uid="u-1"} 2
# HELP vignette_experiment_sender_content_bytes_total Bytes of the content of the messages that an app on a node sent.
# TYPE vignette_experiment_sender_content_bytes_total counter
vignette_experiment_sender_content_bytes_total{app="bft",experiment="bft",namespace="team-nor",node="veh",uid="u-1"} 300
`

func TestARunHasMetricsOfItsDeliveriesWhileItGoesOn(t *testing.T) {
	now := time.Unix(1_700_002_000, 0)
	clock := func() time.Time { return now }
	registry := gathered(t, liveRun(t, clock), clock)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(liveText), "vignette_experiment_deliveries_expected", "vignette_experiment_deliveries_offered", "vignette_experiment_event_time_seconds",
		"vignette_experiment_headline", "vignette_experiment_messages_sent_total", "vignette_experiment_messages_triggered_total", "vignette_experiment_node_latitude_degrees", "vignette_experiment_receiver_deliveries_received",
		"vignette_experiment_sender_content_bytes_total"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, problems: %v", err, problems)
	}
}

func TestMetricsOfAnInactiveRunEnd(t *testing.T) {
	now := time.Unix(1_700_002_000, 0)
	clock := func() time.Time { return now }
	r := liveRun(t, clock)
	registry := gathered(t, r, clock)
	now = now.Add(liveMetricsLifetime + time.Second)
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 0 {
		t.Errorf("%d series, %v; want none of a run that nothing happens to", n, err)
	}
	r.touch()
	if n, err := testutil.GatherAndCount(registry); err != nil || n == 0 {
		t.Errorf("%d series, %v; want some: something happened", n, err)
	}
	r.tally.forgetLive()
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 0 {
		t.Errorf("%d series, %v; want none of a run that is forgotten", n, err)
	}
}

func TestASealedRunHasNoLiveMetricsAfterARestart(t *testing.T) {
	now := time.Unix(1_700_002_000, 0)
	clock := func() time.Time { return now }
	r := liveRun(t, clock)
	if err := r.seal(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(gathered(t, r, clock)); err != nil || n == 0 {
		t.Errorf("%d series, %v; want the last figures for a while", n, err)
	}
	again, err := loadRun(r.files, clock)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(gathered(t, again, clock)); err != nil || n != 0 {
		t.Errorf("%d series, %v; want none after a restart", n, err)
	}
}

func TestAnActionIsAnEventFromItsTimeOn(t *testing.T) {
	t0, bft := time.Unix(1_700_001_000, 0), []runapi.Target{{Node: "veh", App: "bft"}}
	plan := runapi.Plan{T0: &t0, Armed: []runapi.Action{
		{ID: "a", AtNanoseconds: 32e9, Verb: runapi.VerbStop, Targets: bft},
		{ID: "b", AtNanoseconds: 50e9, Verb: runapi.VerbStop, Targets: bft}}}
	for after, want := range map[time.Duration]int{0: 1, 40 * time.Second: 2, time.Minute: 3} {
		events := make(chan prometheus.Metric, 10)
		runSeries{to: events, labels: []string{"team-nor", "bft", "u-1"}}.events(plan, nil, t0.Add(after))
		if len(events) != want {
			t.Errorf("%d events %s after T0; want T0 and the stops that were due, %d", len(events), after, want)
		}
	}
}

func TestLateTimesInRadioLogsLowerTheLeastDelays(t *testing.T) {
	now := func() time.Time { return time.Unix(1_700_002_000, 0) }
	r := liveRun(t, now)
	archiveLines(t, r, "radio/host-c.jsonl", `{"ts":1700001001080000000,"fromTs":1700001001050000000,"lateSeconds":0.02}`,
		`{"ts":1700001002060000000,"slotsMissedFrom":1700001002050000000,"network":"vhf","node":"elsewhere","slots":1}`)
	families, err := gathered(t, r, now).Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if s := metric.GetSummary(); s != nil && metric.GetLabel()[1].GetValue() == "veh" {
				sums[family.GetName()] = s.GetSampleSum()
			}
		}
	}
	all, least := sums["vignette_experiment_delay_seconds"], sums["vignette_experiment_delay_least_seconds"]
	if math.Abs(all-0.2) > 1e-9 || math.Abs(least-0.16) > 1e-9 {
		t.Errorf("the delays are %g s in all, at least %g s; want 0.2 and 0.16: the first was held up for 30 ms, the second for the slot, as any node may relay", all, least)
	}
}
