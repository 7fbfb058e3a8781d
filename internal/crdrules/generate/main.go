// Command generate writes crds/ anew from the Go types, their markers and the rules of crdrules.
// Run it in the repository's root: go run ./internal/crdrules/generate
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/crdrules"
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate() error {
	work, err := os.MkdirTemp("", "controller-gen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	tool := filepath.Join(work, "controller-gen")
	if err := run("go", "build", "-C", "hack/tools", "-o", tool, "sigs.k8s.io/controller-tools/cmd/controller-gen"); err != nil {
		return err
	}
	if err := run(tool, "object", "crd:generateEmbeddedObjectMeta=false", "paths=./operators/api/...", "output:crd:dir=crds"); err != nil {
		return err
	}
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := addRules(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func addRules(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return err
	}
	if err := crdrules.Apply(crd, crdrules.First); err != nil {
		return err
	}
	out, err := marshal(crd)
	if err != nil {
		return err
	}
	if bytes.Equal(out, text) {
		return nil
	}
	return os.WriteFile(file, out, 0o644)
}

// marshal leaves out the status, which only the API server writes.
func marshal(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	text, err := yaml.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	delete(tree, "status")
	delete(tree["metadata"].(map[string]any), "creationTimestamp")
	out, err := yaml.Marshal(tree)
	return append([]byte("---\n"), out...), err
}
