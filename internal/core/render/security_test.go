package render

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// secured is the quickstart whose hub has security. Its clients are nor-units on its node, and spoke by its bridge.
func secured(t *testing.T) Input {
	t.Helper()
	in := quickstart(t)
	in.Experiment.Spec.Apps[0].Security = &v1alpha1.Security{TLS: true, Password: true}
	in.Topology, _ = topology.Expand(&in.Experiment.Spec)
	return in
}

func TestContainersGetOnlyTheNeededPartsOfTheSecret(t *testing.T) {
	got := map[string][]string{}
	for _, pod := range Pods(secured(t)) {
		volumes := map[string]*corev1.SecretVolumeSource{}
		for _, v := range pod.Spec.Volumes {
			volumes[v.Name] = v.Secret
		}
		for _, c := range pod.Spec.Containers {
			for _, mount := range c.VolumeMounts {
				if mount.MountPath != agentconfig.SecurityDir {
					continue
				}
				source := volumes[mount.Name]
				if source == nil || source.SecretName != "quickstart-security-11111111-2222-3333-4444-555555555555" || !mount.ReadOnly {
					t.Fatalf("%s: %+v of %+v", pod.Name, mount, source)
				}
				files := []string{}
				for _, item := range source.Items {
					files = append(files, item.Path)
				}
				got[pod.Labels[v1alpha1.LabelNode]+"/"+c.Name] = files
			}
		}
	}
	public := []string{"ca.crt", "username", "password"}
	want := map[string][]string{"nor/hub": {}, "nor/nor-units": public, "prt/spoke": public} // no items are all files
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAPodWithSecurityMatchesItsGoldenFile(t *testing.T) {
	for _, pod := range Pods(secured(t)) {
		if pod.Labels[v1alpha1.LabelNode] == "nor" {
			checkGolden(t, "pod-nor-secured", pod)
		}
	}
}

func TestCertificatesAreForTheNodesOfBrokersWithSecurity(t *testing.T) {
	hosts, addresses := SecuredBrokers(secured(t).Topology)
	want := []netip.Addr{netip.MustParseAddr("198.18.9.1"), netip.MustParseAddr("198.18.10.1")}
	if diff := cmp.Diff([]string{"nor", "nor.wan", "nor.lan"}, hosts); diff != "" || len(addresses) != 2 || addresses[0] != want[0] || addresses[1] != want[1] {
		t.Errorf("for %v and %v", hosts, addresses)
	}
	if hosts, _ := SecuredBrokers(quickstart(t).Topology); len(hosts) != 0 {
		t.Errorf("for %v, though no broker has security", hosts)
	}
}

func TestTheExperimentOwnsTheSecretAndItIsImmutable(t *testing.T) {
	checkGolden(t, "secret", Secret(quickstart(t).Experiment, map[string][]byte{"username": []byte("u")}))
}

func TestClientsThatNameNoBrokerGetTheSecurityOfTheResolvedOne(t *testing.T) {
	e := &v1alpha1.Experiment{}
	text := `
spec:
  apps:
  - {name: broker, mosquitto: {}, security: {tls: true}}
  - {name: sub, subscriber: {protocol: mqtt, topics: ["#"]}}
  nodes: [{name: hq, apps: [broker, sub]}]`
	if err := yaml.UnmarshalStrict([]byte(text), e); err != nil {
		t.Fatal(err)
	}
	expanded, _ := topology.Expand(&e.Spec)
	site := MakeSites(Input{Experiment: e, Topology: expanded})["hq"][1]
	if site.Broker.Address != "127.0.0.1:8883" || site.Broker.App.Security == nil {
		t.Errorf("goes to %+v", site.Broker)
	}
}
