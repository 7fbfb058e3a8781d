package openapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
)

// describe an API with one operation.
func describe(t *testing.T, o Operation) map[string]any {
	t.Helper()
	text, err := Describe(API{PathParameters: map[string]string{"path": "A path."}, Problem: runapi.Problem{}, Operations: []Operation{o}})
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// at follows keys into a document.
func at(t *testing.T, document any, keys ...string) any {
	t.Helper()
	for _, key := range keys {
		inner, object := document.(map[string]any)
		if !object || inner[key] == nil {
			t.Fatalf("no %s of %s in %v", key, strings.Join(keys, " "), document)
		}
		document = inner[key]
	}
	return document
}

type thing struct {
	Name     string            `json:"name"`
	Made     *time.Time        `json:"made"`
	Parts    []string          `json:"parts"`
	Labels   map[string]string `json:"labels,omitempty"`
	Unwanted string            `json:"-"`
}

func TestFieldsThatAreAlwaysThereAreRequiredAndMayBeNullWhereGoHasNil(t *testing.T) {
	document := describe(t, Operation{Route: "GET /things/{path...}", ID: "getThing", Answer: thing{}})
	schema := at(t, document, "components", "schemas", "thing")
	if diff := cmp.Diff([]any{"name", "made", "parts"}, at(t, schema, "required")); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
	null := map[string]any{"type": "null"}
	want := map[string]any{
		"name":   map[string]any{"type": "string"},
		"made":   map[string]any{"anyOf": []any{map[string]any{"type": "string", "format": "date-time"}, null}},
		"parts":  map[string]any{"anyOf": []any{map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, null}},
		"labels": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
	}
	if diff := cmp.Diff(want, at(t, schema, "properties")); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	answer := at(t, document, "paths", "/things/{path}", "get", "responses", "200", "content", jsonType, "schema", "$ref")
	if answer != schemasPath+"thing" {
		t.Errorf("answer %v; want a reference to the schema", answer)
	}
}

func TestAnOperationWithoutAnswerHasStatus204AndEveryOneHasProblems(t *testing.T) {
	responses := at(t, describe(t, Operation{Route: "DELETE /things/{path}", ID: "deleteThing"}), "paths", "/things/{path}", "delete", "responses")
	at(t, responses, "204")
	at(t, responses, "default", "content", jsonType, "schema", "$ref")
}

func TestAPathParameterWithoutMeaningIsRefused(t *testing.T) {
	_, err := Describe(API{Problem: runapi.Problem{}, Operations: []Operation{{Route: "GET /things/{color}"}}})
	if err == nil || !strings.Contains(err.Error(), "parameter color has no meaning") {
		t.Errorf("%v; want the parameter's name", err)
	}
}

func TestDescriptionsNameFieldsAsInJSONAndLeaveOutMarkers(t *testing.T) {
	names := map[string]string{"KeptUp": "keptUp"}
	if got := inJSON("KeptUp reports whether it did.", names); got != "keptUp reports whether it did." {
		t.Errorf("%q", got)
	}
	if got := withoutMarkers("A rate,\nof bits.\n+kubebuilder:validation:Minimum=1"); got != "A rate, of bits." {
		t.Errorf("%q", got)
	}
}

func TestTheCommittedDescriptionExplainsItsTypes(t *testing.T) {
	var document any
	if err := json.Unmarshal(runapi.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	for name, schema := range at(t, document, "components", "schemas").(map[string]any) {
		if text, _ := schema.(map[string]any)["description"].(string); text == "" || strings.Contains(text, "+kubebuilder") {
			t.Errorf("%s is described as %q", name, text)
		}
	}
}
