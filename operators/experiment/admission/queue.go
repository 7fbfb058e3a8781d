package admission

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	needs "vignette.dev/vignette/internal/core/requirements"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/experiment/wakeup"
	"vignette.dev/vignette/operators/freshness"
)

const (
	// minQueueInterval is the shortest time between two decisions on the queue.
	minQueueInterval = time.Second
	// otherPodsMaxAge is the maximum age of the list of pods that belong to no experiment.
	otherPodsMaxAge = 5 * time.Second
	// admissionWriteTime is how long the write of an admission may take.
	admissionWriteTime = 10 * time.Second
	// maxWakeups is how many experiments one decision wakes. The others check regularly anyway.
	maxWakeups = 200
)

// Queue is the queue's state between two reconciliations. It follows from the cluster and is computed again after a
// restart. (If very unequal pods can be placed in many ways, the first may then be planned on other hosts, and later.)
type Queue struct {
	// Client reads from caches, Live from the API server.
	Client client.Client
	Live   client.Reader
	Clock  clock.PassiveClock
	// Render and StartLead decide what an experiment takes, and for how long.
	Render    render.Options
	StartLead time.Duration
	// Templates of an experiment's machines, with a fingerprint.
	Templates func(*v1alpha1.Experiment) (map[string]v1alpha1.VirtualMachine, string)
	// Written knows the newest versions of experiments.
	Written *freshness.Versions
	// Wakeups are requests to decide on others.
	Wakeups wakeup.Channel

	setbacks      setbacks
	mu            sync.Mutex
	resourceKinds *queue.ResourceKinds
	requirements  map[types.UID]requirements
	// justAdmitted are the times of admissions that the caches do not show yet.
	justAdmitted map[types.UID]time.Time
	// otherPods are the pods that belong to no experiment.
	otherPods       []corev1.Pod
	otherPodsListed time.Time

	// decisions are the last ones, from decidedAt. They took so long to make.
	decidedAt time.Time
	took      time.Duration
	decisions map[types.UID]queueDecision
	// outdated means that something has happened since that may have made room.
	outdated bool
	// first of the cluster and firstInNamespace are woken if there may be room.
	first            []types.NamespacedName
	firstInNamespace map[string]types.NamespacedName
}

// requirements of an experiment follow from its spec.
type requirements struct {
	needs.Needed
	generation int64
	// templates is the fingerprint of the templates used.
	templates string
}

type queueDecision struct {
	queue.Decision
	generation int64
}

// holdRoom reserves the room of an experiment that Kueue has admitted.
func (l *Queue) holdRoom(uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteAdmitted(uid, now)
}

// noteAdmitted records an admission whose write the caches do not show yet. The lock is held.
func (l *Queue) noteAdmitted(uid types.UID, now time.Time) {
	if l.justAdmitted == nil {
		l.justAdmitted = map[types.UID]time.Time{}
	}
	l.justAdmitted[uid] = now
}

// forget removes an experiment that holds no room, so that an old decision does not admit it again.
func (l *Queue) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.justAdmitted, uid)
	delete(l.requirements, uid)
	delete(l.decisions, uid)
}

// requirementsOf returns the requirements of an experiment, false if its spec is invalid.
func (l *Queue) requirementsOf(e *v1alpha1.Experiment) (needs.Needed, bool) {
	templates, fingerprint := l.Templates(e)
	if known, found := l.requirements[e.UID]; found && known.generation == e.Generation && known.templates == fingerprint {
		return known.Needed, known.Demand != nil
	}
	n := requirements{generation: e.Generation, templates: fingerprint}
	if needed, ok := needs.Of(e, l.Render, templates, l.StartLead); ok {
		n.Needed = needs.NeededOf(&needed, l.resourceKinds)
	}
	l.requirements[e.UID] = n
	return n.Needed, n.Demand != nil
}

// decision returns the last decision on an experiment, or a new one if that is too old. It returns none if the last is
// too recent for a new one. An admitted experiment holds its room from here on, whatever the caches show.
func (l *Queue) decision(ctx context.Context, s *scope.Scope) (decision queue.Decision, decided bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := s.Experiment
	delete(l.justAdmitted, e.UID) // it is still in the queue, so the write of its admission failed
	age := s.Now.Sub(l.decidedAt)
	fresh := l.decisions != nil && age >= 0 && age < l.interval()
	if !fresh {
		if err := l.decide(ctx, s); err != nil {
			return decision, false, err
		}
	}
	known, found := l.decisions[e.UID]
	if !found || known.generation != e.Generation {
		s.RequeueAfter(max(l.interval()-age, minQueueInterval))
		return decision, false, nil
	}
	if known.Admitted {
		l.noteAdmitted(e.UID, s.Now)
		return known.Decision, true, nil
	}
	s.RequeueAfter(l.recheckAfter(known.Position))
	if l.outdated {
		s.RequeueAfter(l.interval() - age)
	}
	return known.Decision, true, nil
}

// interval between two decisions, so that a long queue takes a tenth of the operator's time at most.
func (l *Queue) interval() time.Duration { return max(minQueueInterval, 10*l.took) }

// decide decides on all queued experiments and wakes those whose status changes.
func (l *Queue) decide(ctx context.Context, s *scope.Scope) error {
	began := l.Clock.Now()
	if l.resourceKinds == nil {
		l.resourceKinds, l.requirements = queue.NewResourceKinds(), map[types.UID]requirements{}
	}
	cluster, err := l.look(ctx, s)
	if err != nil {
		return err
	}
	snapshot, waiting := cluster.Snapshot()
	decisions := queue.Decide(snapshot)
	l.outdated = false
	l.decidedAt, l.decisions, l.first, l.firstInNamespace = s.Now, make(map[types.UID]queueDecision, len(decisions)), nil, map[string]types.NamespacedName{}
	order := make([]int, len(decisions))
	for i := range decisions {
		order[i] = i
		l.decisions[waiting[i].UID] = queueDecision{decisions[i], waiting[i].Generation}
	}
	position := func(i int) int { return cmp.Or(decisions[i].Position, len(decisions)+1) } // an experiment that cannot start comes last
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(position(a), position(b)) })
	woken := 0
	for _, i := range order {
		e := waiting[i]
		l.noteFirst(client.ObjectKeyFromObject(e))
		if woken < maxWakeups && e.UID != s.Experiment.UID && changesStatus(e, &decisions[i]) {
			woken++
			l.Wakeups.Wake(client.ObjectKeyFromObject(e))
		}
	}
	l.took = l.Clock.Since(began)
	return nil
}

// noteFirst records the first experiment of the cluster and of each namespace. It is called in the queue's order.
func (l *Queue) noteFirst(key types.NamespacedName) {
	if len(l.first) == 0 {
		l.first = append(l.first, key)
	}
	if _, found := l.firstInNamespace[key.Namespace]; !found {
		l.firstInNamespace[key.Namespace] = key
	}
}

// NextToCheck returns the experiments to wake if there may be new room in a namespace, or in the cluster if it is empty.
// The first one decides for all and wakes the others as needed.
func (l *Queue) NextToCheck(namespace string) (keys []types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outdated = true
	if first, found := l.firstInNamespace[namespace]; found {
		keys = append(keys, first)
	}
	return append(keys, l.first...)
}

// changesStatus reports whether a decision changes an experiment's status.
func changesStatus(e *v1alpha1.Experiment, v *queue.Decision) bool {
	if v.Admitted {
		return true
	}
	condition := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted)
	if v.Reason == queue.ReasonQuotaRefused {
		return !equalQueueStatus(e.Status.Queue, queueStatus(v))
	}
	return condition == nil || condition.Reason != v.Reason || condition.Message != v.Message || !equalQueueStatus(e.Status.Queue, queueStatus(v))
}

func equalQueueStatus(a, b *v1alpha1.QueueStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Position == b.Position && a.ExpectedStart.Equal(b.ExpectedStart)
}

// queueStatus is the status of a decision, nil if the experiment has no place in the queue.
func queueStatus(v *queue.Decision) *v1alpha1.QueueStatus {
	if v.Position == 0 || v.Admitted {
		return nil
	}
	status := &v1alpha1.QueueStatus{Position: roundPosition(v.Position)}
	if !v.ExpectedStart.IsZero() {
		start := metav1.NewTime(v.ExpectedStart.Add(time.Minute - 1).Truncate(time.Minute))
		status.ExpectedStart = &start
	}
	return status
}

// roundPosition rounds a position beyond 10 up to one digit and zeros. If a queue of 10 000 advances by one, only 37
// statuses change.
func roundPosition(position int) int32 {
	unit := 1
	for position > 10*unit {
		unit *= 10
	}
	return int32(min((position+unit-1)/unit*unit, math.MaxInt32))
}

// recheckAfter is the time until an experiment checks the queue by itself. One that is far back, or cannot start, checks
// less often, because the first wakes it as needed.
func (l *Queue) recheckAfter(position int) time.Duration {
	if position == 0 {
		position = len(l.decisions)
	}
	return roomCheckInterval * time.Duration(1+position/50)
}

// look reads what is known of the cluster from the caches. It must not be changed.
func (l *Queue) look(ctx context.Context, s *scope.Scope) (*needs.Cluster, error) {
	var experiments v1alpha1.ExperimentList
	var nodes corev1.NodeList
	var quotas corev1.ResourceQuotaList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&experiments, &nodes, &quotas, &pods} {
		var options []client.ListOption
		if list == &pods {
			options = append(options, client.HasLabels{v1alpha1.LabelExperimentUID})
		}
		if err := l.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, err
		}
	}
	if err := l.listOtherPods(ctx, s.Now); err != nil {
		return nil, err
	}
	known := make([]*v1alpha1.Experiment, len(experiments.Items))
	for i := range experiments.Items {
		known[i] = &experiments.Items[i]
		if known[i].UID == s.Experiment.UID {
			known[i] = s.Experiment
		}
		if needs.IsOver(known[i]) {
			delete(l.requirements, known[i].UID)
		}
	}
	fingerprints := map[string]string{}
	return &needs.Cluster{
		Now: s.Now, Kinds: l.resourceKinds, Nodes: nodes.Items, Pods: pods.Items, OtherPods: l.otherPods, Quotas: quotas.Items, Experiments: known,
		Options: l.Render, Needed: l.requirementsOf,
		Templates: func(e *v1alpha1.Experiment) map[string]v1alpha1.VirtualMachine {
			templates, _ := l.Templates(e)
			return templates
		},
		HoldsRoom: func(e *v1alpha1.Experiment) bool { return l.holdsRoom(e, s.Now) },
		Complete: func(e *v1alpha1.Experiment, w *queue.Waiter) {
			if _, found := fingerprints[e.Namespace]; !found {
				fingerprints[e.Namespace] = fingerprintQuotas(quotas.Items, e.Namespace)
			}
			w.Refused = l.setbacks.retryIn(e.UID, s.Now, ofGeneration(e, fingerprints[e.Namespace])) > 0
			if last, found := l.decisions[e.UID]; found && last.generation == e.Generation {
				w.Reservation = last.Reservation
			}
		},
	}, nil
}

// listOtherPods lists the pods that belong to no experiment and have not ended. They are needed only while an experiment
// waits, so they are not cached.
func (l *Queue) listOtherPods(ctx context.Context, now time.Time) error {
	if age := now.Sub(l.otherPodsListed); !l.otherPodsListed.IsZero() && age >= 0 && age < otherPodsMaxAge {
		return nil
	}
	none, err := labels.NewRequirement(v1alpha1.LabelExperimentUID, selection.DoesNotExist, nil)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := l.Live.List(ctx, &pods, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*none)}); err != nil {
		return err
	}
	l.otherPods, l.otherPodsListed = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return needs.PodEnded(&p) }), now
	return nil
}

// holdsRoom reports whether an experiment is admitted, even if the caches do not show it yet.
func (l *Queue) holdsRoom(e *v1alpha1.Experiment, now time.Time) bool {
	since, admitted := l.justAdmitted[e.UID]
	if needs.IsAdmitted(e) {
		delete(l.justAdmitted, e.UID)
		return true
	}
	if admitted && l.Written.IsCurrent(e) && now.Sub(since) > admissionWriteTime {
		delete(l.justAdmitted, e.UID)
		return false
	}
	return admitted
}
