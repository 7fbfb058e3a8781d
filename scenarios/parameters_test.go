package scenarios

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/operators/api/units"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// parameter is a row of parameters.csv: what is published, and where the files have it.
type parameter struct {
	study, name, value, published string
	// files are globs below this folder; waveforms/ is the library of the chart. campaigns/NAME/POINT has the points of campaigns/NAME.yaml.
	files string
	// path in the spec: fields, and elements of lists by name. * stands for any letters of a name. "Scenario:" is of that object.
	path string
	// differs is what the README says of a deviation; empty if there is none.
	differs string
}

func parameters(t *testing.T) (all []parameter) {
	t.Helper()
	file, err := os.Open("parameters.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		all = append(all, parameter{row[0], row[1], row[2], row[3], row[4], row[5], row[6]})
	}
	return all
}

// find returns the files and points of a parameter, by the names under which they are found.
func (p parameter) find(t *testing.T) (found []string) {
	t.Helper()
	for _, pattern := range strings.Fields(p.files) {
		var matching []string
		if campaign, points, ok := splitPoint(pattern); ok {
			matching = pointsOf(t, campaign, points)
		} else {
			matching = filesOf(pattern)
		}
		if len(matching) == 0 {
			t.Errorf("%s, %s: there is no %s", p.study, p.name, pattern)
		}
		found = append(found, matching...)
	}
	return found
}

func filesOf(pattern string) []string {
	if strings.HasPrefix(pattern, "waveforms/") {
		pattern = "../charts/vignette/files/" + pattern
	}
	files, _ := filepath.Glob(filepath.FromSlash(pattern))
	return slices.DeleteFunc(files, func(file string) bool { return isForm(filepath.ToSlash(file)) })
}

// isForm reports whether a file is a short form, or a campaign over a study's files.
func isForm(file string) bool {
	return strings.Contains(file, "/short/") || strings.Contains(file, "/campaigns/")
}

// TestScenariosHaveThePublishedParameters compares each file with the table. A deviation must be in the README.
func TestScenariosHaveThePublishedParameters(t *testing.T) {
	for _, p := range parameters(t) {
		if p.published == "" {
			t.Errorf("%s, %s: the table does not say where it is published", p.study, p.name)
		}
		for _, file := range p.find(t) {
			got, same := p.compare(read(t, file))
			switch {
			case p.differs == "" && !same:
				t.Errorf("%s: %s is %v; published is %s. Say so in the README under \"What differs\", and in parameters.csv", file, p.name, got, p.value)
			case p.differs != "" && same:
				t.Errorf("%s: %s is as published; parameters.csv says that it differs", file, p.name)
			case p.differs != "" && !strings.Contains(deviations(t, p.study), p.differs):
				t.Errorf("%s: %s differs, and the README has no %q under \"What differs\"", file, p.name, p.differs)
			}
		}
	}
}

// TestTheTableHasEveryStudysFiles finds files of no row, such as those of a new variant.
func TestTheTableHasEveryStudysFiles(t *testing.T) {
	named := map[string]bool{}
	for _, p := range parameters(t) {
		for _, file := range p.find(t) {
			named[filepath.ToSlash(file)] = true
		}
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, entry fs.DirEntry, err error) error {
		study, _, _ := strings.Cut(file, "/")
		isStudy := len(study) == 2 && study[0] == 'e'
		if err != nil || entry.IsDir() || !isStudy || path.Ext(file) != ".yaml" || isForm(file) {
			return err
		}
		if !named[file] {
			t.Errorf("%s: parameters.csv has no row for it", file)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, campaign := range []string{"e5/campaigns/all", "e8/campaigns/all"} { // most of their points have no file
		for _, point := range pointsOf(t, campaign, "*") {
			if !named[point] {
				t.Errorf("%s: parameters.csv has no row for it", point)
			}
		}
	}
}

func TestADeviationIsFound(t *testing.T) {
	spec := document{"Experiment": map[string]any{"a": []any{map[string]any{"name": "x-1", "qos": 1.0}, map[string]any{"name": "x-2", "qos": 1.0}, map[string]any{"name": "z"}},
		"at": "90s", "lead": "30s", "power": "37dBm"}}
	for text, want := range map[[2]string]bool{
		{"a[x-*].qos", "1"}: true, {"a[*].qos", "2"}: false, {"a[x-1].qos", "1"}: true, {"a[z].qos", "1"}: false, {"a[q*].qos", "1"}: false,
		{"a[*].name", "[x-1, x-2, z]"}: true, {"a[*].name", "[x-1, z]"}: false, {"count a", "3"}: true, {"count a[x-*] + count a[z]", "3"}: true,
		{"at - lead", "1m"}: true, {"at + lead", "1m"}: false, {"at, lead", "90s, 0.5m"}: true, {"at, lead", "90s"}: false,
		{"power", "> 36dBm"}: true, {"power", "> 37dBm"}: false, {"a[x-1].name", "contains x-"}: true, {"a[x-1].name", "contains z"}: false,
	} {
		if got, same := (parameter{path: text[0], value: text[1]}).compare(spec); same != want {
			t.Errorf("%s is %v, compared with %s: %v", text[0], got, text[1], same)
		}
	}
}

// deviations returns the part of a study's README on what differs from the publication.
func deviations(t *testing.T, study string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(study, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "## What differs")
	return strings.Join(strings.Fields(part), " ")
}

// document has the specs of a file's objects, by their kinds.
type document map[string]any

var documents = map[string]document{}

// read returns the objects of a file or point. Those of experiments have what is not written, as the platform makes it.
func read(t *testing.T, file string) document {
	t.Helper()
	if known, ok := documents[file]; ok {
		return known
	}
	if campaign, _, ok := splitPoint(file); ok {
		readPoints(t, campaign)
	} else {
		documents[file] = readFile(t, file)
	}
	return documents[file]
}

func readFile(t *testing.T, file string) document {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := document{}
	for _, part := range strings.Split(string(text), "\n---\n") {
		var object struct {
			Kind string
			Spec map[string]any
		}
		if err := yaml.Unmarshal([]byte(part), &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[object.Kind] = object.Spec
		if object.Kind == "Waveform" {
			all["Experiment"] = object.Spec
		}
	}
	all.complete(t)
	return all
}

// complete adds the default topic of publishers, and the sizes of their messages.
func (in document) complete(t *testing.T) {
	t.Helper()
	for _, value := range in.evaluate("apps[*].publisher") {
		publisher, _ := value.(map[string]any)
		if publisher["topic"] == nil {
			crd := read(t, "../crds/vignette.dev_experiments.yaml")
			publisher["topic"] = crd.evaluate("CustomResourceDefinition:versions[0].schema.openAPIV3Schema.properties.spec.properties.apps.items.properties.publisher.properties.topic.default")[0]
		}
		if payload, _ := publisher["payload"].(string); strings.HasPrefix(payload, "nffi") {
			in["Message"] = sizes(t, payload)
		}
	}
}

// splitPoint returns the campaign, without its ending, and the name of a point, or a pattern of names.
func splitPoint(path string) (campaign, point string, ok bool) {
	at := strings.LastIndex(path, "/")
	if !strings.Contains(path[:max(at, 0)], "/campaigns/") {
		return "", "", false
	}
	return path[:at], path[at+1:], true
}

// points of campaigns that have been read.
var points = map[string][]string{}

func pointsOf(t *testing.T, campaign, pattern string) (found []string) {
	t.Helper()
	readPoints(t, campaign)
	for _, name := range points[campaign] {
		if ok, _ := path.Match(pattern, name); ok {
			found = append(found, campaign+"/"+name)
		}
	}
	return found
}

func readPoints(t *testing.T, campaign string) {
	t.Helper()
	if points[campaign] != nil {
		return
	}
	text, err := os.ReadFile(campaign + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n---\n")
	var made v1alpha1.Campaign
	if err := yaml.UnmarshalStrict([]byte(parts[len(parts)-1]), &made); err != nil {
		t.Fatalf("%s: %v", campaign, err)
	}
	plan, errs := matrix.Expand(made.Name, 0, &made.Spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for _, point := range plan.Points {
		spec, err := point.Spec(&made.Spec.Template.Spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		points[campaign] = append(points[campaign], point.Name)
		documents[campaign+"/"+point.Name] = plain(t, spec.Object)
	}
}

// plain has a spec as it would be read from a file.
func plain(t *testing.T, spec map[string]any) document {
	t.Helper()
	text, err := yaml.Marshal(spec)
	var read map[string]any
	if err := errors.Join(err, yaml.Unmarshal(text, &read)); err != nil {
		t.Fatal(err)
	}
	all := document{"Experiment": read}
	all.complete(t)
	return all
}

// compare returns what a file has, and reports whether it is as published. Several paths have a value each, or one in common.
func (p parameter) compare(in document) (got any, same bool) {
	paths, want := strings.Split(p.path, ", "), []string{p.value}
	if len(paths) > 1 && strings.Contains(p.value, ", ") {
		want = strings.Split(p.value, ", ")
	}
	same = true
	var all []any
	for i, expression := range paths {
		value := in.evaluate(expression)
		all = append(all, value...)
		same = same && matches(value, want[min(i, len(want)-1)])
	}
	return all, same
}

// evaluate returns the values of an expression: those at a path, their number, or a sum.
func (in document) evaluate(expression string) []any {
	for _, sign := range []string{" + ", " - "} {
		at := strings.LastIndex(expression, sign)
		if at < 0 || sign == " + " && strings.LastIndex(expression, " - ") > at {
			continue
		}
		return sum(in.evaluate(expression[:at]), in.evaluate(expression[at+len(sign):]), sign == " - ")
	}
	if counted, ok := strings.CutPrefix(expression, "count "); ok {
		values := in.evaluate(counted)
		if len(values) == 1 {
			if list, ok := values[0].([]any); ok {
				return []any{float64(len(list))}
			}
		}
		return []any{float64(len(values))}
	}
	kind, rest, ok := strings.Cut(expression, ":")
	if !ok {
		kind, rest = "Experiment", expression
	}
	return at([]any{in[kind]}, rest)
}

// sum adds numbers or durations, and is nothing if one of them is missing.
func sum(a, b []any, minus bool) []any {
	if len(a) != 1 || len(b) != 1 {
		return nil
	}
	sign := 1.0
	if minus {
		sign = -1
	}
	if x, ok := a[0].(float64); ok {
		y, _ := b[0].(float64)
		return []any{x + sign*y}
	}
	x, err := time.ParseDuration(fmt.Sprint(a[0]))
	y, err2 := time.ParseDuration(fmt.Sprint(b[0]))
	if err != nil || err2 != nil {
		return nil
	}
	return []any{(x + time.Duration(sign)*y).String()}
}

// at returns the values at a path below others.
func at(values []any, text string) []any {
	for text != "" {
		var step string
		step, text, _ = strings.Cut(text, ".")
		name, element, _ := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		var next []any
		for _, value := range values {
			object, _ := value.(map[string]any)
			found, ok := object[name]
			switch {
			case !ok:
			case element == "":
				next = append(next, found)
			default:
				next = append(next, elements(found, element)...)
			}
		}
		values = next
	}
	return values
}

// elements returns those of a list by a pattern of their names, or by their number from 0.
func elements(list any, pattern string) (found []any) {
	all, _ := list.([]any)
	if number, err := strconv.Atoi(pattern); err == nil {
		return all[min(number, len(all)):min(number+1, len(all))]
	}
	for _, element := range all {
		object, _ := element.(map[string]any)
		name, _ := object["name"].(string)
		if ok, _ := path.Match(pattern, name); ok {
			found = append(found, element)
		}
	}
	return found
}

// matches reports whether there are values, and all are as published.
func matches(values []any, want string) bool {
	if strings.HasPrefix(want, "[") {
		var list any
		if yaml.Unmarshal([]byte(want), &list) != nil {
			return false
		}
		return reflect.DeepEqual(list, any(values)) || len(values) > 0 && !slices.ContainsFunc(values, func(v any) bool { return !reflect.DeepEqual(v, list) })
	}
	return len(values) > 0 && !slices.ContainsFunc(values, func(value any) bool { return !same(value, want) })
}

func same(value any, want string) bool {
	got := fmt.Sprint(value)
	if part, ok := strings.CutPrefix(want, "contains "); ok {
		return strings.Contains(got, part)
	}
	if least, ok := strings.CutPrefix(want, "> "); ok {
		a, b, err := quantities(got, least)
		return err == nil && a > b
	}
	if got == want || got == "map[]" && want == "{}" {
		return true
	}
	a, err := time.ParseDuration(got)
	b, err2 := time.ParseDuration(want)
	return err == nil && err2 == nil && a == b
}

// quantities reads two powers or data rates.
func quantities(a, b string) (x, y float64, err error) {
	for _, parse := range []func(string) (float64, error){units.ParsePower, units.ParseDataRate} {
		if x, err = parse(a); err != nil {
			continue
		}
		if y, err = parse(b); err == nil {
			return x, y, nil
		}
	}
	return 0, 0, err
}
