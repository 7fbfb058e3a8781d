//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// forExperiments names an object that experiments of its namespace may use.
func forExperiments(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelForExperiments: v1alpha1.ForExperiments}}
}

// wantNotAccepted waits until the operator says what is wrong.
func wantNotAccepted(t *testing.T, e *v1alpha1.Experiment, want string) {
	t.Helper()
	eventually(t, time.Minute, "it to be refused", func() error {
		now := get(t, e)
		for _, c := range now.Status.Conditions {
			if c.Type == v1alpha1.ConditionAccepted && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, want) {
				t.Logf("%s: %s", c.Reason, c.Message)
				return nil
			}
		}
		return errorf("phase %q: %+v", now.Status.Phase, now.Status.Conditions)
	})
}

// TestAnExperimenterReadsNoSecretThatNobodyLetHimUse has an app print what a Secret holds.
func TestAnExperimenterReadsNoSecretThatNobodyLetHimUse(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t, "vignette-experimenter")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.namespace, Name: "keys"}, StringData: map[string]string{"own": "s3cret"}}
	mustCreate(t, secret)
	e := makeExperiment(tenant.namespace, "reader").Network("wan", "198.18.9.0/24", "baseline").
		Image("own", analysisImage(t), "/bin/sh", "-c", "echo $KEY").Node("nor", "wan", "own").Obj()
	e.Spec.Apps[0].Env = []v1alpha1.EnvVar{{Name: "KEY", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "own"}}}
	if err := tenant.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	wantNotAccepted(t, e, "Secret keys does not have the label vignette.dev/for-experiments=true")
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"vignette.dev/for-experiments":"true"}}}`))
	if err := tenant.Patch(t.Context(), secret.DeepCopy(), label); !apierrors.IsForbidden(err) {
		t.Errorf("an experimenter sets the label: %v; want it forbidden", err)
	}
	if err := kube.Patch(t.Context(), secret, label); err != nil {
		t.Fatal(err)
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	if out := archivedText(t, done, "logs/nor/own/stdout-1.log"); out != "s3cret\n" {
		t.Errorf("the app printed %q; want what the Secret has", out)
	}
}
