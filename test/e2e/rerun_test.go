//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// phaseTolerance is for the least late message of a publisher, on shared hosts. Redrawn phases would all six be within it once
// in 4000 reruns.
const phaseTolerance = 250 * time.Millisecond

// rerunPeriod is from one message of a publisher to its next.
const rerunPeriod = 2 * time.Second

func TestARunIsRunAgainAsItsRecordSays(t *testing.T) {
	t.Parallel()
	e := pair(newNamespace(t), "first").Obj()
	e.Spec.Apps[2].Instances = 6
	e.Spec.Apps[2].Publisher.Period = v1alpha1.Duration(rerunPeriod.String())
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	folder := filepath.Join(t.TempDir(), "first")
	mustVignette(t, e.Namespace, "results", "first", folder, "--download")
	if out, errs, code := vignette(t, e.Namespace, "", "rerun", folder); code != 0 {
		t.Fatalf("rerun: exit code %d\n%s%s", code, out, errs)
	} else {
		t.Log(out + errs)
	}
	again := &v1alpha1.Experiment{}
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: e.Namespace, Name: "first-rerun-1"}, again); err != nil {
		t.Fatal(err)
	}
	waitFor(t, again, finishTimeout, v1alpha1.PhaseSucceeded)
	second := filepath.Join(t.TempDir(), "second")
	mustVignette(t, e.Namespace, "results", "first-rerun-1", second, "--download")

	before, after := recordOf(t, folder), recordOf(t, second)
	if after.RerunOf == nil || after.RerunOf.UID != string(done.UID) {
		t.Errorf("the record is a rerun of %+v; want %s", after.RerunOf, done.UID)
	}
	environmentIsComplete(t, before)
	sameInputs(t, before, after)
	for _, uid := range []types.UID{done.UID, again.UID} {
		if r := resultsOf(t, uid); r.Messages.Sent == 0 || r.Messages.Lost != 0 || len(r.Hosts) == 0 || r.Hosts[0].BusyPercent <= 0 {
			t.Errorf("results of %s: %+v, hosts %+v; want every message, and how busy the host was", uid, r.Messages, r.Hosts)
		}
	}
	samePhases(t, phases(t, folder, before), phases(t, second, after))
}

func recordOf(t *testing.T, folder string) runapi.RunRecord {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := runapi.ReadRunRecord(folder, text)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// environmentIsComplete wants everything that the cluster can report.
func environmentIsComplete(t *testing.T, record runapi.RunRecord) {
	t.Helper()
	env := record.Environment
	text, _ := json.MarshalIndent(env, "", " ")
	if env == nil || env.Platform.Version == "" || env.Platform.Chart == "" || env.Platform.Operator == "" || env.Kubernetes == "" || len(env.Hosts) == 0 {
		t.Fatalf("environment %s; want versions and hosts", text)
	}
	for _, h := range env.Hosts {
		if h.Kernel == "" || h.OS == "" || h.Architecture == "" || h.CPUs == 0 || h.MemoryBytes == 0 || h.BootID == "" || h.Kubelet == "" || h.ContainerRuntime == "" || len(h.Nodes) == 0 {
			t.Errorf("host %+v; want all of it", h)
		}
	}
	images := map[string]bool{}
	for _, image := range env.Images {
		images[strings.TrimPrefix(image.Node+"/"+image.Container, "/")] = image.ID != ""
	}
	for _, name := range []string{"operator", "server", "radiod", "analyse", "hq/broker", "hq/agent", "veh/bft"} {
		if !images[name] {
			t.Errorf("the record has no image of %s: %s", name, text)
		}
	}
}

// sameInputs compares two runs, whose waveforms are named in the first and inline in the second.
func sameInputs(t *testing.T, before, after runapi.RunRecord) {
	t.Helper()
	for i := range before.Spec.Networks {
		network := &before.Spec.Networks[i]
		network.Link, network.Waveform = before.Waveforms[network.Waveform].Link, ""
	}
	if before.Spec.Seed != after.Spec.Seed || !reflect.DeepEqual(before.Spec, after.Spec) {
		t.Errorf("spec of the rerun:\n%+v\nwant\n%+v", after.Spec, before.Spec)
	}
}

// phases returns when every publisher's first message was due after T0, as its least late message says.
func phases(t *testing.T, folder string, record runapi.RunRecord) map[string]time.Duration {
	t.Helper()
	due := map[string]time.Duration{}
	for _, node := range record.Nodes {
		for _, app := range node.Apps {
			for i, instance := range app.Instances {
				if app.Publishes {
					due[instance] = firstDue(t, filepath.Join(folder, "logs", node.Name, app.Name, fmt.Sprintf("messages-%d.jsonl", i+1))).Sub(*record.T0)
				}
			}
		}
	}
	return due
}

// firstDue returns when a publisher's first message was due: each later one is due a period after that before, and none is early.
func firstDue(t *testing.T, file string) (due time.Time) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	_, err = messagelog.Read(bytes.NewReader(text), func(r messagelog.Record) {
		if r.Status != messagelog.Triggered {
			return
		}
		if first := time.Unix(0, r.TimeNanoseconds).Add(-time.Duration(number) * rerunPeriod); number == 0 || first.Before(due) {
			due = first
		}
		number++
	})
	if err != nil || number < 3 {
		t.Fatalf("%s has %d triggered messages, %v; want 3 at least", file, number, err)
	}
	return due
}

func samePhases(t *testing.T, before, after map[string]time.Duration) {
	t.Helper()
	if len(before) != 6 || len(after) != len(before) {
		t.Fatalf("publishers %v and %v; want 6", before, after)
	}
	var least, most time.Duration = time.Hour, 0
	for instance, at := range before {
		if difference := (after[instance] - at).Abs(); difference > phaseTolerance {
			t.Errorf("%s first published at %s and, in the rerun, at %s; want the same random phase", instance, at, after[instance])
		}
		least, most = min(least, at), max(most, at)
	}
	if most-least < 4*phaseTolerance {
		t.Errorf("all publishers began within %s: the phases are no random ones", most-least)
	}
	t.Logf("phases: %v and %v", before, after)
}
