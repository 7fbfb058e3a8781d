package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/queue"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/topology"
)

// pollInterval is the time between two polls of the server while agents start, if it reports no updates.
const pollInterval = time.Second

// provision creates all nodes with a scheduling gate, registers them with the server and radiod, releases them together
// and waits for every agent.
func (r *Reconciler) provision(ctx context.Context, s *scope) (bool, error) {
	if s.phase() != v1alpha1.PhaseProvisioning || s.failure() != nil {
		return false, nil
	}
	defer r.freeCreateSlot(s)
	steps := []stageFunc{r.loadPods, r.checkStop, r.awaitStartSlot, r.checkProvisioning, r.awaitCreateSlot, r.ensureShared, r.ensureAttachments, r.ensureSecurity, r.resolveServer, r.ensurePods, r.ensureVMs,
		r.registerNodes, r.releaseVMs, r.releasePods, r.noteReleased, r.ensureEMANE, r.awaitAgents}
	for _, step := range steps {
		if stop, err := step(ctx, s); stop || err != nil {
			return true, err
		}
		if s.justFailed {
			return true, nil
		}
	}
	return true, nil
}

// noteReleased records that the operator has created and released all of the experiment's nodes.
func (r *Reconciler) noteReleased(_ context.Context, s *scope) (bool, error) {
	r.starts.noteReleased(s.experiment.UID, s.now)
	return false, nil
}

// creatingNodes is the message of an experiment that may create its nodes.
const creatingNodes = "creating the nodes"

// checkStop fails an experiment that is stopped before T0.
func (r *Reconciler) checkStop(_ context.Context, s *scope) (bool, error) {
	s.checkStop()
	return false, nil
}

func (s *scope) checkStop() {
	if s.experiment.Spec.Stop && s.experiment.Status.T0 == nil {
		s.fail(ReasonStoppedBeforeStart, "spec.stop was set before T0: nothing was measured")
	}
}

// awaitStartSlot waits until the limit of experiments that start at once has room for this one.
func (r *Reconciler) awaitStartSlot(_ context.Context, s *scope) (bool, error) {
	e := s.experiment
	since, before := r.starts.acquire(s.startWaiter(), s.firstNodeCreated())
	if before == 0 {
		s.startingSince = since
		if since.Equal(s.now) {
			e.Status.Message = creatingNodes
		}
		return false, nil
	}
	e.Status.Message = fmt.Sprintf("admitted; waiting for a start slot: %d experiments are starting", r.starts.limit)
	s.requeueAfter(slotRetryAfter(before))
	return true, nil
}

// startWaiter is the experiment's entry in a startLimiter.
func (s *scope) startWaiter() startWaiter {
	e := s.experiment
	w := startWaiter{uid: e.UID, name: client.ObjectKeyFromObject(e), admittedAt: e.CreationTimestamp.Time, askedAt: s.now}
	if e.Status.StartTime != nil {
		w.admittedAt = e.Status.StartTime.Time
	}
	return w
}

// awaitCreateSlot limits the experiments that create nodes to half of the workers. Creation takes long, and the other
// workers must set the actions of running experiments in time. An experiment that only waits for agents needs no slot.
func (r *Reconciler) awaitCreateSlot(_ context.Context, s *scope) (bool, error) {
	if r.starts.isReleased(s.experiment.UID) {
		return false, nil
	}
	_, before := r.creations.acquire(s.startWaiter(), time.Time{})
	if before > 0 {
		s.requeueAfter(slotRetryAfter(before))
	}
	return before > 0, nil
}

// freeCreateSlot frees the experiment's create slot and wakes the next.
func (r *Reconciler) freeCreateSlot(s *scope) {
	if next, found := r.creations.release(s.experiment.UID); found {
		r.queue.wakeUp(next)
	}
}

// firstNodeCreated is when the first of the experiment's nodes was created, zero if it has none.
func (s *scope) firstNodeCreated() (first time.Time) {
	var objects []metav1.Object
	for _, pod := range s.pods {
		objects = append(objects, pod)
	}
	for _, vm := range s.vms {
		objects = append(objects, vm)
	}
	for _, object := range objects {
		if at := object.GetCreationTimestamp().Time; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// freeStartSlots frees the slots of an experiment that has left Provisioning and wakes the next.
func (r *Reconciler) freeStartSlots(s *scope) {
	if s.phase() == v1alpha1.PhaseProvisioning && s.failure() == nil && s.experiment.DeletionTimestamp.IsZero() {
		return
	}
	r.creations.leave(s.experiment.UID)
	if next, found := r.starts.leave(s.experiment.UID); found {
		r.queue.wakeUp(next)
	}
}

// loadPods finds the pods of the experiment and its virtual machines by their owners' UIDs. Users can set the labels.
func (r *Reconciler) loadPods(ctx context.Context, s *scope) (bool, error) {
	s.pods = map[string]*corev1.Pod{}
	if err := r.loadVMs(ctx, s); err != nil {
		return false, err
	}
	var list corev1.PodList
	err := r.Client.List(ctx, &list, selectOwnedBy(s.experiment, s.experiment.Namespace)...)
	for i := range list.Items {
		if node, ok := s.nodeOf(&list.Items[i]); ok {
			s.pods[node] = &list.Items[i]
		}
	}
	return false, err
}

// A busy host with two processors starts about nodesWithinDeadline pods within the deadline, and one more per
// deadlinePerNode. An emulated machine with a disk of the user may take ownDiskBootTime longer: a Debian with cloud-init
// needs minutes of processor time.
const (
	nodesWithinDeadline = 50
	deadlinePerNode     = 3 * time.Second
	ownDiskBootTime     = 10 * time.Minute
)

// provisioningDeadline is the time in which an experiment must become ready.
func (r *Reconciler) provisioningDeadline(s *scope) time.Duration {
	deadline := r.Options.ProvisioningDeadline + deadlinePerNode*time.Duration(max(0, len(s.topology.Nodes)-nodesWithinDeadline))
	if render.BootsOwnDisks(s.renderInput()) {
		deadline += ownDiskBootTime
	}
	return deadline
}

// checkProvisioning fails an experiment that cannot become ready.
func (r *Reconciler) checkProvisioning(ctx context.Context, s *scope) (bool, error) {
	if stop, err := r.checkVMQuota(ctx, s); stop || err != nil {
		return true, err
	}
	for _, name := range sortedKeys(s.vms) {
		if reason, message := vmTrouble(s.vms[name]); reason != "" && s.failure() == nil {
			s.fail(reason, "node %s: %s%s", name, message, r.consoleTail(ctx, s, name))
		}
	}
	for _, name := range sortedKeys(s.pods) {
		if reason, message := podTrouble(s.pods[name], s.now); reason != "" && s.failure() == nil {
			s.fail(reason, "node %s: %s%s", name, message, r.consoleTail(ctx, s, name))
		}
	}
	if err := r.checkEMANE(ctx, s); err != nil {
		return true, err
	}
	deadline := r.provisioningDeadline(s)
	overdue := s.now.Sub(s.startingSince) > deadline
	if overdue && s.failure() == nil {
		r.checkSecret(ctx, s)
	}
	if overdue {
		s.fail(ReasonProvisioningTimeout, "not ready %s after its nodes began to start, with %d of %d pods running; last: %s%s",
			deadline, countRunning(s.pods), len(s.topology.Nodes), s.experiment.Status.Message, r.unreportedGuest(ctx, s))
	}
	return false, nil
}

func countRunning(pods map[string]*corev1.Pod) (count int) {
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning {
			count++
		}
	}
	return count
}

// ensureShared creates the account of the workflow's pods, or adds the experiment as an owner. It runs before the first
// node and again before the workflow's pods, as somebody may have deleted it. An account of the user stays unchanged.
func (r *Reconciler) ensureShared(ctx context.Context, s *scope) (bool, error) {
	if s.phase() == v1alpha1.PhaseProvisioning && len(s.pods) == len(s.topology.Nodes) {
		return false, nil
	}
	for _, want := range []client.Object{render.ServiceAccount(s.experiment), render.RoleBinding(s.experiment)} {
		existing := want.DeepCopyObject().(client.Object)
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), existing)
		if apierrors.IsNotFound(err) {
			err = r.Client.Create(ctx, want)
			if apierrors.IsAlreadyExists(err) {
				s.requeueAfter(pollInterval)
				return true, nil
			}
		} else if err == nil {
			err = r.addOwner(ctx, s.experiment, existing)
		}
		if err != nil {
			return true, err
		}
	}
	return false, nil
}

func (r *Reconciler) addOwner(ctx context.Context, e *v1alpha1.Experiment, object client.Object) error {
	owners := object.GetOwnerReferences()
	isOwner := slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == e.UID })
	if isOwner || object.GetLabels()["app.kubernetes.io/managed-by"] != render.ManagedByValue {
		return nil
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetOwnerReferences(append(owners, render.SharedOwner(e)))
	return r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *Reconciler) ensureAttachments(ctx context.Context, s *scope) (bool, error) {
	for _, want := range render.Attachments(s.renderInput()) {
		existing := want.DeepCopy()
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), existing)
		if apierrors.IsNotFound(err) {
			err = r.Client.Create(ctx, want)
		}
		if apierrors.IsAlreadyExists(err) { // the cache is behind
			err = r.Live.Get(ctx, client.ObjectKeyFromObject(want), existing)
		}
		if err == nil && existing.UID != "" && !metav1.IsControlledBy(existing, s.experiment) {
			s.experiment.Status.Message = fmt.Sprintf("waiting for the deletion of NetworkAttachmentDefinition %s, which belongs to somebody else", want.Name)
			s.requeueAfter(2 * pollInterval)
			return true, nil
		}
		if err != nil {
			return true, err
		}
	}
	return false, nil
}

// resolveServer looks up the server's address for pods and guests to come of nodes that have no nameserver.
func (r *Reconciler) resolveServer(ctx context.Context, s *scope) (bool, error) {
	name := render.ServerName(s.options)
	if name == "" || !slices.ContainsFunc(s.topology.Nodes, func(n topology.Node) bool {
		return !render.UsesClusterDNS(s.options, n) && (n.IsVM() && !r.hasGuestFile(s.pods[n.Name]) || !n.IsVM() && s.pods[n.Name] == nil)
	}) {
		return false, nil
	}
	addresses, err := r.Options.LookupHost(ctx, name)
	if err == nil && len(addresses) == 0 {
		err = errors.New("it has none")
	}
	if err != nil {
		s.experiment.Status.Message = "resolving the server's address"
		return true, fmt.Errorf("address of %s: %w", name, err)
	}
	s.serverAddress = addresses[0]
	return false, nil
}

// ensurePods creates the missing pods with their scheduling gate.
func (r *Reconciler) ensurePods(ctx context.Context, s *scope) (bool, error) {
	for _, want := range s.missingPods() {
		node := want.Labels[v1alpha1.LabelNode]
		err := r.Client.Create(ctx, want)
		switch {
		case err == nil:
			s.pods[node] = want
		case apierrors.IsAlreadyExists(err):
			if stop, err := r.adopt(ctx, s, want); stop || err != nil {
				return true, err
			}
		case isQuotaRefusal(err):
			return true, r.backToQueue(ctx, s, err)
		case isAccountMissing(err):
			s.experiment.Status.Message = "waiting for the namespace's service account"
			s.requeueAfter(pollInterval)
			return true, nil
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
			s.fail(ReasonPodRefused, "the cluster refuses the pod of node %s: %v", node, err)
			return false, nil
		default:
			return true, err
		}
	}
	r.quotaRefusals.forget(s.experiment.UID)
	return false, nil
}

// missingPods are the pods of nodes that have none.
func (s *scope) missingPods() []*corev1.Pod {
	if !slices.ContainsFunc(s.topology.Nodes, func(n topology.Node) bool { return s.pods[n.Name] == nil && !n.IsVM() }) {
		return nil
	}
	return slices.DeleteFunc(render.Pods(s.renderInput()), func(p *corev1.Pod) bool { return s.pods[p.Labels[v1alpha1.LabelNode]] != nil })
}

// adopt handles a pod that exists already. The operator has just created it and the cache is stale, or it is another's.
func (r *Reconciler) adopt(ctx context.Context, s *scope, want *corev1.Pod) (bool, error) {
	var existing corev1.Pod
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), &existing); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(&existing, s.experiment) {
		s.pods[want.Labels[v1alpha1.LabelNode]] = &existing
		return false, nil
	}
	s.experiment.Status.Message = fmt.Sprintf("waiting for the deletion of pod %s, which belongs to somebody else", want.Name)
	s.requeueAfter(2 * pollInterval)
	return true, nil
}

// isQuotaRefusal reports whether a quota is exceeded. The quota plugin's "must specify limits" is not about room.
func isQuotaRefusal(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// isAccountMissing reports whether a new namespace does not have its default account yet.
func isAccountMissing(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
}

// backToQueue deletes the created nodes and queues the experiment again, because it must have all nodes or none.
func (r *Reconciler) backToQueue(ctx context.Context, s *scope, cause error) error {
	quotas, err := r.quotaFingerprint(ctx, s.experiment)
	if err != nil {
		return err
	}
	times, wait := r.quotaRefusals.add(s.experiment.UID, s.now, quotas)
	r.queue.forget(s.experiment.UID)
	status := &s.experiment.Status
	message := shorten(fmt.Sprintf("not all nodes could be created, so all were deleted (refused %s; next try in %s, or when a quota changes): %v", timesInWords(times), wait, cause))
	status.Phase, status.StartTime, status.Message, status.Progress = v1alpha1.PhaseQueued, nil, message, ""
	s.setCondition(v1alpha1.ConditionAdmitted, metav1.ConditionFalse, queue.ReasonQuotaRefused, message)
	s.warningEvent(queue.ReasonQuotaRefused, "%s", message)
	s.requeueAfter(wait)
	_, err = r.deleteNodes(ctx, s)
	return err
}

// registerNodes sends the nodes with the UIDs of their pods to the server and radiod.
func (r *Reconciler) registerNodes(ctx context.Context, s *scope) (bool, error) {
	uids := map[string]types.UID{}
	for node, pod := range s.pods {
		uids[node] = pod.UID
	}
	plan := render.Plan(s.renderInput(), s.waveforms, uids)
	var err error
	if plan.ConfigMaps, err = r.releasedConfigMaps(ctx, s); err != nil {
		return true, err
	}
	if err := r.putPlan(ctx, plan); err != nil {
		if full := archiveFullMessage(err); full != "" {
			s.fail(ReasonArchiveFull, "the archive is full: %s", full)
			return false, nil
		}
		s.experiment.Status.Message = "registering the nodes with the server"
		return true, err
	}
	for _, want := range render.RadioNetworks(s.renderInput(), s.waveforms, uids) {
		var existing v1alpha1.RadioNetwork
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), &existing)
		if apierrors.IsNotFound(err) && r.anyReleased(s.pods) { // the cache may be behind
			if err = r.Live.Get(ctx, client.ObjectKeyFromObject(want), &existing); apierrors.IsNotFound(err) {
				s.fail(ReasonRadioNetworkDeleted, "RadioNetwork %s was deleted while its nodes started", want.Name)
				return false, nil
			}
		}
		want.Spec.Silent = existing.Spec.Silent // only administrators set it
		want.Spec.EMANE = existing.Spec.EMANE   // ensureEMANE sets it
		switch {
		case apierrors.IsNotFound(err):
			err = r.Client.Create(ctx, want)
		case err == nil && !equality.Semantic.DeepEqual(existing.Spec, want.Spec):
			before := existing.DeepCopy()
			existing.Spec = want.Spec
			err = r.Client.Patch(ctx, &existing, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		if apierrors.IsAlreadyExists(err) {
			s.requeueAfter(pollInterval)
			return true, nil
		}
		if err != nil {
			return true, err
		}
	}
	return false, nil
}

// anyReleased reports whether a node may have started.
func (r *Reconciler) anyReleased(pods map[string]*corev1.Pod) bool {
	for _, pod := range pods {
		if len(pod.Spec.SchedulingGates) == 0 && (!render.IsLauncher(pod) || launcherStarted(pod) || r.guests.hasSecret(pod.UID)) {
			return true
		}
	}
	return false
}

// releasePods removes the scheduling gate of every pod.
func (r *Reconciler) releasePods(ctx context.Context, s *scope) (bool, error) {
	for _, name := range sortedKeys(s.pods) {
		pod := s.pods[name]
		if len(pod.Spec.SchedulingGates) == 0 {
			continue
		}
		before := pod.DeepCopy()
		pod.Spec.SchedulingGates = slices.DeleteFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == v1alpha1.SchedulingGate })
		if err := r.Client.Patch(ctx, pod, client.MergeFrom(before)); err != nil {
			return true, err
		}
	}
	return false, nil
}

// awaitAgents ends Provisioning once every agent has connected and written its files and every node has its radios.
func (r *Reconciler) awaitAgents(ctx context.Context, s *scope) (bool, error) {
	state, err := r.Runs.State(ctx, string(s.experiment.UID))
	if err != nil {
		return true, err
	}
	ready, waiting := readyNodes(s, state)
	status := &s.experiment.Status
	s.setNodes(ready, len(s.topology.Nodes))
	if agent := failedAgent(state); agent != nil {
		s.fail(agentFailureReason(agent), "%s", agent.Message)
		return false, nil
	}
	if len(waiting) > 0 {
		status.Message = "waiting for " + someOf(waiting, "agents")
		s.requeueAfter(r.runUpdates.pollAfter(s.experiment, pollInterval))
		return true, nil
	}
	networks, err := r.radioNetworks(ctx, s)
	if err != nil {
		return true, err
	}
	emane, err := r.emanePods(ctx, s, networks)
	if err != nil {
		return true, err
	}
	for i := range networks {
		if reason, message := radioRefusal(&networks[i]); reason != "" {
			s.fail(reason, "%s", message)
			return false, nil
		}
	}
	if lacking := missingRadios(networks, emaneProgress(networks, emane)); len(lacking) > 0 {
		status.Message = shorten("waiting for radios of " + someOf(lacking, "networks"))
		s.requeueAfter(pollInterval)
		return true, nil
	}
	if err := r.checkConfigMapsUnchanged(ctx, s, state.Plan.ConfigMaps); err != nil || s.justFailed {
		return true, err
	}
	s.normalEvent("NodesReady", "all nodes are ready: %s", status.Nodes.Summary)
	// Phase and name are written before the Workflow is created, so that it is created only once.
	status.Phase, status.Message, status.Workflow = v1alpha1.PhaseRunning, "every agent is ready", s.experiment.Name
	return true, nil
}

// missingRadios describes the networks whose members are not all attached or whose radios do not work yet. A running pod
// is no proof. A user who can change annotations or NetworkAttachmentDefinitions can prevent its radio, and so the rules
// that close eth0.
func missingRadios(networks []v1alpha1.RadioNetwork, notes map[string]string) (lacking []string) {
	for i := range networks {
		attached, members, note := int32(0), len(networks[i].Spec.Members), notes[networks[i].Spec.Network]
		troubled := false
		for _, host := range networks[i].Status.Hosts {
			attached += host.Attached
			if host.Message != "" {
				note += fmt.Sprintf("; host %s: %s", host.Host, host.Message)
				troubled = true
			}
		}
		if int(attached) < members || troubled {
			lacking = append(lacking, fmt.Sprintf("%s (%d of %d are attached%s)", networks[i].Spec.Network, attached, members, note))
		}
	}
	return lacking
}

func failedAgent(state runapi.State) *runapi.AgentState {
	for i, agent := range state.Agents {
		if agent.Phase == runapi.AgentFailed {
			return &state.Agents[i]
		}
	}
	return nil
}

// agentFailureReason is the reason of an agent's failure. Users control agents, so only a known reason is taken over.
func agentFailureReason(agent *runapi.AgentState) string {
	if agent.Reason == runapi.ReasonKeyNotFound {
		return ReasonKeyNotFound
	}
	return ReasonAppFailed
}

// readyNodes counts the nodes whose agents have all reported, and names the agents that have not. A report counts only
// while the pod that the server knows is running. An earlier pod of the node may have reported too, before the experiment
// went back to the queue.
func readyNodes(s *scope, state runapi.State) (ready int, waiting []string) {
	runs := map[string]bool{}
	for _, node := range state.Plan.Nodes {
		pod := s.pods[node.Name]
		runs[node.Name] = pod != nil && string(pod.UID) == node.PodUID && pod.Status.Phase == corev1.PodRunning
	}
	reported := map[runapi.Target]bool{}
	for _, agent := range state.Agents {
		reported[runapi.Target{Node: agent.Node, App: agent.App}] = runs[agent.Node]
	}
	lacking := map[string]bool{}
	for _, agent := range render.AgentsOf(s.topology) {
		if !reported[agent] {
			lacking[agent.Node] = true
			waiting = append(waiting, agent.Node+"/"+agent.App+s.nodeProgress(agent.Node))
		}
	}
	for _, node := range s.topology.Nodes {
		if vm := s.vms[node.Name]; !node.HasAgent() && (!runs[node.Name] || vm == nil || vm.Status.Phase != kubevirtv1.Running) {
			lacking[node.Name] = true
			waiting = append(waiting, node.Name+s.nodeProgress(node.Name))
		}
	}
	return len(s.topology.Nodes) - len(lacking), waiting
}

// podProgress says why a pod is not scheduled, if so.
func podProgress(pod *corev1.Pod) string {
	if pod == nil || pod.Status.Phase == corev1.PodRunning {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return " (" + c.Message + ")"
		}
	}
	return ""
}

// someOf lists the first names and the number of the others.
func someOf(names []string, what string) string {
	const shown = 3
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more %s", strings.Join(names[:shown], ", "), len(names)-shown, what)
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
