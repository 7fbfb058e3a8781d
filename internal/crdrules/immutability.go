package crdrules

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// frozenFields of an experiment's spec may change only while it waits in the queue; true if the field is always present.
var frozenFields = []struct {
	name     string
	required bool
}{
	{"duration", false}, {"seed", false}, {"scenario", false}, {"networks", true}, {"apps", true},
	{"nodes", true}, {"timeline", false}, {"drain", false}, {"collect", false}, {"tolerances", false}, {"ttlAfterFinished", false},
	{"priority", false}, {"queueName", false}, {"tcpCongestionControl", false},
}

// immutability makes one rule per field, so that the refusal names the edited one.
func immutability() (rules apiextensionsv1.ValidationRules) {
	for _, field := range frozenFields {
		same := fmt.Sprintf("self.spec.%[1]s == oldSelf.spec.%[1]s", field.name)
		if !field.required {
			same = fmt.Sprintf("has(self.spec.%[1]s) == has(oldSelf.spec.%[1]s) && (!has(self.spec.%[1]s) || %[2]s)", field.name, same)
		}
		forbidden := apiextensionsv1.FieldValueForbidden
		rules = append(rules, apiextensionsv1.ValidationRule{
			Rule: "!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'Queued' || " + same,
			Message: field.name + " cannot change once the experiment has left the queue: " +
				"stop it with stop: true, or make a new experiment",
			FieldPath: ".spec." + field.name,
			Reason:    &forbidden,
		})
	}
	return rules
}
