package docgen

import (
	"maps"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/crds"
)

func definition(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := crds.Files.ReadFile("vignette.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func TestAPageHasEveryFieldWithItsMeaningBoundsAndRefusals(t *testing.T) {
	page := Page(definition(t, "waveforms"))
	for _, want := range []string{
		"# Waveform\n", "one for the whole cluster", "## spec.link\n",
		"| `limit` | integer | limit is the maximum number of frames", "Default: `1000`. At least 1. At most 1000000. |",
		"| `loss` | string | loss is the share of frames lost", "must be a percentage from 0% to 100%",
		"- a waveform needs one model: link, rfpipe, tdma or emane.model",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestAPageLinksToTheKindThatHasTheFields(t *testing.T) {
	page := Page(definition(t, "campaigns"))
	if want := "## spec.template.spec\n\nspec of the experiments, before a point's levels are set in it.\n\nIts fields are those of the [spec of Experiment](experiment.md#spec).\n\n## status\n"; !strings.Contains(page, want) {
		t.Errorf("the page lacks %q:\n%s", want, page)
	}
}

func TestEveryFieldOfTheDefinitionsHasADescription(t *testing.T) {
	for _, name := range []string{"experiments", "waveforms", "scenarios"} {
		undescribed(t, name, *definition(t, name).Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
}

func undescribed(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	for name, property := range schema.Properties {
		if property.Description == "" && name != "metadata" {
			t.Errorf("%s.%s has no description for kubectl explain", path, name)
		}
		undescribed(t, path+"."+name, property)
		if property.Items != nil && property.Items.Schema != nil {
			undescribed(t, path+"."+name+"[]", *property.Items.Schema)
		}
	}
}

func TestAPageOfCommandsHasEachWithItsFlagsAndExamples(t *testing.T) {
	root := &cobra.Command{Use: "tool", Long: "tool does\nthings."}
	root.PersistentFlags().String("where", "", "a `place`")
	child := &cobra.Command{Use: "go NAME", Short: "Go there", Example: "  tool go home", Run: func(*cobra.Command, []string) {}}
	child.Flags().Int("times", 1, "so many `times`")
	hidden := &cobra.Command{Use: "secret", Hidden: true, Run: child.Run}
	root.AddCommand(child, hidden)
	page := Commands(root)
	for _, want := range []string{"# tool\n", "tool does things.", "--where place", "## tool go\n\nGo there.", "tool go NAME [flags]", "--times times", "  tool go home\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "secret") {
		t.Errorf("the page has a hidden command:\n%s", page)
	}
}

func TestFieldsThatAPageLinksToAreThoseOfTheOtherKind(t *testing.T) {
	plurals := map[string]string{"Campaign": "campaigns", "RadioNetwork": "radionetworks", "Experiment": "experiments", "Waveform": "waveforms"}
	for place, other := range elsewhere {
		kind, path, _ := strings.Cut(place, " ")
		here, there := fields(t, definition(t, plurals[kind]), path), fields(t, definition(t, plurals[other]), "spec")
		if len(here) < 10 || !maps.Equal(here, there) {
			t.Errorf("%s has other fields than the spec of %s:\n%v\n%v", place, other, here, there)
		}
	}
}

// fields of the object at a path of a kind, at any depth, with their types and descriptions.
func fields(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, path string) map[string]string {
	t.Helper()
	schema := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for name := range strings.SplitSeq(path, ".") {
		next, found := schema.Properties[name]
		if !found {
			t.Fatalf("%s has no %s", crd.Spec.Names.Kind, path)
		}
		schema = next
	}
	found := map[string]string{}
	addFields(found, "", schema)
	return found
}

func addFields(found map[string]string, path string, s apiextensionsv1.JSONSchemaProps) {
	for name, field := range s.Properties {
		found[path+name] = field.Type + ": " + field.Description
		addFields(found, path+name+".", field)
	}
	if s.Items != nil && s.Items.Schema != nil {
		addFields(found, path+"[]", *s.Items.Schema)
	}
}
