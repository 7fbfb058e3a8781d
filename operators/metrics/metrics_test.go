package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func collector(t *testing.T, objects ...client.Object) *Collector {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	elected := make(chan struct{})
	close(elected)
	return &Collector{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Elected: elected,
		ProvisioningDeadline: func(e *v1alpha1.Experiment) time.Duration { return time.Duration(e.Status.Nodes.Total) * time.Second }}
}

func TestOnlyTheReplicaThatLeadsHasMetrics(t *testing.T) {
	c := collector(t, experiment("nor", "goes-on", v1alpha1.PhaseRunning))
	if n := testutil.CollectAndCount(c); n == 0 {
		t.Error("the leader has no metrics")
	}
	c.Elected = make(chan struct{})
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("a replica that waits has %d metrics, want none", n)
	}
}

func experiment(namespace, name string, phase v1alpha1.ExperimentPhase) *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(500, 0)}}
	e.Spec.Duration, e.Spec.Drain.Max, e.Status.Phase = "1m", "30s", phase
	return e
}

func podOf(namespace, name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelNode: name}}, Status: corev1.PodStatus{Phase: phase}}
}

const want = `
# HELP vignette_campaign_run_delivered_ratio Share of the offered deliveries of a run of a campaign that arrived, 0 to 1.
# TYPE vignette_campaign_run_delivered_ratio gauge
vignette_campaign_run_delivered_ratio{campaign="c",namespace="nor",point="hf",run="c-hf-1"} 1
vignette_campaign_run_delivered_ratio{campaign="c",namespace="nor",point="wifi",run="c-wifi-1"} 0.75
# HELP vignette_campaign_run_median_delay_seconds Median delay of a run of a campaign from sent to received.
# TYPE vignette_campaign_run_median_delay_seconds gauge
vignette_campaign_run_median_delay_seconds{campaign="c",namespace="nor",point="hf",run="c-hf-1"} 2.5
vignette_campaign_run_median_delay_seconds{campaign="c",namespace="nor",point="wifi",run="c-wifi-1"} 0.1124
# HELP vignette_campaign_runs Runs of a campaign's round, by phase.
# TYPE vignette_campaign_runs gauge
vignette_campaign_runs{campaign="c",namespace="nor",phase="Pending"} 2
vignette_campaign_runs{campaign="c",namespace="nor",phase="Succeeded"} 2
# HELP vignette_experiment_due_time_seconds When the drain of an experiment that goes on ends at the latest, Unix seconds; of none that stays up until it is stopped.
# TYPE vignette_experiment_due_time_seconds gauge
vignette_experiment_due_time_seconds{experiment="goes-on",namespace="nor",phase="Running"} 1090
# HELP vignette_experiment_ready_due_time_seconds When an experiment that starts must be ready, unless it waited for others that start, Unix seconds.
# TYPE vignette_experiment_ready_due_time_seconds gauge
vignette_experiment_ready_due_time_seconds{experiment="starts",namespace="nor"} 2250
# HELP vignette_experiment_waiting_since_seconds When an experiment that waits in the queue was made, Unix seconds.
# TYPE vignette_experiment_waiting_since_seconds gauge
vignette_experiment_waiting_since_seconds{experiment="waits",namespace="prt",reason="NoRoom"} 500
# HELP vignette_experiments Experiments in the cluster, by phase.
# TYPE vignette_experiments gauge
vignette_experiments{namespace="nor",phase="Provisioning"} 1
vignette_experiments{namespace="nor",phase="Running"} 1
vignette_experiments{namespace="nor",phase="Succeeded"} 1
vignette_experiments{namespace="prt",phase="Queued"} 1
# HELP vignette_team_nodes Nodes of experiments that have a pod which has not ended.
# TYPE vignette_team_nodes gauge
vignette_team_nodes{namespace="nor"} 1
# HELP vignette_team_quota What the ResourceQuotas of a namespace with experiments allow (hard), and what is used of it (used); pods, cores or bytes.
# TYPE vignette_team_quota gauge
vignette_team_quota{namespace="nor",quota="team",resource="pods",type="hard"} 40
vignette_team_quota{namespace="nor",quota="team",resource="pods",type="used"} 5
`

func TestExperimentsTeamsAndCampaignsHaveMetrics(t *testing.T) {
	goesOn, waits, over := experiment("nor", "goes-on", v1alpha1.PhaseRunning), experiment("prt", "waits", v1alpha1.PhaseQueued), experiment("nor", "over", v1alpha1.PhaseSucceeded)
	t0 := metav1.NewMicroTime(time.Unix(1000, 0))
	goesOn.Status.T0, over.Status.T0 = &t0, &t0
	waits.Status.Conditions = []metav1.Condition{{Type: "Admitted", Status: metav1.ConditionFalse, Reason: "NoRoom"}}
	starts, admitted := experiment("nor", "starts", v1alpha1.PhaseProvisioning), metav1.Unix(2000, 0)
	starts.Status.StartTime, goesOn.Status.StartTime, starts.Status.Nodes.Total = &admitted, &admitted, 250
	quota := func(namespace string) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}}
		q.Status.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("40")}
		q.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")}
		return q
	}
	campaign := &v1alpha1.Campaign{ObjectMeta: metav1.ObjectMeta{Namespace: "nor", Name: "c"}}
	campaign.Status.Runs = []v1alpha1.CampaignRun{
		{Name: "c-wifi-1", Point: "wifi", Phase: v1alpha1.RunSucceeded, Results: &v1alpha1.ResultsSummary{Expected: 4, Received: 3, MedianDelay: "112.4ms"}},
		{Name: "c-hf-1", Point: "hf", Phase: v1alpha1.RunSucceeded, Results: &v1alpha1.ResultsSummary{Expected: 4, Received: 4, MedianDelay: "2.50s"}},
		{Name: "c-wifi-2", Point: "wifi", Phase: v1alpha1.RunPending}, {Name: "c-wifi-3", Point: "wifi", Phase: v1alpha1.RunPending},
	}
	c := collector(t, goesOn, starts, waits, over, quota("nor"), quota("stranger"), campaign,
		podOf("nor", "up", corev1.PodRunning), podOf("nor", "ended", corev1.PodSucceeded))
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "vignette_experiments", "vignette_experiment_due_time_seconds", "vignette_experiment_ready_due_time_seconds", "vignette_experiment_waiting_since_seconds",
		"vignette_team_nodes", "vignette_team_quota", "vignette_campaign_runs", "vignette_campaign_run_delivered_ratio", "vignette_campaign_run_median_delay_seconds"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v, problems: %v", err, problems)
	}
}

// TestTheRoomIsThatOfHostsThatTakePods: the queue has no other.
func TestTheRoomIsThatOfHostsThatTakePods(t *testing.T) {
	host := func(name string, spec corev1.NodeSpec) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("1Ki")}
		return n
	}
	taint := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
	c := collector(t, host("works", corev1.NodeSpec{}), host("cordoned", corev1.NodeSpec{Unschedulable: true}), host("controls", corev1.NodeSpec{Taints: []corev1.Taint{taint}}))
	const want = `
# HELP vignette_cluster_allocatable What the hosts that take pods have for them: pods, cores, bytes.
# TYPE vignette_cluster_allocatable gauge
vignette_cluster_allocatable{resource="cpu"} 8
vignette_cluster_allocatable{resource="memory"} 1024
vignette_cluster_allocatable{resource="pods"} 110
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "vignette_cluster_allocatable"); err != nil {
		t.Error(err)
	}
}
