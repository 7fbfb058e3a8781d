package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/room"
)

// roomInterval between two looks for room, for changes that no watch tells.
const roomInterval = 15 * time.Second

// reservations are the pods of admitted experiments that are not created yet. They close the gap
// between two decisions; after a restart the pods exist or are refused, which is handled too.
type reservations struct {
	mu   sync.Mutex
	pods map[types.UID][]*corev1.Pod
}

func (l *reservations) release(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, uid)
}

// refusals count how often the API server refused pods for which there seemed to be room: a scoped quota, or one
// that a LimitRange's defaults use up, is its own to judge. Each time the next try comes later, until a
// quota changes. After a restart the counting begins anew.
type refusals struct {
	mu sync.Mutex
	by map[types.UID]refusal
}

type refusal struct {
	times int
	until time.Time
	// quotas of the namespace at that time.
	quotas string
}

// mostPatience between two tries.
const mostPatience = 5 * time.Minute

// note one more refusal; it tells how many there were, and how long to wait.
func (l *refusals) note(uid types.UID, now time.Time, quotas string) (times int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[types.UID]refusal{}
	}
	times = l.by[uid].times + 1
	wait = min(roomInterval<<min(times-1, 8), mostPatience)
	l.by[uid] = refusal{times: times, until: now.Add(wait), quotas: quotas}
	return times, wait
}

// wait is how long it is to the next try; 0 where it may be made now.
func (l *refusals) wait(uid types.UID, now time.Time, quotas string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, found := l.by[uid]
	if !found || last.quotas != quotas {
		return 0
	}
	return max(last.until.Sub(now), 0)
}

func (l *refusals) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, uid)
}

// quotasOf a namespace in words: what they allow, not what is used of it.
func (r *Reconciler) quotasOf(ctx context.Context, e *v1alpha1.Experiment) (string, error) {
	var quotas corev1.ResourceQuotaList
	if err := r.Client.List(ctx, &quotas, client.InNamespace(e.Namespace)); err != nil {
		return "", err
	}
	var words []string
	for _, quota := range quotas.Items {
		for name, hard := range quota.Spec.Hard {
			words = append(words, fmt.Sprintf("%s %s %s %v", quota.UID, name, hard.String(), quota.Spec.Scopes))
		}
	}
	slices.Sort(words)
	return strings.Join(words, "\n"), nil
}

// ordinal of a number of times.
func ordinal(times int) string {
	if times == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", times)
}

// admit lets an experiment out of the queue once there is room for all of its nodes.
func (r *Reconciler) admit(ctx context.Context, s *scope) (bool, error) {
	if s.phase() != v1alpha1.PhaseQueued {
		return false, nil
	}
	if left, err := r.deleteChildren(ctx, s); err != nil || len(left) > 0 {
		s.after(pollInterval) // it was in Provisioning before and could not stay there
		return true, err
	}
	quotas, err := r.quotasOf(ctx, s.experiment)
	if err != nil {
		return true, err
	}
	if wait := r.refused.wait(s.experiment.UID, s.now, quotas); wait > 0 {
		s.after(wait)
		return true, nil
	}
	pods := render.Pods(s.input())
	r.reserved.mu.Lock()
	defer r.reserved.mu.Unlock()
	in, err := r.roomInput(ctx, s, pods)
	if err != nil {
		return true, err
	}
	verdict := room.Decide(in)
	status := &s.experiment.Status
	if !verdict.Admitted {
		status.Message = verdict.Message
		if s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionFalse, verdict.Reason, verdict.Message) {
			s.warn(verdict.Reason, "%s", verdict.Message)
		}
		s.after(roomInterval)
		return true, nil
	}
	if r.reserved.pods == nil {
		r.reserved.pods = map[types.UID][]*corev1.Pod{}
	}
	r.reserved.pods[s.experiment.UID] = pods
	s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionTrue, verdict.Reason, verdict.Message)
	s.normal(verdict.Reason, "%s", verdict.Message)
	now := metav1.NewTime(s.now)
	status.Phase, status.StartTime, status.Message = v1alpha1.PhaseProvisioning, &now, "creating the nodes"
	if !s.timeline.Live() {
		status.Progress = "0%"
	}
	// From here on the spec must not change: first the phase is written, then objects are made.
	return true, nil
}

func (r *Reconciler) roomInput(ctx context.Context, s *scope, pods []*corev1.Pod) (room.Input, error) {
	e := s.experiment
	in := room.Input{Namespace: e.Namespace, Name: e.Name, Created: e.CreationTimestamp.Time, Pods: pods}
	var quotas corev1.ResourceQuotaList
	if err := r.Client.List(ctx, &quotas, client.InNamespace(e.Namespace)); err != nil {
		return in, err
	}
	in.Quotas = quotas.Items
	slices.SortFunc(in.Quotas, func(a, b corev1.ResourceQuota) int { return strings.Compare(a.Name, b.Name) })
	var err error
	if in.Waiters, err = r.waiters(ctx, e); err != nil {
		return in, err
	}
	in.Hosts, err = r.hosts(ctx, e.UID)
	for uid, reserved := range r.reserved.pods {
		if uid != e.UID && reserved[0].Namespace == e.Namespace {
			in.Reserved = append(in.Reserved, reserved...)
		}
	}
	return in, err
}

func (r *Reconciler) hosts(ctx context.Context, self types.UID) ([]room.Host, error) {
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes); err != nil {
		return nil, err
	}
	// Only a queued experiment asks, so all the cluster's pods need no cache of their own.
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods); err != nil {
		return nil, err
	}
	var reserved []*corev1.Pod
	for uid, of := range r.reserved.pods {
		if uid != self {
			reserved = append(reserved, of...)
		}
	}
	return room.Hosts(nodes.Items, pods.Items, reserved), nil
}

func (r *Reconciler) waiters(ctx context.Context, self *v1alpha1.Experiment) ([]room.Waiter, error) {
	var all v1alpha1.ExperimentList
	if err := r.Client.List(ctx, &all); err != nil {
		return nil, err
	}
	var waiters []room.Waiter
	for _, e := range all.Items {
		accepted := meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionAccepted)
		if e.UID == self.UID || e.Status.Phase != v1alpha1.PhaseQueued || !accepted || !e.DeletionTimestamp.IsZero() {
			continue
		}
		w := room.Waiter{Namespace: e.Namespace, Name: e.Name, Created: e.CreationTimestamp.Time}
		if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted); c != nil {
			w.Reason = c.Reason
		}
		waiters = append(waiters, w)
	}
	slices.SortFunc(waiters, func(a, b room.Waiter) int { return a.Created.Compare(b.Created) })
	return waiters, nil
}
