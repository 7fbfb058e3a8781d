package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// secretMachines is the quickstart in machines. Its hub has security, and its tracker beside it takes variables from two
// Secrets. Spoke, in another machine, is the hub's client by its bridge.
func secretMachines(t *testing.T, change ...func(*v1alpha1.ExperimentSpec)) Input {
	t.Helper()
	in := machines(t)
	spec := &in.Experiment.Spec
	spec.Apps[0].Security = &v1alpha1.Security{TLS: true, Password: true}
	spec.Apps[5].Image, spec.Apps[5].Env = "", []v1alpha1.EnvVar{
		{Name: "TOKEN", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "token"}}, {Name: "OTHER", Secret: &v1alpha1.KeyReference{Name: "more", Key: "of.them"}},
		{Name: "USER_NAME", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "user"}},
	}
	spec.Nodes[0].Apps = append(spec.Nodes[0].Apps, "tracker")
	for _, c := range change {
		c(spec)
	}
	expanded, errs := topology.Expand(spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	in.Topology, in.ClientSecurity = expanded, ClientSecurityName(in.Experiment, 0)
	return in
}

func TestSecretsOfAMachineAreDisksByTheirLabels(t *testing.T) {
	in := secretMachines(t)
	checkGolden(t, "vm-nor-secrets", VMs(in, made, anyNode)[0])
	for _, node := range VMNodes(in.Topology)[:2] {
		text, err := GuestFile(in, node, waveforms(in))
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "guest-"+node.Name+"-secrets.json", string(text)+"\n")
	}
	if errs := CheckVMs(in); len(errs) > 0 {
		t.Error(errs)
	}
}

// disksOf are a machine's Secrets by the labels of their disks.
func disksOf(vm *kubevirtv1.VirtualMachineInstance) map[string]string {
	found := map[string]string{}
	for _, v := range vm.Spec.Volumes {
		if v.Secret != nil {
			found[v.Secret.VolumeLabel] = v.Secret.SecretName
		}
	}
	return found
}

func TestEveryValueOfASecretIsOnADiskThatTheMachineHas(t *testing.T) {
	in := secretMachines(t)
	for i, vm := range VMs(in, made, anyNode) {
		disks, node := disksOf(vm), VMNodes(in.Topology)[i]
		for _, app := range Guest(in, node, MakeSites(in)[node.Name], waveforms(in)).Apps {
			for _, key := range app.SecretEnv {
				if disks[key.Disk] != key.Secret || key.Secret == "" {
					t.Errorf("%s/%s: %+v of %v", node.Name, app.Agent.App, key, disks)
				}
			}
			for _, file := range app.SecretFiles {
				if !strings.Contains(disks[file.Disk], "security") {
					t.Errorf("%s/%s: %+v of %v", node.Name, app.Agent.App, file, disks)
				}
			}
		}
	}
}

func TestOnlyMachinesWithBrokersHaveTheirKey(t *testing.T) {
	const brokers, clients = "quickstart-security-11111111-2222-3333-4444-555555555555", "quickstart-client-security-11111111-2222-3333-4444-555555555555"
	none := func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Security = nil }
	podBroker := func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Runtime, s.Nodes[0].VM = "", nil }
	podClient := func(s *v1alpha1.ExperimentSpec) { s.Nodes[1].Runtime, s.Nodes[1].VM = "", nil }
	for name, c := range map[string]struct {
		change       func(*v1alpha1.ExperimentSpec)
		want         map[string]string
		clientSecret bool
	}{
		"broker and client in machines":      {func(*v1alpha1.ExperimentSpec) {}, map[string]string{"nor": brokers, "prt": clients}, true},
		"the broker in a pod":                {podBroker, map[string]string{"prt": clients}, true},
		"its clients in pods":                {podClient, map[string]string{"nor": brokers}, false},
		"nobody with security":               {none, map[string]string{}, false},
		"clients beside the broker, no more": {func(s *v1alpha1.ExperimentSpec) { s.Nodes[1].Apps = nil }, map[string]string{"nor": brokers}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in, got := secretMachines(t, c.change), map[string]string{}
			for _, vm := range VMs(in, made, anyNode) {
				if secret := disksOf(vm)[guestconfig.SecretLabel(0)]; strings.Contains(secret, "security") {
					got[vm.Labels[v1alpha1.LabelNode]] = secret
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) || MachinesWithClients(in) != c.clientSecret {
				t.Errorf("%v, a Secret of clients %v; want %v, %v", got, MachinesWithClients(in), c.want, c.clientSecret)
			}
		})
	}
}

func TestTheSecretOfClientsHasNoKey(t *testing.T) {
	files := map[string][]byte{"ca.crt": {1}, "tls.crt": {2}, "tls.key": {3}, "username": {4}, "password": {5}}
	in := secretMachines(t)
	secret := ClientSecret(in.Experiment, 2, files)
	var keys []string
	for key, value := range secret.Data {
		if keys = append(keys, key); len(value) == 0 {
			t.Errorf("%s is empty", key)
		}
	}
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"ca.crt", "password", "username"}) || !strings.HasSuffix(secret.Name, "-2") || !*secret.Immutable || secret.OwnerReferences[0].UID != in.Experiment.UID {
		t.Errorf("%s has %v", secret.Name, keys)
	}
}
