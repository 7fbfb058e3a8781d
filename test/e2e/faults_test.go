//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// radioNetworkOf returns an experiment's only radio network.
func radioNetworkOf(t *testing.T, e *v1alpha1.Experiment) *v1alpha1.RadioNetwork {
	t.Helper()
	var all v1alpha1.RadioNetworkList
	if err := kube.List(t.Context(), &all, client.MatchingLabels{v1alpha1.LabelExperimentUID: string(e.UID)}); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d radio networks, %v; want one", len(all.Items), err)
	}
	return &all.Items[0]
}

func TestARadioNetworkDeletedMidRunFailsTheRunByName(t *testing.T) {
	t.Parallel()
	e := pair(newNamespace(t), "no-radio").Duration("60s").Obj()
	e.Spec.Timeline[1].At = "60s"
	mustCreate(t, e)
	waitForT0(t, e, 4*time.Second)
	network := radioNetworkOf(t, e)
	members := network.DeepCopy()
	members.Spec.Members = members.Spec.Members[:1]
	if err := kube.Update(t.Context(), members); err == nil || !strings.Contains(err.Error(), "cannot change once t0 is set") {
		t.Errorf("an edit of the members: %v; want it refused by the API server", err)
	}
	if err := kube.Delete(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	failed := waitFor(t, e, finishTimeout, v1alpha1.PhaseFailed)
	ready := meta.FindStatusCondition(failed.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != "RadioNetworkDeleted" || !strings.Contains(failed.Status.Message, network.Name) {
		t.Errorf("reason %+v, message %q; want RadioNetworkDeleted, and %s named", ready, failed.Status.Message, network.Name)
	}
	deleteAndExpectNothingLeft(t, failed)
}

func TestAnAppThatNeedsMoreMemoryThanItsLimitIsNamed(t *testing.T) {
	t.Parallel()
	e := pair(newNamespace(t), "hungry").Image("eater", mosquittoImage(t), "/bin/sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); sleep 60").Obj()
	e.Spec.Apps[len(e.Spec.Apps)-1].Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}
	e.Spec.Nodes[1].Apps = append(e.Spec.Nodes[1].Apps, "eater")
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
	told := done.Status.Message
	for _, incident := range stateOf(t, done.UID).Incidents {
		told += "\n" + incident.Reason
	}
	if !strings.Contains(told, "OOMKilled") {
		t.Errorf("it says %q; want OOMKilled named", told)
	}
}
