package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const pairText = `
apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: pair}
spec:
  duration: 100s
  networks: [{name: wan, waveform: baseline, subnet: 198.18.0.0/24}]
  apps: [{name: hub, mosquitto: {}}]
  nodes:
  - {name: hq, networks: [wan], apps: [hub]}
  - {name: veh, count: 3, networks: [wan], apps: [hub]}
`

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// forecastOf pair in namespace team, in a cluster with these objects.
func forecastOf(t *testing.T, objects ...client.Object) *Forecast {
	t.Helper()
	return forecastOfText(t, pairText, objects...)
}

func forecastOfText(t *testing.T, text string, objects ...client.Object) *Forecast {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource().Build()
	templates := nodeTemplates{}
	templates.list(t.Context(), kube, "", "team", "vignette-system")
	f, p, err := newForecaster(render.Options{Namespace: "vignette-system", MemoryLimit: resource.MustParse("2Gi")}, "team", parsed(t, text), templates)
	if err != nil {
		t.Fatal(err)
	}
	f.ask(t.Context(), kube, p)
	return p
}

// host with room for so many pods.
func host(pods string) *corev1.Node {
	list := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse(pods)}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

func TestAForecastHasWhatAllNodesTake(t *testing.T) {
	p := forecastOf(t, host("10"))
	if p.Pods != 4 || p.CPUCores <= 0 || p.MemoryBytes <= 0 || p.DurationSeconds < 100 || len(p.Unknown) > 0 {
		t.Errorf("%+v; want 4 pods with cores, memory and more than the duration", p)
	}
	if p.Start == nil || !p.Start.Admitted {
		t.Errorf("start %+v; want at once", p.Start)
	}
}

func TestAnExperimentWithoutRoomStartsWhenAnotherEnds(t *testing.T) {
	began := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	other := otherPair(t)
	other.Status.Phase, other.Status.StartTime, other.Status.T0 = v1alpha1.PhaseRunning, &began, &metav1.MicroTime{Time: began.Time}
	byKueue := other.DeepCopy()
	byKueue.Spec.QueueName = "lab"
	for _, one := range []*v1alpha1.Experiment{other, byKueue} {
		start := forecastOf(t, append(podsOfOther(), host("5"), one)...).Start
		if start == nil || start.Admitted || start.Position != 1 || start.ExpectedStart == nil || !start.ExpectedStart.After(time.Now()) {
			t.Errorf("queue %q: start %+v; want place 1 and a time to come", one.Spec.QueueName, start)
		}
	}
}

// otherPair is another experiment, in namespace team-two.
func otherPair(t *testing.T) *v1alpha1.Experiment {
	t.Helper()
	other := &v1alpha1.Experiment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(parsed(t, pairText).Object, other); err != nil {
		t.Fatal(err)
	}
	other.Namespace, other.Name, other.UID, other.CreationTimestamp = "team-two", "other", "u1", metav1.NewTime(time.Now().Add(-time.Hour))
	return other
}

// podsOfOther take the room of three pods.
func podsOfOther() (pods []client.Object) {
	for _, name := range []string{"a", "b", "c"} {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-two", Name: name, Labels: map[string]string{v1alpha1.LabelExperimentUID: "u1"}}, Spec: corev1.PodSpec{NodeName: "n1"}})
	}
	return pods
}

func TestOnlyExperimentsOfTheQueueAreBeforeAnother(t *testing.T) {
	accepted := []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
	now := metav1.Now()
	for name, asked := range map[string]struct {
		change func(*v1alpha1.Experiment)
		first  bool
	}{
		"a queued one":         {func(*v1alpha1.Experiment) {}, false},
		"a stopped one":        {func(e *v1alpha1.Experiment) { e.Spec.Stop = true }, true},
		"one of Kueue":         {func(e *v1alpha1.Experiment) { e.Spec.QueueName = "lab" }, true},
		"one with errors":      {func(e *v1alpha1.Experiment) { e.Status.Conditions = nil }, true},
		"one that is not seen": {func(e *v1alpha1.Experiment) { e.Status.Phase = "" }, true},
		"one that is going":    {func(e *v1alpha1.Experiment) { e.DeletionTimestamp, e.Finalizers = &now, []string{"vignette.dev/x"} }, true},
	} {
		other := otherPair(t)
		other.Status.Phase, other.Status.Conditions = v1alpha1.PhaseQueued, accepted
		asked.change(other)
		if start := forecastOf(t, host("6"), other).Start; start == nil || start.Admitted != asked.first {
			t.Errorf("%s: start %+v; want at once: %v", name, start, asked.first)
		}
	}
}

func TestAnExperimentBehindOneThatItsOwnQuotaHoldsStartsAtOnce(t *testing.T) {
	other := otherPair(t)
	other.Status.Phase, other.Status.Conditions = v1alpha1.PhaseQueued, []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
	full := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team-two", Name: "full"}}
	full.Status.Hard, full.Status.Used = corev1.ResourceList{"pods": resource.MustParse("6")}, corev1.ResourceList{"pods": resource.MustParse("6")}
	p := forecastOf(t, host("6"), other, full)
	if p.Start == nil || !p.Start.Admitted || len(p.Quotas) > 0 {
		t.Errorf("start %+v, quotas %v; want at once, and none of another namespace", p.Start, p.Quotas)
	}
}

func TestWhenAnExperimentOfKueueStartsIsNotKnown(t *testing.T) {
	p := forecastOfText(t, strings.Replace(pairText, "  duration:", "  queueName: lab\n  duration:", 1), host("10"))
	if p.Start != nil || len(p.Unknown) != 1 || !strings.Contains(p.Unknown[0], "LocalQueue lab") {
		t.Errorf("start %+v, unknown %q; want none, and Kueue's queue", p.Start, p.Unknown)
	}
}

func TestAVirtualMachineTakesWhatItsTemplateSays(t *testing.T) {
	text := strings.Replace(pairText, "{name: hq, networks: [wan], apps: [hub]}", "{name: hq, networks: [wan], runtime: vm, vm: {template: big}}", 1)
	template := &v1alpha1.NodeTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "vignette-system", Name: "big"}}
	template.Spec.VM.Memory = "3Gi"
	with, without := forecastOfText(t, text, host("10"), template), forecastOfText(t, text, host("10"))
	if with.MemoryBytes < without.MemoryBytes+1<<30 || len(with.Unknown) > 0 {
		t.Errorf("%d bytes, %d without the template, unknown %q", with.MemoryBytes, without.MemoryBytes, with.Unknown)
	}
	if len(without.Unknown) != 1 || !strings.Contains(without.Unknown[0], "NodeTemplate big") {
		t.Errorf("unknown %q; want the template", without.Unknown)
	}
}

func TestAnExperimentThatTheClusterCannotHoldNeverStarts(t *testing.T) {
	if start := forecastOf(t, host("3")).Start; start == nil || start.Admitted || start.Position != 0 || !strings.Contains(start.Message, "3 of 5 pods") {
		t.Errorf("start %+v; want none, with the number of nodes that fit", start)
	}
}

func TestAForecastSaysWhatIsLeftOfAQuota(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "team"}}
	quota.Status.Hard, quota.Status.Used = corev1.ResourceList{"pods": resource.MustParse("6")}, corev1.ResourceList{"pods": resource.MustParse("2")}
	p := forecastOf(t, host("10"), quota)
	want := []QuotaNeed{{Name: "team", Resource: "pods", Needed: "5", Free: "4", Enough: false}} // one for the workflow
	if diff := cmp.Diff(want, p.Quotas); diff != "" {
		t.Errorf("quotas (-want +got):\n%s", diff)
	}
}

func TestAForecastCountsTheLimitOfAppsWithoutOneInAQuota(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "team"}}
	quota.Status.Hard = corev1.ResourceList{"limits.memory": resource.MustParse("6Gi")}
	p := forecastOf(t, host("10"), quota)
	if len(p.Quotas) != 1 || p.Quotas[0].Enough || !strings.HasPrefix(p.Quotas[0].Needed, "8") {
		t.Errorf("quotas %+v; want four apps of 2Gi and the workflow, for which 6Gi are not enough", p.Quotas)
	}
	if p.Start == nil || p.Start.Admitted || !strings.Contains(p.Start.Message, "limits.memory") {
		t.Errorf("start %+v; want none, as the quota is too small", p.Start)
	}
}

func TestTheLimitOfAppsWithoutOneIsTheOperators(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	operator := func(args ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "vignette-system", Name: "vignette-operator"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "operator", Args: args}}
		return d
	}
	own := resource.MustParse("3Gi")
	for name, c := range map[string]struct {
		own      *resource.Quantity
		operator *appsv1.Deployment
		want     string
	}{
		"as the console is told":       {&own, operator("--app-memory-limit=1Gi"), "3Gi"},
		"as the operator has it":       {nil, operator("--metrics=:8080", "--app-memory-limit=1Gi"), "1Gi"},
		"in an argument of its own":    {nil, operator("--app-memory-limit", "512Mi"), "512Mi"},
		"none":                         {nil, operator("--app-memory-limit=0"), "0"},
		"an operator with its default": {nil, operator("--metrics=:8080"), "2Gi"},
		"an operator that is not seen": {nil, nil, "2Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			made := fake.NewClientBuilder().WithScheme(scheme)
			if c.operator != nil {
				made.WithObjects(c.operator)
			}
			console := &Console{config: Config{PlatformNamespace: "vignette-system", MemoryLimit: c.own}}
			if got := console.memoryLimit(t.Context(), made.Build()); got.String() != c.want {
				t.Errorf("the limit is %s; want %s", got.String(), c.want)
			}
		})
	}
}

func TestAForecastOfACampaignHasItsRuns(t *testing.T) {
	p := &Forecast{}
	p.expand(validate.Expansion{Points: 3, Runs: 6, Duration: 60 * time.Minute, Parallelism: 2})
	if p.Runs != 6 || p.CampaignSeconds != 1800 {
		t.Errorf("%+v; want 6 runs in half an hour", p)
	}
}

func TestTwoWaysToWriteASpecHaveOneNormalForm(t *testing.T) {
	other := strings.Replace(pairText, "  duration: 100s\n", "", 1) + "  drain: {max: 30s}\n  duration: 100s\n"
	if a, b := normal(parsed(t, pairText)), normal(parsed(t, other)); a != b || !strings.Contains(a, "duration: 100s") {
		t.Errorf("(-one +other):\n%s", cmp.Diff(a, b))
	}
}

func TestTheMainObjectIsTheCampaign(t *testing.T) {
	campaign := parsed(t, "{apiVersion: vignette.dev/v1alpha1, kind: Campaign, metadata: {name: all}}")
	if got := mainObject([]*unstructured.Unstructured{parsed(t, pairText), campaign}); got != campaign {
		t.Errorf("%v", got)
	}
	if got := mainObject([]*unstructured.Unstructured{parsed(t, "{apiVersion: v1, kind: ConfigMap}")}); got != nil {
		t.Errorf("%v; want none", got)
	}
}
