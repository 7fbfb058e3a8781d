// Package readertest has helpers for the tests of the readers of scenario files.
package readertest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

// Read is a reader with its options.
type Read func(file []byte, b *scenario.Builder) (scenario.Report, error)

// Tracks returns a reader that puts tracks into a builder by rules.
func Tracks(parse tracks.Parse, options tracks.Options, rules tracks.Rules) Read {
	return func(file []byte, b *scenario.Builder) (scenario.Report, error) {
		parsed, err := parse(bytes.NewReader(file), "files/tracks.txt", options)
		if err != nil {
			return scenario.Report{}, err
		}
		return tracks.Put(b, []tracks.Source{{File: parsed, Platform: options.Platform}}, rules)
	}
}

// Positions returns a platform's positions at some seconds of a scenario, and whether there are any.
func Positions(t testing.TB, s *scenario.Scenario, platform int, seconds ...float64) (positions []geo.Position, known []bool) {
	t.Helper()
	i, ok := s.Index(platform)
	if !ok {
		t.Fatalf("there is no platform %d among %v", platform, s.Platforms())
	}
	for _, at := range seconds {
		p, there := At(t, s, time.Duration(at*1e9)).Position(i)
		positions, known = append(positions, p), append(known, there)
	}
	return positions, known
}

// Place is a platform's expected place at some seconds of a scenario.
type Place struct {
	Platform int
	Seconds  float64
	Position geo.Position
}

// Places reports platforms at other places.
func Places(t testing.TB, s *scenario.Scenario, places ...Place) {
	t.Helper()
	for _, want := range places {
		if got, known := Positions(t, s, want.Platform, want.Seconds); !known[0] || geo.Distance(got[0], want.Position) > 0.05 {
			t.Errorf("at %g s platform %d is at %v, %t; want %v", want.Seconds, want.Platform, got[0], known[0], want.Position)
		}
	}
}

// Compile compiles a file, and fails the test if the reader refuses it.
func Compile(t testing.TB, file string, read Read) (*scenario.Scenario, scenario.Report) {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	report, err := read([]byte(file), b)
	if err != nil {
		t.Fatal(err)
	}
	return scenariotest.Open(t, b), report
}

// Same reports files whose result differs from the first's.
func Same(t *testing.T, file string, read Read, written map[string]string) {
	t.Helper()
	want := digest(t, file, read)
	for name, other := range written {
		t.Run(name, func(t *testing.T) {
			if got := digest(t, other, read); got != want {
				t.Errorf("it gives another scenario: %s instead of %s", got, want)
			}
		})
	}
}

func digest(t *testing.T, file string, read Read) string {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	if _, err := read([]byte(file), b); err != nil {
		t.Fatal(err)
	}
	digest, err := b.Write(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// UTF16 returns a text in UTF-16, little-endian, with its byte order mark.
func UTF16(text string) string {
	coded, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		panic(err) // every text has one
	}
	return coded
}

// At returns a cursor at t.
func At(t testing.TB, s *scenario.Scenario, at time.Duration) *scenario.Cursor {
	t.Helper()
	c := s.NewCursor()
	if err := c.Seek(at); err != nil {
		t.Fatal(err)
	}
	return c
}

// Refusal returns the error of a refused file, which names the line and the reason.
func Refusal(t testing.TB, file string, read Read) *scenario.SyntaxError {
	t.Helper()
	_, err := read([]byte(file), scenario.NewBuilder(scenario.Options{}))
	var syntax *scenario.SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("error is %v: want one that says where the file is wrong", err)
	}
	return syntax
}

// Wrong is a file that a reader refuses: in this line, and with these words in the reason.
type Wrong = struct {
	File   string
	Line   int
	Reason string
}

// Refused wants a reader to refuse wrong files.
func Refused(t *testing.T, read Read, files map[string]Wrong) {
	t.Helper()
	for name, wrong := range files {
		t.Run(name, func(t *testing.T) {
			err := Refusal(t, wrong.File, read)
			if err.Line != wrong.Line || !strings.Contains(err.Reason, wrong.Reason) {
				t.Errorf("error is %q: want line %d and %q", err, wrong.Line, wrong.Reason)
			}
		})
	}
}

// Fuzz fuzzes a reader: each accepted file compiles and opens, and each refusal names a line.
func Fuzz(f *testing.F, read Read) {
	f.Fuzz(func(t *testing.T, file []byte) {
		b := scenario.NewBuilder(scenario.Options{})
		defer b.Close()
		if _, err := read(file, b); err != nil {
			if syntax, ok := errors.AsType[*scenario.SyntaxError](err); !ok || syntax.Line < 1 || syntax.Reason == "" {
				t.Fatalf("error is %#v: want one with a line and a reason", err)
			}
			return
		}
		s := scenariotest.Open(t, b)
		c := s.NewCursor()
		for range 100 {
			at, more := c.Next()
			if !more {
				break
			}
			if err := c.Seek(at); err != nil {
				t.Fatal(err)
			}
		}
	})
}
