package experiment

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

func TestAnExperimentGoesFromApplyToResults(t *testing.T) {
	w := newWorld(t)
	w.server.receivesUntil = 70 * time.Second
	var phases []v1alpha1.ExperimentPhase
	e := w.until("finished", func(e *v1alpha1.Experiment) bool {
		if p := e.Status.Phase; p != "" && (len(phases) == 0 || phases[len(phases)-1] != p) {
			phases = append(phases, p)
		}
		return scope.Finished(e.Status.Phase)
	})
	want := []v1alpha1.ExperimentPhase{v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning, v1alpha1.PhaseCollecting, v1alpha1.PhaseAnalysing, v1alpha1.PhaseSucceeded}
	if diff := cmp.Diff(want, phases); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	if got := e.Status.Results; got == nil || got.DeliveredPercent != "99" || got.MedianDelay != "112.4ms" || !*got.KeptUp || got.Gaps != 1 {
		t.Errorf("results are %+v", got)
	}
	if e.Status.Nodes.Summary != "5/5" || e.Status.Progress != "100%" || e.Status.CompletionTime == nil {
		t.Errorf("status is %+v", e.Status)
	}
	plan := w.server.states[string(e.UID)].Plan
	if end := time.Duration(*plan.MeasureEndNanoseconds); end < 74*time.Second || end > 76*time.Second {
		t.Errorf("the measuring window ends %s after T0, want 5 s after the last message at 69 s", end)
	}
	if plan.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("the archive has phase %s", plan.Phase)
	}
}

func TestNothingButTheWorkflowStaysAfterSuccess(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseSucceeded)
	w.settle()
	if diff := cmp.Diff([]string{"Workflow quickstart"}, w.objects()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestASettledExperimentIsNotWrittenTo(t *testing.T) {
	cases := map[string]func(*world){
		"after success": func(w *world) { w.untilPhase(v1alpha1.PhaseSucceeded) },
		"after failure": func(w *world) {
			w.server.failing = map[string]string{"nor/hub": "boom"}
			w.untilPhase(v1alpha1.PhaseFailed)
		},
		"waiting for a waveform": func(w *world) { w.must(w.api.Delete(w.t.Context(), ethernet())) },
		"waiting for room": func(w *world) {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: w.key.Namespace}}
			quota.Status.Hard = corev1.ResourceList{corev1.ResourcePods: quantity("3")}
			w.must(w.api.Create(w.t.Context(), quota))
		},
		"while agents come up": func(w *world) { w.noAgents = true; w.untilPhase(v1alpha1.PhaseProvisioning) },
		"while Argo is slow":   func(w *world) { w.noArgo = true; w.untilPhase(v1alpha1.PhaseRunning) },
	}
	for name, reach := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			reach(w)
			w.settle()
			before := len(w.writes)
			for range 3 {
				w.clock.Step(10 * time.Millisecond)
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
			}
			if more := w.writes[before:]; len(more) > 0 {
				t.Errorf("wrote %v", more)
			}
		})
	}
}

func TestNothingIsCreatedBeforeTheReferencesAreValid(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Delete(t.Context(), ethernet()))
	near := ethernet()
	near.Name = "ethernet2"
	w.must(w.api.Create(t.Context(), near))
	w.settle()
	e := w.experiment()
	accepted := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted.Status != metav1.ConditionFalse || accepted.Reason != scope.ReasonWaveformNotFound || !strings.Contains(accepted.Message, `spec.networks[1].waveform: Not found: "ethernet": did you mean ethernet2?`) {
		t.Errorf("Accepted is %+v", accepted)
	}
	if !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Error("it is not Stalled, though only a person can help")
	}
	if found := w.objects(); len(found) > 0 {
		t.Errorf("created %v", found)
	}
	w.must(w.api.Create(t.Context(), ethernet()))
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestASubnetOfTheClusterIsRefused(t *testing.T) {
	cases := map[string]struct{ subnet, want string }{
		"pod range":    {"10.78.0.0/16", "the pod range of node n1"},
		"node address": {"10.77.0.0/24", "the address of node n1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(e *v1alpha1.Experiment) { e.Spec.Networks[0].Subnet = c.subnet })
			w.settle()
			accepted := meta.FindStatusCondition(w.experiment().Status.Conditions, v1alpha1.ConditionAccepted)
			if accepted.Reason != scope.ReasonSubnetOverlap || !strings.Contains(accepted.Message, c.want) || !strings.Contains(accepted.Message, "spec.networks[0].subnet") {
				t.Errorf("Accepted is %+v", accepted)
			}
		})
	}
}

func TestAStaticRouteIntoTheClusterIsRefused(t *testing.T) {
	w := newWorld(t, func(e *v1alpha1.Experiment) {
		network := &e.Spec.Networks[0]
		via := e.Spec.Nodes[slices.IndexFunc(e.Spec.Nodes, func(n v1alpha1.Node) bool { return n.Count == nil && slices.Contains(n.Networks, network.Name) })].Name
		network.Routing = &v1alpha1.Routing{Protocol: v1alpha1.RoutingStatic, Routes: []v1alpha1.StaticRoute{{To: "172.16.0.0/12", Via: via}, {To: "10.0.0.0/8", Via: via}}}
	})
	w.settle()
	accepted := meta.FindStatusCondition(w.experiment().Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted.Reason != scope.ReasonSubnetOverlap || !strings.Contains(accepted.Message, "spec.networks[0].routing.routes[1].to") || !strings.Contains(accepted.Message, "of node n1") {
		t.Errorf("Accepted is %+v", accepted)
	}
}

func TestAQuotaOfLimitsNeedsDefaults(t *testing.T) {
	w := newWorld(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: w.key.Namespace}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourceLimitsMemory: quantity("64Gi")}
	w.must(w.api.Create(t.Context(), quota))
	w.settle()
	accepted := meta.FindStatusCondition(w.experiment().Status.Conditions, v1alpha1.ConditionAccepted)
	want := "ResourceQuota team of namespace " + w.key.Namespace + " has limits.memory, and no LimitRange there gives containers a default limit of memory: add one, or bound requests.memory instead"
	if accepted.Reason != scope.ReasonLimitsMissing || !strings.Contains(accepted.Message, want) {
		t.Errorf("Accepted is %+v; want %s", accepted, want)
	}
	defaults := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: w.key.Namespace}}
	defaults.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: quantity("2Gi")}}}
	w.must(w.api.Create(t.Context(), defaults))
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestAnExperimentWaitsForQuotaAndSaysHowMuchItNeeds(t *testing.T) {
	w := newWorld(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: w.key.Namespace}}
	quota.Status.Hard = corev1.ResourceList{corev1.ResourcePods: quantity("10")}
	quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: quantity("7")}
	w.must(w.api.Create(t.Context(), quota))
	w.settle()
	e := w.experiment()
	admitted := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted)
	want := "quota team has 3 of pods free (of 10), and 5 nodes and the workflow need 6"
	if admitted.Reason != "NoRoom" || admitted.Message != want || e.Status.Phase != v1alpha1.PhaseQueued {
		t.Errorf("phase %s, Admitted %+v, want %q", e.Status.Phase, admitted, want)
	}
	if events := w.recorded(); !slices.Contains(events, "Normal NoRoom "+want) {
		t.Errorf("events %q; want a normal one, as waiting is no trouble", events)
	}
	quota.Status.Used[corev1.ResourcePods] = quantity("4")
	w.must(w.api.Update(t.Context(), quota))
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestAQuotaThatIsTooSmallIsAWarningUntilItGrows(t *testing.T) {
	w := newWorld(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: w.key.Namespace}}
	quota.Status.Hard = corev1.ResourceList{corev1.ResourcePods: quantity("5")}
	w.must(w.api.Create(t.Context(), quota))
	w.settle()
	if events := w.recorded(); !slices.ContainsFunc(events, func(s string) bool { return strings.HasPrefix(s, "Warning QuotaTooSmall ") }) {
		t.Errorf("events %q; want a warning, as it never starts", events)
	}
	quota.Status.Hard[corev1.ResourcePods] = quantity("10")
	w.must(w.api.Update(t.Context(), quota))
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestAFailureInProvisioningIsFoundQuicklyAndExplained(t *testing.T) {
	waiting := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tracker", Image: "registry.example.org/team/tracker:1.4",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
	}
	cases := map[string]struct {
		trouble func(*corev1.Pod)
		reason  string
		message string
	}{
		"an image that does not exist": {waiting("ErrImagePull", "not found"), scope.ReasonImage,
			"node veh-1: app tracker: image registry.example.org/team/tracker:1.4: ErrImagePull: not found"},
		"a policy that never pulls": {waiting("ErrImageNeverPull", "not present"), scope.ReasonImage,
			"node veh-1: app tracker: image registry.example.org/team/tracker:1.4: ErrImageNeverPull: not present"},
		"a container that cannot be made": {waiting("CreateContainerConfigError", "runAsNonRoot"), scope.ReasonContainer,
			"node veh-1: app tracker does not start: CreateContainerConfigError: runAsNonRoot"},
		"an agent that ended": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tracker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}}}}
		}, scope.ReasonContainer, "node veh-1: app tracker: its container ended with exit code 2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.noKubelet = true
			w.until("all pods made", func(*v1alpha1.Experiment) bool { return len(w.pods()) == 5 })
			pod := w.pod("veh-1")
			c.trouble(pod)
			w.must(w.api.Status().Update(t.Context(), pod))
			since := w.clock.Now()
			e := w.untilPhase(v1alpha1.PhaseFailed)
			if took := w.clock.Since(since); took > 3*time.Second {
				t.Errorf("took %s to fail", took)
			}
			if got := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); got.Reason != c.reason || e.Status.Message != c.message {
				t.Errorf("Ready=%+v, message %q; want reason %s, message %q", got, e.Status.Message, c.reason, c.message)
			}
			w.noKubelet = false
			w.settle()
			if left := w.objects(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestAPodWithoutAHostFailsTheRunTwoMinutesAfterItsRelease(t *testing.T) {
	w := newWorld(t)
	w.noKubelet = true
	w.until("all pods made", func(*v1alpha1.Experiment) bool { return len(w.pods()) == 5 })
	pod := w.pod("veh-1")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/1 nodes are available", LastTransitionTime: metav1.NewTime(start.Add(-3 * time.Minute))}}
	w.must(w.api.Status().Update(t.Context(), pod))
	w.settle()
	if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseProvisioning {
		t.Fatalf("%s at once: %s", e.Status.Phase, e.Status.Message)
	}
	w.clock.Step(2 * time.Minute)
	w.wantFailed(scope.ReasonUnschedulable, "node veh-1: not scheduled for 2m0s: 0/1 nodes are available")
}

func TestNodesThatABusyHostDidNotStartAreStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.noRadiod = true // every agent has reported, and no radio is there
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	pod := w.pod("veh-1")
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tracker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: "StartError", Message: "namespace path: lstat /proc/0/ns/ipc: no such file or directory"}}}}
	w.must(w.api.Status().Update(t.Context(), pod))
	e := w.untilPhase(v1alpha1.PhaseQueued)
	admitted := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted)
	if want := "(tried once; next try in 15s): node veh-1: app tracker: its container ended with exit code 128 (StartError) (the host was too busy"; admitted.Reason != scope.ReasonNotStarted || !strings.Contains(admitted.Message, want) {
		t.Errorf("Admitted %+v, want %q in it", admitted, want)
	}
	if slices.ContainsFunc(w.pods(), func(p corev1.Pod) bool { return !p.DeletionTimestamp.IsZero() }) {
		t.Error("pods are deleted before the phase is written")
	}
	w.noRadiod = false
	w.untilPhase(v1alpha1.PhaseRunning)
	if !slices.Contains(w.writes, "delete run") {
		t.Error("the server still has reports and logs of the first pods")
	}
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestNodesThatABusyHostNeverStartsFailTheRun(t *testing.T) {
	w := newWorld(t)
	w.noKubelet = true
	for range 3 {
		w.until("all pods made", func(e *v1alpha1.Experiment) bool {
			return e.Status.Phase == v1alpha1.PhaseProvisioning && len(w.pods()) == 5
		})
		pod := w.pod("veh-1")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tracker", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CreateContainerError", Message: "context deadline exceeded"}}}}
		w.must(w.api.Status().Update(t.Context(), pod))
		w.until("no pod of these", func(e *v1alpha1.Experiment) bool {
			return e.Status.Phase != v1alpha1.PhaseProvisioning || meta.IsStatusConditionTrue(e.Status.Conditions, scope.ConditionFailure)
		})
	}
	e := w.untilPhase(v1alpha1.PhaseFailed)
	if want := "tried 3 times: node veh-1: app tracker does not start: CreateContainerError (the host was too busy"; !strings.HasPrefix(e.Status.Message, want) {
		t.Errorf("message %q, want %q", e.Status.Message, want)
	}
}

func TestProvisioningHasADeadline(t *testing.T) {
	w := newWorld(t)
	w.noAgents = true
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	w.clock.Step(testOptions().ProvisioningDeadline)
	e := w.untilPhase(v1alpha1.PhaseFailed)
	if !strings.Contains(e.Status.Message, "waiting for nor/hub, nor/nor-units, prt/spoke and 6 more agents") {
		t.Errorf("message %q does not say what it waited for", e.Status.Message)
	}
}

func TestARunDoesNotBeginWithoutEveryRadio(t *testing.T) {
	w := newWorld(t)
	w.noRadiod = true // as if somebody had taken the annotation off the pods
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	e := w.experiment()
	if e.Status.Phase != v1alpha1.PhaseProvisioning || !strings.Contains(e.Status.Message, "waiting for radios of ") || !strings.Contains(e.Status.Message, "(0 of ") {
		t.Errorf("phase %s, message %q; want it to wait for the radios and to say so", e.Status.Phase, e.Status.Message)
	}
	w.noRadiod = false
	w.untilPhase(v1alpha1.PhaseRunning)
}

func TestNoPodRunsBeforeEveryMemberIsListed(t *testing.T) {
	w := newWorld(t)
	w.until("running", func(e *v1alpha1.Experiment) bool { return e.Status.Phase == v1alpha1.PhaseRunning })
	first := func(prefix string) int {
		return slices.IndexFunc(w.writes, func(s string) bool { return strings.HasPrefix(s, prefix) })
	}
	last := 0
	for i, what := range w.writes {
		if strings.HasPrefix(what, "create *v1alpha1.RadioNetwork") {
			last = i
		}
	}
	if lift := first("patch *v1.Pod"); lift < last || lift < first("put plan") {
		t.Errorf("the first gate is lifted by write %d, the last RadioNetwork is made by %d, the plan is put by %d", lift, last, first("put plan"))
	}
}

func TestANodeThatFailsInTheRunIsANamedGapAndTheRunGoesOn(t *testing.T) {
	w := newWorld(t)
	w.until("20 s after T0", func(e *v1alpha1.Experiment) bool {
		return e.Status.T0 != nil && w.clock.Since(e.Status.T0.Time) > 20*time.Second
	})
	w.must(w.api.Delete(t.Context(), w.pod("prt")))
	e := w.untilPhase(v1alpha1.PhaseSucceeded)
	incidents := w.server.states[string(e.UID)].Incidents
	if len(incidents) != 1 || incidents[0].What != "NodeFailed" || incidents[0].Node != "prt" || incidents[0].FromSeconds < 20 || incidents[0].FromSeconds > 22 {
		t.Errorf("incidents are %+v, want one NodeFailed of prt from 20 s on", incidents)
	}
	if e.Status.Nodes.Summary != "4/5" {
		t.Errorf("nodes are %s, want 4/5", e.Status.Nodes.Summary)
	}
	if !slices.ContainsFunc(w.recorded(), func(s string) bool { return strings.HasPrefix(s, "Warning NodeFailed node prt") }) {
		t.Error("no event tells of it")
	}
}

func TestARunFails(t *testing.T) {
	cases := map[string]struct {
		breakIt func(*world)
		reason  string
		message string
		// collected means that logs were collected and analysed nevertheless.
		collected bool
	}{
		"when an app crashes again and again": {
			func(w *world) {
				w.server.failing = map[string]string{"nor/hub": "app hub on node nor exited with code 3: no"}
			},
			scope.ReasonAppFailed, "app hub on node nor exited with code 3: no", true},
		"when every node is gone": {
			func(w *world) {
				for _, pod := range w.pods() {
					w.must(w.api.Delete(w.t.Context(), &pod))
				}
			}, scope.ReasonAllNodesFailed, "all 5 nodes have failed", true},
		"when the workflow is deleted": {
			func(w *world) { w.must(w.api.Delete(w.t.Context(), w.workflow())) },
			scope.ReasonWorkflowDeleted, "Workflow quickstart was deleted during the run, and a run is never repeated", false},
		"when the analysis fails": {
			func(w *world) { w.analysisFails = true }, scope.ReasonWorkflowFailed, "step analyse: Error (exit code 3)", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.until("15 s after T0", func(e *v1alpha1.Experiment) bool {
				return e.Status.T0 != nil && w.clock.Since(e.Status.T0.Time) > 15*time.Second
			})
			c.breakIt(w)
			e := w.untilFinished()
			ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
			if e.Status.Phase != v1alpha1.PhaseFailed || ready.Reason != c.reason || c.message != "" && e.Status.Message != c.message {
				t.Errorf("phase %s, reason %s, message %q; want Failed, %s, %q", e.Status.Phase, ready.Reason, e.Status.Message, c.reason, c.message)
			}
			if got := e.Status.Results != nil; got != c.collected {
				t.Errorf("has results: %v, want %v", got, c.collected)
			}
			if plan := w.server.states[string(e.UID)].Plan; plan.Phase != v1alpha1.PhaseFailed || plan.Message != e.Status.Message {
				t.Errorf("the archive says %s, %q", plan.Phase, plan.Message)
			}
			w.settle()
			if left := slices.DeleteFunc(w.objects(), func(o string) bool { return o == "Workflow quickstart" }); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestT0IsFartherAheadIfNodesStartedSlowly(t *testing.T) {
	for name, c := range map[string]struct{ slow, least, most time.Duration }{
		"nodes that started at once":   {0, 3 * time.Second, 6 * time.Second},
		"nodes that took 80 s":         {80 * time.Second, 16 * time.Second, 23 * time.Second},
		"nodes that took almost 4 min": {230 * time.Second, 26 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.until("nodes are made", func(*v1alpha1.Experiment) bool { return len(w.pods()) > 0 })
			w.clock.Step(c.slow)
			t0 := w.until("T0 is set", func(e *v1alpha1.Experiment) bool { return e.Status.T0 != nil }).Status.T0
			if lead := t0.Sub(w.clock.Now()); lead < c.least || lead > c.most {
				t.Errorf("T0 is %v ahead; want %v to %v", lead, c.least, c.most)
			}
			if e := w.untilFinished(); e.Status.Phase != v1alpha1.PhaseSucceeded {
				t.Errorf("phase %s: %s", e.Status.Phase, e.Status.Message)
			}
		})
	}
}

func TestT0IsPostponedIfTheFirstWasTooNearToReachEveryAgent(t *testing.T) {
	for name, c := range map[string]struct {
		away      time.Duration
		postponed bool
		phase     v1alpha1.ExperimentPhase
	}{
		"an operator that is not held up":       {0, false, v1alpha1.PhaseSucceeded},
		"less than half of the lead was left":   {2 * time.Second, true, v1alpha1.PhaseSucceeded},
		"T0 was over":                           {20 * time.Second, true, v1alpha1.PhaseSucceeded},
		"an operator that was away for minutes": {3 * time.Minute, true, v1alpha1.PhaseSucceeded},
		"an operator that was away for longer":  {11 * time.Minute, false, v1alpha1.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.until("T0 is set", func(e *v1alpha1.Experiment) bool { return e.Status.T0 != nil }).Status.T0
			if heard := w.server.states[string(w.experiment().UID)].Plan.T0; heard != nil {
				t.Fatalf("the server got %v before it was written", heard)
			}
			w.clock.Step(c.away)
			e := w.untilFinished()
			if e.Status.Phase != c.phase {
				t.Errorf("phase %s: %s; want %s", e.Status.Phase, e.Status.Message, c.phase)
			}
			if postponed := !e.Status.T0.Equal(first); postponed != c.postponed {
				t.Errorf("T0 was %v and is %v; postponed: %v, want %v", first, e.Status.T0, postponed, c.postponed)
			}
			said := slices.ContainsFunc(w.recorded(), func(s string) bool { return strings.HasPrefix(s, "Normal Postponed T0 is ") })
			if said != c.postponed {
				t.Errorf("an event tells of it: %v, want %v", said, c.postponed)
			}
			plan := w.server.states[string(e.UID)].Plan
			if e.Status.Phase == v1alpha1.PhaseSucceeded && !plan.T0.Equal(e.Status.T0.Time) {
				t.Errorf("the server has T0 %v, the status %v", plan.T0, e.Status.T0)
			}
			for _, action := range plan.Armed {
				if e.Status.T0.Add(time.Duration(action.AtNanoseconds)).Before(first.Time) {
					t.Errorf("%s is due before the first T0", action.ID)
				}
			}
		})
	}
}

func TestStopEndsARunEarlyAndStillAnalyses(t *testing.T) {
	w := newWorld(t)
	w.until("15 s after T0", func(e *v1alpha1.Experiment) bool {
		return e.Status.T0 != nil && w.clock.Since(e.Status.T0.Time) > 15*time.Second
	})
	e := w.experiment()
	e.Spec.Stop = true
	w.must(w.api.Update(t.Context(), e))
	e = w.untilPhase(v1alpha1.PhaseSucceeded)
	if took := e.Status.CompletionTime.Sub(e.Status.T0.Time); took > 40*time.Second {
		t.Errorf("took %s after T0, though it was stopped at 15 s", took)
	}
	armed := w.server.states[string(e.UID)].Plan.Armed
	if last := armed[len(armed)-1]; last.ID != "early-stop" || len(last.Targets) != 4 {
		t.Errorf("the last action is %+v, want an early stop of the four publishers", last)
	}
}

func TestStopBeforeTheStartFailsWithoutARun(t *testing.T) {
	for _, phase := range []v1alpha1.ExperimentPhase{"", v1alpha1.PhaseProvisioning} {
		t.Run("in "+string(phase), func(t *testing.T) {
			w := newWorld(t)
			w.noAgents = true
			w.until("there", func(e *v1alpha1.Experiment) bool { return e.Status.Phase == phase })
			e := w.experiment()
			e.Spec.Stop = true
			w.must(w.api.Update(t.Context(), e))
			e = w.untilPhase(v1alpha1.PhaseFailed)
			if c := meta.FindStatusCondition(e.Status.Conditions, scope.ConditionFailure); c.Reason != scope.ReasonStoppedBeforeStart {
				t.Errorf("Failure is %+v", c)
			}
		})
	}
}

func TestAnOutageAcrossStartsOrStopsChangesNothing(t *testing.T) {
	const outage = 70 * time.Second
	for name, c := range map[string]struct {
		from time.Duration // after T0; the run lasts 60 s
		away func(w *world)
	}{
		"the server across T0":       {-2 * time.Second, func(w *world) { w.failedReconcile() }},
		"the server across the stop": {50 * time.Second, func(w *world) { w.failedReconcile() }},
		"the operator across T0":     {-2 * time.Second, func(*world) {}},
		"the operator across a stop": {50 * time.Second, func(*world) {}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.until("agents heard of T0", func(e *v1alpha1.Experiment) bool { return w.serverKnowsT0(e.UID) })
			w.untilAfterT0(c.from)
			for range int(outage / time.Second) {
				c.away(w)
				w.tick()
				w.clock.Step(time.Second)
			}
			w.server.down = false
			e := w.untilPhase(v1alpha1.PhaseSucceeded)
			if incidents := w.server.states[string(e.UID)].Incidents; len(incidents) > 0 {
				t.Errorf("incidents %+v; want none, as agents acted by themselves", incidents)
			}
		})
	}
}

func TestAnOutageAtTheEndOfARunDoesNotLengthenItsMeasurement(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(61 * time.Second)
	for range 120 { // seconds without the operator
		w.tick()
		w.clock.Step(time.Second)
	}
	e := w.untilPhase(v1alpha1.PhaseSucceeded)
	end := w.server.states[string(e.UID)].Plan.MeasureEndNanoseconds
	if end == nil || time.Duration(*end) != 65*time.Second {
		t.Errorf("the measurement ends after %v ns; want 65 s: the run and 5 s of quiet", end)
	}
}

// failedReconcile is a reconciliation while the server is down.
func (w *world) failedReconcile() {
	w.t.Helper()
	w.server.down = true
	if _, err := w.reconcile(); err == nil {
		w.t.Fatal("the operator does not notice that the server is down")
	}
}

func TestAStartThatAnAgentCannotHaveMadeFailsTheRun(t *testing.T) {
	for name, hears := range map[string]bool{"it hears of it too late": true, "it never hears of it": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server.unreachable = map[string]bool{"nor/hub": true}
			w.untilAfterT0(3 * time.Second)
			if hears {
				w.server.unreachable = nil
			}
			e := w.untilFinished()
			ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Reason != scope.ReasonArmedTooLate || !strings.Contains(e.Status.Message, "hub") {
				t.Errorf("reason %s, message %q; want ArmedTooLate, and the app", ready.Reason, e.Status.Message)
			}
		})
	}
}

func TestAFinishedExperimentIsDeletedAfterItsTimeToLive(t *testing.T) {
	w := newWorld(t, func(e *v1alpha1.Experiment) { ttl := v1alpha1.Duration("1h"); e.Spec.TTLAfterFinished = &ttl })
	w.untilPhase(v1alpha1.PhaseSucceeded)
	w.settle()
	w.clock.Step(time.Hour)
	w.until("gone", func(e *v1alpha1.Experiment) bool { return e == nil })
	if left := w.objects(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDeletionAtAnyPhaseLeavesNothing(t *testing.T) {
	for _, phase := range []v1alpha1.ExperimentPhase{v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning, v1alpha1.PhaseCollecting, v1alpha1.PhaseAnalysing, v1alpha1.PhaseSucceeded} {
		t.Run("in "+string(phase), func(t *testing.T) {
			w := newWorld(t)
			e := w.untilPhase(phase)
			w.step()
			w.must(w.api.Delete(t.Context(), e))
			w.until("gone", func(e *v1alpha1.Experiment) bool { return e == nil })
			if left := w.objects(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if state := w.server.states[string(e.UID)]; !scope.Finished(state.Plan.Phase) {
				t.Errorf("the archive believes that it is %s", state.Plan.Phase)
			}
		})
	}
}

func TestEventsReportWhatHappens(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseSucceeded)
	want := []string{
		"Normal Queued waiting to be admitted", "Normal Admitted there is room for all 5 nodes", "Normal NodesReady all nodes are ready: 5/5",
		"Normal Step step replay has begun", "Normal Started T0 is 2026-11-20T12:00:10.000000Z", "Normal Step step start has begun", "Normal Step step stop has begun",
		"Normal Step step drain has begun", "Normal Step step collect has begun", "Normal Step step analyse has begun", "Normal Succeeded 99 % of 300 offered deliveries arrived",
	}
	if diff := cmp.Diff(want, w.recorded()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
