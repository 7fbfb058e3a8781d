package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// parallelWorlds is how many worlds of a sweep run at once. Each mostly waits for the API server.
const parallelWorlds = 6

// cluster has many worlds, a namespace each, on one real API server; or each on a fake one.
type cluster struct {
	server client.WithWatch
}

var (
	sweptServer  = testkube.Shared{WithoutRules: true} // of all tests with a realCluster
	strictServer testkube.Shared                       // of tests of what is refused
	worldsMade   atomic.Int32
)

// realCluster skips the test if there is no API server.
func realCluster(t *testing.T) *cluster {
	t.Helper()
	return clusterOf(t, sweptServer.Start(t))
}

func clusterOf(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	server, err := client.NewWithWatch(config, client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform}}, ethernet()} {
		if err := server.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return &cluster{server: server}
}

// world of its own for one run of an experiment.
func (c *cluster) world(t testing.TB, change func(*v1alpha1.Experiment)) *world {
	t.Helper()
	e := readExperiment(t)
	short(e)
	if change != nil {
		change(e)
	}
	if c.server == nil {
		return fakeSweepWorld(t, e)
	}
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	e.Namespace = fmt.Sprintf("team-%d", worldsMade.Add(1))
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), key: client.ObjectKeyFromObject(e), events: record.NewFakeRecorder(1000)}
	w.server = &server{world: w, states: map[string]*runapi.State{}, real: true}
	w.must(c.server.Create(t.Context(), team(e.Namespace)))
	w.mirrored(c.server)
	w.must(w.api.Create(t.Context(), e))
	w.uid = string(e.UID)
	return w
}

func fakeSweepWorld(t testing.TB, e *v1alpha1.Experiment) *world {
	w := newWorldOf(t, e, ethernet(), host("n1"))
	w.mirrored(w.api.(client.WithWatch))
	w.must(w.mirror.refresh(t.Context(), e))
	w.uid = string(e.UID)
	return w
}

func (w *world) mirrored(server client.WithWatch) {
	w.began = w.clock.Now()
	w.mirror = newMirror(server)
	w.mirror.changed = w.watchOver
	w.mirror.take(host("n1"))
	w.mirror.take(ethernet())
	w.api = w.mirror.world()
	w.options = testOptions()
	// The API server stamps deletions with its own clock, which is not the world's.
	w.options.CleanupDeadline = 24 * time.Hour
	w.restart()
}

// fresh reads from the API server. Each world has all of the cluster's hosts.
func (w *world) fresh() client.Reader {
	return interceptor.NewClient(w.mirror.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return w.unlessKilled(func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, pods := l.(*corev1.PodList); pods {
				opts = append(opts, client.InNamespace(w.key.Namespace))
			}
			return w.unlessKilled(func() error { return c.List(ctx, l, opts...) })
		},
	})
}

// watchOver checks what must always hold: T0 stays once the server has it, and a run has only one Workflow.
func (w *world) watchOver(before, after revision) {
	was, _ := before.object.(*v1alpha1.Experiment)
	is, _ := after.object.(*v1alpha1.Experiment)
	if was != nil && is != nil && was.UID == is.UID && was.Status.T0 != nil && !was.Status.T0.Equal(is.Status.T0) && w.serverKnowsT0(is.UID) {
		w.t.Errorf("T0 was %s and is now %s", was.Status.T0, is.Status.T0)
	}
	if after.kind == "Workflow" && before.object == nil && after.object != nil {
		w.workflows++
		if w.workflows > 1 {
			w.t.Errorf("the run has its Workflow number %d", w.workflows)
		}
	}
}

func (w *world) serverKnowsT0(uid types.UID) bool {
	state := w.server.states[string(uid)]
	return state != nil && state.Plan.T0 != nil
}

// watchPlan checks that a new plan never revokes what agents may have read.
func (w *world) watchPlan(before, after runapi.Plan) {
	if before.T0 != nil && (after.T0 == nil || !after.T0.Equal(*before.T0)) {
		w.t.Errorf("the plan's T0 was %s and is now %v", before.T0, after.T0)
	}
	if order(after.Phase) < order(before.Phase) || scope.Finished(before.Phase) && after.Phase != before.Phase {
		w.t.Errorf("the plan went from %s back to %s", before.Phase, after.Phase)
	}
	ids := map[string]bool{}
	for _, action := range after.Armed {
		if ids[action.ID] {
			w.t.Errorf("action %s of %v is armed twice", action.ID, action.Targets)
		}
		ids[action.ID] = true
	}
	for _, action := range before.Armed {
		i := slices.IndexFunc(after.Armed, func(a runapi.Action) bool { return a.ID == action.ID })
		if i < 0 && after.ArmedVersion <= before.ArmedVersion || i >= 0 && !cmp.Equal(after.Armed[i], action) {
			w.t.Errorf("action %+v was taken back or changed after it was armed", action)
		}
	}
}

// order is a phase's place in the order of phases.
func order(phase v1alpha1.ExperimentPhase) int {
	return slices.Index([]v1alpha1.ExperimentPhase{
		v1alpha1.PhaseQueued, v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning, v1alpha1.PhaseCollecting, v1alpha1.PhaseAnalysing, v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded,
	}, phase)
}

// sweptKinds are the kinds of all objects of an experiment.
var sweptKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}, {Version: "v1", Kind: "Secret"},
	{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"},
	{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "vignette.dev", Version: "v1alpha1", Kind: "RadioNetwork"},
	{Group: "vignette.dev", Version: "v1alpha1", Kind: "Experiment"},
	{Group: "vignette.dev", Version: "v1alpha1", Kind: "LiveChange"},
	{Group: "vignette.dev", Version: "v1alpha1", Kind: "Capture"},
}

// inServer are all objects of this world on the API server, by kind and name.
func (w *world) inServer() map[string]*unstructured.Unstructured {
	w.t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, gvk := range sweptKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		where := client.InNamespace(w.key.Namespace)
		if gvk.Kind == "RadioNetwork" {
			where = platform
		}
		w.must(w.mirror.server.List(w.t.Context(), list, where))
		for i := range list.Items {
			item := &list.Items[i]
			if gvk.Kind != "RadioNetwork" || strings.HasPrefix(item.GetName(), w.uid) {
				found[gvk.Kind+" "+w.normal(item.GetName())] = item
			}
		}
	}
	return found
}

// collected reports whether the garbage collector deletes an object, because all of its owners are gone.
func (w *world) collected(object client.Object) bool {
	w.t.Helper()
	owners := object.GetOwnerReferences()
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool {
		e := w.experiment()
		return o.Kind != "Experiment" || e != nil && e.UID == o.UID
	})
}

// outcome is what must be the same wherever the operator was killed.
type outcome struct {
	// Objects by kind and name, without what differs from run to run.
	Objects map[string]string
	// Archive is the server's state.
	Archive string
	// Writes to the API server and the server by kind, without those of the experiment's status.
	Writes map[string]int
	// statuses is the number of written statuses. A crash may cost two more, for an error and its end. It may save one, if a
	// state is over before the next operator reports it.
	statuses int
}

func (want outcome) diff(got outcome) string {
	if got.statuses > want.statuses+2 {
		return fmt.Sprintf("the status was written %d times, want %d, or two more", got.statuses, want.statuses)
	}
	return cmp.Diff(want, got, cmpopts.IgnoreUnexported(outcome{}))
}

func (w *world) outcome() outcome {
	w.t.Helper()
	o := outcome{Objects: map[string]string{}, Writes: map[string]int{}}
	for name, object := range w.inServer() {
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		if object.GetKind() == "Pod" {
			unstructured.RemoveNestedField(object.Object, "status", "conditions") // by the API server's clock
		}
		o.Objects[name] = w.text(object.Object)
	}
	for _, what := range w.writes {
		if strings.HasPrefix(what, "patch status of *v1alpha1.Experiment") {
			o.statuses++
			continue
		}
		o.Writes[w.normal(what)]++
	}
	if state := w.server.states[w.uid]; state != nil {
		o.Archive = w.text(state)
	}
	return o
}

func (w *world) text(value any) string {
	text, err := json.MarshalIndent(value, "", " ")
	w.must(err)
	return w.normal(string(text))
}

var (
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	// nanosecondsPattern is a time of this century in nanoseconds since 1970.
	nanosecondsPattern = regexp.MustCompile(`\b[12]\d{18}\b`)
	// secretPattern is the number of a guest's Secret, which follows from the run's UID.
	secretPattern = regexp.MustCompile(`-guest-[0-9a-f]{8}`)
	uidPattern    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// longestWorld is longer than any world lasts.
const longestWorld = 24 * time.Hour

// normal is a text with times relative to the world's begin, and without UIDs and the namespace's name.
func (w *world) normal(text string) string {
	text = strings.ReplaceAll(text, w.key.Namespace, "TEAM")
	text = timePattern.ReplaceAllStringFunc(text, func(at string) string {
		moment, err := time.Parse(time.RFC3339Nano, at)
		w.must(err)
		return "+" + moment.Sub(w.began).String()
	})
	text = nanosecondsPattern.ReplaceAllStringFunc(text, func(at string) string {
		nanoseconds, err := strconv.ParseInt(at, 10, 64)
		w.must(err)
		since := time.Unix(0, nanoseconds).Sub(w.began)
		if since.Abs() > longestWorld {
			return at // a seed
		}
		return "+" + since.String()
	})
	return uidPattern.ReplaceAllString(secretPattern.ReplaceAllString(text, "-guest-N"), "UID")
}

// runSweep runs a job for each of the points, several at once, as subtests.
func runSweep[P any](t *testing.T, points []P, name func(P) string, job func(*testing.T, P)) {
	t.Helper()
	queue := make(chan P)
	var workers sync.WaitGroup
	for range parallelWorlds {
		workers.Go(func() {
			for point := range queue {
				t.Run(name(point), func(t *testing.T) { job(t, point) })
			}
		})
	}
	for _, point := range points {
		queue <- point
	}
	close(queue)
	workers.Wait()
}
