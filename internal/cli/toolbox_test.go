package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// restrictedPod passes Pod Security `restricted`, as pods of nodes do.
func restrictedPod(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bft-live-hq", Annotations: map[string]string{v1alpha1.AnnotationToolbox: "r/toolbox:1"}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(65532)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "broker", Image: "r/mosquitto:1", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}

// toolboxIsBrought into a pod by a real API server that enforces Pod Security; the test plays the kubelet.
func toolboxIsBrought(t *testing.T, c *cluster) {
	const namespace = "strict"
	if err := c.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}} // no controller makes it here
	if err := c.kube.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	pod := restrictedPod(namespace)
	if err := c.kube.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	s, err := expand(liveCluster())
	if err != nil {
		t.Fatal(err)
	}
	node, _ := s.node("hq")
	type answer struct {
		name string
		err  error
	}
	brought := make(chan answer, 1)
	var notes bytes.Buffer
	go func() {
		name, err := c.toolbox(t.Context(), pod.DeepCopy(), s, node, streams{err: &notes})
		brought <- answer{name, err}
	}()
	there := &corev1.Pod{}
	for deadline := time.Now().Add(20 * time.Second); len(there.Spec.EphemeralContainers) == 0; time.Sleep(20 * time.Millisecond) {
		if err := c.kube.Get(t.Context(), client.ObjectKeyFromObject(pod), there); err != nil {
			t.Fatal(err)
		}
		select {
		case a := <-brought:
			t.Fatalf("the toolbox was not brought: %v", a.err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the pod has no toolbox")
		}
	}
	if got := there.Spec.EphemeralContainers[0]; got.Name != "toolbox-1" || got.Image != "r/toolbox:1" {
		t.Errorf("container %s of %s; want toolbox-1 of r/toolbox:1", got.Name, got.Image)
	}
	there.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "toolbox-1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	if err := c.kube.Status().Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if a := <-brought; a.err != nil || a.name != "toolbox-1" || !strings.Contains(notes.String(), "Adding the toolbox to node hq") {
		t.Errorf("container %q, %v, notes %q", a.name, a.err, notes.String())
	}
	if name, err := c.toolbox(t.Context(), there, s, node, streams{}); name != "toolbox-1" || err != nil {
		t.Errorf("a second shell goes to %q, %v; want the toolbox that runs", name, err)
	}
}

func TestAToolboxThatCannotStartSaysWhy(t *testing.T) {
	key := client.ObjectKey{Namespace: "team-nor", Name: "bft-live-hq"}
	for name, c := range map[string]struct {
		state corev1.ContainerState
		want  string
	}{
		"no image": {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
			"cannot get the toolbox's image r/toolbox:1 (ErrImagePull): have it put into the registry, or name another one by the chart's images.toolbox. not found"},
		"an image of root's": {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: "image will run as root"}},
			"cannot start (CreateContainerConfigError): image will run as root; kubectl -n team-nor describe pod bft-live-hq"},
		"no sleep":         {corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", Message: "no such file"}}, "ended at once (StartError): is r/toolbox:1 the toolbox's image? no such file"},
		"still on its way": {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, ""},
		"nothing is known": {corev1.ContainerState{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := toolboxFailure(c.state, "r/toolbox:1", key)
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want %q", err, c.want)
			}
		})
	}
}

func TestANodeOfAnOlderOperatorHasNoToolbox(t *testing.T) {
	e := liveCluster()
	pod := restrictedPod("team-nor")
	pod.Annotations, pod.Status.Phase, pod.OwnerReferences = nil, corev1.PodRunning, []metav1.OwnerReference{render.Owner(e)}
	c := newPlatform().cluster(t, e, pod)
	err := c.shell(t.Context(), shellPlace{node: "hq", toolbox: true}, nil, streams{})
	if err == nil || !strings.Contains(err.Error(), "kubectl debug -n team-nor -it bft-live-hq --profile=restricted --image=IMAGE") {
		t.Errorf("error %v; want what to do", err)
	}
}

func TestAShellDoesNotEnterThePodThatAnotherExperimentNamesAlike(t *testing.T) {
	other := liveCluster()
	other.Name, other.UID = "bft", "other" // with a node live-hq
	pod := restrictedPod("team-nor")
	pod.Status.Phase, pod.OwnerReferences = corev1.PodRunning, []metav1.OwnerReference{render.Owner(other)}
	err := newPlatform().cluster(t, liveCluster(), pod).shell(t.Context(), shellPlace{node: "hq"}, nil, streams{})
	if err == nil || !strings.Contains(err.Error(), "node hq of experiment bft-live is not up, its pod is gone") {
		t.Errorf("error %v; want that its own pod is gone", err)
	}
}
