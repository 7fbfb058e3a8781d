package validate

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "gopkg.in/yaml.v3"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/crdrules"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// check reports what the API server would refuse, and more: it checks every rule despite other
// errors, and refuses unknown fields, as kubectl does.
func (d *document) check(known surroundings) []Finding {
	definition, err := definitionOf(d.kind)
	if err != nil || d.object["apiVersion"] != definition.apiVersion() {
		return nil // it was reported already
	}
	findings := append(d.checkMetadata(), d.unknownFields(definition.structural)...)
	defaulting.Default(d.object, definition.structural)
	for _, e := range d.errors(definition) {
		findings = append(findings, d.explain(e)...)
	}
	if len(findings) == 0 {
		findings = d.unaccepted(known)
	}
	if d.kind == "Campaign" && len(findings) == 0 {
		d.expansion, findings = d.expand(known)
	}
	if d.kind == "Experiment" {
		findings = append(findings, d.unknownWaveforms(known.waveforms)...)
		findings = append(findings, d.unknownObjects(known)...)
	}
	if !slices.ContainsFunc(findings, func(f Finding) bool { return !f.Warning }) {
		findings = append(findings, d.missingContents(known)...)
	}
	return findings
}

// unknownFields removes and reports fields that the schema does not have.
func (d *document) unknownFields(s *schema.Structural) (findings []Finding) {
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	paths := pruning.PruneWithOptions(d.object, s, true, options)
	err, unknown := objectmeta.CoerceWithOptions(nil, d.object, s, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		findings = append(findings, d.explain(err)...)
		delete(d.object, "metadata")
	}
	for _, path := range slices.Concat(paths, unknown) {
		findings = append(findings, d.finding(path, "there is no such field"+otherField(s, path)))
	}
	return findings
}

func (d *document) errors(definition *definition) (errs field.ErrorList) {
	object := &unstructured.Unstructured{Object: d.object}
	namespaced := definition.crd.Spec.Scope == "Namespaced"
	if _, ok := d.object["metadata"].(map[string]any); ok || d.object["metadata"] == nil {
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace("default") // kubectl fills it in
		}
		if generated := object.GetGenerateName(); object.GetName() == "" && generated != "" {
			if len(validation.NameIsDNSSubdomain(generated, true)) > 0 {
				generated = "" // which is said of generateName
			}
			object.SetName(generated + "abcde") // the API server fills it in, with five letters
		}
		errs = append(errs, validation.ValidateObjectMetaAccessor(object, namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	}
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, d.object, definition.schema)...)
	if slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Type == field.ErrorTypeTooMany }) {
		return errs // rules are made for lists of at most so many entries, and take minutes for longer ones
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, definition.structural, d.object)...)
	if d.kind == "Experiment" {
		errs = append(errs, crdrules.CheckFormats(d.object)...)
	}
	return append(errs, d.breaches(definition)...)
}

// budget is the cost limit of the CEL rules, far above the API server's: messages here list every problem.
const budget = 1_000_000_000

// breaches returns the violated CEL rules. A rule that cannot be evaluated depends on an error that the
// schema has refused already.
func (d *document) breaches(definition *definition) (errs field.ErrorList) {
	all, _ := definition.rules.Validate(context.Background(), nil, definition.structural, d.object, nil, budget)
	for _, e := range all {
		if !strings.Contains(e.Detail, " evaluating rule: ") && !strings.Contains(e.Detail, "call arguments did not match") {
			errs = append(errs, e)
		}
	}
	return errs
}

// messagePath is the path at the beginning of crdrules' messages.
var messagePath = regexp.MustCompile(`^((?:spec|metadata)(?:\.[A-Za-z]+|\[[^\]]*\])+): (.*)$`)

// explain turns an error into findings, each with its line.
func (d *document) explain(e *field.Error) (findings []Finding) {
	path := strings.TrimPrefix(e.Field, "<nil>")
	if path == "" && strings.Contains(e.Detail, "must validate at least one schema") {
		return nil // another error says what no alternative accepts
	}
	if strings.Contains(e.Detail, "must be of type integer,string") {
		return []Finding{d.finding(path, "must be a whole number, or text in quotes"+quoted(d.node(path)))}
	}
	for _, message := range splitProblems(describe(e) + d.wanted(e, path)) {
		if m := messagePath.FindStringSubmatch(message); m != nil {
			findings = append(findings, d.finding(m[1], m[2]+brokersOf(m[2])+d.perhaps(m[2])+d.holderOf(m[1], m[2])))
			continue
		}
		findings = append(findings, d.finding(path, d.withValue(e, path, message)+unitsOf(message)+d.numbersOf(path, message)))
	}
	return findings
}

// withValue puts a field's text before what a rule says of it, as such errors have only its type.
func (d *document) withValue(e *field.Error, path, message string) string {
	node := d.node(path)
	if e.BadValue != any("string") || node == nil || node.Kind != yamlv3.ScalarNode || node.Value == "" || strings.Contains(message, node.Value) {
		return message
	}
	return fmt.Sprintf("%q%s%s", wording.Shorten(node.Value, longestValue), separator(message), message)
}

// longestValue is of which length a value is shown in a finding.
const longestValue = 60

// unitsOf adds the units of a frequency, of which the rule gives two examples. Nothing is added to other messages.
func unitsOf(message string) string {
	if !strings.Contains(message, "must be a frequency above zero with its unit") {
		return ""
	}
	return "; the units are Hz, kHz, MHz and GHz"
}

var otherProtocol = regexp.MustCompile(`does not speak (\S+)$`)

// brokersOf adds what speaks the protocol that an app does not. Nothing is added to other messages.
func brokersOf(detail string) string {
	m := otherProtocol.FindStringSubmatch(detail)
	if m == nil {
		return ""
	}
	brokers := trafficconfig.ProtocolOf(v1alpha1.Protocol(m[1])).Brokers
	if len(brokers) == 0 { // another check refuses the protocol, or the broker
		return ""
	}
	return ": want an app with " + strings.Join(brokers, " or ")
}

// otherCount matches the message about a range of another length than count.
var otherCount = regexp.MustCompile(`^(\d+)-(\d+) is not a range of as many platforms as count says$`)

// numbersOf adds the numbers that disagree, which are too costly for the API server's rule. Nothing is added to other messages.
func (d *document) numbersOf(path, message string) string {
	m := otherCount.FindStringSubmatch(message)
	count := d.node(strings.TrimSuffix(path, "platforms") + "count")
	if m == nil || count == nil {
		return ""
	}
	first, _ := strconv.Atoi(m[1]) // digits, as the pattern says
	last, _ := strconv.Atoi(m[2])
	if last < first {
		return fmt.Sprintf(": write the smaller number first, and count is %s", count.Value)
	}
	return fmt.Sprintf(": it has %d, and count is %s", last-first+1, count.Value)
}

var (
	// unknownName matches the end of a message about one name that an experiment does not have.
	unknownName = regexp.MustCompile(`there is no (app|network|group or node) ([^ ,]+)(?: to go (?:from|to))?$`)
	// unknownTarget matches that about an app in the timeline, which names no node.
	unknownTarget = regexp.MustCompile(`no node runs ([^ ,/]+): want app, node/app or group/app$`)
)

// perhaps adds what an unknown name may mean. Nothing is added to other messages.
func (d *document) perhaps(message string) string {
	if m := unknownTarget.FindStringSubmatch(message); m != nil {
		return d.perhapsTarget(m[1])
	}
	m := unknownName.FindStringSubmatch(message)
	switch {
	case m == nil:
		return ""
	case m[1] == "group or node":
		return d.perhapsMember(m[2])
	case m[1] == "app" && d.hasNode(m[2]):
		return fmt.Sprintf(", but a node: write %s/ and the app", m[2])
	}
	return wording.DidYouMean(m[2], d.namesOf(m[1]+"s"))
}

// perhapsTarget is what a name may mean that the timeline starts or stops. An app that no node runs has no other.
func (d *document) perhapsTarget(name string) string {
	apps := d.namesOf("apps")
	switch {
	case d.hasNode(name) || slices.Contains(d.members(), name):
		return fmt.Sprintf(": write %s/ and the app", name)
	case slices.Contains(apps, name):
		return ""
	}
	return wording.DidYouMean(name, apps)
}

// perhapsMember is what a name of no group and no node may mean.
func (d *document) perhapsMember(name string) string {
	for _, fields := range d.entriesOf("nodes") {
		if count, counted := fields["count"].(int64); counted && strings.HasPrefix(name, fmt.Sprint(fields["name"], "-")) {
			return fmt.Sprintf(": count of %[1]s makes %[1]s-1 to %[1]s-%d", fields["name"], count)
		}
	}
	return wording.DidYouMean(name, d.members())
}

// members are the names of groups and of the entries of nodes.
func (d *document) members() (names []string) {
	for _, fields := range d.entriesOf("nodes") {
		for _, key := range []string{"name", "group"} {
			if name, _ := fields[key].(string); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// hasNode reports whether an experiment has a node, which may be one of an entry with count.
func (d *document) hasNode(name string) bool {
	return slices.ContainsFunc(d.entriesOf("nodes"), func(fields map[string]any) bool {
		count, counted := fields["count"].(int64)
		if !counted {
			return fields["name"] == name
		}
		of := fmt.Sprint(fields["name"], "-")
		number, err := strconv.ParseInt(strings.TrimPrefix(name, of), 10, 64)
		return err == nil && strings.HasPrefix(name, of) && number >= 1 && number <= count
	})
}

// namesOf are the names of an experiment's entries of a list.
func (d *document) namesOf(list string) (names []string) {
	for _, fields := range d.entriesOf(list) {
		if fields["name"] != nil {
			names = append(names, fmt.Sprint(fields["name"]))
		}
	}
	return names
}

// entriesOf a list of the spec are their fields, nil where one is no object. What is no list has none. Both are refused already.
func (d *document) entriesOf(list string) (all []map[string]any) {
	entries, _, _ := unstructured.NestedSlice(d.object, "spec", list)
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		all = append(all, fields)
	}
	return all
}

// wanted adds the field's value to an error that only names types: 65 for a duration should read 65s. To others it adds a way out.
func (d *document) wanted(e *field.Error, path string) string {
	if e.Type == field.ErrorTypeTooMany && path == "spec.timeline" {
		return ". Comm effects of a scenario change links as often as you like: see commEffects of a network"
	}
	definition, err := definitionOf(d.kind)
	if e.Type != field.ErrorTypeTypeInvalid || err != nil {
		return ""
	}
	s := schemaAt(definition.structural, path)
	switch {
	case s == nil:
		return ""
	case s.Type == "object":
		return wantedFields(s, e)
	case s.Type != "string":
		return ""
	}
	must := Must(d.kind, path)
	switch {
	case strings.Contains(e.Detail, `"boolean"`): // a word that was meant as text
		return d.readOtherwise(path)
	case strings.Contains(must, "in quotes"):
		return ": write it in quotes" + quoted(d.node(path))
	case must != "" && must != "must not be empty":
		return ": it " + must
	}
	return d.readOtherwise(path)
}

// wantedFields adds the fields of an object to an error about another type, and for nothing at all how to write one of defaults.
func wantedFields(s *schema.Structural, e *field.Error) (words string) {
	fields := fieldsOf(s)
	if strings.Contains(e.Detail, `"null"`) && (s.ValueValidation == nil || len(s.ValueValidation.Required) == 0) {
		words = ": write {} for its defaults"
	}
	if len(fields) == 0 {
		return words
	}
	if words == "" {
		return ": its fields are " + strings.Join(fields, ", ")
	}
	return words + "; its fields are " + strings.Join(fields, ", ")
}

// Must returns what a field of a kind must be, such as "must be a duration with its unit"; empty if its definition does not say.
func Must(kind, path string) string {
	definition, err := definitionOf(kind)
	if err != nil {
		return ""
	}
	s := schemaAt(definition.structural, path)
	if words := crdrules.WordsOf(path); kind == "Experiment" && words != "" {
		return words
	}
	if s == nil || len(s.XValidations) == 0 || !strings.HasPrefix(s.XValidations[0].Message, "must be ") {
		return ""
	}
	return s.XValidations[0].Message
}

// readOtherwise explains YAML's reading of a word or number without quotes in place of text.
func (d *document) readOtherwise(path string) string {
	node := d.node(path)
	if node == nil || node.Kind != yamlv3.ScalarNode || node.Style&(yamlv3.SingleQuotedStyle|yamlv3.DoubleQuotedStyle) != 0 {
		return ""
	}
	return fmt.Sprintf(": YAML reads %s without quotes as something else than text; write it in quotes%s", node.Value, quoted(node))
}

// splitProblems splits a message of crdrules that lists several problems.
func splitProblems(message string) (problems []string) {
	for _, part := range strings.Split(message, crdrules.Separator) {
		if len(problems) > 0 && !messagePath.MatchString(part) {
			problems[len(problems)-1] += crdrules.Separator + part
			continue
		}
		problems = append(problems, part)
	}
	return problems
}

var (
	inBody      = regexp.MustCompile(`^\S* in body `)
	shouldMatch = regexp.MustCompile(`^should match '.*'$`)
	wrongType   = regexp.MustCompile(`^must be of type (\w+): "(\w+)"$`)
	usedRegex   = regexp.MustCompile(`, regex used for validation is '.*'\)$`)
	tooFew      = regexp.MustCompile(`^should have at least (\d+) items$`)
)

// describe describes an error in words, without the path.
func describe(e *field.Error) string {
	detail := inBody.ReplaceAllString(e.Detail, "")
	if shouldMatch.MatchString(detail) { // only amounts have a pattern, which is Kubernetes' own
		detail = "must be an amount such as 2, 500m or 1Gi"
	}
	if m := wrongType.FindStringSubmatch(detail); m != nil {
		if m[1] == "array" {
			return fmt.Sprintf("must be a list such as [a, b], not one %s", m[2])
		}
		return fmt.Sprintf("must be of type %s, not %s", m[1], m[2])
	}
	if m := tooFew.FindStringSubmatch(detail); m != nil {
		return "needs more entries: at least " + m[1]
	}
	detail = usedRegex.ReplaceAllString(detail, ")")
	if strings.Contains(detail, "RFC 1123 subdomain must") || strings.Contains(detail, "RFC 1123 label must") {
		detail = "must be lower-case letters, digits and hyphens, with a letter or digit first and last"
	}
	switch {
	case e.Type == field.ErrorTypeRequired && detail == "":
		return "is required"
	case e.Type == field.ErrorTypeDuplicate && detail == "":
		return "has the name of an earlier entry" + nameIn(e.BadValue)
	case e.Type == field.ErrorTypeInvalid || e.Type == field.ErrorTypeRequired || e.Type == field.ErrorTypeForbidden:
		if value, ok := e.BadValue.(string); ok && value != "" && !typeNames[value] && !strings.Contains(detail, value) {
			return fmt.Sprintf("%q%s%s", value, separator(detail), detail)
		}
		return detail
	}
	return strings.Replace(e.ErrorBody(), e.Detail, detail, 1)
}

// nameIn returns the name that a duplicate's key has, if it has one.
func nameIn(key any) string {
	if keys, ok := key.(map[string]any); ok && keys["name"] != nil {
		return fmt.Sprintf(", %v", keys["name"])
	}
	return ""
}

// predicate matches the beginning of a statement about a value, as opposed to a complete sentence.
var predicate = regexp.MustCompile(`^(must|should|is|are|has|needs|lies|does|cannot|takes|names|ends) `)

// separator returns the text between a value and its problem.
func separator(detail string) string {
	if predicate.MatchString(detail) {
		return " "
	}
	return ": "
}

// typeNames replace the value in the errors of CEL rules.
var typeNames = map[string]bool{"object": true, "array": true, "string": true, "integer": true, "number": true, "boolean": true}

// unknownWaveforms warns of waveforms that neither the chart nor the files have; the cluster may have them.
func (d *document) unknownWaveforms(known map[string]v1alpha1.WaveformSpec) (findings []Finding) {
	for i, network := range d.entriesOf("networks") {
		name, _ := network["waveform"].(string)
		if _, found := known[name]; name != "" && !found {
			findings = append(findings, d.awaited(fmt.Sprintf("spec.networks[%d].waveform", i), Awaited{Kind: "Waveform", Name: name}, name+" is not in the library of the chart, nor among these objects"+meant(name, known)))
		}
	}
	return findings
}

// unknownObjects warns of a scenario and of templates of nodes that are not in the files.
func (d *document) unknownObjects(known surroundings) (findings []Finding) {
	if name, _, _ := unstructured.NestedString(d.object, "spec", "scenario", "ref"); name != "" && !there(known.scenarios, name) {
		findings = append(findings, d.awaited("spec.scenario.ref", Awaited{"Scenario", d.namespace(), name}, "Scenario "+name+" is not among these objects"+meant(name, known.scenarios)))
	}
	for i, node := range d.entriesOf("nodes") {
		if name, _, _ := unstructured.NestedString(node, "vm", "template"); name != "" && !known.templates[name] {
			findings = append(findings, d.awaited(fmt.Sprintf("spec.nodes[%d].vm.template", i), Awaited{"NodeTemplate", d.namespace(), name}, "NodeTemplate "+name+" is not among these objects"))
		}
	}
	return findings
}

// meant proposes a known name that differs little.
func meant[V any](name string, known map[string]V) string {
	return wording.InParentheses(wording.Meant(wording.Nearest(name, slices.Sorted(maps.Keys(known)))))
}

func there[V any](known map[string]V, name string) bool {
	_, found := known[name]
	return found
}

// awaited warns of an object for which an experiment waits.
func (d *document) awaited(path string, object Awaited, what string) Finding {
	f := d.warning(path, fmt.Sprintf("%s: until the cluster has it, the experiment waits with %s=False", what, v1alpha1.ConditionAccepted))
	f.Awaits = object
	return f
}
