package render

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestARerunSaysWhatItRepeats(t *testing.T) {
	rerun := runapi.Rerun{Namespace: "team-nor", Name: "first", UID: "u1", Differences: []runapi.Difference{{What: "Kubernetes", Before: "v1", Now: "v2"}}}
	text, err := json.Marshal(rerun)
	if err != nil {
		t.Fatal(err)
	}
	if got := rerunOf(&v1alpha1.Experiment{}); got != nil {
		t.Errorf("an experiment of its own is a rerun of %+v", got)
	}
	for name, c := range map[string]struct {
		annotation string
		want       runapi.Rerun
	}{
		"as the command line writes it": {string(text), rerun},
		"only the label":                {"", runapi.Rerun{UID: "u1"}},
		"something else":                {"yes", runapi.Rerun{UID: "u1"}},
		"of another run":                {`{"uid": "u2"}`, runapi.Rerun{UID: "u1"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &v1alpha1.Experiment{}
			e.Labels = map[string]string{v1alpha1.LabelRerunOf: "u1"}
			e.Annotations = map[string]string{v1alpha1.AnnotationRerun: c.annotation}
			if diff := cmp.Diff(&c.want, rerunOf(e)); diff != "" {
				t.Errorf("rerunOf (-want +got):\n%s", diff)
			}
		})
	}
}
