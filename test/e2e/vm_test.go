//go:build e2e && vm

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/gpsd/gpsdtest"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// bootTimeout lasts until every node of an experiment with machines is ready and T0 has come: an emulated guest takes most of a minute.
	bootTimeout = 6 * time.Minute
	// maxUncertainty is the largest accepted uncertainty of a guest's clock in seconds: an emulated guest on a loaded host answers late.
	maxUncertainty = 0.5
)

var (
	podNodes     = []string{"hq", "car"}
	machineNodes = []string{"tank", "truck"}
)

// mixed is an experiment of two pods and two virtual machines on one RF pipe. All publish 20 messages to a broker from T0+10 s
// on, and subscribe to everything.
func mixed(namespace, name, brokerNode string) *v1alpha1.Experiment {
	b := makeExperiment(namespace, name).
		Network("wan", "198.18.9.0/24", "").Model(func(n *v1alpha1.Network) {
		phy := widebandPHY
		phy.Pathloss = v1alpha1.PathlossFreeSpace
		n.RFPipe = &v1alpha1.RFPipeModel{PHY: phy, Rate: "1Mbit"}
	}).
		Broker("broker").Publisher("bft", "broker", "1s", 1).Payload("bytes:200").Subscriber("picture", "broker").
		Duration("45s").Start("5s", "bft").Stop("30s", "bft")
	b.Spec.Apps[1].Publisher.Lead = "5s"
	for i, node := range slices.Concat(podNodes, machineNodes) {
		b.Node(node, "wan", "bft", "picture")
		n := &b.Spec.Nodes[i]
		n.Position = &v1alpha1.Position{Latitude: "58.19", Longitude: v1alpha1.Degrees(fmt.Sprintf("7.9%02d", 5*i)), Altitude: "20m"}
		if node == brokerNode {
			n.Apps = append([]string{"broker"}, n.Apps...)
		}
		if slices.Contains(machineNodes, node) {
			n.Runtime = v1alpha1.RuntimeVM
		}
	}
	return b.Obj()
}

// needsKubeVirt fails a test with instructions if the cluster cannot run machines.
func needsKubeVirt(t *testing.T) {
	t.Helper()
	if err := kube.List(t.Context(), unstructuredList("kubevirt.io/v1", "VirtualMachineInstanceList")); err != nil {
		t.Fatalf("no KubeVirt in the cluster (%v): make test-vm, or hack/cluster up --with kubevirt", err)
	}
}

func newMachine(namespace, name string) *unstructured.Unstructured {
	vmi := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}}}}
	vmi.SetAPIVersion("kubevirt.io/v1")
	vmi.SetKind("VirtualMachineInstance")
	vmi.SetNamespace(namespace)
	vmi.SetName(name)
	return vmi
}

// launcherOf returns the pod in which a node's machine runs.
func launcherOf(t *testing.T, e *v1alpha1.Experiment, node string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelExperimentUID: string(e.UID), v1alpha1.LabelNode: node}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 || !strings.HasPrefix(pods.Items[0].Name, "virt-launcher-") {
		t.Fatalf("node %s has the pods %v; want one launcher", node, namesOf(&pods))
	}
	return &pods.Items[0]
}

// deleteAndExpectNoMachineLeft deletes an experiment, and wants nothing of it left in the cluster and on the host, including machines and
// their Secrets.
func deleteAndExpectNoMachineLeft(t *testing.T, e *v1alpha1.Experiment) {
	t.Helper()
	uids := append(podUIDs(t, e), e.UID)
	deleteAndExpectNothingLeft(t, e)
	eventually(t, goneTimeout, "machines and Secrets of "+e.Name+" to be gone", func() error {
		for _, list := range []client.ObjectList{&corev1.SecretList{}, unstructuredList("kubevirt.io/v1", "VirtualMachineInstanceList")} {
			if err := kube.List(t.Context(), list, client.InNamespace(e.Namespace)); err != nil {
				return err
			}
			if names := namesOf(list); len(names) > 0 {
				return errorf("%T left: %s", list, strings.Join(names, ", "))
			}
		}
		return nil
	})
	expectCleanHosts(t, uids)
}

// waitForBoot waits for T0, which comes when every agent is ready.
func waitForBoot(t *testing.T, e *v1alpha1.Experiment) *v1alpha1.Experiment {
	t.Helper()
	eventually(t, bootTimeout, "T0 of "+e.Name, func() error {
		now := get(t, e)
		if now.Status.Phase == v1alpha1.PhaseFailed {
			t.Fatalf("it failed: %s", now.Status.Message)
		}
		if now.Status.T0 == nil {
			return errorf("phase %q: %s", now.Status.Phase, now.Status.Message)
		}
		return nil
	})
	e = waitForT0(t, e, 0)
	t.Logf("T0 %.0f s after the experiment was made", e.Status.T0.Sub(e.CreationTimestamp.Time).Seconds())
	return e
}

// TestVMNodesAndPodsOnOneRadioExchangeEveryMessage has two machines and two pods on an RF pipe, in a namespace that enforces Pod Security
// restricted, with consoles and logins while it runs.
func TestVMNodesAndPodsOnOneRadioExchangeEveryMessage(t *testing.T) {
	needsKubeVirt(t)
	if _, err := buildVignette(); err != nil { // now, as it takes long, and the run does not wait
		t.Fatal(err)
	}
	e := mixed(newNamespace(t), "mixed", "hq")
	e.Spec.Duration = "90s"
	key, public := testtool.SSHKey(t)
	for i := range e.Spec.Nodes {
		if e.Spec.Nodes[i].Runtime == v1alpha1.RuntimeVM {
			e.Spec.Nodes[i].VM = &v1alpha1.VirtualMachine{SSHKeys: []string{public}}
		}
	}
	mustCreate(t, e)
	e = waitForBoot(t, e)
	t.Run("console", func(t *testing.T) { consoleAnswers(t, e) })
	t.Run("ssh", func(t *testing.T) { sshRunsCommands(t, e, key) })
	t.Run("shell", func(t *testing.T) {
		if _, errs, code := vignette(t, e.Namespace, "", "shell", "tank"); code == 0 || !strings.Contains(errs, "vignette ssh -n "+e.Namespace) {
			t.Errorf("shell on a machine: exit code %d, %q; want ssh named", code, errs)
		}
	})
	t.Run("Pod Security", func(t *testing.T) { launchersKeepToRestricted(t, e) })
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	wantAllBothWays(t, done, results)
	for _, node := range slices.Concat(podNodes, machineNodes) {
		wantFromTheFirst(t, done, node)
		wantStartAsPlanned(t, done, node)
	}
	wantClocksStated(t, done, results)
	if out := mustVignette(t, e.Namespace, "logs", "-e", "mixed", "tank/bft", "--stream", "agent"); !strings.Contains(out, `"start`) {
		t.Errorf("the agent's log of an app in a machine:\n%s", out)
	}
	deleteAndExpectNoMachineLeft(t, done)
}

// wantAllBothWays wants every message at everybody, between machines and pods in either direction.
func wantAllBothWays(t *testing.T, e *v1alpha1.Experiment, results runapi.Results) {
	t.Helper()
	m := results.Messages
	if m.Sent < 4*18 || m.Expected != 4*m.Sent || m.Received != m.Expected || m.Lost != 0 || m.Duplicates != 0 {
		t.Errorf("messages: %+v; want 20 of each of 4 publishers, and every one with each of 4 subscribers", m)
	}
	kind := func(name string) string {
		node, _, _ := strings.Cut(name, "/")
		if slices.Contains(machineNodes, node) {
			return "machine"
		}
		return "pod"
	}
	ways := map[string]int{}
	for _, d := range deliveriesOf(t, e) {
		if !d.local && !d.lost {
			ways[kind(d.publisher)+" to "+kind(d.subscriber)]++
		}
	}
	t.Logf("messages delivered: %v; delays %+v", ways, results.DelaySeconds)
	for _, way := range []string{"pod to pod", "pod to machine", "machine to pod", "machine to machine"} {
		if ways[way] < 36 {
			t.Errorf("%s: %d deliveries; want 40 at least, less a period for each publisher", way, ways[way])
		}
	}
}

// wantStartAsPlanned wants the first message of a publisher within a period of T0+10 s, by its own clock.
func wantStartAsPlanned(t *testing.T, e *v1alpha1.Experiment, node string) {
	t.Helper()
	_, triggered := onlyPublisher(t, messageLog(t, e, "logs/"+node+"/bft/messages-1.jsonl", messagelog.Triggered))
	first := triggered[1].Sub(e.Status.T0.Time)
	t.Logf("%s began %.3f s after T0", node, first.Seconds())
	if first < 10*time.Second-50*time.Millisecond || first > 12*time.Second {
		t.Errorf("%s began %s after T0; want 10 s, and a random part of the period of 1 s", node, first)
	}
}

// wantClocksStated wants the clock error of each machine, and of no pod.
func wantClocksStated(t *testing.T, e *v1alpha1.Experiment, results runapi.Results) {
	t.Helper()
	for _, agent := range stateOf(t, e.UID).Agents {
		machine := slices.Contains(machineNodes, agent.Node)
		if (agent.Clock != nil) != machine {
			t.Errorf("clock of %s/%s: %+v; want one of machines only", agent.Node, agent.App, agent.Clock)
			continue
		}
		if c := agent.Clock; machine {
			t.Logf("clock of %s/%s: %+v", agent.Node, agent.App, *c)
			if c.Measurements == 0 || c.WorstUncertaintySeconds <= 0 || c.WorstUncertaintySeconds > maxUncertainty || c.WorstOffsetSeconds > maxUncertainty {
				t.Errorf("clock of %s/%s: %+v; want it measured, to %v s", agent.Node, agent.App, *c, maxUncertainty)
			}
		}
	}
	var stated []string
	for _, c := range results.Clocks {
		stated = append(stated, c.Node)
		if c.WorstUncertaintySeconds <= 0 || c.WorstUncertaintySeconds > maxUncertainty {
			t.Errorf("clock in the results: %+v; want its uncertainty", c)
		}
	}
	if slices.Sort(stated); !slices.Equal(stated, machineNodes) {
		t.Errorf("the results state the clocks of %v; want those of %v", stated, machineNodes)
	}
}

// consoleAnswers types a calculation at a machine's serial console.
func consoleAnswers(t *testing.T, e *v1alpha1.Experiment) {
	console := start(t, e.Namespace, "\recho $((40 + 2))nd floor\r", "console", "tank")
	eventually(t, commandTimeout, "the console to answer", func() error {
		if out := console.out.String(); !strings.Contains(out, "42nd floor") {
			return errorf("it says %q, %q", out, console.err.String())
		}
		return nil
	})
	if code := console.interrupt(t); code != 130 {
		t.Errorf("exit code %d after Ctrl-C; want 130", code)
	}
	_, errs, code := vignette(t, e.Namespace, "", "console", "hq")
	if code == 0 || !strings.Contains(errs, "vignette shell -n "+e.Namespace+" -e mixed hq, or name a virtual machine: tank, truck") {
		t.Errorf("console of a pod: exit code %d, %q", code, errs)
	}
}

// sshRunsCommands runs commands in a machine with a key of its spec, and expects refusal with another.
func sshRunsCommands(t *testing.T, e *v1alpha1.Experiment, key string) {
	out, errs, code := vignette(t, e.Namespace, "", "ssh", "-i", key, "truck", "--", "hostname; ip -o -4 address show wan; exit 3")
	if code != 3 || !strings.HasPrefix(out, "truck\n") || !strings.Contains(out, "198.18.9.4/24") {
		t.Errorf("exit code %d, output %q, %q; want the node's name and its address on wan", code, out, errs)
	}
	var hq corev1.Pod
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: e.Namespace, Name: e.Name + "-hq"}, &hq); err != nil {
		t.Fatal(err)
	}
	// Root of a guest may delete the guest's rules, and still reaches only the radio.
	around := fmt.Sprintf("ping -c 1 -W 5 198.18.9.1 >/dev/null && echo by radio; nft flush ruleset; ping -c 1 -W 2 %s >/dev/null && echo past the radio; true", hq.Status.PodIP)
	if out, errs, _ := vignette(t, e.Namespace, "", "ssh", "-i", key, "truck", "--", around); !strings.Contains(out, "by radio") || strings.Contains(out, "past the radio") {
		t.Errorf("reached from a guest without rules: %q, %q; want other nodes by radio only", out, errs)
	}
	other, _ := testtool.SSHKey(t)
	if _, errs, code := vignette(t, e.Namespace, "", "ssh", "-i", other, "truck", "--", "true"); code != 255 || !strings.Contains(errs, "denied") {
		t.Errorf("with another key: exit code %d, %q; want it refused", code, errs)
	}
}

// launchersKeepToRestricted checks the documentation's claims on Pod Security: with KubeVirt's seccompConfiguration set, as here, launchers
// satisfy restricted; without it they satisfy only baseline.
func launchersKeepToRestricted(t *testing.T, e *v1alpha1.Experiment) {
	launcher := launcherOf(t, e, "tank")
	without := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "without-seccomp"}, Spec: *launcher.Spec.DeepCopy()}
	without.Spec.NodeName, without.Spec.SecurityContext.SeccompProfile = "", nil
	for _, containers := range [][]corev1.Container{without.Spec.InitContainers, without.Spec.Containers} {
		for _, container := range containers {
			if container.SecurityContext != nil {
				container.SecurityContext.SeccompProfile = nil
			}
		}
	}
	baseline := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}}}
	mustCreate(t, baseline)
	t.Cleanup(func() { _ = kube.Delete(context.Background(), baseline) })
	err := kube.Create(t.Context(), without.DeepCopy(), client.DryRunAll)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "seccompProfile") {
		t.Errorf("a launcher without a seccomp profile in a namespace that enforces restricted: %v; want it refused for that", err)
	}
	without.Namespace = baseline.Name
	eventually(t, 30*time.Second, "a launcher without a seccomp profile to be accepted where baseline is enforced", func() error {
		return kube.Create(t.Context(), without.DeepCopy(), client.DryRunAll) // at first the namespace has no service account yet
	})
}

// TestAMachineReportsWhereItsPlatformIs has a pod and a machine on platforms that move. The machine's publisher reports the position, an app of its
// own reads the file and gpsd's port, and so does who logs in.
func TestAMachineReportsWhereItsPlatformIs(t *testing.T) {
	needsKubeVirt(t)
	if _, err := buildVignette(); err != nil { // now, as it takes long, and the run does not wait
		t.Fatal(err)
	}
	e, movement := scenarioWithMovement(t, "positions/experiment.yaml")
	e.Namespace = newNamespace(t)
	createIn(t, e.Namespace, movement)
	key := positionsOnAMachine(t, e)
	mustCreate(t, e)
	e = waitForBoot(t, e)
	waitForT0(t, e, 5*time.Second)
	const poll = `exec 4<>/dev/tcp/127.0.0.1/2947; printf '?POLL;\n' >&4; while read -r -t 10 -u 4 line; do case $line in *'"POLL"'*) echo "$line"; break;; esac; done`
	if out, errs, code := vignette(t, e.Namespace, "", "ssh", "-i", key, "tank", "--", poll); code != 0 || !strings.Contains(out, `"device":"vignette:platform-1"`) || !strings.Contains(out, `"lat":`) {
		t.Errorf("gpsd's port by ssh: exit code %d, %q, %q; want a position of platform 1", code, out, errs)
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	known := truePositions(t, done, "tank")
	if len(known) < 10 {
		t.Errorf("the machine has been at %d places; want 10 at least, as its platform moves", len(known))
	}
	checkReports(t, "tank/bft", archivedText(t, done, "logs/tank/bft/messages-1.jsonl"), known, 6)
	for _, tpv := range gpsdtest.Reports(t, archivedText(t, done, "logs/tank/tracker/stdout-1.log")) {
		at, err := time.Parse(time.RFC3339, tpv.Time)
		if err != nil {
			t.Fatal(err)
		}
		// The time has milliseconds, so that the platform may have moved once since then.
		reported := [3]float64{*tpv.LatitudeDegrees, *tpv.LongitudeDegrees}
		if !near(reported, placeAt(known, at)) && !near(reported, placeAt(known, at.Add(time.Millisecond))) {
			t.Errorf("tank/tracker was told %v at %s; want %v", reported, tpv.Time, placeAt(known, at))
		}
	}
	deleteAndExpectNoMachineLeft(t, done)
}

// positionsOnAMachine makes the experiment of scenarios/positions one of a pod and a machine on its platforms, and returns the key for SSH.
func positionsOnAMachine(t *testing.T, e *v1alpha1.Experiment) (key string) {
	key, public := testtool.SSHKey(t)
	spec := &e.Spec
	spec.Duration = "60s" // a login to an emulated machine takes long
	spec.Apps = slices.DeleteFunc(spec.Apps, func(a v1alpha1.App) bool { return a.Image != "" })
	spec.Apps = append(spec.Apps, v1alpha1.App{Name: "tracker", Instances: 1, Command: []string{"/bin/bash", "-c", gpsdtest.Script}})
	car, tank, hq := spec.Nodes[0], spec.Nodes[0], spec.Nodes[1]
	tank.Name, tank.Count, tank.Platforms, tank.Platform = "tank", nil, "", "1"
	tank.Runtime, tank.VM, tank.Apps = v1alpha1.RuntimeVM, &v1alpha1.VirtualMachine{SSHKeys: []string{public}}, []string{"bft", "tracker"}
	car.Name, car.Count, car.Platforms, car.Platform, car.Apps = "car", nil, "", "2", []string{"bft"}
	hq.Apps = []string{"broker", "picture"}
	spec.Nodes = []v1alpha1.Node{tank, car, hq}
	return key
}

// placeAt returns the last position that was known by a time, else the first one.
func placeAt(known []runapi.NodePosition, at time.Time) [3]float64 {
	i := 0
	for i+1 < len(known) && known[i+1].TimeNanoseconds <= at.UnixNano() {
		i++
	}
	return known[i].Position
}

// TestAVMThatIsKilledMidRunIsANamedGap kills one of two machines while messages pass the broker in the other one.
func TestAVMThatIsKilledMidRunIsANamedGap(t *testing.T) {
	needsKubeVirt(t)
	for name, kill := range map[string]func(*testing.T, *v1alpha1.Experiment){
		"its QEMU is killed": func(t *testing.T, e *v1alpha1.Experiment) {
			execIn(t, e.Namespace, launcherOf(t, e, "truck").Name, "compute", "/bin/sh", "-c",
				`for p in /proc/[0-9]*; do read -r name < $p/comm; case $name in qemu-*) kill -9 ${p#/proc/};; esac; done; true`)
		},
		"its object is deleted": func(t *testing.T, e *v1alpha1.Experiment) {
			if err := kube.Delete(t.Context(), newMachine(e.Namespace, e.Name+"-truck"), client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // two processors and 8 GiB boot at most four machines
			e := mixed(newNamespace(t), "killed", "tank")
			mustCreate(t, e)
			waitForBoot(t, e)
			waitForT0(t, e, 20*time.Second)
			kill(t, e)
			expectGapNaming(t, e, "truck")
			done := get(t, e)
			results := resultsOf(t, done.UID)
			t.Logf("gaps: %+v", results.Gaps)
			for _, p := range results.Publishers {
				if p.Node != "truck" && (p.Messages.Sent < 18 || p.Messages.Received < 3*p.Messages.Sent) {
					t.Errorf("publisher %s: %+v; want all it sent with the three nodes that lived on", p.Name, p.Messages)
				}
			}
			deleteAndExpectNoMachineLeft(t, done)
		})
	}
}

func TestBadVMSpecsAreRefusedByName(t *testing.T) {
	needsKubeVirt(t)
	namespace := newNamespace(t)
	tank := func(vm v1alpha1.VirtualMachine) func(*v1alpha1.Experiment) {
		return func(e *v1alpha1.Experiment) { e.Spec.Nodes[2].VM = &vm }
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Experiment)
		want   string
	}{
		"settings-on-a-pod": {func(e *v1alpha1.Experiment) { e.Spec.Nodes[0].VM = &v1alpha1.VirtualMachine{Cores: 2} }, "vm is for nodes with runtime vm"},
		"unknown-runtime":   {func(e *v1alpha1.Experiment) { e.Spec.Nodes[2].Runtime = "jail" }, "runtime"},
		"too-little-memory": {tank(v1alpha1.VirtualMachine{Memory: "32Mi"}), "must be a size from 64Mi"},
		"two-disks":         {tank(v1alpha1.VirtualMachine{Image: "a", PersistentVolumeClaim: "b"}), "begins from one disk"},
		"unknown-bus":       {tank(v1alpha1.VirtualMachine{DiskBus: "floppy"}), "diskBus"},
		"apps-and-no-agent": {tank(v1alpha1.VirtualMachine{Agent: new(false)}), "runs no apps"},
		"no-cloud-init":     {tank(v1alpha1.VirtualMachine{CloudInit: &v1alpha1.CloudInit{UserData: "#cloud-config"}}), "neither cloud-init nor Ignition"},
		"no-such-claim":     {tank(v1alpha1.VirtualMachine{PersistentVolumeClaim: "no-such-disk"}), "no-such-disk"},
		"containers-image": {func(e *v1alpha1.Experiment) {
			e.Spec.Apps = append(e.Spec.Apps, v1alpha1.App{Name: "own", Image: "localhost/own:1", Command: []string{"/own"}})
			e.Spec.Nodes[2].Apps = append(e.Spec.Nodes[2].Apps, "own")
		}, "own"},
	} {
		t.Run(name, func(t *testing.T) {
			e := mixed(namespace, name, "hq")
			c.change(e)
			if err := kube.Create(t.Context(), e); err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("refused with %v; want %q", err, c.want)
				}
				return
			}
			t.Cleanup(func() { _ = kube.Delete(context.Background(), e) })
			wantNotAccepted(t, e, c.want)
		})
	}
}

// TestConsolesAndLoginsTakeTheRoleOfAnExperimenter calls KubeVirt's API as users with the roles.
func TestConsolesAndLoginsTakeTheRoleOfAnExperimenter(t *testing.T) {
	needsKubeVirt(t)
	for role, opens := range map[string]bool{"vignette-viewer": false, "vignette-experimenter": true} {
		who := newTenant(t, role)
		for _, stream := range []string{"console", "portforward/22/tcp"} {
			path := "/apis/subresources.kubevirt.io/v1/namespaces/" + who.namespace + "/virtualmachineinstances/none/" + stream
			if _, err := who.read(t, path); err == nil || apierrors.IsForbidden(err) == opens {
				t.Errorf("%s opens %s of a machine that is not there: %v; want it forbidden: %v", role, stream, err, !opens)
			}
		}
		if err := who.List(t.Context(), unstructuredList("kubevirt.io/v1", "VirtualMachineInstanceList"), client.InNamespace(who.namespace)); err != nil {
			t.Errorf("%s lists machines: %v; want them seen", role, err)
		}
		lastsLonger := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"terminationGracePeriodSeconds":1}}`))
		for what, err := range map[string]error{
			"makes":   who.Create(t.Context(), newMachine(who.namespace, "mine")),
			"changes": who.Patch(t.Context(), newMachine(who.namespace, "none"), lastsLonger),
			"deletes": who.Delete(t.Context(), newMachine(who.namespace, "none")),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s %s a machine: %v; want it forbidden", role, what, err)
			}
		}
	}
}
