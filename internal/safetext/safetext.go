// Package safetext makes texts from outside safe to show: names, logs, files and errors of apps may contain anything.
package safetext

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxCharacters of one text from outside within a message.
const MaxCharacters = 200

// Truncate cuts a text that is longer than MaxCharacters, and adds its length.
func Truncate(text string) string { return TruncateTo(text, MaxCharacters) }

// TruncateTo cuts a text that is longer than the limit, and adds its length.
func TruncateTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	count := utf8.RuneCountInString(text)
	if count <= most {
		return text
	}
	end := 0
	for range most {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return fmt.Sprintf("%s… (%d characters)", text[:end], count)
}

// Terminal escapes control characters as \uXXXX, and bytes that are no UTF-8 as \xXX. Line feeds and tabs stay; a carriage return
// before a line feed is dropped. In JSON the text keeps its meaning.
func Terminal(text string) string {
	clean, _ := escape(text, true)
	return clean
}

// escape returns the safe text, and how many bytes of it were used: unless it is the end, an incomplete character waits.
func escape(text string, end bool) (safe string, used int) {
	var b strings.Builder
	for used < len(text) {
		rest := text[used:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case !end && (rest == "\r" || !utf8.FullRuneInString(rest)):
			return b.String(), used
		case strings.HasPrefix(rest, "\r\n"):
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case controlsTerminal(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case controlsTerminal(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		used += size
	}
	return b.String(), used
}

// controlsTerminal reports whether a terminal interprets this character: control characters, and those that change the text's direction.
func controlsTerminal(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029')
}

// Writer escapes what is written to a terminal.
type Writer struct {
	out     io.Writer
	waiting string
	err     error
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write implements io.Writer. An incomplete character waits for the next call.
func (w *Writer) Write(p []byte) (int, error) {
	text := w.waiting + string(p)
	safe, used := escape(text, false)
	w.waiting = text[used:]
	if _, err := io.WriteString(w.out, safe); err != nil {
		w.err = cmp.Or(w.err, err)
		return 0, err
	}
	return len(p), nil
}

// Err is the first error of the writer behind, for callers that do not look at each write.
func (w *Writer) Err() error { return w.err }

// Unwrap returns the writer behind a Writer, and any other unchanged.
func Unwrap(out io.Writer) io.Writer {
	if w, ok := out.(*Writer); ok {
		return w.out
	}
	return out
}

// CSVCell is a text as a cell of a CSV file. A text that a spreadsheet would take for a formula gets an apostrophe; numbers do not.
func CSVCell(text string) string {
	if formula.MatchString(text) && !number.MatchString(text) {
		return "'" + text
	}
	return text
}

var (
	// formula matches texts that a spreadsheet in some language takes for a formula.
	formula = regexp.MustCompile(`^[=+\-@\t\r\n＝＋－＠]`)
	number  = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)
