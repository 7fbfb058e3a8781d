package crdrules

import (
	"reflect"
	"testing"

	"vignette.dev/vignette/crds"
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

func TestEveryRuleHasAMessageOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range First.experimentRules() {
		if rule.Message == "" || rule.MessageExpression == "" || seen[rule.Message] {
			t.Errorf("rule %.60s: message %q is empty or another rule's", rule.Rule, rule.Message)
		}
		seen[rule.Message] = true
	}
}
