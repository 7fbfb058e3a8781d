package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/capacity"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func amounts(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods)}
}

// busy is a cluster of three hosts and two teams, as somebody sees who may read everything.
func busy() capacity.State {
	node := func(name string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Allocatable: amounts("2", "4Gi", "110"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	}
	pod := func(node string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor"}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts("250m", "512Mi", "0")}}}}}
	}
	experiment := func(namespace, name string, ago time.Duration, phase v1alpha1.ExperimentPhase, change func(*v1alpha1.Experiment)) v1alpha1.Experiment {
		e := v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-ago))}}
		e.Status.Phase, e.Status.Nodes.Total = phase, 24
		change(&e)
		return e
	}
	waits := func(position, priority int32, reason, message string) func(*v1alpha1.Experiment) {
		return func(e *v1alpha1.Experiment) {
			e.Spec.Priority = priority
			if position > 0 {
				e.Status.Queue = &v1alpha1.QueueStatus{Position: position}
			}
			e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
		}
	}
	cordoned := node("c")
	cordoned.Spec.Unschedulable = true
	first := waits(1, 0, "NoRoom", "quota team has 3 of pods free (of 30), and 24 nodes and the workflow need 25")
	s := capacity.State{QuotasOf: capacity.OfAllNamespaces, ExperimentsOf: capacity.OfAllNamespaces, Nodes: []corev1.Node{node("b"), node("a"), cordoned}, Pods: []corev1.Pod{pod("a"), pod("a"), pod("b"), pod("c")}}
	s.Quotas = []corev1.ResourceQuota{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "team"}, Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"pods": resource.MustParse("30"), "requests.memory": resource.MustParse("8Gi")},
			Used: corev1.ResourceList{"pods": resource.MustParse("27"), "requests.memory": resource.MustParse("1536Mi")}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "somebody", Name: "other"}},
	}
	s.Experiments = []v1alpha1.Experiment{
		experiment("team-nor", "late", time.Minute, v1alpha1.PhaseQueued, waits(3, 0, "WaitingForTurn", "experiment team-nor/first comes first, and would be delayed")),
		experiment("team-nor", "first", time.Hour, v1alpha1.PhaseQueued, func(e *v1alpha1.Experiment) {
			first(e)
			e.Status.Queue.ExpectedStart = ptr(metav1.NewTime(noon.Add(11 * time.Minute)))
		}),
		experiment("team-prt", "soon", 5*time.Minute, v1alpha1.PhaseQueued, waits(2, 3, "WaitingForTurn", "others come first, and wait for room in the cluster")),
		experiment("team-prt", "huge", 2*time.Hour, v1alpha1.PhaseQueued, waits(0, 0, "ClusterTooSmall", "even when empty, the cluster's 2 schedulable hosts take 4 of 24 nodes")),
		experiment("team-prt", "new", time.Second, "", func(*v1alpha1.Experiment) {}),
		experiment("team-prt", "kueues", time.Minute, v1alpha1.PhaseQueued, func(e *v1alpha1.Experiment) {
			waits(0, 0, "WaitingForKueue", "Kueue has not admitted it yet")(e)
			e.Spec.QueueName = "prt"
		}),
		experiment("team-nor", "runs", time.Hour, v1alpha1.PhaseRunning, func(*v1alpha1.Experiment) {}),
		experiment("team-nor", "done", time.Hour, v1alpha1.PhaseSucceeded, func(*v1alpha1.Experiment) {}),
	}
	s.Usage = &runapi.Usage{Namespace: "team-nor", Runs: 12, Bytes: 3 << 30, QuotaBytes: 5 << 30, RetentionSeconds: 8760 * 3600}
	return s
}

func TestRoomIsKeptForAWorkflowUntilItHasAPod(t *testing.T) {
	s := busy()
	if kept := capacity.Of(s).KeptForWorkflows; kept == nil || kept.Pods != 1 || kept.MemoryBytes < 256<<20 {
		t.Errorf("without a workflow's pod %+v is kept; want the room of one", kept)
	}
	workflow := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "runs-1", Labels: map[string]string{render.LabelWorkflow: "runs"}}, Spec: corev1.PodSpec{NodeName: "a"}}
	s.Pods = append(s.Pods, workflow)
	if kept := capacity.Of(s).KeptForWorkflows; kept != nil {
		t.Errorf("beside the workflow's pod %+v is kept; want nothing", kept)
	}
	s.Pods[len(s.Pods)-1].Status.Phase = corev1.PodSucceeded
	s.ExperimentsOf = capacity.OfOwnNamespace
	if kept := capacity.Of(s).KeptForWorkflows; kept != nil {
		t.Errorf("who may not read all experiments is told %+v; want nothing, as it may be more", kept)
	}
}

func TestATeamSeesThatItsPartOfTheArchiveIsFull(t *testing.T) {
	full := archiveText(&runapi.Usage{Namespace: "team-nor", Runs: 1, Bytes: 5 << 30, QuotaBytes: 5 << 30})
	if want := "Archive of team-nor: 1 run with 5.00 GiB of 5.00 GiB. No run begins before some are deleted: vignette runs list.\n"; full != want {
		t.Errorf("%q; want %q", full, want)
	}
	s := capacity.State{UsageError: "the archive is not up"}
	if text := capacityText(capacity.Of(s), noon); !strings.Contains(text, "part of the archive is not known: the archive is not up") {
		t.Errorf("%s", text)
	}
}

func TestCapacityShowsTheRoomOfAVolumeThatHasLessThanTheQuota(t *testing.T) {
	const room = "The archive's volume has room for 27.00 GiB of logs of all teams.\n"
	for name, c := range map[string]struct {
		quota, free int64
		shown       bool
	}{
		"less than the quota":        {126 << 30, 27 << 30, true},
		"more than the quota's rest": {28 << 30, 27 << 30, false},
		"a team without a quota":     {0, 27 << 30, true},
	} {
		text := archiveText(&runapi.Usage{Namespace: "team-nor", Bytes: 2 << 30, QuotaBytes: c.quota, FreeBytes: &c.free})
		if strings.HasSuffix(text, room) != c.shown {
			t.Errorf("%s: %q; want %q at its end: %t", name, text, room, c.shown)
		}
	}
}

func TestCapacityShowsHostsTeamsAndTheQueueInOrder(t *testing.T) {
	report := capacity.Of(busy())
	golden.Check(t, "capacity.txt", capacityText(report, noon))
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "capacity.json", string(text)+"\n")
}

func TestCapacitySaysWhichScenarioAnExperimentWaitsFor(t *testing.T) {
	s := busy()
	s.Experiments = s.Experiments[:1]
	const why = "waiting until scenario hills is ready: its sources are being read"
	s.Experiments[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionUnknown, Reason: "ScenarioNotReady", Message: why}}
	if text := capacityText(capacity.Of(s), noon); !strings.Contains(text, why) {
		t.Errorf("%s\nwant %q in it", text, why)
	}
}

func TestCapacityNamesWhatMayNotBeRead(t *testing.T) {
	s := busy()
	s.Nodes, s.Pods = nil, nil
	s.Namespace, s.QuotasOf, s.ExperimentsOf = "team-nor", capacity.OfOwnNamespace, capacity.OfOwnNamespace
	s.Experiments = s.Experiments[:2]
	s.Experiments[0].Status.Queue.Position = 30
	s.NotShown = []string{"nodes", "pods", "resource quotas of namespaces other than team-nor", "experiments of namespaces other than team-nor"}
	golden.Check(t, "capacity-little.txt", capacityText(capacity.Of(s), noon))
}

func TestCapacityOfAnEmptyClusterSaysThatNobodyWaits(t *testing.T) {
	golden.Check(t, "capacity-empty.txt", capacityText(capacity.Of(capacity.State{QuotasOf: capacity.OfAllNamespaces, ExperimentsOf: capacity.OfAllNamespaces, Nodes: busy().Nodes[:1]}), noon))
}

// TestCapacityWithoutExperimentsShowsTheOwnQuota by what the API server lets him list.
func TestCapacityWithoutExperimentsShowsTheOwnQuota(t *testing.T) {
	quota := busy().Quotas[0]
	for name, c := range map[string]struct {
		may          func(namespace string) bool
		want, wanted string
	}{
		"who may read nothing": {func(string) bool { return false }, "Who waits is not shown: you may read no experiments.", "experiments of namespace team-nor"},
		"who may read his own": {func(namespace string) bool { return namespace == "team-nor" },
			"Nobody waits in namespace team-nor.", "experiments of namespaces other than team-nor"},
		"who may read everything": {func(string) bool { return true }, "Nobody waits.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(&quota).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					given := (&client.ListOptions{}).ApplyOptions(options)
					if !c.may(given.Namespace) {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "anything"}, "", nil)
					}
					return api.List(ctx, list, options...)
				}}).Build()
			archive := httptest.NewServer(http.NotFoundHandler())
			defer archive.Close()
			s, err := (&cluster{kube: kube, namespace: "team-nor", archive: runclient.New(archive.URL, archive.Client(), runclient.NoToken)}).readCapacity(t.Context(), new(target).explainArchive)
			if err != nil {
				t.Fatal(err)
			}
			text := capacityText(capacity.Of(s), noon)
			if !strings.Contains(text, c.want) || !strings.Contains(text, c.wanted) || c.want != "Nobody waits." && strings.Contains(text, "Nobody waits.\n") {
				t.Errorf("it says\n%s\nwant %q and %q", text, c.want, c.wanted)
			}
			if own := strings.Contains(text, "team-nor         0        0   team    pods"); own != (name != "who may read nothing") {
				t.Errorf("the own namespace's quota is shown: %v in\n%s", own, text)
			}
		})
	}
}

func TestCapacitySaysInWordsWhyTheArchiveIsNotShown(t *testing.T) {
	const words = `archives.results.vignette.dev "default" is forbidden: User "anna" cannot get resource "archives/proxy"`
	archive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: words})
	}))
	defer archive.Close()
	kube := fake.NewClientBuilder().WithScheme(testkube.Scheme()).Build()
	s, err := (&cluster{kube: kube, namespace: "team-prt", archive: runclient.New(archive.URL, archive.Client(), runclient.NoToken)}).readCapacity(t.Context(), new(target).explainArchive)
	if err != nil {
		t.Fatal(err)
	}
	text := capacityText(capacity.Of(s), noon)
	if want := "is not known: " + words + ": reading results needs the role vignette-viewer"; !strings.Contains(text, want) {
		t.Errorf("%s\nwant %q in it", text, want)
	}
}
