package environment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/runapi"
)

func environment() *runapi.Environment {
	return &runapi.Environment{
		Platform: runapi.Platform{Version: "0.1.0", Chart: "vignette-0.1.0", Operator: "abc"}, Kubernetes: "v1.34.1",
		Hosts: []runapi.Host{{Name: "n1", Nodes: []string{"nor"}, Kernel: "6.1", OS: "Debian 12", Architecture: "amd64", CPUs: 2, MemoryBytes: 4 << 30, BootID: "b", Kubelet: "v1.34.1", ContainerRuntime: "containerd://1.7"}},
		Images: []runapi.Image{{Node: "nor", Container: "bft", ID: "r/bft@sha256:1"}, {Container: "operator", ID: "r/operator@sha256:1"},
			{Container: "radiod", Host: "n1", ID: "r/radiod@sha256:1"}, {Container: "analyse", ID: "sha256:1"}},
	}
}

func TestDifferencesNameWhatWasAndWhatIs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(now *runapi.Environment)
		want   []runapi.Difference
	}{
		"none":             {func(*runapi.Environment) {}, nil},
		"a newer platform": {func(now *runapi.Environment) { now.Platform.Version = "0.2.0" }, []runapi.Difference{{What: "platform: version", Before: "0.1.0", Now: "0.2.0"}}},
		"a newer cluster":  {func(now *runapi.Environment) { now.Kubernetes = "v1.35.0" }, []runapi.Difference{{What: "Kubernetes", Before: "v1.34.1", Now: "v1.35.0"}}},
		"a host of another size": {func(now *runapi.Environment) { now.Hosts[0].CPUs, now.Hosts[0].MemoryBytes = 4, 8<<30+4096 },
			[]runapi.Difference{{What: "host n1: processors", Before: "2", Now: "4"}, {What: "host n1: memory", Before: "4.0 GiB", Now: "8.0 GiB"}}},
		"a few bytes of memory":     {func(now *runapi.Environment) { now.Hosts[0].MemoryBytes -= 1 << 20 }, nil},
		"a host that is gone":       {func(now *runapi.Environment) { now.Hosts[0].Name = "n2" }, []runapi.Difference{{What: "host n1", Before: "there", Now: Absent}}},
		"hosts that nobody told":    {func(now *runapi.Environment) { now.Hosts = nil }, nil},
		"a version nobody told":     {func(now *runapi.Environment) { now.Platform.Operator = "" }, nil},
		"radiod of another image":   {func(now *runapi.Environment) { now.Images[2].ID = "r/radiod@sha256:2" }, []runapi.Difference{{What: "image of radiod on host n1", Before: "r/radiod@sha256:1", Now: "r/radiod@sha256:2"}}},
		"an app's image":            {func(now *runapi.Environment) { now.Images[0].ID = "other" }, nil}, // it does not run yet
		"an image not running now":  {func(now *runapi.Environment) { now.Images = now.Images[:2] }, nil},
		"an operator of other code": {func(now *runapi.Environment) { now.Images[1].ID = "x" }, []runapi.Difference{{What: "image of operator", Before: "r/operator@sha256:1", Now: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			now := environment()
			c.change(now)
			if diff := cmp.Diff(c.want, Differences(environment(), now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePlatformIsWhatItsPodsSay(t *testing.T) {
	pod := func(name, host string, containers ...string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelName: name, labelVersion: "0.1.0", labelChart: "vignette-0.1.0"}}, Spec: corev1.PodSpec{NodeName: host}}
		for _, c := range containers {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c, Image: "r/" + c + ":1", ImageID: "docker-pullable://r/" + c + "@sha256:1"})
		}
		return p
	}
	leaving := pod("vignette-operator", "n1", "operator")
	deleted := metav1.Now()
	leaving.DeletionTimestamp, leaving.Labels[labelVersion] = &deleted, "0.0.9"
	platform, images := Platform([]corev1.Pod{pod("vignette-operator", "n1", "operator"), pod("vignette-server", "n1", "server", "compare"),
		pod("vignette-radiod", "n2", "radiod"), pod("prometheus", "n1", "prometheus"), leaving})
	want := []runapi.Image{{Container: "operator", Image: "r/operator:1", ID: "r/operator@sha256:1"}, {Container: "server", Image: "r/server:1", ID: "r/server@sha256:1"},
		{Container: "compare", Image: "r/compare:1", ID: "r/compare@sha256:1"}, {Container: "radiod", Host: "n2", Image: "r/radiod:1", ID: "r/radiod@sha256:1"}}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if platform != (runapi.Platform{Version: "0.1.0", Chart: "vignette-0.1.0"}) {
		t.Errorf("platform %+v", platform)
	}
}
