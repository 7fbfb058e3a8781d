package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/run/live"
	"vignette.dev/vignette/operators/experiment/scope"
)

// writeCounter counts the manager's requests that change something.
type writeCounter struct {
	mu     sync.Mutex
	writes []string
	next   http.RoundTripper
}

func (c *writeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") {
		c.mu.Lock()
		c.writes = append(c.writes, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

func (c *writeCounter) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

// settled returns the writes once there was none for two seconds.
func (c *writeCounter) settled() (writes []string) {
	for more := c.seen(); len(more) != len(writes); more = c.seen() {
		writes = more
		time.Sleep(2 * time.Second)
	}
	return writes
}

// realWorld is a world on a real API server, with the manager running in it.
func realWorld(t *testing.T) (*world, *writeCounter) {
	t.Helper()
	restConfig := testkube.Start(t)
	api, err := client.New(restConfig, client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	e := readExperiment(t)
	w := &world{t: t, api: api, clock: clocktesting.NewFakeClock(time.Now()), key: client.ObjectKeyFromObject(e), events: record.NewFakeRecorder(1000)}
	w.server = &server{world: w, states: map[string]*runapi.State{}, real: true}
	restricted := team(w.key.Namespace)
	restricted.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	for _, object := range []client.Object{restricted, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform}}, ethernet()} {
		w.must(api.Create(t.Context(), object))
	}
	w.addHost()
	counter := &writeCounter{}
	startManager(t, w, restConfig, counter)
	return w, counter
}

func (w *world) addHost() {
	node := host("n1")
	status := node.Status
	w.must(w.api.Create(w.t.Context(), node))
	node.Status = status
	w.must(w.api.Status().Update(w.t.Context(), node))
	node.Spec.Taints = nil // admission has put "not ready" there
	w.must(w.api.Update(w.t.Context(), node))
}

func startManager(t *testing.T, w *world, restConfig *rest.Config, counter *writeCounter) {
	t.Helper()
	counted := rest.CopyConfig(restConfig)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counter.next = next
		return counter
	})
	manager, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: testkube.Scheme(), Cache: CacheOptions(platform), Metrics: metricsserver.Options{BindAddress: "0"},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	w.must(err)
	options := testOptions()
	options.StartLead = 4 * time.Second // all is in real time, on a machine that has other tests
	r := &Reconciler{Client: manager.GetClient(), Live: manager.GetAPIReader(), Runs: lockedRuns{w.server}, Recorder: w.events, Clock: clock.RealClock{}, Options: options}
	w.must(r.SetupWithManager(manager, 4))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// lockedRuns lets the manager's goroutines share the simulated server with the test.
type lockedRuns struct{ *server }

func (l lockedRuns) State(ctx context.Context, uid string) (runapi.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	state, err := l.server.State(ctx, uid)
	return throughJSON(state), err
}

// throughJSON copies a state by JSON, so that the two sides share nothing.
func throughJSON(state runapi.State) (copied runapi.State) {
	text, err := json.Marshal(state)
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	if err != nil {
		panic(err) // plain values can always be encoded
	}
	return copied
}

func (l lockedRuns) PutPlan(ctx context.Context, plan runapi.Plan) (runapi.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	state, err := l.server.PutPlan(ctx, throughJSON(runapi.State{Plan: plan}).Plan)
	return throughJSON(state), err
}

func (l lockedRuns) Delete(ctx context.Context, uid string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server.Delete(ctx, uid)
}

func (l lockedRuns) Incident(ctx context.Context, uid string, incident runapi.Incident) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server.Incident(ctx, uid, incident)
}

func (l lockedRuns) Seal(ctx context.Context, uid string, request runapi.SealRequest) (runapi.Manifest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server.Seal(ctx, uid, request)
}

// apply creates an experiment with a new name.
func (w *world) apply(change func(*v1alpha1.Experiment)) *v1alpha1.Experiment {
	w.t.Helper()
	e := readExperiment(w.t)
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	short(e)
	change(e)
	w.must(w.api.Create(w.t.Context(), e))
	return e
}

// wait simulates everything but the operator, in real time, until the experiment is in the given state.
func (w *world) wait(what string, reached func(*v1alpha1.Experiment) bool) *v1alpha1.Experiment {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		e := w.experiment()
		if reached(e) {
			return e
		}
		w.actAsOthers()
	}
	e := w.experiment()
	if e != nil {
		w.t.Fatalf("not %s within a minute: %+v", what, e.Status)
	}
	w.t.Fatalf("not %s within a minute: it is gone", what)
	return nil
}

func (w *world) actAsOthers() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.clock.SetTime(time.Now())
	w.tick()
}

func (w *world) waitPhase(phase v1alpha1.ExperimentPhase) *v1alpha1.Experiment {
	w.t.Helper()
	return w.wait(string(phase), func(e *v1alpha1.Experiment) bool { return e.Status.Phase == phase })
}

// TestMain gives controller-runtime a logger, which it demands, and stops what tests share.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	for _, server := range []*testkube.Shared{&sweptServer, &strictServer} {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func unchanged(*v1alpha1.Experiment) {}

func TestOnARealAPIServer(t *testing.T) {
	w, counter := realWorld(t)
	gone := func(e *v1alpha1.Experiment) bool { return e == nil }

	t.Run("an experiment succeeds under Pod Security restricted, and then nothing is written", func(t *testing.T) {
		w.apply(unchanged)
		w.waitPhase(v1alpha1.PhaseSucceeded)
		w.wait("settled", func(*v1alpha1.Experiment) bool { return len(w.objects()) == 1 })
		before := counter.settled()
		e := w.experiment()
		e.Annotations = map[string]string{"touched": "yes"}
		w.must(w.api.Update(t.Context(), e))
		time.Sleep(2 * time.Second)
		if more := counter.seen()[len(before):]; len(more) > 0 {
			t.Errorf("wrote %v", more)
		}
		t.Logf("%d writes in all", len(before))
		w.must(w.api.Delete(t.Context(), e))
		w.wait("gone", gone)
		if left := w.objects(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})

	t.Run("the pod of a node has the resources that its apps have together", func(t *testing.T) {
		e := w.apply(func(e *v1alpha1.Experiment) {
			e.Spec.Nodes[0].Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: quantity("4"), corev1.ResourceMemory: quantity("1Gi")}}
		})
		w.waitPhase(v1alpha1.PhaseRunning)
		if got := w.pod("nor").Spec.Resources; got == nil || got.Limits.Cpu().String() != "4" || got.Limits.Memory().String() != "1Gi" {
			t.Errorf("the pod has resources %v; want limits of 4 processors and 1Gi", got)
		}
		w.must(w.api.Delete(t.Context(), e))
		w.wait("gone", gone)
	})

	t.Run("an experiment that is deployed again and again is never changed by it", func(t *testing.T) {
		w.wantNoDrift(t)
		w.must(w.api.Delete(t.Context(), w.experiment()))
		w.wait("gone", gone)
	})

	for _, phase := range []v1alpha1.ExperimentPhase{v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning} {
		t.Run("deletion while "+string(phase)+" leaves nothing, and the name can be used again", func(t *testing.T) {
			w.noKubelet = phase == v1alpha1.PhaseProvisioning // which would be over before it is seen
			first := w.apply(unchanged)
			w.waitPhase(phase)
			w.noKubelet = false
			w.must(w.api.Delete(t.Context(), first))
			w.wait("gone", gone)
			if left := w.objects(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			second := w.apply(unchanged)
			w.waitPhase(v1alpha1.PhaseRunning)
			w.must(w.api.Delete(t.Context(), second))
			w.wait("gone", gone)
		})
	}

	t.Run("a live cluster takes changes and captures until it is stopped, and they go with it", func(t *testing.T) {
		early := w.change("early", lossOf("wan", "2%"))
		w.wait("reported as without an experiment", func(*v1alpha1.Experiment) bool {
			return strings.HasPrefix(w.conditionOf(early), "False ExperimentNotFound")
		})
		e := w.apply(func(e *v1alpha1.Experiment) {
			e.Spec.Duration = ""
			e.Spec.Collect = &v1alpha1.Collect{Captures: []string{"wan"}}
		})
		film := w.capture("film", "wan")
		w.wait("changed and capturing", func(*v1alpha1.Experiment) bool {
			return strings.HasPrefix(w.conditionOf(early), "True Applied") && strings.HasPrefix(w.conditionOf(film), "True Capturing")
		})
		if radio := w.radio("wan"); len(radio.Changes) != 1 || len(radio.Captures) != 2 {
			t.Errorf("the radios have changes %+v and captures %+v", radio.Changes, radio.Captures)
		}
		w.must(w.api.Delete(t.Context(), film))
		w.wait("without the capture", func(*v1alpha1.Experiment) bool { return len(w.radio("wan").Captures) == 1 })
		if owner := live.OwningExperiment(early); owner == nil || owner.UID != e.UID {
			t.Errorf("the change's owner is %+v", owner)
		}
		stopped := w.experiment()
		before := stopped.DeepCopy()
		stopped.Spec.Stop = true
		w.must(w.api.Patch(t.Context(), stopped, client.MergeFrom(before)))
		e = w.waitPhase(v1alpha1.PhaseSucceeded)
		w.must(w.api.Delete(t.Context(), e))
		w.wait("gone", gone)
		w.must(w.api.Delete(t.Context(), early)) // no garbage collector runs here
	})

	t.Run("nodes that a quota refuses take the others back with them, and wait", func(t *testing.T) {
		// Only the API server evaluates a scoped quota.
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "scoped", Namespace: w.key.Namespace}}
		quota.Spec = corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: quantity("1")}, Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}}
		w.must(w.api.Create(t.Context(), quota))
		quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: quantity("0")}}
		w.must(w.api.Status().Update(t.Context(), quota))
		w.apply(unchanged)
		e := w.wait("back in the queue", func(e *v1alpha1.Experiment) bool {
			c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted)
			return e.Status.Phase == v1alpha1.PhaseQueued && c != nil && c.Reason == "QuotaRefused"
		})
		if !strings.Contains(e.Status.Message, "exceeded quota: scoped") || !strings.Contains(e.Status.Message, "refused once; next try in 15s") {
			t.Errorf("message is %q", e.Status.Message)
		}
		w.wait("without pods", func(*v1alpha1.Experiment) bool { return len(w.pods()) == 0 })
		w.must(w.api.Delete(t.Context(), quota))
		w.waitPhase(v1alpha1.PhaseRunning)
		w.must(w.api.Delete(t.Context(), e))
		w.wait("gone", gone)
	})

	t.Run("a pod that the cluster refuses fails the run with its words", func(t *testing.T) {
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "tiny", Namespace: w.key.Namespace}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: quantity("1Mi")}}}}}
		w.must(w.api.Create(t.Context(), limits))
		w.apply(unchanged)
		e := w.waitPhase(v1alpha1.PhaseFailed)
		if c := meta.FindStatusCondition(e.Status.Conditions, scope.ConditionFailure); c.Reason != scope.ReasonPodRefused || !strings.Contains(c.Message, "memory limit of 1Mi") {
			t.Errorf("Failure is %+v", c)
		}
		w.must(w.api.Delete(t.Context(), e))
		w.wait("gone", gone)
	})
}
