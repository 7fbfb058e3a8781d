//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// analysisImage is the platform's own image with Python and bash.
func analysisImage(t *testing.T) string {
	t.Helper()
	return strings.Replace(mosquittoImage(t), "mosquitto", "analysis", 1)
}

// ownApps reads the example experiment for a namespace, with an image that every installation has.
func ownApps(t *testing.T, namespace string) *v1alpha1.Experiment {
	t.Helper()
	e := scenario(t, "own-app/experiment.yaml")
	e.Namespace = namespace
	for i := range e.Spec.Apps {
		e.Spec.Apps[i].Image = analysisImage(t)
	}
	return e
}

func ownAppPrograms(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	programs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own-app"}, Data: map[string]string{}}
	for _, name := range []string{"report.py", "heartbeat.sh"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "scenarios", "own-app", name))
		if err != nil {
			t.Fatal(err)
		}
		programs.Data[name] = string(text)
	}
	return programs
}

// archivedText returns an archived file.
func archivedText(t *testing.T, e *v1alpha1.Experiment, path string) string {
	t.Helper()
	clientset := clientsetOf(t)
	body, err := clientset.CoreV1().RESTClient().Get().AbsPath(runapi.ArchivePath(e.Namespace), "v1/runs", string(e.UID), "files", path).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func acceptedReason(e *v1alpha1.Experiment) string {
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return c.Reason
	}
	return ""
}

func TestProgramsOfOnesOwnFromAConfigMapAreMeasuredLikeThePlatforms(t *testing.T) {
	t.Parallel()
	e := ownApps(t, newNamespace(t))
	mustCreate(t, e)
	eventually(t, time.Minute, "the missing ConfigMap to be named", func() error {
		now := get(t, e)
		if reason := acceptedReason(now); reason != "ConfigMapNotFound" {
			return errorf("Accepted has reason %q: %s", reason, now.Status.Message)
		}
		return nil
	})
	programs := ownAppPrograms(t, e.Namespace)
	mustCreate(t, programs)
	waitFor(t, e, startTimeout, v1alpha1.PhaseRunning)
	programs.Data["report.py"] = "raise SystemExit('a change in the middle of a run')"
	if err := kube.Update(t.Context(), programs); err != nil {
		t.Fatal(err)
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	m := results.Messages
	// 3 units: about 40 broadcasts to 4 pictures each, and about 20 heartbeats to one watch each.
	if m.Sent < 150 || m.Lost != 0 || m.Duplicates != 0 || m.Received != m.Expected || m.Expected < 2*m.Sent {
		t.Errorf("messages: %+v; want about 180 sent and about 540 deliveries, none lost", m)
	}
	if unit := group(t, results, "unit"); unit.Messages.Sent != m.Sent {
		t.Errorf("group unit: %+v; want all %d messages, as nobody else sends", unit.Messages, m.Sent)
	}
	if cross := group(t, results, "cross"); cross.DelaySeconds == nil || cross.DelaySeconds.Min < 0.001 {
		t.Errorf("delays between nodes of different groups: %+v; want at least the link's 1 ms", cross.DelaySeconds)
	}
	if len(results.Publishers) != 6 {
		t.Errorf("%d publishers; want a reporter and a heartbeat on each of 3 units", len(results.Publishers))
	}
	for _, gap := range results.Gaps {
		if strings.Contains(gap.What, "messages") || strings.Contains(gap.What, "times") || strings.Contains(gap.What, "app ") || strings.Contains(gap.What, "received") {
			t.Errorf("gap %+v; want none of apps and their messages", gap)
		}
	}
	var record runapi.RunRecord
	archive(t, "runs/"+string(done.UID)+"/files/run.json", nil, &record)
	if got := record.ConfigMaps; len(got) != 2 || got[0].ResourceVersion == "" || got[0].ResourceVersion == programs.ResourceVersion {
		t.Errorf("ConfigMaps of the run record: %+v; want both files as they were before the change to %s", got, programs.ResourceVersion)
	}
}

func TestWhatAnAppOfOnesOwnLacksIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change          func(a *v1alpha1.App)
		reason, message string
	}{
		"no such key in the Secret": {func(a *v1alpha1.App) {
			a.Env = []v1alpha1.EnvVar{{Name: "KEY", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "own"}}}
		}, "KeyNotFound", "from key own of Secret keys, which has no such key"},
		"no such program": {func(a *v1alpha1.App) { a.Command = []string{"/no/such/program"} },
			"AppFailed", "the app's image has no such program"},
		"an interpreter that is not there": {func(a *v1alpha1.App) {
			a.Files = []v1alpha1.AppFile{{Path: "/own", Content: new("#!/usr/bin/no-such-language\n")}}
			a.Command = []string{"/own"}
		}, "AppFailed", "is not executable"},
		"a file in place of a folder": {func(a *v1alpha1.App) {
			a.Files = []v1alpha1.AppFile{{Path: "/usr", Content: new("x")}}
		}, "ContainerNotStarted", "the path of a folder in its image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := makeExperiment(newNamespace(t), "lacking").Network("wan", "198.18.9.0/24", "baseline").
				Image("own", analysisImage(t), "/bin/sleep", "60").Node("nor", "wan", "own").Obj()
			c.change(&e.Spec.Apps[0])
			mustCreate(t, &corev1.Secret{ObjectMeta: forExperiments(e.Namespace, "keys")})
			mustCreate(t, e)
			done := waitFor(t, e, finishTimeout, v1alpha1.PhaseFailed)
			ready := meta.FindStatusCondition(done.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != c.reason || !strings.Contains(done.Status.Message, c.message) {
				t.Errorf("Ready %+v, message %q; want reason %s and %q", ready, done.Status.Message, c.reason, c.message)
			}
		})
	}
}
