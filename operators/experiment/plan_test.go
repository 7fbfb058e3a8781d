package experiment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// platformPod is a pod as the chart creates it.
func platformPod(name, host string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "vignette-" + name + "-x", Namespace: platform, Labels: map[string]string{
		"app.kubernetes.io/part-of": "vignette", "app.kubernetes.io/name": "vignette-" + name,
		"app.kubernetes.io/version": "0.1.0", "helm.sh/chart": "vignette-0.1.0",
	}}}
	pod.Spec.NodeName = host
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: name, Image: "r/" + name + ":1", ImageID: "docker-pullable://r/" + name + "@sha256:" + name}}
	return pod
}

// stepPod is a pod that Argo has created for the analysis.
func stepPod(w *world) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "quickstart-analyse-1", Namespace: w.key.Namespace,
		Labels: map[string]string{"workflows.argoproj.io/workflow": "quickstart"}, Annotations: map[string]string{"workflows.argoproj.io/node-name": "quickstart[5].analyse(0)"}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "main", Image: "r/analysis:1", ImageID: "sha256:analysis"}, {Name: "wait", Image: "argoexec", ImageID: "sha256:argoexec"}}
	return pod
}

func TestTheRunRecordHasHostsAndImages(t *testing.T) {
	e := readExperiment(t)
	e.Labels = map[string]string{v1alpha1.LabelRerunOf: "u1"}
	node := host("n1")
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: quantity("2"), corev1.ResourceMemory: quantity("4Gi")}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: "6.1.0", OSImage: "Debian 12", Architecture: "amd64", BootID: "b1",
		KubeletVersion: "v1.34.1", ContainerRuntimeVersion: "containerd://1.7"}
	w := newWorldOf(t, e, ethernet(), node, platformPod("operator", "n1"), platformPod("radiod", "n1"))
	w.reconciler.KubernetesVersion = func() (string, error) { return "v1.34.1", nil }
	w.untilPhase(v1alpha1.PhaseCollecting)
	w.must(w.api.Create(t.Context(), stepPod(w)))
	w.untilPhase(v1alpha1.PhaseSucceeded)
	plan := w.server.states[string(w.experiment().UID)].Plan
	got := plan.Environment
	if plan.RerunOf != nil || plan.BasedOn == nil || plan.BasedOn.UID != "u1" {
		t.Errorf("rerun of %+v, based on %+v; want based on u1, as its spec is not known", plan.RerunOf, plan.BasedOn)
	}
	want := runapi.Host{Name: "n1", Nodes: []string{"nor", "observer", "prt", "veh-1", "veh-2"}, Kernel: "6.1.0", OS: "Debian 12", Architecture: "amd64",
		CPUs: 2, CPUModel: "A Processor", MemoryBytes: 4 << 30, TCPCongestionControl: "cubic", BootID: "b1", Kubelet: "v1.34.1", ContainerRuntime: "containerd://1.7"}
	if diff := cmp.Diff([]runapi.Host{want}, got.Hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if want := (runapi.Platform{Version: "0.1.0", Chart: "vignette-0.1.0", Operator: "test"}); got.Platform != want || got.Kubernetes != "v1.34.1" {
		t.Errorf("platform %+v, Kubernetes %s", got.Platform, got.Kubernetes)
	}
	images := map[string]string{}
	for _, image := range got.Images {
		images[image.Node+"/"+image.Container+"/"+image.Host] = image.ID
	}
	for name, id := range map[string]string{"/operator/": "r/operator@sha256:operator", "/radiod/n1": "r/radiod@sha256:radiod", "/analyse/": "sha256:analysis", "nor/hub/": "sha256:hub"} {
		if images[name] != id {
			t.Errorf("image of %s is %q, want %q; all: %v", name, images[name], id, images)
		}
	}
	for name := range images {
		if name == "/wait/" || name == "/main/" {
			t.Errorf("the record has Argo's own container %s", name)
		}
	}
}
