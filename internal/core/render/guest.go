package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// guestSpoolBytes limits the unsent logs of an agent in a guest, which are on the guest's own disk.
const guestSpoolBytes = 64 << 20

// toolFolders replace the images in a rendering, to find out which image has an app's programs. The tools' disk has only those
// of onToolsDisk.
var toolFolders = apps.Images{
	Traffic: guestconfig.ToolsTraffic, ZeroMQ: guestconfig.ToolsZeroMQ, Mosquitto: guestconfig.ToolsMosquitto, MGEN: guestconfig.ToolsMGEN,
	VerneMQ: "vernemq", RabbitMQ: "rabbitmq", Prosody: "prosody", WSNCXF: "wsn-cxf",
}

// toolsOf is the folder of the tools' disk with an app's programs, empty for the guest's own programs.
func toolsOf(site apps.Site) string {
	site.Images = toolFolders
	return KindOf(site.App).Render(site).Image
}

// onToolsDisk are the folders of the tools' disk. The empty one stands for the guest's own programs.
var onToolsDisk = map[string]bool{
	"": true, guestconfig.ToolsTraffic: true, guestconfig.ToolsZeroMQ: true, guestconfig.ToolsMosquitto: true, guestconfig.ToolsMGEN: true,
}

// Guest is the configuration of a virtual machine's guest, equivalent to what a pod of the node would get.
func Guest(in Input, node topology.Node, sites []apps.Site, waveforms map[string]v1alpha1.WaveformSpec) guestconfig.Config {
	e := in.Experiment
	config := guestconfig.Config{
		Node: node.Name, Server: in.Options.ServerURL, RunUID: string(e.UID),
		Interfaces: guestInterfaces(in, node, waveforms), OpenManagement: node.OpenManagement,
	}
	config.SSHKeys = settingsOf(in, node).SSHKeys // also in the user data, but the disk may lack cloud-init
	for _, alias := range hostAliases(in, node) {
		config.Hosts = append(config.Hosts, guestconfig.Host{Address: alias.IP, Names: alias.Hostnames})
	}
	if !node.HasAgent() {
		return config
	}
	for _, site := range sites {
		app := guestApp(in, node, site)
		addSecretReferences(&app, in, node, sites, site)
		config.Apps = append(config.Apps, app)
	}
	if len(sites) == 0 {
		idle := agentConfig(in, node, v1alpha1.App{Name: IdleApp}, apps.Rendering{})
		idle.SpoolLimitBytes = guestSpoolBytes
		config.Apps = []guestconfig.App{{Agent: idle}}
	}
	return config
}

func guestInterfaces(in Input, node topology.Node, waveforms map[string]v1alpha1.WaveformSpec) (interfaces []guestconfig.Interface) {
	e := in.Experiment
	for i, a := range node.Attachments {
		network, _ := networkOf(e, a.Network)
		next := guestconfig.Interface{
			Name: a.Network, MAC: a.MAC, Address: a.Address.String(), MTU: int(mtu(network)), Primary: i == 0,
			TCPCongestionControl: e.Spec.TCPCongestionControl,
			Routes:               staticRoutes(in.Topology, network)[node.Name], RateBitsPerSecond: ptr.To(waveforms[a.Network]).RateBitsPerSecond(),
		}
		if routing := domainRouting(in.Topology, &e.Spec, network); routing != nil {
			next.Routing = routing.DeepCopy()
			next.Routing.Routes = nil
			next.Seed = apps.Seed(e.Spec.Seed, "network", network.Name) ^ int64(node.NEM)<<32 // like radiod for a pod
		}
		interfaces = append(interfaces, next)
	}
	return interfaces
}

func networkOf(e *v1alpha1.Experiment, name string) (v1alpha1.Network, bool) {
	for _, network := range e.Spec.Networks {
		if network.Name == name {
			return network, true
		}
	}
	return v1alpha1.Network{}, false
}

func guestApp(in Input, node topology.Node, site apps.Site) guestconfig.App {
	rendering := KindOf(site.App).Render(site)
	app := guestconfig.App{
		Agent: agentConfig(in, node, site.App, rendering), Tools: toolsOf(site), RunAsUser: site.App.RunAsUser,
		Env: map[string]string{"VIGNETTE_NODE": node.Name}, RawSockets: site.App.ZeroMQBroker.RawSockets() || site.Broker.App.ZeroMQBroker.RawSockets(),
	}
	app.Agent.SpoolLimitBytes = guestSpoolBytes
	for _, variable := range rendering.Env {
		switch {
		case variable.ConfigMap != nil:
			app.Env[variable.Name] = string(in.Contents[*variable.ConfigMap])
		case variable.Value != nil:
			app.Env[variable.Name] = *variable.Value
		}
	}
	for _, file := range filesOf(site.App) {
		content := []byte(ptr.Deref(file.Content, ""))
		if file.ConfigMap != nil {
			content = in.Contents[*file.ConfigMap]
		}
		app.Files = append(app.Files, guestconfig.File{Path: file.Path, Content: content})
	}
	return app
}

// agentConfig of an app on a node.
func agentConfig(in Input, node topology.Node, app v1alpha1.App, r apps.Rendering) agentconfig.Config {
	config := agentconfig.Config{
		Server: in.Options.ServerURL, RunUID: string(in.Experiment.UID), Node: node.Name, App: app.Name,
		Instances: r.Instances, Files: r.Files, StopGraceSeconds: r.StopGraceSeconds, DrainOnStop: r.DrainOnStop,
		MessagesOnStdout: app.MessageLog == v1alpha1.MessageLogStdout, SpoolLimitBytes: spoolLimitBytes,
		TCPCongestionControl: in.Experiment.Spec.TCPCongestionControl, Position: agentPosition(in, node, app),
	}
	if config.Instances == nil {
		config.Instances = []agentconfig.Instance{}
	}
	return config
}

// GuestSecret is the Secret that a virtual machine waits for. It has its guest's file, the token for the server, and user data
// for cloud-init. It is deleted with the machine.
func GuestSecret(in Input, vm *kubevirtv1.VirtualMachineInstance, node topology.Node, file []byte, token string) *corev1.Secret {
	owner := *metav1.NewControllerRef(vm, kubevirtv1.VirtualMachineInstanceGroupVersionKind)
	owner.BlockOwnerDeletion = nil // it would need permission for the machine's finalizers
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: GuestSecretOf(vm), Namespace: vm.Namespace, Labels: vm.Labels,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Type: corev1.SecretTypeOpaque, Immutable: ptr.To(true),
		Data: map[string][]byte{guestconfig.ConfigFile: file},
	}
	if token != "" {
		secret.Data[guestconfig.TokenFile] = []byte(token)
	}
	if userData := UserData(in, node); userData != "" {
		secret.Data[UserDataKey] = []byte(userData)
	}
	if usesCloudInit(in, node, settingsOf(in, node)) {
		secret.Data[NetworkDataKey] = []byte(networkData(in, node))
	}
	return secret
}

// CheckGuestImage finds virtual machines that need a guest image or tools of the platform that are not installed.
func CheckGuestImage(in Input) (errs field.ErrorList) {
	o := in.Options
	for i, node := range in.Experiment.Spec.Nodes {
		path := field.NewPath("spec", "nodes").Index(i)
		switch machine := settings(in, node.VM); {
		case node.Runtime != v1alpha1.RuntimeVM:
		case o.GuestImage == "" && !machine.OwnDisk():
			errs = append(errs, field.Required(path.Child("vm", "image"), "the platform has no guest image installed: name an image or a persistentVolumeClaim"))
		case o.GuestToolsImage == "" && node.VM.HasAgent():
			errs = append(errs, field.Invalid(path.Child("vm", "agent"), true, "the platform has no disk with its agent for guests installed: write agent: false, or install guest-tools"))
		}
	}
	return errs
}

// GuestFile is guest.json of a node's virtual machine.
func GuestFile(in Input, node topology.Node, waveforms map[string]v1alpha1.WaveformSpec) ([]byte, error) {
	text, err := guestconfig.Encode(Guest(in, node, MakeSites(in)[node.Name], waveforms))
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.Name, err)
	}
	return text, nil
}
