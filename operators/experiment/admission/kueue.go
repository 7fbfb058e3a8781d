package admission

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/kueue"
	"vignette.dev/vignette/operators/experiment/scope"
)

// kueuePoll is the time between two reads of a Workload. There is no watch, as most clusters have no Kueue.
const kueuePoll = 3 * time.Second

// admitByKueue admits an experiment once Kueue has admitted its Workload.
func (a *Admitter) admitByKueue(ctx context.Context, s *scope.Scope) (bool, error) {
	s.Experiment.Status.Queue = nil
	quotas, err := a.Queue.quotaFingerprint(ctx, s.Experiment)
	if err != nil {
		return true, err
	}
	if wait := a.Queue.setbacks.retryIn(s.Experiment.UID, s.Now, quotas); wait > 0 {
		s.RequeueAfter(wait)
		return true, nil
	}
	want, err := a.Workloads.Want(s)
	if err != nil {
		return true, err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(want.GroupVersionKind())
	s.RequeueAfter(kueuePoll)
	err = a.Objects.Live.Get(ctx, client.ObjectKeyFromObject(want), found)
	switch {
	case apierrors.IsNotFound(err):
		reportWaiting(s, scope.ReasonWaitingForKueue, fmt.Sprintf("waiting for Kueue to admit it by LocalQueue %s", s.Experiment.Spec.QueueName))
		if err = a.Objects.Client.Create(ctx, want); apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return true, err
	case err != nil:
		return true, err
	case !metav1.IsControlledBy(found, s.Experiment):
		reportWaiting(s, scope.ReasonWorkloadNameTaken, fmt.Sprintf("waiting for the deletion of Workload %s, which belongs to somebody else", want.GetName()))
		return true, nil
	case !found.GetDeletionTimestamp().IsZero():
		return true, nil
	case found.GetAnnotations()[kueue.SpecAnnotation] != want.GetAnnotations()[kueue.SpecAnnotation]: // the experiment was edited meanwhile
		return true, a.Objects.Delete(ctx, found)
	}
	return true, a.followWorkload(ctx, s, found)
}

// followWorkload acts on the conditions of a queued experiment's Workload.
func (a *Admitter) followWorkload(ctx context.Context, s *scope.Scope, workload *unstructured.Unstructured) error {
	admitted := kueue.ConditionOf(workload, kueue.Admitted)
	evicted := kueue.ConditionOf(workload, kueue.Evicted)
	reserved := kueue.ConditionOf(workload, kueue.QuotaReserved)
	active, isSet, _ := unstructured.NestedBool(workload.Object, "spec", "active")
	switch {
	case isSet && !active:
		reportWaiting(s, scope.ReasonKueueInactive, fmt.Sprintf("its Workload %s is not active%s: set its spec.active", workload.GetName(), messageSuffix(evicted)))
	case evicted.Status == metav1.ConditionTrue:
		reportWaiting(s, scope.ReasonWaitingForKueue, "Kueue has evicted it before it started"+messageSuffix(evicted))
	case admitted.Status == metav1.ConditionTrue:
		by, _, _ := unstructured.NestedString(workload.Object, "status", "admission", "clusterQueue")
		a.Queue.holdRoom(s.Experiment.UID, s.Now)
		beginProvisioning(s, "Kueue has admitted it by ClusterQueue "+by)
		s.RequeueIn = 0
		s.RequeueAfter(0)
	default:
		reportWaiting(s, scope.ReasonWaitingForKueue, fmt.Sprintf("waiting for Kueue to admit it by LocalQueue %s%s", s.Experiment.Spec.QueueName, messageSuffix(reserved)))
	}
	if evicted.Status == metav1.ConditionTrue && reserved.Status == metav1.ConditionTrue {
		return a.Workloads.ReleaseQuota(ctx, workload, evicted, s.Now)
	}
	return nil
}

// CheckEviction fails a started experiment that Kueue has evicted, because an interrupted run cannot continue. Its
// pods are deleted, and then its Workload, which returns the quota to Kueue.
func (a *Admitter) CheckEviction(ctx context.Context, s *scope.Scope) (bool, error) {
	started := s.Phase() == v1alpha1.PhaseProvisioning || s.Phase() == v1alpha1.PhaseRunning
	if s.Experiment.Spec.QueueName == "" || !started || s.Failure() != nil || !a.kueueChecks.isTime(s) {
		return false, nil
	}
	found, err := a.Workloads.Find(ctx, s.Experiment)
	switch {
	case meta.IsNoMatchError(err): // Kueue was uninstalled and has no say any more
		return false, nil
	case apierrors.IsNotFound(err):
		s.Fail(scope.ReasonEvicted, "its Workload %s was deleted, and its quota with it", kueue.Name(s.Experiment))
		return true, nil
	case err != nil: // a run continues while Kueue is away
		log.FromContext(ctx).Info("the Workload cannot be read; trying again", "error", err.Error())
		return false, nil
	}
	evicted, admitted := kueue.ConditionOf(found, kueue.Evicted), kueue.ConditionOf(found, kueue.Admitted)
	switch {
	case evicted.Status == metav1.ConditionTrue:
		s.Fail(scope.ReasonEvicted, "Kueue has evicted it%s", messageSuffix(evicted))
	case admitted.Status != metav1.ConditionTrue:
		s.Fail(scope.ReasonEvicted, "Kueue does not admit it any more%s", messageSuffix(admitted))
	case s.Phase() == v1alpha1.PhaseRunning && kueue.ConditionOf(found, kueue.PodsReady).Status != metav1.ConditionTrue:
		return false, a.Workloads.SetPodsReady(ctx, s, found)
	}
	return s.JustFailed, nil
}

// maxChecked limits the experiments whose last check is remembered.
const maxChecked = 2000

// checkTimes are the times of the last checks of Workloads, to check no more often than kueuePoll.
type checkTimes struct {
	once sync.Once
	last *lru.Cache
}

func (l *checkTimes) isTime(s *scope.Scope) bool {
	l.once.Do(func() { l.last = lru.New(maxChecked) })
	s.RequeueAfter(kueuePoll)
	if last, found := l.last.Get(s.Experiment.UID); found && s.Now.Sub(last.(time.Time)) < kueuePoll && !s.Now.Before(last.(time.Time)) {
		return false
	}
	l.last.Add(s.Experiment.UID, s.Now)
	return true
}

func messageSuffix(c metav1.Condition) string {
	if c.Message == "" {
		return ""
	}
	return ": " + scope.Shorten(c.Message)
}
