package charts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestRadiodAppliesItsStatusAndReplacesNone: that of a network has an entry of each host.
func TestRadiodAppliesItsStatusAndReplacesNone(t *testing.T) {
	config := server.Start(t)
	admin, err := client.New(config, client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vignette-system"}})
	for document := range strings.SplitSeq(render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/radiod.yaml"), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if kind := object.GetKind(); kind == "Role" || kind == "RoleBinding" {
			object.SetNamespace("vignette-system")
			create(t, admin, object)
		}
	}
	create(t, admin, &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: "vignette-system", Name: "wan"}, Spec: v1alpha1.RadioNetworkSpec{
		Experiment: v1alpha1.ExperimentReference{Namespace: "team-nor", Name: "first", UID: "1"}, Network: "wan", MTU: 1500, Waveform: v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{}}, Members: []v1alpha1.Member{}}})
	radiod := clientOf(t, config, "system:serviceaccount:vignette-system:vignette-radiod")
	status := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "RadioNetwork", "metadata": map[string]any{"namespace": "vignette-system", "name": "wan"},
		"status": map[string]any{"hosts": []any{map[string]any{"host": "h1", "attached": int64(1)}}},
	}}
	if err := radiod.Status().Patch(t.Context(), status, client.Apply, client.FieldOwner("radiod-h1"), client.ForceOwnership); err != nil { //nolint:staticcheck // as radiod does
		t.Errorf("its own entry: %v", err)
	}
	network := &v1alpha1.RadioNetwork{}
	if err := radiod.Get(t.Context(), client.ObjectKeyFromObject(status), network); err != nil || len(network.Status.Hosts) != 1 {
		t.Fatalf("%v: the status is %+v", err, network.Status)
	}
	network.Status.Hosts = nil
	if err := radiod.Status().Update(t.Context(), network); !apierrors.IsForbidden(err) {
		t.Errorf("an update of all entries: %v; want it refused", err)
	}
}
