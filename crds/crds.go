// Package crds holds the generated CustomResourceDefinitions, for programs that validate objects
// without a cluster and for tests that install them.
package crds

import "embed"

// Files are the definitions, one YAML file per kind.
//
//go:embed *.yaml
var Files embed.FS
