package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

var made = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// machines is the quickstart with each of its first nodes a virtual machine of another kind.
func machines(t *testing.T) Input {
	t.Helper()
	in := quickstart(t)
	in.Options.GuestImage, in.Options.GuestToolsImage = "r/guest:1", "r/guest-tools:1"
	nodes := in.Experiment.Spec.Nodes
	for i, vm := range []*v1alpha1.VirtualMachine{
		nil,
		{Image: "team/router:7", Cores: 2, Memory: "1Gi", SSHKeys: []string{"ssh-ed25519 AAAA somebody"}, CloudInit: &v1alpha1.CloudInit{UserData: "#cloud-config\npackages: [frr]\n"}},
		{PersistentVolumeClaim: "firmware", DiskBus: v1alpha1.DiskBusSATA, Agent: ptr.To(false)},
	} {
		nodes[i].Runtime, nodes[i].VM = v1alpha1.RuntimeVM, vm
	}
	nodes[2].Apps = nil
	var errs error
	expanded, found := topology.Expand(&in.Experiment.Spec)
	if errs = found.ToAggregate(); errs != nil {
		t.Fatal(errs)
	}
	in.Topology = expanded
	return in
}

func anyNode(topology.Node) bool { return true }

func TestVirtualMachinesMatchTheirGoldenFiles(t *testing.T) {
	in := machines(t)
	vms := VMs(in, made, anyNode)
	if len(vms) != 4 || len(Pods(in))+len(vms) != len(in.Topology.Nodes) {
		t.Fatalf("%d machines and %d pods of %d nodes", len(vms), len(Pods(in)), len(in.Topology.Nodes))
	}
	for _, vm := range vms {
		checkGolden(t, "vm-"+vm.Labels[v1alpha1.LabelNode], vm)
	}
}

func TestGuestsGetTheConfigurationOfPods(t *testing.T) {
	in := machines(t)
	for _, node := range VMNodes(in.Topology) {
		text, err := GuestFile(in, node, waveforms(in))
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "guest-"+node.Name+".json", string(text)+"\n")
	}
}

func TestAGuestWithCloudInitHasTheUsersDataAndThePlatformsAgent(t *testing.T) {
	in := machines(t)
	nodes := VMNodes(in.Topology)
	golden.Check(t, "user-data.txt", UserData(in, nodes[1]))
	if UserData(in, nodes[0]) != "" || UserData(in, nodes[2]) != "" {
		t.Error("the platform's own guest, or one without agent, has user data of the platform")
	}
}

// onlyIgnition is the quickstart's first machine with only an Ignition configuration.
func onlyIgnition(t *testing.T, ignition string, change func(*v1alpha1.VirtualMachine)) (Input, topology.Node) {
	t.Helper()
	in := machines(t)
	vm := &v1alpha1.VirtualMachine{Image: "team/coreos:7", Ignition: ignition}
	if change != nil {
		change(vm)
	}
	in.Experiment.Spec.Nodes[0].VM = vm
	in.Topology.Nodes[0].VM = vm
	return in, in.Topology.Nodes[0]
}

func TestIgnitionMergesTheAgentIntoTheUsersConfiguration(t *testing.T) {
	const given = `{"ignition": {"version": "3.3.0", "config": {"merge": [{"source": "https://team/base.ign"}]}}, "storage": {"files": [{"path": "/etc/x", "mode": 420}]}}`
	in, node := onlyIgnition(t, given, func(vm *v1alpha1.VirtualMachine) { vm.SSHKeys = []string{"ssh-ed25519 AAAA somebody"} })
	golden.Check(t, "ignition.json", VM(in, node, made).Annotations[ignitionAnnotation]+"\n")
	golden.Check(t, "ignition-agent.json", string(agentIgnition())+"\n")
	if errs := CheckVMs(in); len(errs) > 0 {
		t.Error(errs)
	}
	if guest := Guest(in, node, nil, nil); len(guest.SSHKeys) != 1 {
		t.Errorf("the agent is given the keys %v; want the one that Ignition's guests have from nobody else", guest.SSHKeys)
	}
	in, node = onlyIgnition(t, given, func(vm *v1alpha1.VirtualMachine) { vm.Agent = ptr.To(false) })
	if got := VM(in, node, made).Annotations[ignitionAnnotation]; got != given {
		t.Errorf("without agent Ignition is given %s; want what the user wrote", got)
	}
}

func TestErrorsOfAGuestsProvisioningAreNamed(t *testing.T) {
	noAgent := func(vm *v1alpha1.VirtualMachine) {
		vm.Agent, vm.SSHKeys = ptr.To(false), []string{"ssh-ed25519 AAAA somebody"}
	}
	for name, c := range map[string]struct {
		ignition string
		change   func(*v1alpha1.VirtualMachine)
		want     string
	}{
		"no JSON":             {"variant: fcos", nil, "spec.nodes[0].vm.ignition: Invalid value: is not a JSON object"},
		"an older Ignition":   {`{"ignition": {"version": "2.3.0"}}`, nil, `has ignition.version "2.3.0": the platform's agent is added to 3.x; write agent: false`},
		"no version":          {`{"storage": {}}`, nil, `has ignition.version ""`},
		"merge is no list":    {`{"ignition": {"version": "3.0.0", "config": {"merge": {}}}}`, nil, "a list in ignition.config.merge"},
		"keys for Ignition":   {`{"ignition": {"version": "2.3.0"}}`, noAgent, "spec.nodes[0].vm.sshKeys: Invalid value: 1: without agent only cloud-init"},
		"no JSON and no help": {"variant: fcos", noAgent, "spec.nodes[0].vm.ignition: Invalid value: is not JSON"},
		"keys and a Secret": {"", func(vm *v1alpha1.VirtualMachine) {
			noAgent(vm)
			vm.CloudInit = &v1alpha1.CloudInit{Secret: "theirs"}
		}, "spec.nodes[0].vm.sshKeys"},
		"keys for the platform's guest": {"", func(vm *v1alpha1.VirtualMachine) {
			noAgent(vm)
			vm.Image = ""
		}, "spec.nodes[0].vm.sshKeys"},
		"keys by cloud-init": {"", noAgent, ""},
		"user data without a first line": {"", func(vm *v1alpha1.VirtualMachine) {
			vm.CloudInit = &v1alpha1.CloudInit{UserData: "packages: [babeld]\n"}
		}, `spec.nodes[0].vm.cloudInit.userData: Invalid value: "packages: [babeld]": is its first line, by which cloud-init would leave it out: want one such as #cloud-config`},
		"an image that no host can pull": {"", func(vm *v1alpha1.VirtualMachine) { vm.Image = "team/Router:7" }, `spec.nodes[0].vm.image: Invalid value: "team/Router:7": is no name`},
		"several parts in one": {"", func(vm *v1alpha1.VirtualMachine) {
			vm.CloudInit = &v1alpha1.CloudInit{UserData: "MIME-Version: 1.0\n"}
		}, "spec.nodes[0].vm.cloudInit.userData"},
		"user data of a guest without the agent": {"", func(vm *v1alpha1.VirtualMachine) {
			vm.Agent, vm.CloudInit = ptr.To(false), &v1alpha1.CloudInit{UserData: "#ps1_sysnative\n"}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := onlyIgnition(t, c.ignition, c.change)
			found := CheckVMs(in).ToAggregate()
			if (found == nil) != (c.want == "") || found != nil && !strings.Contains(found.Error(), c.want) {
				t.Errorf("found %v; want %s", found, c.want)
			}
		})
	}
}

func TestTheNetworkDataIsThePlatformsAlsoWithTheUsersSecret(t *testing.T) {
	in, node := onlyIgnition(t, "", func(vm *v1alpha1.VirtualMachine) { vm.CloudInit = &v1alpha1.CloudInit{Secret: "theirs"} })
	vm := VM(in, node, made)
	volume := vm.Spec.Volumes[len(vm.Spec.Volumes)-1].CloudInitNoCloud
	if volume.UserDataSecretRef.Name != "theirs" || volume.NetworkDataSecretRef.Name != GuestSecretOf(vm) {
		t.Errorf("cloud-init has %+v", volume)
	}
	secret := GuestSecret(in, vm, node, []byte("{}"), "token")
	if secret.Data[UserDataKey] != nil {
		t.Errorf("the Secret has user data: %s", secret.Data[UserDataKey])
	}
	golden.Check(t, "network-data.yaml", string(secret.Data[NetworkDataKey]))
}

func TestEveryNameOfANetworkIsAnInterfaceBesideTheManagementOfAGuest(t *testing.T) {
	for _, name := range []string{"management", "on", "off", "yes", "no", "true", "false", "null", "y", "n"} {
		in, node := onlyIgnition(t, "", func(vm *v1alpha1.VirtualMachine) { vm.Agent = ptr.To(false) })
		in.Experiment.Spec.Networks[0].Name = name
		node.Attachments = []topology.Attachment{{Network: name, MAC: "02:02:00:00:00:01", Address: netip.MustParsePrefix("10.0.0.1/24")}}
		var data struct {
			Ethernets map[string]struct {
				Match   struct{ MACAddress string }
				DHCP4   bool
				SetName any `json:"set-name"`
			}
		}
		text := networkData(in, node)
		read, err := yaml.YAMLToJSONStrict([]byte(text)) // YAML 1.1, as cloud-init's
		if err := errors.Join(err, json.Unmarshal(read, &data)); err != nil {
			t.Errorf("%s: %v in\n%s", name, err, text)
			continue
		}
		radio, management := data.Ethernets[name], data.Ethernets[managementID]
		if len(data.Ethernets) != 2 || !management.DHCP4 || management.Match.MACAddress != managementMAC || radio.Match.MACAddress != node.Attachments[0].MAC || radio.SetName != name {
			t.Errorf("network %s is read as %+v of\n%s", name, data.Ethernets, text)
		}
	}
}

func TestTheSecretOfAGuestIsDeletedWithItsMachine(t *testing.T) {
	in := machines(t)
	vm := VMs(in, made, anyNode)[1]
	vm.UID = "uid-of-vm"
	secret := GuestSecret(in, vm, VMNodes(in.Topology)[1], []byte("{}"), "token")
	if secret.Name != GuestSecretOf(vm) || secret.OwnerReferences[0].UID != vm.UID || len(secret.Data) != 4 || string(secret.Data[guestconfig.TokenFile]) != "token" {
		t.Errorf("made %+v", secret)
	}
	if again := VM(in, VMNodes(in.Topology)[1], made.Add(time.Second)); GuestSecretOf(again) == GuestSecretOf(vm) {
		t.Error("a new machine would start with the Secret of the one before")
	}
}

func TestAMemberHasTheRuntimeOfAVirtualMachine(t *testing.T) {
	in := machines(t)
	for _, network := range RadioNetworks(in, waveforms(in), uids(in)) {
		for _, member := range network.Spec.Members {
			node, _ := in.Topology.Node(member.Node)
			if node.IsVM() != (member.Runtime == v1alpha1.RuntimeVM) {
				t.Errorf("member %s has runtime %q", member.Node, member.Runtime)
			}
		}
	}
}

// The figures are from a launcher of KubeVirt 1.7 for such a machine.
func TestALaunchersFootprintHasKubeVirtsOverhead(t *testing.T) {
	in := machines(t)
	for _, pod := range Footprints(in) {
		if pod.Labels[v1alpha1.LabelNode] != in.Topology.Nodes[1].Name {
			continue
		}
		requests := queue.Requests(&pod.Spec)
		memory := int64(1<<30 + (228+2*8+2)<<20 + 35e6 + 2e6)
		if requests.Memory().Value() != memory || requests.Cpu().MilliValue() != 2*100+5+2 {
			t.Errorf("requests %s and %s; want %d", requests.Memory(), requests.Cpu(), memory)
		}
		return
	}
	t.Error("the machine has no footprint")
}

func TestAMachineHasDefaultsFromItsTemplate(t *testing.T) {
	in := machines(t)
	in.Templates = map[string]v1alpha1.VirtualMachine{"router": {Image: "team/router:8", Cores: 4, Memory: "2Gi", SSHKeys: []string{"ssh-ed25519 BBBB team"}}}
	in.Topology.Nodes[0].VM = &v1alpha1.VirtualMachine{Template: "router", Cores: 2}
	vm := VM(in, in.Topology.Nodes[0], made)
	domain := vm.Spec.Domain
	if vm.Spec.Volumes[0].ContainerDisk.Image != "team/router:8" || domain.CPU.Cores != 2 || domain.Memory.Guest.String() != "2Gi" {
		t.Errorf("made of %v with %d cores and %s", vm.Spec.Volumes[0], domain.CPU.Cores, domain.Memory.Guest)
	}
	in.Experiment.Spec.Nodes[0].VM = in.Topology.Nodes[0].VM
	if recorded := Plan(in, waveforms(in), uids(in)).Spec.Nodes[0].VM; recorded.Template != "" || recorded.Image != "team/router:8" || recorded.Cores != 2 {
		t.Errorf("recorded %+v", recorded)
	}
	in.Topology.Nodes[0].VM.PersistentVolumeClaim = "disk"
	if vm := VM(in, in.Topology.Nodes[0], made); vm.Spec.Volumes[0].Ephemeral == nil {
		t.Errorf("the node's own disk is %v", vm.Spec.Volumes[0])
	}
}

func TestWhatAGuestDoesNotSupportIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   string
	}{
		"nothing":           {func(*v1alpha1.ExperimentSpec) {}, ""},
		"a broker for pods": {func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Mosquitto, s.Apps[0].RabbitMQ = nil, &v1alpha1.RabbitMQ{} }, "spec.nodes[0].apps[0]: Invalid value: \"hub\": is a rabbitmq, which the platform has only for pods"},
		"an image":          {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Apps = append(s.Nodes[0].Apps, "tracker") }, "\"tracker\": brings an image"},
		"too many Secrets": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[5].Image, s.Apps[5].Env = "", nil
			for i := range 17 {
				s.Apps[5].Env = append(s.Apps[5].Env, v1alpha1.EnvVar{Name: fmt.Sprint("V", i), Secret: &v1alpha1.KeyReference{Name: fmt.Sprint("s", i), Key: "k"}})
			}
			s.Nodes[0].Apps = append(s.Nodes[0].Apps, "tracker")
		}, "spec.nodes[0].apps: Invalid value: 17: is how many Secrets"},
		"EMANE":                {func(s *v1alpha1.ExperimentSpec) { s.Networks[0].Engine = v1alpha1.EngineEMANE }, "spec.nodes[0].networks[0]: Invalid value: \"wan\": has engine emane"},
		"too much memory":      {func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Resources = requesting("1", "600Mi") }, "spec.nodes[0].vm.memory: Invalid value: \"512Mi\": hub request, with 128Mi for the guest itself, 728Mi"},
		"too many processors":  {func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Resources = requesting("1500m", "1Mi") }, "spec.nodes[0].vm.cores: Invalid value: 1: hub request 1500m processors"},
		"too little for Linux": {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].VM = &v1alpha1.VirtualMachine{Memory: "128Mi"} }, "spec.nodes[0].vm.memory: Invalid value: \"128Mi\": the platform's own guest needs 256Mi"},
		"too many files": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[5].Image, s.Apps[5].Files = "", []v1alpha1.AppFile{{Path: "/etc/big", Content: ptr.To(strings.Repeat("x", 800<<10))}}
			s.Nodes[0].Apps = append(s.Nodes[0].Apps, "tracker")
		}, "want at most 1008 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			in := machines(t)
			c.change(&in.Experiment.Spec)
			expanded, errs := topology.Expand(&in.Experiment.Spec)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			in.Topology = expanded
			found := CheckVMs(in)
			if (len(found) == 0) != (c.want == "") || len(found) > 0 && !strings.Contains(found.ToAggregate().Error(), c.want) {
				t.Errorf("found %v; want %s", found, c.want)
			}
		})
	}
}

func requesting(cpu, memory string) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

func TestErrorsOfAMachineAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"no guest of the platform's": {func(in *Input) { in.Options.GuestImage = "" }, "spec.nodes[0].vm.image: Required"},
		"no tools":                   {func(in *Input) { in.Options.GuestToolsImage = "" }, "spec.nodes[0].vm.agent"},
	} {
		t.Run(name, func(t *testing.T) {
			in := machines(t)
			c.change(&in)
			errs := CheckGuestImage(in)
			if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), c.want) {
				t.Errorf("found %v; want %s", errs, c.want)
			}
		})
	}
}
