package nodes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/experiment/scope"
)

func TestARuntimeErrorOfAContainerIsExplained(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "own", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: `runc create failed: error mounting "/x/own/5" to rootfs at "/usr": not a directory`}}}}}}
	trouble := PodTrouble(pod, time.Time{}, time.Now())
	if want := "exit code 128 (StartError) (a file of the app has the path of a folder in its image"; trouble.Reason != scope.ReasonContainer || !strings.Contains(trouble.Message, want) || trouble.Passes {
		t.Errorf("%+v; want %q in it", trouble, want)
	}
}

func TestWhyAnAppsContainerDoesNotStartIsExplained(t *testing.T) {
	for name, c := range map[string]struct{ kubelet, said, reason, want string }{
		"no Secret":         {"CreateContainerConfigError", `secret "keys" not found`, scope.ReasonSecretNotFound, "takes a variable from Secret keys, which is not in this namespace"},
		"no key in it":      {"CreateContainerConfigError", `couldn't find key token in Secret team-nor/keys`, scope.ReasonKeyNotFound, "key token of Secret keys, which has no such key"},
		"a ConfigMap gone":  {"CreateContainerConfigError", `configmap "tracker" not found`, scope.ReasonConfigMapNotFound, "from ConfigMap tracker, which is not in this namespace"},
		"its key gone":      {"CreateContainerConfigError", `couldn't find key mode in ConfigMap team-nor/tracker`, scope.ReasonKeyNotFound, "key mode of ConfigMap tracker"},
		"a file on a path":  {"RunContainerError", `failed to create shim task: OCI runtime create failed: error mounting "/x" to rootfs at "/etc": not a directory`, scope.ReasonContainer, "the path of a folder in its image"},
		"a busy host":       {"RunContainerError", `runc create failed: unable to create new parent process: namespace path: lstat /proc/0/ns/ipc: no such file or directory`, scope.ReasonContainer, "the host was too busy"},
		"wrong platform":    {"RunContainerError", `exec /vignette/bin/agent: exec format error`, scope.ReasonContainer, "not built for this host's architecture"},
		"something unheard": {"CreateContainerError", "no space left", scope.ReasonContainer, "app tracker does not start: CreateContainerError: no space left"},
		"no image":          {"ErrImagePull", "not found", scope.ReasonImage, "image r/tracker:1: ErrImagePull: not found"},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "tracker", Image: "r/tracker:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: c.kubelet, Message: c.said}}}}}}
		trouble := PodTrouble(pod, time.Time{}, time.Now())
		if trouble.Reason != c.reason || !strings.Contains(trouble.Message, c.want) || !strings.Contains(trouble.Message, "app tracker") || trouble.Passes != (name == "a busy host") {
			t.Errorf("%s: %+v; want %s: %s", name, trouble, c.reason, c.want)
		}
	}
}

func TestARegistryThatCannotBeReachedHasHalfAMinuteToComeBack(t *testing.T) {
	started := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		runtime string
		after   time.Duration
		waits   bool
	}{
		"away":                   {`failed to do request: Head "https://r/v2/tracker": dial tcp: connect: connection refused`, 20 * time.Second, true},
		"busy":                   {"unexpected status from HEAD request: 503 Service Unavailable", 29 * time.Second, true},
		"away for half a minute": {`failed to do request: Head "https://r/v2/tracker": dial tcp: connect: connection refused`, 30 * time.Second, false},
		"has no such image":      {"r/tracker:1: not found", time.Second, false},
		"does not let it in":     {"pull access denied, repository does not exist or may require authorization", time.Second, false},
		"name that nobody knows": {`dial tcp: lookup r: no such host`, time.Second, false},
	} {
		begun := metav1.NewTime(started)
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "tracker", Image: "r/tracker:1"}}}, Status: corev1.PodStatus{StartTime: &begun, ContainerStatuses: []corev1.ContainerStatus{{Name: "tracker", Image: "r/tracker:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: c.runtime}}}}}}
		if trouble := PodTrouble(pod, started, started.Add(c.after)); (trouble == nil) != c.waits {
			t.Errorf("%s: %+v", name, trouble)
		}
		if want := " (image r/tracker:1: ErrImagePull, tried again)"; podProgress(pod) != want {
			t.Errorf("%s: its progress is %q, want %q", name, podProgress(pod), want)
		}
	}
}

func TestAPodHasTwoMinutesToFindAHostFromItsRelease(t *testing.T) {
	created := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const gated = 10 * time.Minute
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available", LastTransitionTime: metav1.NewTime(created)}}}}
	for name, c := range map[string]struct {
		released, now time.Time
		fails         bool
	}{
		"before it":            {time.Time{}, created.Add(gated), false},
		"soon after it":        {created.Add(gated), created.Add(gated + time.Minute), false},
		"two minutes after it": {created.Add(gated), created.Add(gated + unschedulableTimeout + 1), true},
	} {
		if trouble := PodTrouble(pod, c.released, c.now); (trouble != nil) != c.fails || trouble != nil && trouble.Reason != scope.ReasonUnschedulable {
			t.Errorf("%s: %+v; want a failure: %t", name, trouble, c.fails)
		}
	}
}

func TestAPodThatKubernetesEndsHasItsWords(t *testing.T) {
	deleted := &metav1.Time{Time: time.Unix(100, 0)}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"}}}}
	if got := PodTrouble(pod, time.Time{}, time.Unix(100, 0)); got.Message != "its pod was deleted before the experiment started (Eviction API: evicting)" {
		t.Errorf("before the start: %q", got.Message)
	}
	if got := LossOf("hq", pod); got.Reason != "its pod was deleted (Eviction API: evicting)" {
		t.Errorf("during a run: %q", got.Reason)
	}
	pod.Status.Phase = corev1.PodFailed
	if got := LossOf("hq", pod); got.Reason != "its pod has ended (Eviction API: evicting)" {
		t.Errorf("once its containers have ended: %q", got.Reason)
	}
}
