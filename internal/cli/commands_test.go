package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"k8s.io/apimachinery/pkg/runtime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/kstatus"
)

// archive answers like the platform's server.
type archive struct {
	runs  []runapi.RunSummary
	state runapi.State
	files map[string]string
}

func (a archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) } // a client that is gone needs no answer
	switch {
	case r.URL.Path == "/v1/runs":
		answer(a.runs)
	case r.URL.Path == "/v1/runs/5f0c":
		answer(a.state)
	case r.URL.Path == "/v1/runs/5f0c/files":
		manifest := runapi.Manifest{UID: "5f0c"}
		for path := range a.files {
			manifest.Files = append(manifest.Files, runapi.ManifestFile{Path: path})
		}
		answer(manifest)
	default:
		if content, ok := a.files[strings.TrimPrefix(r.URL.Path, "/v1/runs/5f0c/files/")]; ok {
			_, _ = w.Write([]byte(content))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		answer(runapi.Problem{Error: "no such file"})
	}
}

func testCluster(t *testing.T, a archive, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	kube := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Experiment{}).WithObjects(objects...).Build()
	return &cluster{namespace: "team-nor", kube: kube, archive: runclient.New(server.URL, server.Client(), nil)}
}

func analysed(t *testing.T) archive {
	t.Helper()
	text, err := json.Marshal(wholeResults())
	if err != nil {
		t.Fatal(err)
	}
	return archive{
		runs: []runapi.RunSummary{{Namespace: "team-nor", Name: "quickstart", UID: "5f0c"}, {UID: "0ld"}},
		files: map[string]string{"results/results.json": string(text), "results/groups.csv": "group,sent\nall,240\n",
			"results/deliveries.csv": "id\n", "logs/nor/bft/messages-1.jsonl": "{}\n"},
	}
}

func TestResultsOfADeletedExperimentComeFromTheArchive(t *testing.T) {
	c := testCluster(t, analysed(t))
	for form, want := range map[string]string{"table": "median", "json": `"schemaVersion":2`, "csv": "all,240"} {
		var out bytes.Buffer
		if err := c.results(t.Context(), "quickstart", resultsOptions{output: form, table: "groups"}, &out, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("-o %s: %s; want %s in it", form, out.String(), want)
		}
	}
}

func TestEachCSVFileOfARunIsATable(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| (`results/[^|]*\\.csv`[^|]*) \\|").FindAllStringSubmatch(readText(t, "../../docs/reference/results.md"), -1)
	var tables []string
	for _, row := range rows {
		for _, name := range regexp.MustCompile("`(?:results/)?([a-z-]+)(?:\\.csv)?`").FindAllStringSubmatch(row[1], -1) {
			tables = append(tables, name[1])
		}
	}
	if diff := cmp.Diff(tables, csvTables, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("files of a run (-) and tables (+):\n%s", diff)
	}
}

func TestWithoutResultsTheErrorSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		archive archive
		uid     string
		want    string
	}{
		"no run":    {archive{}, "", "the archive has no run of quickstart in namespace team-nor"},
		"wrong uid": {analysed(t), "nope", "want one of 5f0c, 0ld"},
		"not yet":   {archive{runs: analysed(t).runs, state: runapi.State{Plan: runapi.Plan{Phase: "Running", Spec: v1alpha1.ExperimentSpec{Duration: "1m"}}}}, "", "has no results yet, it is Running"},
		"live":      {archive{runs: analysed(t).runs, state: runapi.State{Plan: runapi.Plan{Phase: "Running"}}}, "", "vignette stop -n team-nor quickstart ends and analyses it"},
		"an older table": {archive{runs: analysed(t).runs, state: runapi.State{Plan: runapi.Plan{Phase: "Succeeded"}, Results: &runapi.Results{}}}, "",
			"run 5f0c was analysed without this table, by an older platform: vignette results -n team-nor quickstart --uid 5f0c --files lists what it has"},
		"failed runs": {archive{runs: analysed(t).runs, state: runapi.State{Plan: runapi.Plan{Phase: "Failed", Message: "bad image"}}}, "", "failed before it was analysed: bad image; its logs: vignette results -n team-nor quickstart --uid 5f0c --download"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := testCluster(t, c.archive).results(t.Context(), "quickstart", resultsOptions{output: "table", uid: c.uid}, &out, &out)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want %s", err, c.want)
			}
		})
	}
}

func watched(ctx context.Context, t *testing.T, e *v1alpha1.Experiment) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := testCluster(t, archive{}, e).watch(ctx, e, newView(&out))
	return out.String(), err
}

func TestWatchEndsWithTheExperiment(t *testing.T) {
	out, err := watched(t.Context(), t, finished())
	if err != nil || !strings.Contains(out, "first Succeeded: 1680 of 1680 offered deliveries arrived (100.00 %), median delay 1.40 ms; 3 gaps") {
		t.Errorf("error %v, output:\n%s", err, out)
	}
}

func TestWatchFailsIfTheExperimentDoes(t *testing.T) {
	e := finished()
	e.Status.Phase, e.Status.Message = v1alpha1.PhaseFailed, "node prt: image not found"
	out, err := watched(t.Context(), t, e)
	if err != exit(exitFailure) || !strings.Contains(out, "first Failed: node prt: image not found") {
		t.Errorf("error %v, output:\n%s", err, out)
	}
}

func TestLogsArePromisedOnlyOfAnExperimentThatRan(t *testing.T) {
	const kept, never = "Its logs are kept: vignette results -n team-nor first --download", "It never ran, so that it has neither logs nor results"
	for want, started := range map[string]*metav1.Time{kept: new(metav1.NewTime(noon)), never: nil} {
		other, e := kept, finished()
		if want == kept {
			other = never
		}
		e.Namespace, e.Status.Phase, e.Status.Message, e.Status.StartTime = "team-nor", v1alpha1.PhaseFailed, "stopped", started
		if out, err := watched(t.Context(), t, e); err != exit(exitFailure) || !strings.Contains(out, want) || strings.Contains(out, other) {
			t.Errorf("run --watch: error %v, output:\n%s\nwant %s", err, out, want)
		}
		w := (&cluster{}).watchedExperiment(e)
		if _, words, err := w.end(); err != exit(exitFailure) || !strings.Contains(words, want) || strings.Contains(words, other) {
			t.Errorf("status --watch: error %v, %s\nwant %s", err, words, want)
		}
	}
}

func TestInterruptDetachesAndTheExperimentGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err := watched(ctx, t, running())
	if err != exit(exitDetached) || !strings.Contains(out, "Detached: experiment quickstart continues") {
		t.Errorf("error %v, output:\n%s", err, out)
	}
}

func TestWatchReportsADeletedExperiment(t *testing.T) {
	var out bytes.Buffer
	err := testCluster(t, archive{}).watch(t.Context(), running(), newView(&out))
	if err == nil || !strings.Contains(err.Error(), "was deleted while it ran") {
		t.Errorf("error %v; want that it was deleted", err)
	}
}

func TestRunRefusesAMistakeBeforeItSpeaksToACluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata: {name: a}\nspec: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := Main("test", []string{"vignette", "run", "--kubeconfig", "/nowhere", file}, strings.NewReader(""), &out, &errs)
	if code != exitFailure || !strings.Contains(errs.String(), "bad.yaml:4: spec") || strings.Contains(errs.String(), "nowhere") {
		t.Errorf("exit code %d, errors:\n%s", code, errs.String())
	}
}

// hasNone is a cluster without any object.
func hasNone(validate.Awaited) bool { return false }

func TestWhatTheClusterHasIsNotMissing(t *testing.T) {
	c := testCluster(t, archive{}, &v1alpha1.Scenario{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "convoy"}},
		&v1alpha1.Waveform{ObjectMeta: metav1.ObjectMeta{Name: "hf-own"}})
	text := strings.NewReplacer("SCENARIO", "convoy", "WAVEFORM", "hf-own")
	const experiment = `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: e}
spec:
  duration: 10s
  scenario: {ref: SCENARIO}
  networks: [{name: hf, waveform: WAVEFORM, subnet: 198.18.0.0/24}]
  apps: [{name: hub, mosquitto: {}}]
  nodes: [{name: a, platform: "1", networks: [hf], apps: [hub]}]
`
	said := func(text string) string {
		var complaints bytes.Buffer
		if _, err := validateFile("e.yaml", []byte(text), &complaints, func(o validate.Awaited) bool { return c.has(t.Context(), o) }); err != nil {
			t.Fatalf("%v: %s", err, complaints.String())
		}
		return complaints.String()
	}
	if got := said(text.Replace(experiment)); got != "" {
		t.Errorf("of objects that the cluster has it says %q", got)
	}
	got := said(strings.NewReplacer("SCENARIO", "convoi", "WAVEFORM", "hf-our").Replace(experiment))
	if !strings.Contains(got, "Scenario convoi is not among these objects") || !strings.Contains(got, "hf-our is not in the library") {
		t.Errorf("of objects that the cluster lacks it says %q", got)
	}
}

func TestAListOfANamespaceThatDoesNotExistSaysSo(t *testing.T) {
	for namespace, want := range map[string]string{"team-nor": "", "typo": "there is no namespace typo"} {
		c := &cluster{namespace: namespace, kube: fake.NewClientBuilder().WithScheme(testkube.Scheme()).
			WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-nor"}}).Build()}
		err := c.list(t.Context(), io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("of %s: %v; want %q", namespace, err, want)
		}
	}
}

func TestARunIsANewObject(t *testing.T) {
	c := testCluster(t, archive{})
	text, err := os.ReadFile(filepath.Join("..", "..", "scenarios", "quickstart", "experiment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	submit := func() error {
		objects, err := validateFile("experiment.yaml", text, os.Stderr, hasNone)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.submit(t.Context(), objects, io.Discard)
		return err
	}
	if err := submit(); err != nil {
		t.Fatal(err)
	}
	if err := submit(); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second run of one name: %v; want that it exists already", err)
	}
}

func TestRunNamesWhatItCreatedBeforeARefusal(t *testing.T) {
	c := testCluster(t, archive{})
	text, err := os.ReadFile(filepath.Join("..", "..", "scenarios", "quickstart", "experiment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := validateFile("experiment.yaml", text, os.Stderr, hasNone)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	again := objects[0].DeepCopy()
	if _, err := c.submit(t.Context(), append(objects, again), &out); err == nil || out.String() != "experiment team-nor/quickstart created\n" {
		t.Errorf("%q, %v; want the first experiment named and the second refused", out.String(), err)
	}
}

func TestAsAKubectlPluginItNamesItselfSo(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main("1.2.3", []string{"/usr/bin/kubectl-vignette", "run", "--help"}, strings.NewReader(""), &out, &errs); code != 0 || !strings.Contains(out.String(), "kubectl vignette run FILE") {
		t.Errorf("exit code %d, help:\n%s%s", code, out.String(), errs.String())
	}
}

func TestCompletionOffersTheExperimentsOfTheNamespace(t *testing.T) {
	elsewhere := running()
	elsewhere.Namespace, elsewhere.Name = "team-prt", "quiet"
	c := testCluster(t, archive{}, running(), finished(), elsewhere)
	got := c.names(t.Context(), "qui", v1alpha1.GroupVersion.WithKind("ExperimentList"), true)
	if !slices.Equal(got, []string{"quickstart"}) {
		t.Errorf("names that begin with qui: %v; want quickstart only", got)
	}
}

func TestCompletionWithoutAClusterOffersNothing(t *testing.T) {
	var out, errs bytes.Buffer
	code := Main("test", []string{"vignette", "__complete", "--kubeconfig", "/nowhere", "results", ""}, strings.NewReader(""), &out, &errs)
	if code != 0 || out.String() != ":4\n" {
		t.Errorf("exit code %d, completions %q; want none and no files", code, out.String())
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(closed, []byte(`{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: a, context: {cluster: a}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no name":         {[]string{"stop"}, "vignette stop needs the NAME of an experiment"},
		"two names":       {[]string{"results", "a", "b"}, `"b" is too much`},
		"no file":         {[]string{"validate"}, "needs at least one FILE"},
		"no kubeconfig":   {[]string{"status", "--kubeconfig", empty}, "there is no kubeconfig, or it is empty (set KUBECONFIG"},
		"nobody listens":  {[]string{"status", "--kubeconfig", closed}, "cannot reach the cluster"},
		"no results then": {[]string{"results", "a", "--kubeconfig", closed}, "cannot reach the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Main("test", append([]string{"vignette"}, c.args...), strings.NewReader(""), &out, &errs)
			if code != exitFailure || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit code %d, errors %q; want %s", code, errs.String(), c.want)
			}
		})
	}
}

func TestHeadlineCountsWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		summary v1alpha1.ResultsSummary
		want    string
	}{
		{v1alpha1.ResultsSummary{Sent: 3, Expected: 6, Received: 6, Gaps: 1}, ": 6 of 6 offered deliveries arrived; 1 gap"},
		{v1alpha1.ResultsSummary{Triggered: 31, Offered: 31, DeliveredPercent: "0", Warnings: 2}, ": 0 of 31 offered deliveries arrived (0 %), 31 never sent; 2 WARNINGs"},
		{v1alpha1.ResultsSummary{Sent: 14}, ": 14 messages sent, no delivery offered, as nothing subscribes to them"},
		{v1alpha1.ResultsSummary{Sent: 14, Warnings: 1}, ": 14 messages sent, no delivery offered; 1 WARNING"},
		{v1alpha1.ResultsSummary{}, ": 0 messages sent, no delivery offered"},
	} {
		if got := headline(&c.summary); got != c.want {
			t.Errorf("headline %q; want %q", got, c.want)
		}
	}
}

func TestElapsedTimeEndsWithTheDuration(t *testing.T) {
	e := running()
	line := progressLine(e, nil, e.Status.T0.Add(2*e.Spec.Duration.Std()), false)
	if whole := clock(e.Spec.Duration.Std()); !strings.Contains(line, whole+" / "+whole) {
		t.Errorf("line %q in the drain; want the whole duration", line)
	}
	e.Status.Phase = v1alpha1.PhaseAnalysing
	if line := progressLine(e, nil, noon, false); strings.Contains(line, " / ") {
		t.Errorf("line %q of the analysis; want no time since T0", line)
	}
}

func TestAMessageOfSeveralLinesStaysInItsPlace(t *testing.T) {
	e := finished()
	e.Status.Message = "exited with code 127: no such file\nno such file\nno such file\n"
	text := description(e, nil, noon)
	if want := "exited with code 127: no such file | no such file\nNodes ready"; !strings.Contains(text, want) {
		t.Errorf("description:\n%s\nwant %q in it", text, want)
	}
}

func TestStopPromisesResultsOnlyOfWhatHasBegun(t *testing.T) {
	for phase, want := range map[v1alpha1.ExperimentPhase]string{
		v1alpha1.PhaseQueued:       "is stopping before its start: nothing was measured, so that it will have no results\n",
		v1alpha1.PhaseProvisioning: "is stopping before its start: nothing was measured, so that it will have no results\n",
		v1alpha1.PhaseRunning:      "is stopping; results in a moment: vignette results -n team-nor quickstart\n",
	} {
		e := running()
		if e.Status.Phase = phase; phase != v1alpha1.PhaseRunning {
			e.Status.T0 = nil
		}
		var out bytes.Buffer
		if err := testCluster(t, archive{}, e).stop(t.Context(), "quickstart", &out); err != nil || out.String() != "experiment team-nor/quickstart "+want {
			t.Errorf("%s: error %v, output %q", phase, err, out.String())
		}
	}
}

func TestStatusSaysASentenceOnce(t *testing.T) {
	e := running()
	e.Status.Message = "node hq waits for its image"
	kstatus.Set(&e.Status.Conditions, kstatus.InProgress, "Running", e.Status.Message, 1, time.Now())
	for i, kind := range []string{"Other", "Another"} {
		kstatus.SetCondition(&e.Status.Conditions, metav1.Condition{Type: kind, Status: "False", Reason: "Because", Message: []string{"of this", "of this"}[i]}, time.Now())
	}
	text := description(e, nil, time.Now())
	if strings.Count(text, e.Status.Message) != 1 || strings.Count(text, "of this") != 1 || strings.Count(text, "Because") != 2 {
		t.Errorf("status says:\n%s", text)
	}
}

func TestFlagsOfRunThatDoNotFitTheFileAreRefusedBeforeAnythingIsCreated(t *testing.T) {
	text := readText(t, "../../scenarios/quickstart/experiment.yaml")
	file := filepath.Join(t.TempDir(), "experiment.yaml")
	second := strings.Replace(text, "name: quickstart", "name: second", 1)
	for want, c := range map[string]struct{ text, flags string }{
		"-n team-nor: Experiment quickstart of " + file + " has namespace: team-pol in its metadata: leave out one of the two": {
			strings.Replace(text, "name: quickstart", "name: quickstart\n  namespace: team-pol", 1), "-n team-nor"},
		"--watch follows one experiment or campaign, and " + file + " has 2: leave it out, and see vignette status": {text + "\n---\n" + second, "--watch"},
		"no cluster is configured": {strings.Replace(text, "name: quickstart", "name: quickstart\n  namespace: team-nor", 1), "-n team-nor --watch"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"run", file, "--kubeconfig", "/dev/null"}, strings.Fields(c.flags)...)
		if code, out, errs := vignette(args...); code != exitFailure || !strings.Contains(errs, want) {
			t.Errorf("vignette run %s: %d, %s%s; want %s", c.flags, code, out, errs, want)
		}
	}
}
