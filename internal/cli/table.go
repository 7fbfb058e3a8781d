package cli

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"vignette.dev/vignette/internal/safetext"
)

// cell of a table.
type cell struct {
	text  string
	right bool
}

// table is rows of cells; its columns are as wide as their widest cell.
type table [][]cell

// left makes a row of cells that are aligned to the left.
func left(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i] = cell{text: text}
	}
	return row
}

// right makes cells that are aligned to the right, as figures are.
func right(texts ...string) []cell {
	row := left(texts...)
	for i := range row {
		row[i].right = true
	}
	return row
}

// figures makes a row of a name and figures.
func figures(name string, texts ...string) []cell {
	return append(left(name), right(texts...)...)
}

// inNamespace puts the namespace's cell before a row, if the table is of several namespaces.
func inNamespace(namespace string, several bool, row []cell) []cell {
	if !several {
		return row
	}
	return append(left(namespace), row...)
}

// oneLine removes line breaks of a message, such as an app's last output, which would break a table.
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return safetext.Terminal(strings.Join(slices.Compact(lines), " | "))
}

// terminalLine is a line whose width on a terminal is known.
func terminalLine(line string) string { return strings.ReplaceAll(oneLine(line), "\t", " ") }

// cells is a text's width on a terminal.
func cells(text string) (n int) {
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

// cellsOf a character: two of a wide one, such as a Chinese one. A mark on the one before it has none.
func cellsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// columnGap between columns.
const columnGap = "   "

func (t table) String() string {
	var widths []int
	for _, row := range t {
		for i, c := range row {
			row[i].text = terminalLine(c.text)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cells(row[i].text))
		}
	}
	var b strings.Builder
	for _, row := range t {
		var line strings.Builder
		for i, c := range row {
			space := strings.Repeat(" ", widths[i]-cells(c.text))
			if i > 0 {
				line.WriteString(columnGap)
			}
			if c.right {
				line.WriteString(space + c.text)
			} else {
				line.WriteString(c.text + space)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
