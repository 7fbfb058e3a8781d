package render

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// amounts are resources of a node, from pairs of a name and an amount.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// onNode is the quickstart whose third entry, veh with radio-udp and tracker, has resources as a whole.
func onNode(t *testing.T, r *corev1.ResourceRequirements) Input {
	t.Helper()
	in := quickstart(t)
	in.Experiment.Spec.Nodes[2].Resources = r
	in.Topology, _ = topology.Expand(&in.Experiment.Spec)
	return in
}

func TestResourcesOfANodeAreThoseOfItsPod(t *testing.T) {
	in := onNode(t, &corev1.ResourceRequirements{Limits: amounts("cpu", "4", "memory", "1Gi")})
	for _, pod := range Pods(in) {
		if !strings.HasPrefix(pod.Labels[v1alpha1.LabelNode], "veh-") {
			if pod.Spec.Resources != nil {
				t.Errorf("pod %s has resources %v; want none", pod.Name, pod.Spec.Resources)
			}
			continue
		}
		if got := pod.Spec.Resources.Limits.Cpu().String(); got != "4" {
			t.Errorf("pod %s has a limit of %s processors; want 4", pod.Name, got)
		}
		for i, want := range []string{"1Gi", "128Mi"} { // the default of 2Gi is lowered, the user's own is not
			if c := pod.Spec.Containers[i]; c.Resources.Limits.Memory().String() != want {
				t.Errorf("container %s has a limit of %s; want %s", c.Name, c.Resources.Limits.Memory(), want)
			}
		}
	}
	if errs := CheckNodeResources(Pods(in), &in.Experiment.Spec, in.Topology); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func TestAppsKnowTheMemoryLimitOfTheirContainerNodeOrMachine(t *testing.T) {
	in := onNode(t, &corev1.ResourceRequirements{Limits: amounts("memory", "512Mi")})
	limits := func() map[string]int64 {
		found := map[string]int64{}
		for node, sites := range MakeSites(in) {
			for _, site := range sites {
				found[node+"/"+site.App.Name] = site.MemoryLimit
			}
		}
		return found
	}
	if got := limits(); got["veh-1/radio-udp"] != 512<<20 || got["veh-1/tracker"] != 128<<20 || got["nor/hub"] != 2<<30 {
		t.Errorf("the limits are %v; want the node's 512Mi, the app's own 128Mi and the default, 2Gi", got)
	}
	in.Options.MemoryLimit = resource.Quantity{}
	if got := limits(); got["veh-1/radio-udp"] != 512<<20 || got["nor/hub"] != 0 {
		t.Errorf("without a default the limits are %v; want the node's 512Mi, and none", got)
	}
	in = machines(t)
	for _, node := range VMNodes(in.Topology) {
		for _, site := range MakeSites(in)[node.Name] {
			want := settingsOf(in, node).Memory.Quantity()
			if own := site.App.Resources; own != nil && own.Limits.Memory().Sign() > 0 {
				want = *own.Limits.Memory()
			}
			if site.MemoryLimit != want.Value() {
				t.Errorf("app %s of machine %s may use %d; want %s", site.App.Name, node.Name, site.MemoryLimit, want.String())
			}
		}
	}
}

func TestResourcesThatNoNodeMayHaveAreRefused(t *testing.T) {
	const field = "spec.nodes[2].resources"
	for name, c := range map[string]struct {
		r    corev1.ResourceRequirements
		vm   bool
		want string
	}{
		"a limit below an app's": {corev1.ResourceRequirements{Limits: amounts("memory", "100Mi")}, false,
			field + `.limits.memory: Invalid value: "100Mi": app tracker has a limit of 128Mi: want a limit of the node that is no lower`},
		"less than apps request": {corev1.ResourceRequirements{Requests: amounts("cpu", "50m")}, false,
			field + `.requests.cpu: Invalid value: "50m": apps of the node request 60m: want so much at least`},
		"a limit below requests": {corev1.ResourceRequirements{Limits: amounts("cpu", "50m")}, false,
			field + `.limits.cpu: Invalid value: "50m": apps of the node request 60m: want so much at least`},
		"other resources": {corev1.ResourceRequirements{Limits: amounts("ephemeral-storage", "1Gi")}, false,
			field + `.limits: Unsupported value: "ephemeral-storage": supported values: "cpu", "memory"`},
		"a request above its limit": {corev1.ResourceRequirements{Requests: amounts("cpu", "2"), Limits: amounts("cpu", "1")}, false,
			field + `.requests.cpu: Invalid value: "2": is above the limit, 1`},
		"claims": {corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "x"}}}, false, field + ".claims: Forbidden: the platform's pods have no claims"},
		"a virtual machine": {corev1.ResourceRequirements{Limits: amounts("cpu", "4")}, true,
			field + ": Forbidden: a virtual machine has vm.cores and vm.memory: leave out resources"},
	} {
		t.Run(name, func(t *testing.T) {
			in := onNode(t, &c.r)
			if c.vm {
				in.Experiment.Spec.Nodes[2].Runtime = v1alpha1.RuntimeVM
			}
			errs := Check(&in.Experiment.Spec)
			if len(errs) == 0 {
				errs = CheckNodeResources(Pods(in), &in.Experiment.Spec, in.Topology)
			}
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want) {
				t.Errorf("%v; want %s", errs.ToAggregate(), c.want)
			}
		})
	}
}
