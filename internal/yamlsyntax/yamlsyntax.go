// Package yamlsyntax explains in words why a text is no YAML: the library names the wrong line, and has its own jargon.
package yamlsyntax

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	yamlv3 "gopkg.in/yaml.v3"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Explain says which line of a text is wrong, and why, by an error of Check.
func Explain(text []byte, err error) (number int, why string) {
	number = problemLine(text, err)
	for _, n := range []int{number - 1, number} { // the library may name the line after it
		if m := otherSpace.FindStringSubmatch(Line(text, n)); m != nil {
			return n, fmt.Sprintf("the line has %+q, which is no space to YAML: write a plain space", []rune(m[1])[0])
		}
	}
	problem := yamlLine.ReplaceAllString(err.Error(), "")
	line, before := Line(text, number), Line(text, number-1)
	if strings.Contains(problem, "mapping values are not allowed") && indentation(before) == indentation(line) && !strings.Contains(before, ":") && before != "" {
		number, problem = number-1, "could not find expected ':'" // the library takes both lines for one key
	}
	return number, inWords(problem, line)
}

// otherSpace matches a space of editors and web pages where YAML needs a plain one.
var otherSpace = regexp.MustCompile(`(?:^ *|[:,{\[-] *)([\x{00A0}\x{2000}-\x{200B}\x{202F}\x{3000}\x{FEFF}])`)

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// Line returns a line by its number, from 1.
func Line(text []byte, number int) string {
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
		if strings.Contains(err.Error(), "found unexpected") && !strings.ContainsAny(Line(text, said), `"'`) {
			return 1 // the library names the last line, not the first, where such a quote begins
		}
		return said
	}
	ends := lineEnds(text)
	first := sort.Search(len(ends), func(i int) bool {
		cut := Check(text[:ends[i]])
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

// Check reads the documents of a text, up to the first error of the library.
func Check(text []byte) error {
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
