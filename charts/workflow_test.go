package charts

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// workflowTemplate has what the steps' pods are made of.
type workflowTemplate struct {
	Spec struct {
		SecurityContext *corev1.PodSecurityContext
		NodeSelector    map[string]string
		Templates       []struct {
			Name, PodSpecPatch string
			Container          *corev1.Container
		}
	}
}

func readWorkflow(t *testing.T) (w workflowTemplate) {
	t.Helper()
	text, err := os.ReadFile("../workflows/experiment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// patched as Argo does it: the patch is merged into the pod with the containers that Argo adds.
func patched(t *testing.T, pod corev1.PodSpec, patch string) (made corev1.PodSpec) {
	t.Helper()
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	change, err := yaml.YAMLToJSONStrict([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, change, corev1.PodSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(after, &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// TestAWorkflowsPodsNeedNoConfigurationOfArgo: Pod Security `restricted` and a quota of requests admit them.
func TestAWorkflowsPodsNeedNoConfigurationOfArgo(t *testing.T) {
	w, pods := readWorkflow(t), 0
	if c := w.Spec.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pods' security context is %+v", c)
	}
	if got := w.Spec.NodeSelector[corev1.LabelOSStable]; got != "linux" {
		t.Errorf("the pods run on hosts with %q, want linux", got)
	}
	for _, template := range w.Spec.Templates {
		if template.Container == nil {
			continue
		}
		pods++
		main := *template.Container
		main.Name = "main"
		pod := patched(t, corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "argoexec"}}, Containers: []corev1.Container{{Name: "wait", Image: "argoexec"}, main},
		}, template.PodSpecPatch)
		all := slices.Concat(pod.InitContainers, pod.Containers)
		if len(all) != 3 {
			t.Errorf("the pod of %s has %d containers, want init, wait and main", template.Name, len(all))
		}
		for _, c := range all {
			admitted(t, template.Name, c)
		}
	}
	if pods != 2 {
		t.Errorf("%d templates have a pod, want collect and analyse", pods)
	}
}

// admitted by Pod Security `restricted` and by quotas of requests.
func admitted(t *testing.T, template string, c corev1.Container) {
	t.Helper()
	if c.Image == "" {
		t.Errorf("%s: there is no container %s to patch", template, c.Name)
	}
	s := c.SecurityContext
	if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%s: container %s has the security context %+v", template, c.Name, s)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
		t.Errorf("%s: container %s requests %v, want cpu and memory", template, c.Name, c.Resources.Requests)
	}
}
