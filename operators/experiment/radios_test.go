package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/run"
	"vignette.dev/vignette/operators/experiment/scope"
)

// radioNetwork is the current RadioNetwork of the experiment.
func (w *world) radioNetwork(network string) *v1alpha1.RadioNetwork {
	w.t.Helper()
	found := &v1alpha1.RadioNetwork{}
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: platform, Name: render.RadioNetworkName(w.experiment(), network)}, found))
	return found
}

func (w *world) incidents() []runapi.Incident {
	w.t.Helper()
	return w.server.states[string(w.experiment().UID)].Incidents
}

// deleteFirst deletes the run's first object of a kind, as anybody with the right may.
func (w *world) deleteFirst(apiVersion, kind string) {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	w.must(w.api.List(w.t.Context(), list))
	if len(list.Items) == 0 {
		w.t.Fatalf("the run has no %s", kind)
	}
	w.must(w.api.Delete(w.t.Context(), &list.Items[0]))
}

func TestADeletedObjectOfARunIsRestoredOrReportedOrNotNeeded(t *testing.T) {
	for _, c := range []struct{ apiVersion, kind, failure, incident string }{
		{"vignette.dev/v1alpha1", "RadioNetwork", scope.ReasonRadioNetworkDeleted, ""},
		{"argoproj.io/v1alpha1", "Workflow", scope.ReasonWorkflowDeleted, ""},
		{"v1", "Pod", "", nodes.IncidentNodeFailed},
		{"v1", "ServiceAccount", "", ""},
		{"rbac.authorization.k8s.io/v1", "RoleBinding", "", ""},
		{"k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "", ""}, // it is read only when a pod starts
		{"policy/v1", "PodDisruptionBudget", "", ""},
	} {
		t.Run(c.kind, func(t *testing.T) {
			w := newWorld(t)
			w.untilAfterT0(5 * time.Second)
			w.deleteFirst(c.apiVersion, c.kind)
			if c.failure != "" {
				w.wantFailed(c.failure, "was deleted during the run")
				return
			}
			e := w.untilFinished()
			if e.Status.Phase != v1alpha1.PhaseSucceeded {
				t.Errorf("phase %s: %s", e.Status.Phase, e.Status.Message)
			}
			var recorded []string
			for _, i := range w.incidents() {
				recorded = append(recorded, i.What)
			}
			if got := strings.Join(recorded, " "); got != c.incident {
				t.Errorf("incidents %q; want %q", got, c.incident)
			}
		})
	}
}

func TestTheAccountOfAWorkflowsPodsExistsBeforeThem(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(5 * time.Second)
	for _, shared := range []client.Object{render.ServiceAccount(w.experiment(), nil), render.RoleBinding(w.experiment())} {
		w.must(w.api.Delete(t.Context(), shared))
	}
	w.untilPhase(v1alpha1.PhaseCollecting)
	for _, shared := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.RoleBinding{}} {
		name := render.ServiceAccount(w.experiment(), nil).Name
		if _, isBinding := shared.(*rbacv1.RoleBinding); isBinding {
			name = render.RoleBinding(w.experiment()).Name
		}
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: w.key.Namespace, Name: name}, shared); err != nil {
			t.Errorf("the workflow's next pod cannot start: %v", err)
		}
	}
}

func TestTheAccountOfAWorkflowsPodsHasTheSecretsToPullWith(t *testing.T) {
	w := newWorld(t)
	w.reconciler.Options.Render.PullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	account := render.ServiceAccount(w.experiment(), []corev1.LocalObjectReference{{Name: "of-the-cluster"}})
	account.OwnerReferences = nil // that of an experiment that is gone
	w.must(w.api.Create(t.Context(), account))
	w.untilPhase(v1alpha1.PhaseRunning)
	w.must(w.api.Get(t.Context(), client.ObjectKeyFromObject(account), account))
	if want := []corev1.LocalObjectReference{{Name: "of-the-cluster"}, {Name: "registry"}}; !slices.Equal(account.ImagePullSecrets, want) || len(account.OwnerReferences) != 1 {
		t.Errorf("the account that was there has the Secrets %v and the owners %v; want %v and the experiment", account.ImagePullSecrets, account.OwnerReferences, want)
	}
	for _, pod := range w.pods() {
		if len(pod.Spec.ImagePullSecrets) > 0 {
			t.Errorf("pod %s has Secrets of its own, and so none of its account: %v", pod.Name, pod.Spec.ImagePullSecrets)
		}
	}
}

func TestARunFailsWithAReasonIfARadioNetworkIsDeletedBeforeItStarts(t *testing.T) {
	w := newWorld(t)
	w.noAgents = true
	w.until("released", func(*v1alpha1.Experiment) bool {
		pods := w.pods()
		return len(pods) > 0 && len(pods[0].Spec.SchedulingGates) == 0
	})
	w.must(w.api.Delete(t.Context(), w.radioNetwork("wan")))
	w.wantFailed(scope.ReasonRadioNetworkDeleted, "was deleted while its nodes started")
}

func TestARunFailsWithAReasonIfSomebodyElseChangesItsRadios(t *testing.T) {
	timed := func(e *v1alpha1.Experiment) {
		e.Spec.Timeline = append(e.Spec.Timeline, v1alpha1.TimelineEntry{At: "30s", Set: []v1alpha1.RadioChange{lossOf("wan", "5%")}})
	}
	for what, edit := range map[string]func(*v1alpha1.RadioNetworkSpec){
		"spec.t0 of RadioNetwork":      func(s *v1alpha1.RadioNetworkSpec) { s.T0.Time = s.T0.Add(time.Minute) },
		"spec.changes of RadioNetwork": func(s *v1alpha1.RadioNetworkSpec) { s.Changes = nil },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, timed)
			w.untilAfterT0(5 * time.Second)
			network := w.radioNetwork("wan")
			edit(&network.Spec)
			w.must(w.api.Update(t.Context(), network))
			w.wantFailed(scope.ReasonRadioNetworkChanged, what)
		})
	}
}

func TestARefusalByRadiodFailsTheRunWithItsReason(t *testing.T) {
	const refused = "node-1: helloValidity 1s is shorter than hello 2s"
	for phase, reach := range map[string]func(*world){
		"while it comes up": func(*world) {},
		"while it goes on":  func(w *world) { w.untilAfterT0(5 * time.Second) },
	} {
		t.Run(phase, func(t *testing.T) {
			w := newWorld(t)
			reach(w)
			w.radioRefusal = refused
			w.wantFailed(scope.ReasonRadioRefused, ": "+refused)
		})
	}
}

func TestARunBeginsOnlyWhenItsRadiosWork(t *testing.T) {
	w := newWorld(t)
	w.radioTrouble = "scenario sha256:12 is not here yet"
	e := w.until("waiting for radios", func(e *v1alpha1.Experiment) bool { return strings.HasPrefix(e.Status.Message, "waiting for radios") })
	if !strings.Contains(e.Status.Message, "host n1: scenario sha256:12 is not here yet") {
		t.Errorf("message %q does not say what is missing", e.Status.Message)
	}
	for range 10 {
		w.step()
	}
	if phase := w.experiment().Status.Phase; phase != v1alpha1.PhaseProvisioning {
		t.Fatalf("phase %s while the radios are silent", phase)
	}
	w.radioTrouble = ""
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestRadiosThatDoNotWorkForLongAreRecordedOnce(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(5 * time.Second)
	w.radioTrouble = "routing on lan: no buffer space"
	for range 10 {
		w.step()
	}
	if recorded := w.incidents(); len(recorded) > 0 {
		t.Errorf("%+v after 10 s, in which radiod may have been restarted", recorded)
	}
	for range 20 {
		w.step()
	}
	recorded := w.incidents()
	want := "network lan on host n1: routing on lan: no buffer space"
	if i := slices.IndexFunc(recorded, func(i runapi.Incident) bool { return i.Reason == want }); len(recorded) != 2 || i < 0 || recorded[i].What != run.IncidentRadioTrouble || recorded[i].FromSeconds > 10 {
		t.Errorf("incidents %+v; want one for each of the two networks, from its beginning on", recorded)
	}
}

func TestANodeWithoutItsRadioIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(5 * time.Second)
	w.noRadiod = true
	network := w.radioNetwork("wan")
	network.Status.Hosts[0].Attached--
	w.must(w.api.Status().Update(t.Context(), network))
	for range 30 {
		w.step()
	}
	if recorded := w.incidents(); len(recorded) != 1 || !strings.Contains(recorded[0].Reason, "network wan: radiod has the radios of") {
		t.Errorf("incidents %+v; want the network that has lost a radio", recorded)
	}
}

func TestARadioThatIsSwitchedOffIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(5 * time.Second)
	network := w.radioNetwork("wan")
	network.Spec.Silent = true
	w.must(w.api.Update(t.Context(), network))
	w.untilPhase(v1alpha1.PhaseSucceeded)
	if recorded := w.incidents(); len(recorded) != 1 || recorded[0].What != run.IncidentRadioSilenced || ptr.Deref(recorded[0].ToSeconds, 0) != 0 {
		t.Errorf("incidents %+v; want the silence, once", recorded)
	}
}

func TestARunForWhichTheArchiveHasNoRoomFailsBeforeItsNodesStart(t *testing.T) {
	w := newWorld(t)
	w.server.full = "the runs of namespace team-nor have 5.00 GiB of 5.00 GiB"
	w.wantFailed(scope.ReasonArchiveFull, "the archive is full: the runs of namespace team-nor have 5.00 GiB of 5.00 GiB")
}

func TestAnAppWithoutMemoryAndANodeWithoutDiskAreNamed(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(5 * time.Second)
	veh := w.pod("veh-1")
	veh.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	w.must(w.api.Status().Update(t.Context(), veh))
	prt := w.pod("prt")
	prt.Status.Phase, prt.Status.Reason, prt.Status.Message = corev1.PodFailed, "Evicted", `Usage of EmptyDir volume "tmp-prt-units" exceeds the limit "1Gi".`
	w.must(w.api.Status().Update(t.Context(), prt))
	w.untilPhase(v1alpha1.PhaseSucceeded)
	recorded := map[string]string{}
	for _, i := range w.incidents() {
		recorded[i.What] = i.Reason
	}
	if got := recorded[nodes.IncidentAppFailed]; !strings.Contains(got, "(OOMKilled): it needed more memory than its limit") {
		t.Errorf("the app without memory: %q", got)
	}
	if got := recorded[nodes.IncidentEvicted]; !strings.Contains(got, `"tmp-prt-units" exceeds the limit "1Gi"`) {
		t.Errorf("the node without disk: %q", got)
	}
}

func TestASecretOfBrokersThatIsDeletedWhileNodesStartIsNamed(t *testing.T) {
	w := newWorld(t, withSecurity)
	w.noAgents = true
	w.until("released", func(*v1alpha1.Experiment) bool {
		pods := w.pods()
		return len(pods) > 0 && len(pods[0].Spec.SchedulingGates) == 0
	})
	secret := w.secrets()[0]
	w.must(w.api.Delete(t.Context(), &secret))
	w.clock.Step(testOptions().ProvisioningDeadline + time.Minute)
	w.wantFailed(scope.ReasonReferenceLost, "Secret "+secret.Name+", with certificates and passwords of brokers, was deleted while the nodes started")
}

func TestTheAPIServerRefusesChangesOfARunsRadios(t *testing.T) {
	api, err := client.New(strictServer.Start(t), client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	network := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wan"}, Spec: v1alpha1.RadioNetworkSpec{
		Experiment: v1alpha1.ExperimentReference{Namespace: "team-nor", Name: "e", UID: "uid"}, Network: "wan", MTU: 1500, Waveform: ethernet().Spec,
		Members: []v1alpha1.Member{{Node: "hq", Group: "hq", NEM: 1, MAC: "02:02:00:00:00:01", Address: "198.18.9.1/24", Interface: "wan", PodUID: "pod"}},
	}}
	if err := api.Create(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), network) }) // other tests share the API server
	edit := func(change func(*v1alpha1.RadioNetworkSpec)) error {
		edited := network.DeepCopy()
		change(&edited.Spec)
		if err := api.Update(t.Context(), edited); err != nil {
			return err
		}
		network = edited
		return nil
	}
	moment := metav1.NewMicroTime(start)
	if err := edit(func(s *v1alpha1.RadioNetworkSpec) { s.Members[0].PodUID = "another"; s.T0 = &moment }); err != nil {
		t.Errorf("before T0 members change: %v", err)
	}
	for what, change := range map[string]func(*v1alpha1.RadioNetworkSpec){
		"members":  func(s *v1alpha1.RadioNetworkSpec) { s.Members[0].PodUID = "third" },
		"waveform": func(s *v1alpha1.RadioNetworkSpec) { s.Waveform.Link.Loss = "9%" },
		"links": func(s *v1alpha1.RadioNetworkSpec) {
			s.Links = []v1alpha1.GroupLink{{From: "*", To: "hq", LinkModel: *ethernet().Spec.Link}}
		},
		"routing":  func(s *v1alpha1.RadioNetworkSpec) { s.Routing = &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2} },
		"scenario": func(s *v1alpha1.RadioNetworkSpec) { s.Scenario = "sha256:" + strings.Repeat("a", 64) },
		"engine":   func(s *v1alpha1.RadioNetworkSpec) { s.Engine = v1alpha1.EngineEMANE },
	} {
		if err := edit(change); err == nil || !strings.Contains(err.Error(), "cannot change once t0 is set") {
			t.Errorf("%s after T0: %v; want it refused", what, err)
		}
	}
	if err := edit(func(s *v1alpha1.RadioNetworkSpec) {
		s.Silent = true
		s.Changes = []v1alpha1.TimedRadioChange{{AtNanoseconds: 1, RadioChange: lossOf("wan", "5%")}}
		s.Captures = []v1alpha1.RadioCapture{{Name: "trace", LimitBytes: 1}}
		later := metav1.NewMicroTime(start.Add(time.Minute))
		s.T0 = &later
	}); err != nil {
		t.Errorf("the operator's own changes: %v", err)
	}
}

// cacheWithoutNetworks is a cache that does not show RadioNetworks.
type cacheWithoutNetworks struct{ client.Client }

func (b cacheWithoutNetworks) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if _, networks := into.(*v1alpha1.RadioNetworkList); networks {
		return nil
	}
	return b.Client.List(ctx, into, options...)
}

func TestARecordedChangeHasReachedRadiosThatTheCacheDoesNotShow(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(10 * time.Second)
	seeing := w.reconciler.Client
	w.reconciler.Client = cacheWithoutNetworks{seeing}
	burst := w.change("burst", lossOf("wan", "50%"))
	w.step()
	w.reconciler.Client = seeing
	w.wantCondition(burst, "True Applied")
	if changes := w.radio("wan").Changes; len(changes) != 1 {
		t.Errorf("the radios have %d changes; want the recorded one", len(changes))
	}
	w.untilPhase(v1alpha1.PhaseSucceeded)
}
