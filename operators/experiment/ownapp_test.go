package experiment

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/configmaps"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/scope"
)

// withConfig makes the user's own program take a file and a variable from ConfigMap tracker.
func withConfig(e *v1alpha1.Experiment) {
	app := &e.Spec.Apps[len(e.Spec.Apps)-1]
	app.Files = []v1alpha1.AppFile{
		{Path: "/etc/tracker/tracker.conf", ConfigMap: &v1alpha1.KeyReference{Name: "tracker", Key: "conf"}},
		{Path: "/etc/tracker/motd", Content: ptr.To("hello\n")},
	}
	app.Env = append(app.Env, v1alpha1.EnvVar{Name: "MODE", ConfigMap: &v1alpha1.KeyReference{Name: "tracker", Key: "mode"}})
}

func trackerConfig(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tracker", Namespace: "team-nor"}, Data: data}
}

func (w *world) wantNotAccepted(reason, message string) {
	w.t.Helper()
	w.settle()
	e := w.experiment()
	accepted := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse || accepted.Reason != reason || !strings.Contains(accepted.Message, message) {
		w.t.Errorf("accepted %+v; want False, %s, %q", accepted, reason, message)
	}
	if len(w.pods()) > 0 {
		w.t.Errorf("%d pods were made", len(w.pods()))
	}
}

func TestAnExperimentWaitsForItsConfigMapAndRecordsItsContent(t *testing.T) {
	w := newWorld(t, withConfig)
	w.wantNotAccepted(scope.ReasonConfigMapNotFound, `spec.apps[5].env[1].configMap.name: Not found: "tracker"`)
	config := trackerConfig(map[string]string{"mode": "fast"})
	w.must(w.api.Create(t.Context(), config))
	w.wantNotAccepted(scope.ReasonKeyNotFound, `spec.apps[5].files[0].configMap.key: Not found: "conf"`)
	config.Data["conf"] = "port = 1\n"
	w.must(w.api.Update(t.Context(), config))
	e := w.untilPhase(v1alpha1.PhaseRunning)
	given := w.server.states[string(e.UID)].Plan.ConfigMaps
	if len(given) != 2 || given[1].Name != "tracker" || given[1].Key != "conf" || given[1].ResourceVersion != config.ResourceVersion || len(given[1].SHA256) != 64 {
		t.Errorf("the run record has %+v; want both keys with resource version %s", given, config.ResourceVersion)
	}
	config.Data["conf"] = "port = 2\n"
	w.must(w.api.Update(t.Context(), config))
	e = w.untilPhase(v1alpha1.PhaseSucceeded)
	if after := w.server.states[string(e.UID)].Plan.ConfigMaps; !slices.Equal(given, after) {
		t.Errorf("a change in the middle of the run made the record %+v; want %+v", after, given)
	}
}

func TestAConfigMapThatChangesWhileNodesStartFailsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*corev1.ConfigMap)
		released bool
		fails    bool
	}{
		"content that an app uses":       {func(m *corev1.ConfigMap) { m.Data["conf"] = "new" }, true, true},
		"content that no app uses":       {func(m *corev1.ConfigMap) { m.Data["other"] = "new" }, true, false},
		"a label":                        {func(m *corev1.ConfigMap) { m.Labels = map[string]string{"a": "b"} }, true, false},
		"content before any node starts": {func(m *corev1.ConfigMap) { m.Data["conf"] = "new" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withConfig)
			config := trackerConfig(map[string]string{"mode": "fast", "conf": "old"})
			w.must(w.api.Create(t.Context(), config))
			w.noAgents = true
			if c.released {
				w.until("released", func(*v1alpha1.Experiment) bool {
					pods := w.pods()
					return len(pods) > 0 && len(pods[0].Spec.SchedulingGates) == 0
				})
			}
			c.change(config)
			w.must(w.api.Update(t.Context(), config))
			w.noAgents = false
			if c.fails {
				w.wantFailed(scope.ReasonReferenceLost, "key conf of ConfigMap tracker was changed while the nodes were starting")
				return
			}
			e := w.untilPhase(v1alpha1.PhaseRunning)
			if given := w.server.states[string(e.UID)].Plan.ConfigMaps; len(given) != 2 {
				t.Errorf("the run record has %+v; want two keys", given)
			}
		})
	}
}

func TestChangedContentsAreNamed(t *testing.T) {
	before := []runapi.PlannedConfigMap{{Name: "a", Key: "x", ResourceVersion: "1", SHA256: "1"}, {Name: "a", Key: "y", ResourceVersion: "1", SHA256: "2"}}
	now := []runapi.PlannedConfigMap{{Name: "a", Key: "x", ResourceVersion: "9", SHA256: "1"}}
	if got := configmaps.Changed(before, now); !slices.Equal(got, []string{"key y of ConfigMap a"}) {
		t.Errorf("got %q; want key y only, which is gone", got)
	}
}

func TestARuntimeErrorOfAContainerIsExplained(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "own", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: `runc create failed: error mounting "/x/own/5" to rootfs at "/usr": not a directory`}}}}}}
	reason, message := nodes.PodTrouble(pod, start)
	if want := "exit code 128 (StartError) (a file of the app has the path of a folder in its image"; reason != scope.ReasonContainer || !strings.Contains(message, want) {
		t.Errorf("%s: %s; want %q in it", reason, message, want)
	}
}

func TestWhyAnAppsContainerDoesNotStartIsExplained(t *testing.T) {
	for name, c := range map[string]struct{ kubelet, said, reason, want string }{
		"no Secret":         {"CreateContainerConfigError", `secret "keys" not found`, scope.ReasonSecretNotFound, "takes a variable from Secret keys, which is not in this namespace"},
		"no key in it":      {"CreateContainerConfigError", `couldn't find key token in Secret team-nor/keys`, scope.ReasonKeyNotFound, "key token of Secret keys, which has no such key"},
		"a ConfigMap gone":  {"CreateContainerConfigError", `configmap "tracker" not found`, scope.ReasonConfigMapNotFound, "from ConfigMap tracker, which is not in this namespace"},
		"its key gone":      {"CreateContainerConfigError", `couldn't find key mode in ConfigMap team-nor/tracker`, scope.ReasonKeyNotFound, "key mode of ConfigMap tracker"},
		"a file on a path":  {"RunContainerError", `failed to create shim task: OCI runtime create failed: error mounting "/x" to rootfs at "/etc": not a directory`, scope.ReasonContainer, "the path of a folder in its image"},
		"wrong platform":    {"RunContainerError", `exec /vignette/bin/agent: exec format error`, scope.ReasonContainer, "not built for this host's architecture"},
		"something unheard": {"CreateContainerError", "no space left", scope.ReasonContainer, "app tracker does not start: CreateContainerError: no space left"},
		"no image":          {"ErrImagePull", "not found", scope.ReasonImage, "image r/tracker:1: ErrImagePull: not found"},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "tracker", Image: "r/tracker:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: c.kubelet, Message: c.said}}}}}}
		reason, message := nodes.PodTrouble(pod, start)
		if reason != c.reason || !strings.Contains(message, c.want) || !strings.Contains(message, "app tracker") {
			t.Errorf("%s: %s: %s; want %s: %s", name, reason, message, c.reason, c.want)
		}
	}
}

func TestAnInvalidScriptInAConfigMapIsNamedUntilItIsFixed(t *testing.T) {
	w := newWorld(t, func(e *v1alpha1.Experiment) {
		app := &e.Spec.Apps[len(e.Spec.Apps)-1]
		*app = v1alpha1.App{Name: app.Name, Instances: 1, MGEN: &v1alpha1.MGEN{ConfigMap: &v1alpha1.KeyReference{Name: "tracker", Key: "flows.mgn"}}}
	})
	config := trackerConfig(map[string]string{"flows.mgn": "0.0 LISTEN UDP 5000\n1.0 ON 1 UDP DTS hq/5000 PERIODIC [1 100]\n"})
	w.must(w.api.Create(t.Context(), config))
	w.wantNotAccepted(checks.ReasonScriptInvalid, `line 2: ON: "DTS" is no option of a flow`)
	config.Data["flows.mgn"] = "0.0 LISTEN UDP 5000\n"
	w.must(w.api.Update(t.Context(), config))
	e := w.untilPhase(v1alpha1.PhaseRunning)
	plan := w.server.states[string(e.UID)].Plan
	if len(plan.ConfigMaps) != 1 || plan.ConfigMaps[0].Key != "flows.mgn" {
		t.Errorf("the run record has %+v; want the script", plan.ConfigMaps)
	}
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestAPayloadTooLargeForItsProtocolIsNamedUntilTheConfigMapIsFixed(t *testing.T) {
	w := newWorld(t, func(e *v1alpha1.Experiment) {
		app := &e.Spec.Apps[len(e.Spec.Apps)-1]
		*app = v1alpha1.App{Name: app.Name, Instances: 1, Publisher: &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Period: "1s", Payload: "file:tracker/map.jpg"}}
	})
	config := trackerConfig(nil)
	config.BinaryData = map[string][]byte{"map.jpg": make([]byte, 70_000)}
	w.must(w.api.Create(t.Context(), config))
	w.wantNotAccepted(checks.ReasonPayloadTooLarge, `publisher.payload: Invalid value: "file:tracker/map.jpg": messages have 70064 bytes: use 65000 at most with mqtt-udp`)
	config.BinaryData["map.jpg"] = make([]byte, 60_000)
	w.must(w.api.Update(t.Context(), config))
	w.untilPhase(v1alpha1.PhaseRunning)
}
