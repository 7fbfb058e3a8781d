//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// The largest accepted differences between the engines, beside what the verdicts say that lateness may have changed: of the medians of
// delay, and of the delivered share.
const (
	engineDelayShare = 0.05
	engineDelivered  = 1.0 // percentage points
	// engineUnknown is how much of a delivered share lateness may have changed in a run that says something of its engine.
	engineUnknown = 3.0 // percentage points
)

// engineModels are the models of both engines.
var engineModels = map[string]func(*v1alpha1.Network){
	"rfpipe": func(n *v1alpha1.Network) { n.RFPipe = &v1alpha1.RFPipeModel{PHY: widebandPHY, Rate: "175kbit"} },
	"tdma": func(n *v1alpha1.Network) {
		n.TDMA = &v1alpha1.TDMAModel{PHY: widebandPHY, Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms"}, Rate: "1Mbit"}
	},
}

// needsEMANE skips the test on a platform without EMANE.
func needsEMANE(t *testing.T) {
	t.Helper()
	if !hasEMANE(t) {
		t.Skip("the platform has no EMANE")
	}
}

// hasEMANE reports whether the platform has EMANE's image.
func hasEMANE(t *testing.T) bool {
	t.Helper()
	var operator appsv1.Deployment
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: platformNamespace, Name: "vignette-operator"}, &operator); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(operator.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--emane-image=") })
	})
}

// TestEMANEAndTheNativeEngineDeliverTheSame runs one experiment by both engines.
func TestEMANEAndTheNativeEngineDeliverTheSame(t *testing.T) {
	needsEMANE(t)
	for name, model := range engineModels {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			replay(t, namespace, "leaving", leaving())
			native, byEMANE := underEngine(t, namespace, model, v1alpha1.EngineNative), underEngine(t, namespace, model, v1alpha1.EngineEMANE)
			if native.DelaySeconds == nil || byEMANE.DelaySeconds == nil {
				t.Fatalf("delays %+v and %+v: want some by both engines", native.DelaySeconds, byEMANE.DelaySeconds)
			}
			wantDelivered, gotDelivered := possibleDelivered(native), possibleDelivered(byEMANE)
			wantMedian, gotMedian := possibleMedian(native), possibleMedian(byEMANE)
			t.Logf("median delay: native %.2f ms, EMANE %.2f ms; delivered: native %.2f %%, EMANE %.2f %%; without lateness %.2f to %.2f %% and %.2f to %.2f %%",
				1000*native.DelaySeconds.Median, 1000*byEMANE.DelaySeconds.Median, deliveredPercent(native), deliveredPercent(byEMANE),
				wantDelivered.Low, wantDelivered.High, gotDelivered.Low, gotDelivered.High)
			if unknown := max(wantDelivered.High-wantDelivered.Low, gotDelivered.High-gotDelivered.Low); unknown > engineUnknown {
				t.Skipf("the machine is too busy: lateness may have changed a delivered share by %.2f points", unknown)
			}
			if apart(wantMedian, gotMedian) > engineDelayShare*native.DelaySeconds.Median || apart(wantDelivered, gotDelivered) > engineDelivered {
				t.Errorf("the engines differ by more than %.0f %% of the median or %.0f point", 100*engineDelayShare, engineDelivered)
			}
		})
	}
}

// possibleDelivered returns the shares that may have been delivered without lateness, in percent.
func possibleDelivered(g runapi.GroupResult) runapi.Interval {
	if g.Bounds == nil || g.Bounds.DeliveredPercent == nil {
		return runapi.Interval{Low: deliveredPercent(g), High: deliveredPercent(g)}
	}
	return *g.Bounds.DeliveredPercent
}

// possibleMedian returns the medians that the delay may have had without lateness, in seconds.
func possibleMedian(g runapi.GroupResult) runapi.Interval {
	if g.Bounds != nil {
		if median, ok := g.Bounds.DelaySeconds["median"]; ok {
			return median
		}
	}
	return runapi.Interval{Low: g.DelaySeconds.Median, High: g.DelaySeconds.Median}
}

// apart returns the distance between two intervals, 0 if they overlap.
func apart(a, b runapi.Interval) float64 { return max(a.Low-b.High, b.Low-a.High, 0) }

// underEngine returns the messages over the radio between four nodes that broadcast, of which one is out of reach for a while.
func underEngine(t *testing.T, namespace string, model func(*v1alpha1.Network), engine v1alpha1.Engine) runapi.GroupResult {
	t.Helper()
	e := broadcastingUnder(namespace, string(engine), "leaving", model, engine)
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	return group(t, resultsOf(t, done.UID), "cross")
}

func deliveredPercent(g runapi.GroupResult) float64 { return 100 - g.Messages.LostPercent }

// broadcastingUnder returns four nodes under an engine, with messages as large as those of blue force tracking. Their period is no multiple of a TDMA
// frame, so that they meet every part of it.
func broadcastingUnder(namespace, name, replayed string, model func(*v1alpha1.Network), engine v1alpha1.Engine) *v1alpha1.Experiment {
	e := broadcasters(namespace, name, meshedNodes, "503ms", "bytes:858").Duration("45s").Replay(replayed).Model(model).Obj()
	e.Spec.Networks[0].Engine = engine
	e.Spec.Timeline[1].At = "43s"
	return e
}

// TestEMANEOverSeveralHostsGivesTheResultsOfOne runs the same experiment with EMANE on one host and then distributed over all. All nodes
// are in range of each other, so that losses between hosts show.
func TestEMANEOverSeveralHostsGivesTheResultsOfOne(t *testing.T) {
	needsEMANE(t)
	hosts := severalHosts(t)
	for name, model := range engineModels {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			replay(t, namespace, "mesh", mesh(meshedNodes, 100))
			pinned, spread := broadcastingUnder(namespace, name+"-pinned", "mesh", model, v1alpha1.EngineEMANE), broadcastingUnder(namespace, name+"-spread", "mesh", model, v1alpha1.EngineEMANE)
			seated(pinned, seats(t, "emane-"+name+"-pinned", map[string]int{hosts[len(hosts)-1]: meshedNodes}))
			seated(spread, evenSeats(t, "emane-"+name+"-spread", hosts))
			mustCreate(t, pinned)
			waitFor(t, pinned, finishTimeout, v1alpha1.PhaseSucceeded)
			mustCreate(t, spread)
			sameResults(t, pinned, spread)
			if got := group(t, resultsOf(t, spread.UID), "cross"); got.Messages.Duplicates != 0 {
				t.Errorf("%d messages came twice: want each to cross once", got.Messages.Duplicates)
			}
		})
	}
}
