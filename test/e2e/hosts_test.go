//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// halfLost delivers half of the frames at a SINR of 10 dB.
const halfLost = `<pcr><table pktsize="0"><row sinr="0" por="0"/><row sinr="20" por="100"/></table></pcr>`

// mesh is a scenario in which all platforms have the same pathloss to each other.
func mesh(platforms, decibels int) string {
	var b strings.Builder
	for i := 1; i <= platforms; i++ {
		fmt.Fprintf(&b, "0.0 nem:%d location gps 58.19,%.3f,20\n", i, 7.9+0.01*float64(i))
		for j := i + 1; j <= platforms; j++ {
			fmt.Fprintf(&b, "0.0 nem:%d pathloss nem:%d,%d\n", i, j, decibels)
		}
	}
	return b.String()
}

// spreadModels are the waveforms of the network over several hosts. Each loses some frames.
var spreadModels = map[string]func(*v1alpha1.Network){
	"link": func(n *v1alpha1.Network) {
		n.Link = &v1alpha1.LinkModel{Rate: new(v1alpha1.DataRate("1Mbit")), Delay: "60ms", Loss: "10%", Limit: 1000}
	},
	"rfpipe": func(n *v1alpha1.Network) {
		n.RFPipe = &v1alpha1.RFPipeModel{PHY: widebandPHY, Rate: "100kbit", PCR: halfLost, Interference: v1alpha1.InterferenceAll}
	},
	"tdma": func(n *v1alpha1.Network) {
		n.TDMA = &v1alpha1.TDMAModel{PHY: widebandPHY, Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms"}, Rate: "1Mbit", PCR: halfLost}
	},
}

// schedulable lists the hosts that accept nodes of experiments.
func schedulable(t *testing.T) (names []string) {
	t.Helper()
	var hosts corev1.NodeList
	if err := kube.List(t.Context(), &hosts); err != nil {
		t.Fatal(err)
	}
	for i := range hosts.Items {
		tainted := slices.ContainsFunc(hosts.Items[i].Spec.Taints, func(taint corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule })
		if !hosts.Items[i].Spec.Unschedulable && !tainted {
			names = append(names, hosts.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// severalHosts skips the test on a cluster with one host.
func severalHosts(t *testing.T) []string {
	t.Helper()
	hosts := schedulable(t)
	if len(hosts) < 2 {
		t.Skipf("the cluster has %d schedulable host, and networks over several hosts need two: run it on `hack/cluster up --nodes 3`", len(hosts))
	}
	return hosts
}

// seats limit how many nodes of a network a host gets, as each node takes one. They are an extended
// resource of one run, so that nothing else on the cluster is affected.
func seats(t *testing.T, run string, perHost map[string]int) corev1.ResourceName {
	t.Helper()
	name := corev1.ResourceName("e2e.vignette.dev/" + run)
	for host, count := range perHost {
		setSeats(t, host, name, fmt.Sprintf("%q", fmt.Sprint(count)))
		t.Cleanup(func() { setSeats(t, host, name, "null") })
	}
	return name
}

// setSeats writes both capacity and allocatable, which the kubelet would derive from it some seconds later.
func setSeats(t *testing.T, host string, name corev1.ResourceName, count string) {
	t.Helper()
	node := &corev1.Node{}
	node.Name = host
	patch := fmt.Appendf(nil, `{"status":{"capacity":{%q:%s},"allocatable":{%q:%s}}}`, name, count, name, count)
	if err := kube.Status().Patch(context.Background(), node, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Errorf("seats of host %s: %v", host, err)
	}
}

const meshedNodes = 4

// meshed is the experiment that is compared with itself: four nodes, each with a message every 257 ms, which covers
// all phases of a frame of 40 ms.
func meshed(namespace, name string, seat corev1.ResourceName, model func(*v1alpha1.Network)) *v1alpha1.Experiment {
	e := broadcasters(namespace, name, meshedNodes, "257ms", "bytes:200").Duration("40s").Replay("mesh").Model(model).Obj()
	e.Spec.Timeline[1].At = "38s"
	return seated(e, seat)
}

// seated makes each node of an experiment take a seat.
func seated(e *v1alpha1.Experiment, seat corev1.ResourceName) *v1alpha1.Experiment {
	e.Spec.Apps[0].Resources = oneSeat(seat)
	return e
}

// oneSeat is the resource of an app whose node's host needs a seat.
func oneSeat(seat corev1.ResourceName) *corev1.ResourceRequirements {
	one := corev1.ResourceList{seat: resource.MustParse("1")}
	return &corev1.ResourceRequirements{Requests: one, Limits: one}
}

// hostsOf returns a run's hosts: those with a radio log.
func hostsOf(t *testing.T, e *v1alpha1.Experiment) (hosts []string) {
	t.Helper()
	for _, file := range manifestOf(t, e.UID).Files {
		if host, found := strings.CutPrefix(file.Path, "radio/"); found {
			hosts = append(hosts, strings.TrimSuffix(host, ".jsonl"))
		}
	}
	return hosts
}

// clockErrorOf returns the error in seconds of a run's delays between hosts: the difference of their clocks, and its
// uncertainty.
func clockErrorOf(t *testing.T, e *v1alpha1.Experiment) (seconds float64) {
	t.Helper()
	for _, line := range radioLog[runapi.RadioPeer](t, e, "peer") {
		if line.UncertaintySeconds != nil {
			seconds = max(seconds, *line.UncertaintySeconds+math.Abs(*line.OffsetSeconds))
		}
	}
	return seconds
}

// TestNetworksOverSeveralHostsGiveTheResultsOfOne runs the same experiment on one host and distributed over all, at the same time.
func TestNetworksOverSeveralHostsGiveTheResultsOfOne(t *testing.T) {
	hosts := severalHosts(t)
	namespace := newNamespace(t)
	replay(t, namespace, "mesh", mesh(meshedNodes, 131)) // 25 dBm - 131 dB + 116 dBm = 10 dB
	for name, model := range spreadModels {
		t.Run(name, func(t *testing.T) {
			pinned := meshed(namespace, name+"-pinned", seats(t, name+"-pinned", map[string]int{hosts[len(hosts)-1]: meshedNodes}), model)
			spread := meshed(namespace, name+"-spread", evenSeats(t, name+"-spread", hosts), model)
			mustCreate(t, pinned)
			mustCreate(t, spread)
			// The random draws are the same as long as each node's frames come in the same order. An additional frame shifts them. Which
			// frames of the RF pipe overlap depends on when the apps could send, and on the latency between hosts.
			if difference := sameResults(t, pinned, spread); name != "rfpipe" && difference > 2 {
				t.Errorf("losses differ by %.2f points; want at most 2", difference)
			}
		})
	}
}

// evenSeats limits each host to its share of a network's nodes.
func evenSeats(t *testing.T, run string, hosts []string) corev1.ResourceName {
	t.Helper()
	perHost := map[string]int{}
	for _, host := range hosts {
		perHost[host] = max((meshedNodes+len(hosts)-1)/len(hosts), 1)
	}
	return seats(t, run, perHost)
}

// sameResults wants two runs to have the same results, but for chance, lateness and the error of clocks. It returns by how many points
// their losses differ.
func sameResults(t *testing.T, pinned, spread *v1alpha1.Experiment) (lossDifference float64) {
	t.Helper()
	one := waitFor(t, pinned, finishTimeout, v1alpha1.PhaseSucceeded)
	several := waitFor(t, spread, finishTimeout, v1alpha1.PhaseSucceeded)
	if on := hostsOf(t, one); len(on) != 1 {
		t.Fatalf("the pinned run was on hosts %v; want one", on)
	}
	on := hostsOf(t, several)
	if len(on) < 2 {
		t.Fatalf("the spread run was on host %v; want two or more", on)
	}
	resultsOfOne, resultsOfSeveral := resultsOf(t, one.UID), resultsOf(t, several.UID)
	want, got := group(t, resultsOfOne, "cross"), group(t, resultsOfSeveral, "cross")
	if want.DelaySeconds == nil || got.DelaySeconds == nil {
		t.Fatalf("delays %+v on one host and %+v on %d; want messages to arrive on both", want.DelaySeconds, got.DelaySeconds, len(on))
	}
	bound := clockErrorOf(t, several)
	t.Logf("on hosts %v: %s\non one: %s\nclocks are wrong by at most %.6f s", on, brief(resultsOfSeveral), brief(resultsOfOne), bound)
	sharesAgree(t, resultsOfOne, resultsOfSeveral)
	if off := math.Abs(got.DelaySeconds.Median - want.DelaySeconds.Median); off > bound+0.05*want.DelaySeconds.Median {
		t.Errorf("a median delay of %.4f s on %d hosts, %.4f s on one; want them within 5 %% and the error of clocks, %.6f s",
			got.DelaySeconds.Median, len(on), want.DelaySeconds.Median, bound)
	}
	return math.Abs(got.Messages.LostPercent - want.Messages.LostPercent)
}

// inHost runs a command in a host of the developer cluster.
func inHost(ctx context.Context, host string, command ...string) error {
	_, err := outputOf(ctx, host, command...)
	return err
}

// outputOf returns a command's output in a host of the developer cluster; an error has it too.
func outputOf(ctx context.Context, host string, command ...string) (string, error) {
	text, err := exec.CommandContext(ctx, "../../hack/cluster", append([]string{"enter", host}, command...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%v in host %s: %w: %s", command, host, err, text)
	}
	return string(text), nil
}

// cut drops packets between one host's radiod and those of other hosts, and returns a function that ends it.
func cut(t *testing.T, host string) (mend func()) {
	t.Helper()
	const table = "e2e_cut"
	mended := false
	mend = func() {
		if mended {
			return
		}
		mended = true
		if err := inHost(context.Background(), host, "nft", "delete", "table", "inet", table); err != nil {
			t.Error(err)
		}
	}
	if err := inHost(t.Context(), host, "nft", "add", "table", "inet", table); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mend)
	for _, hook := range []string{"input", "output"} {
		chain := "{ type filter hook " + hook + " priority -350 ; }"
		if err := inHost(t.Context(), host, "nft", "add", "chain", "inet", table, hook, chain); err != nil {
			t.Fatal(err)
		}
		if err := inHost(t.Context(), host, "nft", "add", "rule", "inet", table, hook, "udp", "dport", "9601", "drop"); err != nil {
			t.Fatal(err)
		}
	}
	return mend
}

// TestAHostThatIsCutOffFor5SecondsShowsInTheVerdict cuts off every network over several hosts, so no other test runs beside it.
func TestAHostThatIsCutOffFor5SecondsShowsInTheVerdict(t *testing.T) {
	if os.Getenv("CLUSTER") == "existing" {
		t.Skip("the hosts of CLUSTER=existing cannot be entered, and none of their ports be cut off")
	}
	hosts := severalHosts(t)
	namespace := newNamespace(t)
	replay(t, namespace, "mesh", mesh(meshedNodes, 100))
	e := meshed(namespace, "cut", evenSeats(t, "cut", hosts), func(n *v1alpha1.Network) {
		n.TDMA = &v1alpha1.TDMAModel{PHY: widebandPHY, Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms"}, Rate: "1Mbit"}
	})
	mustCreate(t, e)
	waitForT0(t, e, 10*time.Second)
	host := hostOfNode(t, e, "unit1")
	mend := cut(t, host)
	time.Sleep(5 * time.Second)
	mend()
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	if on := hostsOf(t, done); len(on) < 2 {
		t.Fatalf("the run was on host %v; want two or more", on)
	}
	results := resultsOf(t, done.UID)
	t.Logf("%s, gaps %+v", brief(results), results.Gaps)
	lost := slices.ContainsFunc(results.Gaps, func(gap runapi.Gap) bool {
		return gap.What == "hostUnreachable" && gap.FromSeconds != nil && gap.ToSeconds != nil && *gap.ToSeconds-*gap.FromSeconds > 4 && *gap.ToSeconds-*gap.FromSeconds < 15
	})
	if !lost {
		t.Errorf("no gap hostUnreachable of some 5 seconds")
	}
	if results.Verdict == nil || results.Verdict.KeptUp {
		t.Error("the emulation kept up, or has no verdict; want it late")
	}
}

// hostOfNode returns the Kubernetes node of an experiment's node.
func hostOfNode(t *testing.T, e *v1alpha1.Experiment, node string) string {
	t.Helper()
	var pods corev1.PodList
	of := client.MatchingLabels{v1alpha1.LabelExperiment: e.Name, v1alpha1.LabelNode: node}
	if err := kube.List(t.Context(), &pods, client.InNamespace(e.Namespace), of); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 || pods.Items[0].Spec.NodeName == "" {
		t.Fatalf("node %s of %s is pods %v; want one, on a host", node, e.Name, namesOf(&pods))
	}
	return pods.Items[0].Spec.NodeName
}
