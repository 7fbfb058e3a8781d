package experiment

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// manifestOf is an experiment's manifest as in a git repository.
func (w *world) manifestOf(e *v1alpha1.Experiment) *unstructured.Unstructured {
	w.t.Helper()
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e)
	w.must(err)
	unstructured.RemoveNestedField(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Experiment"))
	return u
}

// deploy applies the manifest as a deployer does: server-side and without force, so that a conflict is an error.
func (w *world) deploy(manifest *unstructured.Unstructured, deployer string, options ...client.PatchOption) *unstructured.Unstructured {
	w.t.Helper()
	u := manifest.DeepCopy()
	w.must(w.api.Patch(w.t.Context(), u, client.Apply, append(options, client.FieldOwner(deployer))...)) //nolint:staticcheck // an unstructured object has no apply configuration
	return u
}

// holdersOf are the managers of the fields below a top-level field, without the deployers.
func holdersOf(e *v1alpha1.Experiment, field string, deployers ...string) (holders []string) {
	for _, m := range e.ManagedFields {
		if strings.Contains(string(m.FieldsV1.Raw), `"f:`+field+`"`) && !slices.Contains(deployers, m.Manager) {
			holders = append(holders, m.Manager)
		}
	}
	return holders
}

// wantNoDrift applies an experiment's manifest again at every step until it has succeeded, and then as somebody else.
func (w *world) wantNoDrift(t *testing.T) {
	e := readExperiment(t)
	short(e)
	manifest := w.manifestOf(e)
	w.deploy(manifest, "argocd-controller")
	var last string
	w.wait("succeeded", func(e *v1alpha1.Experiment) bool {
		if e.ResourceVersion == last {
			return false
		}
		last = e.ResourceVersion
		if again := w.deploy(manifest, "argocd-controller", client.DryRunAll); again.GetGeneration() != 1 {
			t.Fatalf("in phase %s applying it again would change its spec: generation %d", e.Status.Phase, again.GetGeneration())
		}
		return e.Status.Phase == v1alpha1.PhaseSucceeded
	})
	w.wait("settled", func(*v1alpha1.Experiment) bool { return len(w.objects()) == 1 })
	settled := w.experiment()
	if again := w.deploy(manifest, "argocd-controller"); again.GetResourceVersion() != settled.ResourceVersion {
		t.Errorf("applying a finished experiment again wrote it")
	}
	// As Flux and Argo CD do it, with force: a list that is one field, and has defaults in its elements, would be a conflict of two deployers.
	w.deploy(manifest, "kustomize-controller", client.ForceOwnership)
	e = w.experiment()
	if e.Generation != 1 || e.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("after somebody else applied it: generation %d, phase %s", e.Generation, e.Status.Phase)
	}
	if holders := holdersOf(e, "spec", "argocd-controller", "kustomize-controller"); len(holders) > 0 {
		t.Errorf("fields of the spec are also %v's", holders)
	}
}
