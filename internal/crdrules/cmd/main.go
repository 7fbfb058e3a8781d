// Command cmd adds the rules of crdrules to the definitions in a folder.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/crdrules"
)

func main() {
	folder := flag.String("crds", "crds", "the `folder` of the definitions")
	flag.Parse()
	if err := addRules(*folder); err != nil {
		fmt.Fprintln(os.Stderr, "crdrules:", err)
		os.Exit(1)
	}
}

func addRules(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := addRulesTo(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func addRulesTo(file string) error {
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
	return os.WriteFile(file, out, 0o644)
}

// marshal leaves out what only the API server writes.
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
	joinLines(tree)
	out, err := yaml.Marshal(tree)
	return append([]byte("---\n# SPDX-License-Identifier: Apache-2.0\n"), out...), err
}

// joinLines makes each paragraph of the descriptions one line: kubectl explain breaks lines itself.
func joinLines(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			joinLines(item)
		}
	case map[string]any:
		if text, ok := node["description"].(string); ok {
			paragraphs := strings.Split(text, "\n\n")
			for i, p := range paragraphs {
				paragraphs[i] = strings.Join(strings.Fields(p), " ")
			}
			node["description"] = strings.Join(paragraphs, "\n\n")
		}
		for _, value := range node {
			joinLines(value)
		}
	}
}
