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
	"vignette.dev/vignette/operators/experiment/queue"
)

// roomInterval between two looks for room, for changes that no watch tells.
const roomInterval = 15 * time.Second

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

// rest is how long it is to the next try as long as no quota changes.
func (l *refusals) rest(uid types.UID, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.by[uid].until.Sub(now), 0)
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
	return quotaWords(quotas.Items, e.Namespace), nil
}

func quotaWords(quotas []corev1.ResourceQuota, namespace string) string {
	var words []string
	for _, quota := range quotas {
		if quota.Namespace != namespace {
			continue
		}
		for name, hard := range quota.Spec.Hard {
			words = append(words, fmt.Sprintf("%s %s %s %v", quota.UID, name, hard.String(), quota.Spec.Scopes))
		}
	}
	slices.Sort(words)
	return strings.Join(words, "\n")
}

// ordinal of a number of times.
func ordinal(times int) string {
	if times == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", times)
}

// admit lets an experiment out of the queue once it is its turn and there is room for all of its nodes.
func (r *Reconciler) admit(ctx context.Context, s *scope) (bool, error) {
	if s.phase() != v1alpha1.PhaseQueued {
		return false, nil
	}
	if left, err := r.deleteChildren(ctx, s); err != nil || len(left) > 0 {
		s.after(pollInterval) // it was in Provisioning before and could not stay there
		return true, err
	}
	if s.experiment.Spec.QueueName != "" {
		return r.admitByKueue(ctx, s)
	}
	if err := r.leaveKueue(ctx, s.experiment); err != nil {
		return true, err
	}
	verdict, decided, err := r.verdict(ctx, s)
	if err != nil || !decided {
		return true, err
	}
	s.experiment.Status.Queue = queueStatus(&verdict)
	if !verdict.Admitted {
		r.wait(s, &verdict)
		return true, nil
	}
	s.admitted(verdict.Message)
	return true, nil
}

// wait in the queue, and say why. The event tells a new reason only: what lacks may change often.
func (r *Reconciler) wait(s *scope, verdict *queue.Verdict) {
	if verdict.Reason == queue.ReasonQuotaRefused { // the refusal's own message stays
		s.after(r.refused.rest(s.experiment.UID, s.now))
		return
	}
	status := &s.experiment.Status
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAdmitted)
	tell := before == nil || before.Reason != verdict.Reason
	status.Message = verdict.Message
	s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionFalse, verdict.Reason, verdict.Message)
	if tell {
		s.warn(verdict.Reason, "%s", verdict.Message)
	}
}

// admitted begins the run.
func (s *scope) admitted(message string) {
	status := &s.experiment.Status
	s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionTrue, queue.ReasonAdmitted, message)
	s.normal(queue.ReasonAdmitted, "%s", message)
	now := metav1.NewTime(s.now)
	status.Phase, status.StartTime, status.Message, status.Queue = v1alpha1.PhaseProvisioning, &now, creatingNodes, nil
	if !s.timeline.Live() {
		status.Progress = "0%"
	}
	// From here on the spec must not change: first the phase is written, then objects are made.
}
