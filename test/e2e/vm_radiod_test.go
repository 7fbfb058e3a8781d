//go:build e2e && vm

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// killPlane ends radiod's data plane on the developer cluster's host.
const killPlane = `for p in /proc/[0-9]*; do
	case $({ tr '\0' ' ' < $p/cmdline; } 2>/dev/null) in "/radiod plane "*) kill -9 ${p#/proc/} && echo killed;; esac
done`

// TestAVMOutlivesItsRadiod kills radiod's data plane, and later radiod's pod, under a machine and a pod that publish to a broker in the machine.
// It is not parallel, as it affects all runs.
func TestAVMOutlivesItsRadiod(t *testing.T) {
	needsKubeVirt(t)
	if os.Getenv("CLUSTER") == "existing" {
		t.Skip("radiod's processes on the hosts of CLUSTER=existing cannot be killed from here")
	}
	b := makeExperiment(newNamespace(t), "outlives-radiod").Duration("75s").Network("wan", "198.18.9.0/24", "baseline").
		Broker("broker").Publisher("bft", "broker", "250ms", 1).Payload("bytes:200").Subscriber("picture", "broker").
		Node("hq", "wan", "bft", "picture").Node("tank", "wan", "broker", "bft", "picture").
		Start("5s", "bft").Stop("70s", "bft")
	b.Spec.Apps[1].Publisher.Lead = "5s"
	b.Spec.Nodes[1].Runtime = v1alpha1.RuntimeVM
	e := b.Obj()
	mustCreate(t, e)
	e = waitForBoot(t, e)
	waitForT0(t, e, 20*time.Second)
	host := launcherOf(t, e, "tank").Spec.NodeName
	if out, err := outputOf(t.Context(), host, "sh", "-c", killPlane); err != nil || strings.TrimSpace(out) != "killed" {
		t.Fatalf("kill radiod's data plane: %v: %s; want one killed", err, out)
	}
	planeKilled := time.Since(e.Status.T0.Time)
	waitForT0(t, e, 40*time.Second)
	killPod(t, "vignette-radiod")
	podKilled := time.Since(e.Status.T0.Time)
	awaitPlatform(t, "vignette-radiod")

	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	t.Logf("messages %+v, delays %+v", results.Messages, results.DelaySeconds)
	byPlane, byPod := wantRestartNamed(t, results, planeKilled), wantRestartNamed(t, results, podKilled)
	if byPlane.to-byPlane.from > time.Second {
		t.Errorf("no frame was carried for %v when the data plane was killed; want the next one to go on at once", byPlane.to-byPlane.from)
	}
	wantTrafficBut(t, deliveriesOf(t, done), byPlane, byPod)
	deleteAndExpectNoMachineLeft(t, done)
}

// wantRestartNamed wants a gap of the radio at, or soon after, a moment after T0.
func wantRestartNamed(t *testing.T, results runapi.Results, killed time.Duration) window {
	t.Helper()
	const near = 3 * time.Second
	for _, gap := range results.Gaps {
		if gap.What != "radiodRestarted" || gap.FromSeconds == nil || gap.ToSeconds == nil {
			continue
		}
		w := window{time.Duration(*gap.FromSeconds * 1e9), time.Duration(*gap.ToSeconds * 1e9)}
		if w.from > killed-near && w.from < killed+near {
			t.Logf("killed %v after T0: no frame from %v to %v: %s", killed, w.from, w.to, gap.Reason)
			return w
		}
	}
	t.Fatalf("killed %v after T0; the gaps %+v do not name it", killed, results.Gaps)
	return window{}
}

// wantTrafficBut wants messages both ways all the time, and each to arrive unless it was sent in or near a gap: TCP repeats losses of a
// radio with growing delays.
func wantTrafficBut(t *testing.T, all []delivery, gaps ...window) {
	t.Helper()
	const recovery = 8 * time.Second
	after := map[string]int{}
	last := gaps[len(gaps)-1].to
	for _, d := range all {
		near := false
		for _, gap := range gaps {
			near = near || d.sent > gap.from-time.Second && d.sent < gap.to+recovery
		}
		if d.lost && !near {
			t.Errorf("%+v; want it to arrive, as radiod was there", d)
		}
		if !d.local && !d.lost && d.sent > last+recovery {
			after[d.publisher]++
		}
	}
	for _, publisher := range []string{"hq/bft", "tank/bft"} {
		if after[publisher] < 20 {
			t.Errorf("%d messages of %s arrived over the radio after radiod's pod was new; want four a second", after[publisher], publisher)
		}
	}
	t.Logf("over the radio after the last restart: %v", after)
}
