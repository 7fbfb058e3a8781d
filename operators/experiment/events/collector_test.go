package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	platform = "vignette-system"
	team     = "team-nor"
)

// archive is a simulated server that stores what it gets.
type archive struct {
	mu        sync.Mutex
	failing   error
	plan      runapi.Plan
	got       []runapi.KubernetesEvent
	incidents []runapi.Incident
	// endMarkers is the number of reports that there are no more events.
	endMarkers int
	// expectedRun is the only run whose events it accepts, "run" if empty.
	expectedRun string
}

func (a *archive) State(context.Context, string) (runapi.State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return runapi.State{Plan: a.plan}, a.failing
}

func (a *archive) Events(_ context.Context, uid string, events []runapi.KubernetesEvent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failing != nil {
		return a.failing
	}
	if a.expectedRun != "" && uid != a.expectedRun || a.expectedRun == "" && uid != "run" {
		return fmt.Errorf("events of run %q", uid)
	}
	a.got = append(a.got, events...)
	if len(events) == 0 {
		a.endMarkers++
	}
	return nil
}

func (a *archive) Incident(_ context.Context, _ string, incident runapi.Incident) error {
	a.incidents = append(a.incidents, incident)
	return nil
}

// describeEvents are the archived events as text.
func (a *archive) describeEvents() (lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.got {
		lines = append(lines, fmt.Sprintf("%s %s %s node %q, %d times", e.Object.Kind, e.Object.Name, e.Reason, e.Node, e.Count))
	}
	slices.Sort(lines)
	return lines
}

type testBed struct {
	t         *testing.T
	archive   *archive
	kube      *kubefake.Clientset
	cached    []client.Object
	uncached  []client.Object
	collector *Collector
}

func withOwner(object client.Object, uid, owner, ownerUID string, labels map[string]string) client.Object {
	object.SetUID(types.UID(uid))
	object.SetLabels(labels)
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: owner, Name: "owner", UID: types.UID(ownerUID), Controller: ptr.To(true)}})
	return object
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}
}

// newTestBed has a run with a pod, a workflow with a pod that no cache has, and a radio network. Another pod without that
// owner has the run's labels.
func newTestBed(t *testing.T) *testBed {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "quick", UID: "run"}}
	e.Status.Phase = v1alpha1.PhaseRunning
	labels := map[string]string{v1alpha1.LabelExperimentUID: "run", v1alpha1.LabelNode: "hq"}
	workflow := &unstructured.Unstructured{}
	workflow.SetGroupVersionKind(render.WorkflowKind)
	workflow.SetNamespace(team)
	workflow.SetName("quick")
	network := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: "wan", UID: "wan-uid"}}
	network.Spec.Experiment.UID = "run"
	step := withOwner(pod("quick-collect"), "step-uid", "Workflow", "flow-uid", nil)
	b := &testBed{t: t, archive: &archive{}, kube: kubefake.NewClientset(),
		cached: []client.Object{e, withOwner(pod("quick-hq"), "hq-uid", "Experiment", "run", labels), withOwner(workflow, "flow-uid", "Experiment", "run", labels), network,
			withOwner(pod("impostor"), "impostor-uid", "ReplicaSet", "elsewhere", labels)},
		uncached: []client.Object{step, pod("stranger")}}
	b.uncached[1].SetUID("stranger-uid")
	b.restart()
	return b
}

// restart creates a new collector without the state of the last, and waits for its watches.
func (b *testBed) restart() {
	b.t.Helper()
	b.restartOnly()
	b.awaitWatches()
}

func (b *testBed) restartOnly() {
	b.t.Helper()
	build := func(objects []client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(objects...).Build()
	}
	b.collector = &Collector{Client: build(b.cached), Live: build(append(slices.Clone(b.cached), b.uncached...)), Kubernetes: b.kube, Archive: b.archive, Namespace: platform}
	b.collector.reset()
	b.kube.ClearActions()
	b.t.Cleanup(func() {
		for _, w := range b.collector.watches {
			w.stop()
		}
	})
	_ = b.collector.collectOnce(b.t.Context())
}

// awaitWatches waits for the watches of both namespaces. The fake clientset loses events between a list and its watch.
// It takes up a watch before it shows the action.
func (b *testBed) awaitWatches() {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		watched := map[string]bool{}
		for _, action := range b.kube.Actions() {
			if action.GetVerb() == "watch" {
				watched[action.GetNamespace()] = true
			}
		}
		if watched[team] && watched[platform] {
			return
		}
	}
	b.t.Fatal("the collector watches no events")
}

func (b *testBed) createEvent(namespace, uid, kind, name, about, reason string) *corev1.Event {
	b.t.Helper()
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: uid, UID: types.UID(uid)}, Reason: reason, Type: "Normal", Count: 1,
		LastTimestamp: metav1.Now(), InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name, UID: types.UID(about)}}
	made, err := b.kube.CoreV1().Events(namespace).Create(b.t.Context(), event, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// want waits until the archive has exactly these events.
func (b *testBed) want(lines ...string) {
	b.t.Helper()
	slices.Sort(lines)
	diff := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		_ = b.collector.collectOnce(b.t.Context())
		if diff = cmp.Diff(lines, b.archive.describeEvents()); diff == "" {
			return
		}
	}
	b.t.Fatal(diff)
}

func TestEventsOfARunsObjectsAreCollectedAndNoOthers(t *testing.T) {
	b := newTestBed(t)
	b.createEvent(team, "e1", "Experiment", "quick", "run", "Started")
	b.createEvent(team, "e2", "Pod", "quick-hq", "hq-uid", "Pulled")
	b.createEvent(team, "e3", "Pod", "quick-collect", "step-uid", "Created")
	b.createEvent(team, "e4", "Workflow", "quick", "flow-uid", "WorkflowRunning")
	b.createEvent(platform, "e5", "RadioNetwork", "wan", "wan-uid", "Attached")
	b.createEvent(team, "e6", "Pod", "stranger", "stranger-uid", "Pulled")
	b.createEvent(team, "e7", "Pod", "impostor", "impostor-uid", "Pulled")
	b.createEvent(team, "e8", "Pod", "quick-hq", "a-namesake", "Pulled")
	b.createEvent(team, "e9", "Experiment", "other", "other-run", "Started")
	b.createEvent(team, "e10", "ConfigMap", "files", "run", "Odd")
	b.want(`Experiment quick Started node "", 1 times`, `Pod quick-hq Pulled node "hq", 1 times`, `Pod quick-collect Created node "", 1 times`,
		`Workflow quick WorkflowRunning node "", 1 times`, `RadioNetwork wan Attached node "", 1 times`, `ConfigMap files Odd node "", 1 times`)
}

func TestEventsOfAVirtualMachineAndItsLauncherAreThoseOfItsNode(t *testing.T) {
	b := newTestBed(t)
	labels := map[string]string{v1alpha1.LabelExperimentUID: "run", v1alpha1.LabelNode: "veh"}
	vm := &unstructured.Unstructured{}
	vm.SetGroupVersionKind(kubevirtv1.VirtualMachineInstanceGroupVersionKind)
	vm.SetNamespace(team)
	vm.SetName("quick-veh")
	b.uncached = append(b.uncached, withOwner(vm, "vm-uid", "Experiment", "run", labels))
	b.cached = append(b.cached, withOwner(pod("virt-launcher-quick-veh-x"), "launcher-uid", "VirtualMachineInstance", "vm-uid", labels),
		withOwner(pod("virt-launcher-impostor-x"), "false-uid", "VirtualMachineInstance", "elsewhere", labels))
	b.restart()
	b.createEvent(team, "e1", "VirtualMachineInstance", "quick-veh", "vm-uid", "Started")
	b.createEvent(team, "e2", "Pod", "virt-launcher-quick-veh-x", "launcher-uid", "Pulled")
	b.createEvent(team, "e3", "Pod", "virt-launcher-impostor-x", "false-uid", "Pulled")
	b.want(`VirtualMachineInstance quick-veh Started node "veh", 1 times`, `Pod virt-launcher-quick-veh-x Pulled node "veh", 1 times`)
}

func TestEventsOfAPodThatNoCacheHasAreSentInTheSameRound(t *testing.T) {
	b := newTestBed(t)
	b.createEvent(team, "e1", "Pod", "quick-collect", "step-uid", "Created")
	c := b.collector
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		known := len(c.unresolved)
		c.mu.Unlock()
		if known > 0 {
			break
		}
	}
	if err := c.collectOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`Pod quick-collect Created node "", 1 times`}, b.archive.describeEvents()); diff != "" {
		t.Error(diff)
	}
}

func TestTheEndMarkerIsSentOnlyForACollectedRun(t *testing.T) {
	b := newTestBed(t)
	b.createEvent(team, "e1", "Pod", "quick-hq", "hq-uid", "Pulled")
	b.want(`Pod quick-hq Pulled node "hq", 1 times`)
	if b.archive.endMarkers != 0 {
		t.Errorf("a running run has %d end markers", b.archive.endMarkers)
	}
	b.cached[0].(*v1alpha1.Experiment).Status.Phase = v1alpha1.PhaseCollecting
	b.restart()
	b.archive.endMarkers = 0
	for round := 1; round <= 3; round++ {
		if err := b.collector.collectOnce(t.Context()); err != nil || b.archive.endMarkers != round {
			t.Errorf("%d end markers after %d rounds (%v); want one in each", b.archive.endMarkers, round, err)
		}
	}
}

func TestARepeatedEventIsSentWithItsNewCountAndNothingTwice(t *testing.T) {
	b := newTestBed(t)
	event := b.createEvent(team, "e1", "Pod", "quick-hq", "hq-uid", "BackOff")
	b.want(`Pod quick-hq BackOff node "hq", 1 times`)
	event.Count = 4
	if _, err := b.kube.CoreV1().Events(team).Update(t.Context(), event, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.want(`Pod quick-hq BackOff node "hq", 1 times`, `Pod quick-hq BackOff node "hq", 4 times`)
}

func TestEventsDuringAnOutageOfTheArchiveAreSentLater(t *testing.T) {
	b := newTestBed(t)
	b.archive.failing = errors.New("connection refused")
	b.createEvent(team, "e1", "Pod", "quick-hq", "hq-uid", "Pulled")
	for range 5 {
		_ = b.collector.collectOnce(t.Context())
		time.Sleep(20 * time.Millisecond)
	}
	b.archive.mu.Lock()
	b.archive.failing = nil
	b.archive.mu.Unlock()
	b.want(`Pod quick-hq Pulled node "hq", 1 times`)
}

func TestARestartedCollectorFindsDeletedPodsInThePlan(t *testing.T) {
	b := newTestBed(t)
	b.archive.plan.Nodes = []runapi.PlannedNode{{Name: "hq", PodUID: "hq-uid"}}
	b.cached = slices.DeleteFunc(b.cached, func(o client.Object) bool { return o.GetUID() == "hq-uid" })
	b.createEvent(team, "e1", "Pod", "quick-hq", "hq-uid", "Evicted")
	b.restart()
	b.want(`Pod quick-hq Evicted node "hq", 1 times`)
}

func TestNothingIsSentToAnArchiveThatIsClosed(t *testing.T) {
	b := newTestBed(t)
	b.archive.failing = &runs.Error{Status: http.StatusGone}
	b.createEvent(team, "e1", "Pod", "quick-hq", "hq-uid", "Killing")
	for deadline := time.Now().Add(10 * time.Second); !b.collector.runs["run"].closed && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err := b.collector.collectOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.archive.failing = nil
	b.createEvent(team, "e2", "Pod", "quick-hq", "hq-uid", "Killing")
	time.Sleep(100 * time.Millisecond)
	b.want()
}

func TestEventsThatCannotBeReadAreAnIncidentOfTheRun(t *testing.T) {
	b := newTestBed(t)
	forbid := func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") }
	b.kube.PrependReactor("list", "events", forbid)
	e := b.cached[0].(*v1alpha1.Experiment)
	e.Status.Phase, e.Status.T0 = v1alpha1.PhaseCollecting, ptr.To(metav1.NowMicro())
	b.restartOnly()
	for deadline := time.Now().Add(10 * time.Second); len(b.archive.incidents) < 1 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		b.collector.runs["run"].troubleReported = false
		_ = b.collector.collectOnce(t.Context())
	}
	if len(b.archive.incidents) == 0 || b.archive.incidents[0].What != "Kubernetes events" {
		t.Errorf("incidents %+v; want one of the events that could not be read", b.archive.incidents)
	}
}

func TestEventsFromBeforeTheRunAreRead(t *testing.T) {
	b := newTestBed(t)
	b.createEvent(team, "e1", "Experiment", "second", "second-run", "Queued")
	b.want() // of the first run there is nothing
	second := b.cached[0].(*v1alpha1.Experiment).DeepCopy()
	second.Name, second.UID, second.ResourceVersion = "second", "second-run", ""
	b.collector.Client = fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(append(slices.Clone(b.cached), second)...).Build()
	b.archive.expectedRun = "second-run"
	b.want(`Experiment second Queued node "", 1 times`)
	if watches := len(b.collector.watches); watches != 2 {
		t.Errorf("%d watches; want those of the team's namespace and the platform's", watches)
	}
}

func TestTheEventsOfWhyARunFailedAreSentThoughItIsOverAtOnce(t *testing.T) {
	b := newTestBed(t)
	b.createEvent(team, "e1", "Pod", "quick-hq", "hq-uid", "Failed")
	c := b.collector
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		waits := len(c.runs["run"].outbox)
		c.mu.Unlock()
		if waits > 0 {
			break
		}
	}
	e := b.cached[0].(*v1alpha1.Experiment).DeepCopy()
	e.ResourceVersion, e.Status.Phase = "", v1alpha1.PhaseFailed
	c.Client = fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(e).Build()
	if err := c.collectOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`Pod quick-hq Failed node "hq", 1 times`}, b.archive.describeEvents()); diff != "" {
		t.Error(diff)
	}
}

func TestARunThatIsOverIsForgotten(t *testing.T) {
	b := newTestBed(t)
	e := b.cached[0].(*v1alpha1.Experiment).DeepCopy()
	e.ResourceVersion, e.Status.Phase = "", v1alpha1.PhaseSucceeded
	b.collector.Client = fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(e).Build()
	for range 2 { // first its last events are sent
		_ = b.collector.collectOnce(t.Context())
	}
	c := b.collector
	if len(c.runs) != 0 || len(c.objects) != 0 || len(c.watches) != 0 {
		t.Errorf("%d runs, %d objects, %d watches are kept; want none", len(c.runs), len(c.objects), len(c.watches))
	}
}

func TestTheTimeOfAnEventIsItsLast(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	for name, c := range map[string]struct {
		event corev1.Event
		want  int64
	}{
		"old API":  {corev1.Event{FirstTimestamp: metav1.NewTime(at(1)), LastTimestamp: metav1.NewTime(at(2))}, 2},
		"new API":  {corev1.Event{EventTime: metav1.NewMicroTime(at(3))}, 3},
		"a series": {corev1.Event{EventTime: metav1.NewMicroTime(at(3)), Series: &corev1.EventSeries{Count: 5, LastObservedTime: metav1.NewMicroTime(at(9))}}, 9},
		"no time":  {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(7))}}, 7},
	} {
		if got := toArchiveEvent(&c.event, "").TimeNanoseconds; got != at(c.want).UnixNano() {
			t.Errorf("%s: %d; want %d s", name, got, c.want)
		}
	}
}
