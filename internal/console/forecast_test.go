package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f, p, err := newForecaster("vignette-system", "team", parsed(t, pairText))
	if err != nil {
		t.Fatal(err)
	}
	f.ask(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource().Build(), p)
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
	other := &v1alpha1.Experiment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(parsed(t, pairText).Object, other); err != nil {
		t.Fatal(err)
	}
	other.Namespace, other.Name, other.UID = "team-two", "other", "u1"
	other.Status.Phase, other.Status.StartTime, other.Status.T0 = v1alpha1.PhaseRunning, &began, &metav1.MicroTime{Time: began.Time}
	objects := []client.Object{host("5"), other}
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-two", Name: name, Labels: map[string]string{v1alpha1.LabelExperimentUID: "u1"}}, Spec: corev1.PodSpec{NodeName: "n1"}})
	}
	start := forecastOf(t, objects...).Start
	if start == nil || start.Admitted || start.Position != 1 || start.ExpectedStart == nil || !start.ExpectedStart.After(time.Now()) {
		t.Errorf("start %+v; want place 1 and a time to come", start)
	}
}

func TestAnExperimentThatTheClusterCannotHoldNeverStarts(t *testing.T) {
	if start := forecastOf(t, host("3")).Start; start == nil || start.Admitted || start.Position != 0 || !strings.Contains(start.Message, "3 of 4 nodes") {
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
