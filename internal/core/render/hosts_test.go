package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const twoNetworks = `
metadata: {name: two, namespace: team}
spec:
  networks:
  - {name: vhf, waveform: baseline, subnet: 198.18.0.0/24}
  - {name: lan, waveform: baseline, subnet: 198.18.1.0/24}
  apps: [{name: hub, mosquitto: {}}]
  nodes:
  - {name: hq, networks: [lan, vhf], apps: [hub]}
  - {name: veh, networks: [vhf]}
  - {name: bare, apps: [hub]}
  - {name: machine, networks: [vhf], runtime: vm}
`

func hostsInput(t *testing.T) Input {
	t.Helper()
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(twoNetworks), e); err != nil {
		t.Fatal(err)
	}
	expanded, errs := topology.Expand(&e.Spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return Input{Experiment: e, Topology: expanded, Options: quickstart(t).Options}
}

// resolve resolves a name by the first line that has it, as the resolver does.
func resolve(hosts, name string) string {
	for line := range strings.Lines(hosts) {
		fields := strings.Fields(line)
		for _, field := range fields[1:] {
			if field == name {
				return fields[0]
			}
		}
	}
	return ""
}

func TestNamesOfNodesAreTheirRadioAddresses(t *testing.T) {
	hosts := map[string]string{}
	for _, pod := range Pods(hostsInput(t)) {
		hosts[pod.Labels[v1alpha1.LabelNode]] = pod.Annotations["vignette.dev/hosts"]
	}
	for _, c := range []struct{ on, name, want string }{
		{"veh", "hq", "198.18.0.1"},      // the shared network
		{"veh", "hq.vhf", "198.18.0.1"},  // a named network
		{"veh", "hq.lan", "198.18.1.1"},  // another network, to which there may be routes
		{"veh", "veh", "198.18.0.2"},     // its own name is no loopback and no pod address
		{"veh", "machine", "198.18.0.4"}, // a virtual machine
		{"hq", "hq", "198.18.1.1"},       // its first network
		{"hq", "hq.vhf", "198.18.0.1"},
		{"hq", "veh", "198.18.0.2"},
		{"hq", "localhost", "127.0.0.1"},
		{"hq", "bare", ""},
	} {
		if got := resolve(hosts[c.on], c.name); got != c.want {
			t.Errorf("on %s %s is %q; want %q in\n%s", c.on, c.name, got, c.want, hosts[c.on])
		}
	}
	if hosts["bare"] != "" {
		t.Errorf("a node without radios has the platform's hosts file:\n%s", hosts["bare"])
	}
}

func TestEveryContainerOfANodeWithRadiosHasItsHosts(t *testing.T) {
	in := hostsInput(t)
	for _, pod := range Pods(in) {
		for _, c := range pod.Spec.Containers {
			mounted := ""
			for _, mount := range c.VolumeMounts {
				if mount.MountPath == "/etc/hosts" {
					mounted = mount.Name
				}
			}
			source := ""
			for _, volume := range pod.Spec.Volumes {
				if volume.Name == mounted && volume.DownwardAPI != nil {
					source = volume.DownwardAPI.Items[0].FieldRef.FieldPath
				}
			}
			if _, radios := pod.Annotations["vignette.dev/hosts"]; radios != (source == "metadata.annotations['vignette.dev/hosts']") {
				t.Errorf("pod %s, container %s: hosts are mounted from %q, radios %v", pod.Name, c.Name, source, radios)
			}
		}
	}
}

func TestAGuestKnowsTheSameNamesAsAPod(t *testing.T) {
	in := hostsInput(t)
	machine, _ := in.Topology.Node("machine")
	got := map[string]string{}
	for _, h := range Guest(in, machine, nil, nil).Hosts {
		for _, name := range h.Names {
			got[name] = h.Address
		}
	}
	want := map[string]string{"hq": "198.18.0.1", "hq.vhf": "198.18.0.1", "hq.lan": "198.18.1.1", "veh": "198.18.0.2", "veh.vhf": "198.18.0.2",
		"machine": "198.18.0.4", "machine.vhf": "198.18.0.4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheKubeletsHostsHaveTheNamesToo(t *testing.T) {
	in := hostsInput(t)
	veh, _ := in.Topology.Node("veh")
	want := []corev1.HostAlias{
		{IP: "198.18.1.1", Hostnames: []string{"hq.lan"}}, {IP: "198.18.0.1", Hostnames: []string{"hq", "hq.vhf"}},
		{IP: "198.18.0.2", Hostnames: []string{"veh", "veh.vhf"}}, {IP: "198.18.0.4", Hostnames: []string{"machine", "machine.vhf"}},
	}
	if diff := cmp.Diff(want, hostAliases(in, veh)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
