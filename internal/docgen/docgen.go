// Package docgen writes the reference of an object kind, as Markdown, from its definition.
package docgen

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Page is the reference of a definition's kind.
func Page(crd *apiextensionsv1.CustomResourceDefinition) string {
	version := crd.Spec.Versions[0]
	root := version.Schema.OpenAPIV3Schema
	p := &page{kind: crd.Spec.Names.Kind}
	p.line("# %s", crd.Spec.Names.Kind)
	p.line("")
	p.line("<!-- generated from the definition by make generate -->")
	p.line("")
	p.line("%s", oneLine(root.Description))
	p.line("")
	p.line("`apiVersion: %s/%s`, `kind: %s`; %s; `kubectl get %s`.", crd.Spec.Group, version.Name, crd.Spec.Names.Kind,
		scope(crd.Spec.Scope), strings.Join(append([]string{crd.Spec.Names.Plural}, crd.Spec.Names.ShortNames...), "` or `kubectl get "))
	for _, part := range []string{"spec", "status"} {
		if schema, found := root.Properties[part]; found {
			p.object(part, schema)
		}
	}
	p.rules(root.XValidations)
	return p.text.String()
}

func scope(s apiextensionsv1.ResourceScope) string {
	if s == apiextensionsv1.ClusterScoped {
		return "one for the whole cluster"
	}
	return "lives in a namespace"
}

type page struct {
	kind string
	text strings.Builder
}

// elsewhere are objects within a kind whose fields are those of another kind's spec, which has a page.
var elsewhere = map[string]string{
	"Campaign spec.template.spec": "Experiment",
	"RadioNetwork spec.waveform":  "Waveform",
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// object writes the table of an object's fields, then those of the objects within it.
func (p *page) object(path string, schema apiextensionsv1.JSONSchemaProps) {
	if len(schema.Properties) == 0 {
		return
	}
	p.line("\n## %s\n", path)
	if schema.Description != "" {
		p.line("%s\n", oneLine(schema.Description))
	}
	if kind, found := elsewhere[p.kind+" "+path]; found {
		p.line("Its fields are those of the [spec of %s](%s.md#spec).", kind, strings.ToLower(kind))
		return
	}
	p.line("| field | type | meaning |")
	p.line("|---|---|---|")
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range names {
		field := schema.Properties[name]
		required := ""
		if slices.Contains(schema.Required, name) {
			required = ", required"
		}
		p.line("| `%s` | %s%s | %s |", name, typeOf(field), required, meaning(field))
	}
	p.rules(schema.XValidations)
	for _, name := range names {
		field := schema.Properties[name]
		child := path + "." + name
		if field.Items != nil && field.Items.Schema != nil {
			field, child = *field.Items.Schema, child+"[]"
		}
		if !isKubernetesType(name) {
			p.object(child, field)
		}
	}
}

// isKubernetesType reports whether a field has a type of Kubernetes, which is documented there.
func isKubernetesType(field string) bool { return field == "resources" || field == "conditions" }

// rules writes the messages of the refusals.
func (p *page) rules(rules apiextensionsv1.ValidationRules) {
	if len(rules) == 0 {
		return
	}
	p.line("\nRefused, with these words:\n")
	for _, rule := range rules {
		p.line("- %s", oneLine(rule.Message))
	}
}

func typeOf(s apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeOf(*s.Items.Schema)
	case s.XIntOrString:
		return "integer or string"
	}
	return s.Type
}

// meaning is a field's description with its limits and refusals.
func meaning(s apiextensionsv1.JSONSchemaProps) string {
	parts := []string{oneLine(s.Description)}
	if s.Default != nil {
		parts = append(parts, fmt.Sprintf("Default: `%s`.", s.Default.Raw))
	}
	if limits := bounds(s); limits != "" {
		parts = append(parts, limits)
	}
	for _, rule := range s.XValidations {
		if s.Type != "object" {
			parts = append(parts, "Refused otherwise: "+oneLine(rule.Message)+".")
		}
	}
	return strings.ReplaceAll(strings.Join(parts, " "), "|", "\\|")
}

func bounds(s apiextensionsv1.JSONSchemaProps) string {
	var parts []string
	add := func(format string, value any) { parts = append(parts, fmt.Sprintf(format, value)) }
	if len(s.Enum) > 0 {
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = "`" + strings.Trim(string(v.Raw), `"`) + "`"
		}
		add("One of %s.", strings.Join(values, ", "))
	}
	if s.Minimum != nil {
		add("At least %s.", strconv.FormatFloat(*s.Minimum, 'f', -1, 64))
	}
	if s.Maximum != nil {
		add("At most %s.", strconv.FormatFloat(*s.Maximum, 'f', -1, 64))
	}
	if s.MaxLength != nil {
		add("At most %d characters.", *s.MaxLength)
	}
	if s.MaxItems != nil {
		add("At most %d entries.", *s.MaxItems)
	}
	if s.XIntOrString && s.Pattern != "" { // only amounts have a pattern, which is Kubernetes' own
		parts = append(parts, "An amount such as 2, 500m or 1Gi.")
	}
	return strings.Join(parts, " ")
}

// oneLine joins the lines of a description.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
