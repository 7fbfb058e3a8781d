// Command cmd writes the reference of every definition in a folder, and of the vignette command.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/cli"
	"vignette.dev/vignette/internal/crdrules"
	"vignette.dev/vignette/internal/docgen"
)

func main() {
	crds := flag.String("crds", "crds", "the `folder` of the definitions")
	out := flag.String("out", "docs/reference", "the `folder` to write to")
	flag.Parse()
	if err := write(*crds, *out); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func write(crds, out string) error {
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	index := "# Reference\n\n<!-- generated from the definitions by make generate -->\n\n"
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if crd.Spec.Names.Kind == "Experiment" {
			crdrules.AddFormats(crd, crdrules.ExperimentFormats())
		}
		name := strings.ToLower(crd.Spec.Names.Kind) + ".md"
		if err := os.WriteFile(filepath.Join(out, name), []byte(docgen.Page(crd)), 0o644); err != nil {
			return err
		}
		summary, _, _ := strings.Cut(strings.Join(strings.Fields(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description), " "), ". ")
		index += fmt.Sprintf("- [%s](%s): %s.\n", crd.Spec.Names.Kind, name, strings.TrimSuffix(summary, "."))
	}
	index += "- [vignette](cli.md): the commands.\n"
	if err := os.WriteFile(filepath.Join(out, "cli.md"), []byte(docgen.Commands(cli.Command())), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "README.md"), []byte(index), 0o644)
}
