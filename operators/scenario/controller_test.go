package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func configMap(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "team"}, Data: map[string]string{"run.eel": text}}
}

func TestAScenarioIsReadyOnceItsSourceCanBeRead(t *testing.T) {
	cases := map[string]struct {
		key    string
		source *corev1.ConfigMap
		reason string
		says   string
	}{
		"no such ConfigMap": {"run.eel", nil, ReasonConfigMapNotFound, `spec.source.configMap: there is no ConfigMap "data"`},
		"no such key":       {"x.eel", configMap("1"), ReasonKeyNotFound, `spec.source.key: ConfigMap "data" has no key "x.eel"`},
		"nothing in it":     {"run.eel", configMap(""), ReasonEmpty, "is empty"},
		"good":              {"run.eel", configMap("0.0 nem:1 location gps 1,2,3\n"), ReasonRead, "29 bytes of eel"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.ScenarioSpec{Format: "eel", Source: v1alpha1.ScenarioSource{ConfigMap: "data", Key: c.key}}
			digest, ready := Read(spec, c.source)
			if ready.Reason != c.reason || !strings.Contains(ready.Message, c.says) || (digest != "") != (c.reason == ReasonRead) {
				t.Errorf("digest %q, Ready %+v", digest, ready)
			}
		})
	}
}

func TestASettledScenarioIsNotWrittenTo(t *testing.T) {
	s := &v1alpha1.Scenario{ObjectMeta: metav1.ObjectMeta{Name: "company1", Namespace: "team", Generation: 3}}
	s.Spec = v1alpha1.ScenarioSpec{Format: "eel", Source: v1alpha1.ScenarioSource{ConfigMap: "data", Key: "run.eel"}}
	c := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(s, configMap("x")).WithStatusSubresource(s).Build()
	r := &Reconciler{Client: c, Live: c}
	var versions []string
	for range 2 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, s.ResourceVersion)
	}
	if versions[0] != versions[1] {
		t.Errorf("resource versions are %v", versions)
	}
	if !meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady) || s.Status.ObservedGeneration != 3 || !strings.HasPrefix(s.Status.Digest, "sha256:") {
		t.Errorf("status is %+v", s.Status)
	}
}
