package cleanup

import (
	"context"
	"errors"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/kueue"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// finished is an experiment that is over.
func finished() *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "run", UID: "u1", Finalizers: []string{v1alpha1.Finalizer}}}
	e.Status.Phase, e.Status.CompletionTime = v1alpha1.PhaseSucceeded, &metav1.Time{Time: now}
	return e
}

// podOf has the label of an experiment, and its owner's UID.
func podOf(name string, owner *v1alpha1.Experiment) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-of-" + name),
		Labels:          map[string]string{v1alpha1.LabelExperimentUID: "u1", v1alpha1.LabelNode: name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("Experiment"))}}}
}

func cleanerOf(functions interceptor.Funcs, all ...client.Object) *Cleaner {
	api := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(all...).WithInterceptorFuncs(functions)
	for _, object := range []client.Object{&corev1.Pod{}, &nadv1.NetworkAttachmentDefinition{}, &v1alpha1.RadioNetwork{}} {
		api = api.WithIndex(object, objects.UIDField, objects.UIDIndex)
	}
	kube := api.Build()
	found := &objects.Objects{Client: kube, Live: kube, Namespace: "platform"}
	return &Cleaner{Objects: found, Workloads: &kueue.Workloads{Objects: found}, Deadline: time.Minute}
}

func TestAFinishedRunLosesItsOwnPodsAndNobodyElses(t *testing.T) {
	e, namesake := finished(), finished()
	namesake.UID = "u2"
	c := cleanerOf(interceptor.Funcs{}, podOf("own", e), podOf("of-another", namesake))
	s := &scope.Scope{Experiment: e, Now: now}
	if stop, err := c.DeleteFinished(t.Context(), s); stop || err != nil {
		t.Fatalf("stop %t, error %v", stop, err)
	}
	var left corev1.PodList
	if err := c.Objects.Client.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 || left.Items[0].Name != "of-another" {
		t.Errorf("left are %d pods; want that of another experiment, despite its label", len(left.Items))
	}
	if s.RequeueIn == 0 {
		t.Error("it does not look again whether the pods are gone")
	}
}

func TestAnExperimentIsDeletedAfterItsTimeToLive(t *testing.T) {
	e := finished()
	e.Spec.TTLAfterFinished = ptr.To(v1alpha1.Duration("5s"))
	c := cleanerOf(interceptor.Funcs{}, e)
	if err := c.Objects.Client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{4 * time.Second, 5 * time.Second} {
		s := &scope.Scope{Experiment: e, Now: now.Add(after)}
		if stop, err := c.DeleteExpired(t.Context(), s); err != nil || stop != (after == 5*time.Second) {
			t.Errorf("after %s: stop %t, error %v", after, stop, err)
		}
	}
	var deleted v1alpha1.Experiment
	if err := c.Objects.Client.Get(t.Context(), client.ObjectKeyFromObject(e), &deleted); err != nil || deleted.DeletionTimestamp.IsZero() {
		t.Errorf("it is not being deleted: %v", err)
	}
}

func TestADeletionThatIsRefusedIsReportedAtItsDeadline(t *testing.T) {
	e := finished()
	e.DeletionTimestamp = &metav1.Time{Time: now}
	c := cleanerOf(interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteOption) error {
		return errors.New("the webhook is away")
	}}, podOf("own", e), e)
	early := &scope.Scope{Experiment: e, Now: now.Add(time.Second)}
	if _, err := c.Finalize(t.Context(), early); err == nil {
		t.Error("a refused deletion is no error before the deadline")
	}
	late := &scope.Scope{Experiment: e, Now: now.Add(2 * time.Minute)}
	if _, err := c.Finalize(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if len(late.Events) != 1 || late.Events[0].Reason != "CleanupIncomplete" || late.FinalizerRemoved {
		t.Errorf("events %v, finalizer removed: %t; want a warning, and the condition first", late.Events, late.FinalizerRemoved)
	}
}

// archive has runs by their UIDs.
type archive map[string]archivedRun

type archivedRun struct {
	runapi.Plan
	sealed bool
}

func (a archive) PutPlan(_ context.Context, plan runapi.Plan) (runapi.State, error) {
	a[plan.UID] = archivedRun{plan, a[plan.UID].sealed}
	return runapi.State{Plan: plan}, nil
}

func (a archive) State(_ context.Context, uid string) (runapi.State, error) {
	run, found := a[uid]
	if !found {
		return runapi.State{}, &runs.Error{Status: 404}
	}
	return runapi.State{Plan: run.Plan}, nil
}

func (a archive) Runs(context.Context, string, string) (all []runapi.RunSummary, err error) {
	for _, run := range a {
		all = append(all, runapi.RunSummary{Namespace: run.Namespace, Name: run.Name, UID: run.UID, Phase: run.Phase, Sealed: run.sealed})
	}
	return all, nil
}

func (a archive) Seal(_ context.Context, uid string, _ runapi.SealRequest) (runapi.Manifest, error) {
	a[uid] = archivedRun{a[uid].Plan, true}
	return runapi.Manifest{}, nil
}

// archiveOf has the plan of the run u1, whose nodes start.
func archiveOf() archive {
	return archive{"u1": {Plan: runapi.Plan{Namespace: "team", Name: "run", UID: "u1", Phase: v1alpha1.PhaseProvisioning}}}
}

func TestTheArchiveGetsTheReasonOfARunThatFailedWithoutTheServer(t *testing.T) {
	for phase, want := range map[v1alpha1.ExperimentPhase]string{v1alpha1.PhaseFailed: "no such image", v1alpha1.PhaseProvisioning: ""} {
		e := finished()
		e.Status.Phase, e.Status.Message = phase, "no such image"
		kube := cleanerOf(interceptor.Funcs{}, e).Objects.Client
		archived := archiveOf()
		if err := (&Sweeper{Client: kube, Live: kube, Archive: archived}).SweepArchive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := archived["u1"]; got.Phase != phase || got.Message != want || got.sealed != scope.Finished(phase) {
			t.Errorf("the run of an experiment that is %s is %s in the archive: %q, sealed %t; want %q", phase, got.Phase, got.Message, got.sealed, want)
		}
	}
}

func TestTheLogsOfADeletedRunAreSealed(t *testing.T) {
	kube := cleanerOf(interceptor.Funcs{}).Objects.Client
	archived := archiveOf()
	if err := recordAsFailed(t.Context(), archived, "u1", "the experiment was deleted while Running"); err != nil {
		t.Fatal(err)
	}
	if err := (&Sweeper{Client: kube, Live: kube, Archive: archived}).SweepArchive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := archived["u1"]; !got.sealed || got.Message != "the experiment was deleted while Running" {
		t.Errorf("its run is sealed %t: %q; want it sealed, with the reason that it had", got.sealed, got.Message)
	}
}

func TestTheArchiveGetsTheDeletionOfAnExperimentThatIsQueuedAgain(t *testing.T) {
	for name, archived := range map[string]archive{"it had started": archiveOf(), "it never started": {}} {
		e := finished()
		e.Status.Phase, e.DeletionTimestamp = v1alpha1.PhaseQueued, &metav1.Time{Time: now}
		c := cleanerOf(interceptor.Funcs{}, e)
		c.Runs = archived
		if _, err := c.Finalize(t.Context(), &scope.Scope{Experiment: e, Now: now}); err != nil {
			t.Fatal(err)
		}
		if got, found := archived["u1"]; found != (name == "it had started") || found && (got.Phase != v1alpha1.PhaseFailed || got.Message != "the experiment was deleted while Queued") {
			t.Errorf("%s: its run is %s in the archive: %q", name, got.Phase, got.Message)
		}
	}
}
