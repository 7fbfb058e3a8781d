// Package events collects what Kubernetes says of an experiment's objects while it runs, as the cluster forgets it after an hour.
//
// One watch for each namespace with a run that is under way, and one for the platform's, keeps nothing but what belongs to a run: events
// whose object's UID is that of the Experiment, of its pods, of its Workflow and the pods of that, of its RadioNetworks and the pods of
// EMANE. The archive drops what it has already, so that a collector that was restarted sends all that there is.
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

	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=list;watch

const (
	interval = time.Second
	// unresolvedTimeout with an event about an object that is not known yet: caches lag behind.
	unresolvedTimeout = time.Minute
	// maxUnresolved events wait for that, and maxOutbox for the archive, of each run.
	maxUnresolved = 5000
	maxOutbox     = 20000
	// maxUnrelated are remembered as no objects of any run.
	maxUnrelated = 20000
)

// Archive is where events go; a *client.Client of package runapi/client is one.
type Archive interface {
	State(ctx context.Context, uid string) (runapi.State, error)
	Events(ctx context.Context, uid string, events []runapi.KubernetesEvent) error
	Incident(ctx context.Context, uid string, incident runapi.Incident) error
}

// Collector sends events of runs to the archive.
type Collector struct {
	// Client reads from caches, Live past them.
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

// activeRun is an experiment that is under way.
type activeRun struct {
	experiment *v1alpha1.Experiment
	// outbox has the newest of each event that the archive may lack, and sent the counts that it has.
	outbox map[types.UID]runapi.KubernetesEvent
	sent   map[types.UID]int32
	// planRead tells that the archive's plan was asked for pods, closed that the archive takes no more.
	planRead, closed, troubleReported bool
	// earlierEventsRead tells that what was told of the experiment before its run was known is here, or comes with the namespace's watch.
	earlierEventsRead bool
}

// runObject is an object of a run.
type runObject struct {
	run types.UID
	// node whose pod it is, or empty.
	node string
}

// pendingEvent is an event about an object that is not known yet.
type pendingEvent struct {
	event *corev1.Event
	since time.Time
}

// NeedLeaderElection keeps it to one manager.
func (*Collector) NeedLeaderElection() bool { return true }

// Start collects until the context ends.
func (c *Collector) Start(ctx context.Context) error {
	c.reset()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for trouble := false; ; {
		err := c.collectOnce(ctx)
		if (err != nil) != trouble && ctx.Err() == nil {
			trouble = err != nil
			log.FromContext(ctx).Info("collecting Kubernetes events", "error", err)
		}
		select {
		case <-ctx.Done():
			c.updateWatches(ctx)
			return nil
		case <-ticker.C:
		}
	}
}

func (c *Collector) reset() {
	c.runs, c.objects, c.unrelated = map[types.UID]*activeRun{}, map[types.UID]runObject{}, map[types.UID]bool{}
	c.unresolved, c.watches = map[types.UID]pendingEvent{}, map[string]*watch{}
}

// collectOnce finds runs and their objects, and sends what there is of them. One run's trouble keeps no other waiting.
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
	uids := make([]types.UID, 0, len(c.runs))
	for uid := range c.runs {
		uids = append(uids, uid)
	}
	c.mu.Unlock()
	slices.Sort(uids)
	var failed error
	for _, uid := range uids {
		if err := c.send(ctx, uid); err != nil {
			failed = err
		}
	}
	return failed
}

// isActive tells that a run has objects, and is not over.
func isActive(e *v1alpha1.Experiment) bool {
	switch e.Status.Phase {
	case v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning, v1alpha1.PhaseCollecting, v1alpha1.PhaseAnalysing:
		return e.DeletionTimestamp.IsZero()
	}
	return false
}

// updateRuns takes up runs that have begun, lets go of those that are over, and gives those that began in a namespace that was watched
// already: what was told of them before they were known has gone by.
func (c *Collector) updateRuns(ctx context.Context) (unrecalled []*v1alpha1.Experiment, err error) {
	var list v1alpha1.ExperimentList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // nothing of them is changed
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
	ended := false
	for uid := range c.runs {
		if !active[uid] {
			delete(c.runs, uid)
			ended = true
		}
	}
	if ended {
		maps.DeleteFunc(c.objects, func(_ types.UID, of runObject) bool { return c.runs[of.run] == nil })
	}
	return unrecalled, nil
}

// send hands a run's events to the archive, and says of a run that ends that these are all, or why some could not be had.
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
			return nil // the archive has not heard of the run yet
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

// nextBatch is what goes next of a run; the lock is held.
func (c *Collector) nextBatch(r *activeRun) (batch []runapi.KubernetesEvent) {
	for _, event := range r.outbox {
		if len(batch) == runapi.MaxEvents {
			break
		}
		batch = append(batch, event)
	}
	return batch
}

// markArchived takes what the archive has out of the outbox, unless the event has come again meanwhile.
func (r *activeRun) markArchived(batch []runapi.KubernetesEvent) {
	for _, event := range batch {
		uid := types.UID(event.UID)
		r.sent[uid] = event.Count
		if r.outbox[uid].Count <= event.Count {
			delete(r.outbox, uid)
		}
	}
}

// isClosed tells that the archive of a run takes no more.
func isClosed(err error) bool {
	return runs.HasStatus(err, http.StatusGone)
}

// reportWatchErrors names a watch that does not work as the run ends, once.
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
			Reason: "those of namespace " + namespace + " could not be had: " + why.Error()}
		if err := c.Archive.Incident(ctx, string(e.UID), incident); err != nil {
			return err
		}
	}
	r.troubleReported = true
	return nil
}
