package validate

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "gopkg.in/yaml.v3"

	"vignette.dev/vignette/internal/yamlsyntax"
)

// helm matches what only a template of Helm has, placeholder that of any tool.
var (
	helm = regexp.MustCompile(`\{\{-?\s*(\.(Values|Release|Chart|Capabilities|Files|Template)\b|` +
		`(include|template|define|if|else|range|with|end|tpl|toYaml|default|required|lookup|printf)\b|\$|/\*)`)
	placeholder = regexp.MustCompile(`\{\{.*?\}\}|\{%.*?%\}|\$\{[A-Za-z_]\w*\}`)
)

const (
	renderHelm     = "is a Helm template: render it first, with helm template NAME CHART | vignette validate -"
	renderTemplate = "has placeholders of a template: render it first, with the tool that it is for"
)

// syntaxFinding explains why a text is no YAML, and where.
func syntaxFinding(file string, text []byte, err error) Finding {
	if f, found := templateFinding(file, text); found && f.Message == renderHelm {
		return f
	}
	f := Finding{File: file}
	f.Line, f.Message = yamlsyntax.Explain(text, err)
	if message, found := isTemplate(yamlsyntax.Line(text, f.Line)); found { // in other lines scripts have such placeholders
		f.Message = message
		return f
	}
	f.Message = "is not YAML: " + f.Message
	return f
}

// templateFinding is about a text that must be rendered to become YAML.
func templateFinding(file string, text []byte) (Finding, bool) {
	for _, kind := range []struct {
		pattern *regexp.Regexp
		message string
	}{{helm, renderHelm}, {placeholder, renderTemplate}} {
		if at := kind.pattern.FindIndex(text); at != nil {
			return Finding{File: file, Line: 1 + bytes.Count(text[:at[0]], []byte("\n")), Message: kind.message}, true
		}
	}
	return Finding{}, false
}

// isTemplate reports whether a line has a placeholder, and returns the message for it.
func isTemplate(line string) (message string, found bool) {
	f, found := templateFinding("", []byte(line))
	return f.Message, found
}

// ofTemplate adds to an error in a line with a placeholder that the text must be rendered first.
func (d *document) ofTemplate(f Finding) Finding {
	if message, found := isTemplate(yamlsyntax.Line(d.source, f.Line)); found && !f.Warning {
		f.Message += "; the file " + message
	}
	return f
}

// toolFiles are other tools' files in folders of objects.
var toolFiles = map[string]string{
	"kustomization.yaml": "is Kustomize's: kustomize build FOLDER | vignette validate -",
	"kustomization.yml":  "is Kustomize's: kustomize build FOLDER | vignette validate -",
	"Chart.yaml":         "belongs to a Helm chart: helm template NAME FOLDER | vignette validate -",
	"values.yaml":        "belongs to a Helm chart: helm template NAME FOLDER | vignette validate -",
}

// otherTool names the tool of a file without apiVersion and kind, if known.
func (d *document) otherTool() string {
	return toolFiles[filepath.Base(d.file)]
}

// keyProblem reports a key that is no text, which no object of Kubernetes has.
func keyProblem(file string, text []byte, node *yamlv3.Node, depth int) *Finding {
	if depth > maxDepth {
		return nil
	}
	for i, child := range node.Content {
		if node.Kind == yamlv3.MappingNode && i%2 == 0 && child.Kind != yamlv3.ScalarNode && child.Kind != yamlv3.AliasNode {
			message := "a key must be text, not a list or an object"
			if template, found := isTemplate(yamlsyntax.Line(text, child.Line)); found {
				message = template
			}
			return &Finding{File: file, Line: child.Line, Message: message}
		}
		if found := keyProblem(file, text, child, depth+1); found != nil {
			return found
		}
	}
	return nil
}

var errTooLarge = errors.New("its anchors and aliases would make it too large")

// inline replaces aliases with copies, so that an item of a List can be checked alone. It stops at a size
// that no object has.
func inline(node *yamlv3.Node, budget *int, depth int) (*yamlv3.Node, error) {
	if *budget--; *budget < 0 || depth > inlineDeepest {
		return nil, errTooLarge
	}
	if node.Kind == yamlv3.AliasNode && node.Alias != nil {
		return inline(node.Alias, budget, depth+1)
	}
	made := *node
	made.Anchor, made.Content = "", make([]*yamlv3.Node, len(node.Content))
	if made.ShortTag() == "!!null" {
		made.Value = "null" // nothing at all would be written as an empty text within braces
	}
	for i, child := range node.Content {
		own, err := inline(child, budget, depth+1)
		if err != nil {
			return nil, err
		}
		made.Content[i] = own
	}
	return &made, nil
}

// Limits of the nodes of one object, and of their nesting.
const (
	inlineLimit   = 1 << 20
	inlineDeepest = 1000
)

// unreadable explains why a YAML object is no object of Kubernetes.
func unreadable(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, errTooLarge), strings.Contains(text, "excessive aliasing"):
		return errTooLarge.Error()
	case strings.Contains(text, "NaN"), strings.Contains(text, "Inf"):
		return "has a number without bounds, .inf or .nan, which no field takes"
	case strings.Contains(text, "map merge requires"):
		return "<< takes an anchor of an object, such as *defaults"
	case strings.Contains(text, "unknown anchor"):
		return "refers with * to an anchor & that is not in the same object"
	}
	return "has a value that no field takes: want text, numbers, true or false, lists and objects"
}

var unbounded = regexp.MustCompile(`^(?i)[-+]?\.(inf|nan)$`)

// boundless returns a number without bounds, such as .inf; nil if there is none.
func boundless(node *yamlv3.Node, depth int) *yamlv3.Node {
	if depth > maxDepth {
		return nil
	}
	if node.Kind == yamlv3.ScalarNode && node.Style == 0 && unbounded.MatchString(node.Value) {
		return node
	}
	for _, child := range node.Content {
		if found := boundless(child, depth+1); found != nil {
			return found
		}
	}
	return nil
}

var octal = regexp.MustCompile(`^[-+]?0[0-7]+$`)

// readAsOctal warns of a number such as 010, which is 8 to Kubernetes.
func (d *document) readAsOctal(node *yamlv3.Node, path string) []Finding {
	if node.Style != 0 || !octal.MatchString(node.Value) || d.foreign() || !strings.HasPrefix(path, "spec.") {
		return nil
	}
	read, err := strconv.ParseInt(node.Value, 8, 64)
	meant, errMeant := strconv.ParseInt(node.Value, 10, 64)
	if err != nil || errMeant != nil || read == meant {
		return nil
	}
	return []Finding{{File: d.file, Line: node.Line, Path: path, Warning: true,
		Message: fmt.Sprintf("YAML reads %s without quotes as %d: write %d, or text in quotes, %q", node.Value, read, meant, node.Value)}}
}

var plainWord = regexp.MustCompile(`^(?i:y|n|yes|no|on|off)$`)

// keyReadOtherwise reports keys without quotes that Kubernetes reads as true or false. A jammer's off is read correctly.
func (d *document) keyReadOtherwise(key *yamlv3.Node, path string) (findings []Finding) {
	if key.Style != 0 || !plainWord.MatchString(key.Value) || len(key.Value) == 1 || strings.HasSuffix(path, "jammer."+key.Value) {
		return nil
	}
	return []Finding{{File: d.file, Line: key.Line, Path: path, Message: fmt.Sprintf("YAML reads %s without quotes as true or false; write it in quotes, %[1]q", key.Value)}}
}
