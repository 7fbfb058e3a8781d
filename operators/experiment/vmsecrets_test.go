package experiment

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// secretMachine gives the first node, a machine, an app that takes a variable from key token of Secret keys.
func secretMachine(e *v1alpha1.Experiment) {
	tracker := &e.Spec.Apps[5]
	tracker.Image, tracker.Env = "", []v1alpha1.EnvVar{{Name: "TOKEN", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "token"}}}
	e.Spec.Nodes[0].Apps = append(e.Spec.Nodes[0].Apps, "tracker")
	e.Spec.Nodes[2].Apps = []string{"radio-udp"}
}

// makeSecret creates a Secret that experiments may use.
func (w *world) makeSecret(name string, data map[string][]byte) {
	w.t.Helper()
	w.must(w.api.Create(w.t.Context(), &corev1.Secret{ObjectMeta: w.allowed(name), Data: data}))
}

// machinesSecret is the Secret of the n-th Secret disk of a node's machine.
func (w *world) machinesSecret(node string, n int) *corev1.Secret {
	w.t.Helper()
	for _, volume := range w.vm(node).Spec.Volumes {
		if volume.Secret != nil && volume.Secret.VolumeLabel == guestconfig.SecretLabel(n) {
			secret := &corev1.Secret{}
			w.must(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: w.key.Namespace, Name: volume.Secret.SecretName}, secret))
			return secret
		}
	}
	w.t.Fatalf("machine %s has no disk %s", node, guestconfig.SecretLabel(n))
	return nil
}

func TestATeamsSecretReachesItsMachineWithoutTheOperator(t *testing.T) {
	w := machineWorld(t, secretMachine)
	w.makeSecret("keys", map[string][]byte{"token": []byte("s3cret")})
	w.untilPhase(v1alpha1.PhaseRunning)
	if name := w.machinesSecret("nor", 0).Name; name != "keys" {
		t.Errorf("the machine has Secret %s", name)
	}
	for _, secret := range w.secrets() {
		for key, value := range secret.Data {
			if secret.Name != "keys" && bytes.Contains(value, []byte("s3cret")) {
				t.Errorf("%s of Secret %s has the value", key, secret.Name)
			}
		}
	}
	if w.untilFinished().Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("the run ends with %+v", w.experiment().Status)
	}
}

func TestAKeyThatAGuestDoesNotFindFailsAsForAPod(t *testing.T) {
	for reason, want := range map[string]string{runapi.ReasonKeyNotFound: scope.ReasonKeyNotFound, "whatever a team's agent says": scope.ReasonAppFailed, "": scope.ReasonAppFailed} {
		w := machineWorld(t, secretMachine)
		w.makeSecret("keys", nil)
		const message = "node nor: app tracker takes variable TOKEN from key token of Secret keys, which has no such key"
		w.server.failing, w.server.reason = map[string]string{"nor/tracker": message}, reason
		w.wantFailed(want, message)
	}
}

// clientMachines has the hub, with security, in a pod, and a machine with spoke, which is its client.
func clientMachines(e *v1alpha1.Experiment) {
	withSecurity(e)
	e.Spec.Nodes[0].Runtime, e.Spec.Nodes[0].VM = "", nil
	e.Spec.Nodes[1].Runtime, e.Spec.Nodes[1].VM = v1alpha1.RuntimeVM, &v1alpha1.VirtualMachine{}
}

// wantOneSecurity checks that a client in a machine has the credentials of its broker in a pod, but not the broker's key.
func (w *world) wantOneSecurity() {
	w.t.Helper()
	clients, brokers := w.machinesSecret("prt", 0), &corev1.Secret{}
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: w.key.Namespace, Name: render.SecurityName(w.experiment())}, brokers))
	if len(clients.Data) != 3 {
		w.t.Errorf("%s has %d keys", clients.Name, len(clients.Data))
	}
	for _, key := range []string{"ca.crt", "username", "password"} {
		if value := clients.Data[key]; len(value) == 0 || !bytes.Equal(value, brokers.Data[key]) {
			w.t.Errorf("%s of Secret %s is not that of %s", key, clients.Name, brokers.Name)
		}
	}
}

func TestAMachineWithClientsHasTheBrokersCredentialsButNotTheirKey(t *testing.T) {
	w := machineWorld(t, clientMachines)
	w.untilPhase(v1alpha1.PhaseSucceeded)
	made := slices.DeleteFunc(w.writes, func(s string) bool { return !strings.Contains(s, "security") })
	if len(made) != 2 || !strings.Contains(made[0], "client-security") {
		t.Errorf("wrote %v; want two Secrets, that of clients first", made)
	}
	w = machineWorld(t, clientMachines)
	w.untilPhase(v1alpha1.PhaseRunning)
	w.wantOneSecurity()
}

func TestAfterAKillBetweenTheTwoSecretsTheNextOperatorCreatesMatchingOnes(t *testing.T) {
	w := machineWorld(t, clientMachines)
	w.untilPhase(v1alpha1.PhaseRunning)
	for i, what := range w.writes {
		if !strings.Contains(what, "security") && !strings.Contains(what, "VirtualMachineInstance") {
			continue
		}
		killed := machineWorld(t, clientMachines)
		killed.killAfter = i + 1
		killed.onDeath = killed.restart
		killed.untilPhase(v1alpha1.PhaseRunning)
		killed.wantOneSecurity()
	}
}

func TestTheExperimentFailsIfItsClientsSecretIsGone(t *testing.T) {
	w := machineWorld(t, clientMachines)
	w.noVirt = true
	w.until("with Secrets", func(*v1alpha1.Experiment) bool { return len(w.secrets()) == 2 })
	for _, secret := range w.secrets() {
		if strings.Contains(secret.Name, "client") {
			w.must(w.api.Delete(t.Context(), &secret))
		}
	}
	w.wantFailed(scope.ReasonReferenceLost, "which clients of brokers with security need, was deleted: create the experiment again")
}
