package render

import (
	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// cniConfig is the configuration of the CNI plugin `radio`. Users can change it, so radiod checks the pod's UID.
type cniConfig struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	Network    string `json:"network"`
}

// Attachments are the NetworkAttachmentDefinitions, one for each network.
func Attachments(in Input) []*nadv1.NetworkAttachmentDefinition {
	e := in.Experiment
	definitions := make([]*nadv1.NetworkAttachmentDefinition, len(e.Spec.Networks))
	for i, network := range e.Spec.Networks {
		name := NetworkName(e.Name, network.Name)
		definitions[i] = &nadv1.NetworkAttachmentDefinition{
			ObjectMeta: ownedMeta(e, name, labels(e, v1alpha1.LabelNetwork, network.Name)),
			Spec:       nadv1.NetworkAttachmentDefinitionSpec{Config: encode(cniConfig{CNIVersion: "1.0.0", Name: name, Type: "radio", Network: network.Name})},
		}
		definitions[i].SetGroupVersionKind(nadv1.SchemeGroupVersion.WithKind("NetworkAttachmentDefinition"))
	}
	return definitions
}

// RadioNetworks configure radiod. There is one for each network, with the pods that may attach.
func RadioNetworks(in Input, waveforms map[string]v1alpha1.WaveformSpec, pods map[string]types.UID) []*v1alpha1.RadioNetwork {
	e := in.Experiment
	networks := make([]*v1alpha1.RadioNetwork, len(e.Spec.Networks))
	for i, network := range e.Spec.Networks {
		networks[i] = &v1alpha1.RadioNetwork{
			ObjectMeta: metav1.ObjectMeta{
				Name: RadioNetworkName(e, network.Name), Namespace: in.Options.Namespace,
				Labels: labels(e, v1alpha1.LabelNetwork, network.Name, v1alpha1.LabelExperimentNamespace, e.Namespace),
			},
			Spec: v1alpha1.RadioNetworkSpec{
				Experiment: v1alpha1.ExperimentReference{Namespace: e.Namespace, Name: e.Name, UID: e.UID},
				Network:    network.Name,
				Waveform:   waveforms[network.Name],
				Engine:     engineOf(network, waveforms[network.Name]),
				Spectrum:   network.Spectrum,
				Radios:     network.Radios,
				Routing:    domainRouting(in.Topology, &e.Spec, network),
				Scenario:   scenarioOf(in, network, waveforms[network.Name]),
				Links:      links(network, waveforms[network.Name]),
				MTU:        mtu(network),
				Seed:       apps.Seed(e.Spec.Seed, "network", network.Name),
				Changes:    Changes(e, network.Name),
				Captures:   captures(in, network.Name),
				Members:    members(in, network, waveforms[network.Name], pods),

				CommEffects:          network.CommEffects,
				FadingSelections:     in.Scenario.fades(network, waveforms[network.Name]),
				TCPCongestionControl: e.Spec.TCPCongestionControl,
			},
		}
		networks[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RadioNetwork"))
	}
	return networks
}

func mtu(network v1alpha1.Network) int32 {
	if network.MTU == 0 {
		return 1500
	}
	return network.MTU
}

func members(in Input, network v1alpha1.Network, waveform v1alpha1.WaveformSpec, pods map[string]types.UID) []v1alpha1.Member {
	found := []v1alpha1.Member{}
	routes := staticRoutes(in.Topology, network)
	for _, node := range in.Topology.Nodes {
		for i, a := range node.Attachments {
			if a.Network != network.Name {
				continue
			}
			member := v1alpha1.Member{
				Node: node.Name, Group: node.Group, NEM: node.NEM, MAC: a.MAC, Address: a.Address.String(), Interface: network.Name,
				PodUID: pods[node.Name], OpenManagement: node.OpenManagement, Primary: i == 0, Place: int32(i), Routes: routes[node.Name], //nolint:gosec // few
			}
			if node.IsVM() {
				member.Runtime = v1alpha1.RuntimeVM
			}
			if usesPositions(network, waveform) {
				member.Platform, member.Position = in.Scenario.PlatformOf(node), node.Position
				member.AntennaProfiles = in.Scenario.hasAntennaProfile(node)
			}
			found = append(found, member)
		}
	}
	return found
}
