package yamlsyntax

import (
	"strings"
	"testing"
)

func TestTheLineAndTheReasonAreSaidInWords(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		line       int
	}{
		"a tab":                       {"a: 1\n\tb: 2\n", "the line is indented with a tab", 2},
		"a list that is not closed":   {"a: 1\nb: [1, 2\nc: 3\n", "the list that begins here with [ is not closed", 2},
		"an object that is not ended": {"- {a: 1\n- {a: 2}\n", "the object that begins here with { is not closed", 1},
		"a space of a web page":       {"a:\u00a01\nb: 2\n", "which is no space to YAML: write a plain space", 1},
		"a quote that is not closed":  {"a: 1\nb: \"2\nc: 3\n", "begins here with a quote does not end", 2},
		"a quote in the first line":   {"a: \"1\nb: 2\nc: 3\n", "begins here with a quote does not end", 1},
		"a single quote there":        {"a: '1\nb: 2\nc: 3", "begins here with a quote does not end", 1},
		"a quote of the first object": {"a: \"1\nb: 2\n---\nc: 3\n", "begins here with a quote does not end", 1},
		"a quote in the only line":    {"a: \"1", "begins here with a quote does not end", 1},
		"a quote in the last line":    {"a: 1\nb: \"2", "begins here with a quote does not end", 2},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check([]byte(c.text))
			if err == nil {
				t.Fatal("it is taken as YAML")
			}
			if line, why := Explain([]byte(c.text), err); line != c.line || !strings.Contains(why, c.want) {
				t.Errorf("line %d: %s; want line %d, %s", line, why, c.line, c.want)
			}
		})
	}
	if err := Check([]byte("- {a: 1}\n---\nb: 2\n")); err != nil {
		t.Errorf("two documents: %v", err)
	}
}
