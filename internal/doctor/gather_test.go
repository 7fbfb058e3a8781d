package doctor

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func gathererOf(objects ...client.Object) *gatherer {
	reason := func(o client.Object) []string { return []string{o.(*corev1.Event).Reason} }
	return &gatherer{fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithIndex(&corev1.Event{}, "reason", reason).WithObjects(objects...).Build(), "team-nor", "vignette-system"}
}

// pluginNotFound is the event of a pod on a host.
func pluginNotFound(pod, host string, at time.Time) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: pod}, Reason: "FailedCreatePodSandBox", Message: `failed to find plugin "radio" in path [/opt/cni/bin]`,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "team-nor", Name: pod}, Source: corev1.EventSource{Host: host}, LastTimestamp: metav1.NewTime(at)}
}

func TestAPluginThatWasMissingBeforeItsRadiodWasReadyIsNoProblem(t *testing.T) {
	mended := time.Now().Add(-10 * time.Minute)
	radiod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "vignette-system", Name: "r", Labels: map[string]string{"app.kubernetes.io/name": "vignette-radiod"}},
		Spec:   corev1.PodSpec{NodeName: "h1"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(mended)}}}}
	g := gathererOf(radiod, pluginNotFound("before", "h1", mended.Add(-time.Minute)), pluginNotFound("since", "h1", mended.Add(time.Minute)),
		pluginNotFound("elsewhere", "h2", mended.Add(-time.Minute)))
	got := g.pluginProblems(t.Context())
	slices.Sort(got.Value)
	if want := []string{"team-nor/elsewhere", "team-nor/since"}; got.IsUnknown() || !slices.Equal(got.Value, want) {
		t.Errorf("%+v, want %q", got, want)
	}
}

// TestMultusIsNotWhatGoesWithIt: as OpenShift and RKE2 have it.
func TestMultusIsNotWhatGoesWithIt(t *testing.T) {
	daemon := func(name string, ready int32) client.Object {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "network", Name: name}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, NumberReady: ready}}
	}
	deployment := func(name string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "network", Name: name}}
	}
	for _, others := range [][]client.Object{
		{daemon("multus", 3), daemon("multus-additional-cni-plugins", 0), deployment("multus-admission-controller")},
		{daemon("rke2-multus", 3), daemon("rke2-multus-rke2-whereabouts", 0)},
		{daemon("kube-multus-ds", 3), deployment("multus-webhook")},
	} {
		if got := gathererOf(others...).parts(t.Context()); got.IsUnknown() || got.Value[Multus].Ready != 3 {
			t.Errorf("%+v beside %s; want 3 pods ready", got, others[1].GetName())
		}
	}
}

func TestKubeVirtIsKnownByItsObject(t *testing.T) {
	object := func(binding string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": map[string]any{"namespace": "kubevirt", "name": "kubevirt"},
			"spec":   map[string]any{"configuration": map[string]any{"network": map[string]any{"binding": map[string]any{binding: map[string]any{"domainAttachmentType": "tap"}}}}},
			"status": map[string]any{"phase": "Deployed"}}}
	}
	for binding, known := range map[string]bool{"vignette-radio": true, "passt": false} {
		if got := gathererOf(object(binding)).kubeVirt(t.Context()); got.IsUnknown() || got.Value != (KubeVirt{"Deployed", known}) {
			t.Errorf("%+v with the binding %s", got, binding)
		}
	}
}

func TestThePlatformIsMonitoredWhereItsPodMonitorIs(t *testing.T) {
	monitor := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor",
		"metadata": map[string]any{"namespace": "vignette-system", "name": "vignette-radiod"}}}
	if got := gathererOf(monitor).monitored(t.Context()); got.IsUnknown() || !got.Value {
		t.Errorf("%+v with a PodMonitor", got)
	}
	monitor.SetNamespace("elsewhere")
	if got := gathererOf(monitor).monitored(t.Context()); got.IsUnknown() || got.Value {
		t.Errorf("%+v with one in another namespace", got)
	}
}
