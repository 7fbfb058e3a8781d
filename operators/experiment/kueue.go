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

// Reasons of experiments that Kueue admits.
const (
	// ReasonKueueMissing is a reason of Accepted: spec.queueName is set, and the cluster has no Kueue.
	ReasonKueueMissing = "KueueNotInstalled"
	// ReasonWaitingForKueue is a reason of Admitted: Kueue has not admitted the experiment's Workload yet.
	ReasonWaitingForKueue = "WaitingForKueue"
	// ReasonKueueInactive is a reason of Admitted: the Workload was deactivated and only a person can activate it.
	ReasonKueueInactive = "KueueDeactivated"
	// ReasonEvicted is a reason of Failure: Kueue has evicted a started run.
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
	// kueuePoll is the time between two reads of a Workload. There is no watch, as most clusters have no Kueue.
	kueuePoll = 3 * time.Second
	// maxPodSets is Kueue's limit of a Workload.
	maxPodSets = 8
	// kueueSpecAnnotation is the hash of the spec that a Workload was created for.
	kueueSpecAnnotation = "vignette.dev/made-for"
)

var kueueWorkload = schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "Workload"}

// kueueKind is Workload in the version that the cluster serves. Both have the fields used here.
func (r *Reconciler) kueueKind() (schema.GroupVersionKind, error) {
	mapping, err := r.Client.RESTMapper().RESTMapping(kueueWorkload, "v1beta1", "v1beta2")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return mapping.GroupVersionKind, nil
}

// checkKueueInstalled adds a finding if an experiment names a Kueue queue in a cluster without Kueue.
func (r *Reconciler) checkKueueInstalled(s *scope) error {
	name := s.experiment.Spec.QueueName
	if name == "" || s.phase() == v1alpha1.PhaseProvisioning { // it has been admitted
		return nil
	}
	_, err := r.kueueKind()
	if meta.IsNoMatchError(err) {
		s.addFinding(ReasonKueueMissing, field.Invalid(field.NewPath("spec", "queueName"), name,
			"Kueue is not installed in this cluster: install it, or leave this out to use vignette's own queue"))
		return nil
	}
	return err
}

// admitByKueue admits an experiment once Kueue has admitted its Workload.
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
		s.waitForKueue(ReasonWaitingForKueue, fmt.Sprintf("waiting for the deletion of Workload %s, which belongs to somebody else", want.GetName()))
		return true, nil
	case !found.GetDeletionTimestamp().IsZero():
		return true, nil
	case found.GetAnnotations()[kueueSpecAnnotation] != want.GetAnnotations()[kueueSpecAnnotation]: // the experiment was edited meanwhile
		return true, r.deleteOne(ctx, found)
	}
	return true, r.followWorkload(ctx, s, found)
}

// followWorkload acts on the conditions of a queued experiment's Workload.
func (r *Reconciler) followWorkload(ctx context.Context, s *scope, workload *unstructured.Unstructured) error {
	admitted := conditionOf(workload, workloadAdmitted)
	evicted := conditionOf(workload, workloadEvicted)
	reserved := conditionOf(workload, workloadQuotaReserved)
	active, isSet, _ := unstructured.NestedBool(workload.Object, "spec", "active")
	switch {
	case isSet && !active:
		s.waitForKueue(ReasonKueueInactive, fmt.Sprintf("its Workload %s is not active%s: set its spec.active", workload.GetName(), messageSuffix(evicted)))
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

// releaseQuota releases the quota of a Workload that was evicted before its experiment started. Kueue expects that from
// the owner of the pods. The conditions are those of Kueue's job framework, after which Kueue queues the Workload again.
func (r *Reconciler) releaseQuota(ctx context.Context, workload *unstructured.Unstructured, evicted metav1.Condition, now time.Time) error {
	after := workload.DeepCopy()
	unstructured.RemoveNestedField(after.Object, "status", "admission")
	requeued := metav1.ConditionFalse // for other reasons Kueue sets it later
	if evicted.Reason == "Preempted" || evicted.Reason == "NodeFailures" {
		requeued = metav1.ConditionTrue
	}
	for _, c := range []metav1.Condition{
		{Type: workloadQuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending", Message: evicted.Message},
		{Type: workloadAdmitted, Status: metav1.ConditionFalse, Reason: "NoReservation", Message: "The workload has no reservation"},
		{Type: workloadRequeued, Status: requeued, Reason: evicted.Reason, Message: evicted.Message},
	} {
		if err := setConditionOf(after, c, now); err != nil {
			return err
		}
	}
	return r.patchWorkloadStatus(ctx, workload, after)
}

// patchWorkloadStatus writes the status of a Workload, unless somebody else has changed the Workload.
func (r *Reconciler) patchWorkloadStatus(ctx context.Context, before, after *unstructured.Unstructured) error {
	err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return ignoreConflictOrNotFound(err)
}

// checkKueueEviction fails a started experiment that Kueue has evicted, because an interrupted run cannot continue. Its
// pods are deleted, and then its Workload, which returns the quota to Kueue.
func (r *Reconciler) checkKueueEviction(ctx context.Context, s *scope) (bool, error) {
	started := s.phase() == v1alpha1.PhaseProvisioning || s.phase() == v1alpha1.PhaseRunning
	if s.experiment.Spec.QueueName == "" || !started || s.failure() != nil || !r.kueueChecks.isTime(s) {
		return false, nil
	}
	found, err := r.findWorkload(ctx, s.experiment)
	switch {
	case meta.IsNoMatchError(err): // Kueue was uninstalled and has no say any more
		return false, nil
	case apierrors.IsNotFound(err):
		s.fail(ReasonEvicted, "its Workload %s was deleted, and its quota with it", workloadName(s.experiment))
		return true, nil
	case err != nil: // a run continues while Kueue is away
		log.FromContext(ctx).Info("the Workload cannot be read; trying again", "error", err.Error())
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

// setPodsReady reports to Kueue that all nodes are ready. Kueue may be configured to evict what is not ready in time.
func (r *Reconciler) setPodsReady(ctx context.Context, s *scope, workload *unstructured.Unstructured) error {
	after := workload.DeepCopy()
	ready := metav1.Condition{Type: workloadPodsReady, Status: metav1.ConditionTrue, Reason: "Started", Message: "All nodes are ready"}
	if err := setConditionOf(after, ready, s.now); err != nil {
		return err
	}
	return r.patchWorkloadStatus(ctx, workload, after)
}

// findWorkload returns the experiment's Workload, unless it is being deleted.
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

// checkTimes are the times of the last checks of Workloads, to check no more often than kueuePoll.
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
	isNew := before == nil || before.Reason != reason
	s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionFalse, reason, message)
	if isNew {
		s.warningEvent(reason, "%s", message)
	}
}

// conditionOf returns an object's condition, empty if there is no valid one of the type.
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

// setConditionOf sets an object's condition. Its transition time changes only with its status.
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

// workload is the experiment's Workload, with which Kueue reserves room for all nodes or none.
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

// workloadName is the name of the experiment's Workload. The hash separates it from that of an earlier experiment of the
// same name.
func workloadName(e *v1alpha1.Experiment) string {
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

// leaveKueue deletes the experiment's Workload, also if somebody has removed queueName since.
func (r *Reconciler) leaveKueue(ctx context.Context, e *v1alpha1.Experiment) error {
	admitted := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted)
	hasWorkload := admitted != nil && (admitted.Reason == ReasonWaitingForKueue || admitted.Reason == ReasonKueueInactive)
	if e.Spec.QueueName == "" && !hasWorkload {
		return nil
	}
	found, err := r.findWorkload(ctx, e)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // Kueue was uninstalled, or there is no Workload
	}
	if err != nil {
		return err
	}
	return r.deleteOne(ctx, found)
}
