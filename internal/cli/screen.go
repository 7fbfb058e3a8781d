package cli

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"vignette.dev/vignette/internal/safetext"
)

// screen shows frames of lines in place on a terminal.
type screen struct {
	out io.Writer
	// size of the terminal in characters; 0, 0 if out is none.
	size func() (width, height int)
	// drawn lines of the last frame, which the next one overwrites.
	drawn int
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: safetext.Unwrap(out), size: func() (int, int) { return 0, 0 }}
	if terminal := descriptor(out); terminal >= 0 {
		s.size = func() (int, int) {
			width, height, err := term.GetSize(terminal)
			if err != nil || width < 2 || height < 2 {
				return 80, 24
			}
			return width, height
		}
	}
	return s
}

// draw a frame over the last one. Lines that exceed the terminal are cut, as wrapped or scrolled lines could not be overwritten.
func (s *screen) draw(lines []string) {
	width, height := s.size()
	if len(lines) > height-1 {
		lines = append(lines[:max(0, height-2):max(0, height-2)], "…")
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	b.WriteString("\r")
	for _, line := range lines {
		b.WriteString(truncateLine(terminalLine(line), width-1) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	fmt.Fprint(s.out, b.String()) // one write avoids flicker
}

// bars of a sparkline, from the lowest to the highest.
var bars = []rune("▁▂▃▄▅▆▇█")

// sparkline of the newest values, one character each, from low to high. Unknown values (NaN) are spaces.
func sparkline(values []float64, low, high float64, width int) string {
	if width <= 0 {
		return ""
	}
	values = values[max(0, len(values)-width):]
	var b strings.Builder
	for _, v := range values {
		switch {
		case v != v: // NaN
			b.WriteByte(' ')
		case high <= low:
			b.WriteRune(bars[0])
		default:
			at := int((v - low) / (high - low) * float64(len(bars)))
			b.WriteRune(bars[max(0, min(len(bars)-1, at))])
		}
	}
	return b.String() + strings.Repeat(" ", width-cells(b.String()))
}

// pad a text to a width on a terminal.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-cells(text)))
}
