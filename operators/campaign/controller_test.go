package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// world is an API server with a simulation of the experiments.
type world struct {
	t *testing.T
	// mu protects the counts of parallel dry runs.
	mu sync.Mutex
	// api is the test's own client. The operator's counts writes, and may fail.
	api   client.Client
	clock *clocktesting.FakeClock
	key   types.NamespacedName
	r     *Reconciler
	uids  int
	// created counts the created experiments by name, writes lists all writes.
	created map[string]int
	writes  []string
	// killAt is the write before or after which the operator is killed, 0 for none.
	killAt int
	before bool
	killed bool
	// lag is the number of reconciliations for which a cache is stale.
	lag     int
	age     int
	cached  map[string]client.ObjectList
	events  *record.FakeRecorder
	archive *archive
}

var errKilled = errors.New("the operator was killed")

// archive simulates the server.
type archive struct {
	states map[string]runapi.State
	// patience is the time that it was last given to say what it has of a run.
	patience time.Duration

	mu              sync.Mutex
	err             error
	compareRequests [][]string
	// busy holds comparisons until it is closed; nil does not.
	busy chan struct{}
}

func (a *archive) State(ctx context.Context, uid string) (runapi.State, error) {
	if until, limited := ctx.Deadline(); limited {
		a.patience = time.Until(until)
	}
	if state, found := a.states[uid]; found {
		return state, nil
	}
	return runapi.State{}, &runs.Error{Status: 404}
}

func (a *archive) Compare(ctx context.Context, uids []string, _ runs.Comparison) (io.ReadCloser, error) {
	if a.busy != nil {
		select {
		case <-a.busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.compareRequests = append(a.compareRequests, uids)
	return io.NopCloser(strings.NewReader("{}")), a.err
}

// compared are the runs of each comparison that it was asked for.
func (a *archive) compared() [][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.compareRequests)
}

// answer comparisons with an error, or without.
func (a *archive) answer(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	log.SetLogger(logr.Discard())
	api := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithStatusSubresource(&v1alpha1.Campaign{}, &v1alpha1.Experiment{}).Build()
	return worldOn(t, api)
}

func worldOn(t *testing.T, api client.WithWatch) *world {
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), created: map[string]int{},
		key: types.NamespacedName{Namespace: "default", Name: "tiny"}, archive: &archive{states: map[string]runapi.State{}}, events: record.NewFakeRecorder(1000),
	}
	w.api = interceptor.NewClient(api, interceptor.Funcs{Create: w.create})
	w.restart()
	return w
}

// create gives objects a UID, which the fake API server does not, and counts them.
func (w *world) create(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
	dry := (&client.CreateOptions{}).ApplyOptions(options).DryRun != nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if object.GetUID() == "" {
		w.uids++
		object.SetUID(types.UID(fmt.Sprint("uid-", w.uids)))
	}
	if dry && object.GetName() == "" {
		object.SetName(fmt.Sprint("dry-", w.uids))
	}
	err := api.Create(ctx, object, options...)
	if err == nil && !dry {
		w.created[object.GetName()]++
	}
	return err
}

// restart creates a new operator without the state of the last.
func (w *world) restart() {
	under, ok := w.api.(client.WithWatch)
	if !ok {
		w.t.Fatal("the API has no watch")
	}
	w.killed = false
	operator := interceptor.NewClient(under, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
			return w.read(func() error { return c.Get(ctx, key, into, o...) })
		},
		List: w.list,
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if (&client.CreateOptions{}).ApplyOptions(o).DryRun != nil {
				return c.Create(ctx, object, o...)
			}
			return w.write("create "+object.GetName(), func() error { return c.Create(ctx, object, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			return w.write("delete "+object.GetName(), func() error { return c.Delete(ctx, object, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			return w.write("patch "+object.GetName(), func() error { return c.Patch(ctx, object, p, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			return w.write("patch "+sub, func() error { return c.SubResource(sub).Patch(ctx, object, p, o...) })
		},
	})
	w.cached = nil
	w.r = &Reconciler{Client: operator, Live: w.api, Archive: w.archive, Recorder: w.events, Clock: w.clock}
}

func (w *world) read(do func() error) error {
	if w.killed {
		return errKilled
	}
	return do()
}

// list lists experiments as a cache that may lag.
func (w *world) list(ctx context.Context, c client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
	return w.read(func() error {
		list, ok := into.(*v1alpha1.ExperimentList)
		if old, kept := w.cached["experiments"].(*v1alpha1.ExperimentList); ok && kept && w.age < w.lag {
			w.age++
			old.DeepCopyInto(list)
			return nil
		}
		err := c.List(ctx, into, o...)
		if ok {
			w.cached, w.age = map[string]client.ObjectList{"experiments": list.DeepCopy()}, 0
		}
		return err
	})
}

func (w *world) write(what string, do func() error) error {
	if w.killed {
		return errKilled
	}
	w.writes = append(w.writes, what)
	if len(w.writes) != w.killAt {
		return do()
	}
	w.killed = true
	if !w.before {
		_ = do() // done, but the answer is lost
	}
	return errKilled
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) campaign() *v1alpha1.Campaign {
	w.t.Helper()
	var c v1alpha1.Campaign
	w.must(w.api.Get(w.t.Context(), w.key, &c))
	return &c
}

func (w *world) experiments() []v1alpha1.Experiment {
	w.t.Helper()
	var list v1alpha1.ExperimentList
	w.must(w.api.List(w.t.Context(), &list, client.InNamespace(w.key.Namespace)))
	return list.Items
}

// edit edits the campaign's spec and its generation, which the fake API server does not count.
func (w *world) edit(change func(*v1alpha1.Campaign)) {
	w.t.Helper()
	c := w.campaign()
	before := c.Generation
	change(c)
	if c.Generation == before {
		c.Generation++
	}
	w.must(w.api.Update(w.t.Context(), c))
}

func (w *world) reconcile() {
	w.t.Helper()
	_, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: w.key})
	if w.killed {
		w.restart()
		return
	}
	w.must(err)
}

// advanceExperiments moves each experiment to its next phase.
func (w *world) advanceExperiments() {
	w.t.Helper()
	next := map[v1alpha1.ExperimentPhase]v1alpha1.ExperimentPhase{"": v1alpha1.PhaseQueued, v1alpha1.PhaseQueued: v1alpha1.PhaseRunning, v1alpha1.PhaseRunning: v1alpha1.PhaseSucceeded}
	for _, e := range w.experiments() {
		phase, more := next[e.Status.Phase]
		if !more {
			continue
		}
		e.Status.Phase = phase
		if phase == v1alpha1.PhaseSucceeded {
			now := metav1.NewTime(w.clock.Now())
			e.Status.CompletionTime, e.Status.Results = &now, &v1alpha1.ResultsSummary{DeliveredPercent: "100", MedianDelay: "5.0ms"}
		}
		w.must(w.api.Status().Update(w.t.Context(), &e))
	}
}

// untilOver reconciles until the campaign is over.
func (w *world) untilOver() {
	w.t.Helper()
	for range 200 {
		w.reconcile()
		w.reconcile()
		phase := w.campaign().Status.Phase
		if phase == v1alpha1.CampaignSucceeded || phase == v1alpha1.CampaignFailed {
			return
		}
		if phase == v1alpha1.CampaignReporting {
			time.Sleep(10 * time.Millisecond) // comparisons are made beside the reconciler
		}
		w.clock.Step(time.Second)
		w.advanceExperiments()
	}
	w.t.Fatalf("no end: %+v", w.campaign().Status)
}

// untilReporting reconciles until all runs are done.
func (w *world) untilReporting() {
	w.t.Helper()
	for range 200 {
		w.reconcile()
		if w.campaign().Status.Phase == v1alpha1.CampaignReporting {
			return
		}
		w.clock.Step(time.Second)
		w.advanceExperiments()
	}
	w.t.Fatalf("its runs do not end: %+v", w.campaign().Status)
}

func values(texts ...string) (all []apiextensionsv1.JSON) {
	for _, text := range texts {
		all = append(all, apiextensionsv1.JSON{Raw: []byte(`"` + text + `"`)})
	}
	return all
}

func tiny() *v1alpha1.Campaign {
	return &v1alpha1.Campaign{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tiny", Generation: 1, Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "x"}},
		Spec: v1alpha1.CampaignSpec{
			Parallelism: 2, Repeats: 1,
			Template: v1alpha1.ExperimentTemplate{
				Metadata: v1alpha1.TemplateMetadata{Labels: map[string]v1alpha1.LabelValue{"study": "e2"}, Annotations: map[string]v1alpha1.AnnotationValue{"note": "n"}},
				Spec:     pair(),
			},
			Matrix: v1alpha1.Matrix{
				Axes: []v1alpha1.Axis{
					{Name: "delay", Path: "networks[wan].link.delay", Values: values("1ms", "50ms")},
					{Name: "period", Path: "apps[bft].publisher.period", Values: values("500ms", "1s")},
				},
				Exclude: []v1alpha1.Selection{{"delay": "50ms", "period": "1s"}},
			},
		},
	}
}

// pair is the smallest complete experiment.
func pair() v1alpha1.ExperimentSpec {
	return v1alpha1.ExperimentSpec{
		Duration: "6s", Seed: 7, Drain: v1alpha1.Drain{Max: "8s", QuietFor: "2s"},
		Networks: []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24", Link: &v1alpha1.LinkModel{Delay: "1ms"}}},
		Apps: []v1alpha1.App{
			{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}},
			{Name: "picture", Subscriber: &v1alpha1.Subscriber{Protocol: "mqtt", To: "broker"}},
			{Name: "bft", Publisher: &v1alpha1.Publisher{Protocol: "mqtt", To: "broker", Period: "500ms", Payload: "nffi"}},
		},
		Nodes: []v1alpha1.Node{
			{Name: "hq", Networks: []string{"wan"}, Apps: []string{"broker", "picture"}}, {Name: "veh", Networks: []string{"wan"}, Apps: []string{"bft"}},
		},
	}
}

func TestACampaignCreatesEachOfItsPointsOnceAndComparesThem(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), tiny()))
	w.untilOver()
	c := w.campaign()
	w.wantMade("tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-50ms-500ms-1")
	if c.Status.Phase != v1alpha1.CampaignSucceeded || !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) || c.Status.Counts.Summary != "3/3" {
		t.Errorf("%+v", c.Status)
	}
	if compared := w.archive.compared(); len(compared) != 1 || len(compared[0]) != 3 || !strings.HasPrefix(c.Status.Comparison.Path, "/v1/compare?run=uid-") {
		t.Errorf("asked to compare %v, comparison %+v", w.archive.compared(), c.Status.Comparison)
	}
	e := w.experiments()[1]
	of := slices.IndexFunc(c.Status.Runs, func(run v1alpha1.CampaignRun) bool { return run.Name == e.Name })
	if e.Labels[v1alpha1.LabelCampaign] != "tiny" || e.Labels["study"] != "e2" || e.Annotations[v1alpha1.AnnotationLevels] != `{"delay":"1ms","period":"500ms"}` ||
		e.Annotations["note"] != "n" || len(e.Annotations) != 3 || e.Annotations[v1alpha1.AnnotationSpecDigest] != c.Status.Runs[of].SpecDigest || !metav1.IsControlledBy(&e, c) {
		t.Errorf("metadata %+v", e.ObjectMeta)
	}
	writes := len(w.writes)
	for range 5 {
		w.clock.Step(time.Hour)
		w.reconcile()
	}
	if len(w.writes) != writes {
		t.Errorf("writes to a campaign that is over: %v", w.writes[writes:])
	}
}

func (w *world) wantMade(names ...string) {
	w.t.Helper()
	delete(w.created, "tiny")
	if got := slices.Sorted(maps.Keys(w.created)); !slices.Equal(got, names) {
		w.t.Errorf("made %v; want %v", got, names)
	}
	for name, count := range w.created {
		if count != 1 {
			w.t.Errorf("%s was made %d times", name, count)
		}
	}
}

// runDisturbedCampaign runs a campaign that is edited while it runs, and of which somebody deletes an experiment.
func (w *world) runDisturbedCampaign() {
	w.t.Helper()
	w.must(w.api.Create(w.t.Context(), tiny()))
	for len(w.experiments()) < 2 {
		w.reconcile()
	}
	w.edit(func(c *v1alpha1.Campaign) { c.Spec.Matrix.Axes[0].Values = values("20ms", "50ms") })
	for range 4 {
		w.reconcile()
	}
	w.must(w.api.Delete(w.t.Context(), &w.experiments()[0]))
	w.untilOver()
}

func TestAnOperatorKilledAtAnyWriteIsReplacedByOneThatContinues(t *testing.T) {
	undisturbed := newWorld(t)
	undisturbed.runDisturbedCampaign()
	for write := 1; write <= len(undisturbed.writes); write++ {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d (%s), before it: %t", write, undisturbed.writes[write-1], before), func(t *testing.T) {
				w := newWorld(t)
				w.killAt, w.before = write, before
				w.runDisturbedCampaign()
				w.wantOutcome()
			})
		}
	}
}

// wantOutcome checks the outcome of runDisturbedCampaign. The two experiments of the removed level stay in the table.
func (w *world) wantOutcome() {
	w.t.Helper()
	w.wantMade("tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-20ms-1s-1", "tiny-20ms-500ms-1", "tiny-50ms-500ms-1")
	phases := map[v1alpha1.RunPhase]int{}
	for _, run := range w.campaign().Status.Runs {
		phases[run.Phase]++
	}
	if want := map[v1alpha1.RunPhase]int{v1alpha1.RunSucceeded: 4, v1alpha1.RunLost: 1}; !maps.Equal(phases, want) {
		w.t.Errorf("runs %v; want %v", phases, want)
	}
}

func TestAStaleCacheDoesNoHarm(t *testing.T) {
	for lag := 1; lag <= 9; lag++ {
		t.Run(fmt.Sprint(lag), func(t *testing.T) {
			w := newWorld(t)
			w.lag = lag
			w.runDisturbedCampaign()
			w.wantOutcome()
		})
	}
}

func TestTheArchiveHasTheResultOfADeletedRun(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), tiny()))
	for len(w.experiments()) < 2 {
		w.reconcile()
	}
	w.reconcile()
	gone := w.experiments()[0] // tiny-1ms-1s-1, the second run
	w.archive.states[string(gone.UID)] = runapi.State{Plan: runapi.Plan{Phase: v1alpha1.PhaseSucceeded}, Results: &runapi.Results{Messages: runapi.Messages{Expected: 4, Received: 3}}}
	w.must(w.api.Delete(t.Context(), &gone)) // by its time to live, between two reconciliations
	w.untilOver()
	if c := w.campaign(); c.Status.Counts.Succeeded != 3 || c.Status.Runs[1].Results == nil || c.Status.Runs[1].Results.DeliveredPercent != "75" {
		t.Errorf("%+v", c.Status.Runs)
	}
}

func TestARunWhoseExperimentWasDeletedSaysWhyItFailed(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), tiny()))
	for len(w.experiments()) < 2 {
		w.reconcile()
	}
	w.reconcile()
	gone := w.experiments()[0]
	why := "the experiment was deleted while Running" // as its finalizer tells the archive
	w.archive.states[string(gone.UID)] = runapi.State{Plan: runapi.Plan{Phase: v1alpha1.PhaseFailed, Message: why}}
	w.must(w.api.Delete(t.Context(), &gone))
	w.untilOver()
	if c := w.campaign(); c.Status.Runs[1].Message != why || !strings.Contains(c.Status.Message, gone.Name+": "+why) {
		t.Errorf("%s; %+v", c.Status.Message, c.Status.Runs[1])
	}
}

func TestAFailedRunIsMadeAgainUnderAnotherName(t *testing.T) {
	w := newWorld(t)
	c := tiny()
	c.Spec.Retries = 1
	w.must(w.api.Create(t.Context(), c))
	for len(w.experiments()) < 1 {
		w.reconcile()
	}
	first := w.experiments()[0]
	first.Status.Phase, first.Status.Message = v1alpha1.PhaseFailed, "no host has room"
	w.must(w.api.Status().Update(t.Context(), &first))
	for range 5 {
		w.reconcile()
	}
	i := slices.IndexFunc(w.experiments(), func(e v1alpha1.Experiment) bool { return e.Name == first.Name+"-try2" })
	if i < 0 {
		t.Fatalf("%+v: want an experiment %s-try2", w.campaign().Status.Runs, first.Name)
	}
	if again := w.experiments()[i]; !reflect.DeepEqual(again.Spec, first.Spec) || again.Labels[v1alpha1.LabelCampaignPoint] != first.Labels[v1alpha1.LabelCampaignPoint] {
		t.Errorf("the second try has the spec %+v and the labels %v; want those of the first, %+v, %v", again.Spec, again.Labels, first.Spec, first.Labels)
	}
}

func TestACampaignSaysWhyARunWaitsForAPerson(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), tiny()))
	for len(w.experiments()) < 1 {
		w.reconcile()
	}
	const why = "spec.networks[0].waveform: Not found: satcm"
	e := w.experiments()[0]
	write := func(stalled metav1.ConditionStatus, message string) (*v1alpha1.Campaign, v1alpha1.CampaignRun) {
		e.Status.Phase, e.Status.Message = v1alpha1.PhaseQueued, message
		e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: stalled}}
		w.must(w.api.Status().Update(t.Context(), &e))
		for range 3 {
			w.reconcile()
		}
		c := w.campaign()
		return c, c.Status.Runs[slices.IndexFunc(c.Status.Runs, func(r v1alpha1.CampaignRun) bool { return r.Name == e.Name })]
	}
	if c, run := write(metav1.ConditionTrue, why); run.Message != why || !strings.HasSuffix(c.Status.Message, "; "+run.Name+": "+why) {
		t.Errorf("%s; %+v", c.Status.Message, run)
	}
	if c, run := write(metav1.ConditionFalse, "waiting for room"); run.Message != "" || strings.Contains(c.Status.Message, "waiting") {
		t.Errorf("once it was mended: %s; %+v", c.Status.Message, run)
	}
}

func TestAnExperimentOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tiny-1ms-500ms-1"}, Spec: pair()}))
	w.must(w.api.Create(t.Context(), tiny()))
	w.untilOver()
	c := w.campaign()
	if run := c.Status.Runs[0]; run.Phase != v1alpha1.RunFailed || !strings.Contains(run.Message, "not this campaign's") || run.UID != "" {
		t.Errorf("%+v", run)
	}
	if c.Status.Phase != v1alpha1.CampaignFailed || !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Errorf("%s: %s", c.Status.Phase, c.Status.Message)
	}
}

func TestACampaignThatIsCreatedAgainWaitsForTheOldExperiments(t *testing.T) {
	for name, old := range map[string]metav1.ObjectMeta{
		"being deleted":             {Finalizers: []string{"vignette.dev/test"}, DeletionTimestamp: &metav1.Time{Time: time.Unix(1_770_000_000, 0)}},
		"of the campaign before it": {OwnerReferences: []metav1.OwnerReference{{APIVersion: "vignette.dev/v1alpha1", Kind: "Campaign", Name: "tiny", UID: "before", Controller: ptr.To(true)}}},
	} {
		t.Run(name, func(t *testing.T) {
			old.Namespace, old.Name = "default", "tiny-1ms-500ms-1"
			left := &v1alpha1.Experiment{ObjectMeta: old, Spec: pair()}
			api := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(left).WithStatusSubresource(&v1alpha1.Campaign{}, &v1alpha1.Experiment{}).Build()
			w := worldOn(t, api)
			w.must(w.api.Create(t.Context(), tiny()))
			for range 6 {
				w.reconcile()
			}
			if run := w.campaign().Status.Runs[0]; run.Phase != "Queued" || run.Message != "waiting until the earlier experiment of this name is deleted" {
				t.Fatalf("%+v", run)
			}
			w.must(w.api.Get(t.Context(), client.ObjectKeyFromObject(left), left))
			left.Finalizers = nil
			w.must(w.api.Update(t.Context(), left))
			w.must(client.IgnoreNotFound(w.api.Delete(t.Context(), left)))
			w.untilOver()
			if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded || c.Status.Runs[0].Message != "" {
				t.Errorf("%s: %+v", c.Status.Phase, c.Status.Runs[0])
			}
			w.wantMade("tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-50ms-500ms-1")
		})
	}
}

// limitExperiments has the API server refuse experiments while full is true.
func (w *world) limitExperiments(full *bool) {
	w.refuseExperiments(full, apierrors.NewForbidden(schema.GroupResource{Resource: "experiments"}, "tiny", errors.New("exceeded quota: team")))
}

// refuseExperiments has the API server refuse experiments by an error while refused is true.
func (w *world) refuseExperiments(refused *bool, why error) {
	w.r.Client = interceptor.NewClient(w.r.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if *refused {
				return why
			}
			return c.Create(ctx, object, o...)
		},
	})
}

func TestAQuotaThatIsUsedUpIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	full := true
	w.limitExperiments(&full)
	w.must(w.api.Create(t.Context(), tiny()))
	for range 6 {
		w.reconcile()
	}
	if run := w.campaign().Status.Runs[0]; run.Phase != "Queued" || !strings.Contains(run.Message, "exceeded quota") {
		t.Errorf("%+v", run)
	}
	if message := w.campaign().Status.Message; !strings.Contains(message, "exceeded quota") {
		t.Errorf("the campaign's message is %q; want it to say what its runs wait for", message)
	}
	writes := len(w.writes)
	for range 4 {
		w.reconcile()
	}
	if len(w.writes) != writes {
		t.Errorf("writes while it waits: %v", w.writes[writes:])
	}
	full = false
	w.untilOver()
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded || c.Status.Runs[0].Message != "" {
		t.Errorf("%+v", c.Status)
	}
}

func TestARunThatAWebhookRefusesSaysSoAndWaits(t *testing.T) {
	w := newWorld(t)
	refused := false
	w.refuseExperiments(&refused, apierrors.NewBadRequest(`admission webhook "hours.example.org" denied the request: no runs before 18:00`))
	w.must(w.api.Create(t.Context(), tiny()))
	for range 6 {
		w.reconcile()
		refused = refused || meta.IsStatusConditionTrue(w.campaign().Status.Conditions, v1alpha1.ConditionAccepted)
	}
	if message := w.campaign().Status.Message; !strings.Contains(message, "no runs before 18:00") {
		t.Errorf("the campaign's message is %q; want it to say why its run does not start", message)
	}
	refused = false
	w.untilOver()
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded {
		t.Errorf("%+v", c.Status)
	}
}

func TestARunThatWaitsForAQuotaDoesNotStartWhileNoneMay(t *testing.T) {
	for name, c := range map[string]struct{ change, mend func(*v1alpha1.Campaign) }{
		"suspended": {func(c *v1alpha1.Campaign) { c.Spec.Suspend = true }, func(c *v1alpha1.Campaign) { c.Spec.Suspend = false }},
		"edited badly": {func(c *v1alpha1.Campaign) { c.Spec.Matrix.Axes[0].Path = "networks[wan].link.dealy" },
			func(c *v1alpha1.Campaign) { c.Spec = tiny().Spec }},
		"without its reference figures": {func(c *v1alpha1.Campaign) { c.Spec.Reference = withReference().Spec.Reference },
			func(c *v1alpha1.Campaign) { c.Spec.Reference = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			full := true
			w.limitExperiments(&full)
			w.must(w.api.Create(t.Context(), tiny()))
			for range 6 {
				w.reconcile()
			}
			w.edit(c.change)
			full = false
			for range 6 {
				w.reconcile()
			}
			if counts := w.campaign().Status.Counts; len(w.experiments()) > 0 || counts.Pending != 3 {
				t.Errorf("%d experiments, runs %+v; want that all are still to come", len(w.experiments()), counts)
			}
			w.edit(c.mend)
			w.untilOver()
			w.wantMade("tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-50ms-500ms-1")
		})
	}
}

func TestAFailedComparisonFailsNoCampaign(t *testing.T) {
	w := newWorld(t)
	w.archive.err = &runs.Error{Status: 501, Message: "there is no analysis"}
	w.must(w.api.Create(t.Context(), tiny()))
	w.untilOver()
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded || !strings.Contains(c.Status.Message, "there is no analysis") {
		t.Errorf("%s: %s", c.Status.Phase, c.Status.Message)
	}
}

func TestAComparisonIsTriedAgainWhileTheServerIsAway(t *testing.T) {
	w := newWorld(t)
	w.archive.answer(&runs.Error{Status: 503, Message: "starting"})
	w.must(w.api.Create(t.Context(), tiny()))
	w.untilReporting()
	for len(w.archive.compared()) < 2 {
		w.reconcile()
		time.Sleep(time.Millisecond)
	}
	w.archive.answer(nil)
	w.untilOver()
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded || c.Status.Comparison.Path == "" {
		t.Errorf("%s, comparison %+v", c.Status.Phase, c.Status.Comparison)
	}
}

func TestAServerThatDoesNotAnswerHoldsUpNoReconciliation(t *testing.T) {
	w := newWorld(t)
	w.archive.busy = make(chan struct{})
	w.must(w.api.Create(t.Context(), tiny()))
	w.untilReporting()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for range 3 {
			w.reconcile()
		}
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Fatal("a reconciliation waits for the comparison")
	}
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignReporting || c.Status.Comparison != nil {
		t.Errorf("%s, comparison %+v", c.Status.Phase, c.Status.Comparison)
	}
	close(w.archive.busy)
	w.untilOver()
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded || len(w.archive.compared()) != 1 {
		t.Errorf("%s, asked to compare %v; want one comparison", c.Status.Phase, w.archive.compared())
	}
}

func TestTheServerHasLittleTimeToSayWhatItHasOfARun(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), tiny()))
	for len(w.experiments()) == 0 {
		w.reconcile()
	}
	w.reconcile() // it writes the UIDs
	for _, e := range w.experiments() {
		w.must(w.api.Delete(t.Context(), &e))
	}
	w.reconcile()
	if w.archive.patience <= 0 || w.archive.patience > stateTimeout {
		t.Errorf("the server has %s, want more than 0 and at most %s", w.archive.patience, stateTimeout)
	}
}

func TestAnInvalidPointPreventsTheStartOfTheCampaign(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.CampaignSpec)
		want   string
	}{
		"a field that is not there": {func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes[0].Path = "networks[wan].link.dealy" },
			"point 1ms-500ms (and 2 more): networks[wan].link.dealy: there is no such field: did you mean delay?"},
		"an app that no node runs": {func(s *v1alpha1.CampaignSpec) {
			s.Matrix.Include = []v1alpha1.Inclusion{{Name: "odd", Set: []v1alpha1.Setting{{Path: "apps[bft].publisher.to", Value: &values("nobody")[0]}}}}
		}, "point odd: "},
		"a schedule that never comes": {func(s *v1alpha1.CampaignSpec) { s.Schedule = &v1alpha1.Schedule{Cron: "0 0 31 2 *"} }, "never comes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bad := tiny()
			c.change(&bad.Spec)
			w.must(w.api.Create(t.Context(), bad))
			for range 3 {
				w.reconcile()
			}
			got := w.campaign()
			accepted := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionAccepted)
			if accepted == nil || accepted.Status != metav1.ConditionFalse || !strings.Contains(accepted.Message, c.want) || got.Status.Phase != v1alpha1.CampaignPending {
				t.Errorf("%s: %+v; want %q", got.Status.Phase, accepted, c.want)
			}
			w.wantMade()
			w.edit(func(c *v1alpha1.Campaign) { c.Spec = tiny().Spec })
			w.untilOver()
			w.wantMade("tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-50ms-500ms-1")
		})
	}
}

func TestAnInvalidCampaignIsCheckedAgainOnlyEveryTenMinutes(t *testing.T) {
	w := newWorld(t)
	bad := tiny()
	bad.Spec.Matrix.Include = []v1alpha1.Inclusion{{Name: "odd", Set: []v1alpha1.Setting{{Path: "apps[bft].publisher.to", Value: &values("nobody")[0]}}}}
	w.must(w.api.Create(t.Context(), bad))
	dryRuns := func() int {
		before := w.uids
		for range 3 {
			w.reconcile()
		}
		return w.uids - before
	}
	first := dryRuns()
	for i, step := range []time.Duration{recheckInterval, 5 * time.Second, recheckInterval - 6*time.Second, time.Second} {
		w.clock.Step(step)
		want := 0
		if i == 0 || i == 3 { // ten minutes after the last check
			want = first
		}
		if got := dryRuns(); got != want || first == 0 {
			t.Errorf("%s later: %d dry runs; want %d", step, got, want)
		}
	}
	w.edit(func(c *v1alpha1.Campaign) { c.Spec.Matrix.Include[0].Name = "odder" })
	if edited, again := dryRuns(), dryRuns(); edited != first || again != 0 {
		t.Errorf("an edit: %d dry runs, and %d more; want %d and none", edited, again, first)
	}
}
