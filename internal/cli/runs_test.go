package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// archivePlan is that of a run in the tests' namespace.
func archivePlan(uid string, t0 time.Time, phase v1alpha1.ExperimentPhase) runapi.Plan {
	return runapi.Plan{Namespace: "team-nor", Name: "quickstart", UID: uid, T0: &t0, Phase: phase,
		Nodes: []runapi.PlannedNode{{Name: "nor", PodUID: "pod-" + uid, Apps: []runapi.PlannedApp{{Name: "bft"}}}}}
}

// archiveOfThree has a run that goes on, one that succeeded and one that failed, of one experiment's name.
func archiveOfThree(t *testing.T) *cluster {
	t.Helper()
	a := newRealArchive(t)
	for uid, phase := range map[string]v1alpha1.ExperimentPhase{"run-1": v1alpha1.PhaseFailed, "run-2": v1alpha1.PhaseSucceeded, "run-3": v1alpha1.PhaseRunning} {
		plan := archivePlan(uid, noon.Add(time.Duration(uid[4]-'0')*time.Hour), phase)
		if uid == "run-2" {
			plan.Campaign = &runapi.PlannedCampaign{Name: "nightly", UID: "c", Round: 3, Point: "lan"}
		}
		a.run(plan, 16)
	}
	workflow := a.as("system:serviceaccount:team-nor:vignette-workflow")
	a.must(workflow.PutResult(t.Context(), "run-2", "results.json", strings.NewReader(`{"schemaVersion": 2, "verdict": {"keptUp": false}}`)))
	c := a.cluster()
	c.archive = a.as(teamAdmin)
	return c
}

func archivedUIDs(t *testing.T, c *cluster) (uids []string) {
	t.Helper()
	var out bytes.Buffer
	if err := c.listRuns(t.Context(), "", "json", &out); err != nil {
		t.Fatal(err)
	}
	var runs []runapi.RunSummary
	if err := json.Unmarshal(out.Bytes(), &runs); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for _, run := range runs {
		uids = append(uids, run.UID)
	}
	return uids
}

func TestArchivedRunsAreListedTheNewestFirst(t *testing.T) {
	c := archiveOfThree(t)
	var out bytes.Buffer
	if err := c.listRuns(t.Context(), "quickstart", "table", &out); err != nil {
		t.Fatal(err)
	}
	want := "NAME         PHASE       KEPT UP   T0                     CAMPAIGN           SIZE   UID\n" +
		"quickstart   Running     -         2026-11-20 15:00:00Z   -                  SIZE   run-3\n" +
		"quickstart   Succeeded   no        2026-11-20 14:00:00Z   nightly, round 3   SIZE   run-2\n" +
		"quickstart   Failed      -         2026-11-20 13:00:00Z   -                  SIZE   run-1\n"
	got := regexp.MustCompile(`\d+\.\d\d KiB|SIZE    `).ReplaceAllString(out.String(), "SIZE")
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := strings.Join(archivedUIDs(t, c), " "); got != "run-3 run-2 run-1" {
		t.Errorf("as JSON: %s", got)
	}
	out.Reset()
	if err := c.listRuns(t.Context(), "other", "table", &out); err != nil || out.String() != "The archive has no such runs in namespace team-nor\n" {
		t.Errorf("of an unknown name: %q, %v", out.String(), err)
	}
}

func TestADamagedRunIsListedWithWhatIsWrong(t *testing.T) {
	got := runsTable([]runapi.RunSummary{{Name: "quickstart", UID: "run-1", KeptUp: new(true), Bytes: 3 << 20, Problem: "run.json, now run.json.damaged: it is not one whole JSON object"}}, false)
	want := "NAME         PHASE   KEPT UP   T0   CAMPAIGN   SIZE       UID\n" +
		"quickstart   -       yes       -    -          3.00 MiB   run-1\n" +
		"Run run-1 has damaged records: run.json, now run.json.damaged: it is not one whole JSON object\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// asClusterAdmin stands for the API server that passes a cluster administrator's requests on.
func asClusterAdmin(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{Name: clusterAdmin}}, true, nil
}

func TestRunsOfAllNamespacesAreListedForThoseWhoMayReadThemAll(t *testing.T) {
	a := newRealArchive(t)
	for _, namespace := range []string{"team-nor", "deleted-since"} {
		plan := archivePlan("run-of-"+namespace, noon, v1alpha1.PhaseSucceeded)
		plan.Namespace = namespace
		a.run(plan, 16)
	}
	kubeconfig := kubeconfigFor(t, a.server.Aggregated(authenticator.RequestFunc(asClusterAdmin)))
	list := func(args ...string) string {
		var out bytes.Buffer
		if code := Main("test", append([]string{"vignette", "runs", "list", "--kubeconfig", kubeconfig}, args...), strings.NewReader(""), &out, &out); code != 0 {
			t.Errorf("%q: exit code %d", args, code)
		}
		return out.String()
	}
	all := list("-n", "team-nor", "-A")
	if !strings.HasPrefix(all, "NAMESPACE       NAME ") || !strings.Contains(all, "\nteam-nor        quickstart ") || !strings.Contains(all, "\ndeleted-since   quickstart ") {
		t.Errorf("%s\nwant the runs of both namespaces", all)
	}
	if got := list("-n", "team-nor"); !strings.Contains(got, "run-of-team-nor") || strings.Contains(got, "deleted-since") {
		t.Errorf("%s\nwant the runs of team-nor alone", got)
	}
	if got := list("other", "-A"); got != "The archive has no such runs in any namespace\n" {
		t.Errorf("of an unknown name: %q", got)
	}
}

func TestWhoMayNotReadAllNamespacesIsToldToNameOne(t *testing.T) {
	kubeconfig := kubeconfigFor(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind": "Status", "message": "anna cannot get archives/proxy at the cluster scope"}`)
	}))
	var out bytes.Buffer
	code := Main("test", []string{"vignette", "runs", "list", "-A", "--kubeconfig", kubeconfig}, strings.NewReader(""), &out, &out)
	want := "anna cannot get archives/proxy at the cluster scope: --all-namespaces needs the role vignette-viewer in all namespaces; -n lists the runs of one"
	if code != exitFailure || !strings.Contains(out.String(), want) {
		t.Errorf("exit code %d, %s\nwant %s", code, out.String(), want)
	}
}

func TestADeletionOfRunsIsShownBeforeItIsConfirmed(t *testing.T) {
	c := archiveOfThree(t)
	var out bytes.Buffer
	err := c.deleteRuns(t.Context(), "quickstart", []string{"run-2"}, false, &out)
	if err == nil || !strings.Contains(err.Error(), "nothing was deleted: --yes deletes these runs") {
		t.Errorf("%v; want how to confirm", err)
	}
	if !strings.Contains(out.String(), "run-2") || strings.Contains(out.String(), "run-1") {
		t.Errorf("%s; want the chosen run alone", out.String())
	}
	if got := len(archivedUIDs(t, c)); got != 3 {
		t.Errorf("%d runs are left of 3", got)
	}
}

func TestRunsOfANameAreDeletedButForOneThatGoesOn(t *testing.T) {
	c := archiveOfThree(t)
	var out bytes.Buffer
	err := c.deleteRuns(t.Context(), "quickstart", nil, true, &out)
	if err == nil || err.Error() != "run run-3 goes on: stop experiment quickstart first, or delete it" {
		t.Errorf("%v; want the run that goes on named", err)
	}
	if want := "run run-2 of quickstart deleted\nrun run-1 of quickstart deleted\n"; out.String() != want {
		t.Errorf("%q; want %q", out.String(), want)
	}
	if got := strings.Join(archivedUIDs(t, c), " "); got != "run-3" {
		t.Errorf("left: %s; want the run that goes on", got)
	}
}

func TestRunsThatMayNotBeDeletedSayWhatIsMissing(t *testing.T) {
	c := archiveOfThree(t)
	for name, want := range map[string]string{
		"quickstart --uid run-9": "--uid run-9 is no run of quickstart in namespace team-nor: want one of run-3, run-2, run-1",
		"other":                  "the archive has no run of other in namespace team-nor: vignette runs list shows those that it has",
	} {
		name, uid, _ := strings.Cut(name, " --uid ")
		var uids []string
		if uid != "" {
			uids = []string{"run-1", uid}
		}
		var out bytes.Buffer
		if err := c.deleteRuns(t.Context(), name, uids, true, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
	var out bytes.Buffer
	a := newRealArchive(t)
	a.run(archivePlan("run-1", noon, v1alpha1.PhaseSucceeded), 16)
	c = a.cluster()
	c.archive = a.as("system:serviceaccount:team-nor:vignette-workflow") // it may read
	err := c.deleteRuns(t.Context(), "quickstart", nil, true, &out)
	if err == nil || !strings.HasSuffix(err.Error(), "deleting runs needs the role vignette-admin in the namespace (docs/how-to/share-a-cluster.md)") {
		t.Errorf("by a reader: %v; want the role that is needed", err)
	}
	if got := len(archivedUIDs(t, c)); got != 1 {
		t.Errorf("%d runs are left of 1", got)
	}
}

func TestAnEmptyNameOrUIDDoesNotStandForEveryRun(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"runs", "delete", "", "--yes"}, "vignette runs delete needs the NAME of an experiment, and the given one is empty"},
		{[]string{"runs", "delete", "quickstart", "--uid", "", "--yes"}, "--uid is empty: want the UID of a run"},
		{[]string{"runs", "delete", "quickstart", "--uid", "run-1,", "--yes"}, "--uid is empty: want the UID of a run"},
		{[]string{"results", ""}, "vignette results needs the NAME of an experiment, and the given one is empty"},
		{[]string{"compare", "lan", ""}, "one of the NAMEs is empty: want that of an experiment"},
	} {
		if code, _, errs := vignette(append(c.arguments, "--kubeconfig", "/dev/null")...); code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("vignette %q: %d, %q; want %s", c.arguments, code, errs, c.want)
		}
	}
}
