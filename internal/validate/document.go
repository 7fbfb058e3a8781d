package validate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	yamlv3 "gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/utf8text"
)

// document is one YAML document with an object of vignette.
type document struct {
	file   string
	source []byte
	root   *yamlv3.Node
	object map[string]any
	// raw is the object as in the file, without defaults.
	raw  map[string]any
	kind string
	name string
	// expansion is a campaign's, once it was checked.
	expansion *Expansion
}

// namespace is the object's; empty if applying it sets one.
func (d *document) namespace() string {
	metadata, _ := d.raw["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace
}

// parse splits a file into documents and reports those that are not even an object.
func parse(file string, text []byte) (documents []*document, findings []Finding) {
	text, _ = io.ReadAll(utf8text.NewReader(bytes.NewReader(text))) // invalid text is reported below
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for {
		var node yamlv3.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return documents, findings
		}
		if err != nil {
			return documents, append(findings, syntaxFinding(file, text, err))
		}
		if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue
		}
		if found := keyProblem(file, text, &node, 0); found != nil {
			findings = append(findings, *found)
			continue
		}
		for _, object := range items(node.Content[0], 0) {
			d, found := newDocument(file, object)
			findings = append(findings, found...)
			if d != nil {
				d.source = text
				documents = append(documents, d)
			}
		}
	}
}

// items returns the items of a List, as kubectl get writes it, and of Lists in it; or the single object.
func items(root *yamlv3.Node, depth int) (objects []*yamlv3.Node) {
	kind, _ := enter(root, "kind")
	list, _ := enter(root, "items")
	switch {
	case kind != nil && kind.Value == "List" && (list == nil || list.Tag == "!!null"):
		return nil
	case kind == nil || !strings.HasSuffix(kind.Value, "List") || list == nil || list.Kind != yamlv3.SequenceNode || depth > maxDepth:
		return []*yamlv3.Node{root}
	}
	for _, item := range list.Content {
		if item.Kind == yamlv3.AliasNode { // a List may not hold itself
			objects = append(objects, item)
		} else {
			objects = append(objects, items(item, depth+1)...)
		}
	}
	return objects
}

// twice warns of objects with the name of an earlier one in the same file.
func twice(documents []*document) (findings []Finding) {
	type identity struct{ group, kind, namespace, name string }
	first := map[identity]int{}
	for _, d := range documents {
		metadata, _ := d.raw["metadata"].(map[string]any)
		apiVersion, _ := d.raw["apiVersion"].(string)
		group, _, grouped := strings.Cut(apiVersion, "/")
		if !grouped {
			group = ""
		}
		name, _ := metadata["name"].(string)
		own := identity{group, d.kind, d.namespace(), name}
		line, known := first[own]
		if known && name != "" {
			findings = append(findings, d.warning("metadata.name",
				fmt.Sprintf("%s/%s is in this file twice, first in line %d: kubectl apply makes one object of both", d.kind, name, line)))
		} else {
			first[own] = d.line("metadata.name")
		}
	}
	return findings
}

func newDocument(file string, root *yamlv3.Node) (*document, []Finding) {
	d := &document{file: file, root: root}
	fail := func(format string, args ...any) (*document, []Finding) {
		return nil, []Finding{{File: file, Line: root.Line, Message: fmt.Sprintf(format, args...)}}
	}
	if root.Kind != yamlv3.MappingNode {
		return fail("is not an object: want apiVersion, kind, metadata and spec")
	}
	var err error
	if d.object, err = contentOf(root); err != nil {
		if at := boundless(root, 0); at != nil {
			root = at // for its line
		}
		return fail("%s", unreadable(err))
	}
	d.raw = runtime.DeepCopyJSON(d.object)
	d.kind, _ = d.object["kind"].(string)
	if metadata, ok := d.object["metadata"].(map[string]any); ok {
		d.name, _ = metadata["name"].(string)
		if generated, _ := metadata["generateName"].(string); d.name == "" {
			d.name = generated
		}
	}
	apiVersion, _ := d.object["apiVersion"].(string)
	return d, d.duplicates(root, "", 0, d.checkKind(apiVersion))
}

// contentOf reads a document as Kubernetes does, by YAML 1.1.
func contentOf(root *yamlv3.Node) (object map[string]any, err error) {
	size := inlineLimit
	alone, err := inline(root, &size, 0)
	if err != nil {
		return nil, err
	}
	text, err := yamlv3.Marshal(alone)
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	return object, utiljson.Unmarshal(asJSON, &object)
}

// foreign reports whether the object is of another API group, whose schema is unknown here.
func (d *document) foreign() bool {
	apiVersion, _ := d.object["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	return group != "vignette.dev"
}

// checkKind reports errors in apiVersion and kind. Objects of other groups are not checked.
func (d *document) checkKind(apiVersion string) []Finding {
	definition, err := definitionOf(d.kind)
	group, _, _ := strings.Cut(apiVersion, "/")
	switch {
	case (apiVersion == "" || d.kind == "") && d.otherTool() != "", group == "kustomize.config.k8s.io":
		return []Finding{d.warning("", cmp.Or(d.otherTool(), toolFiles["kustomization.yaml"]))}
	case apiVersion == "" || d.kind == "":
		return []Finding{d.finding("", "needs apiVersion: vignette.dev/v1alpha1 and kind: Experiment, Campaign, Waveform, NodeTemplate, Scenario, LiveChange or Capture")}
	case d.kind == "List" && group == "v1":
		return []Finding{d.finding("items", "must be a list of objects, each with apiVersion, kind, metadata and spec")}
	case group != "vignette.dev":
		f := d.warning("kind", fmt.Sprintf("%s of %s is not an object of vignette: it was not checked", d.kind, apiVersion))
		if d.kind == "ConfigMap" || d.kind == "Secret" {
			f.Message = d.kind + " of v1 is not an object of vignette: only what the other objects take from it is checked"
		}
		if err == nil {
			f.Message += "; vignette's has apiVersion: " + definition.apiVersion()
		}
		return []Finding{f}
	case err != nil:
		return []Finding{d.finding("kind", fmt.Sprintf("%s is no kind of vignette: want Experiment, Campaign, Waveform, NodeTemplate, Scenario, LiveChange or Capture", d.kind))}
	case apiVersion != definition.apiVersion():
		return []Finding{d.finding("apiVersion", fmt.Sprintf("%s is not served: want %s", apiVersion, definition.apiVersion()))}
	}
	return nil
}

// maxDepth limits the nesting of a document, as aliases may contain themselves.
const maxDepth = 64

// duplicates reports duplicate keys, of which YAML would silently use the last, and values that YAML reads otherwise than they look.
func (d *document) duplicates(node *yamlv3.Node, path string, depth int, findings []Finding) []Finding {
	if depth > maxDepth {
		return findings
	}
	switch node.Kind {
	case yamlv3.MappingNode:
		seen := map[string]int{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			child := strings.TrimPrefix(path+"."+key.Value, ".")
			if line, twice := seen[key.Value]; twice && key.Value != "<<" {
				findings = append(findings, Finding{File: d.file, Line: key.Line, Path: child, Message: fmt.Sprintf("is given twice, first in line %d", line)})
			}
			seen[key.Value] = key.Line
			if !d.foreign() {
				findings = append(findings, d.keyReadOtherwise(key, child)...)
			}
			findings = d.duplicates(node.Content[i+1], child, depth+1, findings)
		}
	case yamlv3.ScalarNode:
		findings = append(findings, d.readAsOctal(node, path)...)
	case yamlv3.SequenceNode:
		for i, item := range node.Content {
			findings = d.duplicates(item, fmt.Sprintf("%s[%d]", path, i), depth+1, findings)
		}
	}
	return findings
}

// finding returns a finding about the field at a path.
func (d *document) finding(path, message string) Finding {
	return Finding{File: d.file, Line: d.line(path), Path: path, Message: message}
}

func (d *document) warning(path, message string) Finding {
	f := d.finding(path, message)
	f.Warning = true
	return f
}

// line returns the line of the field at a path, or of the path's innermost existing part. The path names list entries
// by number, or by their name or moment.
func (d *document) line(path string) int {
	_, line, _ := d.find(path)
	return line
}

// node returns the node of the field at a path; nil if it does not exist.
func (d *document) node(path string) *yamlv3.Node {
	node, _, found := d.find(path)
	if !found {
		return nil
	}
	return node
}

func (d *document) find(path string) (node *yamlv3.Node, line int, found bool) {
	node, line = d.root, d.root.Line
	for range maxDepth {
		step, rest := nextStep(path)
		if step == "" {
			return node, line, true
		}
		child, childLine := enter(node, step)
		if child == nil {
			return node, line, false
		}
		node, line, path = child, childLine, rest
	}
	return node, line, false
}

// nextStep cuts the first key or [entry] off a path.
func nextStep(path string) (step, rest string) {
	path = strings.TrimPrefix(path, ".")
	if strings.HasPrefix(path, "[") {
		if end := strings.Index(path, "]"); end > 0 {
			return path[:end+1], path[end+1:]
		}
	}
	if end := strings.IndexAny(path, ".["); end > 0 {
		return path[:end], path[end:]
	}
	return path, ""
}

// enter returns the child of a node and its line; a field begins at its key's line.
func enter(node *yamlv3.Node, step string) (*yamlv3.Node, int) {
	for range maxDepth {
		if node.Kind != yamlv3.AliasNode || node.Alias == nil {
			break
		}
		node = node.Alias
	}
	switch {
	case node.Kind == yamlv3.MappingNode && !strings.HasPrefix(step, "["):
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case node.Kind == yamlv3.SequenceNode && strings.HasPrefix(step, "["):
		entry := strings.Trim(step, "[]")
		if i, err := strconv.Atoi(entry); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
		for _, item := range node.Content {
			if value, _ := enterAny(item, "name", "at"); value != nil && value.Value == entry {
				return item, item.Line
			}
		}
	}
	return nil, 0
}

func enterAny(node *yamlv3.Node, keys ...string) (*yamlv3.Node, int) {
	for _, key := range keys {
		if node.Kind == yamlv3.SequenceNode {
			return nil, 0
		}
		if child, line := enter(node, key); child != nil {
			return child, line
		}
	}
	return nil, 0
}
