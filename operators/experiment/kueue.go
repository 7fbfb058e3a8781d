package experiment

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/queue"
	"vignette.dev/vignette/operators/experiment/render"
)

// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=get;create;delete
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch

// Reasons where Kueue decides.
const (
	// ReasonKueueMissing of Accepted: spec.queueName is set, and the cluster has no Kueue.
	ReasonKueueMissing = "KueueNotInstalled"
	// ReasonWaitingForKueue of Admitted: Kueue has not admitted the experiment's Workload yet.
	ReasonWaitingForKueue = "WaitingForKueue"
	// ReasonKueueInactive of Admitted: somebody, or Kueue, has deactivated the Workload; only a person can help.
	ReasonKueueInactive = "KueueDeactivated"
	// ReasonEvicted of Failure: Kueue has taken the quota of a run that had begun.
	ReasonEvicted = "Evicted"
)

// Conditions of a Workload.
const (
	workloadQuotaReserved = "QuotaReserved"
	workloadAdmitted      = "Admitted"
	workloadEvicted       = "Evicted"
	workloadRequeued      = "Requeued"
	workloadPodsReady     = "PodsReady"
)

const (
	// kueuePoll is how often a Workload is looked at: it has no cache, as most clusters have no Kueue.
	kueuePoll = 3 * time.Second
	// maxPodSets that a Workload may have.
	maxPodSets = 8
	// kueueSpecAnnotation is the annotation of a Workload that tells what it was made for.
	kueueSpecAnnotation = "vignette.dev/made-for"
)

var kueueWorkload = schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "Workload"}

// kueueKind is Workload in the version that the cluster serves; both versions are alike in what is used of them.
func (r *Reconciler) kueueKind() (schema.GroupVersionKind, error) {
	mapping, err := r.Client.RESTMapper().RESTMapping(kueueWorkload, "v1beta1", "v1beta2")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return mapping.GroupVersionKind, nil
}

// checkKueueInstalled finds that an experiment asks for Kueue where there is none.
func (r *Reconciler) checkKueueInstalled(s *scope) error {
	name := s.experiment.Spec.QueueName
	if name == "" || s.phase() == v1alpha1.PhaseProvisioning { // it has been admitted
		return nil
	}
	_, err := r.kueueKind()
	if meta.IsNoMatchError(err) {
		s.addFinding(ReasonKueueMissing, field.Invalid(field.NewPath("spec", "queueName"), name,
			"Kueue is not installed in this cluster: leave it out, and vignette's own queue decides, or have Kueue installed"))
		return nil
	}
	return err
}

// admitByKueue lets an experiment out of the queue once Kueue has admitted its Workload.
func (r *Reconciler) admitByKueue(ctx context.Context, s *scope) (bool, error) {
	s.experiment.Status.Queue = nil
	quotas, err := r.quotaFingerprint(ctx, s.experiment)
	if err != nil {
		return true, err
	}
	if wait := r.quotaRefusals.retryIn(s.experiment.UID, s.now, quotas); wait > 0 {
		s.requeueAfter(wait)
		return true, nil
	}
	want, err := r.workload(s)
	if err != nil {
		return true, err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(want.GroupVersionKind())
	s.requeueAfter(kueuePoll)
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(want), found)
	switch {
	case apierrors.IsNotFound(err):
		s.waitForKueue(ReasonWaitingForKueue, fmt.Sprintf("waiting for Kueue to admit it by LocalQueue %s", s.experiment.Spec.QueueName))
		if err = r.Client.Create(ctx, want); apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return true, err
	case err != nil:
		return true, err
	case !metav1.IsControlledBy(found, s.experiment):
		s.waitForKueue(ReasonWaitingForKueue, fmt.Sprintf("waiting for Workload %s, which belongs to somebody else, to go", want.GetName()))
		return true, nil
	case !found.GetDeletionTimestamp().IsZero():
		return true, nil
	case found.GetAnnotations()[kueueSpecAnnotation] != want.GetAnnotations()[kueueSpecAnnotation]: // the experiment was edited meanwhile
		return true, r.deleteOne(ctx, found)
	}
	return true, r.followWorkload(ctx, s, found)
}

// followWorkload does what Kueue says of a queued experiment's Workload.
func (r *Reconciler) followWorkload(ctx context.Context, s *scope, workload *unstructured.Unstructured) error {
	admitted := conditionOf(workload, workloadAdmitted)
	evicted := conditionOf(workload, workloadEvicted)
	reserved := conditionOf(workload, workloadQuotaReserved)
	active, told, _ := unstructured.NestedBool(workload.Object, "spec", "active")
	switch {
	case told && !active:
		s.waitForKueue(ReasonKueueInactive, fmt.Sprintf("its Workload %s is not active%s: set spec.active of it", workload.GetName(), messageSuffix(evicted)))
	case evicted.Status == metav1.ConditionTrue:
		s.waitForKueue(ReasonWaitingForKueue, "Kueue has evicted it before it started"+messageSuffix(evicted))
	case admitted.Status == metav1.ConditionTrue:
		by, _, _ := unstructured.NestedString(workload.Object, "status", "admission", "clusterQueue")
		r.queue.holdRoom(s.experiment.UID, s.now)
		s.beginProvisioning("Kueue has admitted it by ClusterQueue " + by)
		s.requeueIn = 0
		s.requeueAfter(0)
	default:
		s.waitForKueue(ReasonWaitingForKueue, fmt.Sprintf("waiting for Kueue to admit it by LocalQueue %s%s", s.experiment.Spec.QueueName, messageSuffix(reserved)))
	}
	if evicted.Status == metav1.ConditionTrue && reserved.Status == metav1.ConditionTrue {
		return r.releaseQuota(ctx, workload, evicted, s.now)
	}
	return nil
}

// releaseQuota the quota of a Workload that was evicted before its experiment began. Kueue leaves that to whoever runs the pods, and there are
// none: the same conditions are set as Kueue's job framework sets. It is Kueue that lets it queue again.
func (r *Reconciler) releaseQuota(ctx context.Context, workload *unstructured.Unstructured, evicted metav1.Condition, now time.Time) error {
	after := workload.DeepCopy()
	unstructured.RemoveNestedField(after.Object, "status", "admission")
	again := metav1.ConditionFalse // after a while, or when what stopped it is mended: Kueue sets it then
	if evicted.Reason == "Preempted" || evicted.Reason == "NodeFailures" {
		again = metav1.ConditionTrue
	}
	for _, c := range []metav1.Condition{
		{Type: workloadQuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending", Message: evicted.Message},
		{Type: workloadAdmitted, Status: metav1.ConditionFalse, Reason: "NoReservation", Message: "The workload has no reservation"},
		{Type: workloadRequeued, Status: again, Reason: evicted.Reason, Message: evicted.Message},
	} {
		if err := setConditionOf(after, c, now); err != nil {
			return err
		}
	}
	return r.patchWorkloadStatus(ctx, workload, after)
}

// patchWorkloadStatus writes its status, if nobody has meanwhile.
func (r *Reconciler) patchWorkloadStatus(ctx context.Context, before, after *unstructured.Unstructured) error {
	err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return ignoreConflictOrNotFound(err)
}

// checkKueueEviction looks after the Workload of an experiment that has begun. A run that is interrupted measures nothing, and cannot go on later: one
// that Kueue evicts fails. Its pods go, and then its Workload, which is when Kueue has the quota back.
func (r *Reconciler) checkKueueEviction(ctx context.Context, s *scope) (bool, error) {
	begun := s.phase() == v1alpha1.PhaseProvisioning || s.phase() == v1alpha1.PhaseRunning
	if s.experiment.Spec.QueueName == "" || !begun || s.failure() != nil || !r.kueueChecks.isTime(s) {
		return false, nil
	}
	found, err := r.findWorkload(ctx, s.experiment)
	switch {
	case meta.IsNoMatchError(err): // it was uninstalled meanwhile, and decides nothing any more
		return false, nil
	case apierrors.IsNotFound(err):
		s.fail(ReasonEvicted, "its Workload %s was deleted, and its quota with it", workloadName(s.experiment))
		return true, nil
	case err != nil: // a run goes on while Kueue is away
		log.FromContext(ctx).Info("the Workload cannot be read, and is read again", "error", err.Error())
		return false, nil
	}
	evicted, admitted := conditionOf(found, workloadEvicted), conditionOf(found, workloadAdmitted)
	switch {
	case evicted.Status == metav1.ConditionTrue:
		s.fail(ReasonEvicted, "Kueue has evicted it%s", messageSuffix(evicted))
	case admitted.Status != metav1.ConditionTrue:
		s.fail(ReasonEvicted, "Kueue does not admit it any more%s", messageSuffix(admitted))
	case s.phase() == v1alpha1.PhaseRunning && conditionOf(found, workloadPodsReady).Status != metav1.ConditionTrue:
		return false, r.setPodsReady(ctx, s, found)
	}
	return s.justFailed, nil
}

// setPodsReady tells Kueue that all nodes are up: it may be configured to evict what is not ready in time.
func (r *Reconciler) setPodsReady(ctx context.Context, s *scope, workload *unstructured.Unstructured) error {
	after := workload.DeepCopy()
	ready := metav1.Condition{Type: workloadPodsReady, Status: metav1.ConditionTrue, Reason: "Started", Message: "All nodes are ready"}
	if err := setConditionOf(after, ready, s.now); err != nil {
		return err
	}
	return r.patchWorkloadStatus(ctx, workload, after)
}

// findWorkload of an experiment that is not about to go.
func (r *Reconciler) findWorkload(ctx context.Context, e *v1alpha1.Experiment) (*unstructured.Unstructured, error) {
	kind, err := r.kueueKind()
	if err != nil {
		return nil, err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	key := client.ObjectKey{Namespace: e.Namespace, Name: workloadName(e)}
	if err := r.Live.Get(ctx, key, found); err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(found, e) || !found.GetDeletionTimestamp().IsZero() {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: kueueWorkload.Group, Resource: "workloads"}, key.Name)
	}
	return found, nil
}

// checkTimes are when the Workloads of those that have begun were looked at last: they are looked at no more often than kueuePoll.
type checkTimes struct {
	once sync.Once
	last *lru.Cache
}

func (l *checkTimes) isTime(s *scope) bool {
	l.once.Do(func() { l.last = lru.New(maxCompiledSpecs) })
	s.requeueAfter(kueuePoll)
	if last, found := l.last.Get(s.experiment.UID); found && s.now.Sub(last.(time.Time)) < kueuePoll && !s.now.Before(last.(time.Time)) {
		return false
	}
	l.last.Add(s.experiment.UID, s.now)
	return true
}

func messageSuffix(c metav1.Condition) string {
	if c.Message == "" {
		return ""
	}
	return ": " + shorten(c.Message)
}

func (s *scope) waitForKueue(reason, message string) {
	s.experiment.Status.Message = message
	before := meta.FindStatusCondition(s.experiment.Status.Conditions, v1alpha1.ConditionAdmitted)
	tell := before == nil || before.Reason != reason
	s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionFalse, reason, message)
	if tell {
		s.warningEvent(reason, "%s", message)
	}
}

// conditionOf an object; empty where it has none of the type, or what is there is none.
func conditionOf(u *unstructured.Unstructured, kind string) (found metav1.Condition) {
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

// setConditionOf an object. Its time stays where its status does.
func setConditionOf(u *unstructured.Unstructured, c metav1.Condition, now time.Time) error {
	entries, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	c.LastTransitionTime, c.ObservedGeneration = metav1.NewTime(now), u.GetGeneration()
	if before := conditionOf(u, c.Type); before.Status == c.Status {
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

// workload asks Kueue for room for all nodes, or none.
func (r *Reconciler) workload(s *scope) (*unstructured.Unstructured, error) {
	kind, err := r.kueueKind()
	if err != nil {
		return nil, err
	}
	sets, err := podSets(render.Footprints(s.renderInput()))
	if err != nil {
		return nil, err
	}
	e := s.experiment
	spec := map[string]any{"queueName": e.Spec.QueueName, "active": true, "priority": int64(e.Spec.Priority), "podSets": sets}
	w := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	w.SetGroupVersionKind(kind)
	w.SetNamespace(e.Namespace)
	w.SetName(workloadName(e))
	w.SetLabels(map[string]string{v1alpha1.LabelExperimentUID: string(e.UID), "app.kubernetes.io/managed-by": render.ManagedByValue})
	w.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(e, v1alpha1.GroupVersion.WithKind("Experiment"))})
	hash := fnv.New64a()
	fmt.Fprint(hash, spec) // maps are printed in the order of their keys
	w.SetAnnotations(map[string]string{kueueSpecAnnotation: fmt.Sprintf("%016x", hash.Sum64())})
	return w, nil
}

// workloadName of an experiment's Workload: a namesake's goes by another one.
func workloadName(e *v1alpha1.Experiment) string {
	hash := fnv.New32a()
	fmt.Fprint(hash, e.UID)
	return fmt.Sprintf("experiment-%s-%08x", e.Name, hash.Sum32())
}

// podSets of equal pods, as far as a Workload may have so many; the smallest share the last one, each of them as large as the largest.
func podSets(pods []*corev1.Pod) ([]any, error) {
	type set struct {
		pod   *corev1.Pod
		needs corev1.ResourceList
		count int64
	}
	var sets []*set
	for _, pod := range pods {
		needs := queue.Requests(&pod.Spec)
		delete(needs, render.TunDevice) // no ClusterQueue counts it, and one that did not would never admit a machine
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

// leaveKueue gives back what Kueue has admitted an experiment for, or takes back what it was asked for before somebody took queueName out.
func (r *Reconciler) leaveKueue(ctx context.Context, e *v1alpha1.Experiment) error {
	admitted := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted)
	asked := admitted != nil && (admitted.Reason == ReasonWaitingForKueue || admitted.Reason == ReasonKueueInactive)
	if e.Spec.QueueName == "" && !asked {
		return nil
	}
	found, err := r.findWorkload(ctx, e)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // it was uninstalled meanwhile, or there is none
	}
	if err != nil {
		return err
	}
	return r.deleteOne(ctx, found)
}
