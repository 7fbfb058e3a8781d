//go:build restart

package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// restarts is the number of restarts of the whole cluster; VIGNETTE_RESTARTS changes it.
const restarts = 4

// wholeCluster is etcd, API server and operator, which are stopped and started together, with a simulation of the
// experiments. Only etcd's data stays.
type wholeCluster struct {
	t      *testing.T
	data   string
	key    types.NamespacedName
	random *rand.Rand

	environment *envtest.Environment
	api         client.Client
	ended       chan error
	stop        context.CancelFunc
	played      sync.WaitGroup

	mu sync.Mutex
	// uids are those of all experiments so far, by name.
	uids map[string]map[types.UID]bool
}

func (w *wholeCluster) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *wholeCluster) start() {
	w.t.Helper()
	binary := testkube.Binary()
	if binary == "" {
		w.t.Skip(testkube.NoBinaryHint)
	}
	environment, err := testkube.Environment(binary, w.t.TempDir())
	w.must(err)
	environment.ControlPlane.Etcd.DataDir = w.data
	restConfig, err := environment.Start()
	w.must(err)
	restConfig.QPS, restConfig.Burst = -1, 0
	w.environment = environment
	w.api, err = client.New(restConfig, client.Options{Scheme: testkube.Scheme()})
	w.must(err)
	manager, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: testkube.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	w.must(err)
	r := &Reconciler{Client: manager.GetClient(), Live: manager.GetAPIReader(), Archive: &archive{states: map[string]runapi.State{}},
		Recorder: record.NewFakeRecorder(10_000), Clock: clock.RealClock{}}
	w.must(r.SetupWithManager(manager, 2))
	ctx, cancel := context.WithCancel(context.Background())
	w.stop, w.ended = cancel, make(chan error, 1)
	ended := w.ended
	go func() { ended <- manager.Start(ctx) }()
	w.played.Go(func() { w.play(ctx) })
}

// halt stops everything at once, whatever the operator is doing.
func (w *wholeCluster) halt() {
	w.t.Helper()
	if w.random.IntN(2) == 0 { // the operator loses the API server first
		stopped := make(chan error, 1)
		go func() { stopped <- w.environment.Stop() }()
		time.Sleep(time.Duration(w.random.IntN(1000)) * time.Millisecond)
		w.stop()
		w.must(<-stopped)
	} else {
		w.stop()
		w.must(w.environment.Stop())
	}
	w.played.Wait()
	<-w.ended // an error if the API server went first
}

// play simulates the experiments. Each takes some steps from phase to phase.
func (w *wholeCluster) play(ctx context.Context) {
	next := map[v1alpha1.ExperimentPhase]v1alpha1.ExperimentPhase{"": v1alpha1.PhaseQueued, v1alpha1.PhaseQueued: v1alpha1.PhaseRunning, v1alpha1.PhaseRunning: v1alpha1.PhaseSucceeded}
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		var list v1alpha1.ExperimentList
		if err := w.api.List(ctx, &list, client.InNamespace(w.key.Namespace)); err != nil {
			continue // it is being stopped
		}
		for i := range list.Items {
			e := &list.Items[i]
			w.note(e)
			phase, more := next[e.Status.Phase]
			if !more || w.chance(2) {
				continue
			}
			e.Status.Phase = phase
			if phase == v1alpha1.PhaseSucceeded {
				e.Status.CompletionTime, e.Status.Results = ptr.To(metav1.Now()), &v1alpha1.ResultsSummary{DeliveredPercent: "100", MedianDelay: "5.0ms"}
			}
			if err := w.api.Status().Update(ctx, e); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
				continue // it is being stopped
			}
		}
	}
}

func (w *wholeCluster) note(e *v1alpha1.Experiment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.uids[e.Name] == nil {
		w.uids[e.Name] = map[types.UID]bool{}
	}
	w.uids[e.Name][e.UID] = true
}

func (w *wholeCluster) chance(of int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(of) > 0
}

func (w *wholeCluster) campaign() *v1alpha1.Campaign {
	w.t.Helper()
	c := &v1alpha1.Campaign{}
	w.must(w.api.Get(w.t.Context(), w.key, c))
	return c
}

// until waits until so many runs of the campaign are done.
func (w *wholeCluster) until(done int32) {
	w.t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if c := w.campaign().Status.Counts; c.Succeeded+c.Failed >= done {
			return
		}
	}
	w.t.Fatalf("not %d runs done in time: %+v", done, w.campaign().Status)
}

func TestACampaignContinuesAfterTheWholeClusterWasStoppedAtAnyTime(t *testing.T) {
	log.SetLogger(logr.Discard())
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	times := restarts
	if given, err := strconv.Atoi(os.Getenv("VIGNETTE_RESTARTS")); err == nil {
		times = given
	}
	w := &wholeCluster{t: t, data: t.TempDir(), key: types.NamespacedName{Namespace: "default", Name: "tiny"}, random: rand.New(rand.NewPCG(seed, 1)), uids: map[string]map[types.UID]bool{}}
	w.start()
	c := tiny()
	c.Generation, c.Spec.Repeats, c.Spec.Parallelism = 0, 10, 4
	w.must(w.api.Create(t.Context(), c))
	const all = 3 * 10
	for i := range times {
		w.until(int32(i * all / (times + 1)))
		time.Sleep(time.Duration(w.random.IntN(1500)) * time.Millisecond)
		before := w.campaign().Status.Counts
		w.halt()
		w.start()
		t.Logf("restart %d: %d done, %d under way before it", i+1, before.Succeeded, before.Running)
	}
	w.until(all)
	status := w.campaign().Status
	for end := time.Now().Add(time.Minute); status.Phase != v1alpha1.CampaignSucceeded && time.Now().Before(end); status = w.campaign().Status {
		time.Sleep(100 * time.Millisecond)
	}
	w.halt()
	if status.Phase != v1alpha1.CampaignSucceeded || status.Counts.Succeeded != all || len(status.Runs) != all || len(w.uids) != all {
		t.Errorf("%s: %+v, %d runs recorded, %d experiments seen; want %d of each", status.Phase, status.Counts, len(status.Runs), len(w.uids), all)
	}
	points := map[string]int{}
	for _, run := range status.Runs {
		points[fmt.Sprint(run.Point, " ", run.Repeat)]++
		if seen := w.uids[run.Name]; len(seen) != 1 || !seen[run.UID] {
			t.Errorf("%s is recorded with %s, and the experiments seen of it are %v", run.Name, run.UID, seen)
		}
	}
	for point, count := range points {
		if count != 1 {
			t.Errorf("point and repeat %s: %d runs", point, count)
		}
	}
}
