//go:build e2e

package e2e

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestQuickstartDeliversEveryMessageAndLeavesOnlyItsResults(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	e := scenario(t, "quickstart/experiment.yaml")
	e.Namespace = namespace
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	if results.Messages.Sent == 0 || results.Messages.Lost != 0 || results.Messages.Received != results.Messages.Expected {
		t.Errorf("messages on the baseline link: %+v; want every one to arrive", results.Messages)
	}
	cross := group(t, results, "cross")
	if cross.Messages.Expected == 0 || cross.DelaySeconds == nil || cross.DelaySeconds.Min < 0.001 {
		t.Errorf("between the nations: %+v, delays %+v; want messages, each at least as late as the link's 1 ms", cross.Messages, cross.DelaySeconds)
	}
	if results.SchemaVersion != runapi.ResultsVersion || results.UID != string(done.UID) || results.Namespace != namespace {
		t.Errorf("results speak of %s/%s (schema %d); want %s/%s (schema %d)", results.Namespace, results.UID, results.SchemaVersion, namespace, done.UID,
			runapi.ResultsVersion)
	}
	if got := done.Status.Results; got == nil || got.Sent != results.Messages.Sent || got.DeliveredPercent != "100" {
		t.Errorf("headline in the status: %+v; want %d sent and 100 %% delivered", got, results.Messages.Sent)
	}
	if !meta.IsStatusConditionTrue(done.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("conditions of a succeeded experiment: %+v; want Ready=True", done.Status.Conditions)
	}
	for _, n := range results.Networks {
		expectLayersOfCaptures(t, n, append(results.Gaps, results.Notes...))
	}
	pods := podUIDs(t, done)
	deleteAndExpectNothingLeft(t, done)
	expectCleanHosts(t, append(pods, done.UID))
	if after := resultsOf(t, done.UID); !reflect.DeepEqual(after.Messages, results.Messages) {
		t.Errorf("results after the deletion: %+v; want them unchanged: %+v", after.Messages, results.Messages)
	}
}

// expectLayersOfCaptures compares a network's captures with radiod's counters, which are sampled once a second.
func expectLayersOfCaptures(t *testing.T, n runapi.NetworkResult, named []runapi.Gap) {
	t.Helper()
	if n.BytesPerSecond == nil || n.ByLayer == nil || n.TCP == nil {
		t.Errorf("network %s lacks some of bytesPerSecond, byLayer and tcp; gaps and notes: %+v", n.Name, named)
		return
	}
	sum := 0.0
	for _, rate := range n.ByLayer {
		sum += rate
	}
	if math.Abs(sum / *n.BytesPerSecond - 1) > 0.1 || n.ByLayer["application"] == 0 || n.ByLayer["transport"] == 0 {
		t.Errorf("network %s: layers %v add up to %.1f bytes/s; radiod counted %.1f", n.Name, n.ByLayer, sum, *n.BytesPerSecond)
	}
}

func TestNothingArrivesWhileTheRadioIsSilent(t *testing.T) {
	t.Parallel()
	e := pair(newNamespace(t), "silent").Obj()
	mustCreate(t, e)
	var network v1alpha1.RadioNetwork
	eventually(t, startTimeout, "the radio network", func() error {
		var all v1alpha1.RadioNetworkList
		if err := kube.List(t.Context(), &all, client.MatchingLabels{v1alpha1.LabelExperimentUID: string(e.UID)}); err != nil {
			return err
		}
		if len(all.Items) != 1 {
			return errorf("%d radio networks", len(all.Items))
		}
		network = all.Items[0]
		return nil
	})
	if err := kube.Patch(t.Context(), &network, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"silent":true}}`))); err != nil {
		t.Fatal(err)
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	if results.Messages.Received != 0 {
		t.Errorf("%+v arrived although the radio was silent: there is a way around it", results.Messages)
	}
	if f := results.Networks[0].Frames; f == nil || f.Received != 0 || f.Drops["silent"] == 0 {
		t.Errorf("frames: %+v; want none received, and some dropped as silent", f)
	}
	state := stateOf(t, done.UID)
	if state.Counters.Triggered == 0 {
		t.Errorf("the publisher did not even try: %+v", state.Counters)
	}
}

func TestBadImageFailsWithinSecondsAndSaysWhichApp(t *testing.T) {
	t.Parallel()
	e := pair(newNamespace(t), "bad-image").Image("own", "localhost/no/such/image:1", "/bin/true").Obj()
	e.Spec.Nodes[1].Apps = append(e.Spec.Nodes[1].Apps, "own")
	mustCreate(t, e)
	failed := waitFor(t, e, time.Minute, v1alpha1.PhaseFailed)
	for _, want := range []string{"own", "localhost/no/such/image:1"} {
		if !strings.Contains(failed.Status.Message, want) {
			t.Errorf("message %q does not name %q", failed.Status.Message, want)
		}
	}
	if !meta.IsStatusConditionTrue(failed.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Errorf("conditions of a failed experiment: %+v; want Stalled=True", failed.Status.Conditions)
	}
}

func TestAppThatKeepsExitingFailsTheRunWithItsLastWords(t *testing.T) {
	t.Parallel()
	e := pair(newNamespace(t), "crash").Image("own", mosquittoImage(t), "/bin/sh", "-c", "echo no such mission >&2; exit 3").Duration("60s").Obj()
	e.Spec.Timeline[1].At = "60s"
	e.Spec.Nodes[1].Apps = append(e.Spec.Nodes[1].Apps, "own")
	mustCreate(t, e)
	failed := waitFor(t, e, startTimeout, v1alpha1.PhaseFailed)
	for _, want := range []string{"own", "veh", "3", "no such mission"} {
		if !strings.Contains(failed.Status.Message, want) {
			t.Errorf("message %q does not say %q", failed.Status.Message, want)
		}
	}
	var found bool
	for _, f := range manifestOf(t, failed.UID).Files {
		found = found || (strings.HasPrefix(f.Path, "logs/veh/own/stderr") && f.Bytes > 0)
	}
	if !found {
		t.Errorf("the failed run's archive has no stderr of the app that failed it")
	}
}

func TestKilledSubscriberAndBrokerShowAsNamedGaps(t *testing.T) {
	t.Parallel()
	e := pair(newNamespace(t), "gaps").Obj()
	e.Spec.Nodes[0].Apps = []string{"broker"}
	e.Spec.Nodes = append(e.Spec.Nodes, v1alpha1.Node{Name: "watch", Networks: []string{"wan"}, Apps: []string{"picture"}})
	mustCreate(t, e)
	waitForT0(t, e, 6*time.Second)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "gaps-watch"}}
	if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	execIn(t, e.Namespace, "gaps-hq", "broker", "/bin/sh", "-c",
		`for p in /proc/[0-9]*; do read -r name < $p/comm; [ "$name" = mosquitto ] && kill -9 ${p#/proc/}; done; true`)
	expectGapNaming(t, e, "watch")
	expectGapNaming(t, e, "hq")
}

// expectGapNaming waits for the end, and wants a gap of the node in the results, with missing messages.
func expectGapNaming(t *testing.T, e *v1alpha1.Experiment, node string) {
	t.Helper()
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	for _, gap := range results.Gaps {
		if gap.Node == node && gap.FromSeconds != nil {
			return
		}
	}
	t.Errorf("gaps %+v do not name node %s with the time it was lost", results.Gaps, node)
}
