package render

import (
	"strings"
	"testing"
	"time"

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
	golden.Check(t, "user-data.txt", UserData(nodes[1]))
	if UserData(nodes[0]) != "" || UserData(nodes[2]) != "" {
		t.Error("the platform's own guest, or one without agent, has user data of the platform")
	}
}

func TestTheSecretOfAGuestGoesWithItsMachine(t *testing.T) {
	in := machines(t)
	vm := VMs(in, made, every)[1]
	vm.UID = "uid-of-vm"
	secret := GuestSecret(vm, VMNodes(in.Topology)[1], []byte("{}"), "token")
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
			errs := CheckGuestImage(&in.Experiment.Spec, in.Options)
			if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), c.want) {
				t.Errorf("found %v; want %s", errs, c.want)
			}
		})
	}
}
