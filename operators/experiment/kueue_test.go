package experiment

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

// kueueModule has the definitions of Kueue's objects.
const kueueModule = "sigs.k8s.io/kueue@v0.15.2"

func installKueue(t *testing.T, config *rest.Config) {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(strings.TrimSpace(string(cache)), kueueModule, "config/components/crd/bases")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("Kueue's definitions are not here: go mod download %s", kueueModule)
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{folder}}); err != nil {
		t.Fatal(err)
	}
}

// plainWorld is on a real API server, without caches and without a manager.
func plainWorld(t *testing.T, config *rest.Config, change func(*v1alpha1.Experiment)) *world {
	t.Helper()
	api, err := client.NewWithWatch(config, client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	e := readExperiment(t)
	w := &world{t: t, api: api, clock: clocktesting.NewFakeClock(time.Now()), key: client.ObjectKeyFromObject(e), events: record.NewFakeRecorder(1000)}
	w.server = &server{world: w, states: map[string]*runapi.State{}, real: true}
	for _, name := range []string{e.Namespace, platform} {
		w.must(api.Create(t.Context(), team(name)))
	}
	w.must(api.Create(t.Context(), ethernet()))
	w.addHost()
	w.reconciler = &Reconciler{Client: objects.UncachedReads{Client: api, Live: api}, Live: api, Runs: w.server, Recorder: w.events, Clock: w.clock, Options: testOptions()}
	w.apply(change)
	return w
}

// reconciled is the experiment once the operator writes no more.
func (w *world) reconciled() *v1alpha1.Experiment {
	w.t.Helper()
	for range 4 {
		w.clock.Step(time.Second)
		if _, err := w.reconcile(); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.experiment()
}

func (w *world) workload() *unstructured.Unstructured {
	w.t.Helper()
	kind, err := w.reconciler.parts().workloads.Kind()
	w.must(err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	w.must(w.api.List(w.t.Context(), list, client.InNamespace(w.key.Namespace)))
	if len(list.Items) != 1 {
		w.t.Fatalf("there are %d Workloads, want 1", len(list.Items))
	}
	return &list.Items[0]
}

// setWorkloadCondition sets a condition of the Workload, and its admission if it is admitted.
func (w *world) setWorkloadCondition(kind, status, message string) {
	w.t.Helper()
	workload := w.workload()
	conditions := []any{map[string]any{"type": kind, "status": status, "reason": "Said", "message": message, "lastTransitionTime": "2026-11-22T12:00:00Z"}}
	w.must(unstructured.SetNestedSlice(workload.Object, conditions, "status", "conditions"))
	if kind == "Admitted" {
		w.must(unstructured.SetNestedField(workload.Object, "cluster-queue", "status", "admission", "clusterQueue"))
		var assignments []any
		sets, _, _ := unstructured.NestedSlice(workload.Object, "spec", "podSets")
		for _, set := range sets {
			assignments = append(assignments, map[string]any{"name": set.(map[string]any)["name"]})
		}
		w.must(unstructured.SetNestedSlice(workload.Object, assignments, "status", "admission", "podSetAssignments"))
	}
	w.must(w.api.Status().Update(w.t.Context(), workload))
}

func TestWithAQueueNameKueueDecides(t *testing.T) {
	config := testkube.Start(t)
	w := plainWorld(t, config, func(e *v1alpha1.Experiment) { e.Spec.QueueName, e.Spec.Priority = "nor", 7 })
	admitted := func(e *v1alpha1.Experiment, reason, message string) {
		t.Helper()
		c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted)
		if e.Status.Phase != v1alpha1.PhaseQueued || c == nil || c.Reason != reason || !strings.Contains(c.Message, message) {
			t.Fatalf("phase %s, Admitted %+v, want %s, %q", e.Status.Phase, c, reason, message)
		}
	}
	e := w.reconciled()
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted); c == nil || c.Reason != scope.ReasonKueueMissing || !strings.Contains(c.Message, "spec.queueName") {
		t.Fatalf("without Kueue, Accepted is %+v", c)
	}
	installKueue(t, config)
	admitted(w.reconciled(), scope.ReasonWaitingForKueue, "LocalQueue nor")
	taken := w.workload()
	taken.SetOwnerReferences(nil)
	w.must(w.api.Update(t.Context(), taken))
	want := "waiting for the deletion of Workload " + taken.GetName() + ", which belongs to somebody else"
	admitted(w.reconciled(), scope.ReasonWorkloadNameTaken, want)
	if events := w.recorded(); !slices.Contains(events, "Warning WorkloadNameTaken "+want) {
		t.Errorf("events %q; want a warning, as somebody must act", events)
	}
	w.must(w.api.Delete(t.Context(), taken))
	admitted(w.reconciled(), scope.ReasonWaitingForKueue, "LocalQueue nor")
	first := w.workload()
	if priority, _, _ := unstructured.NestedInt64(first.Object, "spec", "priority"); priority != 7 {
		t.Errorf("the Workload has priority %d, want 7", priority)
	}
	count := int64(0)
	sets, _, _ := unstructured.NestedSlice(first.Object, "spec", "podSets")
	for _, set := range sets {
		count += set.(map[string]any)["count"].(int64)
	}
	if count != int64(w.experiment().Status.Nodes.Total)+1 {
		t.Errorf("the Workload asks for %d pods, want one for each of %d nodes and one for the workflow", count, w.experiment().Status.Nodes.Total)
	}
	w.edit(func(e *v1alpha1.Experiment) { e.Spec.Priority = 8 })
	admitted(w.reconciled(), scope.ReasonWaitingForKueue, "")
	if again := w.workload(); again.GetUID() == first.GetUID() {
		t.Error("an experiment that was edited keeps the Workload of what it was")
	}
	w.wantNoWorkloadUnlessAccepted()
	w.setWorkloadCondition("QuotaReserved", "False", "insufficient quota for cpu")
	admitted(w.reconciled(), scope.ReasonWaitingForKueue, "insufficient quota for cpu")
	w.setWorkloadCondition("Evicted", "True", "preempted")
	admitted(w.reconciled(), scope.ReasonWaitingForKueue, "evicted it before it started: preempted")
	inactive := w.workload()
	w.must(unstructured.SetNestedField(inactive.Object, false, "spec", "active"))
	w.must(w.api.Update(t.Context(), inactive))
	if admitted(w.reconciled(), scope.ReasonKueueInactive, "is not active"); !meta.IsStatusConditionTrue(w.experiment().Status.Conditions, v1alpha1.ConditionStalled) {
		t.Error("a deactivated one is not stalled, though only a person can help")
	}
	inactive = w.workload()
	w.must(unstructured.SetNestedField(inactive.Object, true, "spec", "active"))
	w.must(w.api.Update(t.Context(), inactive))
	w.setWorkloadCondition("Admitted", "True", "admitted")
	w.clock.Step(time.Second)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseProvisioning {
		t.Fatalf("phase %s once Kueue has admitted it: %s", e.Status.Phase, e.Status.Message)
	}
	w.setWorkloadCondition("Evicted", "True", "preempted by a larger one")
	for range 3 { // its logs are saved, its nodes deleted, and then its Workload
		w.reconciled()
	}
	e = w.experiment()
	if c := meta.FindStatusCondition(e.Status.Conditions, scope.ConditionFailure); e.Status.Phase != v1alpha1.PhaseFailed || c.Reason != scope.ReasonEvicted || !strings.Contains(c.Message, "preempted by a larger one") {
		t.Errorf("phase %s, Failure %+v once Kueue has evicted it", e.Status.Phase, c)
	}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(inactive), inactive); client.IgnoreNotFound(err) != nil || err == nil && inactive.GetDeletionTimestamp().IsZero() {
		t.Errorf("the Workload stays when the run is over: %v", err)
	}
}

// wantNoWorkloadUnlessAccepted takes the experiment's waveform away for a while.
func (w *world) wantNoWorkloadUnlessAccepted() {
	w.t.Helper()
	first := w.workload()
	w.must(w.api.Delete(w.t.Context(), ethernet()))
	if e := w.reconciled(); !notAccepted(e) {
		w.t.Fatalf("without its waveform: %s", e.Status.Message)
	}
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(first), first); client.IgnoreNotFound(err) != nil || err == nil && first.GetDeletionTimestamp().IsZero() {
		w.t.Errorf("its Workload stays, and with it a quota that others may want: %v", err)
	}
	w.must(w.api.Create(w.t.Context(), ethernet()))
	w.reconciled()
	if again := w.workload(); again.GetUID() == first.GetUID() {
		w.t.Error("it has no new Workload once it is accepted again")
	}
}
