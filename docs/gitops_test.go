package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/crds"
)

// TestFluxHasAKustomizationForEachFolder of an environment, as the how-to says.
func TestFluxHasAKustomizationForEachFolder(t *testing.T) {
	text, err := os.ReadFile("examples/gitops/flux/experiments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, found := range regexp.MustCompile(`(?m)^  path: (.*)$`).FindAllStringSubmatch(string(text), -1) {
		have = append(have, "examples/gitops/"+found[1])
	}
	want, err := filepath.Glob("examples/gitops/environments/lab/*")
	slices.Sort(have)
	if err != nil || !slices.Equal(have, want) {
		t.Errorf("Flux has %q, %v; want %q", have, err, want)
	}
}

// kind is a group and a kind as Argo CD's projects list them.
type kind struct{ Group, Kind string }

// project is an AppProject of the example for Argo CD.
type project struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Destinations                                                                     []struct{ Server, Namespace string }
		ClusterResourceWhitelist, NamespaceResourceWhitelist, NamespaceResourceBlacklist []kind
	}
}

func projects(t *testing.T) (all []project) {
	t.Helper()
	text, err := os.ReadFile("examples/gitops/argocd/experiments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var p project
		if err := yaml.Unmarshal([]byte(document), &p); err != nil {
			t.Fatal(err)
		}
		if p.Kind == "AppProject" {
			all = append(all, p)
		}
	}
	return all
}

// TestArgoCDKeepsTeamsApart: each folder has a project, which reaches one namespace and nothing that guards it.
func TestArgoCDKeepsTeamsApart(t *testing.T) {
	folders, err := filepath.Glob("examples/gitops/environments/lab/*")
	if err != nil {
		t.Fatal(err)
	}
	var have, want []string
	for _, folder := range folders {
		want = append(want, "team-"+filepath.Base(folder))
	}
	for _, p := range projects(t) {
		have = append(have, p.Metadata.Name)
		if len(p.Spec.Destinations) != 1 || p.Spec.Destinations[0].Namespace != p.Metadata.Name {
			t.Errorf("project %s reaches %v; want its namespace only", p.Metadata.Name, p.Spec.Destinations)
		}
		shared := p.Metadata.Name == "team-waveforms"
		if cluster := p.Spec.ClusterResourceWhitelist; shared != slices.Equal(cluster, []kind{{"vignette.dev", "Waveform"}}) || !shared && cluster != nil {
			t.Errorf("project %s may apply %v to the cluster", p.Metadata.Name, cluster)
		}
		for _, k := range p.Spec.NamespaceResourceWhitelist {
			if k != (kind{"", "ConfigMap"}) && k.Group != "vignette.dev" {
				t.Errorf("project %s may apply %v", p.Metadata.Name, k)
			}
		}
		if none := slices.Equal(p.Spec.NamespaceResourceBlacklist, []kind{{"*", "*"}}); p.Spec.NamespaceResourceWhitelist == nil && !none {
			t.Errorf("project %s may apply everything to its namespace", p.Metadata.Name)
		}
	}
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("Argo CD has the projects %q; want %q", have, want)
	}
}

// TestArgoCDMayApplyWhatTeamsKeepInGit: all kinds but those that are made by hand, once, and the platform's own.
func TestArgoCDMayApplyWhatTeamsKeepInGit(t *testing.T) {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range projects(t) {
		for _, d := range definitions {
			is := kind{d.Spec.Group, d.Spec.Names.Kind}
			allowed := slices.Contains(slices.Concat(p.Spec.ClusterResourceWhitelist, p.Spec.NamespaceResourceWhitelist), is)
			want := !slices.Contains([]string{"LiveChange", "Capture", "RadioNetwork"}, is.Kind) && (is.Kind == "Waveform") == (p.Metadata.Name == "team-waveforms")
			if allowed != want {
				t.Errorf("project %s allows %s: %t, want %t", p.Metadata.Name, is.Kind, allowed, want)
			}
		}
	}
}
