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

// roomCheckInterval between two looks for room, for changes that no watch tells.
const roomCheckInterval = 15 * time.Second

// quotaRefusals count how often the API server refused pods for which there seemed to be room: a scoped quota, or one
// that a LimitRange's defaults use up, is its own to judge. Each time the next try comes later, until a
// quota changes. After a restart the counting begins anew.
type quotaRefusals struct {
	mu           sync.Mutex
	byExperiment map[types.UID]quotaRefusal
}

type quotaRefusal struct {
	times int
	until time.Time
	// quotas of the namespace at that time.
	quotas string
}

// maxRetryDelay between two tries.
const maxRetryDelay = 5 * time.Minute

// add one more refusal; it tells how many there were, and how long to wait.
func (l *quotaRefusals) add(uid types.UID, now time.Time, quotas string) (times int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byExperiment == nil {
		l.byExperiment = map[types.UID]quotaRefusal{}
	}
	times = l.byExperiment[uid].times + 1
	wait = min(roomCheckInterval<<min(times-1, 8), maxRetryDelay)
	l.byExperiment[uid] = quotaRefusal{times: times, until: now.Add(wait), quotas: quotas}
	return times, wait
}

// retryIn is how long it is to the next try; 0 where it may be made now.
func (l *quotaRefusals) retryIn(uid types.UID, now time.Time, quotas string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, found := l.byExperiment[uid]
	if !found || last.quotas != quotas {
		return 0
	}
	return max(last.until.Sub(now), 0)
}

// retryInUnchanged is how long it is to the next try as long as no quota changes.
func (l *quotaRefusals) retryInUnchanged(uid types.UID, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.byExperiment[uid].until.Sub(now), 0)
}

func (l *quotaRefusals) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byExperiment, uid)
}

// quotaFingerprint a namespace in words: what they allow, not what is used of it.
func (r *Reconciler) quotaFingerprint(ctx context.Context, e *v1alpha1.Experiment) (string, error) {
	var quotas corev1.ResourceQuotaList
	if err := r.Client.List(ctx, &quotas, client.InNamespace(e.Namespace)); err != nil {
		return "", err
	}
	return fingerprintQuotas(quotas.Items, e.Namespace), nil
}

func fingerprintQuotas(quotas []corev1.ResourceQuota, namespace string) string {
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

// timesInWords of a number of times.
func timesInWords(times int) string {
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
		s.requeueAfter(pollInterval) // it was in Provisioning before and could not stay there
		return true, err
	}
	if s.experiment.Spec.QueueName != "" {
		return r.admitByKueue(ctx, s)
	}
	if err := r.leaveKueue(ctx, s.experiment); err != nil {
		return true, err
	}
	verdict, decided, err := r.queueDecision(ctx, s)
	if err != nil || !decided {
		return true, err
	}
	s.experiment.Status.Queue = queueStatus(&verdict)
	if !verdict.Admitted {
		r.stayQueued(s, &verdict)
		return true, nil
	}
	s.beginProvisioning(verdict.Message)
	return true, nil
}

// stayQueued in the queue, and say why. The event tells a new reason only: what lacks may change often.
func (r *Reconciler) stayQueued(s *scope, verdict *queue.Decision) {
	if verdict.Reason == queue.ReasonQuotaRefused { // the refusal's own message stays
		s.requeueAfter(r.quotaRefusals.retryInUnchanged(s.experiment.UID, s.now))
		return
	}
	status := &s.experiment.Status
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAdmitted)
	tell := before == nil || before.Reason != verdict.Reason
	status.Message = verdict.Message
	s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionFalse, verdict.Reason, verdict.Message)
	if tell {
		s.warningEvent(verdict.Reason, "%s", verdict.Message)
	}
}

// beginProvisioning begins the run.
func (s *scope) beginProvisioning(message string) {
	status := &s.experiment.Status
	s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionTrue, queue.ReasonAdmitted, message)
	s.normalEvent(queue.ReasonAdmitted, "%s", message)
	now := metav1.NewTime(s.now)
	status.Phase, status.StartTime, status.Message, status.Queue = v1alpha1.PhaseProvisioning, &now, creatingNodes, nil
	if !s.timeline.Live() {
		status.Progress = "0%"
	}
	// From here on the spec must not change: first the phase is written, then objects are made.
}
