package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/topology"
)

// +kubebuilder:rbac:groups=vignette.dev,resources=nodetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachineinstances,verbs=get;list;create;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,resourceNames=default,verbs=create
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get

// Reasons of virtual machines.
const (
	// ReasonKubeVirtMissing is a reason of Accepted: a node is a virtual machine, and the cluster has no KubeVirt.
	ReasonKubeVirtMissing = "KubeVirtNotInstalled"
	// ReasonGuestMissing is a reason of Accepted: a virtual machine names no disk, and the platform has none.
	ReasonGuestMissing = "GuestImageMissing"
	// ReasonTemplateNotFound is a reason of Accepted: neither the namespace nor the platform has a virtual machine's template.
	ReasonTemplateNotFound = "NodeTemplateNotFound"
	// ReasonDiskNotFound is a reason of Accepted: a virtual machine's claim does not exist.
	ReasonDiskNotFound = "DiskNotFound"
	// ReasonDiskNotAllowed is a reason of Accepted: no administrator allows experiments to use a virtual machine's claim.
	ReasonDiskNotAllowed = "DiskNotAllowed"
)

const (
	// liveTokenLifetime is the lifetime of a guest's token in a live cluster. In a run it is the run's time plus tokenMargin.
	liveTokenLifetime, tokenMargin = 7 * 24 * time.Hour, 2 * time.Hour
	// minTokenLifetime is the API server's minimum.
	minTokenLifetime = 10 * time.Minute
	// maxGuests limits the guests whose Secrets are remembered.
	maxGuests = 10_000
	// migrationLabel is on the pods to which KubeVirt migrates a machine, which those of experiments do not support.
	migrationLabel = kubevirtv1.MigrationJobLabel
)

// usesVMs reports whether a node of the experiment is a virtual machine.
func usesVMs(e *v1alpha1.Experiment) bool {
	return slices.ContainsFunc(e.Spec.Nodes, func(n v1alpha1.Node) bool { return n.Runtime == v1alpha1.RuntimeVM })
}

// guestTracker remembers for which launchers the Secret was created, because the operator must not read Secrets. After a
// restart each is created once more.
type guestTracker struct {
	once        sync.Once
	secretsMade *lru.Cache

	mu sync.Mutex
	// silentSince is by the launchers' UIDs.
	silentSince map[types.UID]time.Time
}

// silentFor is how long a guest has been silent, 0 if it is not.
func (g *guestTracker) silentFor(launcher types.UID, isSilent bool, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	since, known := g.silentSince[launcher]
	switch {
	case !isSilent:
		delete(g.silentSince, launcher)
		return 0
	case !known && g.silentSince == nil:
		g.silentSince = map[types.UID]time.Time{}
		fallthrough
	case !known:
		g.silentSince[launcher], since = now, now
	}
	return now.Sub(since)
}

func (g *guestTracker) secretCache() *lru.Cache {
	g.once.Do(func() { g.secretsMade = lru.New(maxGuests) })
	return g.secretsMade
}

func (g *guestTracker) hasSecret(launcher types.UID) bool {
	_, found := g.secretCache().Get(launcher)
	return found
}

func (g *guestTracker) noteSecret(launcher types.UID) { g.secretCache().Add(launcher, true) }

// checkVMs finds why the cluster cannot run the experiment's virtual machines.
func (r *Reconciler) checkVMs(ctx context.Context, s *scope) error {
	if !usesVMs(s.experiment) {
		return nil
	}
	if err := r.resolveTemplates(ctx, s); err != nil || s.phase() == v1alpha1.PhaseProvisioning {
		return err
	}
	kind := kubevirtv1.VirtualMachineInstanceGroupVersionKind
	_, err := r.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		s.addFinding(ReasonKubeVirtMissing, field.Invalid(field.NewPath("spec", "nodes").Index(firstVM(s.experiment)).Child("runtime"), v1alpha1.RuntimeVM,
			"KubeVirt is not installed in this cluster: install it, or make the node a pod"))
		return nil
	}
	if err != nil {
		return err
	}
	for _, err := range render.CheckGuestImage(s.renderInput()) {
		s.addFinding(ReasonGuestMissing, err)
	}
	return nil
}

// resolveTemplates finds the templates of virtual machines in the experiment's namespace, else in the platform's.
// Existing machines do not change.
func (r *Reconciler) resolveTemplates(ctx context.Context, s *scope) error {
	s.templates = map[string]v1alpha1.VirtualMachine{}
	for i, node := range s.experiment.Spec.Nodes {
		if node.VM == nil || node.VM.Template == "" {
			continue
		}
		name := node.VM.Template
		if _, known := s.templates[name]; known {
			continue
		}
		template, err := r.template(ctx, s.experiment.Namespace, name)
		if apierrors.IsNotFound(err) {
			s.addFinding(ReasonTemplateNotFound, field.NotFound(field.NewPath("spec", "nodes").Index(i).Child("vm", "template"), name))
			continue
		}
		if err != nil {
			return err
		}
		s.templates[name] = template.Spec.VM
	}
	return nil
}

func (r *Reconciler) template(ctx context.Context, namespace, name string) (*v1alpha1.NodeTemplate, error) {
	var template v1alpha1.NodeTemplate
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &template)
	if apierrors.IsNotFound(err) {
		err = r.Client.Get(ctx, client.ObjectKey{Namespace: r.Options.Render.Namespace, Name: name}, &template)
	}
	return &template, err
}

// cachedTemplates returns the cached templates of the experiment's virtual machines, and a fingerprint of them.
func (r *Reconciler) cachedTemplates(e *v1alpha1.Experiment) (known map[string]v1alpha1.VirtualMachine, fingerprint string) {
	for _, node := range e.Spec.Nodes {
		if node.VM == nil || node.VM.Template == "" {
			continue
		}
		template, err := r.template(context.Background(), e.Namespace, node.VM.Template)
		if err != nil {
			continue // the experiment is not accepted without it
		}
		if known == nil {
			known = map[string]v1alpha1.VirtualMachine{}
		}
		known[node.VM.Template] = template.Spec.VM
		fingerprint += fmt.Sprintf("%s %d ", template.UID, template.Generation)
	}
	return known, fingerprint
}

// templateUsers are the queued experiments that may use a template: those of its namespace, or all if it is the platform's.
func (r *Reconciler) templateUsers(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetNamespace() == r.Options.Render.Namespace {
		object = &v1alpha1.NodeTemplate{}
	}
	return r.queuedExperiments(ctx, object)
}

func firstVM(e *v1alpha1.Experiment) int {
	return slices.IndexFunc(e.Spec.Nodes, func(n v1alpha1.Node) bool { return n.Runtime == v1alpha1.RuntimeVM })
}

// loadVMs finds the experiment's virtual machines by their owner's UID. They are not cached, because a cluster without
// KubeVirt does not have the kind to watch.
func (r *Reconciler) loadVMs(ctx context.Context, s *scope) error {
	s.vms = nil
	if !usesVMs(s.experiment) {
		return nil
	}
	s.vms = map[string]*kubevirtv1.VirtualMachineInstance{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kubevirtv1.VirtualMachineInstanceGroupVersionKind)
	err := r.Live.List(ctx, list, client.InNamespace(s.experiment.Namespace), client.MatchingLabels{v1alpha1.LabelExperimentUID: string(s.experiment.UID)})
	if meta.IsNoMatchError(err) {
		return nil // without KubeVirt there are no machines
	}
	for i := range list.Items {
		vm := &kubevirtv1.VirtualMachineInstance{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, vm); err != nil {
			return fmt.Errorf("VirtualMachineInstance %s: %w", list.Items[i].GetName(), err)
		}
		if metav1.IsControlledBy(vm, s.experiment) {
			s.vms[vm.Labels[v1alpha1.LabelNode]] = vm
		}
	}
	return err
}

// unstructuredVM converts a machine by JSON, because the runtime's converter does not support unsigned numbers.
func unstructuredVM(vm *kubevirtv1.VirtualMachineInstance) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(vm)
	u := &unstructured.Unstructured{}
	if err == nil {
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("VirtualMachineInstance %s: %w", vm.Name, err)
	}
	return u, nil
}

// nodeOf returns the node of a pod that the experiment owns, directly or by its virtual machine. It does not trust labels
// without the owner, because users can set them.
func (s *scope) nodeOf(pod *corev1.Pod) (node string, ok bool) {
	if metav1.IsControlledBy(pod, s.experiment) {
		return pod.Labels[v1alpha1.LabelNode], true
	}
	for node, vm := range s.vms {
		if metav1.IsControlledBy(pod, vm) && pod.Labels[migrationLabel] == "" {
			return node, true
		}
	}
	return "", false
}

// ensureVMs creates the missing virtual machines and waits for KubeVirt's launcher of each, whose UID the radio network
// needs.
func (r *Reconciler) ensureVMs(ctx context.Context, s *scope) (bool, error) {
	if !usesVMs(s.experiment) {
		return false, nil
	}
	for _, want := range render.VMs(s.renderInput(), s.now, func(n topology.Node) bool { return s.vms[n.Name] == nil }) {
		if stop, err := r.createVM(ctx, s, want); stop || err != nil || s.justFailed {
			return true, err
		}
	}
	var waiting []string
	for _, node := range render.VMNodes(s.topology) {
		if s.pods[node.Name] == nil {
			waiting = append(waiting, node.Name)
		}
	}
	if len(waiting) == 0 {
		return false, nil
	}
	s.experiment.Status.Message = "waiting for KubeVirt to create the pods of " + someOf(waiting, "virtual machines")
	s.requeueAfter(pollInterval)
	return true, nil
}

func (r *Reconciler) createVM(ctx context.Context, s *scope, want *kubevirtv1.VirtualMachineInstance) (stop bool, err error) {
	node := want.Labels[v1alpha1.LabelNode]
	made, err := unstructuredVM(want)
	if err != nil {
		return true, err
	}
	unstructured.RemoveNestedField(made.Object, "status")
	switch err := r.Client.Create(ctx, made); {
	case err == nil:
		s.vms[node] = want
		want.UID = made.GetUID()
	case apierrors.IsAlreadyExists(err):
		s.experiment.Status.Message = fmt.Sprintf("waiting for the deletion of VirtualMachineInstance %s, which belongs to somebody else", want.Name)
		s.requeueAfter(2 * pollInterval)
		return true, nil
	case isQuotaRefusal(err):
		return true, r.backToQueue(ctx, s, err)
	case meta.IsNoMatchError(err):
		s.fail(ReasonKubeVirtMissing, "node %s is a virtual machine, and KubeVirt is not installed in this cluster any more", node)
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		s.fail(ReasonPodRefused, "the cluster refuses the virtual machine of node %s: %v", node, err)
	default:
		return true, err
	}
	return false, nil
}

// launcherStarted reports whether a launcher has its network and so all its volumes.
func launcherStarted(launcher *corev1.Pod) bool {
	return launcher.Status.Phase != corev1.PodPending && launcher.Status.Phase != "" || launcher.Status.PodIP != ""
}

// hasGuestFile reports whether a launcher, nil for one to come, has the Secret with its guest's file.
func (r *Reconciler) hasGuestFile(launcher *corev1.Pod) bool {
	return launcher != nil && (launcherStarted(launcher) || r.guests.hasSecret(launcher.UID))
}

// releaseVMs creates the Secrets without which the launchers do not start, once the server and radiod know their UIDs.
func (r *Reconciler) releaseVMs(ctx context.Context, s *scope) (bool, error) {
	for _, node := range render.VMNodes(s.topology) {
		launcher, vm := s.pods[node.Name], s.vms[node.Name]
		if r.hasGuestFile(launcher) {
			continue
		}
		secret, err := r.guestSecret(ctx, s, node, vm, launcher)
		if err != nil || s.justFailed {
			return true, err
		}
		switch err := r.Client.Create(ctx, secret); {
		case err == nil || apierrors.IsAlreadyExists(err): // no other machine has a Secret of this name
			r.guests.noteSecret(launcher.UID)
		case isQuotaRefusal(err):
			return true, r.backToQueue(ctx, s, err)
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
			s.fail(ReasonSecretRefused, "the cluster refuses the Secret for the guest of node %s: %v", node.Name, err)
			return true, nil
		default:
			return true, err
		}
	}
	return false, nil
}

// guestSecret has a token for the server, bound to the launcher's pod. The guest authenticates as that pod.
func (r *Reconciler) guestSecret(ctx context.Context, s *scope, node topology.Node, vm *kubevirtv1.VirtualMachineInstance, launcher *corev1.Pod) (*corev1.Secret, error) {
	file, err := render.GuestFile(s.renderInput(), node, s.waveforms)
	if err != nil {
		s.fail(ReasonInvalid, "%v", err)
		return nil, nil
	}
	if !node.HasAgent() { // only agents connect to the server
		return render.GuestSecret(s.renderInput(), vm, node, file, ""), nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: "default"}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{v1alpha1.TokenAudience}, ExpirationSeconds: ptr.To(int64(s.tokenLifetime().Seconds())),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: launcher.Name, UID: launcher.UID},
	}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("token for the guest of node %s: %w", node.Name, err)
	}
	return render.GuestSecret(s.renderInput(), vm, node, file, request.Status.Token), nil
}

// tokenLifetime is the lifetime of a guest's token, which must last for the run because the token on its disk is never
// renewed.
func (s *scope) tokenLifetime() time.Duration {
	if s.timeline.Live() {
		return liveTokenLifetime
	}
	end := s.timeline.End(nil)
	return max(end+end/10+s.experiment.Spec.Drain.Max.Std()+tokenMargin, minTokenLifetime)
}

// vmTrouble returns why a virtual machine cannot become ready. The reason is empty while it still can.
func vmTrouble(vm *kubevirtv1.VirtualMachineInstance) (reason, message string) {
	switch {
	case !vm.DeletionTimestamp.IsZero():
		return ReasonNodeFailed, "its virtual machine was deleted before the experiment started"
	case vm.Status.Phase == kubevirtv1.Failed || vm.Status.Phase == kubevirtv1.Succeeded:
		return ReasonNodeFailed, "its virtual machine ended before the experiment started" + inParentheses(vm.Status.Reason)
	}
	if refused := launcherRefusal(vm); refused != "" && !strings.Contains(refused, "exceeded quota") {
		return ReasonPodRefused, "KubeVirt cannot create the pod of its virtual machine: " + refused
	}
	return "", ""
}

func inParentheses(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// launcherRefusal is why KubeVirt could not create a machine's pod, empty if it could or has not tried.
func launcherRefusal(vm *kubevirtv1.VirtualMachineInstance) string {
	for _, c := range vm.Status.Conditions {
		if c.Type == kubevirtv1.VirtualMachineInstanceSynchronized && c.Status == corev1.ConditionFalse &&
			(c.Reason == failedCreatePod && strings.Contains(c.Message, "forbidden") || c.Reason == failedValidation) {
			return c.Message
		}
	}
	return ""
}

// KubeVirt's reasons if the API server refuses a launcher or the machine itself.
const (
	failedCreatePod  = "FailedCreate"
	failedValidation = "FailedCreateValidation"
)

// checkVMQuota puts the experiment back into the queue if a quota refuses a launcher.
func (r *Reconciler) checkVMQuota(ctx context.Context, s *scope) (bool, error) {
	for _, node := range sortedKeys(s.vms) {
		refused := launcherRefusal(s.vms[node])
		if s.pods[node] == nil && strings.Contains(refused, "exceeded quota") {
			return true, r.backToQueue(ctx, s, fmt.Errorf("node %s: %s", node, refused))
		}
	}
	return false, nil
}

const (
	// consoleLines and consoleBytes limit the end of a guest's console in the message of a failure.
	consoleLines, consoleBytes = 8, 600
	// consoleTimeout is the time for the kubelet's answer.
	consoleTimeout = 5 * time.Second
)

// consoleTail is the end of a guest's console for the message of a failure. It is empty for pods and if it cannot be read.
func (r *Reconciler) consoleTail(ctx context.Context, s *scope, node string) string {
	n, _ := s.topology.Node(node)
	launcher := s.pods[node]
	if !n.IsVM() || launcher == nil || r.Console == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	text, err := r.Console(ctx, launcher.Namespace, launcher.Name, render.GuestLogContainer)
	if err != nil {
		log.FromContext(ctx).Info("the console of a guest could not be read", "node", node, "error", err.Error())
		return ""
	}
	if lines := lastLines(text); lines != "" {
		return "; its console's last lines: " + lines
	}
	return "; its console is empty"
}

// lastLines are the last lines of a console without control sequences, joined by " | ".
func lastLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(controlSequences.ReplaceAllString(text, ""), "\n") {
		if line = strings.TrimSpace(strings.Map(printable, line)); line != "" {
			lines = append(lines, line)
		}
	}
	joined := strings.Join(lines[max(len(lines)-consoleLines, 0):], " | ")
	if len(joined) > consoleBytes {
		joined = "…" + strings.ToValidUTF8(joined[len(joined)-consoleBytes:], "")
	}
	return joined
}

// unreportedGuest describes the first virtual machine whose agent has not reported, with the end of its console.
func (r *Reconciler) unreportedGuest(ctx context.Context, s *scope) string {
	state, err := r.Runs.State(ctx, string(s.experiment.UID))
	if err != nil {
		return ""
	}
	reported := map[string]bool{}
	for _, agent := range state.Agents {
		reported[agent.Node] = true
	}
	for _, node := range render.VMNodes(s.topology) {
		if launcher := s.pods[node.Name]; launcher != nil && launcherStarted(launcher) && node.HasAgent() && !reported[node.Name] {
			return "; node " + node.Name + " has not reported" + r.consoleTail(ctx, s, node.Name)
		}
	}
	return ""
}

// nodeProgress describes the progress of a node that has not reported.
func (s *scope) nodeProgress(node string) string {
	if vm := s.vms[node]; vm != nil && vm.Status.Phase == kubevirtv1.Running {
		return " (its virtual machine runs)"
	}
	return podProgress(s.pods[node])
}

// vmLoss finds the end of a virtual machine. A guest that shuts down is lost like one that fails.
func vmLoss(node string, vm *kubevirtv1.VirtualMachineInstance, launcher *corev1.Pod) *loss {
	l := &loss{node: node, what: incidentNodeFailed}
	if launcher != nil {
		l.at = lastEnd(launcher)
	}
	switch {
	case launcher != nil && launcher.Status.Reason == incidentEvicted:
		return nodeLoss(node, launcher)
	case vm == nil:
		l.reason = "its virtual machine is gone"
	case !vm.DeletionTimestamp.IsZero():
		l.reason, l.at = "its virtual machine was deleted", vm.DeletionTimestamp.Add(-time.Duration(ptr.Deref(vm.DeletionGracePeriodSeconds, 0))*time.Second)
	case vm.Status.Phase == kubevirtv1.Failed:
		l.reason = "its virtual machine has failed" + inParentheses(vm.Status.Reason)
	case vm.Status.Phase == kubevirtv1.Succeeded:
		l.reason = "its guest has shut down"
	default:
		return nodeLoss(node, launcher)
	}
	return l
}

const (
	// guestSilenceLimit is how much older a guest's last report may be than that of any other agent. Agents report every
	// five seconds.
	guestSilenceLimit = 45 * time.Second
	// silenceConfirmation is how long a guest must be silent to be lost. After an outage of the server some agents report
	// before others.
	silenceConfirmation = 15 * time.Second
)

// silentGuests are running virtual machines whose agents have stopped reporting. A hanging guest, or one whose kernel has
// panicked, is lost although its machine runs.
func (r *Reconciler) silentGuests(s *scope, state runapi.State, known []loss) (found []loss) {
	last, newest, over := map[string]time.Time{}, time.Time{}, map[string]bool{}
	for _, agent := range state.Agents {
		if agent.ReportedAt.After(last[agent.Node]) {
			last[agent.Node] = agent.ReportedAt
		}
		if agent.ReportedAt.After(newest) {
			newest = agent.ReportedAt
		}
		over[agent.Node] = over[agent.Node] || agent.Phase == runapi.AgentDone || agent.Phase == runapi.AgentFailed
	}
	for _, node := range render.VMNodes(s.topology) {
		at, launcher := last[node.Name], s.pods[node.Name]
		if at.IsZero() || over[node.Name] || launcher == nil || slices.ContainsFunc(known, func(l loss) bool { return l.node == node.Name }) {
			continue
		}
		if r.guests.silentFor(launcher.UID, newest.Sub(at) > guestSilenceLimit, s.now) >= silenceConfirmation {
			found = append(found, loss{node: node.Name, what: incidentNodeFailed, at: at, reason: "its virtual machine runs, but its guest has stopped reporting"})
		}
	}
	return found
}

// findLauncher asks the API server for the launcher of a virtual machine.
func (r *Reconciler) findLauncher(ctx context.Context, s *scope, node string) error {
	vm := s.vms[node]
	if vm == nil {
		return nil
	}
	var list corev1.PodList
	if err := r.Live.List(ctx, &list, client.InNamespace(vm.Namespace), client.MatchingLabels{kubevirtv1.CreatedByLabel: string(vm.UID)}); err != nil {
		return err
	}
	for i := range list.Items {
		if of, ok := s.nodeOf(&list.Items[i]); ok && of == node {
			s.pods[node] = &list.Items[i]
		}
	}
	return nil
}

// deleteNodes deletes pods and virtual machines, and returns what is left. KubeVirt deletes a launcher with its machine.
func (r *Reconciler) deleteNodes(ctx context.Context, s *scope) (left []string, err error) {
	for _, node := range sortedKeys(s.vms) {
		left = append(left, "VirtualMachineInstance "+s.vms[node].Name)
		vm, err := unstructuredVM(s.vms[node])
		if err == nil {
			err = r.deleteOne(ctx, vm)
		}
		if err != nil {
			return left, err
		}
	}
	for _, node := range sortedKeys(s.pods) {
		left = append(left, "pod "+s.pods[node].Name)
		if s.vms[node] != nil {
			continue
		}
		if err := r.deleteOne(ctx, s.pods[node]); err != nil {
			return left, err
		}
	}
	return left, nil
}

// experimentOfLauncher is the experiment of a virtual machine's pod, by labels that KubeVirt copies from the machine.
func experimentOfLauncher(_ context.Context, object client.Object) []reconcile.Request {
	if !render.IsLauncher(object) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[v1alpha1.LabelExperiment]}}}
}

// controlSequences matches control sequences of terminals (ECMA-48), which boot loaders and systemd write.
var controlSequences = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]`)

func printable(r rune) rune {
	if r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return -1
}

// Console returns a function that reads the end of a launcher container's log.
func Console(kube kubernetes.Interface) func(ctx context.Context, namespace, pod, container string) (string, error) {
	return func(ctx context.Context, namespace, pod, container string) (string, error) {
		options := &corev1.PodLogOptions{Container: container, TailLines: ptr.To(int64(4 * consoleLines))}
		text, err := kube.CoreV1().Pods(namespace).GetLogs(pod, options).DoRaw(ctx)
		return string(text), err
	}
}
