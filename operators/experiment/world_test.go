package experiment

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/run/argo"
	"vignette.dev/vignette/operators/experiment/run/live"
	"vignette.dev/vignette/operators/experiment/scope"
)

const platform = "vignette-system"

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// errKilled is the error of every call after the operator was killed, errCut that of a write whose answer was lost.
var (
	errKilled = errors.New("the operator was killed")
	errCut    = errors.New("read tcp 127.0.0.1:6443: connection reset by peer")
)

// world is a cluster around the operator. The API server is a fake or a real one. tick simulates the kubelet, agents, Argo
// and the server.
type world struct {
	t     testing.TB
	clock *clocktesting.FakeClock
	// api is the client of everything but the operator. Its writes are not counted.
	api        client.Client
	reconciler *Reconciler
	server     *server
	events     *record.FakeRecorder
	// tokenLifetime is what the API server grants; without end if 0.
	tokenLifetime time.Duration
	key           types.NamespacedName
	// mirror is between the operator and the API server in sweeps, elsewhere nil.
	mirror *mirror
	// options of the operator.
	options Options
	// made counts the objects of each name, whose UIDs differ.
	made map[string]int
	// uid of the experiment, and began when the world began, in sweeps.
	uid   string
	began time.Time
	// divergedAt is the write after which a lifecycle left that of a success.
	divergedAt int
	// atMoment is called before the operator reconciles.
	atMoment func()
	// restAs replaces rest in sweeps.
	restAs func()
	// workflows is the number of created Workflows.
	workflows int

	// writes of the operator to the API server and the server, as text.
	writes []string
	// killAfter is the number of writes after which every call of the operator fails, 0 for never.
	killAfter int
	// onDeath is called after the kill.
	onDeath func()
	// cutAt is the write whose answer is lost, 0 for none. wasCut means that it was in this reconciliation.
	cutAt  int
	wasCut bool

	// overlooked is the version of the workflow that Argo never sees.
	overlooked string

	// Switches of the simulated parts.
	noKubelet, noRadiod, noAgents, noArgo bool
	noVirt                                bool
	noEMANE                               bool // its pods never start
	// hostOf has the hosts of nodes; the others are on n1.
	hostOf map[string]string
	// What radiod reports as trouble, and what it refuses.
	radioTrouble, radioRefusal string
	analysisFails              bool
}

func testOptions() Options {
	o := DefaultOptions()
	o.Version = "test"
	o.LookupHost = func(_ context.Context, host string) ([]string, error) {
		if host != "server" {
			return nil, errors.New("no such host")
		}
		return []string{"10.96.0.20"}, nil
	}
	o.Render = render.Options{
		Namespace: platform, ServerURL: "http://server", AgentImage: "r/agent:1", ServerImage: "r/server:1", AnalysisImage: "r/analysis:1",
		Apps: apps.Images{Traffic: "r/traffic:1", Mosquitto: "r/mosquitto:1"}, PullPolicy: corev1.PullIfNotPresent,
		GuestImage: "r/guest:1", GuestToolsImage: "r/guest-tools:1", MemoryLimit: quantity("2Gi"), ScratchLimit: quantity("1Gi"),
	}
	return o
}

func readExperiment(t testing.TB) *v1alpha1.Experiment {
	t.Helper()
	text, err := os.ReadFile("testdata/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict(text, e); err != nil {
		t.Fatal(err)
	}
	return e
}

func ethernet() *v1alpha1.Waveform {
	return &v1alpha1.Waveform{ObjectMeta: metav1.ObjectMeta{Name: "ethernet"},
		Spec: v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Delay: "1ms", Loss: "0%", Limit: 1000}}}
}

func host(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{PodCIDRs: []string{"10.78.4.0/22"}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110"), "devices.kubevirt.io/tun": resource.MustParse("1k")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.77.0.1"}},
		},
	}
}

// newWorld has the quickstart experiment, its waveform and one host, on a fake API server.
func newWorld(t testing.TB, change ...func(*v1alpha1.Experiment)) *world {
	t.Helper()
	e := readExperiment(t)
	for _, c := range change {
		c(e)
	}
	return newWorldOf(t, e, ethernet(), host("n1"))
}

// team is a namespace whose nodes may have open cluster interfaces.
func team(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"vignette.dev/management-network": "Open"}}}
}

func newWorldOf(t testing.TB, e *v1alpha1.Experiment, others ...client.Object) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakeClock(start), key: client.ObjectKeyFromObject(e), events: record.NewFakeRecorder(1000), options: testOptions(), made: map[string]int{}}
	w.api = fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(append(others, e, team(e.Namespace))...).
		WithStatusSubresource(&v1alpha1.Experiment{}, &v1alpha1.Scenario{}, &v1alpha1.RadioNetwork{}, &v1alpha1.LiveChange{}, &v1alpha1.Capture{}).
		WithIndex(&v1alpha1.LiveChange{}, live.ExperimentField, live.ExperimentIndex).WithIndex(&v1alpha1.Capture{}, live.ExperimentField, live.ExperimentIndex).
		WithIndex(&corev1.Pod{}, objects.UIDField, objects.UIDIndex).WithIndex(&nadv1.NetworkAttachmentDefinition{}, objects.UIDField, objects.UIDIndex).WithIndex(&v1alpha1.RadioNetwork{}, objects.UIDField, objects.UIDIndex).
		WithRESTMapper(withKubeVirt()).
		WithInterceptorFuncs(interceptor.Funcs{Create: w.withUID}).Build()
	w.server = &server{world: w, states: map[string]*runapi.State{}}
	w.restart()
	return w
}

// isDryRun reports whether a request must not write.
func isDryRun(options []client.CreateOption) bool {
	asked := client.CreateOptions{}
	asked.ApplyOptions(options)
	return len(asked.DryRun) > 0
}

// withUID sets the UID, which the fake API server does not do.
func (w *world) withUID(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if isDryRun(options) {
		there := object.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), there); err != nil {
			return client.IgnoreNotFound(err)
		}
		return apierrors.NewAlreadyExists(corev1.Resource("objects"), object.GetName())
	}
	w.made[object.GetName()]++
	object.SetUID(types.UID("uid-of-" + object.GetName()))
	if again := w.made[object.GetName()]; again > 1 {
		object.SetUID(types.UID(fmt.Sprintf("uid-of-%s-%d", object.GetName(), again)))
	}
	object.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
	return c.Create(ctx, object, options...)
}

// restart creates a new operator without the state of the last.
func (w *world) restart() {
	w.killAfter = 0
	caches, live := w.api.(client.WithWatch), client.Reader(nil)
	if w.mirror != nil {
		caches, live = w.mirror.caches(), w.fresh()
	}
	counted := interceptor.NewClient(caches, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if isDryRun(opts) {
				return w.unlessKilled(func() error { return c.Create(ctx, o, opts...) })
			}
			return w.write(fmt.Sprintf("create %T %s", o, o.GetName()), func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return w.write(fmt.Sprintf("update %T %s", o, o.GetName()), func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.write(fmt.Sprintf("patch %T %s", o, o.GetName()), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			w.wantTiedToUID(o, opts)
			return w.write(fmt.Sprintf("delete %T %s", o, o.GetName()), func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.write(fmt.Sprintf("patch %s of %T %s", sub, o, o.GetName()), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, what client.Object, opts ...client.SubResourceCreateOption) error {
			err := c.SubResource(sub).Create(ctx, o, what, opts...)
			if request, isToken := what.(*authenticationv1.TokenRequest); isToken && w.tokenLifetime > 0 {
				request.Status.ExpirationTimestamp = metav1.NewTime(w.clock.Now().Add(w.tokenLifetime))
			}
			return err
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return w.unlessKilled(func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return w.unlessKilled(func() error { return c.List(ctx, l, opts...) })
		},
	})
	if live == nil {
		live = counted
	}
	w.reconciler = &Reconciler{Client: counted, Live: live, Runs: w.server, Scenarios: w.server, Recorder: w.events, Clock: w.clock, Options: w.options}
}

// wantTiedToUID checks that a delete has a UID. By name alone it might delete a newer object.
func (w *world) wantTiedToUID(object client.Object, options []client.DeleteOption) {
	w.t.Helper()
	asked := client.DeleteOptions{}
	asked.ApplyOptions(options)
	if asked.Preconditions == nil || asked.Preconditions.UID == nil || *asked.Preconditions.UID == "" {
		w.t.Errorf("the delete of %T %s is not tied to a UID", object, object.GetName())
	}
}

func (w *world) killed() bool { return w.killAfter > 0 && len(w.writes) >= w.killAfter }

func (w *world) unlessKilled(do func() error) error {
	if w.killed() {
		return errKilled
	}
	return do()
}

func (w *world) write(what string, do func() error) error {
	if w.killed() {
		return errKilled
	}
	err := do()
	if err == nil {
		w.writes = append(w.writes, what)
	}
	if err == nil && len(w.writes) == w.cutAt {
		w.wasCut = true
		return errCut
	}
	return err
}

// experiment is the current one, nil if it is deleted.
func (w *world) experiment() *v1alpha1.Experiment {
	w.t.Helper()
	e := &v1alpha1.Experiment{}
	err := w.api.Get(w.t.Context(), w.key, e)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return e
}

func (w *world) reconcile() (ctrl.Result, error) {
	return w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: w.key})
}

// step lets the operator reconcile once and everything else act once. It takes a second.
func (w *world) step() {
	w.t.Helper()
	if w.atMoment != nil {
		w.atMoment()
	}
	if w.restAs != nil {
		w.restAs()
	} else if w.mirror != nil {
		w.rest()
	} else if !w.once() {
		return
	}
	w.tick()
	w.clock.Step(time.Second)
}

// once lets the operator reconcile. It returns false if that was interrupted and the operator must try again first.
func (w *world) once() bool {
	w.t.Helper()
	w.wasCut = false
	if w.mirror != nil {
		w.mirror.begin()
	}
	if _, err := w.reconcile(); err != nil && !errors.Is(err, errKilled) && !w.wasCut {
		w.t.Fatalf("reconcile at %s: %v", w.clock.Now(), err)
	}
	if w.killed() && w.onDeath != nil {
		w.onDeath()
		return false
	}
	return !w.wasCut
}

// rest lets the operator reconcile until it writes no more, without any time passing, so that a crash takes no time.
func (w *world) rest() {
	w.t.Helper()
	for range 20 {
		before := len(w.writes)
		if w.once() && len(w.writes) == before {
			return
		}
	}
	w.t.Fatalf("the operator does not stop writing: %v", w.writes[max(len(w.writes)-10, 0):])
}

// until steps until the experiment is in the given state.
func (w *world) until(what string, reached func(*v1alpha1.Experiment) bool) *v1alpha1.Experiment {
	w.t.Helper()
	for range 300 {
		if e := w.experiment(); reached(e) {
			return e
		}
		w.step()
	}
	e := w.experiment()
	w.t.Fatalf("not %s after 5 minutes: %+v", what, e.Status)
	return nil
}

func (w *world) untilPhase(phase v1alpha1.ExperimentPhase) *v1alpha1.Experiment {
	w.t.Helper()
	return w.until(string(phase), func(e *v1alpha1.Experiment) bool { return e.Status.Phase == phase })
}

func (w *world) untilFinished() *v1alpha1.Experiment {
	w.t.Helper()
	return w.until("finished", func(e *v1alpha1.Experiment) bool { return scope.Finished(e.Status.Phase) })
}

// settle steps until the operator writes no more.
func (w *world) settle() {
	w.t.Helper()
	for range 20 {
		before := len(w.writes)
		w.step()
		if len(w.writes) == before {
			return
		}
	}
	w.t.Fatalf("still writing: %v", w.writes[len(w.writes)-5:])
}

// tick lets everything but the operator act once.
func (w *world) tick() {
	w.t.Helper()
	if !w.noVirt {
		w.kubeVirt()
	}
	pods := slices.Concat(w.pods(), w.podsIn(platform)) // once: decoding them takes most of a tick
	if !w.noKubelet {
		pods = w.kubelet(pods)
	}
	if !w.noRadiod {
		w.radiod(pods)
	}
	if !w.noAgents {
		w.server.agents(pods)
	}
	if !w.noArgo {
		w.argo()
	}
}

func (w *world) pods() []corev1.Pod { return w.podsIn(w.key.Namespace) }

func (w *world) podsIn(namespace string) []corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	if err := w.api.List(w.t.Context(), &list, client.InNamespace(namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func (w *world) pod(node string) *corev1.Pod {
	w.t.Helper()
	pods := w.pods()
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Labels[v1alpha1.LabelNode] == node })
	if i < 0 {
		w.t.Fatalf("there is no pod of node %s", node)
	}
	return &pods[i]
}

// kubelet runs every pod without a gate, removes deleted ones at once, and returns those that are left.
func (w *world) kubelet(pods []corev1.Pod) (left []corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		switch {
		case pod.Namespace == platform && w.noEMANE:
		case !pod.DeletionTimestamp.IsZero():
			w.must(client.IgnoreNotFound(w.api.Delete(w.t.Context(), pod, client.GracePeriodSeconds(0))))
			continue
		case !w.awaitsSecret(pod) && len(pod.Spec.SchedulingGates) == 0 && pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodFailed && len(pod.Status.ContainerStatuses) == 0:
			w.run(pod)
		}
		left = append(left, *pod)
	}
	return left
}

// run a pod, unless the operator changes it meanwhile: then the next tick tries again.
func (w *world) run(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		w.bind(pod)
	}
	running := pod.DeepCopy()
	running.Status.Phase = corev1.PodRunning
	for _, c := range pod.Spec.Containers {
		running.Status.ContainerStatuses = append(running.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Name})
	}
	if err := w.api.Status().Update(w.t.Context(), running); err != nil {
		w.tolerate(err)
		return
	}
	*pod = *running
}

// radiod attaches the running pods.
func (w *world) radiod(pods []corev1.Pod) {
	runs := map[types.UID]bool{}
	for i := range pods {
		runs[pods[i].UID] = pods[i].Status.Phase == corev1.PodRunning
	}
	var list v1alpha1.RadioNetworkList
	w.must(w.api.List(w.t.Context(), &list))
	for i := range list.Items {
		n := &list.Items[i]
		status := v1alpha1.RadioNetworkHost{Host: "n1", CPUModel: "A Processor", TCPCongestionControl: "cubic", Message: w.radioTrouble, Refused: w.radioRefusal}
		for _, member := range n.Spec.Members {
			carried := n.Spec.Engine != v1alpha1.EngineEMANE || len(n.Spec.EMANE) == 1 && runs[n.Spec.EMANE[0].PodUID]
			if runs[member.PodUID] && carried {
				status.Attached++
			}
		}
		if hosts := []v1alpha1.RadioNetworkHost{status}; !reflect.DeepEqual(n.Status.Hosts, hosts) {
			n.Status.Hosts = hosts
			w.tolerate(w.api.Status().Update(w.t.Context(), n))
		}
	}
}

// tolerate ignores a conflict with a write of the operator, because the next tick tries again.
func (w *world) tolerate(err error) {
	w.t.Helper()
	if !apierrors.IsConflict(err) {
		w.must(client.IgnoreNotFound(err))
	}
}

func (w *world) bind(pod *corev1.Pod) {
	if !w.server.real {
		pod.Spec.NodeName = cmp.Or(w.hostOf[pod.Labels[v1alpha1.LabelNode]], "n1")
		w.must(w.api.Update(w.t.Context(), pod))
		return
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
	w.tolerate(w.api.SubResource("binding").Create(w.t.Context(), pod, binding))
	w.tolerate(w.api.Get(w.t.Context(), client.ObjectKeyFromObject(pod), pod))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) workflow() *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(render.WorkflowKind)
	err := w.api.Get(w.t.Context(), w.key, u)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return u
}

// argo starts the next step once the one before has succeeded. A pod step takes one tick.
func (w *world) argo() {
	w.t.Helper()
	u := w.workflow()
	if u == nil || u.GetResourceVersion() == w.overlooked {
		return
	}
	state := argo.Read(u)
	if state.Finished() {
		return
	}
	current := state.Current()
	i := slices.Index(argo.Steps, current.Name)
	switch {
	case current.Phase == argo.Running && current.Suspend:
		return
	case current.Phase == argo.Running:
		w.podStep(u, current.Name)
	case i == len(argo.Steps)-1:
		w.must(unstructured.SetNestedField(u.Object, argo.Succeeded, "status", "phase"))
	default:
		name := argo.Steps[i+1]
		kind := "Suspend"
		if name == v1alpha1.StepCollect || name == v1alpha1.StepAnalyse {
			kind = "Retry"
		}
		w.must(unstructured.SetNestedField(u.Object, argo.Running, "status", "phase"))
		w.must(unstructured.SetNestedMap(u.Object, map[string]any{"displayName": name, "type": kind, "phase": argo.Running}, "status", "nodes", "id-"+name))
	}
	w.tolerate(w.api.Update(w.t.Context(), u))
}

func (w *world) podStep(u *unstructured.Unstructured, name string) {
	phase := argo.Succeeded
	if name == v1alpha1.StepAnalyse && w.analysisFails {
		phase = argo.Failed
		w.must(unstructured.SetNestedField(u.Object, "Error (exit code 3)", "status", "nodes", "id-"+name, "message"))
		w.must(unstructured.SetNestedField(u.Object, argo.Failed, "status", "phase"))
	}
	if state := w.server.states[string(w.experiment().UID)]; name == v1alpha1.StepCollect && state != nil {
		state.Sealed = true
	}
	if name == v1alpha1.StepAnalyse && !w.analysisFails {
		w.server.analyse(string(w.experiment().UID))
	}
	w.must(unstructured.SetNestedField(u.Object, phase, "status", "nodes", "id-"+name, "phase"))
}

// objects are all existing ones by kind and name, except the experiment and what a namespace's experiments share.
func (w *world) objects() []string {
	w.t.Helper()
	var found []string
	for _, kind := range []string{"v1/Pod", "kubevirt.io/v1/VirtualMachineInstance", "k8s.cni.cncf.io/v1/NetworkAttachmentDefinition", "policy/v1/PodDisruptionBudget", "vignette.dev/v1alpha1/RadioNetwork", "argoproj.io/v1alpha1/Workflow"} {
		list := &unstructured.UnstructuredList{}
		at := strings.LastIndex(kind, "/")
		list.SetAPIVersion(kind[:at])
		list.SetKind(kind[at+1:] + "List")
		w.must(w.api.List(w.t.Context(), list))
		for _, item := range list.Items {
			found = append(found, kind[at+1:]+" "+item.GetName())
		}
	}
	return found
}

// recorded are the events so far, each as "Type Reason message".
func (w *world) recorded() (events []string) {
	for {
		select {
		case text := <-w.events.Events:
			events = append(events, text)
		default:
			return events
		}
	}
}

// server is the archive server, and all agents.
type server struct {
	world *world
	mu    sync.Mutex
	// states by run UID.
	states map[string]*runapi.State
	down   bool
	// real means that the API server is a real one.
	real bool
	// received is the offset from T0 until which messages are received.
	receivesUntil time.Duration
	// failing are agents by node/app, with their message. deaf ones receive nothing.
	failing map[string]string
	// reason of those that fail.
	reason      string
	unreachable map[string]bool
	seals       int
	// full is why a new run has no room, empty if there is some.
	full string
	// scenarios are compiled scenarios by digest.
	scenarios map[string][]byte
	// scenariosAway is why it gives none of them now; nil for nothing.
	scenariosAway error
	// downloads is how often a compiled scenario was asked for.
	downloads int
}

func (s *server) Scenario(ctx context.Context, digest string) (io.ReadCloser, error) {
	s.downloads++
	if _, limited := ctx.Deadline(); !limited {
		s.world.t.Error("the operator asks for a compiled scenario without a deadline")
	}
	if s.scenariosAway != nil {
		return nil, s.scenariosAway
	}
	content, found := s.scenarios[digest]
	if !found {
		return nil, &runs.Error{Status: http.StatusNotFound, Message: "no such scenario"}
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (s *server) call() error {
	if s.down {
		return errors.New("the server is down")
	}
	return s.world.unlessKilled(func() error { return nil })
}

func (s *server) State(_ context.Context, uid string) (runapi.State, error) {
	if err := s.call(); err != nil {
		return runapi.State{}, err
	}
	state, found := s.states[uid]
	if !found {
		return runapi.State{}, &runs.Error{Status: http.StatusNotFound, Message: "no such run"}
	}
	return *state, nil
}

func (s *server) PutPlan(_ context.Context, plan runapi.Plan) (runapi.State, error) {
	if err := s.call(); err != nil {
		return runapi.State{}, err
	}
	if s.states[plan.UID] == nil && s.full != "" {
		return runapi.State{}, &runs.Error{Status: http.StatusInsufficientStorage, Message: s.full}
	}
	err := s.world.write("put plan "+string(plan.Phase), func() error {
		if s.states[plan.UID] == nil {
			s.states[plan.UID] = &runapi.State{}
		}
		s.world.watchPlan(s.states[plan.UID].Plan, plan)
		s.states[plan.UID].Plan = plan
		return nil
	})
	return *s.states[plan.UID], err
}

func (s *server) Incident(_ context.Context, uid string, incident runapi.Incident) error {
	if err := s.call(); err != nil {
		return err
	}
	return s.world.write("incident "+incident.What, func() error {
		s.states[uid].Incidents = append(s.states[uid].Incidents, incident)
		return nil
	})
}

func (s *server) Seal(_ context.Context, uid string, _ runapi.SealRequest) (runapi.Manifest, error) {
	if err := s.call(); err != nil {
		return runapi.Manifest{}, err
	}
	return runapi.Manifest{}, s.world.write("seal", func() error {
		s.seals++
		s.states[uid].Sealed = true
		return nil
	})
}

func (s *server) Delete(_ context.Context, uid string) error {
	if err := s.call(); err != nil {
		return err
	}
	return s.world.write("delete run", func() error {
		delete(s.states, uid)
		return nil
	})
}

func (s *server) analyse(uid string) {
	s.states[uid].Results = &runapi.Results{
		Messages:     runapi.Messages{Sent: 100, Expected: 300, Received: 297, Lost: 3},
		DelaySeconds: &runapi.Quantiles{Median: 0.1124}, Verdict: &runapi.Verdict{KeptUp: true}, Gaps: []runapi.Gap{{What: "capture"}},
	}
}

// agents makes the agents of running pods report, confirm and execute their actions.
func (s *server) agents(pods []corev1.Pod) {
	running := map[string]bool{}
	for i := range pods {
		running[string(pods[i].UID)] = pods[i].Status.Phase == corev1.PodRunning && pods[i].DeletionTimestamp.IsZero()
	}
	now := s.world.clock.Now()
	for _, state := range s.states {
		for _, node := range state.Plan.Nodes {
			if !running[node.PodUID] {
				continue
			}
			for _, app := range node.Apps {
				s.agent(state, node.Name, app.Name, now)
			}
			if len(node.Apps) == 0 {
				s.agent(state, node.Name, render.IdleApp, now)
			}
		}
		if t0 := state.Plan.T0; t0 != nil && now.After(*t0) && now.Sub(*t0) < s.receivesUntil {
			state.Counters.LastReceivedNanoseconds = now.UnixNano()
		}
	}
}

func (s *server) agent(state *runapi.State, node, app string, now time.Time) {
	name := node + "/" + app
	i := slices.IndexFunc(state.Agents, func(a runapi.AgentState) bool { return a.Node == node && a.App == app })
	if i < 0 {
		state.Agents = append(state.Agents, runapi.AgentState{Node: node, AgentReport: runapi.AgentReport{App: app, Phase: runapi.AgentReady}})
		i = len(state.Agents) - 1
	}
	agent := &state.Agents[i]
	agent.ReportedAt, agent.ArchivedUntilNanoseconds = now, now.UnixNano()
	if message := s.failing[name]; message != "" {
		agent.Phase, agent.Message, agent.Reason = runapi.AgentFailed, message, s.reason
	}
	if s.unreachable[name] {
		return
	}
	held := agent.ArmedVersion
	agent.ArmedVersion, agent.ExecutedActions = state.Plan.ArmedVersion, 0
	for _, action := range state.Plan.Armed {
		if !slices.Contains(action.Targets, runapi.Target{Node: node, App: app}) {
			continue
		}
		if at := state.Plan.T0.Add(time.Duration(action.AtNanoseconds)); !now.Before(at) {
			agent.ExecutedActions++
			if held == 0 && action.Verb == runapi.VerbStart && now.After(at) {
				agent.ArmedTooLate = []string{action.ID}
			}
		}
	}
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }
