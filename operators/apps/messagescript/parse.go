package messagescript

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"vignette.dev/vignette/internal/utf8text"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// maxMessages limits the messages of a script in a ConfigMap.
const maxMessages = 10000

// Parse reads a script from a ConfigMap's key. The suffix of its name means a list in YAML or a table in CSV.
func Parse(key, text string) (messages []v1alpha1.ScriptedMessage, err error) {
	switch {
	case strings.HasSuffix(key, ".csv"):
		messages, err = parseCSV(text)
	case strings.HasSuffix(key, ".yaml"), strings.HasSuffix(key, ".yml"):
		messages, err = parseYAML(text)
	default:
		return nil, fmt.Errorf("key %s: want a name that ends in .yaml or .csv, which says the form", key)
	}
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 || len(messages) > maxMessages {
		return nil, fmt.Errorf("has %d messages: want 1 to %d", len(messages), maxMessages)
	}
	for i, m := range messages {
		if err := check(m); err != nil {
			return nil, fmt.Errorf("message %d (at %s from %s to %s): %w", i+1, m.At, m.From, m.To, err)
		}
	}
	return messages, nil
}

var columns = []string{"at", "from", "to", "type", "text", "bytes"}

// parseCSV reads a table whose first row names its columns. Type, text and bytes may be missing.
func parseCSV(text string) (messages []v1alpha1.ScriptedMessage, err error) {
	r := csv.NewReader(utf8text.NewReader(strings.NewReader(text)))
	r.Comment, r.TrimLeadingSpace = '#', true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("is empty: want a first row with the columns at, from, to, type, text and bytes")
	}
	if err != nil {
		return nil, rowError(err, nil, nil)
	}
	for i, name := range header {
		if !slices.Contains(columns, name) || slices.Index(header, name) != i {
			return nil, fmt.Errorf("column %q: want at, from, to, type, text and bytes, each once", name)
		}
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return messages, nil
		}
		if err != nil {
			return nil, rowError(err, header, row)
		}
		line, _ := r.FieldPos(0)
		m, err := fromRow(header, row)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		messages = append(messages, m)
	}
}

// rowError explains in words why a row cannot be read.
func rowError(err error, header, row []string) error {
	var found *csv.ParseError
	if !errors.As(err, &found) {
		return errors.New("is no table of rows with commas: want the columns at, from, to, type, text and bytes")
	}
	if errors.Is(err, csv.ErrFieldCount) {
		return fmt.Errorf("line %d: has %d values: want %d, as the first row has columns", found.Line, len(row), len(header))
	}
	return fmt.Errorf("line %d: has a quote that does not begin or end a value: write such a value in quotes, and a quote in it twice", found.Line)
}

func fromRow(header, row []string) (m v1alpha1.ScriptedMessage, err error) {
	for i, name := range header {
		switch name {
		case "at":
			m.At = row[i]
		case "from":
			m.From = row[i]
		case "to":
			m.To = row[i]
		case "type":
			m.Type = row[i]
		case "text":
			m.Text = row[i]
		case "bytes":
			if row[i] == "" {
				continue
			}
			bytes, err := strconv.ParseInt(row[i], 10, 32)
			if err != nil {
				return m, fmt.Errorf("bytes %q: want a number", row[i])
			}
			m.Bytes = int32(bytes)
		}
	}
	return m, nil
}

var (
	momentForm = regexp.MustCompile(`^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$`)
	typeForm   = regexp.MustCompile(`^[A-Za-z0-9_-]{0,24}$`)
)

// Limits of the CRD.
const (
	maxText  = 4096
	maxBytes = 65000
)

// check checks what the API server checks in messages of the spec.
func check(m v1alpha1.ScriptedMessage) error {
	switch {
	case !momentForm.MatchString(m.At) || len(m.At) > 32:
		return fmt.Errorf("at %q: want a duration with its unit, such as 12.5s", m.At)
	case m.From == "" || m.To == "":
		return fmt.Errorf("from %q, to %q: want both", m.From, m.To)
	case !typeForm.MatchString(m.Type):
		return fmt.Errorf("type %q: want letters, digits, - and _", m.Type)
	case utf8.RuneCountInString(m.Text) > maxText:
		return fmt.Errorf("text has %d characters: want %d at most", utf8.RuneCountInString(m.Text), maxText)
	case m.Bytes < 0 || m.Bytes > maxBytes:
		return fmt.Errorf("bytes %d: want 1 to %d", m.Bytes, maxBytes)
	}
	return nil
}
