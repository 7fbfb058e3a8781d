package render

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/queue"
	"vignette.dev/vignette/operators/experiment/topology"
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

func every(topology.Node) bool { return true }

func TestVirtualMachinesAreAsTheirGoldenFiles(t *testing.T) {
	in := machines(t)
	vms := VMs(in, made, every)
	if len(vms) != 4 || len(Pods(in))+len(vms) != len(in.Topology.Nodes) {
		t.Fatalf("%d machines and %d pods of %d nodes", len(vms), len(Pods(in)), len(in.Topology.Nodes))
	}
	for _, vm := range vms {
		objectsAre(t, "vm-"+vm.Labels[v1alpha1.LabelNode], vm)
	}
}

func TestGuestsAreToldWhatPodsAreGiven(t *testing.T) {
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

func TestTheSecretOfAGuestGoesWithItsMachine(t *testing.T) {
	in := machines(t)
	vm := VMs(in, made, every)[1]
	vm.UID = "uid-of-vm"
	secret := GuestSecret(in, vm, VMNodes(in.Topology)[1], []byte("{}"), "token")
	if secret.Name != GuestSecretOf(vm) || secret.OwnerReferences[0].UID != vm.UID || len(secret.Data) != 3 || string(secret.Data[guestconfig.TokenFile]) != "token" {
		t.Errorf("made %+v", secret)
	}
	if again := VM(in, VMNodes(in.Topology)[1], made.Add(time.Second)); GuestSecretOf(again) == GuestSecretOf(vm) {
		t.Error("a machine that is made anew would start with the Secret of the one before")
	}
}

func TestAMemberSaysThatItIsAVirtualMachine(t *testing.T) {
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

// The figures are those of a launcher that KubeVirt 1.7 made of such a machine.
func TestALauncherTakesWhatKubeVirtAddsToItsGuest(t *testing.T) {
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

func TestAMachineTakesFromItsTemplateWhatItDoesNotSayItself(t *testing.T) {
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

func TestWhatAGuestCannotRunOrHoldIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   string
	}{
		"nothing":              {func(*v1alpha1.ExperimentSpec) {}, ""},
		"a broker for pods":    {func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Mosquitto, s.Apps[0].RabbitMQ = nil, &v1alpha1.RabbitMQ{} }, "spec.nodes[0].apps[0]: Invalid value: \"hub\": is a rabbitmq, which the platform has for pods only"},
		"security":             {func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Security = &v1alpha1.Security{TLS: true} }, "spec.nodes[0].apps[0]: Invalid value: \"hub\": has security"},
		"a client of security": {func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Security = &v1alpha1.Security{TLS: true} }, "spec.nodes[0].apps[1]: Invalid value: \"nor-units\": has security, or goes to a broker that has"},
		"an image":             {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Apps = append(s.Nodes[0].Apps, "tracker") }, "\"tracker\": brings an image"},
		"a variable of a Secret": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[5].Image, s.Apps[5].Env = "", []v1alpha1.EnvVar{{Name: "KEY", Secret: &v1alpha1.KeyReference{Name: "s", Key: "k"}}}
			s.Nodes[0].Apps = append(s.Nodes[0].Apps, "tracker")
		}, "takes variable KEY from a Secret"},
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

func TestWhatIsWrongWithAMachineIsNamed(t *testing.T) {
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
