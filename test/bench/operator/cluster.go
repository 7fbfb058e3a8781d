package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/run/argo"
)

// cluster simulates radiod and Argo, and observes experiments.
type cluster struct {
	api     client.Client
	archive *archive
	work    workqueue.TypedRateLimitingInterface[task]

	mu          sync.Mutex
	hosts       map[types.UID]string // of the running pods
	networks    map[types.UID]*v1alpha1.RadioNetwork
	workflows   map[types.NamespacedName]*unstructured.Unstructured
	experiments map[string]seen
	pods        map[string]int // of each experiment, by its name, as no two have the same
}

// task is a check of an experiment's radio network, or of a workflow.
type task struct {
	experiment types.UID
	workflow   types.NamespacedName
}

// seen is the observed state of an experiment.
type seen struct {
	phase         v1alpha1.ExperimentPhase
	step, message string
	pods          int
}

// running: all apps were started, and nothing happens until a stop.
func running(s seen) bool { return s.phase == v1alpha1.PhaseRunning && s.step == v1alpha1.StepStop }

// over: only the results are left. A failed experiment changes no more.
func over(s seen) bool {
	return (s.phase == v1alpha1.PhaseSucceeded || s.phase == v1alpha1.PhaseFailed) && s.pods == 0
}

// The simulation's workers.
const workers = 8

func newCluster(ctx context.Context, config *rest.Config, api client.Client, archive *archive) (*cluster, error) {
	c := &cluster{
		api: api, archive: archive, hosts: map[types.UID]string{}, networks: map[types.UID]*v1alpha1.RadioNetwork{}, workflows: map[types.NamespacedName]*unstructured.Unstructured{},
		experiments: map[string]seen{}, pods: map[string]int{},
		work: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](50*time.Millisecond, time.Second)),
	}
	flow := &unstructured.Unstructured{}
	flow.SetGroupVersionKind(render.WorkflowKind)
	informers, err := cache.New(config, cache.Options{
		Scheme: testkube.Scheme(), DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: slimPod}, &v1alpha1.Experiment{}: {Transform: slimExperiment}},
	})
	if err != nil {
		return nil, err
	}
	for object, see := range map[client.Object]func(any, bool){
		&corev1.Pod{}: c.seePod, &v1alpha1.RadioNetwork{}: c.seeNetwork, flow: c.seeWorkflow, &v1alpha1.Experiment{}: c.seeExperiment,
	} {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		_, err = informer.AddEventHandler(clientcache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { see(o, true) }, UpdateFunc: func(_, o any) { see(o, true) }, DeleteFunc: func(o any) { see(o, false) },
		})
		if err != nil {
			return nil, err
		}
	}
	go func() { _ = informers.Start(ctx) }() // until the context ends
	for range workers {
		go c.labour(ctx)
	}
	go func() { <-ctx.Done(); c.work.ShutDown() }()
	if !informers.WaitForCacheSync(ctx) {
		return nil, errors.New("the caches were not filled")
	}
	return c, nil
}

func slimPod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, Labels: pod.Labels, ResourceVersion: pod.ResourceVersion},
			Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName}, Status: corev1.PodStatus{Phase: pod.Status.Phase},
		}, nil
	}
	return object, nil
}

func slimExperiment(object any) (any, error) {
	if e, ok := object.(*v1alpha1.Experiment); ok {
		e.ManagedFields, e.Spec = nil, v1alpha1.ExperimentSpec{}
	}
	return object, nil
}

// wait waits until experiments are as wanted, as long as there is progress.
func (c *cluster) wait(ctx context.Context, patience time.Duration, from, to int, reached func(seen) bool) error {
	least := to - from + 1
	for last := time.Now(); ; {
		lacking := c.lacking(from, to, reached)
		if len(lacking) == 0 {
			return nil
		}
		if len(lacking) < least {
			least, last = len(lacking), time.Now()
		}
		if time.Since(last) > patience {
			c.mu.Lock()
			defer c.mu.Unlock()
			return fmt.Errorf("%d experiments are not as wanted, and none has become so for %s, %s among them: %+v", len(lacking), patience, lacking[0], c.experiments[lacking[0]])
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (c *cluster) lacking(from, to int, reached func(seen) bool) (lacking []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := from; i < to; i++ {
		s := c.experiments[name(i)]
		s.pods = c.pods[name(i)]
		if !reached(s) && s.phase != v1alpha1.PhaseFailed {
			lacking = append(lacking, name(i))
		}
	}
	return lacking
}

// failures returns failed experiments, of which there must be none.
func (c *cluster) failures() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed, message := 0, ""
	for name, s := range c.experiments {
		if s.phase == v1alpha1.PhaseFailed {
			failed, message = failed+1, name+": "+s.message
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d experiments failed, among them %s", failed, message)
	}
	return nil
}

// running reports whether a pod runs.
func (c *cluster) running(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[uid] != ""
}

func gone(object any) any {
	if tombstone, ok := object.(clientcache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return object
}

func (c *cluster) seeExperiment(object any, _ bool) {
	if e, ok := gone(object).(*v1alpha1.Experiment); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.experiments[e.Name] = seen{phase: e.Status.Phase, step: e.Status.Step, message: e.Status.Message}
	}
}

func (c *cluster) seePod(object any, there bool) {
	pod, ok := gone(object).(*corev1.Pod)
	experiment := types.UID("")
	if ok {
		experiment = types.UID(pod.Labels[v1alpha1.LabelExperimentUID])
	}
	if experiment == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.hosts[pod.UID]
	if !known && there {
		c.pods[pod.Labels[v1alpha1.LabelExperiment]]++
		c.hosts[pod.UID] = ""
	}
	if known && !there {
		c.pods[pod.Labels[v1alpha1.LabelExperiment]]--
		delete(c.hosts, pod.UID)
	}
	if there && pod.Status.Phase == corev1.PodRunning && c.hosts[pod.UID] == "" {
		c.hosts[pod.UID] = pod.Spec.NodeName
		c.work.Add(task{experiment: experiment})
	}
}

func (c *cluster) seeNetwork(object any, there bool) {
	network, ok := gone(object).(*v1alpha1.RadioNetwork)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !there {
		delete(c.networks, network.Spec.Experiment.UID)
		return
	}
	c.networks[network.Spec.Experiment.UID] = network
	c.work.Add(task{experiment: network.Spec.Experiment.UID})
}

func (c *cluster) seeWorkflow(object any, there bool) {
	flow, ok := gone(object).(*unstructured.Unstructured)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := client.ObjectKeyFromObject(flow)
	if !there {
		delete(c.workflows, key)
		return
	}
	c.workflows[key] = flow
	c.work.Add(task{workflow: key})
}

func (c *cluster) labour(ctx context.Context) {
	for {
		next, end := c.work.Get()
		if end {
			return
		}
		err := c.attach(ctx, next.experiment)
		if next.workflow.Name != "" {
			err = c.step(ctx, next.workflow)
		}
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			c.work.AddRateLimited(next)
		} else {
			c.work.Forget(next)
		}
		c.work.Done(next)
	}
}

// attach attaches all radios of an experiment's network at once, when the last of its pods runs. In reality each host's radiod writes its own entry.
func (c *cluster) attach(ctx context.Context, experiment types.UID) error {
	c.mu.Lock()
	network, attached := c.networks[experiment], map[string]int32{}
	for i := 0; network != nil && i < len(network.Spec.Members); i++ {
		host := c.hosts[network.Spec.Members[i].PodUID]
		if host == "" {
			network = nil
			break
		}
		attached[host]++
	}
	c.mu.Unlock()
	if network == nil {
		return nil
	}
	told := network.DeepCopy()
	told.Status.Hosts = nil
	for host, count := range attached {
		told.Status.Hosts = append(told.Status.Hosts, v1alpha1.RadioNetworkHost{Host: host, Attached: count, CPUModel: "A Processor"})
	}
	slices.SortFunc(told.Status.Hosts, func(a, b v1alpha1.RadioNetworkHost) int { return strings.Compare(a.Host, b.Host) })
	if reflect.DeepEqual(told.Status.Hosts, network.Status.Hosts) {
		return nil
	}
	return c.api.Status().Patch(ctx, told, client.MergeFrom(network))
}

// step advances a workflow by one step, as Argo would: a suspended step waits, and one with a pod ends at the next check.
func (c *cluster) step(ctx context.Context, key types.NamespacedName) error {
	c.mu.Lock()
	flow := c.workflows[key]
	c.mu.Unlock()
	if flow == nil {
		return nil
	}
	flow = flow.DeepCopy()
	state := argo.Read(flow)
	current := state.Current()
	if state.Finished() || current.Phase == argo.Running && current.Suspend {
		return nil
	}
	set := func(value any, path ...string) {
		if err := unstructured.SetNestedField(flow.Object, value, append([]string{"status"}, path...)...); err != nil {
			panic(err) // this program has made all existing ones
		}
	}
	switch i := slices.Index(argo.Steps, current.Name); {
	case current.Phase == argo.Running:
		if current.Name == v1alpha1.StepAnalyse {
			c.archive.analyse(string(flow.GetOwnerReferences()[0].UID))
		}
		set(argo.Succeeded, "nodes", current.ID, "phase")
	case i == len(argo.Steps)-1:
		set(argo.Succeeded, "phase")
	default:
		next, kind := argo.Steps[i+1], "Suspend"
		if next == v1alpha1.StepCollect || next == v1alpha1.StepAnalyse {
			kind = "Retry"
		}
		set(argo.Running, "phase")
		set(map[string]any{"displayName": next, "type": kind, "phase": argo.Running}, "nodes", "id-"+next)
	}
	return c.api.Update(ctx, flow)
}
