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
	"vignette.dev/vignette/operators/api/v1alpha1"
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
	w.wantNotAccepted(scope.ReasonKeyNotFound, `spec.apps[5].files[0].configMap.key: Not found: "conf": ConfigMap tracker has mode`)
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
