// Package events archives the Kubernetes events of an experiment's objects during a run, because the cluster deletes them
// after an hour.
//
// One watch for each namespace with an active run, and one for the platform's, keeps only the events of runs. Their objects
// are the Experiment, its pods, its Workflow with its pods, its RadioNetworks and EMANE's pods, by UID. The archive drops
// events that it has already, so a restarted collector sends all.
package events

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=list;watch

const (
	interval = time.Second
	// unresolvedTimeout is how long an event of an unknown object is kept, because caches lag.
	unresolvedTimeout = time.Minute
	// maxUnresolved limits the events that wait for that, maxOutbox those of each run that wait for the archive.
	maxUnresolved = 5000
	maxOutbox     = 20000
	// maxUnrelated limits the objects that are remembered as unrelated to runs.
	maxUnrelated = 20000
)

// Archive stores events. A *client.Client of package runapi/client is one.
type Archive interface {
	State(ctx context.Context, uid string) (runapi.State, error)
	Events(ctx context.Context, uid string, events []runapi.KubernetesEvent) error
	Incident(ctx context.Context, uid string, incident runapi.Incident) error
}

// Collector sends events of runs to the archive.
type Collector struct {
	// Client reads from caches, Live from the API server.
	Client, Live client.Reader
	// Kubernetes is watched for events.
	Kubernetes kubernetes.Interface
	Archive    Archive
	// Namespace of the platform, where RadioNetworks and EMANE are.
	Namespace string

	mu         sync.Mutex
	runs       map[types.UID]*activeRun
	objects    map[types.UID]runObject
	unrelated  map[types.UID]bool
	unresolved map[types.UID]pendingEvent
	watches    map[string]*watch
}

// activeRun is an experiment that is running.
type activeRun struct {
	experiment *v1alpha1.Experiment
	// outbox has the newest version of each event that the archive may lack, sent the counts that it has.
	outbox map[types.UID]runapi.KubernetesEvent
	sent   map[types.UID]int32
	// planRead means that the pods of the archive's plan are known, closed that the archive accepts no more events.
	planRead, closed, troubleReported bool
	// earlierEventsRead means that the experiment's events from before its run was known are read, or come with the watch.
	earlierEventsRead bool
	// ended means that the run was no longer active in the last round, which has sent its last events.
	ended bool
}

// runObject is an object of a run.
type runObject struct {
	run types.UID
	// node of a pod, or empty.
	node string
}

// pendingEvent is an event of an object that is not known yet.
type pendingEvent struct {
	event *corev1.Event
	since time.Time
}

// NeedLeaderElection makes only one manager collect.
func (*Collector) NeedLeaderElection() bool { return true }

// Start collects until the context ends.
func (c *Collector) Start(ctx context.Context) error {
	c.reset()
	for trouble := false; ; {
		err := c.collectOnce(ctx)
		if (err != nil) != trouble && ctx.Err() == nil {
			trouble = err != nil
			log.FromContext(ctx).Info("collecting Kubernetes events", "error", err)
		}
		if !clock.Pause(ctx, interval) {
			c.updateWatches(ctx)
			return nil
		}
	}
}

func (c *Collector) reset() {
	c.runs, c.objects, c.unrelated = map[types.UID]*activeRun{}, map[types.UID]runObject{}, map[types.UID]bool{}
	c.unresolved, c.watches = map[types.UID]pendingEvent{}, map[string]*watch{}
}

// collectOnce finds runs and their objects, and sends their events. An error of one run does not delay others.
func (c *Collector) collectOnce(ctx context.Context) error {
	unrecalled, err := c.updateRuns(ctx)
	if err != nil {
		return err
	}
	if err := c.findObjects(ctx); err != nil {
		return err
	}
	c.updateWatches(ctx)
	for _, e := range unrecalled {
		c.readEarlierEvents(ctx, e)
	}
	c.resolvePending(ctx)
	c.mu.Lock()
	uids := slices.Sorted(maps.Keys(c.runs))
	c.mu.Unlock()
	var failed error
	for _, uid := range uids {
		if err := c.send(ctx, uid); err != nil {
			failed = err
		}
	}
	return failed
}

// isActive reports whether a run has objects and is not over.
func isActive(e *v1alpha1.Experiment) bool {
	switch e.Status.Phase {
	case v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning, v1alpha1.PhaseCollecting, v1alpha1.PhaseAnalysing:
		return e.DeletionTimestamp.IsZero()
	}
	return false
}

// updateRuns adds new runs and removes those that ended a round ago. It returns the new ones in a namespace that was watched already,
// whose earlier events the watch has discarded.
func (c *Collector) updateRuns(ctx context.Context) (unrecalled []*v1alpha1.Experiment, err error) {
	var list v1alpha1.ExperimentList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	active := map[types.UID]bool{}
	for i := range list.Items {
		e := &list.Items[i]
		if !isActive(e) {
			continue
		}
		active[e.UID] = true
		if c.runs[e.UID] == nil {
			c.runs[e.UID] = &activeRun{outbox: map[types.UID]runapi.KubernetesEvent{}, sent: map[types.UID]int32{}, earlierEventsRead: c.watches[e.Namespace] == nil}
			c.objects[e.UID] = runObject{run: e.UID}
		}
		c.runs[e.UID].experiment = e
		if !c.runs[e.UID].earlierEventsRead {
			unrecalled = append(unrecalled, e)
		}
	}
	removed := false
	for uid, r := range c.runs {
		if !active[uid] && r.ended {
			delete(c.runs, uid)
			removed = true
		}
		r.ended = !active[uid]
	}
	if removed {
		maps.DeleteFunc(c.objects, func(_ types.UID, of runObject) bool { return c.runs[of.run] == nil })
	}
	return unrecalled, nil
}

// send sends a run's events to the archive. At the end of the run it reports that these are all, or why some are missing.
func (c *Collector) send(ctx context.Context, uid types.UID) error {
	c.mu.Lock()
	r := c.runs[uid]
	batch := c.nextBatch(r)
	c.mu.Unlock()
	ends := r.experiment.Status.Phase == v1alpha1.PhaseCollecting && !r.closed
	for toldAll := false; len(batch) > 0 || ends && !toldAll; {
		toldAll = toldAll || len(batch) == 0
		err := c.Archive.Events(ctx, string(uid), batch)
		switch {
		case isClosed(err):
			c.mu.Lock()
			r.closed, r.outbox = true, nil
			c.mu.Unlock()
			return nil
		case runs.IsNotFound(err):
			return nil // the archive does not have the run yet
		case err != nil:
			return err
		}
		c.mu.Lock()
		r.markArchived(batch)
		batch = c.nextBatch(r)
		c.mu.Unlock()
	}
	return c.reportWatchErrors(ctx, r)
}

// nextBatch are the next events of a run to send. The lock is held.
func (c *Collector) nextBatch(r *activeRun) (batch []runapi.KubernetesEvent) {
	for _, event := range r.outbox {
		if len(batch) == runapi.MaxEvents {
			break
		}
		batch = append(batch, event)
	}
	return batch
}

// markArchived removes archived events from the outbox, unless they have a newer count.
func (r *activeRun) markArchived(batch []runapi.KubernetesEvent) {
	for _, event := range batch {
		uid := types.UID(event.UID)
		r.sent[uid] = event.Count
		if r.outbox[uid].Count <= event.Count {
			delete(r.outbox, uid)
		}
	}
}

// isClosed reports whether the error says that the archive accepts no more events of a run.
func isClosed(err error) bool {
	return runs.HasStatus(err, http.StatusGone)
}

// reportWatchErrors records a watch that does not work at the end of the run, once.
func (c *Collector) reportWatchErrors(ctx context.Context, r *activeRun) error {
	e := r.experiment
	if r.troubleReported || e.Status.Phase != v1alpha1.PhaseCollecting || e.Status.T0 == nil {
		return nil
	}
	for _, namespace := range []string{e.Namespace, c.Namespace} {
		since, why := c.watchError(namespace)
		if why == nil {
			continue
		}
		incident := runapi.Incident{What: "Kubernetes events", FromSeconds: max(since.Sub(e.Status.T0.Time).Seconds(), 0),
			Reason: "those of namespace " + namespace + " could not be read: " + why.Error()}
		if err := c.Archive.Incident(ctx, string(e.UID), incident); err != nil {
			return err
		}
	}
	r.troubleReported = true
	return nil
}
