//go:build e2e && vm

package e2e

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// teamsToken is in one of the team's Secrets.
const teamsToken = "s3cret-of-the-team"

// secretMachines has a broker with TLS and passwords in a machine, with clients in a pod and in another machine, and one in the pod, with clients in the two
// machines. An app in the second machine, keeper, takes a variable from a Secret, and reports its digest.
func secretMachines(namespace string) *v1alpha1.Experiment {
	b := makeExperiment(namespace, "secrets").Network("wan", "198.18.9.0/24", "baseline").
		Broker("hub").Broker("gate").Publisher("bft", "hub", "1s", 1).Payload("bytes:200").Subscriber("picture", "hub").
		Publisher("feed", "gate", "1s", 1).Payload("bytes:200").Subscriber("view", "gate").
		Image("keeper", "", "/bin/sh", "-c", `printf %s "$TOKEN" | sha256sum; exec sleep 1000`).
		Node("hq", "wan", "gate", "bft", "picture").Node("tank", "wan", "hub", "feed").Node("truck", "wan", "bft", "picture", "view", "keeper").
		Duration("45s").Start("5s", "bft", "feed").Stop("30s", "bft", "feed")
	for _, broker := range []int{0, 1} {
		b.Spec.Apps[broker].Security = &v1alpha1.Security{TLS: true, Password: true}
	}
	b.Spec.Apps[2].Publisher.Lead, b.Spec.Apps[4].Publisher.Lead = "8s", "8s"
	b.Spec.Apps[6].Env = []v1alpha1.EnvVar{{Name: "TOKEN", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "token"}}}
	b.Spec.Nodes[1].Runtime, b.Spec.Nodes[2].Runtime = v1alpha1.RuntimeVM, v1alpha1.RuntimeVM
	return b.Obj()
}

func TestSecretsAndSecurityOfVMsAreThoseOfPods(t *testing.T) {
	needsKubeVirt(t)
	namespace := newNamespace(t)
	e := secretMachines(namespace)
	mustCreate(t, &corev1.Secret{ObjectMeta: forExperiments(namespace, "keys"), StringData: map[string]string{"token": teamsToken, "other": "x"}})
	mustCreate(t, e)
	e = waitForBoot(t, e)
	for node, want := range map[string]string{"tank": "secrets-security-", "truck": "secrets-client-security-"} {
		if secrets := secretsOf(launcherOf(t, e, node)); !strings.Contains(secrets, " "+want+string(e.UID)+" ") {
			t.Errorf("the machine of %s has the Secrets%s; want %s…", node, secrets, want)
		}
	}
	wantOnlyInItsSecret(t, namespace, teamsToken)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	t.Logf("messages %+v", results.Messages)
	for _, p := range results.Publishers {
		if p.Messages.Sent < 17 || p.Messages.Lost != 0 {
			t.Errorf("publisher %s: %+v; want one a second from 5 s + 8 s to 30 s, and every one to arrive", p.Name, p.Messages)
		}
	}
	if len(results.Publishers) != 3 {
		t.Errorf("%d publishers; want those of two brokers", len(results.Publishers))
	}
	if said := archivedText(t, done, "logs/truck/keeper/stdout-1.log"); !strings.HasPrefix(said, fmt.Sprintf("%x", sha256.Sum256([]byte(teamsToken)))) {
		t.Errorf("the app in the machine has another token than the Secret: its digest is %s", said)
	}
	if err := kube.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}}); err != nil {
		t.Fatal(err)
	}
	deleteAndExpectNoMachineLeft(t, done)
}

// secretsOf returns the Secrets that a pod mounts, each between blanks.
func secretsOf(pod *corev1.Pod) string {
	names := " "
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			names += v.Secret.SecretName + " "
		}
	}
	return names
}

// wantOnlyInItsSecret wants a value in only one Secret of a namespace.
func wantOnlyInItsSecret(t *testing.T, namespace, value string) {
	t.Helper()
	var secrets corev1.SecretList
	if err := kube.List(t.Context(), &secrets, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		for key, content := range secret.Data {
			if secret.Name != "keys" && strings.Contains(string(content), value) {
				t.Errorf("key %s of Secret %s has the team's token", key, secret.Name)
			}
		}
	}
}

func TestASecretThatAVMLacksIsNamedBeforeAnythingIsMade(t *testing.T) {
	needsKubeVirt(t)
	e := secretMachines(newNamespace(t))
	mustCreate(t, e)
	wantNotAccepted(t, e, `spec.apps[6].env[0].secret.name: Not found: "keys"`)
	deleteAndExpectNoMachineLeft(t, get(t, e))
}
