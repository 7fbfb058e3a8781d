package requirements

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// clusterOf has a host for ten pods with one pod of a node, an experiment in a phase, and more pods.
func clusterOf(phase v1alpha1.ExperimentPhase, more ...corev1.Pod) *Cluster {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "run", UID: "u1"}}
	e.Status.Phase = phase
	host := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	host.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")}
	host.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{v1alpha1.LabelExperimentUID: "u1", v1alpha1.LabelNode: "hq"}}, Spec: corev1.PodSpec{NodeName: "n1"}}
	quota := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
	quota.Status.Hard = corev1.ResourceList{"pods": resource.MustParse("10"), "requests.memory": resource.MustParse("1Gi")}
	quota.Status.Used = corev1.ResourceList{"pods": *resource.NewQuantity(int64(1+len(more)), resource.DecimalSI)}
	return &Cluster{
		Now: time.Unix(0, 0), Kinds: queue.NewResourceKinds(), Nodes: []corev1.Node{host}, Pods: []corev1.Pod{node}, OtherPods: more,
		Quotas: []corev1.ResourceQuota{quota}, Experiments: []*v1alpha1.Experiment{e},
		Needed: func(*v1alpha1.Experiment) (Needed, bool) { return Needed{Nodes: 1}, true },
	}
}

func TestRoomIsKeptForTheWorkflowsPodUntilTheRunIsOver(t *testing.T) {
	pod := func(host string, phase corev1.PodPhase) corev1.Pod {
		p := queue.WorkflowPod()
		p.Namespace, p.Labels, p.Spec.NodeName, p.Status.Phase = "team", map[string]string{render.LabelWorkflow: "run"}, host, phase
		return *p
	}
	of := func(pods ...corev1.Pod) []corev1.Pod { return pods }
	for name, c := range map[string]struct {
		phase                  v1alpha1.ExperimentPhase
		pods                   []corev1.Pod
		freePods, freeMemory   int64 // MiB
		quotaPods, quotaMemory int64
	}{
		"it starts":                     {v1alpha1.PhaseProvisioning, nil, 8, 4096 - 288, 2, 288},
		"it runs":                       {v1alpha1.PhaseRunning, nil, 8, 4096 - 288, 2, 288},
		"it collects, without a pod":    {v1alpha1.PhaseCollecting, nil, 8, 4096 - 288, 2, 288},
		"its pod has no host yet":       {v1alpha1.PhaseCollecting, of(pod("", corev1.PodPending)), 8, 4096 - 288, 2, 0},
		"its pod runs":                  {v1alpha1.PhaseAnalysing, of(pod("n1", corev1.PodRunning)), 8, 4096 - 288, 2, 0},
		"its pod has ended":             {v1alpha1.PhaseCollecting, of(pod("n1", corev1.PodSucceeded)), 8, 4096 - 288, 3, 288},
		"it is over, and its pods stay": {v1alpha1.PhaseSucceeded, nil, 9, 4096, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := clusterOf(c.phase, c.pods...).Snapshot()
			free, used := s.Hosts[0].Free, s.Quotas["team"][0].Used
			if free[0] != c.freePods || free[1] != c.freeMemory<<20 {
				t.Errorf("the host has %d pods and %d MiB free; want %d and %d", free[0], free[1]>>20, c.freePods, c.freeMemory)
			}
			if used[queue.ClaimPods] != c.quotaPods || used[queue.ClaimRequestsMemory] != c.quotaMemory<<20 {
				t.Errorf("of the quota %d pods and %d MiB are used; want %d and %d", used[queue.ClaimPods], used[queue.ClaimRequestsMemory]>>20, c.quotaPods, c.quotaMemory)
			}
			if held := s.Runs[0].Holds; c.phase != v1alpha1.PhaseSucceeded && len(held) != 2 {
				t.Errorf("the run holds %v; want its node and its workflow's pod, which it gives back", held)
			}
		})
	}
}

func TestRoomIsKeptForEMANEOnHostsOnly(t *testing.T) {
	e := v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "run", UID: "u1"}}
	e.Spec = v1alpha1.ExperimentSpec{
		Networks: []v1alpha1.Network{{Name: "wan", Subnet: "198.18.1.0/24", Engine: v1alpha1.EngineEMANE, Waveform: "rfpipe"}, {Name: "lan", Subnet: "198.18.2.0/24", Waveform: "lan"}},
		Nodes:    []v1alpha1.Node{{Name: "hq", Networks: []string{"wan"}}, {Name: "veh", Count: ptr.To(int32(2)), Networks: []string{"wan", "lan"}}},
	}
	emane := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Labels: map[string]string{v1alpha1.LabelExperimentUID: "u1", v1alpha1.LabelNetwork: "wan"}}, Spec: corev1.PodSpec{NodeName: "n1"}}
	for name, c := range map[string]struct {
		phase    v1alpha1.ExperimentPhase
		pods     []corev1.Pod
		freePods int64
	}{
		"no pod of EMANE is there":   {v1alpha1.PhaseProvisioning, nil, 10 - 3 - 1 - 1},
		"one is there":               {v1alpha1.PhaseProvisioning, []corev1.Pod{emane}, 10 - 3 - 1 - 1},
		"the experiment has started": {v1alpha1.PhaseRunning, []corev1.Pod{emane}, 10 - 1 - 1 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(c.phase)
			cluster.Experiments[0].Spec = e.Spec
			cluster.Pods = append(cluster.Pods, c.pods...)
			cluster.Templates = func(*v1alpha1.Experiment) map[string]v1alpha1.VirtualMachine { return nil }
			r, ok := Of(cluster.Experiments[0], render.Options{}, nil, StartLead)
			if !ok {
				t.Fatal("the experiment is invalid")
			}
			needed := NeededOf(&r, cluster.Kinds)
			if claim := needed.Demand.Claim[queue.ClaimPods]; claim != 4 {
				t.Errorf("%d pods of the quota are claimed; want 3 nodes and the workflow", claim)
			}
			cluster.Needed = func(*v1alpha1.Experiment) (Needed, bool) { return needed, true }
			s, _ := cluster.Snapshot()
			if free := s.Hosts[0].Free[0]; free != c.freePods {
				t.Errorf("the host has room for %d pods; want %d", free, c.freePods)
			}
		})
	}
}
