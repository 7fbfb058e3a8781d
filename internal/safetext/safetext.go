// Package safetext makes texts from outside safe to show: names, logs, files and errors of apps may hold anything.
package safetext

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Most characters of one text from outside inside a message.
const Most = 200

// Bound cuts a text that is longer than Most characters, and says how long it is.
func Bound(text string) string { return BoundTo(text, Most) }

// BoundTo cuts a text that is longer than so many characters, and says how long it is.
func BoundTo(text string, most int) string {
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

// Terminal writes what a terminal obeys as \uXXXX, and bytes that are no UTF-8 as \xXX. Line feeds and tabs stay, and a carriage return
// before a line feed is dropped. In JSON the text means the same as before.
func Terminal(text string) string {
	clean, _ := terminal(text, true)
	return clean
}

// terminal gives the safe text, and how many bytes of it were used: unless it is the end, a character that is not whole waits.
func terminal(text string, end bool) (safe string, used int) {
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
		case obeyed(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		used += size
	}
	return b.String(), used
}

// obeyed reports whether a terminal does something at this character: control characters, and those that change the direction of text.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029')
}

// Writer makes safe for a terminal what is written to it.
type Writer struct {
	out     io.Writer
	waiting string
}

// NewWriter gives a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write implements io.Writer. A character that is not whole waits for the next call.
func (w *Writer) Write(p []byte) (int, error) {
	text := w.waiting + string(p)
	safe, used := terminal(text, false)
	w.waiting = text[used:]
	if _, err := io.WriteString(w.out, safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Raw gives the writer behind a Writer, and any other as it is.
func Raw(out io.Writer) io.Writer {
	if w, ok := out.(*Writer); ok {
		return w.out
	}
	return out
}

// Cell is a text as a cell of a CSV file: one that a spreadsheet would take for a formula begins with an apostrophe. Numbers stay numbers.
func Cell(text string) string {
	if formula.MatchString(text) && !number.MatchString(text) {
		return "'" + text
	}
	return text
}

var (
	// formula begins as spreadsheets in some language know one.
	formula = regexp.MustCompile(`^[=+\-@\t\r\n＝＋－＠]`)
	number  = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)
