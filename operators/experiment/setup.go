package experiment

import (
	"context"
	"errors"
	"reflect"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/run/live"
)

// CacheOptions limit what the manager caches: pods, attachments and workflows of experiments only, RadioNetworks of
// the platform's namespace only, and nodes without their image lists.
func CacheOptions(platformNamespace string) cache.Options {
	onlyExperiments := cache.ByObject{Label: ofExperiments()}
	workflow := &unstructured.Unstructured{}
	workflow.SetGroupVersionKind(render.WorkflowKind)
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                        {Label: ofExperiments(), Transform: slimPod},
			&nadv1.NetworkAttachmentDefinition{}: onlyExperiments,
			&policyv1.PodDisruptionBudget{}:      onlyExperiments,
			workflow:                             onlyExperiments,
			&v1alpha1.RadioNetwork{}:             {Namespaces: map[string]cache.Config{platformNamespace: {}}},
			&corev1.Node{}:                       {Transform: slimNode},
		},
	}
}

func ofExperiments() labels.Selector {
	requirement, err := labels.NewRequirement(v1alpha1.LabelExperimentUID, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return labels.NewSelector().Add(*requirement)
}

// slimPod removes what the controller does not read. A pod of a large experiment names all its peers and many mounts.
func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields, pod.Annotations = nil, nil
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulingGates: pod.Spec.SchedulingGates, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources}
	spec.InitContainers, spec.Containers = slimContainers(pod.Spec.InitContainers), slimContainers(pod.Spec.Containers)
	pod.Spec = spec
	return pod, nil
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slim := make([]corev1.Container, len(containers))
	for i, c := range containers {
		slim[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return slim
}

func slimNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields, node.Status.Images, node.Annotations = nil, nil, nil
	}
	return object, nil
}

// SetupWithManager registers the controller and the sources of its reconciliations.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, concurrent int) error {
	workflow := &unstructured.Unstructured{}
	workflow.SetGroupVersionKind(render.WorkflowKind)
	for _, object := range []client.Object{&v1alpha1.LiveChange{}, &v1alpha1.Capture{}} {
		if err := manager.GetFieldIndexer().IndexField(context.Background(), object, live.ExperimentField, live.ExperimentIndex); err != nil {
			return err
		}
	}
	for _, object := range []client.Object{&corev1.Pod{}, &nadv1.NetworkAttachmentDefinition{}, &v1alpha1.RadioNetwork{}} {
		if err := manager.GetFieldIndexer().IndexField(context.Background(), object, objects.UIDField, objects.UIDIndex); err != nil {
			return err
		}
	}
	queued, next := handler.EnqueueRequestsFromMapFunc(r.queuedExperiments), handler.EnqueueRequestsFromMapFunc(r.nextInQueue)
	parts := r.parts()
	parts.provisioner.Starts.Starting, parts.provisioner.Starts.Creating = maxStarting, max(concurrent/2, 1)
	named := handler.EnqueueRequestsFromMapFunc(experimentNamed)
	experiments := ctrl.NewControllerManagedBy(manager).
		Named("experiment").
		For(&v1alpha1.Experiment{}).
		Watches(&corev1.Pod{}, batchedHandler{handler.EnqueueRequestForOwner(manager.GetScheme(), manager.GetRESTMapper(), &v1alpha1.Experiment{}, handler.OnlyControllerOwner())}).
		Owns(&nadv1.NetworkAttachmentDefinition{}, builder.WithPredicates(deletions())).
		Owns(workflow).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(experimentOfEMANEPod)).
		Watches(&v1alpha1.RadioNetwork{}, handler.EnqueueRequestsFromMapFunc(experimentOfNetwork), builder.WithPredicates(networkTroubles())).
		Watches(&corev1.Pod{}, batchedHandler{handler.EnqueueRequestsFromMapFunc(experimentOfLauncher)}).
		Watches(&v1alpha1.LiveChange{}, named, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Capture{}, named, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Waveform{}, queued).
		Watches(&v1alpha1.NodeTemplate{}, handler.EnqueueRequestsFromMapFunc(r.templateUsers)).
		Watches(&v1alpha1.Scenario{}, queued).
		Watches(&corev1.ResourceQuota{}, next).
		Watches(&corev1.Node{}, next, builder.WithPredicates(capacityChanges())).
		Watches(&v1alpha1.Experiment{}, next, builder.WithPredicates(roomChanges())).
		WatchesRawSource(source.Channel(parts.wakeups, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrent,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, 15*time.Second),
		})
	if parts.updates == nil {
		return experiments.Complete(r)
	}
	experiments.WatchesRawSource(source.Channel(parts.updates.Wakeups, &handler.EnqueueRequestForObject{}))
	return errors.Join(manager.Add(parts.updates), experiments.Complete(r))
}

// maxStarting experiments may start at once. That keeps a cluster busy, and each is still ready in time.
const maxStarting = 20

// podBatchTime is the delay of a reconciliation after a change of a pod, because other pods often change at the same time.
const podBatchTime = 200 * time.Millisecond

// batchedHandler is a handler whose requests wait for podBatchTime, so that many events cause one reconciliation.
type batchedHandler struct{ handler.EventHandler }

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// delayedQueue is a queue that delays each request by podBatchTime.
type delayedQueue struct{ requests }

// Add implements the queue's interface.
func (q delayedQueue) Add(request reconcile.Request) { q.AddAfter(request, podBatchTime) }

// Create implements handler.EventHandler.
func (h batchedHandler) Create(ctx context.Context, e event.CreateEvent, q requests) {
	h.EventHandler.Create(ctx, e, delayedQueue{q})
}

// Update implements handler.EventHandler.
func (h batchedHandler) Update(ctx context.Context, e event.UpdateEvent, q requests) {
	h.EventHandler.Update(ctx, e, delayedQueue{q})
}

// Delete implements handler.EventHandler.
func (h batchedHandler) Delete(ctx context.Context, e event.DeleteEvent, q requests) {
	h.EventHandler.Delete(ctx, e, delayedQueue{q})
}

// experimentNamed is the experiment that a LiveChange or Capture names, whether it exists or not.
func experimentNamed(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: live.NamedExperiment(object)}}}
}

// queuedExperiments are the queued experiments that an object may affect: those of its namespace, or all.
func (r *Reconciler) queuedExperiments(ctx context.Context, object client.Object) (requests []reconcile.Request) {
	var list v1alpha1.ExperimentList
	if err := r.Client.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the experiments check for room regularly anyway
	}
	for _, e := range list.Items {
		if e.UID != object.GetUID() && (e.Status.Phase == v1alpha1.PhaseQueued || e.Status.Phase == "") {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: e.Namespace, Name: e.Name}})
		}
	}
	return requests
}

// nextInQueue are the queued experiments that must check whether an object's change has made room.
func (r *Reconciler) nextInQueue(_ context.Context, object client.Object) (requests []reconcile.Request) {
	for _, key := range r.parts().admitter.Queue.NextToCheck(object.GetNamespace()) {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

func deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// experimentOfNetwork is the experiment of a RadioNetwork.
func experimentOfNetwork(_ context.Context, object client.Object) []reconcile.Request {
	network, ok := object.(*v1alpha1.RadioNetwork)
	if !ok {
		return nil
	}
	of := network.Spec.Experiment
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: of.Namespace, Name: of.Name}}}
}

// networkTroubles are the events that end a run: a RadioNetwork is deleted, or radiod refuses it.
func networkTroubles() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.RadioNetwork)
			after, alsoOK := e.ObjectNew.(*v1alpha1.RadioNetwork)
			if !ok || !alsoOK {
				return false
			}
			was, _ := nodes.RadioRefusal(before)
			is, _ := nodes.RadioRefusal(after)
			return is != was
		},
	}
}

// capacityChanges are the changes of a node's capacity, without heartbeats.
func capacityChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, alsoOK := e.ObjectNew.(*corev1.Node)
		return ok && alsoOK && (!reflect.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) ||
			queue.TakesPods(before) != queue.TakesPods(after))
	}}
}

// roomChanges are the changes of phases, because an experiment that leaves a phase may make room for the next.
func roomChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.Experiment)
			after, alsoOK := e.ObjectNew.(*v1alpha1.Experiment)
			return ok && alsoOK && before.Status.Phase != after.Status.Phase
		},
	}
}

// experimentOfEMANEPod is the experiment of an EMANE pod, by labels that the operator has set.
func experimentOfEMANEPod(_ context.Context, object client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "RadioNetwork" {
		return nil
	}
	labels := object.GetLabels()
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: labels[v1alpha1.LabelExperimentNamespace], Name: labels[v1alpha1.LabelExperiment]}}}
}

// experimentOfLauncher is the experiment of a virtual machine's pod, by labels that KubeVirt copies from the machine.
func experimentOfLauncher(_ context.Context, object client.Object) []reconcile.Request {
	if !render.IsLauncher(object) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[v1alpha1.LabelExperiment]}}}
}

// templateUsers are the queued experiments that may use a template: those of its namespace, or all if it is the platform's.
func (r *Reconciler) templateUsers(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetNamespace() == r.Options.Render.Namespace {
		object = &v1alpha1.NodeTemplate{}
	}
	return r.queuedExperiments(ctx, object)
}
