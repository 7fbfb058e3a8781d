package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

func quantiles(median float64) *runapi.Quantiles {
	return &runapi.Quantiles{Min: median / 10, P25: median / 2, Median: median, P75: median * 2, Max: median * 20}
}

func withMean(q *runapi.Quantiles) *runapi.Quantiles {
	q.Mean, q.P95 = ptr(1.5*q.Median), ptr(8*q.Median)
	return q
}

// confidenceOf intervals that are asymmetric, as those of skewed delays are.
func confidenceOf(q *runapi.Quantiles) *runapi.Confidence {
	return &runapi.Confidence{Level: 0.95, MedianSeconds: &runapi.Interval{Low: 0.9 * q.Median, High: 1.05 * q.Median},
		MeanSeconds: &runapi.Interval{Low: 0.95 * *q.Mean, High: 1.2 * *q.Mean}}
}

func wholeResults() runapi.Results {
	return runapi.Results{
		SchemaVersion: 2, Experiment: "quickstart", Namespace: "team-nor", UID: "5f0c", Phase: "Succeeded",
		StartTime: &noon, DurationSeconds: 75, Verdict: &runapi.Verdict{KeptUp: true},
		Headline:     "radio",
		Messages:     runapi.Messages{Sent: 240, Expected: 1680, Received: 1679, Lost: 1, LostPercent: 0.0595},
		DelaySeconds: quantiles(0.1124),
		Groups: []runapi.GroupResult{
			{Name: "all", Messages: runapi.Messages{Sent: 240, Expected: 1680, Received: 1679, Lost: 1, LostPercent: 0.0595}, DelaySeconds: quantiles(0.1124)},
			{Name: "radio", Messages: runapi.Messages{Triggered: ptr(int64(250)), Sent: 240, Offered: ptr(int64(1000)), Expected: 960, Received: 959, Lost: 1},
				DelaySeconds: withMean(quantiles(0.12)), Confidence: confidenceOf(withMean(quantiles(0.12)))},
			{Name: "local", Messages: runapi.Messages{Sent: 240, Expected: 720, Received: 720}, DelaySeconds: quantiles(0.000412)},
			{Name: "cross", Messages: runapi.Messages{Sent: 240, Expected: 960000, Received: 959999, Lost: 1, LostPercent: 0.0001, Duplicates: 2}, DelaySeconds: quantiles(3.14)},
		},
		Publishers: []runapi.PublisherResult{
			{Name: "nor/bft/1", Node: "nor", Messages: runapi.Messages{Sent: 30, Expected: 210, Received: 210}, DelaySeconds: withMean(quantiles(0.0999)),
				Confidence: confidenceOf(withMean(quantiles(0.0999)))},
			{Name: "prt/bft/1", Node: "prt", Messages: runapi.Messages{Sent: 30, Expected: 210, Lost: 210, LostPercent: 100}},
		},
		Picture: &runapi.PictureResult{SampleSeconds: 1, Groups: []runapi.PictureGroup{
			{Name: "all", Pairs: 14, Samples: 1050, KnownPercent: 92.4, ErrorMetres: &runapi.PictureFigures{Median: 38.2, Mean: 91.66, P95: 412, Max: 1931.5},
				AgeSeconds: &runapi.PictureFigures{Median: 6.1, Mean: 9.8, P95: 31, Max: 64.5}},
			{Name: "prt", Pairs: 7, Samples: 525},
		}},
		Networks: []runapi.NetworkResult{{Name: "wan", BytesPerSecond: ptr(1225.4), Frames: &runapi.NetworkFrames{Sent: 1200, Received: 3577, Drops: map[string]int64{"loss": 20, "queueFull": 3}},
			Hops: &runapi.NetworkHops{Mean: ptr(1.524), Max: ptr(int64(4)), WithoutRoutePercent: 3.25}, SINRDB: &runapi.NetworkSINR{Links: 56, P5: 4.21, Median: 12.34, P95: 20.06}},
			{Name: "hf", Hops: &runapi.NetworkHops{WithoutRoutePercent: 100}}, {Name: "older", BytesPerSecond: ptr(8.0)}},
		Age:          &runapi.AgeResult{Pairs: 14, KnownPairs: 13, MeanSeconds: 6.5, MaxSeconds: 41.25},
		MessageSizes: []runapi.MessageSize{{Protocol: "mqtt", Messages: 240, MedianBytes: 1034}, {Protocol: "mqtt-sn", Messages: 31, MedianBytes: 966.5}},
		Clocks:       []runapi.ClockResult{{Node: "prt", WorstOffsetSeconds: 0.00021, WorstUncertaintySeconds: 0.00083, SetSeconds: 420, Measurements: 8}},
		Gaps:         []runapi.Gap{},
	}
}

func TestResultsAreTablesWithUnits(t *testing.T) {
	golden.Check(t, "results.txt", resultsText(wholeResults()))
}

func TestResultsTellRequestsAndPairsOfGroupsApart(t *testing.T) {
	r := wholeResults()
	r.Networks, r.Clocks, r.Publishers = nil, nil, r.Publishers[:1]
	of := func(triggered, receipts int64, failed map[string]int64, times *runapi.Quantiles) *runapi.RequestResults {
		q := &runapi.RequestResults{Triggered: triggered, Sent: triggered - 1, Receipts: receipts, ReceiptPercent: 100 * float64(receipts) / float64(triggered), Failed: failed,
			Outstanding: 1, Retransmissions: ptr(int64(12)), ResponseSeconds: times}
		if times != nil {
			q.Confidence = &runapi.RequestConfidence{Level: 0.95, MeanSeconds: &runapi.Interval{Low: *times.Mean * 0.9, High: *times.Mean * 1.3}}
		}
		return q
	}
	all := of(97, 90, map[string]int64{"timeout": 4, "refused": 1, "other": 1}, withMean(quantiles(0.8)))
	r.Requests, r.Groups[0].Requests, r.Groups[1].Requests, r.Publishers[0].Requests = all, all, all, of(2, 0, map[string]int64{"timeout": 1}, nil)
	r.Publishers[0].Requests.Retransmissions = nil // over TCP
	r.Pairs = []runapi.PairResult{
		{From: "alpha", To: "alpha", Messages: runapi.Messages{Sent: 80, Expected: 80, Received: 80}, DelaySeconds: withMean(quantiles(0.1)), Requests: of(80, 79, nil, withMean(quantiles(0.3)))},
		{From: "alpha", To: "bravo", Messages: runapi.Messages{Sent: 17, Expected: 17, Received: 12, Lost: 5}, DelaySeconds: withMean(quantiles(2))},
		{From: "bravo", To: "alpha"},
	}
	golden.Check(t, "results-requests.txt", resultsText(r))
}

func TestResultsNameLatenessAndGaps(t *testing.T) {
	r := wholeResults()
	r.Publishers, r.Networks = nil, nil
	r.Verdict = &runapi.Verdict{Late: []runapi.Late{{Node: "nor", FromSeconds: 12, ToSeconds: 13.5, What: "frame release", WorstSeconds: 0.0151}}}
	r.Warnings = []runapi.Gap{{What: "client nor/bft/1 never connected", Node: "nor", Reason: "none of its 31 triggered messages was sent"}}
	r.Notes = []runapi.Gap{{What: "CPU pressure", Reason: "not measured for 4 apps"}}
	r.Gaps = []runapi.Gap{
		{What: "log", Node: "prt", FromSeconds: ptr(31.25), Reason: "the pod was killed"},
		{What: "networks[].tcp", Reason: "not computed yet"},
	}
	golden.Check(t, "results-gaps.txt", resultsText(r))
}

func TestResultsOfNothingAreStillATable(t *testing.T) {
	golden.Check(t, "results-empty.txt", resultsText(runapi.Results{Experiment: "e", Namespace: "n", UID: "u", Phase: "Failed"}))
}

func running() *v1alpha1.Experiment {
	t0 := metav1.NewMicroTime(noon)
	e := &v1alpha1.Experiment{}
	e.Name, e.Namespace, e.UID = "quickstart", "team-nor", "5f0c"
	e.CreationTimestamp = metav1.NewTime(noon.Add(-20 * time.Second))
	e.Spec.Duration = "75s"
	e.Status.Phase, e.Status.Step, e.Status.Progress, e.Status.T0 = v1alpha1.PhaseRunning, "stop", "42%", &t0
	e.Status.StartTime = new(metav1.NewTime(noon.Add(-10 * time.Second)))
	e.Status.Nodes.Ready, e.Status.Nodes.Total, e.Status.Nodes.Summary = 2, 2, "2/2"
	e.Status.Workflow = "quickstart"
	e.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Accepted", Message: "every reference is good"}}
	return e
}

func finished() *v1alpha1.Experiment {
	e := running()
	e.Name, e.Status.Phase, e.Status.Progress = "first", v1alpha1.PhaseSucceeded, "100%"
	e.Status.Results = &v1alpha1.ResultsSummary{Sent: 240, Expected: 1680, Received: 1680, DeliveredPercent: "100.00", MedianDelay: "1.4ms", Gaps: 3}
	return e
}

func queued(condition, reason string) *v1alpha1.Experiment {
	e := running()
	e.Name, e.Status.Phase, e.Status.Progress, e.Status.Nodes.Summary = strings.ToLower(reason), v1alpha1.PhaseQueued, "", "0/2"
	e.Status.Conditions = []metav1.Condition{{Type: condition, Status: "False", Reason: reason}}
	return e
}

func TestStatusListsExperiments(t *testing.T) {
	golden.Check(t, "list.txt", listTable([]v1alpha1.Experiment{*running(), *finished(), *queued("Accepted", "WaveformNotFound"), *queued("Admitted", "NoRoom")}, true, noon.Add(40*time.Second)))
}

func TestStatusOfOneExperimentIsComplete(t *testing.T) {
	golden.Check(t, "status-running.txt", description(running(), &runapi.Counters{Sent: 120, Received: 840}, noon.Add(31*time.Second)))
	golden.Check(t, "status-finished.txt", description(finished(), nil, noon.Add(2*time.Minute)))
}

func TestTheLiveLine(t *testing.T) {
	counters := &runapi.Counters{Sent: 120, Received: 840}
	for name, c := range map[string]struct{ got, want string }{
		"terminal": {progressLine(running(), counters, noon.Add(31*time.Second), true),
			"quickstart  Running         [████████░░░░░░░░░░░░]   42%  0:31 / 1:15  nodes 2/2  sent 120  received 840"},
		"plain": {progressLine(running(), counters, noon.Add(-5*time.Second), false),
			"quickstart  Running          42%  -0:05 / 1:15  nodes 2/2  sent 120  received 840"},
		"not yet seen": {progressLine(&v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, nil, noon, false), "new  Submitted     "},
		"cut":          {truncateLine("abcdef", 4), "abc…"},
		"cut wide":     {truncateLine("部隊展開", 6), "部隊…"},
		"a mark fits":  {truncateLine("cafe\u0301", 4), "cafe\u0301"},
		"hours":        {clock(3*time.Hour + 62*time.Second), "3:01:02"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q; want %q", name, c.got, c.want)
		}
	}
}

func TestColumnsStandBelowEachOtherWhateverTheirCharactersWidths(t *testing.T) {
	// On a terminal the first text has 4 cells, the second 8.
	rows := table{left("cafe\u0301", "x"), left("部隊展開", "x"), left("plain", "x")}
	if got, want := rows.String(), "cafe\u0301       x\n部隊展開   x\nplain      x\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestFiguresHaveThreeDigitsAndAUnit(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		want    string
	}{{0, "0.00 µs"}, {0.000412, "412 µs"}, {0.00141, "1.41 ms"}, {0.1124, "112 ms"}, {1.534, "1.53 s"}, {301.2, "301 s"}, {-0.002, "-2.00 ms"}} {
		if got := seconds(c.seconds); got != c.want {
			t.Errorf("seconds(%v) = %q; want %q", c.seconds, got, c.want)
		}
	}
}

func TestTheStageOfARunIsNotTheWorkflowsStep(t *testing.T) {
	for _, c := range []struct {
		phase v1alpha1.ExperimentPhase
		step  string
		stop  bool
		want  string
	}{
		{"", "", false, "Submitted"}, {v1alpha1.PhaseQueued, "", false, "Queued"}, {v1alpha1.PhaseRunning, "", false, "Running"},
		{v1alpha1.PhaseRunning, "replay", false, "Running"}, {v1alpha1.PhaseRunning, "start", false, "Running"},
		{v1alpha1.PhaseRunning, "stop", false, "Running"}, {v1alpha1.PhaseRunning, "stop", true, "Stopping"},
		{v1alpha1.PhaseRunning, "drain", true, "Draining"}, {v1alpha1.PhaseAnalysing, "analyse", false, "Analysing"},
	} {
		e := &v1alpha1.Experiment{}
		e.Status.Phase, e.Status.Step, e.Spec.Stop = c.phase, c.step, c.stop
		if got := stage(e); got != c.want {
			t.Errorf("phase %q, step %q, stop %v reads %q; want %q", c.phase, c.step, c.stop, got, c.want)
		}
	}
}
