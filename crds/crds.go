// Package crds holds the generated CustomResourceDefinitions, for programs that validate objects
// without a cluster and for tests that install them.
package crds

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Files are the definitions, one YAML file per kind.
//
//go:embed *.yaml
var Files embed.FS

// Definitions are those of all files, in the order of their names; each call makes new ones.
func Definitions() (found []*apiextensionsv1.CustomResourceDefinition, err error) {
	entries, err := Files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := Files.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		found = append(found, definition)
	}
	return found, nil
}
