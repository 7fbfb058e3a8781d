package render

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func quickstart(t *testing.T) Input {
	t.Helper()
	text, err := os.ReadFile("../../../operators/experiment/testdata/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict(text, e); err != nil {
		t.Fatal(err)
	}
	expanded, errs := topology.Expand(&e.Spec)
	if errs = append(errs, expanded.CheckReferences(&e.Spec)...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return Input{Experiment: e, Topology: expanded, ServerAddress: "10.96.0.20", Options: Options{
		Namespace: "vignette-system", ServerURL: "http://vignette-server.vignette-system.svc",
		AgentImage: "r/agent:1", ServerImage: "r/server:1", AnalysisImage: "r/analysis:1",
		Apps: apps.Images{Traffic: "r/traffic:1", Mosquitto: "r/mosquitto:1"}, ToolboxImage: "r/toolbox:1", PullPolicy: corev1.PullIfNotPresent,
		MemoryLimit: resource.MustParse("2Gi"), ScratchLimit: resource.MustParse("1Gi"),
	}}
}

func uids(in Input) map[string]types.UID {
	found := map[string]types.UID{}
	for _, node := range in.Topology.Nodes {
		found[node.Name] = types.UID("uid-of-" + node.Name)
	}
	return found
}

func waveforms(in Input) map[string]v1alpha1.WaveformSpec {
	return map[string]v1alpha1.WaveformSpec{
		"wan": {Link: in.Experiment.Spec.Networks[0].Link},
		"lan": {Description: "100 Mbit/s", Link: &v1alpha1.LinkModel{Delay: "1ms", Limit: 1000}},
	}
}

func checkGolden(t *testing.T, name string, objects ...any) {
	t.Helper()
	var b strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	golden.Check(t, name+".yaml", b.String())
}

func TestEveryObjectOfTheQuickstartMatchesItsGoldenFile(t *testing.T) {
	in := quickstart(t)
	for _, pod := range Pods(in) {
		checkGolden(t, "pod-"+pod.Labels[v1alpha1.LabelNode], pod)
	}
	var attachments, networks []any
	for _, a := range Attachments(in) {
		attachments = append(attachments, a)
	}
	for _, n := range RadioNetworks(in, waveforms(in), uids(in)) {
		networks = append(networks, n)
	}
	checkGolden(t, "attachments", attachments...)
	checkGolden(t, "radionetworks", networks...)
	checkGolden(t, "workflow", Workflow(in).Object)
	checkGolden(t, "access", ServiceAccount(in.Experiment, []corev1.LocalObjectReference{{Name: "registry"}}), RoleBinding(in.Experiment))
	checkGolden(t, "plan", Plan(in, waveforms(in), uids(in)))
}

func TestRenderingTwiceGivesTheSame(t *testing.T) {
	in := quickstart(t)
	if diff := cmp.Diff(Pods(in), Pods(in)); diff != "" {
		t.Error(diff)
	}
}

// configs are the agents' configurations as the kubelet would pass them.
func configs(t *testing.T, in Input) map[string]agentconfig.Config {
	t.Helper()
	found := map[string]agentconfig.Config{}
	for _, pod := range Pods(in) {
		for _, c := range pod.Spec.Containers {
			for _, variable := range c.Env {
				if variable.Name == agentconfig.Env {
					t.Setenv(agentconfig.Env, strings.ReplaceAll(variable.Value, "$$", "$"))
				}
			}
			config, err := agentconfig.FromEnv()
			if err != nil {
				t.Errorf("pod %s, container %s: %v", pod.Name, c.Name, err)
			}
			found[config.Node+"/"+config.App] = config
		}
	}
	return found
}

func TestEveryAgentCanReadItsConfiguration(t *testing.T) {
	found := configs(t, quickstart(t))
	if got := found["veh-1/tracker"].Instances[0].Command[2]; got != "$(PRICE)" {
		t.Errorf("the command's last argument arrives as %q: the kubelet must not expand it", got)
	}
	if len(found["observer/idle"].Instances) != 0 {
		t.Error("the idle agent has something to run")
	}
}

func TestEntitiesAreUniqueThroughTheExperiment(t *testing.T) {
	in := quickstart(t)
	seen := map[string]string{}
	for _, sites := range MakeSites(in) {
		for _, site := range sites {
			for i, sender := range site.Senders {
				if other, twice := seen[sender.Entity]; twice {
					t.Errorf("%s and %s are both entity %s", other, site.Instances[i], sender.Entity)
				}
				seen[sender.Entity] = site.Instances[i]
			}
		}
	}
	if len(seen) != 6 {
		t.Errorf("found %d entities, want 6: two units of nor, two of prt, one of each vehicle", len(seen))
	}
}

func TestMetricsPortsAreDistinctOnANodeAndAllowedByRadiod(t *testing.T) {
	in := quickstart(t)
	in.Experiment.Spec.Apps[2].Instances = 60
	in.Topology, _ = topology.Expand(&in.Experiment.Spec)
	for node, sites := range MakeSites(in) {
		seen := map[int]bool{}
		for i, site := range sites {
			if site.MetricsPorts[0] != 9464+i {
				t.Errorf("node %s: app %d has metrics port %d, want %d", node, i, site.MetricsPorts[0], 9464+i)
			}
			for _, port := range site.MetricsPorts {
				if port != 0 && (seen[port] || port < 9464 || port > 9499) {
					t.Errorf("node %s: port %d is taken twice or out of range", node, port)
				}
				seen[port] = true
			}
		}
	}
}

func TestTooManyInstancesForTheEnvironmentAreRefused(t *testing.T) {
	in := quickstart(t)
	in.Experiment.Spec.Apps[2].Instances = 256
	in.Topology, _ = topology.Expand(&in.Experiment.Spec)
	errs := CheckSize(Pods(in), &in.Experiment.Spec)
	if len(errs) != 1 || errs[0].Field != "spec.apps[2].instances" {
		t.Errorf("got %v, want one error that names spec.apps[2].instances", errs)
	}
	in = quickstart(t)
	if errs := CheckSize(Pods(in), &in.Experiment.Spec); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func TestPodsOfTheQuickstartPassPodSecurityRestricted(t *testing.T) {
	for _, pod := range Pods(quickstart(t)) {
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 || s.Privileged != nil {
				t.Errorf("pod %s, container %s: %+v", pod.Name, c.Name, s)
			}
		}
		if !*pod.Spec.SecurityContext.RunAsNonRoot || pod.Spec.HostNetwork || len(pod.Spec.SchedulingGates) != 1 {
			t.Errorf("pod %s: %+v", pod.Name, pod.Spec.SecurityContext)
		}
	}
}

func TestEveryContainerHasAMemoryLimitAndEveryFolderASize(t *testing.T) {
	in := quickstart(t)
	in.Experiment.Spec.Apps[4].Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")}}
	in.Topology, _ = topology.Expand(&in.Experiment.Spec)
	limits := map[string]string{}
	for _, pod := range Pods(in) {
		for _, c := range pod.Spec.Containers {
			limits[c.Name] = c.Resources.Limits.Memory().String()
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.EmptyDir != nil && volume.EmptyDir.SizeLimit == nil {
				t.Errorf("folder %s of %s has no limit", volume.Name, pod.Name)
			}
		}
	}
	want := map[string]string{"hub": "2Gi", "spoke": "2Gi", "nor-units": "2112Mi", "prt-units": "2112Mi", "radio-udp": "3Gi", "tracker": "128Mi", IdleApp: "2Gi"}
	if diff := cmp.Diff(want, limits); diff != "" {
		t.Errorf("memory limits (-want +got):\n%s", diff)
	}
	in.Experiment.Spec.Apps[4].Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	in.Topology, _ = topology.Expand(&in.Experiment.Spec)
	for _, pod := range Pods(in) {
		for _, c := range pod.Spec.Containers {
			if request := c.Resources.Requests.Memory(); request.IsZero() || c.Name == "radio-udp" && request.String() != "32Mi" {
				t.Errorf("container %s requests %s of memory; Kubernetes takes its limit where it requests none", c.Name, request)
			}
		}
	}
	in.Options.MemoryLimit = resource.Quantity{}
	if limit := Pods(in)[0].Spec.Containers[0].Resources.Limits.Memory(); !limit.IsZero() {
		t.Errorf("the administrator wants no limit, and it is %s", limit)
	}
}

func TestAnImageThatNoHostCanPullIsRefused(t *testing.T) {
	for _, image := range []string{"a", "team/tracker:1.4", "localhost/lab/x__y-z.b:Latest", "Registry.example:5000/lab/x", "[2001:db8::1]:5000/x",
		"r.example/x:1@sha256:" + strings.Repeat("0a", 32)} {
		if errs := Check(ownImage(image)); len(errs) > 0 {
			t.Errorf("%s: %v; want no error", image, errs)
		}
	}
	for _, image := range []string{"ghcr.io/Team/tracker:1", "Tracker", "tracker:", "tracker:a:b", "r.example/", "https://r.example/x", "x@sha256:12", "lab//x", "x_"} {
		if errs := Check(ownImage(image)); len(errs) != 1 || !strings.Contains(errs.ToAggregate().Error(), "spec.apps[0].image: Invalid value: \""+image+"\": is no name") {
			t.Errorf("%s: %v; want an error of its field", image, errs)
		}
	}
}

func ownImage(image string) *v1alpha1.ExperimentSpec {
	return &v1alpha1.ExperimentSpec{Apps: []v1alpha1.App{{Name: "own", Image: image, Command: []string{"/run"}}}}
}
