package render

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestThePlanOfACampaignsRunHasItsReferenceFigures(t *testing.T) {
	run := map[string]string{v1alpha1.LabelCampaign: "e4", v1alpha1.LabelCampaignUID: "c1", v1alpha1.LabelCampaignRound: "1"}
	paper := &runapi.Reference{Name: "paper", Figures: []runapi.ReferenceFigure{{Group: "radio", Metric: "sent", Value: 3}}}
	const text = `{"name":"paper","figures":[{"group":"radio","metric":"sent","value":3}]}`
	for name, c := range map[string]struct {
		labels     map[string]string
		annotation string
		want       *runapi.Reference
	}{
		"as the operator writes them": {run, text, paper},
		"figures that do not read":    {run, "yes", nil},
		"none":                        {run, `{"name":"paper"}`, nil},
		"no campaign":                 {nil, text, nil},
	} {
		e := &v1alpha1.Experiment{}
		e.Labels, e.Annotations = c.labels, map[string]string{v1alpha1.AnnotationReference: c.annotation}
		if diff := cmp.Diff(c.want, reference(e)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestThePlanOfACampaignsRunNamesIt(t *testing.T) {
	run := map[string]string{
		v1alpha1.LabelCampaign: "e4", v1alpha1.LabelCampaignUID: "c1", v1alpha1.LabelCampaignRound: "2", v1alpha1.LabelCampaignPoint: "mosquitto-2s",
	}
	without := func(label string) map[string]string {
		rest := maps.Clone(run)
		delete(rest, label)
		return rest
	}
	levels := map[string]string{"broker": "mosquitto", "period": "2s"}
	for name, c := range map[string]struct {
		labels     map[string]string
		annotation string
		want       *runapi.PlannedCampaign
	}{
		"as the operator writes it":  {run, `{"broker":"mosquitto","period":"2s"}`, &runapi.PlannedCampaign{Name: "e4", UID: "c1", Round: 2, Point: "mosquitto-2s", Levels: levels, SpecDigest: "12ab"}},
		"levels that do not read":    {run, "yes", &runapi.PlannedCampaign{Name: "e4", UID: "c1", Round: 2, Point: "mosquitto-2s", SpecDigest: "12ab"}},
		"no campaign":                {without(v1alpha1.LabelCampaign), "", nil},
		"a campaign without its UID": {without(v1alpha1.LabelCampaignUID), "", nil},
		"no round":                   {without(v1alpha1.LabelCampaignRound), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := &v1alpha1.Experiment{}
			e.Labels, e.Annotations = c.labels, map[string]string{v1alpha1.AnnotationLevels: c.annotation, v1alpha1.AnnotationSpecDigest: "12ab"}
			if diff := cmp.Diff(c.want, campaign(e)); diff != "" {
				t.Errorf("campaign (-want +got):\n%s", diff)
			}
		})
	}
}
