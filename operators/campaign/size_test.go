package campaign

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// aTooLargeCampaignIsRefusedAtApply tests the chart's policy, as the definition cannot count values of axes.
func aTooLargeCampaignIsRefusedAtApply(t *testing.T, api client.WithWatch) {
	testkube.ApplyPolicy(t, api, "campaignsize")
	large := func(name string, change func(*v1alpha1.CampaignSpec)) error {
		c := tiny()
		c.Name, c.Generation = name, 0
		c.Spec.Matrix.Axes, c.Spec.Matrix.Exclude, c.Spec.Matrix.Include = c.Spec.Matrix.Axes[:2], nil, nil
		for i := range c.Spec.Matrix.Axes {
			var many []string
			for n := range 40 {
				many = append(many, strconv.Itoa(n+1)+"ms")
			}
			c.Spec.Matrix.Axes[i].Values = values(many...)
		}
		change(&c.Spec)
		return api.Create(t.Context(), c, client.DryRunAll)
	}
	var err error
	for deadline := time.Now().Add(30 * time.Second); err == nil && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		err = large("large", func(*v1alpha1.CampaignSpec) {}) // the API server needs a while to know the policy
	}
	if err == nil || !strings.Contains(err.Error(), "spec.matrix: its axes and spec.repeats make 1600 runs, and a round has at most "+strconv.Itoa(matrix.MaxRuns)) {
		t.Errorf("%v; want 1600 runs refused, with both numbers", err)
	}
	if err := large("excluding", func(s *v1alpha1.CampaignSpec) {
		s.Matrix.Exclude = []v1alpha1.Selection{{s.Matrix.Axes[0].Name: "1ms"}}
	}); err != nil {
		t.Errorf("one whose points may be few: %v", err)
	}
	if err := large("plain", func(s *v1alpha1.CampaignSpec) { s.Matrix.Axes = nil }); err != nil {
		t.Errorf("one without axes: %v", err)
	}
	if err := large("repeated", func(s *v1alpha1.CampaignSpec) {
		s.Matrix.Axes, s.Repeats = s.Matrix.Axes[:1], 25
	}); err != nil {
		t.Errorf("one of %d runs: %v", matrix.MaxRuns, err)
	}
}
