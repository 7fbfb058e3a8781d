package headline

import (
	"testing"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/runapi"
)

// deadRadio is a run whose only client over the radio never connected, while messages within a node arrived.
func deadRadio() *runapi.Results {
	radio := runapi.Messages{Triggered: ptr.To[int64](31), Offered: ptr.To[int64](31)}
	return &runapi.Results{
		Headline: "radio", Messages: runapi.Messages{Sent: 7, Expected: 7, Received: 7}, DelaySeconds: &runapi.Quantiles{Median: 0.001},
		Groups:   []runapi.GroupResult{{Name: "all"}, {Name: "radio", Messages: radio}},
		Warnings: []runapi.Gap{{What: "client veh/bft never connected"}, {What: "subscriber hq/picture never heard another node"}, {What: "app x ended"}},
	}
}

func TestTheStatusOfADeadRadioSaysThatNothingArrived(t *testing.T) {
	results := deadRadio()
	s := Of(results)
	if s.Group != "radio" || s.DeliveredPercent != "0" || s.Offered != 31 || s.Triggered != 31 || s.MedianDelay != "" || s.Warnings != 3 {
		t.Errorf("%+v; want 0 %% of 31 deliveries between nodes, and 3 warnings", s)
	}
	want := "0 % of 31 offered deliveries arrived, 31 were never sent; WARNING: client veh/bft never connected; " +
		"WARNING: subscriber hq/picture never heard another node; 1 more warnings"
	if got := Message(s, results.Warnings); got != want {
		t.Errorf("message %q; want %q", got, want)
	}
}

func TestResultsAreOnlyCompleteWithoutAWarning(t *testing.T) {
	unusable := []runapi.Gap{{What: "message logs of app chat cannot be used"}}
	for want, warnings := range map[string][]runapi.Gap{
		"the results are complete": nil,
		"no delivery was offered; WARNING: message logs of app chat cannot be used": unusable,
	} {
		if got := Message(Of(&runapi.Results{}), warnings); got != want {
			t.Errorf("message %q; want %q", got, want)
		}
	}
}

func TestTheStatusOfOlderResultsCountsExpectedDeliveries(t *testing.T) {
	s := Of(&runapi.Results{Messages: runapi.Messages{Sent: 2, Expected: 4, Received: 3}})
	if s.Group != "all" || s.DeliveredPercent != "75" || s.Offered != 4 || Message(s, nil) != "75 % of 4 offered deliveries arrived" {
		t.Errorf("%+v; want 75 %% of 4", s)
	}
}

func TestALossIsNeverRoundedToNone(t *testing.T) {
	for percent, received := range map[string]int64{"100": 100000, "99.99": 99999, "99.9": 99900, "0": 0} {
		if got := Of(&runapi.Results{Messages: runapi.Messages{Expected: 100000, Received: received}}).DeliveredPercent; got != percent {
			t.Errorf("%d of 100000 deliveries are %q %%, want %q", received, got, percent)
		}
	}
}

func TestAMedianKeepsItsDigits(t *testing.T) {
	for seconds, want := range map[float64]string{0.0000412: "0.041ms", 0.00149: "1.490ms", 0.0125: "12.5ms", 0.3693: "369.3ms", -2.5: "-2.50s", 12.345: "12.35s"} {
		if got := Of(&runapi.Results{DelaySeconds: &runapi.Quantiles{Median: seconds}}).MedianDelay; got != want {
			t.Errorf("%v s is %s; want %s", seconds, got, want)
		}
	}
}
