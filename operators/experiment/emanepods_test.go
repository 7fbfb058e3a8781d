package experiment

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/run"
	"vignette.dev/vignette/operators/experiment/scope"
)

// emaneWorld has the quickstart experiment with a network of EMANE, which is installed.
func emaneWorld(t *testing.T) *world {
	w := newWorld(t, func(e *v1alpha1.Experiment) {
		n := &e.Spec.Networks[0]
		n.Link, n.Engine = nil, v1alpha1.EngineEMANE
		n.RFPipe = &v1alpha1.RFPipeModel{Rate: "1Mbit", PHY: v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "1MHz", Pathloss: v1alpha1.PathlossFreeSpace}}
		for i := range e.Spec.Nodes {
			if slices.Contains(e.Spec.Nodes[i].Networks, n.Name) {
				e.Spec.Nodes[i].Position = &v1alpha1.Position{Latitude: "47.1", Longitude: "8.1", Altitude: "400m"}
			}
		}
	})
	w.options.Render.EMANEImage = "r/emane:1"
	w.restart()
	return w
}

func (w *world) emaneNetwork() *v1alpha1.RadioNetwork {
	w.t.Helper()
	var list v1alpha1.RadioNetworkList
	w.must(w.api.List(w.t.Context(), &list))
	i := slices.IndexFunc(list.Items, func(n v1alpha1.RadioNetwork) bool { return n.Spec.Engine == v1alpha1.EngineEMANE })
	if i < 0 {
		return nil
	}
	return &list.Items[i]
}

// emaneFiles are the ConfigMaps of EMANE in the platform's namespace.
func (w *world) emaneFiles() []corev1.ConfigMap {
	w.t.Helper()
	var list corev1.ConfigMapList
	w.must(w.api.List(w.t.Context(), &list, client.InNamespace(platform)))
	return list.Items
}

func TestANetworkOfEMANEHasAPodWithFilesOnItsHostThatRadiodKnows(t *testing.T) {
	w := emaneWorld(t)
	w.untilPhase(v1alpha1.PhaseRunning)
	pods, files, network := w.podsIn(platform), w.emaneFiles(), w.emaneNetwork()
	if len(pods) != 1 || len(files) != 1 || network == nil {
		t.Fatalf("%d pods, %d ConfigMaps in %s, network %v: want one of each", len(pods), len(files), platform, network)
	}
	pod := pods[0]
	if pod.Spec.NodeName != "n1" || pod.Spec.Containers[0].Image != "r/emane:1" || !slices.Equal(network.Spec.EMANE, []v1alpha1.EMANEPod{{Host: "n1", PodUID: pod.UID}}) {
		t.Errorf("host %s, image %s, and radiod has %+v", pod.Spec.NodeName, pod.Spec.Containers[0].Image, network.Spec.EMANE)
	}
	for _, object := range []client.Object{&pod, &files[0]} {
		if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != network.UID || !*owners[0].Controller {
			t.Errorf("%s is owned by %+v, want the RadioNetwork %s", object.GetName(), owners, network.UID)
		}
	}
	w.untilFinished()
	images := w.server.states[string(w.experiment().UID)].Plan.Environment.Images
	if !slices.ContainsFunc(images, func(i runapi.Image) bool { return i.Host == "n1" && i.Image == "r/emane:1" && i.ID != "" }) {
		t.Errorf("the run record has images %+v; want EMANE's on n1", images)
	}
	w.settle()
	if pods, files := w.podsIn(platform), w.emaneFiles(); len(pods)+len(files) > 0 {
		t.Errorf("left behind: %d pods, %d ConfigMaps", len(pods), len(files))
	}
}

// aimed makes the nodes move by a scenario in which only platform 1 has an antenna profile, with so many bearings.
func (w *world) aimed(bearings int) {
	w.t.Helper()
	pattern := &antenna.Pattern{}
	for i := range bearings {
		if i%360 == 0 {
			pattern.Elevations = append(pattern.Elevations, antenna.Elevation{Min: int16(i/360 - 90), Max: int16(i/360 - 90)})
		}
		last := &pattern.Elevations[len(pattern.Elevations)-1]
		last.Bearings = append(last.Bearings, antenna.Bearing{Min: int16(i % 360), Max: int16(i % 360), Gain: 12.5})
	}
	b := scenario.NewBuilder(scenario.Options{})
	b.Antennas(antenna.Profiles{{ID: 1, Antenna: pattern}})
	for nem := range 9 {
		w.must(b.Position(0, nem+1, geo.Position{Latitude: 58, Longitude: 8 + float64(nem)/100}))
	}
	w.must(b.AntennaProfile(0, 1, scenario.AntennaProfile{ID: 1}))
	var text bytes.Buffer
	digest, err := b.Write(&text)
	w.must(err)
	w.server.scenarios = map[string][]byte{digest: text.Bytes()}
	s := &v1alpha1.Scenario{ObjectMeta: metav1.ObjectMeta{Name: "aimed", Namespace: w.key.Namespace}}
	w.must(w.api.Create(w.t.Context(), s))
	s.Status = v1alpha1.ScenarioStatus{Digest: digest, Statistics: &v1alpha1.ScenarioStatistics{Platforms: 9, PlatformNumbers: "1-9", Positions: true, AntennaProfiles: "1"},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: s.Generation, Reason: "Compiled", LastTransitionTime: metav1.Now()}}}
	w.must(w.api.Status().Update(w.t.Context(), s))
	var e v1alpha1.Experiment
	w.must(w.api.Get(w.t.Context(), w.key, &e))
	e.Spec.Scenario = &v1alpha1.ScenarioReference{Ref: "aimed"}
	for i := range e.Spec.Nodes {
		e.Spec.Nodes[i].Position = nil
	}
	w.must(w.api.Update(w.t.Context(), &e))
}

func TestEMANEIsGivenTheAntennaProfilesOfTheScenario(t *testing.T) {
	w := emaneWorld(t)
	w.aimed(1)
	w.untilPhase(v1alpha1.PhaseRunning)
	files := w.emaneFiles()
	if len(files) != 1 {
		t.Fatalf("%d ConfigMaps: want one", len(files))
	}
	all := strings.Join(slices.Collect(maps.Values(files[0].Data)), "\n")
	for _, want := range []string{`<profile id="1" antennapatternuri="file:///etc/emane/antennapattern`, `<gain value="12.5"/>`, `"antennaprofilemanifesturi" value="file:///etc/emane/antennaprofiles.xml"`,
		`"fixedantennagainenable" value="off"`, `"fixedantennagainenable" value="on"`} {
		if !strings.Contains(all, want) {
			t.Errorf("the files are\n%s\nwant %s in them", all, want)
		}
	}
}

func TestALiveChangeOfAGainThatEMANEIgnoresIsRefused(t *testing.T) {
	w := emaneWorld(t)
	w.aimed(1)
	w.untilAfterT0(10 * time.Second)
	network := w.emaneNetwork()
	gain := v1alpha1.Gain("3dBi")
	ofOne := func(from string) v1alpha1.RadioChange {
		return v1alpha1.RadioChange{Network: network.Spec.Network, From: from, Radio: &v1alpha1.RadioPatch{AntennaGain: &gain}}
	}
	fixed, directional := network.Spec.Members[1].Node, network.Spec.Members[0].Node
	lost, kept := w.change("lost", ofOne(directional)), w.change("kept", ofOne(fixed))
	w.step()
	w.wantCondition(lost, "False Invalid: spec.changes[0].radio.antennaGain: Forbidden: node "+directional+" has antenna profiles in the scenario")
	w.wantCondition(kept, "True Applied")
	if changes := w.emaneNetwork().Spec.Changes; len(changes) != 1 || changes[0].From != fixed {
		t.Errorf("the radios have the changes %+v; want that of %s", changes, fixed)
	}
}

func TestAntennaProfilesAreReadOnceForAllHostsOfANetwork(t *testing.T) {
	w := emaneWorld(t)
	w.aimed(1)
	w.hostOf = map[string]string{"prt": "n2"}
	w.must(w.api.Create(t.Context(), host("n2")))
	w.until("given EMANE on both hosts", func(*v1alpha1.Experiment) bool { return len(w.emaneFiles()) == 2 })
	if w.server.downloads != 1 {
		t.Errorf("the scenario was read %d times for two hosts; want once", w.server.downloads)
	}
}

// slotted gives the network of EMANE slots with an overhead. Its nodes move by a scenario.
func slotted(t *testing.T, overhead v1alpha1.Duration) *world {
	w := emaneWorld(t)
	w.aimed(1)
	e := w.experiment()
	n := &e.Spec.Networks[0]
	n.TDMA = &v1alpha1.TDMAModel{Rate: n.RFPipe.Rate, PHY: n.RFPipe.PHY, Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms", SlotOverhead: overhead}}
	n.RFPipe = nil
	w.must(w.api.Update(t.Context(), e))
	return w
}

func TestNodesThatMoveTooFarApartForTheirSlotsAreNotAccepted(t *testing.T) {
	w := slotted(t, "1us")
	for range 3 {
		w.step()
	}
	accepted := meta.FindStatusCondition(w.experiment().Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse || !strings.Contains(accepted.Message, "0.6 km apart at 0s, and EMANE drops bursts that fill their slots beyond 0.1 km") {
		t.Errorf("%+v; want that the nodes are too far apart", accepted)
	}
	if w.server.downloads != 1 {
		t.Errorf("the scenario was read %d times for its distances; want once", w.server.downloads)
	}
}

func TestNodesThatMoveWithinReachOfTheirSlotsRun(t *testing.T) {
	w := slotted(t, "4us")
	w.untilPhase(v1alpha1.PhaseRunning)
	if accepted := meta.FindStatusCondition(w.experiment().Status.Conditions, v1alpha1.ConditionAccepted); accepted.Message != "every reference is valid" {
		t.Errorf("accepted with %q; want no doubt about distances that are known", accepted.Message)
	}
}

func TestAnExperimentWaitsForAScenarioWhoseDistancesItNeeds(t *testing.T) {
	w := slotted(t, "4us")
	scenarios := w.server.scenarios
	w.server.scenarios = nil
	for range 3 {
		w.step()
	}
	accepted := meta.FindStatusCondition(w.experiment().Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Reason != scope.ReasonScenarioNotReady || !strings.Contains(accepted.Message, "its positions cannot be read from the server") {
		t.Errorf("%+v; want that the scenario is not ready", accepted)
	}
	w.server.scenarios = scenarios
	w.untilPhase(v1alpha1.PhaseRunning)
}

func TestAServerThatIsAwayRefusesNoExperiment(t *testing.T) {
	w := slotted(t, "4us")
	w.server.scenariosAway = errors.New("connection refused")
	w.settle()
	e, before := w.experiment(), len(w.writes)
	accepted := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted)
	if e.Status.Phase != v1alpha1.PhaseQueued || accepted == nil || accepted.Status != metav1.ConditionUnknown || !strings.Contains(e.Status.Message, "positions of scenario aimed") {
		t.Errorf("phase %s, %+v; want that it waits for the scenario", e.Status.Phase, accepted)
	}
	if meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Error("it is stalled, though nobody has to change anything")
	}
	if result, err := w.reconcile(); err != nil || result.RequeueAfter != 5*time.Second || len(w.writes) != before {
		t.Errorf("%+v, %v, writes %v; want another try in 5 s", result, err, w.writes[before:])
	}
	w.server.scenariosAway = nil
	w.untilPhase(v1alpha1.PhaseRunning)
}

func TestAnExperimentWhoseScenarioIsStillBeingCompiledIsNotRefused(t *testing.T) {
	compiling := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Compiling", Message: "its sources are being read", LastTransitionTime: metav1.Now()}}
	for why, conditions := range map[string][]metav1.Condition{"it has not been compiled yet": nil, "its sources are being read": compiling} {
		w := emaneWorld(t)
		w.aimed(1)
		var compiled v1alpha1.Scenario
		w.must(w.api.Get(t.Context(), types.NamespacedName{Namespace: w.key.Namespace, Name: "aimed"}, &compiled))
		pending := compiled.DeepCopy()
		pending.Status = v1alpha1.ScenarioStatus{Conditions: conditions}
		w.must(w.api.Status().Update(t.Context(), pending))
		w.settle()
		status := w.experiment().Status
		accepted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted)
		if want := "waiting until scenario aimed is ready: " + why; status.Message != want || accepted.Status != metav1.ConditionUnknown || accepted.Reason != scope.ReasonScenarioNotReady {
			t.Errorf("message %q, %+v; want that it waits, with %q", status.Message, accepted, want)
		}
		if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled) {
			t.Errorf("%s: it is stalled, though nobody has to change anything", why)
		}
		pending.Status = compiled.Status
		w.must(w.api.Status().Update(t.Context(), pending))
		w.untilPhase(v1alpha1.PhaseRunning)
	}
}

func TestStartingNodesWaitWhileTheirScenarioIsCompiledAgain(t *testing.T) {
	for name, changed := range map[string]bool{"with the same result": false, "with another result": true} {
		t.Run(name, func(t *testing.T) {
			w := emaneWorld(t)
			w.aimed(1)
			w.noAgents = true
			w.until("a radio network", func(*v1alpha1.Experiment) bool { return w.emaneNetwork() != nil })
			var compiled v1alpha1.Scenario
			w.must(w.api.Get(t.Context(), types.NamespacedName{Namespace: w.key.Namespace, Name: "aimed"}, &compiled))
			compiling := compiled.DeepCopy()
			compiling.Status = v1alpha1.ScenarioStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown,
				ObservedGeneration: compiled.Generation, Reason: "Compiling", Message: "its sources are being read", LastTransitionTime: metav1.Now()}}}
			w.must(w.api.Status().Update(t.Context(), compiling))
			for range 3 {
				w.step()
			}
			if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseProvisioning || !strings.Contains(e.Status.Message, "waiting until scenario aimed is compiled again") {
				t.Fatalf("phase %s, message %q; want that it waits", e.Status.Phase, e.Status.Message)
			}
			compiling.Status = compiled.Status
			if changed {
				compiling.Status.Digest = "sha256:" + strings.Repeat("a", 64)
			}
			w.must(w.api.Status().Update(t.Context(), compiling))
			w.noAgents = false
			if changed {
				w.wantFailed(scope.ReasonReferenceLost, "the scenario changed while the nodes were being created")
				return
			}
			w.untilPhase(v1alpha1.PhaseRunning)
		})
	}
}

func TestAScenarioThatCannotBeReadIsNamedUntilItCan(t *testing.T) {
	w := emaneWorld(t)
	w.aimed(1)
	scenarios := w.server.scenarios
	w.server.scenarios = nil
	var err error
	for range 60 {
		if _, err = w.reconcile(); err != nil {
			break
		}
		w.tick()
		w.clock.Step(time.Second)
	}
	if message := w.experiment().Status.Message; err == nil || !strings.Contains(message, "cannot read the antenna profiles of scenario aimed, which EMANE needs") {
		t.Errorf("error %v, message %q", err, message)
	}
	w.server.scenarios = scenarios
	w.untilPhase(v1alpha1.PhaseRunning)
}

func TestAntennaPatternsThatHaveNoRoomFailTheRunByName(t *testing.T) {
	w := emaneWorld(t)
	w.aimed(360 * 181)
	failed := w.untilPhase(v1alpha1.PhaseFailed)
	if want := "EMANE of network wan: EMANE's files of 2 nodes with their antenna patterns have"; !strings.Contains(failed.Status.Message, want) {
		t.Errorf("message is %q; want %q", failed.Status.Message, want)
	}
}

func TestAnExperimentWaitsForItsEMANEPodsAndSettles(t *testing.T) {
	w := emaneWorld(t)
	w.noEMANE = true
	w.until("waiting for EMANE", func(e *v1alpha1.Experiment) bool {
		return strings.Contains(e.Status.Message, "wan (0 of 2 are attached; 0 of 1 EMANE pods run)")
	})
	w.settle()
	before := len(w.writes)
	for range 3 {
		w.step()
	}
	if phase := w.experiment().Status.Phase; phase != v1alpha1.PhaseProvisioning || len(w.writes) != before {
		t.Errorf("phase %s, and these writes while nothing changes: %v", phase, w.writes[before:])
	}
}

func TestAMissingImageOfEMANEIsNamedAtOnce(t *testing.T) {
	w := emaneWorld(t)
	e := w.until("failing", func(e *v1alpha1.Experiment) bool {
		for _, pod := range w.podsIn(platform) {
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "emane", Image: "r/emane:1",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}}}}
			w.must(w.api.Status().Update(t.Context(), &pod))
		}
		return meta.IsStatusConditionTrue(e.Status.Conditions, scope.ConditionFailure)
	})
	want := "EMANE of network wan on host n1: image r/emane:1: ErrImagePull: not found"
	if failure := meta.FindStatusCondition(e.Status.Conditions, scope.ConditionFailure); failure.Reason != scope.ReasonImage || failure.Message != want {
		t.Errorf("%s: %q, want %s: %q", failure.Reason, failure.Message, scope.ReasonImage, want)
	}
}

func TestABusyHostsEMANEPodIsStartedAgainWithAllNodes(t *testing.T) {
	w := emaneWorld(t)
	before := map[types.UID]bool{}
	w.until("back in the queue", func(e *v1alpha1.Experiment) bool {
		for _, pod := range w.podsIn(platform) {
			before[pod.UID] = true
			pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "emane", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "context deadline exceeded"}}}}}
			w.must(w.api.Status().Update(t.Context(), &pod))
		}
		return e.Status.Phase == v1alpha1.PhaseQueued && meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAdmitted).Reason == scope.ReasonNotStarted
	})
	w.until("in step start", inStepStart)
	for _, pod := range w.podsIn(platform) {
		if before[pod.UID] {
			t.Errorf("pod %s is from before", pod.Name)
		}
	}
	w.untilFinished()
	if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("phase %s: %s", e.Status.Phase, e.Status.Message)
	}
}

func TestAnExperimentWhoseEMANEAQuotaRefusesWaitsForIt(t *testing.T) {
	for name, refused := range map[string]client.Object{"a pod": &corev1.Pod{}, "its files": &corev1.ConfigMap{}} {
		t.Run(name, func(t *testing.T) {
			w, full := emaneWorld(t), true
			w.intercept(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if full && o.GetNamespace() == platform && reflect.TypeOf(o) == reflect.TypeOf(refused) {
					return exceeded(o)
				}
				return c.Create(ctx, o, options...)
			}})
			w.until("back in the queue", func(e *v1alpha1.Experiment) bool {
				return e.Status.Phase == v1alpha1.PhaseQueued && strings.Contains(e.Status.Message, "exceeded quota: team")
			})
			full = false
			w.untilPhase(v1alpha1.PhaseSucceeded)
		})
	}
}

func TestAnEMANEPodThatEndsDuringARunIsAnIncidentOnce(t *testing.T) {
	w := emaneWorld(t)
	w.until("in step start", inStepStart)
	for range 10 {
		w.step()
	}
	for _, pod := range w.podsIn(platform) {
		pod.Status.Phase = corev1.PodFailed
		w.must(w.api.Status().Update(t.Context(), &pod))
		w.until("an incident", func(*v1alpha1.Experiment) bool { return len(w.incidents()) > 0 })
		w.must(w.api.Delete(t.Context(), &pod))
	}
	w.untilFinished()
	count := 0
	for _, write := range w.writes {
		if write == "incident "+run.IncidentEMANEFailed {
			count++
		}
	}
	if phase := w.experiment().Status.Phase; count != 1 || phase != v1alpha1.PhaseSucceeded {
		t.Errorf("%d incidents, phase %s; want one, and the run to go on", count, phase)
	}
}

// lateCache does not show the pods in the platform's namespace yet.
type lateCache struct{ client.Client }

func (c lateCache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, into, options...)
	if pods, ok := into.(*corev1.PodList); ok {
		pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Namespace == platform })
	}
	return err
}

func TestAnEMANEPodThatTheCacheDoesNotShowYetIsNotLost(t *testing.T) {
	w := emaneWorld(t)
	w.reconciler.Client = lateCache{w.reconciler.Client}
	w.untilAfterT0(5 * time.Second)
	if e := w.untilFinished(); e.Status.Phase != v1alpha1.PhaseSucceeded || len(w.incidents()) > 0 {
		t.Errorf("phase %s, %s, incidents %+v; want a success without any", e.Status.Phase, e.Status.Message, w.incidents())
	}
}

func TestTheRadiosOfANetworkOfEMANEAreToldTheirCaptures(t *testing.T) {
	w := emaneWorld(t)
	e := w.experiment()
	e.Spec.Collect = &v1alpha1.Collect{Captures: []string{"wan"}}
	w.must(w.api.Update(t.Context(), e))
	w.untilPhase(v1alpha1.PhaseRunning)
	if captures := w.emaneNetwork().Spec.Captures; len(captures) != 1 || captures[0].Name != "run" {
		t.Errorf("captures %+v; want that of the run", captures)
	}
}
