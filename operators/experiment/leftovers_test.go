package experiment

import (
	"strings"
	"testing"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// workflowOf creates another's Workflow with the run's name.
func (w *world) workflowOf(owner *metav1.OwnerReference) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(render.WorkflowKind)
	u.SetName(w.key.Name)
	u.SetNamespace(w.key.Namespace)
	if owner != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	w.must(w.api.Create(w.t.Context(), u))
}

func TestTheWorkflowOfAnEarlierNamesakeIsAwaited(t *testing.T) {
	w := newWorld(t)
	w.noArgo = true
	former := w.experiment()
	former.UID = types.UID("uid-of-a-former-one")
	owner := render.Owner(former)
	w.workflowOf(&owner)
	w.untilPhase(v1alpha1.PhaseRunning)
	w.settle()
	if e := w.experiment(); e.Status.Message != "waiting for the deletion of Workflow quickstart of an earlier experiment" {
		t.Errorf("phase %s, message %q", e.Status.Phase, e.Status.Message)
	}
	w.must(w.api.Delete(t.Context(), w.workflow()))
	w.noArgo = false
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestAWorkflowOfSomebodyElseFailsTheRun(t *testing.T) {
	w := newWorld(t)
	w.noArgo = true
	w.workflowOf(nil)
	w.wantFailed(scope.ReasonWorkflowNameTaken, "there is a Workflow quickstart that belongs to somebody else")
}

// takenBy creates an object of another experiment, in a phase, by a name that the run needs.
func (w *world) takenBy(other string, phase v1alpha1.ExperimentPhase, taken client.Object) {
	w.t.Helper()
	e := readExperiment(w.t)
	e.Name, e.UID = other, ""
	w.must(w.api.Create(w.t.Context(), e))
	e.Status.Phase = phase
	w.must(w.api.Status().Update(w.t.Context(), e))
	taken.SetNamespace(w.key.Namespace)
	taken.SetOwnerReferences([]metav1.OwnerReference{render.Owner(e)})
	w.must(w.api.Create(w.t.Context(), taken))
}

// attachment of a network of another experiment that needs quickstart's name for network wan.
func attachment() *nadv1.NetworkAttachmentDefinition {
	return &nadv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Name: render.NetworkName("quickstart", "wan")}}
}

func TestANameThatAnExperimentUnderWayUsesFailsTheRun(t *testing.T) {
	gated := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "quickstart-nor"}, Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: v1alpha1.SchedulingGate}}}}
	machine := &unstructured.Unstructured{}
	machine.SetGroupVersionKind(kubevirtv1.VirtualMachineInstanceGroupVersionKind)
	machine.SetName("quickstart-nor")
	for name, c := range map[string]struct {
		world *world
		taken client.Object
		want  string
	}{
		"a network": {newWorld(t), attachment(), "network wan: the name of its NetworkAttachmentDefinition quickstart-wan is in use by experiment quick: rename the network, or wait until that experiment is over"},
		"a node":    {newWorld(t), gated, "node nor: the name of its pod quickstart-nor is in use by experiment quick: rename the node, or wait until that experiment is over"},
		"a machine": {machineWorld(t), machine, "node nor: the name of its VirtualMachineInstance quickstart-nor is in use by experiment quick: rename the node"},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world
			w.noVirt = true
			w.takenBy("quick", v1alpha1.PhaseRunning, c.taken)
			e := w.untilFinished()
			if ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); ready.Reason != scope.ReasonNameUsed || !strings.Contains(e.Status.Message, c.want) {
				t.Errorf("reason %s, message %q; want %s, %q", ready.Reason, e.Status.Message, scope.ReasonNameUsed, c.want)
			}
			w.must(w.api.Get(t.Context(), client.ObjectKeyFromObject(c.taken), c.taken)) // it is still there
		})
	}
}

func TestANameOfWhatGoesIsAwaited(t *testing.T) {
	for name, make := range map[string]func(w *world, taken *nadv1.NetworkAttachmentDefinition){
		"an experiment that is over": func(w *world, taken *nadv1.NetworkAttachmentDefinition) {
			w.takenBy("quick", v1alpha1.PhaseSucceeded, taken)
		},
		"an experiment that waits again": func(w *world, taken *nadv1.NetworkAttachmentDefinition) {
			w.takenBy("quick", v1alpha1.PhaseQueued, taken)
		},
		"a deleted experiment": func(w *world, taken *nadv1.NetworkAttachmentDefinition) {
			w.takenBy("quick", v1alpha1.PhaseRunning, taken)
			w.must(w.api.Delete(w.t.Context(), &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: "quick"}}))
		},
		"an earlier one of the name": func(w *world, taken *nadv1.NetworkAttachmentDefinition) {
			former := w.experiment()
			former.UID = "uid-of-a-former-one"
			taken.Namespace, taken.OwnerReferences = w.key.Namespace, []metav1.OwnerReference{render.Owner(former)}
			w.must(w.api.Create(w.t.Context(), taken))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, taken := newWorld(t), attachment()
			make(w, taken)
			w.untilPhase(v1alpha1.PhaseProvisioning)
			w.settle()
			if e := w.experiment(); e.Status.Message != "waiting for the deletion of NetworkAttachmentDefinition quickstart-wan, which belongs to somebody else" {
				t.Errorf("phase %s, message %q", e.Status.Phase, e.Status.Message)
			}
			w.must(w.api.Delete(t.Context(), taken))
			w.untilPhase(v1alpha1.PhaseRunning)
		})
	}
}

func TestTheReportOfAnEarlierPodsAgentDoesNotCount(t *testing.T) {
	w := newWorld(t)
	w.noAgents, w.noKubelet = true, true
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	state := w.server.states[string(w.experiment().UID)]
	for _, node := range state.Plan.Nodes {
		for _, app := range append(node.Apps, runapi.PlannedApp{Name: render.IdleApp}) {
			state.Agents = append(state.Agents, runapi.AgentState{Node: node.Name, AgentReport: runapi.AgentReport{App: app.Name}})
		}
	}
	w.step()
	if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseProvisioning || e.Status.Nodes.Ready != 0 {
		t.Errorf("%s with %s nodes ready, though no pod runs", e.Status.Phase, e.Status.Nodes.Summary)
	}
	w.noAgents, w.noKubelet = false, false
	w.untilPhase(v1alpha1.PhaseRunning)
}

// takenBack takes an experiment back whose nodes a busy host has not started. They are not deleted yet.
func (w *world) takenBack() {
	w.t.Helper()
	w.noRadiod = true
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	pod := w.pod("veh-1")
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tracker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: "StartError", Message: "namespace path: lstat /proc/0/ns/ipc: no such file or directory"}}}}
	w.must(w.api.Status().Update(w.t.Context(), pod))
	w.untilPhase(v1alpha1.PhaseQueued)
	if len(w.objects()) == 0 {
		w.t.Fatal("nothing is left of the start")
	}
	w.noRadiod = false
}

func TestWhatIsLeftOfAStartGoesAlsoIfTheExperimentIsNotAcceptedAnyMore(t *testing.T) {
	w := newWorld(t)
	w.takenBack()
	closed := team(w.key.Namespace)
	closed.Labels = nil
	w.must(w.api.Update(t.Context(), closed))
	w.until("not accepted", notAccepted)
	if left := w.objects(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	w.must(w.api.Update(t.Context(), team(w.key.Namespace)))
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestTheRecordOfAnEarlierStartGoesAlsoIfItsNodesWereRenamed(t *testing.T) {
	w := newWorld(t, func(e *v1alpha1.Experiment) {
		e.Spec.Nodes, e.Spec.Timeline = []v1alpha1.Node{{Name: "veh-1", Networks: []string{"lan"}, Apps: []string{"tracker"}}}, nil
	})
	w.takenBack()
	state := w.server.states[string(w.experiment().UID)]
	state.Agents = []runapi.AgentState{{Node: "veh-1", AgentReport: runapi.AgentReport{App: "tracker", Phase: runapi.AgentFailed, Message: "boom"}}}
	w.edit(func(e *v1alpha1.Experiment) { e.Spec.Nodes[0].Name = "truck" })
	w.untilPhase(v1alpha1.PhaseRunning)
}

func TestAnExperimentThatStartsAgainTakesTheScenarioAsItIsThen(t *testing.T) {
	w := emaneWorld(t)
	w.aimed(1)
	w.takenBack()
	var changed v1alpha1.Scenario
	w.must(w.api.Get(t.Context(), client.ObjectKey{Namespace: w.key.Namespace, Name: "aimed"}, &changed))
	text := w.server.scenarios[changed.Status.Digest]
	changed.Status.Digest = "sha256:" + strings.Repeat("a", 64)
	w.server.scenarios[changed.Status.Digest] = text
	w.must(w.api.Status().Update(t.Context(), &changed))
	w.untilPhase(v1alpha1.PhaseRunning)
	if has := w.emaneNetwork().Spec.Scenario; has != changed.Status.Digest {
		t.Errorf("the radios have scenario %s, want %s", has, changed.Status.Digest)
	}
}
