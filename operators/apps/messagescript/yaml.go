package messagescript

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	yamlv3 "gopkg.in/yaml.v3"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/internal/yamlsyntax"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const wantEntry = "want fields, such as {at: 10s, from: hq, to: all, text: hello}"

// parseYAML reads a list of messages. What the library would refuse is found before, for errors in words.
func parseYAML(text string) (messages []v1alpha1.ScriptedMessage, err error) {
	if err := yamlsyntax.Check([]byte(text)); err != nil {
		line, why := yamlsyntax.Explain([]byte(text), err)
		return nil, fmt.Errorf("line %d is not YAML: %s", line, why)
	}
	var entries []yamlv3.Node
	documents := yamlv3.NewDecoder(strings.NewReader(text))
	if err := documents.Decode(&entries); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New("is no list of messages: begin each with '- ', and " + wantEntry)
	}
	for more := any(nil); documents.Decode(&more) == nil; {
		if more != nil { // nobody would read it
			return nil, errors.New("goes on after a line ---: want one list of messages, without such a line in it")
		}
	}
	for i := range entries {
		if err := checkEntry(&entries[i]); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	if yaml.UnmarshalStrict([]byte(text), &messages) != nil {
		return nil, errors.New("a message has a field twice, also by <<, or a value that it does not take: " + wantEntry)
	}
	for i := range messages {
		if err := checkAsWritten(&entries[i], messages[i]); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	return messages, nil
}

// checkEntry checks the fields of one message.
func checkEntry(entry *yamlv3.Node) error {
	if entry = anchored(entry); entry.Kind != yamlv3.MappingNode {
		return fmt.Errorf("is %s: %s", describe(entry), wantEntry)
	}
	seen := map[string]bool{}
	for key, value := range fieldsOf(entry) {
		name := key.Value
		switch {
		case key.Kind != yamlv3.ScalarNode:
			return fmt.Errorf("has %s for a field's name: %s", describe(key), wantEntry)
		case name == "<<":
			continue
		case !slices.Contains(columns, name):
			return fmt.Errorf("there is no field %s: want %s", name, wording.Or(columns))
		case seen[name]:
			return fmt.Errorf("%s is there twice: want it once", name)
		}
		seen[name] = true
		if err := checkValue(name, value); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(name string, value *yamlv3.Node) error {
	switch {
	case value.ShortTag() == "!!null":
		return nil
	case name == "bytes" && !isSize(value):
		return fmt.Errorf("bytes is %s: want a whole number from 1 to %d, without quotes", describe(value), maxBytes)
	case value.Kind != yamlv3.ScalarNode:
		return fmt.Errorf("%s is %s: want text in quotes", name, describe(value))
	}
	return nil
}

// isSize reports whether a value is a whole number that is not out of all bounds.
func isSize(value *yamlv3.Node) bool {
	var n float64
	if tag := value.ShortTag(); tag != "!!int" && tag != "!!float" || value.Decode(&n) != nil {
		return false
	}
	return n == math.Trunc(n) && math.Abs(n) <= math.MaxInt32
}

// checkAsWritten finds text without quotes that YAML reads otherwise than it is written, such as yes.
func checkAsWritten(entry *yamlv3.Node, m v1alpha1.ScriptedMessage) error {
	read := map[string]string{"at": m.At, "from": m.From, "to": m.To, "type": m.Type, "text": m.Text}
	for key, value := range fieldsOf(anchored(entry)) {
		got, isText := read[key.Value]
		if isText && value.ShortTag() != "!!null" && got != value.Value {
			return fmt.Errorf("%s is %s, which YAML reads as %s: want text in quotes", key.Value, value.Value, got)
		}
	}
	return nil
}

// fieldsOf an object, with what their aliases stand for.
func fieldsOf(object *yamlv3.Node) func(yield func(key, value *yamlv3.Node) bool) {
	return func(yield func(key, value *yamlv3.Node) bool) {
		for i := 0; i+1 < len(object.Content); i += 2 {
			if !yield(object.Content[i], anchored(object.Content[i+1])) {
				return
			}
		}
	}
}

// anchored is what an alias stands for.
func anchored(node *yamlv3.Node) *yamlv3.Node {
	if node.Kind == yamlv3.AliasNode {
		return node.Alias
	}
	return node
}

// describe a value in an error.
func describe(value *yamlv3.Node) string {
	const most = 60
	switch {
	case value.Kind == yamlv3.SequenceNode:
		return "a list"
	case value.Kind == yamlv3.MappingNode:
		return "an object"
	case value.ShortTag() == "!!null":
		return "empty"
	case value.Style&(yamlv3.DoubleQuotedStyle|yamlv3.SingleQuotedStyle) != 0:
		return fmt.Sprintf("%q", wording.Shorten(value.Value, most))
	}
	return wording.Shorten(value.Value, most)
}
