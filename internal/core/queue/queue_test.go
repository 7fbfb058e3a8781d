package queue

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func pods(count int, cpu, memory string) (made []*corev1.Pod) {
	for range count {
		made = append(made, &corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resources("10m", "32Mi")}}},
			Containers:     []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resources(cpu, memory)}}},
		}})
	}
	return made
}

func quota(hard, used corev1.ResourceList) corev1.ResourceQuota {
	return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

func countPods(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(n)}
}

// node is a ready node of a cluster.
func node(cpu, memory, count string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Allocatable = resources(cpu, memory)
	n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse(count)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// testQueue builds a snapshot.
type testQueue struct {
	snapshot Snapshot
	cluster  *Cluster
}

func queueOn(nodes ...corev1.Node) *testQueue {
	b := &testQueue{snapshot: Snapshot{Now: noon, Kinds: NewResourceKinds(), Quotas: map[string][]Quota{}}}
	b.cluster = b.snapshot.Kinds.ClusterOf(nodes)
	return b
}

func (b *testQueue) quota(namespace string, hard, used corev1.ResourceList) *testQueue {
	b.snapshot.Quotas[namespace] = QuotasOf([]corev1.ResourceQuota{quota(hard, used)})
	return b
}

// addRun adds a run that ends after a time from now.
func (b *testQueue) addRun(namespace string, ends time.Duration, pods []*corev1.Pod) *testQueue {
	demand := b.snapshot.Kinds.DemandOf(pods, nil)
	run := Run{Identity: Identity{Namespace: namespace, Created: noon.Add(-time.Hour)}, Started: noon.Add(-time.Hour), Holds: b.cluster.Place(demand), Claim: demand.Claim}
	if ends != Forever {
		run.Ends = noon.Add(ends)
	}
	b.snapshot.Runs = append(b.snapshot.Runs, run)
	return b
}

// addWaiter adds a waiting experiment that came some time ago.
func (b *testQueue) addWaiter(namespace, name string, ago, lasts time.Duration, pods []*corev1.Pod, change ...func(*Waiter)) *testQueue {
	w := Waiter{Identity: Identity{Namespace: namespace, Name: name, Created: noon.Add(-ago)}, Duration: lasts, Demand: b.snapshot.Kinds.DemandOf(pods, nil)}
	for _, c := range change {
		c(&w)
	}
	b.snapshot.Waiters = append(b.snapshot.Waiters, w)
	return b
}

// decideLast returns the decision on the last waiting experiment.
func (b *testQueue) decideLast() Decision {
	b.snapshot.Hosts = b.cluster.Hosts
	decisions := Decide(&b.snapshot)
	return decisions[len(decisions)-1]
}

func TestRoom(t *testing.T) {
	big := func() *testQueue { return queueOn(node("8", "16Gi", "110")) }
	four := pods(4, "10m", "32Mi")
	cases := map[string]struct {
		on      *testQueue
		reason  string
		message string
	}{
		"there is room": {big().addWaiter("a", "x", 0, time.Hour, four), ReasonAdmitted, "there is room for all 4 nodes"},
		"a quota that never holds so many pods": {big().quota("a", countPods("4"), nil).addWaiter("a", "x", 0, time.Hour, four),
			ReasonQuotaTooSmall, "quota team allows 4 of pods in all, and 4 nodes and the workflow need 5"},
		"a quota that is used up by others": {big().quota("a", countPods("9"), countPods("5")).addWaiter("a", "x", 0, time.Hour, four),
			ReasonNoRoom, "quota team has 4 of pods free (of 9), and 4 nodes and the workflow need 5"},
		"a quota of CPU": {big().quota("a", corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("100m")}, nil).addWaiter("a", "x", 0, time.Hour, pods(4, "30m", "32Mi")),
			ReasonQuotaTooSmall, "quota team allows 100m of requests.cpu in all, and 4 nodes and the workflow need 131m"},
		"a quota of memory that holds the nodes alone": {big().quota("a", corev1.ResourceList{corev1.ResourceRequestsMemory: resource.MustParse("256Mi")}, nil).addWaiter("a", "x", 0, time.Hour, four),
			ReasonQuotaTooSmall, "quota team allows 256Mi of requests.memory in all, and 4 nodes and the workflow need 416Mi"},
		"a host with room for the nodes alone": {queueOn(node("8", "16Gi", "4")).addWaiter("a", "x", 0, time.Hour, four), ReasonClusterTooSmall, "take 4 of 5 pods"},
		"another team's quota":                 {big().quota("b", countPods("1"), nil).addWaiter("a", "x", 0, time.Hour, four), ReasonAdmitted, ""},
		"a cluster that is full": {queueOn(node("3", "16Gi", "110")).addRun("b", time.Hour, pods(4, "500m", "1Gi")).addWaiter("a", "x", 0, time.Hour, pods(4, "500m", "1Gi")),
			ReasonNoRoom, "at present the cluster's 1 schedulable hosts take 2 of 5 pods: 4 nodes and the workflow need cpu 2011m and memory 4384Mi, free are cpu 989m, memory 12000Mi and 105 pods"},
		"a cluster whose free memory is no round number": {queueOn(node("3", "17179869183", "110")).addRun("b", time.Hour, pods(4, "500m", "1Gi")).addWaiter("a", "x", 0, time.Hour, pods(4, "500m", "1Gi")),
			ReasonNoRoom, "free are cpu 989m, memory 11999Mi and 105 pods"},
		"a cluster that is too small":  {big().addWaiter("a", "x", 0, time.Hour, pods(4, "3", "1Gi")), ReasonClusterTooSmall, "even when empty"},
		"no more pods on the host":     {queueOn(node("8", "16Gi", "7")).addRun("b", time.Hour, four).addWaiter("a", "x", 0, time.Hour, four), ReasonNoRoom, "take 2 of 5 pods"},
		"a host without such a device": {big().addWaiter("a", "x", 0, time.Hour, device(pods(1, "1", "1Gi"))), ReasonClusterTooSmall, "take 1 of 2 pods"},
		"an older one of the team that waits for the quota, longer than that": {
			big().quota("a", countPods("10"), countPods("5")).addRun("a", time.Hour, four).addWaiter("a", "y", time.Minute, time.Hour, pods(8, "10m", "32Mi")).
				addWaiter("a", "x", 0, 2*time.Hour, pods(3, "10m", "32Mi")), ReasonWaitingForTurn, "experiment a/y comes first"},
		"an older one of the team that waits for the quota, if it is over before": {
			big().quota("a", countPods("10"), countPods("5")).addRun("a", time.Hour, four).addWaiter("a", "y", time.Minute, time.Hour, pods(8, "10m", "32Mi")).
				addWaiter("a", "x", 0, 30*time.Minute, pods(3, "10m", "32Mi")), ReasonAdmitted, ""},
		"an older one of another team that waits for its quota": {
			queueOn(node("8", "16Gi", "14")).quota("b", countPods("10"), countPods("5")).addRun("b", time.Hour, four).addWaiter("b", "y", time.Minute, time.Hour, pods(8, "10m", "32Mi")).
				addWaiter("a", "x", 0, Forever, pods(8, "10m", "32Mi")), ReasonAdmitted, ""},
		"an older one of another team that waits for the cluster": {
			queueOn(node("8", "16Gi", "12")).addRun("b", time.Hour, four).addWaiter("b", "y", time.Minute, time.Hour, pods(10, "10m", "32Mi")).
				addWaiter("a", "x", 0, 2*time.Hour, four), ReasonWaitingForTurn, "an experiment of another namespace comes first, and would be delayed"},
		"the same, if it is over before": {
			queueOn(node("8", "16Gi", "12")).addRun("b", time.Hour, four).addWaiter("b", "y", time.Minute, time.Hour, pods(10, "10m", "32Mi")).
				addWaiter("a", "x", 0, 59*time.Minute, four), ReasonAdmitted, ""},
		"the same, if there is room beside it": {
			queueOn(node("8", "16Gi", "14")).addRun("b", time.Hour, four).addWaiter("b", "y", time.Minute, time.Hour, pods(10, "10m", "32Mi")).
				addWaiter("a", "x", 0, Forever, pods(2, "10m", "32Mi")), ReasonAdmitted, ""},
		"an older one that waits for a live cluster, if it ends some day": {
			queueOn(node("8", "16Gi", "12")).addRun("b", Forever, four).addWaiter("b", "y", time.Minute, time.Hour, pods(10, "10m", "32Mi")).
				addWaiter("a", "x", 0, 100*time.Hour, four), ReasonAdmitted, ""},
		"an older one that waits for a live cluster, if it is a live cluster": {
			queueOn(node("8", "16Gi", "12")).addRun("b", Forever, four).addWaiter("b", "y", time.Minute, time.Hour, pods(10, "10m", "32Mi")).
				addWaiter("a", "x", 0, Forever, four), ReasonWaitingForTurn, "an experiment of another namespace comes first"},
		"an older one that can never start blocks nobody": {
			big().quota("a", countPods("10"), nil).addWaiter("a", "y", time.Minute, time.Hour, pods(100, "10m", "32Mi")).addWaiter("a", "x", 0, time.Hour, four), ReasonAdmitted, ""},
		"one of the team that the API server refused comes first": {
			big().addWaiter("a", "y", time.Minute, time.Hour, four, func(w *Waiter) { w.Refused = true }).addWaiter("a", "x", 0, time.Hour, four),
			ReasonWaitingForTurn, "experiment a/y comes first, whose nodes could not all be started"},
		"one of another team that the API server refused blocks nobody": {
			big().addWaiter("b", "y", time.Minute, time.Hour, four, func(w *Waiter) { w.Refused = true }).addWaiter("a", "x", 0, time.Hour, four), ReasonAdmitted, ""},
		"equal age goes by name": {
			queueOn(node("8", "16Gi", "6")).addWaiter("a", "w", 0, time.Hour, four).addWaiter("a", "x", 0, time.Hour, four), ReasonNoRoom, "take 1 of 5"},
		"a higher priority comes before who came an hour earlier": {
			queueOn(node("8", "16Gi", "6")).addWaiter("a", "y", time.Hour-time.Second, time.Hour, four).addWaiter("a", "x", 0, time.Hour, four, func(w *Waiter) { w.Priority = 6 }), ReasonAdmitted, ""},
		"and not before who came earlier still": {
			queueOn(node("8", "16Gi", "6")).addWaiter("a", "y", time.Hour+time.Second, time.Hour, four).addWaiter("a", "x", 0, time.Hour, four, func(w *Waiter) { w.Priority = 6 }), ReasonNoRoom, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.on.decideLast()
			if got.Reason != c.reason || !strings.Contains(got.Message, c.message) || got.Admitted != (c.reason == ReasonAdmitted) {
				t.Errorf("got %+v, want %s, %q", got, c.reason, c.message)
			}
		})
	}
}

func device(pods []*corev1.Pod) []*corev1.Pod {
	pods[0].Spec.Containers[0].Resources.Requests["example.org/radio"] = resource.MustParse("1")
	return pods
}

func TestTheRoomOfAWorkflowIsThatOfItsLargestPod(t *testing.T) {
	text, err := os.ReadFile("../../../workflows/experiment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Spec struct {
			Templates []struct{ Container *corev1.Container }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	pod := WorkflowPod()
	most := corev1.ResourceList{}
	for _, template := range workflow.Spec.Templates {
		if template.Container == nil {
			continue
		}
		for name, quantity := range template.Container.Resources.Requests {
			if has := most[name]; quantity.Cmp(has) > 0 {
				most[name] = quantity
			}
		}
	}
	main := pod.Spec.Containers[1]
	if !equality.Semantic.DeepEqual(main.Resources.Requests, most) || main.Name != "main" {
		t.Errorf("room is kept for %v; want that of the template, %v", main.Resources.Requests, most)
	}
}

func TestTheFirstInTheQueueHasAnExpectedStart(t *testing.T) {
	got := queueOn(node("8", "16Gi", "12")).addRun("b", 20*time.Minute, pods(2, "10m", "32Mi")).addRun("b", 40*time.Minute, pods(4, "10m", "32Mi")).
		addWaiter("a", "x", 0, time.Hour, pods(9, "10m", "32Mi")).decideLast()
	if want := noon.Add(40 * time.Minute); !got.ExpectedStart.Equal(want) || got.Position != 1 {
		t.Errorf("position %d starts at %s, want 1 at %s", got.Position, got.ExpectedStart, want)
	}
}

func TestHostsThatTakeNoPodsDoNotCount(t *testing.T) {
	change := func(name string, change func(*corev1.Node)) corev1.Node {
		n := node("1", "1Gi", "10")
		n.Name = name
		change(&n)
		return n
	}
	cluster := NewResourceKinds().ClusterOf([]corev1.Node{
		change("good", func(n *corev1.Node) {
			n.Labels = map[string]string{corev1.LabelOSStable: "linux", v1alpha1.LabelTakesExperiments: "true"}
		}),
		change("cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		change("tainted", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectNoSchedule}} }),
		change("of Windows", func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelOSStable: "windows"} }),
		change("kept free", func(n *corev1.Node) {
			n.Labels = map[string]string{v1alpha1.LabelTakesExperiments: v1alpha1.NoExperiments}
		}),
		change("down", func(n *corev1.Node) { n.Status.Conditions = nil }),
	})
	if len(cluster.Hosts) != 1 || cluster.Hosts[0].Name != "good" {
		t.Errorf("hosts are %+v, want the good one", cluster.Hosts)
	}
}

func TestRequestsOfAPodAreThoseOfTheScheduler(t *testing.T) {
	container := func(cpu string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
	}
	sidecar := container("100m")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"the sum of containers":            {corev1.PodSpec{Containers: []corev1.Container{container("1"), container("2")}}, "3"},
		"an init container that is larger": {corev1.PodSpec{InitContainers: []corev1.Container{container("5"), container("4")}, Containers: []corev1.Container{container("1")}}, "5"},
		"what runs beside the containers":  {corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("1")}}, "1100m"},
		"what runs beside later init ones": {corev1.PodSpec{InitContainers: []corev1.Container{sidecar, container("2")}, Containers: []corev1.Container{container("1")}}, "2100m"},
		"what the pod as a whole requests": {corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resources("4", "1Gi")}, Containers: []corev1.Container{container("1")}}, "4"},
		"no more than limits as a whole":   {corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: resources("4", "1Gi")}, Containers: []corev1.Container{container("1")}}, "1"},
		"what the sandbox takes beside it": {corev1.PodSpec{Overhead: resources("50m", "0"), Containers: []corev1.Container{container("1")}}, "1050m"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Requests(&c.spec); got.Cpu().String() != c.want {
				t.Errorf("requests cpu %s, want %s", got.Cpu(), c.want)
			}
		})
	}
}
