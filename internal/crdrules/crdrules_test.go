package crdrules

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"vignette.dev/vignette/crds"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/trafficconfig"
)

func TestTheDefinitionsHaveTheRulesOfThisPackage(t *testing.T) {
	all, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		with := crd.DeepCopy()
		if err := Apply(with, First); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(crd, with) {
			t.Errorf("%s in crds lacks rules of this package, or has others: run make generate", crd.Name)
		}
	}
}

func TestTheDefinitionOfExperimentsHasTheProtocolsAndTheirBrokers(t *testing.T) {
	all, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Spec.Names.Kind == "Experiment" })
	app := all[i].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["apps"].Items.Schema.Properties
	var protocols, transports []string
	for _, p := range trafficconfig.Protocols {
		protocols = append(protocols, strconv.Quote(p.Name))
		for _, kind := range p.Brokers {
			if _, known := app[kind]; !known {
				t.Errorf("broker %s of protocol %s is no field of an app", kind, p.Name)
			}
		}
	}
	for _, p := range messagingconfig.Transports {
		transports = append(transports, strconv.Quote(p.Name))
	}
	for _, field := range []struct {
		app, name string
		want      []string
	}{{"publisher", "protocol", protocols}, {"subscriber", "protocol", protocols}, {"messaging", "transport", transports}} {
		var values []string
		for _, value := range app[field.app].Properties[field.name].Enum {
			values = append(values, string(value.Raw))
		}
		if slices.Sort(values); !slices.Equal(values, slices.Sorted(slices.Values(field.want))) {
			t.Errorf("%s.%s is one of %v; want the registry's %v", field.app, field.name, values, field.want)
		}
	}
}

func TestEveryRuleHasAMessageOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range First.experimentRules() {
		if rule.Message == "" || rule.MessageExpression == "" || seen[rule.Message] {
			t.Errorf("rule %.60s: message %q is empty or another rule's", rule.Rule, rule.Message)
		}
		seen[rule.Message] = true
	}
}

func TestStringsOfTheWrongFormatAreFoundWithoutTheChartsPolicy(t *testing.T) {
	experiment := map[string]any{"spec": map[string]any{
		"apps": []any{map[string]any{"name": "own", "env": []any{
			map[string]any{"name": "MODE"}, map[string]any{"name": "1st", "secret": map[string]any{"name": "", "key": "a b"}},
		}}},
		"collect": map[string]any{"captures": []any{"lan", ""}},
	}}
	var found []string
	for _, e := range CheckFormats(experiment) {
		found = append(found, e.Error())
	}
	want := []string{
		`spec.apps[0].env[1].name: Invalid value: "1st": must be letters, digits and underscores, with no digit first`,
		`spec.apps[0].env[1].secret.key: Invalid value: "a b": must be letters, digits, dots, hyphens and underscores`,
		`spec.apps[0].env[1].secret.name: Invalid value: "": must be the name of an object: lower-case letters, digits, hyphens and dots, with a letter or digit first and last`,
		`spec.collect.captures[1]: Invalid value: "": must not be empty`,
	}
	slices.Sort(found)
	if !slices.Equal(found, want) {
		t.Errorf("found:\n%s\nwant:\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

// TestPartsOfAPatternTakeWhatItTakes holds rules that stand for a costly pattern against it.
func TestPartsOfAPatternTakeWhatItTakes(t *testing.T) {
	pattern := regexp.MustCompile(`^(#|([^#+/\s]*|[+])(/([^#+/\s]*|[+]))*(/#)?)$`)
	parts := parted[pattern.String()]
	if len(parts) != 2 {
		t.Fatalf("%d parts of the pattern of topic filters: want 2", len(parts))
	}
	refused := func(topic string) bool {
		for _, part := range parts {
			inner, _ := strings.CutPrefix(part, "!self.matches(r'")
			if regexp.MustCompile(strings.TrimSuffix(inner, "')")).MatchString(topic) {
				return true
			}
		}
		return false
	}
	signs := []string{"a", "/", "#", "+", " "}
	for n := range 5 * 5 * 5 * 5 * 5 { // all topics of five signs
		topic := ""
		for range 5 {
			topic, n = topic+signs[n%5], n/5
		}
		for i := range topic {
			if refused(topic[i:]) == pattern.MatchString(topic[i:]) {
				t.Fatalf("topic %q: refused is %v by the parts", topic[i:], refused(topic[i:]))
			}
		}
	}
}
