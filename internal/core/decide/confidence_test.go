package decide

import (
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestARepeatWithoutMessagesCountsAsNothingDelivered(t *testing.T) {
	dead := &v1alpha1.ResultsSummary{Triggered: 100, Offered: 100}
	whole := &v1alpha1.ResultsSummary{Triggered: 100, Sent: 100, Offered: 100, Expected: 100, Received: 100}
	if n, percent, _ := deliveredPercent([]*v1alpha1.ResultsSummary{dead, whole}); n != 2 || percent != 50 {
		t.Errorf("%d repeats with %g %% delivered; want 2 with 50 %%", n, percent)
	}
}
