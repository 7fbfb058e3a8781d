package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func at(d time.Duration) *metav1.Time {
	t := metav1.NewTime(noon.Add(d))
	return &t
}

// nightly is a campaign in its third round: two brokers over two links, three repeats; of the third round a point is done, one runs, one has failed runs.
func nightly() *v1alpha1.Campaign {
	camp := &v1alpha1.Campaign{}
	camp.Name, camp.Namespace, camp.UID, camp.CreationTimestamp = "nightly", "team-nor", "c1", *at(-72 * time.Hour)
	camp.Spec = v1alpha1.CampaignSpec{Repeats: 3, Parallelism: 2,
		Schedule: &v1alpha1.Schedule{Cron: "0 2 * * *", TimeZone: "Europe/Oslo"},
		Matrix:   v1alpha1.Matrix{Axes: []v1alpha1.Axis{{Name: "broker"}, {Name: "link"}}}}
	s := &camp.Status
	s.Phase, s.Round, s.RoundStartTime, s.EstimatedCompletionTime = v1alpha1.CampaignRunning, 3, at(0), at(5*time.Hour)
	s.NextScheduleTime = at(14 * time.Hour)
	s.Counts = v1alpha1.RunCounts{Total: 12, Pending: 2, Running: 2, Succeeded: 6, Failed: 1, Skipped: 1, Summary: "8/12"}
	phases := [][]v1alpha1.RunPhase{
		{"Succeeded", "Succeeded", "Succeeded"}, {"Succeeded", "Failed", "Skipped"}, {"Succeeded", "Running", "Pending"}, {"Succeeded", "Queued", "Pending"}}
	delays := []float64{0.00142, 4.25, 0.00171, 3.1}
	for i, levels := range [][]v1alpha1.LevelName{{"mosquitto", "baseline"}, {"mosquitto", "tactical-1"}, {"vernemq", "baseline"}, {"vernemq", "tactical-1"}} {
		for repeat := range 3 {
			camp.Status.Runs = append(camp.Status.Runs, run(levels, repeat, phases[i][repeat], delays[i]))
		}
	}
	s.Rounds = []v1alpha1.RoundSummary{{Number: 2, Phase: v1alpha1.CampaignSucceeded, Runs: v1alpha1.RunCounts{Total: 12, Succeeded: 12},
		StartTime: *at(-24 * time.Hour), CompletionTime: *at(-18 * time.Hour)}}
	s.Comparison = &v1alpha1.ComparisonStatus{Path: "/v1/compare?run=a&run=b", Round: 2, Runs: 12}
	s.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Running", Message: "4 runs to go"}}
	return camp
}

func run(levels []v1alpha1.LevelName, repeat int, phase v1alpha1.RunPhase, delay float64) v1alpha1.CampaignRun {
	point := fmt.Sprintf("%s-%s", levels[0], levels[1])
	r := v1alpha1.CampaignRun{Name: fmt.Sprintf("nightly-r3-%s-%d", point, repeat+1), Point: point, Repeat: int32(repeat + 1), Seed: int64(repeat + 4),
		Levels: map[string]v1alpha1.LevelName{"broker": levels[0], "link": levels[1]}, Phase: phase}
	if phase == v1alpha1.RunPending || phase == v1alpha1.RunSkipped {
		return r
	}
	r.SpecDigest = "12ab"
	r.UID, r.StartTime = types.UID(fmt.Sprintf("uid-%s-%d", point, repeat+1)), at(time.Duration(repeat)*time.Hour)
	switch phase {
	case v1alpha1.RunSucceeded:
		r.CompletionTime = at(time.Duration(repeat)*time.Hour + 25*time.Minute)
		received := int64(9600 - 10*repeat)
		r.Results = &v1alpha1.ResultsSummary{Sent: 9600, Expected: 9600, Received: received, Lost: 9600 - received, Gaps: int32(repeat), KeptUp: ptr(repeat < 2),
			DeliveredPercent: "99.9", MedianDelay: fmt.Sprintf("%.2fms", 1000*delay*(1+float64(repeat)/20))}
		if repeat == 2 {
			r.Results.OffByAtMost = "4.2 ms of the median, 0.02 points of delivered"
		}
	case v1alpha1.RunFailed:
		r.CompletionTime, r.Message = at(time.Hour+10*time.Minute), "node prt-2: image not found"
	}
	return r
}

// finishedE4 is a campaign without a schedule that is over, and has only one run of each point.
func finishedE4() *v1alpha1.Campaign {
	camp := nightly()
	camp.Name, camp.UID, camp.Spec.Schedule, camp.Spec.Repeats = "e4", "c2", nil, 1
	s := &camp.Status
	s.Phase, s.Round, s.EstimatedCompletionTime, s.NextScheduleTime, s.RoundCompletionTime, s.Rounds = v1alpha1.CampaignSucceeded, 1, nil, nil, at(2*time.Hour), nil
	s.Counts = v1alpha1.RunCounts{Total: 2, Succeeded: 2, Summary: "2/2"}
	s.Runs = []v1alpha1.CampaignRun{s.Runs[0], s.Runs[3]}
	s.Comparison = &v1alpha1.ComparisonStatus{Round: 1, Message: "the platform compares no runs"}
	return camp
}

func TestCampaignsAreListed(t *testing.T) {
	fresh := &v1alpha1.Campaign{}
	fresh.Name, fresh.Namespace, fresh.CreationTimestamp = "fresh", "team-prt", *at(3*time.Hour - 5*time.Second)
	golden.Check(t, "campaigns.txt", campaignTable([]v1alpha1.Campaign{*nightly(), *finishedE4(), *fresh}, true, noon.Add(3*time.Hour)))
}

func TestTheStatusOfACampaignIsComplete(t *testing.T) {
	golden.Check(t, "campaign-running.txt", campaignDescription(nightly(), noon.Add(3*time.Hour)))
	golden.Check(t, "campaign-finished.txt", campaignDescription(finishedE4(), noon.Add(3*time.Hour)))
}

func TestARoundThatDoesNotBeginInTimeIsOverdue(t *testing.T) {
	camp, now := nightly(), noon.Add(15*time.Hour)
	for what, text := range map[string]string{"list": campaignTable([]v1alpha1.Campaign{*camp}, false, now), "status": campaignDescription(camp, now)} {
		if !strings.Contains(text, "overdue") || strings.Contains(text, "invalid") {
			t.Errorf("%s an hour after its next round was due:\n%s", what, text)
		}
	}
}

func TestAnAgeIsNoneWhereTheClustersClockIsAhead(t *testing.T) {
	camp := nightly()
	camp.CreationTimestamp = *at(5 * time.Second)
	if text := campaignTable([]v1alpha1.Campaign{*camp}, false, noon); !strings.HasSuffix(text, "0s\n") {
		t.Errorf("%s: want an age of 0s", text)
	}
}

// campaignArchive has results of the runs whose UIDs are keys, and the list of archived runs.
type campaignArchive struct {
	results map[string]float64
	// requests of every one of these results; nil for none.
	requests *runapi.RequestResults
	runs     []runapi.RunSummary
	// compared is the query of the last comparison.
	compared *string
	// tooMany requests for results are refused, if set.
	tooMany *atomic.Int32
}

func (a campaignArchive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	uid := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/runs/"), "/files/results/results.json")
	delay, found := a.results[uid]
	switch {
	case r.URL.Path == "/v1/runs":
		_ = json.NewEncoder(w).Encode(a.runs)
	case r.URL.Path == "/v1/compare":
		*a.compared = r.URL.RawQuery
		_, _ = w.Write([]byte("<html>"))
	case found && a.tooMany != nil && a.tooMany.Add(-1) >= 0:
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(runapi.Problem{Error: "more than 200 requests a second"})
	case found:
		_ = json.NewEncoder(w).Encode(runapi.Results{SchemaVersion: 1, UID: uid, Messages: runapi.Messages{Sent: 600, Expected: 600, Received: 597, Lost: 3},
			DelaySeconds: withMean(quantiles(delay)), Verdict: &runapi.Verdict{KeptUp: true}, Headline: "all", Groups: a.groups(delay)})
	default:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(runapi.Problem{Error: "no such run"})
	}
}

// groups has the headline group, where there are requests.
func (a campaignArchive) groups(delay float64) []runapi.GroupResult {
	if a.requests == nil {
		return nil
	}
	return []runapi.GroupResult{{Name: "all", Messages: runapi.Messages{Sent: 600, Expected: 600, Received: 597, Lost: 3}, DelaySeconds: withMean(quantiles(delay)), Requests: a.requests}}
}

func TestResultsOfACampaignHaveColumnsOfRequestsWhereThereAreSome(t *testing.T) {
	requests := &runapi.RequestResults{Triggered: 97, Receipts: 90, ReceiptPercent: 100 * 90. / 97, ResponseSeconds: withMean(quantiles(0.8))}
	results := map[string]float64{"uid-mosquitto-baseline-1": 0.0014, "uid-mosquitto-baseline-2": 0.0016}
	c := campaignCluster(t, campaignArchive{results: results, requests: requests}, nightly())
	for file, o := range map[string]campaignResultsOptions{
		"campaign-requests.txt":      {output: "table", roundOptions: roundOptions{where: []string{"link=baseline"}}},
		"campaign-requests-runs.txt": {output: "table", runs: true, roundOptions: roundOptions{where: []string{"link=baseline"}}},
		"campaign-requests.csv":      {output: "csv", roundOptions: roundOptions{where: []string{"link=baseline"}}},
	} {
		var out bytes.Buffer
		if err := c.campaignResults(t.Context(), "nightly", o, &out); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, file, out.String())
	}
}

func TestFiguresOfARoundWithMoreRunsThanRequestsASecondAreAllRead(t *testing.T) {
	results := map[string]float64{"uid-mosquitto-baseline-1": 0.0014, "uid-mosquitto-baseline-2": 0.0016, "uid-mosquitto-baseline-3": 0.0018}
	o := campaignResultsOptions{output: "csv", roundOptions: roundOptions{where: []string{"broker=mosquitto", "link=baseline"}}}
	var want, got bytes.Buffer
	if err := campaignCluster(t, campaignArchive{results: results}, nightly()).campaignResults(t.Context(), "nightly", o, &want); err != nil {
		t.Fatal(err)
	}
	var tooMany atomic.Int32
	tooMany.Store(2)
	if err := campaignCluster(t, campaignArchive{results: results, tooMany: &tooMany}, nightly()).campaignResults(t.Context(), "nightly", o, &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() || tooMany.Load() > 0 {
		t.Errorf("after refusals:\n%s\nwant\n%s", got.String(), want.String())
	}
}

func campaignCluster(t *testing.T, a campaignArchive, objects ...client.Object) *cluster {
	t.Helper()
	c := testCluster(t, archive{}, objects...)
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	c.archive = runclient.New(server.URL, server.Client(), nil)
	return c
}

func TestResultsOfACampaignHaveARowForEachPointOrRun(t *testing.T) {
	c := campaignCluster(t, campaignArchive{results: map[string]float64{"uid-mosquitto-baseline-1": 0.001423456}}, nightly(), finishedE4())
	for file, o := range map[string]campaignResultsOptions{
		"campaign-results.txt":      {output: "table"},
		"campaign-results-wide.txt": {output: "wide"},
		"campaign-runs.txt":         {output: "table", runs: true},
		"campaign-runs-wide.txt":    {output: "wide", runs: true},
		"campaign-results.csv":      {output: "csv"},
		"campaign-runs.csv":         {output: "csv", runs: true},
		"campaign-results.json":     {output: "json"},
		"campaign-where.txt":        {output: "table", roundOptions: roundOptions{where: []string{"link=tactical-1", "broker=mosquitto", "broker=vernemq"}}},
	} {
		t.Run(file, func(t *testing.T) {
			var out bytes.Buffer
			if err := c.campaignResults(t.Context(), "nightly", o, &out); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, file, out.String())
		})
	}
	var out bytes.Buffer
	if err := c.campaignResults(t.Context(), "e4", campaignResultsOptions{output: "table"}, &out); err != nil || strings.Contains(out.String(), "±") {
		t.Errorf("one run of each point: %v\n%s\nwant no interval", err, out.String())
	}
}

func TestFiguresOfFailedRunsAndOfEarlierSpecsAreNotThoseOfTheirPoint(t *testing.T) {
	camp := nightly()
	runs := camp.Status.Runs
	runs[0].SpecDigest, runs[1].SpecDigest, runs[2].SpecDigest = "before the edit", "after it", "after it"
	runs[4].Results = runs[0].Results.DeepCopy() // it failed on the way
	o := campaignResultsOptions{output: "table", roundOptions: roundOptions{where: []string{"broker=mosquitto"}}}
	c := campaignCluster(t, campaignArchive{}, camp)
	for file, output := range map[string]string{"campaign-edited.txt": "table", "campaign-edited.csv": "csv"} {
		var out bytes.Buffer
		o.output = output
		if err := c.campaignResults(t.Context(), "nightly", o, &out); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, file, out.String())
	}
}

// archivedNightly are the runs of round 2, and others that are not.
func archivedNightly() campaignArchive {
	a := campaignArchive{results: map[string]float64{}}
	add := func(uid, campaignUID string, round int64, link string, repeat int) {
		a.runs = append(a.runs, runapi.RunSummary{Namespace: "team-nor", Name: fmt.Sprintf("nightly-r%d-mosquitto-%s-%d", round, link, repeat), UID: uid, Phase: "Succeeded",
			Campaign: &runapi.PlannedCampaign{Name: "nightly", UID: campaignUID, Round: round, Point: "mosquitto-" + link, Levels: map[string]string{"broker": "mosquitto", "link": link}}})
		a.results[uid] = 0.001 * float64(len(a.runs))
	}
	add("r3", "c1", 3, "baseline", 1)
	add("r2b", "c1", 2, "tactical-1", 2)
	add("r2a", "c1", 2, "tactical-1", 1)
	add("r2c", "c1", 2, "baseline", 1)
	add("older", "c0", 2, "baseline", 1)
	a.runs = append(a.runs, runapi.RunSummary{Namespace: "team-nor", Name: "quickstart", UID: "5f0c", Phase: "Succeeded"})
	return a
}

func TestEarlierRoundsAndDeletedCampaignsAreReadFromTheArchive(t *testing.T) {
	for file, c := range map[string]struct {
		objects []client.Object
		round   int64
	}{
		"campaign-round2.txt":  {[]client.Object{nightly()}, 2},
		"campaign-deleted.txt": {nil, 0},
	} {
		t.Run(file, func(t *testing.T) {
			var out bytes.Buffer
			o := campaignResultsOptions{output: "table", runs: true, roundOptions: roundOptions{round: c.round}}
			if err := campaignCluster(t, archivedNightly(), c.objects...).campaignResults(t.Context(), "nightly", o, &out); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, file, out.String())
		})
	}
}

func TestRepeatsOfAnArchivedRoundCountByTheSpecsInTheirRecords(t *testing.T) {
	for digest, want := range map[string]string{
		"before the edit": "Left out: 1 run with an earlier spec",
		"after it":        "2 runs of a point are too few",
		"":                "Repeats without a digest of their spec in the record may have different specs",
	} {
		a := archivedNightly()
		a.runs[2].Campaign.SpecDigest = digest // repeat 1 of tactical-1
		if digest != "" {
			a.runs[1].Campaign.SpecDigest = "after it"
		}
		var out bytes.Buffer
		o := campaignResultsOptions{output: "table", roundOptions: roundOptions{round: 2}}
		if err := campaignCluster(t, a, nightly()).campaignResults(t.Context(), "nightly", o, &out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("repeats with specs %q and after it: %v\n%s\nwant %s", digest, err, out.String(), want)
		}
	}
}

func TestMissingPartsOfACampaignAreNamed(t *testing.T) {
	fresh := nightly()
	fresh.Name, fresh.Status = "fresh", v1alpha1.CampaignStatus{}
	for name, c := range map[string]struct {
		campaign string
		o        roundOptions
		want     string
	}{
		"no such campaign": {"other", roundOptions{}, "there is no campaign other in namespace team-nor: vignette campaign list"},
		"no runs yet":      {"fresh", roundOptions{}, "campaign fresh has no runs yet, it is Submitted"},
		"no such round":    {"nightly", roundOptions{round: 9}, "--round 9: neither campaign nightly nor the archive has a run of it; the newest round is 3"},
		"no such axis":     {"nightly", roundOptions{where: []string{"lnk=baseline"}}, "campaign nightly has no axis lnk: want one of broker, link"},
		"no such level":    {"nightly", roundOptions{where: []string{"link=satcom"}}, "--where link=satcom: no run has that level: want one of baseline, tactical-1"},
		"no level":         {"nightly", roundOptions{where: []string{"link"}}, `--where "link": want AXIS=LEVEL`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := campaignCluster(t, campaignArchive{}, nightly(), fresh).campaignResults(t.Context(), c.campaign, campaignResultsOptions{output: "table", roundOptions: c.o}, &out)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}

func TestTheComparisonOfACampaignTakesItsRunsWithResults(t *testing.T) {
	var query string
	c := campaignCluster(t, campaignArchive{compared: &query}, nightly(), finishedE4())
	var out, notes bytes.Buffer
	file, err := c.campaignReport(t.Context(), "nightly", campaignReportOptions{reportFile: reportFile{output: "-"}, by: "link", roundOptions: roundOptions{where: []string{"broker=mosquitto"}}}, &out, &notes)
	if err != nil || file != "" || out.String() != "<html>" || notes.String() != "4 of 6 runs have results and are compared\n" {
		t.Errorf("file %q, %v, %s, %s", file, err, out.String(), notes.String())
	}
	if want := "by=link&format=html&run=uid-mosquitto-baseline-1&run=uid-mosquitto-baseline-2&run=uid-mosquitto-baseline-3&run=uid-mosquitto-tactical-1-1"; query != want {
		t.Errorf("asked for %s; want %s", query, want)
	}
	if err := c.compare(t.Context(), nil, compareOptions{campaign: "e4", output: "csv", uids: []string{"x"}, notes: &notes}, &out); err != nil || query != "format=csv&run=x&run=uid-mosquitto-baseline-1&run=uid-mosquitto-tactical-1-1" {
		t.Errorf("%v, asked for %s; want the campaign's runs after x", err, query)
	}
	_, err = c.campaignReport(t.Context(), "nightly", campaignReportOptions{roundOptions: roundOptions{where: []string{"link=tactical-1", "broker=vernemq"}}}, &out, &notes)
	if err == nil || !strings.Contains(err.Error(), "needs at least two runs with results, and round 3 of campaign nightly has 1") {
		t.Errorf("%v; want that one run is no comparison", err)
	}
}

func TestReferenceFiguresOfPointsThatAreNotComparedAreLeftOutAndNamed(t *testing.T) {
	var query string
	c := campaignCluster(t, campaignArchive{compared: &query}, nightly())
	file := filepath.Join(t.TempDir(), "paper.csv")
	write := func(rows string) referenceFile {
		if err := os.WriteFile(file, []byte("run,metric,value\n"+rows), 0o600); err != nil {
			t.Fatal(err)
		}
		read := referenceFile{path: file}
		if err := read.read(); err != nil {
			t.Fatal(err)
		}
		return read
	}
	mosquitto := roundOptions{where: []string{"broker=mosquitto"}}
	var out, notes bytes.Buffer
	o := compareOptions{campaign: "nightly", output: "csv", roundOptions: mosquitto, notes: &notes,
		reference: write("vernemq-baseline,sent,1\nmosquitto-baseline,sent,2\nvernemq-baseline,lost,3\nmosquito-baseline,sent,4\n")}
	if err := c.compare(t.Context(), nil, o, &out); err != nil {
		t.Fatal(err)
	}
	// Rows keep their numbers, and a name that no point has is left to the server.
	asked, err := url.ParseQuery(query)
	if want := "run,metric,value\n\nmosquitto-baseline,sent,2\n\nmosquito-baseline,sent,4\n"; err != nil || asked.Get("reference") != want {
		t.Errorf("asked with %q, %v; want %q", asked.Get("reference"), err, want)
	}
	if want := "2 reference figures are left out, as no run of their points is compared: vernemq-baseline\n"; !strings.Contains(notes.String(), want) {
		t.Errorf("%s; want %s", notes.String(), want)
	}
	report := campaignReportOptions{roundOptions: mosquitto, reference: write("vernemq-baseline,sent,1\n")}
	if _, err := c.campaignReport(t.Context(), "nightly", report, &out, &notes); err == nil || !strings.Contains(err.Error(), "no figure of a point that is compared") {
		t.Errorf("%v; want that nothing of the file is left", err)
	}
}

func TestMoreRunsThanAreComparedAreChosenByLevel(t *testing.T) {
	camp := finishedE4()
	for i := range runapi.MaxCompared {
		more := camp.Status.Runs[0]
		more.Name, more.UID, more.Repeat = fmt.Sprintf("e4-%d", i), types.UID(fmt.Sprintf("u%d", i)), int32(i+2)
		camp.Status.Runs = append(camp.Status.Runs, more)
	}
	_, err := campaignCluster(t, campaignArchive{}, camp).measuredRuns(t.Context(), "e4", roundOptions{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "1002 runs with results, and a comparison has at most 1000: choose some with --where AXIS=LEVEL, of axes broker, link") {
		t.Errorf("%v; want how to choose", err)
	}
}

func TestACampaignIsSuspendedAndResumed(t *testing.T) {
	c := campaignCluster(t, campaignArchive{}, nightly())
	for _, step := range []struct {
		suspend bool
		want    string
	}{
		{false, "campaign team-nor/nightly is not suspended\n"},
		{true, "campaign team-nor/nightly is suspended: no further runs start; 2 under way go on to their end. Let it go on: vignette campaign resume -n team-nor nightly\n"},
		{true, "campaign team-nor/nightly is suspended already\n"},
		{false, "campaign team-nor/nightly goes on\n"},
	} {
		var out bytes.Buffer
		if err := c.suspend(t.Context(), "nightly", step.suspend, &out); err != nil || out.String() != step.want {
			t.Errorf("suspend %v: %v, %q; want %q", step.suspend, err, out.String(), step.want)
		}
		camp, err := c.campaign(t.Context(), "nightly")
		if err != nil || camp.Spec.Suspend != step.suspend {
			t.Errorf("after it spec.suspend is %v, %v", camp.Spec.Suspend, err)
		}
	}
}

func TestAnExperimentNamesItsCampaign(t *testing.T) {
	e := running()
	e.Labels = map[string]string{v1alpha1.LabelCampaign: "nightly", v1alpha1.LabelCampaignRound: "3", v1alpha1.LabelCampaignPoint: "mosquitto-baseline"}
	want := "Campaign      nightly, point mosquitto-baseline of round 3: vignette campaign status -n team-nor nightly\n"
	if got := description(e, nil, noon); !strings.Contains(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestRunTakesCampaigns(t *testing.T) {
	text, err := os.ReadFile("testdata/campaign.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := validateFile("campaign.yaml", text, os.Stderr, hasNone)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	c := campaignCluster(t, campaignArchive{})
	var out bytes.Buffer
	campaigns, err := c.submitCampaigns(t.Context(), objects, &out)
	if err != nil || out.String() != "campaign team-nor/try created\n" || len(campaigns) != 1 {
		t.Fatalf("%v, %s", err, out.String())
	}
	if experiments, err := c.submit(t.Context(), objects, io.Discard); err != nil || len(experiments) > 0 {
		t.Errorf("experiments of a campaign's file: %d, %v; want none, as the operator makes them", len(experiments), err)
	}
	camp, err := c.campaign(t.Context(), "try")
	if err != nil || len(camp.Spec.Matrix.Axes) != 2 {
		t.Errorf("%+v, %v", camp.Spec.Matrix, err)
	}
}
