package experiment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/provisioning"
	"vignette.dev/vignette/operators/experiment/scope"
)

// kubeVirtFinalizer is KubeVirt's finalizer of every machine.
const kubeVirtFinalizer = kubevirtv1.VirtualMachineInstanceFinalizer

// withKubeVirt is the mapping of a cluster that has KubeVirt.
func withKubeVirt() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kubevirtv1.GroupVersion})
	mapper.Add(kubevirtv1.VirtualMachineInstanceGroupVersionKind, meta.RESTScopeNamespace)
	return mapper
}

// briefly makes an experiment last only seconds.
func briefly(e *v1alpha1.Experiment) {
	nodes := e.Spec.Nodes
	short(e)
	e.Spec.Nodes = nodes
}

// machine makes the first node of the quickstart a virtual machine.
func machine(e *v1alpha1.Experiment) {
	e.Spec.Nodes[0].Runtime, e.Spec.Nodes[0].VM = v1alpha1.RuntimeVM, &v1alpha1.VirtualMachine{Memory: "256Mi"}
}

// kubeVirt simulates KubeVirt's controllers, and the garbage collection of a machine's objects.
func (w *world) kubeVirt() {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kubevirtv1.VirtualMachineInstanceGroupVersionKind)
	w.must(w.api.List(w.t.Context(), list, client.InNamespace(w.key.Namespace)))
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].GetName()] = true
		w.kubeVirtOne(w.typed(&list.Items[i]))
	}
	var secrets corev1.SecretList
	w.must(w.api.List(w.t.Context(), &secrets, client.InNamespace(w.key.Namespace)))
	for i := range secrets.Items {
		if owner := metav1.GetControllerOf(&secrets.Items[i]); owner != nil && owner.Kind == "VirtualMachineInstance" && !there[owner.Name] {
			w.must(w.api.Delete(w.t.Context(), &secrets.Items[i]))
		}
	}
}

func (w *world) kubeVirtOne(vm *kubevirtv1.VirtualMachineInstance) {
	w.t.Helper()
	launcher := w.launcherOf(vm)
	if !vm.DeletionTimestamp.IsZero() {
		if launcher != nil {
			w.must(client.IgnoreNotFound(w.api.Delete(w.t.Context(), launcher, client.GracePeriodSeconds(0))))
		}
		controllerutil.RemoveFinalizer(vm, kubeVirtFinalizer)
		w.updateVM(vm)
		return
	}
	if launcher == nil && vm.Status.Phase == "" {
		w.must(w.api.Create(w.t.Context(), launcherPod(vm)))
		w.defaultAccount()
		controllerutil.AddFinalizer(vm, kubeVirtFinalizer)
		vm.Status.Phase = kubevirtv1.Scheduling
		w.updateVM(vm)
		return
	}
	phase := vm.Status.Phase
	switch {
	case launcher == nil || launcher.Status.Phase == corev1.PodFailed:
		phase = kubevirtv1.Failed
	case launcher.Status.Phase == corev1.PodRunning && phase == kubevirtv1.Scheduling:
		phase = kubevirtv1.Running
	}
	if phase != vm.Status.Phase {
		vm.Status.Phase = phase
		w.updateVM(vm)
	}
}

// defaultAccount is the account of every namespace.
func (w *world) defaultAccount() {
	err := w.api.Create(w.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: "default"}})
	if !apierrors.IsAlreadyExists(err) {
		w.must(err)
	}
}

func launcherPod(vm *kubevirtv1.VirtualMachineInstance) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "virt-launcher-" + vm.Name + "-abcde", Namespace: vm.Namespace, Labels: map[string]string{kubevirtv1.CreatedByLabel: string(vm.UID)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, kubevirtv1.VirtualMachineInstanceGroupVersionKind)},
	}}
	for name, value := range vm.Labels {
		pod.Labels[name] = value
	}
	pod.Spec.ServiceAccountName = "default"
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers = []corev1.Container{{Name: render.ComputeContainer, Image: "kubevirt/virt-launcher"}, {Name: render.DiskContainerPrefix + "root", Image: "r/guest:1"}}
	for _, volume := range vm.Spec.Volumes {
		if volume.Secret != nil {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: volume.Secret.SecretName}}})
		}
	}
	return pod
}

func (w *world) launcherOf(vm *kubevirtv1.VirtualMachineInstance) *corev1.Pod {
	for _, pod := range w.pods() {
		if metav1.IsControlledBy(&pod, vm) {
			return &pod
		}
	}
	return nil
}

// awaitsSecret reports whether the kubelet cannot mount a pod's volumes yet.
func (w *world) awaitsSecret(pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret == nil || !render.IsLauncher(pod) {
			continue
		}
		err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: volume.Secret.SecretName}, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			return true
		}
		w.must(err)
	}
	return false
}

func (w *world) vm(node string) *kubevirtv1.VirtualMachineInstance {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kubevirtv1.VirtualMachineInstanceGroupVersionKind)
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: w.key.Namespace, Name: render.PodName(w.key.Name, node)}, u))
	return w.typed(u)
}

func (w *world) typed(u *unstructured.Unstructured) *kubevirtv1.VirtualMachineInstance {
	w.t.Helper()
	vm := &kubevirtv1.VirtualMachineInstance{}
	w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, vm))
	return vm
}

func (w *world) updateVM(vm *kubevirtv1.VirtualMachineInstance) {
	w.t.Helper()
	u, err := objects.UnstructuredVM(vm)
	w.must(err)
	w.tolerate(w.api.Update(w.t.Context(), u))
}

func (w *world) networks() []v1alpha1.RadioNetwork {
	w.t.Helper()
	var list v1alpha1.RadioNetworkList
	w.must(w.api.List(w.t.Context(), &list))
	return list.Items
}

// machineWorld has a virtual machine for its first node, and a console.
func machineWorld(t *testing.T, change ...func(*v1alpha1.Experiment)) *world {
	t.Helper()
	w := newWorld(t, append([]func(*v1alpha1.Experiment){briefly, machine}, change...)...)
	w.reconciler.Console = func(context.Context, string, string, string) (string, error) {
		return "\x1b[0mBooting\r\n[    1.0] Kernel panic - not syncing: VFS\n\n", nil
	}
	return w
}

func TestAVirtualMachineIsAMemberByItsLaunchersUID(t *testing.T) {
	w := machineWorld(t)
	w.untilPhase(v1alpha1.PhaseRunning)
	launcher := w.launcherOf(w.vm("nor"))
	for _, network := range w.networks() {
		for _, member := range network.Spec.Members {
			if vm := member.Node == "nor"; vm != (member.Runtime == v1alpha1.RuntimeVM) || vm && member.PodUID != launcher.UID {
				t.Errorf("member %+v; the launcher is %s", member, launcher.UID)
			}
		}
	}
	secrets := w.secrets()
	if len(secrets) != 1 || secrets[0].Name != render.GuestSecretOf(w.vm("nor")) {
		t.Fatalf("secrets %v", secrets)
	}
	config, err := guestconfig.Parse(secrets[0].Data[guestconfig.ConfigFile])
	if err != nil || config.Node != "nor" || len(secrets[0].Data[guestconfig.TokenFile]) == 0 {
		t.Errorf("the guest's configuration is %+v, %v", config, err)
	}
	if w.untilFinished().Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("the run ends with %+v", w.experiment().Status)
	}
	w.settle()
	if left := w.objects(); !slices.Equal(left, []string{"Workflow quickstart"}) || len(w.secrets()) > 0 {
		t.Errorf("left are %v and Secrets %v", left, w.secrets())
	}
}

func TestARunThatOutlastsItsGuestsTokensFailsBeforeItBegins(t *testing.T) {
	w := machineWorld(t)
	w.tokenLifetime = 10 * time.Minute
	status := w.untilFinished().Status
	if status.T0 != nil || status.Phase != v1alpha1.PhaseFailed || !strings.Contains(status.Message, "the cluster gives virtual machines tokens for 10m0s only: make the run shorter") {
		t.Errorf("phase %s, T0 %v, message %q; want it failed for the tokens before T0", status.Phase, status.T0, status.Message)
	}
}

func TestALiveClusterTellsWhenItsGuestsLoseTheServer(t *testing.T) {
	w := machineWorld(t, liveCluster)
	w.tokenLifetime = 24 * time.Hour
	w.untilPhase(v1alpha1.PhaseRunning)
	if texts := w.recorded(); !slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(text, "virtual machines lose the server on") && strings.Contains(text, "tokens for 24h0m0s")
	}) {
		t.Errorf("events %q; want one that tells the end", texts)
	}
}

func TestAGuestFindsTheServerWithoutTheClustersNameserver(t *testing.T) {
	w := machineWorld(t)
	w.untilPhase(v1alpha1.PhaseRunning)
	config, err := guestconfig.Parse(w.secrets()[0].Data[guestconfig.ConfigFile])
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(config.Hosts, func(h guestconfig.Host) bool {
		return h.Address == "10.96.0.20" && slices.Equal(h.Names, []string{"server"})
	}) {
		t.Errorf("hosts are %+v; want the server's name and address too", config.Hosts)
	}
}

func TestNoGuestStartsBeforeItsMembershipIsKnown(t *testing.T) {
	w := machineWorld(t)
	w.noVirt = true
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	if len(w.networks()) > 0 || len(w.secrets()) > 0 {
		t.Errorf("%d networks and %d Secrets before there is a launcher", len(w.networks()), len(w.secrets()))
	}
	if message := w.experiment().Status.Message; message != "waiting for KubeVirt to create the pods of nor" {
		t.Errorf("message %q", message)
	}
	for _, pod := range w.pods() {
		if len(pod.Spec.SchedulingGates) == 0 {
			t.Errorf("pod %s has started before the machine's launcher is there", pod.Name)
		}
	}
}

func TestReconcilingARunWithAMachineTwiceWritesNothing(t *testing.T) {
	w := machineWorld(t)
	w.untilPhase(v1alpha1.PhaseRunning)
	w.until("1 s after T0", w.afterT0(time.Second))
	w.noArgo, w.noAgents = true, true
	w.reconcileTwice()
}

// reconcileTwice wants the second reconciliation at one moment to write nothing.
func (w *world) reconcileTwice() {
	w.t.Helper()
	for i := range 3 {
		before := len(w.writes)
		if _, err := w.reconcile(); err != nil {
			w.t.Fatal(err)
		}
		if i > 1 && len(w.writes) != before {
			w.t.Errorf("wrote %v", w.writes[before:])
		}
	}
}

func TestASecretOfAGuestIsCreatedOnce(t *testing.T) {
	w := machineWorld(t)
	w.noKubelet = true
	w.until("with a Secret", func(*v1alpha1.Experiment) bool { return len(w.secrets()) > 0 })
	w.settle()
	w.reconcileTwice()
	w.restart()
	if _, err := w.reconcile(); err != nil {
		t.Errorf("a restarted operator has error %v", err)
	}
}

func TestAMachineThatEndsBeforeT0FailsTheExperimentWithItsConsole(t *testing.T) {
	w := machineWorld(t)
	w.noAgents = true
	w.until("with a machine that runs", func(*v1alpha1.Experiment) bool {
		return len(w.secrets()) > 0 && w.vm("nor").Status.Phase == kubevirtv1.Running
	})
	w.endVM("nor", kubevirtv1.Failed)
	w.wantFailed(scope.ReasonNodeFailed, "node nor: its virtual machine ended before the experiment started; its console's last lines: Booting | [    1.0] Kernel panic - not syncing: VFS")
}

func (w *world) endVM(node string, phase kubevirtv1.VirtualMachineInstancePhase) {
	w.t.Helper()
	vm := w.vm(node)
	vm.Status.Phase = phase
	w.updateVM(vm)
}

func TestAGuestThatNeverReportsFailsTheExperimentWithItsConsole(t *testing.T) {
	w := machineWorld(t)
	w.noAgents, w.reconciler.Options.ProvisioningDeadline = true, 10*time.Second
	e := w.untilFinished()
	if failure := e.Status.Message; !strings.Contains(failure, "node nor has not reported; its console's last lines: Booting") {
		t.Errorf("failed with %q", failure)
	}
}

func TestAMachineWithADiskOfTheUserMayTakeLongerToStart(t *testing.T) {
	w := machineWorld(t, func(e *v1alpha1.Experiment) { e.Spec.Nodes[0].VM = &v1alpha1.VirtualMachine{Image: "team/router:7"} })
	w.noAgents = true
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	w.clock.Step(testOptions().ProvisioningDeadline)
	w.settle()
	if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseProvisioning {
		t.Errorf("after the deadline for platform disks: %s, %s", e.Status.Phase, e.Status.Message)
	}
	w.clock.Step(provisioning.OwnDiskBootTime)
	w.untilPhase(v1alpha1.PhaseFailed)
}

func TestTheDeadlineOfAStartGrowsWithNodesAndOwnDisks(t *testing.T) {
	w := machineWorld(t, func(e *v1alpha1.Experiment) { e.Spec.Nodes[0].VM = &v1alpha1.VirtualMachine{Template: "router"} })
	template := &v1alpha1.NodeTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: "router"}}
	w.must(w.api.Create(t.Context(), template))
	e, soonest := w.untilPhase(v1alpha1.PhaseProvisioning), testOptions().ProvisioningDeadline
	if got := w.reconciler.ProvisioningDeadline(e); got != soonest {
		t.Errorf("few nodes with platform disks have %s; want %s", got, soonest)
	}
	template.Spec.VM.Image = "team/router:7"
	w.must(w.api.Update(t.Context(), template))
	e.Status.Nodes.Total = 250
	if got, want := w.reconciler.ProvisioningDeadline(e), soonest+200*3*time.Second+provisioning.OwnDiskBootTime; got != want {
		t.Errorf("250 nodes with own disks have %s; want %s", got, want)
	}
}

func TestAMachineThatEndsWhileRunningIsANamedLoss(t *testing.T) {
	for phase, want := range map[kubevirtv1.VirtualMachineInstancePhase]string{
		kubevirtv1.Failed: "its virtual machine has failed", kubevirtv1.Succeeded: "its guest has shut down",
	} {
		t.Run(string(phase), func(t *testing.T) {
			w := machineWorld(t)
			w.until("2 s after T0", w.afterT0(2*time.Second))
			w.endVM("nor", phase)
			w.untilFinished()
			incidents := w.server.states[string(w.experiment().UID)].Incidents
			if len(incidents) != 1 || incidents[0].Node != "nor" || !strings.HasPrefix(incidents[0].Reason, want+"; its console's last lines: ") {
				t.Errorf("incidents %+v", incidents)
			}
			if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseSucceeded {
				t.Errorf("the run ends with %+v", e.Status)
			}
		})
	}
}

func TestAGuestThatHangsIsANamedLoss(t *testing.T) {
	w := machineWorld(t, func(e *v1alpha1.Experiment) { e.Spec.Duration = "120s" })
	w.until("2 s after T0", w.afterT0(2*time.Second))
	hung := w.clock.Now()
	w.atMoment = func() { // the others continue to report
		agents := w.server.states[string(w.experiment().UID)].Agents
		for i := range agents {
			agents[i].ReportedAt = w.clock.Now()
			if agents[i].Node == "nor" {
				agents[i].ReportedAt = hung
			}
		}
	}
	w.server.unreachable = map[string]bool{"nor/hub": true, "nor/nor-units": true}
	w.untilFinished()
	incidents := w.server.states[string(w.experiment().UID)].Incidents
	if len(incidents) == 0 || incidents[0].Node != "nor" || incidents[0].What != nodes.IncidentNodeFailed || !strings.Contains(incidents[0].Reason, "Kernel panic - not syncing") || incidents[0].FromSeconds > 3 {
		t.Errorf("incidents %+v", incidents)
	}
}

func TestAGuestWithoutAgentIsReadyOnceItsMachineRuns(t *testing.T) {
	w := machineWorld(t, func(e *v1alpha1.Experiment) {
		e.Spec.Nodes[3].Runtime, e.Spec.Nodes[3].VM = v1alpha1.RuntimeVM, &v1alpha1.VirtualMachine{Agent: ptr.To(false)}
		e.Spec.Nodes[3].Networks = []string{"lan"}
	})
	w.noVirt = true
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.noVirt = false
	w.untilPhase(v1alpha1.PhaseRunning)
	w.until("2 s after T0", w.afterT0(2*time.Second))
	w.endVM("observer", kubevirtv1.Failed)
	w.step()
	w.step()
	e := w.experiment()
	if e.Status.Nodes.Summary != "4/5" {
		t.Errorf("%s nodes are ready", e.Status.Nodes.Summary)
	}
	if w.untilFinished().Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("the run ends with %+v", w.experiment().Status)
	}
}

func TestADeletionOfARunWithMachinesLeavesNothing(t *testing.T) {
	for what, moment := range map[string]func(w *world) bool{
		"with machines": func(w *world) bool {
			return slices.ContainsFunc(w.objects(), func(o string) bool { return strings.HasPrefix(o, "VirtualMachineInstance") })
		},
		"with Secrets":   func(w *world) bool { return len(w.secrets()) > 0 },
		"that runs":      func(w *world) bool { return w.experiment().Status.Phase == v1alpha1.PhaseRunning },
		"that collects":  func(w *world) bool { return w.experiment().Status.Phase == v1alpha1.PhaseCollecting },
		"that succeeded": func(w *world) bool { return w.experiment().Status.Phase == v1alpha1.PhaseSucceeded },
	} {
		t.Run(what, func(t *testing.T) {
			w := machineWorld(t)
			w.until(what, func(*v1alpha1.Experiment) bool { return moment(w) })
			w.must(w.api.Delete(t.Context(), w.experiment()))
			w.until("gone", gone)
			w.kubeVirt()
			if left := w.objects(); len(left) > 0 || len(w.secrets()) > 0 {
				t.Errorf("left are %v and Secrets %v", left, w.secrets())
			}
		})
	}
}

func TestVirtualMachinesNeedKubeVirtAndTheirDisks(t *testing.T) {
	w := machineWorld(t)
	none := meta.NewDefaultRESTMapper(nil)
	w.reconciler.Client = withMapper{w.reconciler.Client, none}
	e := w.until("not accepted", notAccepted)
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted); c.Reason != scope.ReasonKubeVirtMissing || !strings.Contains(c.Message, "spec.nodes[0].runtime") {
		t.Errorf("condition %+v", c)
	}
	w.restart() // KubeVirt is installed now, so the experiment is accepted
	w.untilPhase(v1alpha1.PhaseRunning)

	w = machineWorld(t, func(e *v1alpha1.Experiment) { e.Spec.Nodes[0].VM.PersistentVolumeClaim = "firmware" })
	e = w.until("not accepted", notAccepted)
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted); c.Reason != scope.ReasonDiskNotFound || !strings.Contains(c.Message, `spec.nodes[0].vm.persistentVolumeClaim: Not found: "firmware"`) {
		t.Errorf("condition %+v", c)
	}
}

func TestATemplateOfTheNamespacePrecedesThePlatforms(t *testing.T) {
	w := machineWorld(t, func(e *v1alpha1.Experiment) { e.Spec.Nodes[0].VM = &v1alpha1.VirtualMachine{Template: "router"} })
	e := w.until("not accepted", notAccepted)
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted); c.Reason != scope.ReasonTemplateNotFound || !strings.Contains(c.Message, `spec.nodes[0].vm.template: Not found: "router"`) {
		t.Errorf("condition %+v", c)
	}
	for namespace, memory := range map[string]v1alpha1.MemorySize{platform: "1Gi", w.key.Namespace: "768Mi"} {
		w.must(w.api.Create(t.Context(), &v1alpha1.NodeTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "router"},
			Spec: v1alpha1.NodeTemplateSpec{VM: v1alpha1.VirtualMachine{Memory: memory}}}))
	}
	w.untilPhase(v1alpha1.PhaseRunning)
	if memory := w.vm("nor").Spec.Domain.Memory.Guest.String(); memory != "768Mi" {
		t.Errorf("the machine has %s", memory)
	}
}

type withMapper struct {
	client.Client
	mapper meta.RESTMapper
}

func (c withMapper) RESTMapper() meta.RESTMapper { return c.mapper }

func notAccepted(e *v1alpha1.Experiment) bool {
	return meta.IsStatusConditionFalse(e.Status.Conditions, v1alpha1.ConditionAccepted)
}

func TestAQuotaThatRefusesALauncherPutsTheExperimentBackInTheQueue(t *testing.T) {
	w := machineWorld(t)
	w.noVirt = true
	w.until("with a machine", func(*v1alpha1.Experiment) bool {
		return slices.Contains(w.objects(), "VirtualMachineInstance quickstart-nor")
	})
	vm := w.vm("nor")
	vm.Status.Conditions = []kubevirtv1.VirtualMachineInstanceCondition{{
		Type: kubevirtv1.VirtualMachineInstanceSynchronized, Status: corev1.ConditionFalse, Reason: "FailedCreate",
		Message: `failed to create virtual machine pod: pods "virt-launcher-quickstart-nor-x" is forbidden: exceeded quota: team`,
	}}
	w.updateVM(vm)
	w.untilPhase(v1alpha1.PhaseQueued)
	w.noVirt = false
	for range 3 {
		w.step()
	}
	if left := w.objects(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestAHostThatRefusesAMachineIsNamed(t *testing.T) {
	w := machineWorld(t)
	w.noVirt = true
	w.until("with a machine", func(*v1alpha1.Experiment) bool {
		return slices.Contains(w.objects(), "VirtualMachineInstance quickstart-nor")
	})
	vm := w.vm("nor")
	vm.Status.Conditions = []kubevirtv1.VirtualMachineInstanceCondition{{
		Type: kubevirtv1.VirtualMachineInstanceSynchronized, Status: corev1.ConditionFalse, Reason: "FailedCreate",
		Message: `needs a privileged namespace to run: pods is forbidden: violates PodSecurity "restricted:latest"`,
	}}
	w.updateVM(vm)
	w.wantFailed(scope.ReasonPodRefused, "node nor: KubeVirt cannot create the pod of its virtual machine: "+vm.Status.Conditions[0].Message)
}

func TestAConsoleThatCannotBeReadKeepsTheReason(t *testing.T) {
	w := machineWorld(t)
	w.reconciler.Console = func(context.Context, string, string, string) (string, error) { return "", errors.New("no kubelet") }
	w.until("2 s after T0", w.afterT0(2*time.Second))
	w.endVM("nor", kubevirtv1.Failed)
	w.untilFinished()
	if incidents := w.server.states[string(w.experiment().UID)].Incidents; len(incidents) != 1 || incidents[0].Reason != "its virtual machine has failed" {
		t.Errorf("incidents %+v", incidents)
	}
}
