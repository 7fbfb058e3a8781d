package checks

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func quickstart(t *testing.T) *v1alpha1.Experiment {
	t.Helper()
	text, err := os.ReadFile("../../../operators/experiment/testdata/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict(text, e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAValidExperimentHasNoErrorsAndATopology(t *testing.T) {
	e := quickstart(t)
	c := Spec(e, render.Options{})
	if !c.Valid || len(c.Findings) > 0 || len(c.Topology.Nodes) == 0 || c.Timeline == nil {
		t.Errorf("valid: %t, findings %v, %d nodes", c.Valid, c.Findings, len(c.Topology.Nodes))
	}
	if errs := All(&Subject{Input: render.Input{Experiment: e}}); len(errs) > 0 {
		t.Errorf("errors %v", errs)
	}
}

func TestErrorsOfASpecAreFoundBesideThoseOfWhatItNames(t *testing.T) {
	e := quickstart(t)
	e.Spec.Timeline = append(e.Spec.Timeline, v1alpha1.TimelineEntry{At: "1s", Start: []string{"nobody"}})
	app := &e.Spec.Apps[len(e.Spec.Apps)-1]
	key := v1alpha1.KeyReference{Name: "flows", Key: "mgn"}
	*app = v1alpha1.App{Name: app.Name, Instances: 1, MGEN: &v1alpha1.MGEN{ConfigMap: &key}}
	c := Spec(e, render.Options{})
	if !c.Valid || len(c.Findings) == 0 || c.Findings[0].Reason != ReasonInvalid {
		t.Fatalf("valid: %t, findings %v; want one of the timeline", c.Valid, c.Findings)
	}
	input := render.Input{Experiment: e, Topology: c.Topology, Scripts: map[v1alpha1.KeyReference]string{key: "1.0 ON 1 UDP"}}
	found := References(&Subject{Input: input})
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Reason == ReasonScriptInvalid }) {
		t.Errorf("findings %v; want one of the script", found)
	}
	if errs := All(&Subject{Input: input}); len(errs) != len(c.Findings)+len(found) {
		t.Errorf("%d errors in all; want %d and %d", len(errs), len(c.Findings), len(found))
	}
}

func TestASpecWithInvalidFieldsIsNotCheckedFurther(t *testing.T) {
	e := quickstart(t)
	e.Spec.Networks[0].Subnet = "198.18.0.0/31"
	if c := Spec(e, render.Options{}); c.Valid || len(c.Findings) == 0 {
		t.Errorf("valid: %t, findings %v; want those of its fields", c.Valid, c.Findings)
	}
}

func TestTheSizeOfPodsIsNotCheckedWhereAnotherErrorWasFoundBefore(t *testing.T) {
	e := quickstart(t)
	app := &e.Spec.Apps[len(e.Spec.Apps)-1]
	key := v1alpha1.KeyReference{Name: "flows", Key: "mgn"}
	*app = v1alpha1.App{Name: app.Name, Instances: 1, MGEN: &v1alpha1.MGEN{ConfigMap: &key}}
	e.Spec.Apps[2].Instances = 3000
	s := &Subject{Input: render.Input{Experiment: e, Topology: Spec(e, render.Options{}).Topology, Scripts: map[v1alpha1.KeyReference]string{key: "1.0 ON 1 UDP DST 198.18.10.10/5000 PERIODIC [1 100]"}}}
	if found := References(s); len(found) != 1 || !strings.Contains(found[0].Error.Error(), "the agent's configuration has") {
		t.Fatalf("findings %v; want one of the size", found)
	}
	s.Refused = true
	if found := References(s); len(found) > 0 {
		t.Errorf("findings %v after another error; want none", found)
	}
	e.Spec.Timeline = append(e.Spec.Timeline, v1alpha1.TimelineEntry{At: "1s", Start: []string{"nobody"}})
	if errs := All(&Subject{Input: s.Input}); len(errs) != 1 || !strings.Contains(errs[0].Error(), "nobody") {
		t.Errorf("errors %v; want only that of the timeline", errs)
	}
}
