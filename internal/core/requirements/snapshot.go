package requirements

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Needed is what the queue must know of an experiment.
type Needed struct {
	Demand *queue.Demand
	Nodes  int
	// BeforeT0, AfterT0 and AfterStop are those of Requirements.
	BeforeT0, AfterT0, AfterStop time.Duration
}

// NeededOf are requirements with their demand of resources.
func NeededOf(r *Requirements, kinds *queue.ResourceKinds) Needed {
	return Needed{Demand: kinds.DemandOf(r.Pods, r.EMANE), Nodes: len(r.Pods), BeforeT0: r.BeforeT0, AfterT0: r.AfterT0, AfterStop: r.AfterStop}
}

// Duration is the time from admission until the nodes are gone.
func (n *Needed) Duration() time.Duration {
	whole := Requirements{BeforeT0: n.BeforeT0, AfterT0: n.AfterT0}
	return whole.Duration()
}

// Cluster is what is known of a cluster, for a snapshot of its queue.
type Cluster struct {
	Now   time.Time
	Kinds *queue.ResourceKinds
	Nodes []corev1.Node
	// Pods that belong to experiments, by their label, and OtherPods.
	Pods, OtherPods []corev1.Pod
	Quotas          []corev1.ResourceQuota
	Experiments     []*v1alpha1.Experiment
	// Options and Templates decide what the nodes of an experiment take.
	Options   render.Options
	Templates func(*v1alpha1.Experiment) map[string]v1alpha1.VirtualMachine
	// Needed are the requirements of an experiment, false if its spec is invalid.
	Needed func(*v1alpha1.Experiment) (Needed, bool)
	// HoldsRoom reports whether an experiment is admitted. Without it the phase decides.
	HoldsRoom func(*v1alpha1.Experiment) bool
	// Complete adds to a waiter what earlier decisions left. It may be nil.
	Complete func(*v1alpha1.Experiment, *queue.Waiter)

	snapshot queue.Snapshot
	waiting  []*v1alpha1.Experiment
	hosts    *queue.Cluster
	started  map[types.UID]*v1alpha1.Experiment
	runs     map[types.UID]*queue.Run
	// nodesWithPods are the nodes of each experiment that have pods, by label, because KubeVirt chooses names of its own.
	nodesWithPods map[types.UID]map[string]bool
	// emanePods are the experiments for which EMANE has a pod.
	emanePods map[types.UID]bool
	// workflowPods are the experiments whose workflow has a pod: whether that has a host.
	workflowPods map[types.UID]bool
	claimed      map[string]queue.Claim
}

// IsAdmitted reports whether an experiment has left the queue.
func IsAdmitted(e *v1alpha1.Experiment) bool {
	return e.Status.Phase != v1alpha1.PhaseQueued && e.Status.Phase != ""
}

// IdentityOf an experiment in the queue.
func IdentityOf(e *v1alpha1.Experiment) queue.Identity {
	return queue.Identity{Namespace: e.Namespace, Name: e.Name, Created: e.CreationTimestamp.Time, Priority: e.Spec.Priority}
}

// Snapshot is what the queue decides by, with the experiments that wait, in the order of its waiters.
func (c *Cluster) Snapshot() (*queue.Snapshot, []*v1alpha1.Experiment) {
	c.snapshot = queue.Snapshot{Now: c.Now, Kinds: c.Kinds, Quotas: map[string][]queue.Quota{}}
	c.started, c.runs = map[types.UID]*v1alpha1.Experiment{}, map[types.UID]*queue.Run{}
	c.nodesWithPods, c.workflowPods, c.claimed = map[types.UID]map[string]bool{}, map[types.UID]bool{}, map[string]queue.Claim{}
	c.emanePods = map[types.UID]bool{}
	c.sortExperiments()
	c.hosts = c.Kinds.ClusterOf(c.Nodes)
	c.placeOtherPods()
	c.placePods()
	c.placeMissingPods()
	c.snapshot.Hosts = c.hosts.Hosts
	c.addQuotas()
	for _, uid := range slices.Sorted(maps.Keys(c.runs)) {
		if run := c.runs[uid]; len(run.Holds) > 0 || run.Claim != (queue.Claim{}) {
			c.snapshot.Runs = append(c.snapshot.Runs, *run)
		}
	}
	return &c.snapshot, c.waiting
}

// sortExperiments separates the experiments that wait from those that hold room.
func (c *Cluster) sortExperiments() {
	holdsRoom := c.HoldsRoom
	if holdsRoom == nil {
		holdsRoom = IsAdmitted
	}
	for _, e := range c.Experiments {
		if holdsRoom(e) {
			c.addRun(e)
			continue
		}
		if !Waits(e) {
			continue
		}
		needed, ok := c.Needed(e)
		if !ok {
			continue
		}
		waiter := queue.Waiter{Identity: IdentityOf(e), Demand: needed.Demand, Duration: needed.Duration()}
		if c.Complete != nil {
			c.Complete(e, &waiter)
		}
		c.waiting, c.snapshot.Waiters = append(c.waiting, e), append(c.snapshot.Waiters, waiter)
	}
}

// addRun adds a run. placePods adds what it holds.
func (c *Cluster) addRun(e *v1alpha1.Experiment) {
	run := &queue.Run{Identity: IdentityOf(e), Started: c.Now}
	if e.Status.StartTime != nil {
		run.Started = e.Status.StartTime.Time
	}
	c.started[e.UID], c.runs[e.UID] = e, run
	if IsOver(e) {
		run.Ends = c.Now
		return
	}
	needed, ok := c.Needed(e)
	switch {
	case !ok:
		run.Ends = c.Now
	case e.Status.Phase == v1alpha1.PhaseCollecting || e.Status.Phase == v1alpha1.PhaseAnalysing || e.Spec.Stop:
		run.Ends = c.Now.Add(needed.AfterStop)
	case needed.AfterT0 == queue.Forever:
	case e.Status.T0 != nil:
		run.Ends = e.Status.T0.Add(needed.AfterT0)
	default:
		run.Ends = run.Started.Add(needed.Duration())
	}
}

// IsOver reports whether an experiment has ended or is being deleted.
func IsOver(e *v1alpha1.Experiment) bool {
	return e.Status.Phase == v1alpha1.PhaseSucceeded || e.Status.Phase == v1alpha1.PhaseFailed || !e.DeletionTimestamp.IsZero()
}

// placePods adds the pods of experiments to their hosts. Unscheduled ones are placed where the scheduler may put them.
func (c *Cluster) placePods() {
	unscheduled := map[types.UID][]*corev1.Pod{}
	for i := range c.Pods {
		pod := &c.Pods[i]
		uid := types.UID(pod.Labels[v1alpha1.LabelExperimentUID])
		run := c.runs[uid]
		if run != nil && pod.Namespace == run.Namespace {
			if c.nodesWithPods[uid] == nil {
				c.nodesWithPods[uid] = map[string]bool{}
			}
			c.nodesWithPods[uid][pod.Labels[v1alpha1.LabelNode]] = true
		}
		c.emanePods[uid] = c.emanePods[uid] || pod.Labels[v1alpha1.LabelNetwork] != ""
		if PodEnded(pod) {
			continue
		}
		if run != nil && pod.Namespace == run.Namespace {
			run.Claim = run.Claim.Plus(queue.ClaimOf(&pod.Spec))
		}
		if pod.Spec.NodeName == "" {
			unscheduled[uid] = append(unscheduled[uid], pod)
			continue
		}
		if held, ok := c.hosts.Add(pod); ok && run != nil {
			run.Holds = append(run.Holds, held)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(unscheduled)) {
		holds := c.hosts.Place(c.Kinds.DemandOfPods(unscheduled[uid]))
		if run := c.runs[uid]; run != nil {
			run.Holds = append(run.Holds, holds...)
		}
	}
}

// placeOtherPods adds the other pods to their hosts. Those of workflows belong to their runs.
func (c *Cluster) placeOtherPods() {
	workflows := map[types.NamespacedName]types.UID{}
	for uid, e := range c.started {
		workflows[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] = uid
	}
	for i := range c.OtherPods {
		pod := &c.OtherPods[i]
		if PodEnded(pod) {
			continue
		}
		held, hasHost := c.hosts.Add(pod)
		uid, found := workflows[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[render.LabelWorkflow]}]
		if !found {
			continue
		}
		c.workflowPods[uid] = hasHost
		c.runs[uid].Claim = c.runs[uid].Claim.Plus(queue.ClaimOf(&pod.Spec))
		if hasHost {
			c.runs[uid].Holds = append(c.runs[uid].Holds, held)
		}
	}
}

// PodEnded reports whether a pod has ended, so that it takes no room.
func PodEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// placeMissingPods places the pods that admitted experiments have not created yet, so that nobody else gets their room. Until
// an experiment is over, one of them is its workflow's.
func (c *Cluster) placeMissingPods() {
	for _, uid := range slices.Sorted(maps.Keys(c.started)) {
		e, run := c.started[uid], c.runs[uid]
		if IsOver(e) {
			continue
		}
		missing, emane := c.missingPods(e)
		claim := c.Kinds.DemandOfPods(missing).Claim
		hasHost, exists := c.workflowPods[uid]
		if !exists {
			claim = claim.Plus(queue.ClaimOf(&queue.WorkflowPod().Spec))
		}
		if !hasHost {
			missing = append(missing, queue.WorkflowPod())
		}
		run.Holds = append(run.Holds, c.hosts.Place(c.Kinds.DemandOfPods(append(missing, emane...)))...)
		run.Claim = run.Claim.Plus(claim)
		c.claimed[run.Namespace] = c.claimed[run.Namespace].Plus(claim)
	}
}

// missingPods are those of nodes, and EMANE's, that a starting experiment has not created yet.
func (c *Cluster) missingPods(e *v1alpha1.Experiment) (nodes, emane []*corev1.Pod) {
	if e.Status.Phase != v1alpha1.PhaseProvisioning && IsAdmitted(e) {
		return nil, nil
	}
	existing := c.nodesWithPods[e.UID]
	needed, ok := c.Needed(e)
	if !ok || len(existing) >= needed.Nodes && (c.emanePods[e.UID] || !needed.Demand.HasEMANE()) {
		return nil, nil
	}
	t, errs := topology.Expand(&e.Spec)
	if len(errs) > 0 {
		return nil, nil
	}
	input := render.Input{Experiment: e, Topology: t, Options: c.Options, Templates: c.Templates(e)}
	if !c.emanePods[e.UID] {
		emane = render.EMANEFootprints(input)
	}
	return slices.DeleteFunc(render.Footprints(input), func(p *corev1.Pod) bool { return existing[p.Labels[v1alpha1.LabelNode]] }), emane
}

func (c *Cluster) addQuotas() {
	for namespace, counted := range QuotasByNamespace(c.Quotas) {
		for i := range counted {
			counted[i].Used = counted[i].Used.Plus(c.claimed[namespace])
		}
		c.snapshot.Quotas[namespace] = counted
	}
}

// QuotasByNamespace are quotas as the queue counts them.
func QuotasByNamespace(quotas []corev1.ResourceQuota) map[string][]queue.Quota {
	lists := map[string][]corev1.ResourceQuota{}
	for _, quota := range quotas {
		lists[quota.Namespace] = append(lists[quota.Namespace], quota)
	}
	counted := map[string][]queue.Quota{}
	for namespace, list := range lists {
		counted[namespace] = queue.QuotasOf(list)
	}
	return counted
}
