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

// TestArgoCDMayApplyWhatTeamsKeepInGit: all kinds but those that are made by hand, once, and the platform's own.
func TestArgoCDMayApplyWhatTeamsKeepInGit(t *testing.T) {
	text, err := os.ReadFile("examples/gitops/argocd/experiments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(text), "\n---\n")
	type kind struct{ Group, Kind string }
	var project struct {
		Spec struct{ ClusterResourceWhitelist, NamespaceResourceWhitelist []kind }
	}
	if err := yaml.Unmarshal([]byte(document), &project); err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		is := kind{d.Spec.Group, d.Spec.Names.Kind}
		allowed := slices.Contains(slices.Concat(project.Spec.ClusterResourceWhitelist, project.Spec.NamespaceResourceWhitelist), is)
		if want := !slices.Contains([]string{"LiveChange", "Capture", "RadioNetwork"}, is.Kind); allowed != want {
			t.Errorf("the project allows %s: %t, want %t", is.Kind, allowed, want)
		}
	}
}
