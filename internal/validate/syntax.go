package validate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	yamlv3 "gopkg.in/yaml.v3"
)

// This file explains in words why a text is no YAML: the library names the wrong line, and has its own jargon.

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
	problem := yamlLine.ReplaceAllString(err.Error(), "")
	f := Finding{File: file, Line: problemLine(text, err)}
	for _, number := range []int{f.Line - 1, f.Line} { // the library may name the line after it
		if m := otherSpace.FindStringSubmatch(lineAt(text, number)); m != nil {
			f.Line, f.Message = number, fmt.Sprintf("is not YAML: the line has %+q, which is no space to YAML: write a plain space", []rune(m[1])[0])
			return f
		}
	}
	line, before := lineAt(text, f.Line), lineAt(text, f.Line-1)
	if strings.Contains(problem, "mapping values are not allowed") && indentation(before) == indentation(line) && !strings.Contains(before, ":") && before != "" {
		f.Line, problem = f.Line-1, "could not find expected ':'" // the library takes both lines for one key
	}
	if message, found := isTemplate(lineAt(text, f.Line)); found { // in other lines scripts have such placeholders
		f.Message = message
		return f
	}
	f.Message = "is not YAML: " + inWords(problem, line)
	return f
}

// otherSpace matches a space of editors and web pages where YAML needs a plain one.
var otherSpace = regexp.MustCompile(`(?:^ *|[:,{\[-] *)([\x{00A0}\x{2000}-\x{200B}\x{202F}\x{3000}\x{FEFF}])`)

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

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
	if message, found := isTemplate(lineAt(d.source, f.Line)); found && !f.Warning {
		f.Message += "; the file " + message
	}
	return f
}

// lineAt returns a line by its number, from 1.
func lineAt(text []byte, number int) string {
	for ; number > 1; number-- {
		_, after, found := bytes.Cut(text, []byte("\n"))
		if !found {
			return ""
		}
		text = after
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if number < 1 {
		return ""
	}
	return strings.TrimRight(string(line), "\r")
}

// syntaxWords has the library's words, and ours.
var syntaxWords = []struct{ problem, words string }{
	{"mapping values are not allowed", "the line has a second ': ', or is indented otherwise than its neighbours: write a value with ': ' in quotes"},
	{"did not find expected key", "the line does not belong to the lines before it: it is indented otherwise, or text follows a value in quotes or brackets"},
	{"did not find expected '-' indicator", "the line is no entry of the list before it: begin it with '- ', or indent it as the list's own key"},
	{"did not find expected ',' or ']'", "the list that begins here with [ is not closed by ], or lacks a comma"},
	{"did not find expected ',' or '}'", "the object that begins here with { is not closed by }, or lacks a comma"},
	{"could not find expected ':'", "the line is no key: a key has ': ' and its value after it"},
	{"found a tab character", "the line is indented with a tab: YAML is indented with spaces, not with tabs"},
	{"did not find expected node content", "the line lacks a value, or its value begins with a sign of YAML's own: write the value in quotes"},
	{"block sequence entries are not allowed", "a list cannot begin in the line of its key: put '- ' into the next line"},
	{"mapping keys are not allowed", "a value cannot begin with '? ': write it in quotes"},
	{"found unexpected end of stream", "the text that begins here with a quote does not end"},
	{"found unexpected document indicator", "the text that begins here with a quote does not end"},
	{"found unknown escape character", "a backslash in double quotes stands before a letter that means nothing: write it twice, or use single quotes"},
	{"did not find expected hexdecimal number", "a backslash with x, u or U in double quotes needs digits after it: use single quotes"},
	{"unknown anchor", "the line refers with * to an anchor & that is not there: write a text that begins with * in quotes"},
	{"did not find expected alphabetic or numeric character", "a name must follow * or &: write a text that begins with one of them in quotes"},
	{"did not find expected <document start>", "the line belongs to nothing, as the object before it has ended: separate objects by a line ---"},
	{"undefined tag handle", "the value begins with !: write it in quotes"},
	{"control characters are not allowed", "there are bytes that are no text: save it as text in UTF-8"},
	{"UTF-8", "there are bytes that are no text: save it as text in UTF-8"},
	{"UTF-16", "there are bytes that are no text: save it as text in UTF-8"},
	{"surrogate", "there are bytes that are no text: save it as text in UTF-8"},
	{"invalid Unicode character", "there are bytes that are no text: save it as text in UTF-8"},
	{"exceeded max depth", "brackets or indentation are nested too deeply"},
	{"excessive aliasing", "its anchors and aliases would make it too large"},
	{"found incompatible YAML document", "the line names a version of YAML that Kubernetes does not read: leave it out"},
	{"block scalar", "the lines of a text after | or > must be indented deeper than its key, by spaces only"},
}

// inWords explains a line's error. A tab causes several kinds of errors.
func inWords(problem, line string) string {
	if strings.Contains(problem, "cannot start any token") {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "\t") || strings.Contains(line, ":\t") {
			return "the line is indented with a tab: YAML is indented with spaces, not with tabs"
		}
		return "the line has a value that begins with a sign of YAML's own, such as @, ` or %: write it in quotes"
	}
	if strings.Contains(problem, "did not find expected node content") {
		for _, brackets := range []string{"[]", "{}"} {
			if strings.Count(line, brackets[:1]) > strings.Count(line, brackets[1:]) {
				problem = "did not find expected ',' or '" + brackets[1:] + "'"
			}
		}
	}
	for _, w := range syntaxWords {
		if strings.Contains(problem, w.problem) {
			return w.words
		}
	}
	return "the line breaks its rules"
}

// problemLine returns the line that a reader would call wrong. For most errors the library names the line before it, or the beginning of
// the surrounding object. Then it is the first line with which the text has this error.
func problemLine(text []byte, err error) int {
	said := 0
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		said, _ = strconv.Atoi(m[1]) // no line: 0
	}
	if said > 0 && slices.ContainsFunc(scannerProblems, func(p string) bool { return strings.Contains(err.Error(), p) }) {
		return said
	}
	ends := lineEnds(text)
	first := sort.Search(len(ends), func(i int) bool {
		cut := readAll(text[:ends[i]])
		return cut != nil && cut.Error() == err.Error()
	})
	if first == len(ends) {
		return said
	}
	return first + 1
}

// scannerProblems are those for which the library names the right line.
var scannerProblems = []string{"could not find expected ':'", "found unexpected end of stream", "found unexpected document indicator"}

// lineEnds returns the positions after each line.
func lineEnds(text []byte) (ends []int) {
	at := 0
	for line := range bytes.Lines(text) {
		at += len(line)
		ends = append(ends, at)
	}
	return ends
}

// readAll reads the documents of a text, up to the first error.
func readAll(text []byte) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for {
		var node yamlv3.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
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
			if template, found := isTemplate(lineAt(text, child.Line)); found {
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
