// Package reading has the shared parts of readers of scenario files: numbered lines, numbers, and the report on the file.
package reading

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/utf8text"
)

// MaxLineLength is in bytes. A sentence on all links of 1024 platforms has about 30 000.
const MaxLineLength = 1 << 20

const (
	// maxKinds is the most unknown kinds that are distinguished.
	maxKinds = 32
	// maxKindLength is the longest name of an unknown kind.
	maxKindLength = 40
)

// EachLine calls do for each line of a file, with its number from 1; do must not keep it. An error of do becomes one about that line.
func EachLine(r io.Reader, name string, do func(line []byte, number int) error) error {
	scanner := bufio.NewScanner(utf8text.NewReader(r))
	scanner.Buffer(make([]byte, 64<<10), MaxLineLength)
	number := 0
	for scanner.Scan() {
		number++
		if err := do(scanner.Bytes(), number); err != nil {
			return &scenario.SyntaxError{File: name, Line: number, Reason: err.Error()}
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &scenario.SyntaxError{File: name, Line: number + 1, Reason: fmt.Sprintf("the line is longer than %d bytes", MaxLineLength)}
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Float parses a finite number.
func Float(text []byte, what string) (float64, error) {
	v, err := float(string(text))
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		hint := ""
		if point := strings.Replace(string(text), ",", ".", 1); point != string(text) {
			if _, err := float(point); err == nil {
				hint = " with a decimal point, such as " + point
			}
		}
		return 0, fmt.Errorf("%s is %q: want a number%s", what, Short(text), hint)
	}
	return v, nil
}

// float parses a decimal number. It refuses 1_000 and 0x1p4, which only Go accepts.
func float(text string) (float64, error) {
	if strings.ContainsAny(text, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// Seconds parses seconds as a duration.
func Seconds(text []byte) (time.Duration, error) {
	v, err := Float(text, "time")
	if err != nil {
		return 0, err
	}
	return Duration(v)
}

// Duration converts a number of seconds.
func Duration(seconds float64) (time.Duration, error) {
	if math.Abs(seconds) > scenario.MaxDuration.Seconds() {
		return 0, fmt.Errorf("time is %s s: want seconds since the scenario's start, at most a year",
			Short([]byte(strconv.FormatFloat(seconds, 'f', -1, 64))))
	}
	return time.Duration(math.Round(seconds * 1e9)), nil
}

// Platform parses a platform's number.
func Platform(text []byte) (int, error) {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < scenario.MinPlatform || n > scenario.MaxPlatform {
		return 0, fmt.Errorf("platform is %q: want a number from %d to %d", Short(text), scenario.MinPlatform, scenario.MaxPlatform)
	}
	return n, nil
}

// Text decodes a name, which may be in a western encoding of older systems.
func Text(name []byte) string {
	if utf8.Valid(name) {
		return string(name)
	}
	decoded, err := charmap.Windows1252.NewDecoder().Bytes(name)
	if err != nil {
		return strings.ToValidUTF8(string(name), "?")
	}
	return string(decoded)
}

// Short shortens a text for an error.
func Short(text []byte) string {
	if len(text) > maxKindLength {
		return strings.ToValidUTF8(string(text[:maxKindLength]), "?") + "…"
	}
	return string(text)
}

// Tally collects the report on a file.
type Tally struct {
	report scenario.Report
	warned map[string]bool
}

// Unknown counts an unknown sentence of a kind.
func (t *Tally) Unknown(kind string) { t.UnknownTimes(kind, 1) }

// UnknownTimes counts so many unknown sentences of a kind.
func (t *Tally) UnknownTimes(kind string, n int64) {
	if t.report.Unknown == nil {
		t.report.Unknown = map[string]int64{}
	}
	kind = Label(kind)
	if _, known := t.report.Unknown[kind]; !known && len(t.report.Unknown) >= maxKinds {
		kind = "other kinds"
	}
	t.report.Unknown[kind] += n
}

// Label returns the short form of a name in a file, on one line.
func Label(name string) string {
	return strings.Map(printable, strings.ToValidUTF8(Short([]byte(strings.TrimSpace(name))), "?"))
}

// printable returns a rune, or ? for one that controls a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// Warn adds a warning, once.
func (t *Tally) Warn(warning string) {
	if t.warned == nil {
		t.warned = map[string]bool{}
	}
	if !t.warned[warning] {
		t.warned[warning] = true
		t.report.Warnings = append(t.report.Warnings, warning)
	}
}

// Origin sets the origin of absolute times.
func (t *Tally) Origin(origin time.Time) { t.report.Origin = origin }

// Report returns the report on the file.
func (t *Tally) Report() scenario.Report { return t.report }
