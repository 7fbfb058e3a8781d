package crdrules

import (
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/crds"
)

func TestTheDefinitionsHaveTheRulesOfThisPackage(t *testing.T) {
	entries, err := crds.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := crds.Files.ReadFile(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatal(err)
		}
		with := crd.DeepCopy()
		if err := Apply(with, First); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(crd, with) {
			t.Errorf("crds/%s lacks rules of this package, or has others: run make generate", entry.Name())
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
