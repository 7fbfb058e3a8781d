package events

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
)

// cacheLag of caches that is reckoned with.
const cacheLag = 10 * time.Second

// findObjects notes the objects of runs that there are now, and changes none: they are the caches' own. What was noted stays, as events come after their objects are gone.
func (c *Collector) findObjects(ctx context.Context) error {
	c.mu.Lock()
	idle := len(c.runs) == 0
	c.mu.Unlock()
	if idle {
		return nil
	}
	var networks v1alpha1.RadioNetworkList
	if err := c.Client.List(ctx, &networks, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	workflows := &unstructured.UnstructuredList{}
	workflows.SetGroupVersionKind(render.WorkflowKind.GroupVersion().WithKind(render.WorkflowKind.Kind + "List"))
	if err := c.Client.List(ctx, workflows, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.HasLabels{v1alpha1.LabelExperimentUID}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	machines, err := c.machines(ctx, pods.Items)
	if err != nil {
		return err
	}
	c.mu.Lock()
	for i := range networks.Items {
		if n := &networks.Items[i]; c.runs[n.Spec.Experiment.UID] != nil {
			c.objects[n.UID] = runObject{run: n.Spec.Experiment.UID}
		}
	}
	for i := range workflows.Items {
		c.addOwned(&workflows.Items[i], "")
	}
	for i := range machines {
		c.addOwned(&machines[i], machines[i].GetLabels()[v1alpha1.LabelNode])
	}
	for i := range pods.Items {
		c.addOwned(&pods.Items[i], pods.Items[i].Labels[v1alpha1.LabelNode])
	}
	var unplanned []types.UID
	for uid, r := range c.runs {
		if !r.planRead {
			unplanned = append(unplanned, uid)
		}
	}
	c.mu.Unlock()
	for _, uid := range unplanned {
		c.addPlannedPods(ctx, uid)
	}
	return nil
}

// machines that the pods of virtual machines belong to; where there are none nobody asks, as most clusters have no KubeVirt.
func (c *Collector) machines(ctx context.Context, pods []corev1.Pod) ([]unstructured.Unstructured, error) {
	if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return render.IsLauncher(&p) }) {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kubevirtv1.VirtualMachineInstanceGroupVersionKind)
	err := c.Live.List(ctx, list, client.HasLabels{v1alpha1.LabelExperimentUID})
	if meta.IsNoMatchError(err) {
		err = nil
	}
	return list.Items, err
}

// addOwned notes an object whose controller is an object of a run, and tells whether it is one; the lock is held. Labels prove nothing, and
// name a node only where the Experiment itself is the owner.
func (c *Collector) addOwned(object metav1.Object, node string) bool {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return false
	}
	of, known := c.objects[owner.UID]
	if !known {
		return false
	}
	if owner.UID != of.run {
		node = of.node // that of a launcher is its machine's
	}
	c.objects[object.GetUID()] = runObject{run: of.run, node: node}
	return true
}

// addPlannedPods notes the pods of a run's plan, which may be gone already if the collector was restarted. A server that is away is asked
// again.
func (c *Collector) addPlannedPods(ctx context.Context, uid types.UID) {
	state, err := c.Archive.State(ctx, string(uid))
	if err != nil && !runs.IsNotFound(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[uid]
	if r == nil {
		return
	}
	r.planRead = true
	for _, node := range state.Plan.Nodes {
		if node.PodUID != "" {
			c.objects[types.UID(node.PodUID)] = runObject{run: uid, node: node.Name}
		}
	}
}

// receive puts an event into its run's outbox, or keeps it until its object is known.
func (c *Collector) receive(event *corev1.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	about := event.InvolvedObject.UID
	if of, known := c.objects[about]; known {
		c.enqueue(of, event)
		return
	}
	// Of an experiment that is not under way it is recalled when it is.
	if about != "" && !c.unrelated[about] && mayAppearLater(event.InvolvedObject.Kind) && len(c.unresolved) < maxUnresolved {
		c.unresolved[event.UID] = pendingEvent{event, time.Now()}
	}
}

// mayAppearLater tells that an object of a run may not be known yet.
func mayAppearLater(kind string) bool { return kind != "Experiment" && isRunKind(kind) }

func isRunKind(kind string) bool {
	switch kind {
	case "Pod", "VirtualMachineInstance", "Experiment", "Workflow", "RadioNetwork":
		return true
	}
	return false
}

// enqueue an event into its run's outbox, if the archive may lack it; the lock is held.
func (c *Collector) enqueue(of runObject, event *corev1.Event) {
	r := c.runs[of.run]
	if r == nil || r.closed {
		return
	}
	told := toArchiveEvent(event, of.node)
	before, waits := r.outbox[event.UID]
	if told.Count <= r.sent[event.UID] || waits && told.Count <= before.Count || !waits && len(r.outbox) >= maxOutbox {
		return
	}
	r.outbox[event.UID] = told
}

// resolvePending looks again at events about unknown objects. A pod's metadata tell whose it is: workflows' pods are in no cache. What is told of
// them goes in the same round, as the archive is closed soon after the last of them has begun.
func (c *Collector) resolvePending(ctx context.Context) {
	for _, w := range c.sortPending() {
		c.findOwner(ctx, w.event.InvolvedObject, time.Since(w.since) > cacheLag)
	}
	c.sortPending()
}

// sortPending takes the events about objects that are known by now, drops those that are nobody's, and gives one about each pod that somebody
// must be asked about.
func (c *Collector) sortPending() (unknown map[types.UID]pendingEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	unknown = map[types.UID]pendingEvent{}
	for uid, w := range c.unresolved {
		about := w.event.InvolvedObject
		of, known := c.objects[about.UID]
		switch {
		case known:
			c.enqueue(of, w.event)
			delete(c.unresolved, uid)
		case c.unrelated[about.UID] || time.Since(w.since) > unresolvedTimeout:
			delete(c.unresolved, uid)
		case about.Kind == "Pod":
			unknown[about.UID] = w
		}
	}
	return unknown
}

// findOwner pod that is: of a run, or nobody's. Before late its owner may only not be known yet.
func (c *Collector) findOwner(ctx context.Context, about corev1.ObjectReference, late bool) {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: about.Namespace, Name: about.Name}, pod)
	if err != nil && !apierrors.IsNotFound(err) {
		return // asked again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && pod.UID == about.UID {
		owner := metav1.GetControllerOf(pod)
		if c.addOwned(pod, pod.Labels[v1alpha1.LabelNode]) || !late && owner != nil && isRunKind(owner.Kind) {
			return
		}
	}
	if len(c.unrelated) >= maxUnrelated {
		clear(c.unrelated)
	}
	c.unrelated[about.UID] = true
}

// toArchiveEvent an event in the archive's words.
func toArchiveEvent(event *corev1.Event, node string) runapi.KubernetesEvent {
	told := runapi.KubernetesEvent{
		UID: string(event.UID), Type: event.Type, Reason: event.Reason, Node: node, Host: event.Source.Host, Message: event.Message,
		Object: runapi.EventObject{Kind: event.InvolvedObject.Kind, Name: event.InvolvedObject.Name}, Count: max(event.Count, 1),
	}
	if told.Host == "" && event.ReportingController == "kubelet" {
		told.Host = event.ReportingInstance
	}
	if event.Series != nil {
		told.Count = max(told.Count, event.Series.Count)
	}
	told.TimeNanoseconds = lastTime(event).UnixNano()
	told.Reason = cmp.Or(told.Reason, "Unknown")
	return told
}

// lastTime is when an event came last: which of its fields says so depends on the API by which it was reported.
func lastTime(event *corev1.Event) (at time.Time) {
	if event.Series != nil {
		at = event.Series.LastObservedTime.Time
	}
	for _, other := range []time.Time{event.LastTimestamp.Time, event.EventTime.Time, event.FirstTimestamp.Time, event.CreationTimestamp.Time} {
		if at.IsZero() {
			at = other
		}
	}
	return at
}
