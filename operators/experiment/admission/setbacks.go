package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// roomCheckInterval is the time between two checks for room, for changes that no watch reports.
const roomCheckInterval = 15 * time.Second

// setbacks count how often the API server refused pods for which there seemed to be room, or hosts were too busy to start
// them. Only the API server can evaluate a scoped quota, or one that a LimitRange's defaults use up. Each setback delays
// the next try further, until a quota changes. A restart of the operator resets the counts.
type setbacks struct {
	mu           sync.Mutex
	byExperiment map[types.UID]setback
}

type setback struct {
	// refused is how often a quota refused the nodes, and unstarted how often a busy host did not start them.
	refused, unstarted int
	// start is the experiment's start of the last setback. A status that could not be written brings it here again.
	start time.Time
	until time.Time
	// quotas is the fingerprint of the namespace's quotas, and of the spec, at that time.
	quotas string
}

// maxRetryDelay is the longest time between two tries.
const maxRetryDelay = 5 * time.Minute

// add counts one more setback of an experiment that was admitted at start. It returns their number, of the same kind, and
// how long to wait.
func (l *setbacks) add(uid types.UID, refused bool, start, now time.Time, quotas string) (times int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byExperiment == nil {
		l.byExperiment = map[types.UID]setback{}
	}
	last := l.byExperiment[uid]
	counter := &last.unstarted
	if refused {
		counter = &last.refused
	}
	if start.IsZero() || !start.Equal(last.start) {
		*counter++
	}
	wait = min(roomCheckInterval<<min(*counter-1, 8), maxRetryDelay)
	last.start, last.until, last.quotas = start, now.Add(wait), quotas
	l.byExperiment[uid] = last
	return *counter, wait
}

// retryIn returns the time until the next try, 0 if it may be made now.
func (l *setbacks) retryIn(uid types.UID, now time.Time, quotas string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, found := l.byExperiment[uid]
	if !found || last.quotas != quotas {
		return 0
	}
	return max(last.until.Sub(now), 0)
}

// retryInUnchanged returns the time until the next try if no quota changes.
func (l *setbacks) retryInUnchanged(uid types.UID, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.byExperiment[uid].until.Sub(now), 0)
}

func (l *setbacks) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byExperiment, uid)
}

// quotaFingerprint describes what an experiment's quotas allow, without what is used of them, and its generation. A spec that
// was edited may fit.
func (l *Queue) quotaFingerprint(ctx context.Context, e *v1alpha1.Experiment) (string, error) {
	var quotas corev1.ResourceQuotaList
	if err := l.Client.List(ctx, &quotas, client.InNamespace(e.Namespace)); err != nil {
		return "", err
	}
	return ofGeneration(e, fingerprintQuotas(quotas.Items, e.Namespace)), nil
}

func ofGeneration(e *v1alpha1.Experiment, quotas string) string {
	return fmt.Sprintf("generation %d\n%s", e.Generation, quotas)
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

// timesInWords returns "once" or the number of times.
func timesInWords(times int) string {
	if times == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", times)
}
