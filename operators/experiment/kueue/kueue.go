// Package kueue makes the Workload with which Kueue reserves room for an experiment, reads its conditions, and returns
// its quota.
package kueue

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Workloads are Kueue's objects for experiments with a queue name.
type Workloads struct {
	Objects *objects.Objects
}

const (
	// maxPodSets is Kueue's limit of a Workload.
	maxPodSets = 8
	// SpecAnnotation is the hash of the spec that a Workload was created for.
	SpecAnnotation = "vignette.dev/made-for"
)

// Conditions of a Workload.
const (
	QuotaReserved     = "QuotaReserved"
	Admitted          = "Admitted"
	Evicted           = "Evicted"
	requeuedCondition = "Requeued"
	PodsReady         = "PodsReady"
)

var workloadKind = schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "Workload"}

// Kind is Workload in the version that the cluster serves. Both have the fields used here.
func (w *Workloads) Kind() (schema.GroupVersionKind, error) {
	mapping, err := w.Objects.Client.RESTMapper().RESTMapping(workloadKind, "v1beta1", "v1beta2")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return mapping.GroupVersionKind, nil
}

// ReleaseQuota releases the quota of a Workload that was evicted before its experiment started. Kueue expects that from
// the owner of the pods. The conditions are those of Kueue's job framework, after which Kueue queues the Workload again.
func (w *Workloads) ReleaseQuota(ctx context.Context, workload *unstructured.Unstructured, evicted metav1.Condition, now time.Time) error {
	after := workload.DeepCopy()
	unstructured.RemoveNestedField(after.Object, "status", "admission")
	requeued := metav1.ConditionFalse // for other reasons Kueue sets it later
	if evicted.Reason == "Preempted" || evicted.Reason == "NodeFailures" {
		requeued = metav1.ConditionTrue
	}
	for _, c := range []metav1.Condition{
		{Type: QuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending", Message: evicted.Message},
		{Type: Admitted, Status: metav1.ConditionFalse, Reason: "NoReservation", Message: "The workload has no reservation"},
		{Type: requeuedCondition, Status: requeued, Reason: evicted.Reason, Message: evicted.Message},
	} {
		if err := setConditionOf(after, c, now); err != nil {
			return err
		}
	}
	return w.patchStatus(ctx, workload, after)
}

// patchStatus writes the status of a Workload, unless somebody else has changed the Workload.
func (w *Workloads) patchStatus(ctx context.Context, before, after *unstructured.Unstructured) error {
	err := w.Objects.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return objects.IgnoreConflictOrNotFound(err)
}

// SetPodsReady reports to Kueue that all nodes are ready. Kueue may be configured to evict what is not ready in time.
func (w *Workloads) SetPodsReady(ctx context.Context, s *scope.Scope, workload *unstructured.Unstructured) error {
	after := workload.DeepCopy()
	ready := metav1.Condition{Type: PodsReady, Status: metav1.ConditionTrue, Reason: "Started", Message: "All nodes are ready"}
	if err := setConditionOf(after, ready, s.Now); err != nil {
		return err
	}
	return w.patchStatus(ctx, workload, after)
}

// Find returns the experiment's Workload, unless it is being deleted.
func (w *Workloads) Find(ctx context.Context, e *v1alpha1.Experiment) (*unstructured.Unstructured, error) {
	kind, err := w.Kind()
	if err != nil {
		return nil, err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	key := client.ObjectKey{Namespace: e.Namespace, Name: Name(e)}
	if err := w.Objects.Live.Get(ctx, key, found); err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(found, e) || !found.GetDeletionTimestamp().IsZero() {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: workloadKind.Group, Resource: "workloads"}, key.Name)
	}
	return found, nil
}

// ConditionOf returns an object's condition, empty if there is no valid one of the type.
func ConditionOf(u *unstructured.Unstructured, kind string) (found metav1.Condition) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, entry := range conditions {
		if object, ok := entry.(map[string]any); ok && object["type"] == kind {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &found); err != nil {
				return metav1.Condition{}
			}
		}
	}
	return found
}

// setConditionOf sets an object's condition. Its transition time changes only with its status.
func setConditionOf(u *unstructured.Unstructured, c metav1.Condition, now time.Time) error {
	entries, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	c.LastTransitionTime, c.ObservedGeneration = metav1.NewTime(now), u.GetGeneration()
	if before := ConditionOf(u, c.Type); before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(entries, func(e any) bool { object, ok := e.(map[string]any); return ok && object["type"] == c.Type })
	if at < 0 {
		return unstructured.SetNestedSlice(u.Object, append(entries, entry), "status", "conditions")
	}
	entries[at] = entry
	return unstructured.SetNestedSlice(u.Object, entries, "status", "conditions")
}

// Want is the experiment's Workload, with which Kueue reserves room for all nodes and the workflow's pod, or none.
func (w *Workloads) Want(s *scope.Scope) (*unstructured.Unstructured, error) {
	kind, err := w.Kind()
	if err != nil {
		return nil, err
	}
	workflow := queue.WorkflowPod()
	workflow.Spec.Containers[0].Image = s.Options.AnalysisImage
	sets, err := podSets(append(render.Footprints(s.RenderInput()), workflow))
	if err != nil {
		return nil, err
	}
	e := s.Experiment
	spec := map[string]any{"queueName": e.Spec.QueueName, "active": true, "priority": int64(e.Spec.Priority), "podSets": sets}
	want := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	want.SetGroupVersionKind(kind)
	want.SetNamespace(e.Namespace)
	want.SetName(Name(e))
	want.SetLabels(map[string]string{v1alpha1.LabelExperimentUID: string(e.UID), "app.kubernetes.io/managed-by": render.ManagedByValue})
	want.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(e, v1alpha1.GroupVersion.WithKind("Experiment"))})
	hash := fnv.New64a()
	fmt.Fprint(hash, spec) // maps are printed in the order of their keys
	want.SetAnnotations(map[string]string{SpecAnnotation: fmt.Sprintf("%016x", hash.Sum64())})
	return want, nil
}

// Name is the name of the experiment's Workload. The hash separates it from that of an earlier experiment of the
// same name.
func Name(e *v1alpha1.Experiment) string {
	hash := fnv.New32a()
	fmt.Fprint(hash, e.UID)
	return fmt.Sprintf("experiment-%s-%08x", e.Name, hash.Sum32())
}

// podSets groups equal pods. Beyond Kueue's limit the smallest pods share a set and count as large as its largest pod.
func podSets(pods []*corev1.Pod) ([]any, error) {
	type set struct {
		pod   *corev1.Pod
		needs corev1.ResourceList
		count int64
	}
	var sets []*set
	for _, pod := range pods {
		needs := queue.Requests(&pod.Spec)
		delete(needs, render.TunDevice) // a ClusterQueue without a quota for it would never admit a machine
		i := slices.IndexFunc(sets, func(s *set) bool { return equalAmounts(s.needs, needs) })
		if i < 0 {
			i, sets = len(sets), append(sets, &set{pod: pod, needs: needs})
		}
		sets[i].count++
	}
	slices.SortStableFunc(sets, func(a, b *set) int {
		return cmp.Or(b.needs.Memory().Cmp(*a.needs.Memory()), b.needs.Cpu().Cmp(*a.needs.Cpu()))
	})
	for len(sets) > maxPodSets {
		last, other := sets[len(sets)-1], sets[len(sets)-2]
		other.count, sets = other.count+last.count, sets[:len(sets)-1]
		for name, quantity := range last.needs {
			if has := other.needs[name]; quantity.Cmp(has) > 0 {
				other.needs[name] = quantity
			}
		}
	}
	list := make([]any, len(sets))
	for i, s := range sets {
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "node", Image: s.pod.Spec.Containers[0].Image, Resources: corev1.ResourceRequirements{Requests: s.needs},
			}},
		}}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
		if err != nil {
			return nil, err
		}
		list[i] = map[string]any{"name": fmt.Sprintf("nodes-%d", i+1), "count": s.count, "template": object}
	}
	return list, nil
}

func equalAmounts(a, b corev1.ResourceList) bool {
	for _, pair := range [][2]corev1.ResourceList{{a, b}, {b, a}} {
		for name, quantity := range pair[0] {
			if other := pair[1][name]; quantity.Cmp(other) != 0 {
				return false
			}
		}
	}
	return true
}

// Leave deletes the experiment's Workload, also if somebody has removed queueName since.
func (w *Workloads) Leave(ctx context.Context, e *v1alpha1.Experiment) error {
	if e.Spec.QueueName == "" && !mayHaveWorkload(e) {
		return nil
	}
	found, err := w.Find(ctx, e)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // Kueue was uninstalled, or there is no Workload
	}
	if err != nil {
		return err
	}
	return w.Objects.Delete(ctx, found)
}

// reasonsWithWorkload are the reasons of Admitted of an experiment that Kueue admits. The last two are those of one that
// went back to the queue, and keeps its Workload.
var reasonsWithWorkload = []string{scope.ReasonWaitingForKueue, scope.ReasonKueueInactive, queue.ReasonQuotaRefused, scope.ReasonNotStarted}

// mayHaveWorkload reports whether an experiment may have a Workload from a queue name that it has no more.
func mayHaveWorkload(e *v1alpha1.Experiment) bool {
	admitted := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted)
	return admitted != nil && slices.Contains(reasonsWithWorkload, admitted.Reason)
}
