//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// moments are the phases of an experiment in order, with a phase's steps in place of it.
var moments = []string{"Queued", "Provisioning", "replay", "start", "stop", "drain", "collect", "analyse", "Succeeded"}

// momentOf returns an experiment's moment; -1 before the first.
func momentOf(e *v1alpha1.Experiment) int {
	if i := slices.Index(moments, e.Status.Step); i >= 0 {
		return i
	}
	return slices.Index(moments, string(e.Status.Phase))
}

// waitForMoment waits until an experiment has reached a moment, and fails the test if it has failed.
func waitForMoment(t *testing.T, e *v1alpha1.Experiment, moment string) {
	t.Helper()
	deadline := time.Now().Add(finishTimeout)
	for ; time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		now := get(t, e)
		if now.Status.Phase == v1alpha1.PhaseFailed {
			t.Fatalf("experiment %s has failed before %s: %s", e.Name, moment, now.Status.Message)
		}
		if at := momentOf(now); at >= slices.Index(moments, moment) {
			t.Logf("deleted at %s, after %s was asked for", moments[at], moment)
			return
		}
	}
	t.Fatalf("experiment %s has not come to %s within %s", e.Name, moment, finishTimeout)
}

func TestDeletionAtAnyMomentLeavesNothingInTheClusterAndOnTheHost(t *testing.T) {
	t.Parallel()
	for _, moment := range moments[:len(moments)-1] { // TestQuickstartDeliversEveryMessageAndLeavesOnlyItsResults has the last
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			e := pair(newNamespace(t), "swept").Duration("8s").Obj()
			e.Spec.Timeline[0].At, e.Spec.Timeline[1].At = "2s", "6s"
			if moment == "Queued" {
				e.Spec.Networks[0].Waveform = "no-such-waveform"
			}
			mustCreate(t, e)
			waitForMoment(t, e, moment)
			pods := podUIDs(t, e)
			deleteAndExpectNothingLeft(t, e)
			expectCleanHosts(t, append(pods, e.UID))
		})
	}
}

func podUIDs(t *testing.T, e *v1alpha1.Experiment) (uids []types.UID) {
	t.Helper()
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelExperimentUID: string(e.UID)}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		uids = append(uids, pod.UID)
	}
	return uids
}

// hostScript prints a host's remains of pods or experiments with these UIDs, and unowned objects: descriptors of
// deleted TAPs, TAPs of the host itself, tables of the radio outside the nodes.
const hostScript = `
for uid in "$@"; do
	find /run/vignette -name "*$uid*" -not -path '*/seen*'
	grep -rlF "$uid" /run/vignette/attachments /run/vignette/networks /run/vignette/captures /run/vignette/counters /run/vignette/spool 2>/dev/null
done
for link in /proc/[0-9]*/fd/*; do
	[ "$(readlink "$link")" = /dev/net/tun ] || continue
	info=$(printf %s "$link" | sed 's,/fd/,/fdinfo/,')
	grep -qE '^iff:[[:space:]]*[^[:space:]]' "$info" || echo "descriptor $link of a TAP that is gone"
done
ip -o link show type tun | sed 's/^/TAP in the host: /'
nft list tables | grep -i -e vignette -e radio
true`

// expectCleanHosts checks the developer cluster's hosts. Objects of other tests' pods that appear only for a moment
// do not count.
func expectCleanHosts(t *testing.T, uids []types.UID) {
	t.Helper()
	if os.Getenv("CLUSTER") == "existing" {
		t.Log("the hosts of CLUSTER=existing cannot be looked into: only the API server was checked")
		return
	}
	look := []string{"sh", "-c", hostScript, "sh"}
	for _, uid := range uids {
		look = append(look, string(uid))
	}
	for _, host := range schedulable(t) {
		eventually(t, goneTimeout, "host "+host+" to be clean", func() error {
			text, err := outputOf(t.Context(), host, look...)
			if left := strings.TrimSpace(text); err == nil && left != "" {
				return fmt.Errorf("left on host %s:\n%s", host, left)
			}
			return err
		})
	}
}

// killPod ends a pod of the platform at once, like a crash of its host.
func killPod(t *testing.T, app string) {
	t.Helper()
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(platformNamespace), client.MatchingLabels{"app.kubernetes.io/name": app}); err != nil || len(pods.Items) == 0 {
		t.Fatalf("pods of %s: %d, %v", app, len(pods.Items), err)
	}
	for _, pod := range pods.Items {
		uid := pod.UID
		if err := kube.Delete(t.Context(), &pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// awaitPlatform waits until an app's pods are ready again, so that the next test finds a complete platform.
func awaitPlatform(t *testing.T, app string) {
	t.Helper()
	eventually(t, startTimeout, app+" to be ready", func() error {
		var pods corev1.PodList
		if err := kube.List(context.Background(), &pods, client.InNamespace(platformNamespace), client.MatchingLabels{"app.kubernetes.io/name": app}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero() {
					return nil
				}
			}
		}
		return errorf("none of %d pods is ready", len(pods.Items))
	})
}

// TestARunOutlivesItsOperatorAndADeletionItsRadiod is not parallel, as it affects all runs. A new operator takes over when the
// old one's lease expires, so it kills at times when nothing is scheduled for that long.
func TestARunOutlivesItsOperatorAndADeletionItsRadiod(t *testing.T) {
	run := pair(newNamespace(t), "outlives").Duration("25s").Obj()
	run.Spec.Timeline[1].At = "20s"
	mustCreate(t, run)
	waitFor(t, run, startTimeout, v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning)
	killPod(t, "vignette-operator")
	waitForMoment(t, run, "start")
	t0, workflow := get(t, run).Status.T0.DeepCopy(), workflowUID(t, run)
	killPod(t, "vignette-operator")
	waitForMoment(t, run, "drain")
	killPod(t, "vignette-operator")

	done := waitFor(t, run, finishTimeout, v1alpha1.PhaseSucceeded)
	if !done.Status.T0.Equal(t0) || workflowUID(t, run) != workflow {
		t.Errorf("T0 %s and Workflow %s became %s and %s: the run began a second time", t0, workflow, done.Status.T0, workflowUID(t, run))
	}
	if results := resultsOf(t, run.UID); results.Messages.Sent == 0 || results.Messages.Duplicates != 0 || results.Messages.Lost != 0 {
		t.Errorf("messages: %+v; want every one once", results.Messages)
	}
	for _, agent := range stateOf(t, run.UID).Agents {
		if agent.ArmedVersion != 1 || agent.ExecutedActions == 0 || len(agent.ArmedTooLate) > 0 {
			t.Errorf("agent %s/%s: %+v; want that it carried out actions of the first list, and got none too late", agent.Node, agent.App, agent.AgentReport)
		}
	}

	gone := pair(newNamespace(t), "gone").Duration("60s").Obj()
	gone.Spec.Timeline[1].At = "60s"
	mustCreate(t, gone)
	waitForT0(t, gone, time.Second)
	pods := podUIDs(t, gone)
	killPod(t, "vignette-radiod")
	if err := kube.Delete(t.Context(), get(t, gone)); err != nil {
		t.Fatal(err)
	}
	awaitPlatform(t, "vignette-radiod")
	eventually(t, goneTimeout, "everything of the deleted experiment to be gone", func() error {
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(gone), &v1alpha1.Experiment{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the experiment is still there (%v)", err)
		}
		return leftovers(t, gone)
	})
	expectCleanHosts(t, append(pods, gone.UID))
	awaitPlatform(t, "vignette-operator")
}

func workflowUID(t *testing.T, e *v1alpha1.Experiment) types.UID {
	t.Helper()
	list := unstructuredList("argoproj.io/v1alpha1", "WorkflowList")
	if err := kube.List(t.Context(), list, client.InNamespace(e.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Fatalf("the run has %d Workflows, want 1", len(list.Items))
	}
	return list.Items[0].GetUID()
}
