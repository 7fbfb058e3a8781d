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

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// cacheLag is the maximum lag of caches that the collector assumes.
const cacheLag = 10 * time.Second

// findObjects adds the current objects of runs. It must not change them, because they belong to the cache. Deleted objects
// stay known, because events may follow their deletion.
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

// machines are the virtual machines of pods. It asks only if there are such pods, as most clusters have no KubeVirt.
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

// addOwned adds an object whose controller is an object of a run, and reports whether it is one. The lock is held. Users can
// set labels, so they name a node only if the Experiment itself is the owner.
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
		node = of.node // a launcher belongs to its machine's node
	}
	c.objects[object.GetUID()] = runObject{run: of.run, node: node}
	return true
}

// addPlannedPods adds the pods of a run's plan, which may be deleted already if the collector has restarted. After an error
// it is called again.
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
	// Events of an experiment that is not running yet are read when it is.
	if about != "" && !c.unrelated[about] && mayAppearLater(event.InvolvedObject.Kind) && len(c.unresolved) < maxUnresolved {
		c.unresolved[event.UID] = pendingEvent{event, time.Now()}
	}
}

// mayAppearLater reports whether an unknown object of this kind may belong to a run.
func mayAppearLater(kind string) bool { return kind != "Experiment" && isRunKind(kind) }

func isRunKind(kind string) bool {
	switch kind {
	case "Pod", "VirtualMachineInstance", "Experiment", "Workflow", "RadioNetwork":
		return true
	}
	return false
}

// enqueue adds an event to its run's outbox, if the archive may lack it. The lock is held.
func (c *Collector) enqueue(of runObject, event *corev1.Event) {
	r := c.runs[of.run]
	if r == nil || r.closed {
		return
	}
	e := toArchiveEvent(event, of.node)
	before, waits := r.outbox[event.UID]
	if e.Count <= r.sent[event.UID] || waits && e.Count <= before.Count || !waits && len(r.outbox) >= maxOutbox {
		return
	}
	r.outbox[event.UID] = e
}

// resolvePending checks events of unknown objects again. It reads the owners of pods from the API server, because workflows'
// pods are not cached. Their events must be sent in the same round, as the archive is closed soon after the last one starts.
func (c *Collector) resolvePending(ctx context.Context) {
	for _, w := range c.sortPending() {
		c.findOwner(ctx, w.event.InvolvedObject, time.Since(w.since) > cacheLag)
	}
	c.sortPending()
}

// sortPending enqueues the events of objects that are known now and drops unrelated ones. It returns one event for each pod
// whose owner must be read.
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

// findOwner reads whether a pod belongs to a run. Unless late, its owner may still be unknown.
func (c *Collector) findOwner(ctx context.Context, about corev1.ObjectReference, late bool) {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: about.Namespace, Name: about.Name}, pod)
	if err != nil && !apierrors.IsNotFound(err) {
		return // the next round tries again
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

// toArchiveEvent converts an event to the archive's format.
func toArchiveEvent(event *corev1.Event, node string) runapi.KubernetesEvent {
	e := runapi.KubernetesEvent{
		UID: string(event.UID), Type: event.Type, Reason: event.Reason, Node: node, Host: event.Source.Host, Message: event.Message,
		Object: runapi.EventObject{Kind: event.InvolvedObject.Kind, Name: event.InvolvedObject.Name}, Count: max(event.Count, 1),
	}
	if e.Host == "" && event.ReportingController == "kubelet" {
		e.Host = event.ReportingInstance
	}
	if event.Series != nil {
		e.Count = max(e.Count, event.Series.Count)
	}
	e.TimeNanoseconds = lastTime(event).UnixNano()
	e.Reason = cmp.Or(e.Reason, "Unknown")
	return e
}

// lastTime is when an event occurred last. The field depends on the API by which it was reported.
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
