package experiment

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// allowed is the metadata of an object of the team that experiments may use.
func (w *world) allowed(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.key.Namespace, Name: name, Labels: map[string]string{"vignette.dev/for-experiments": "true"}}
}

// podSecret makes the last app, in a pod, take a variable from a Secret.
func podSecret(e *v1alpha1.Experiment) {
	app := &e.Spec.Apps[5]
	app.Env = append(app.Env, v1alpha1.EnvVar{Name: "TOKEN", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "token"}})
}

// machineWith gives the first node, a machine, these settings.
func machineWith(vm v1alpha1.VirtualMachine) func(*v1alpha1.Experiment) {
	return func(e *v1alpha1.Experiment) { e.Spec.Nodes[0].VM = &vm }
}

// restrictedUses are all ways in which a spec reads what its author may not.
var restrictedUses = map[string]struct {
	change   func(*v1alpha1.Experiment)
	template v1alpha1.VirtualMachine
	kind     client.Object
	path     string
}{
	"a variable of a pod":     {podSecret, v1alpha1.VirtualMachine{}, &corev1.Secret{}, "spec.apps[5].env[1].secret.name"},
	"a variable of a machine": {secretMachine, v1alpha1.VirtualMachine{}, &corev1.Secret{}, "spec.apps[5].env[0].secret.name"},
	"a machine's user data": {machineWith(v1alpha1.VirtualMachine{Image: "r/own:1", CloudInit: &v1alpha1.CloudInit{Secret: "keys"}}),
		v1alpha1.VirtualMachine{}, &corev1.Secret{}, "spec.nodes[0].vm.cloudInit.secret"},
	"user data by a template": {machineWith(v1alpha1.VirtualMachine{Template: "router"}),
		v1alpha1.VirtualMachine{Image: "r/own:1", CloudInit: &v1alpha1.CloudInit{Secret: "keys"}}, &corev1.Secret{}, "spec.nodes[0].vm.cloudInit.secret"},
	"a machine's claim": {machineWith(v1alpha1.VirtualMachine{PersistentVolumeClaim: "keys"}),
		v1alpha1.VirtualMachine{}, &corev1.PersistentVolumeClaim{}, "spec.nodes[0].vm.persistentVolumeClaim"},
	"a claim by a template": {machineWith(v1alpha1.VirtualMachine{Template: "router"}),
		v1alpha1.VirtualMachine{PersistentVolumeClaim: "keys"}, &corev1.PersistentVolumeClaim{}, "spec.nodes[0].vm.persistentVolumeClaim"},
}

func TestExperimentsUseOnlyWhatAnAdministratorAllows(t *testing.T) {
	for name, c := range restrictedUses {
		t.Run(name, func(t *testing.T) {
			w := machineWorld(t, c.change)
			w.must(w.api.Create(t.Context(), &v1alpha1.NodeTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: "router"}, Spec: v1alpha1.NodeTemplateSpec{VM: c.template}}))
			kind, missing, closed := "Secret", scope.ReasonSecretNotFound, scope.ReasonSecretNotAllowed
			if _, claim := c.kind.(*corev1.PersistentVolumeClaim); claim {
				kind, missing, closed = "PersistentVolumeClaim", scope.ReasonDiskNotFound, scope.ReasonDiskNotAllowed
			}
			w.wantNotAccepted(missing, c.path+`: Not found: "keys"`)
			c.kind.SetNamespace(w.key.Namespace)
			c.kind.SetName("keys")
			c.kind.SetLabels(map[string]string{"vignette.dev/for-experiments": "false"})
			w.must(w.api.Create(t.Context(), c.kind))
			w.wantNotAccepted(closed, fmt.Sprintf("%s: Forbidden: %s keys does not have the label vignette.dev/for-experiments=true", c.path, kind))
			c.kind.SetLabels(w.allowed("keys").Labels)
			w.must(w.api.Update(t.Context(), c.kind))
			w.untilPhase(v1alpha1.PhaseRunning)
		})
	}
}

func TestASecretThatIsWithdrawnBeforeItsNodesStartEndsTheExperiment(t *testing.T) {
	w := newWorld(t, podSecret)
	w.makeSecret("keys", map[string][]byte{"token": []byte("s3cret")})
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.must(w.api.Delete(t.Context(), &corev1.Secret{ObjectMeta: w.allowed("keys")}))
	w.wantFailed(scope.ReasonReferenceLost, `spec.apps[5].env[1].secret.name: Not found: "keys"`)
}

func TestAnAdministratorMustAllowAnOpenClusterInterface(t *testing.T) {
	observer := func(change func(*v1alpha1.Node)) func(*v1alpha1.Experiment) {
		return func(e *v1alpha1.Experiment) { change(&e.Spec.Nodes[3]) }
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Node)
		want   string // empty: accepted
	}{
		"open, beside a radio": {func(n *v1alpha1.Node) { n.Networks = []string{"wan"} }, "spec.nodes[3].managementNetwork: Forbidden: namespace team-nor does not have the label vignette.dev/management-network=Open"},
		"a pod without a radio": {func(n *v1alpha1.Node) { n.ManagementNetwork = v1alpha1.ManagementIsolated },
			"spec.nodes[3].networks: Forbidden: a node without a network has an open cluster interface: namespace team-nor"},
		"a machine without a radio": {func(n *v1alpha1.Node) { n.ManagementNetwork, n.Runtime = "", v1alpha1.RuntimeVM }, "spec.nodes[3].networks: Forbidden"},
		"isolated":                  {func(n *v1alpha1.Node) { n.Networks, n.ManagementNetwork = []string{"wan"}, v1alpha1.ManagementIsolated }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, observer(c.change))
			namespace := team(w.key.Namespace)
			namespace.Labels = map[string]string{"vignette.dev/management-network": "Isolated"}
			w.must(w.api.Update(t.Context(), namespace))
			if c.want != "" {
				w.wantNotAccepted(scope.ReasonOpenNotAllowed, c.want)
				w.must(w.api.Update(t.Context(), team(w.key.Namespace)))
			}
			w.untilPhase(v1alpha1.PhaseRunning)
		})
	}
}

func TestNodesAreNotCreatedBeforeTheServersAddressIsKnown(t *testing.T) {
	w := newWorld(t)
	lookup, away, looked := w.reconciler.Options.LookupHost, true, 0
	w.reconciler.Options.LookupHost = func(ctx context.Context, host string) ([]string, error) {
		if away {
			return nil, errors.New("the nameserver is away")
		}
		looked++
		return lookup(ctx, host)
	}
	for range 5 {
		_, _ = w.reconcile() // it is tried again later
	}
	if pods := w.pods(); len(pods) > 0 {
		t.Errorf("%d pods were made, which would not find the server", len(pods))
	}
	away = false
	w.untilPhase(v1alpha1.PhaseRunning)
	if looked != 1 {
		t.Errorf("the address was looked up %d times; want once, before the pods were made", looked)
	}
}
