// Package validate checks files of vignette's objects without a cluster, by the same schemas and
// CEL rules as the API server. It reports all errors at once, with lines.
package validate

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/charts/vignette/files/waveforms"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Stdin is the file name that stands for standard input.
const Stdin = "-"

// Finding is an error or a warning.
type Finding struct {
	File string `json:"file"`
	// Line is the field's, from 1; 0 for none.
	Line int `json:"line,omitempty"`
	// Path is the field's, such as spec.nodes[2].count; empty for the complete document.
	Path string `json:"path,omitempty"`
	// Message describes the error and the correction.
	Message string `json:"message"`
	// Warning marks a finding that may be correct.
	Warning bool `json:"warning,omitempty"`
	// Elsewhere: the cluster may have what the files lack.
	Elsewhere bool `json:"-"`
	// Awaits is the object that the files lack, if an experiment waits for it.
	Awaits Awaited `json:"-"`
}

// Awaited is an object for which an experiment waits. A Waveform has no namespace.
type Awaited struct{ Kind, Namespace, Name string }

func (f Finding) String() string {
	where := f.File
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	if f.Warning {
		where += ": warning"
	}
	if f.Path != "" {
		where += ": " + f.Path
	}
	return where + ": " + f.Message
}

// Report is the outcome for all files.
type Report struct {
	Findings []Finding
	// Objects are the checked ones, as kind/name.
	Objects []string
	// Manifests are all objects as in the files, in order, also those of other groups.
	Manifests []*unstructured.Unstructured
	// Expansions are those of the valid campaigns among them, by kind/name.
	Expansions map[string]Expansion
}

// Failed reports whether the API server or the operator would refuse any of the objects.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Warning })
}

// Summary is a report as JSON.
type Summary struct {
	Valid    bool      `json:"valid"`
	Objects  []string  `json:"objects"`
	Findings []Finding `json:"findings"`
}

// Summary returns the report's summary; its lists are never null.
func (r Report) Summary() Summary {
	return Summary{!r.Failed(), append([]string{}, r.Objects...), append([]Finding{}, r.Findings...)}
}

// Files checks the objects in files, all together; a folder means its YAML and JSON files. The error is about reading them. It calls checked,
// unless that is nil, after each object.
func Files(names []string, stdin io.Reader, checked func(done, all int)) (Report, error) {
	var report Report
	var all []*document
	names, err := inFolders(names)
	if err != nil {
		return report, err
	}
	for _, name := range names {
		text, err := ReadFile(name, stdin)
		if err != nil {
			return report, err
		}
		all = append(all, report.parse(name, text)...)
	}
	report.judge(all, nil, checked)
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		if a.File != b.File {
			return slices.Index(names, a.File) - slices.Index(names, b.File)
		}
		return byPlace(a, b)
	})
	return report, nil
}

// Text checks the objects in the text of one file.
func Text(name string, text []byte) Report { return TextBeside(name, text, nil) }

// TextBeside checks the objects in the text of one file, which may name others that the cluster has.
func TextBeside(name string, text []byte, others []*unstructured.Unstructured) (report Report) {
	report.judge(report.parse(name, text), documentsOf(others), nil)
	slices.SortStableFunc(report.Findings, byPlace)
	return report
}

// documentsOf objects of the cluster. One that cannot be read is as good as none.
func documentsOf(objects []*unstructured.Unstructured) (documents []*document) {
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			continue
		}
		found, _ := parse("the cluster", text)
		documents = append(documents, found...)
	}
	return documents
}

// byPlace orders by line and field, as the schema's own findings come in the order of a map.
func byPlace(a, b Finding) int {
	return cmp.Or(a.Line-b.Line, strings.Compare(a.Path, b.Path))
}

func (r *Report) parse(name string, text []byte) []*document {
	if name == Stdin {
		name = "standard input"
	}
	documents, findings := parse(name, text)
	findings = append(findings, twice(documents)...)
	r.Findings = append(r.Findings, findings...)
	if len(documents) == 0 && len(findings) == 0 {
		r.Findings = append(r.Findings, Finding{File: name, Message: "holds no object"})
	}
	return documents
}

// judge documents, which may name each other, and others that are not judged. It calls checked, if any, after each.
func (r *Report) judge(documents, others []*document, checked func(done, all int)) {
	known := newSurroundings(append(slices.Clone(others), documents...))
	for i, d := range documents {
		for _, f := range d.check(known.of(d.namespace())) {
			r.Findings = append(r.Findings, d.ofTemplate(f))
		}
		if checked != nil {
			checked(i+1, len(documents))
		}
		r.Manifests = append(r.Manifests, &unstructured.Unstructured{Object: d.raw})
		if d.foreign() {
			continue
		}
		r.Objects = append(r.Objects, d.kind+"/"+d.name)
		if d.expansion != nil {
			if r.Expansions == nil {
				r.Expansions = map[string]Expansion{}
			}
			r.Expansions[d.kind+"/"+d.name] = *d.expansion
		}
	}
}

// surroundings are the known objects to which others refer.
type surroundings struct {
	waveforms map[string]v1alpha1.WaveformSpec
	// scripts has the contents of the ConfigMaps in the files.
	scripts map[v1alpha1.KeyReference]string
	// fileBytes has the sizes of these contents, and of their binary data.
	fileBytes map[v1alpha1.KeyReference]int
	// scenarios has the scenarios that can be compiled here, by name.
	scenarios map[string]compiled
	// templates has the templates of nodes, by name.
	templates map[string]bool
	// contents has the keys of the ConfigMaps and Secrets in the files, by kind.
	contents map[string]keyed
	// forbidden has the Secrets in the files that lack the label by which experiments may use them.
	forbidden map[string]bool
}

// allSurroundings has those of all namespaces of the files' objects.
type allSurroundings struct {
	documents []*document
	waveforms map[string]v1alpha1.WaveformSpec
	scenarios map[*document]compiled
	made      map[string]surroundings
}

func newSurroundings(documents []*document) *allSurroundings {
	return &allSurroundings{documents, knownWaveforms(documents), compileScenarios(documents), map[string]surroundings{}}
}

// of returns those of an object's namespace. An object without a namespace gets one when applied, and may be in any.
func (a *allSurroundings) of(namespace string) surroundings {
	if known, found := a.made[namespace]; found {
		return known
	}
	known := surroundings{a.waveforms, map[v1alpha1.KeyReference]string{}, map[v1alpha1.KeyReference]int{}, map[string]compiled{}, map[string]bool{},
		map[string]keyed{"ConfigMap": {}, "Secret": {}}, map[string]bool{}}
	for _, d := range inNamespace(a.documents, namespace) {
		switch d.kind {
		case "ConfigMap":
			known.addConfigMap(d)
		case "Scenario":
			if scenario, ours := a.scenarios[d]; ours {
				known.scenarios[d.name] = scenario
			}
		case "NodeTemplate":
			known.templates[d.name] = true
		}
		known.addKeys(d)
	}
	a.made[namespace] = known
	return known
}

// inNamespace returns the objects to which those in a namespace may refer. Of two with the same name the one surely in the namespace comes last.
func inNamespace(documents []*document, namespace string) (found []*document) {
	for _, d := range documents {
		if own := d.namespace(); own == "" || namespace == "" || own == namespace {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b *document) int {
		surely := func(d *document) int {
			if d.namespace() == namespace {
				return 1
			}
			return 0
		}
		return surely(a) - surely(b)
	})
	return found
}

// addConfigMap adds a ConfigMap's text and the sizes of its contents.
func (known *surroundings) addConfigMap(d *document) {
	data, _, _ := unstructured.NestedStringMap(d.object, "data") // what is no ConfigMap holds nothing
	for key, text := range data {
		reference := v1alpha1.KeyReference{Name: d.name, Key: key}
		known.scripts[reference], known.fileBytes[reference] = text, len(text)
	}
	binary, _, _ := unstructured.NestedStringMap(d.object, "binaryData")
	for key, text := range binary {
		known.fileBytes[v1alpha1.KeyReference{Name: d.name, Key: key}] = base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(text, "=")))
	}
}

// inFolders replaces folders with the names of their files.
func inFolders(names []string) (files []string, err error) {
	for _, name := range names {
		if info, err := os.Stat(name); name == Stdin || err != nil || !info.IsDir() {
			files = append(files, name)
			continue
		}
		before := len(files)
		err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
				files = append(files, path)
			}
			return err
		})
		if err == nil && len(files) == before {
			err = fmt.Errorf("folder %s has no .yaml, .yml or .json file", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// ReadFile reads a file, or stdin for the name Stdin.
func ReadFile(name string, stdin io.Reader) ([]byte, error) {
	if name == Stdin {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// knownWaveforms returns those of the chart and those in the files.
func knownWaveforms(documents []*document) map[string]v1alpha1.WaveformSpec {
	known := map[string]v1alpha1.WaveformSpec{}
	entries, err := waveforms.Files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("embedded waveforms: %v", err)) // embedded: cannot fail
	}
	for _, entry := range entries {
		var w v1alpha1.Waveform
		text, err := waveforms.Files.ReadFile(entry.Name())
		if err == nil {
			err = yaml.Unmarshal(text, &w)
		}
		if err != nil {
			panic(fmt.Sprintf("embedded waveform %s: %v", entry.Name(), err)) // a test judges them all
		}
		known[w.Name] = w.Spec
	}
	for _, d := range documents {
		if d.kind == "Waveform" {
			var w v1alpha1.Waveform
			_ = runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &w) // its errors are reported elsewhere
			known[d.name] = w.Spec
		}
	}
	return known
}
