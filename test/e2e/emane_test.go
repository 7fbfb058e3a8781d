//go:build e2e

package e2e

import (
	"math"
	"os"
	"os/exec"
	"testing"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// The most that the engines may differ by: of the medians of delay, and of what is delivered.
const (
	engineDelayShare = 0.05
	engineDelivered  = 1.0 // percentage points
)

// TestEMANEAndTheNativeEngineDeliverTheSame runs one experiment by both engines.
func TestEMANEAndTheNativeEngineDeliverTheSame(t *testing.T) {
	if _, err := exec.LookPath("emane"); err != nil && os.Getenv("VIGNETTE_EMANE") == "" {
		t.Skip("EMANE not installed")
	}
	for name, model := range map[string]func(*v1alpha1.Network){
		"rfpipe": func(n *v1alpha1.Network) { n.RFPipe = &v1alpha1.RFPipeModel{PHY: widebandPHY, Rate: "175kbit"} },
		"tdma": func(n *v1alpha1.Network) {
			n.TDMA = &v1alpha1.TDMAModel{PHY: widebandPHY, Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms"}, Rate: "1Mbit"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			replay(t, namespace, "leaving", leaving())
			native, byEMANE := underEngine(t, namespace, model, v1alpha1.EngineNative), underEngine(t, namespace, model, v1alpha1.EngineEMANE)
			if native.DelaySeconds == nil || byEMANE.DelaySeconds == nil {
				t.Fatalf("delays %+v and %+v: want some by both engines", native.DelaySeconds, byEMANE.DelaySeconds)
			}
			medians, delivered := byEMANE.DelaySeconds.Median/native.DelaySeconds.Median-1, deliveredPercent(byEMANE)-deliveredPercent(native)
			t.Logf("median delay: native %.2f ms, EMANE %.2f ms (%+.1f %%); delivered: native %.2f %%, EMANE %.2f %% (%+.2f points)",
				1000*native.DelaySeconds.Median, 1000*byEMANE.DelaySeconds.Median, 100*medians, deliveredPercent(native), deliveredPercent(byEMANE), delivered)
			if math.Abs(medians) > engineDelayShare || math.Abs(delivered) > engineDelivered {
				t.Errorf("the engines differ by more than %.0f %% of the median or %.0f point", 100*engineDelayShare, engineDelivered)
			}
		})
	}
}

// underEngine gives what crossed the radio between four nodes that broadcast, of which one is out of reach for a while.
func underEngine(t *testing.T, namespace string, model func(*v1alpha1.Network), engine v1alpha1.Engine) runapi.GroupResult {
	t.Helper()
	// A message of blue force tracking in size. The period is no multiple of a TDMA frame, so that messages meet every part of it.
	e := broadcasters(namespace, string(engine), 4, "503ms", "bytes:858").Duration("45s").Replay("leaving").Model(model).Obj()
	e.Spec.Networks[0].Engine = engine
	e.Spec.Timeline[1].At = "43s"
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	return group(t, resultsOf(t, done.UID), "cross")
}

func deliveredPercent(g runapi.GroupResult) float64 { return 100 - g.Messages.LostPercent }
