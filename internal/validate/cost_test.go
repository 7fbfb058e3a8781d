package validate

import (
	"os"
	"regexp"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"vignette.dev/vignette/crds"
	"vignette.dev/vignette/internal/crdrules"
)

// staticLimit is the API server's limit on the estimated cost of one rule, times the most
// evaluations within the schema's limits (StaticEstimatedCostLimit of apiextensions-apiserver).
const (
	staticLimit    = 10_000_000
	staticCRDLimit = 100_000_000
)

func TestEveryRuleKeepsWithinTheAPIServersCostLimits(t *testing.T) {
	all, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		t.Run(crd.Name, func(t *testing.T) {
			d, err := newDefinition(crd, crdrules.First)
			if err != nil {
				t.Fatal(err)
			}
			total := checkCosts(t, d.crd.Spec.Names.Kind, d.structural, true, 1)
			t.Logf("%d of %d", total, staticCRDLimit)
			if total > staticCRDLimit {
				t.Errorf("all rules together are estimated at %d: the limit is %d", total, staticCRDLimit)
			}
		})
	}
}

// oldestRules are those of the oldest API server that the chart supports. It takes no new rule that the version before it would not know.
func oldestRules(t *testing.T) *environment.EnvSet {
	t.Helper()
	text, err := os.ReadFile("../../charts/vignette/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	oldest := regexp.MustCompile(`(?m)^kubeVersion: ">=(.*)-0"$`).FindSubmatch(text)
	if oldest == nil {
		t.Fatal("the chart has no kubeVersion")
	}
	return environment.MustBaseEnvSet(version.MustParse(string(oldest[1])).SubtractMinor(1), true)
}

// checkCosts walks a schema as the API server does when the definition is created.
func checkCosts(t *testing.T, path string, s *schema.Structural, root bool, times uint64) (total uint64) {
	t.Helper()
	results, err := cel.Compile(s, model.SchemaDeclType(s, root), apiservercel.PerCallLimit,
		oldestRules(t), cel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for i, r := range results {
		if r.Error != nil || r.MessageExpressionError != nil {
			t.Errorf("%s, rule %d (%s): %v %v", path, i, s.XValidations[i].Message, r.Error, r.MessageExpressionError)
			continue
		}
		cost := r.MaxCost * times
		total += cost + r.MessageExpressionMaxCost
		t.Logf("%9d + %9d  %s: %.100s", cost, r.MessageExpressionMaxCost, path, s.XValidations[i].Message)
		if cost > staticLimit || r.MessageExpressionMaxCost > staticLimit {
			t.Errorf("%s, rule %q: estimated cost %d, of its message %d: the limit is %d", path,
				s.XValidations[i].Message, cost, r.MessageExpressionMaxCost, staticLimit)
		}
	}
	for name, property := range s.Properties {
		total += checkCosts(t, path+"."+name, &property, false, times)
	}
	if s.Items != nil && s.ValueValidation != nil && s.ValueValidation.MaxItems != nil {
		total += checkCosts(t, path+"[]", s.Items, false, times*uint64(*s.ValueValidation.MaxItems))
	} else if s.Items != nil && hasRules(s.Items) {
		t.Errorf("%s has no bound, so the rules below it have none", path)
	}
	return total
}

func hasRules(s *schema.Structural) bool {
	if len(s.XValidations) > 0 || (s.Items != nil && hasRules(s.Items)) {
		return true
	}
	for _, property := range s.Properties {
		if hasRules(&property) {
			return true
		}
	}
	return false
}
