package references

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

func TestASpecIsCompiledOnceAndAgainIfItChanges(t *testing.T) {
	r := &Resolver{}
	look := func(e *v1alpha1.Experiment) *scope.Scope {
		t.Helper()
		s := &scope.Scope{Experiment: e.DeepCopy()}
		if _, err := r.Compile(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	text, err := os.ReadFile("../../testdata/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict(text, e); err != nil {
		t.Fatal(err)
	}
	first := look(e)
	first.Findings = append(first.Findings, scope.Finding{Reason: "Odd", Message: "of one look only"})
	again := look(e)
	if again.Topology != first.Topology || len(again.Findings) > 0 {
		t.Errorf("a second reconciliation compiles again, or has the findings %v of the first", again.Findings)
	}
	e.Spec.Nodes = e.Spec.Nodes[:1]
	if changed := look(e); len(changed.Topology.Nodes) == len(first.Topology.Nodes) || len(changed.Findings) == 0 {
		t.Errorf("a spec without the nodes that others need has %d nodes and the findings %v", len(changed.Topology.Nodes), changed.Findings)
	}
	e.Status.Phase = v1alpha1.PhaseSucceeded
	look(e)
	if kept := r.specs.entries().Len(); kept != 0 {
		t.Errorf("%d specs of finished experiments are kept", kept)
	}
}
