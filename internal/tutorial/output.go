package tutorial

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// anything stands on a page for what it leaves out: within a line, or as a line for any number of lines.
const anything = "…"

var (
	// measured are figures that differ between runs: fractions, times of day, and numbers with a unit of time or bytes.
	measured = regexp.MustCompile(`\d[\d,]*[.:][\d.:]*Z?(?: ?(?:µs|ms|s|min|[kM]?B/s|[kM]?bit/s))?|\d+ ?(?:µs|ms|s|min|[kM]?B/s|[kM]?bit/s)\b`)
	identity = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\d{4}-\d\d-\d\d\b|\b\d{16,}\b|\b[0-9a-f]{64}\b`)
	counts   = regexp.MustCompile(`\d+`)
	// busy is what depends on what else the machine does: whether the emulation kept up, and whether a log came late.
	busy   = regexp.MustCompile(`(?i)^(emulation kept up|gaps): .*`)
	late   = regexp.MustCompile(` \*`) // marks runs in tables
	spaces = regexp.MustCompile(`[\s─═]+`)
)

// essence of a line is what every run prints alike, on a busy machine too.
func essence(line string, varies bool) string {
	line = late.ReplaceAllString(busy.ReplaceAllString(line, "$1"), "")
	line = identity.ReplaceAllString(line, "ID")
	line = measured.ReplaceAllString(line, "#")
	if varies {
		line = counts.ReplaceAllString(line, "#")
	}
	return strings.TrimSpace(spaces.ReplaceAllString(line, " "))
}

// Differs reports the first line that the page shows of a step and that was not printed, in its order. Measured figures may differ, counts where the step says so.
// Lines that were printed and not shown need a line … on the page.
func Differs(step Step, printed string) error {
	lines := linesOf(printed, step.Varies)
	at, skip := 0, false
	for _, want := range linesOf(step.Shown, step.Varies) {
		if want == anything {
			skip = true
			continue
		}
		found := at
		for found < len(lines) && !matches(want, lines[found]) {
			found++
		}
		if found == len(lines) || found > at && !skip {
			return fmt.Errorf("the page shows:\n%s\nand the commands printed there:\n%s", want, strings.Join(lines[at:], "\n"))
		}
		at, skip = found+1, false
	}
	if at < len(lines) && !skip {
		return fmt.Errorf("the page leaves out what the commands printed at last:\n%s", strings.Join(lines[at:], "\n"))
	}
	return nil
}

func linesOf(text string, varies bool) (kept []string) {
	for line := range strings.Lines(text) {
		if line = essence(line, varies); line != "" {
			kept = append(kept, line)
		}
	}
	return kept
}

// matches reports whether a printed line is the shown one. Both are essences.
func matches(shown, printed string) bool {
	parts := strings.Split(shown, anything)
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(printed)
}

// Excerpt is the shown text, renewed from what was printed: all of it, or where the page leaves lines out, the lines that are like the shown ones.
// A shown line that leaves something out stays.
func Excerpt(shown, printed string) string {
	if !strings.Contains("\n"+shown, "\n"+anything+"\n") {
		return printed
	}
	lines := strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
	var made strings.Builder
	for line := range strings.Lines(shown) {
		line = strings.TrimSuffix(line, "\n")
		if i := similar(line, lines); i >= 0 && !strings.Contains(line, anything) {
			line, lines = lines[i], lines[i+1:]
		}
		made.WriteString(line + "\n")
	}
	return made.String()
}

// similar is the index of the first line that differs from a shown one in figures only, else of the first that begins with the same word, else -1.
func similar(shown string, lines []string) int {
	at := slices.IndexFunc(lines, func(line string) bool { return essence(line, true) == essence(shown, true) })
	if at < 0 {
		at = slices.IndexFunc(lines, func(line string) bool { return firstWord(line) == firstWord(shown) })
	}
	return at
}

func firstWord(line string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return word
}
