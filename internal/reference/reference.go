// Package reference reads figures that were published or measured earlier, beside which comparisons of runs stand.
// The analysis reads the same format (comparison/reference.py); testdata has the cases that both must pass.
package reference

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"vignette.dev/vignette/internal/wording"
)

// Limits of a file. Its text is a parameter of a request, and a point's rows are an annotation of each of its experiments.
const (
	MaxBytes = 32 << 10
	MaxRows  = 500
	// maxCell is the longest cell, in characters.
	maxCell = 300
	// maxProblems is how many problems of a file are named.
	maxProblems = 5
	// leastValue and mostValue of a figure but 0: differences in percent of it stay finite.
	leastValue, mostValue = 1e-12, 1e15
)

// Figure is a row of the file.
type Figure struct {
	// Row of the file; the header is row 1.
	Row int
	// Run names a point of a campaign, or a run or condition of a comparison.
	Run    string
	Group  string
	Metric string
	Value  float64
	Note   string
}

// columns of the file, and whether it must have them.
var columns = map[string]bool{"run": true, "group": false, "metric": true, "value": true, "note": false}

// columnNames in the order of messages.
var columnNames = []string{"run", "group", "metric", "value", "note"}

// metricNames are the figures of a comparison, named as in its CSV; bytesPerSecond is of a network.
var metricNames = []string{
	"triggered", "sent", "offered", "received", "lost", "unsent", "deliveredPercent",
	"minSeconds", "p25Seconds", "medianSeconds", "meanSeconds", "p75Seconds", "p95Seconds", "maxSeconds",
	"requests", "receiptPercent", "failed", "outstanding", "retransmissions",
	"responseMinSeconds", "responseMedianSeconds", "responseMeanSeconds", "responseP95Seconds", "responseMaxSeconds",
	"bytesPerSecond",
}

var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// cell at the beginning of a text, with its quotation marks.
var cell = regexp.MustCompile(`^(?:"[^"]*(?:""[^"]*)*(?:"|\z)|[^,\n]*)`)

// loneReturn is a carriage return that ends no line of Windows.
var loneReturn = regexp.MustCompile(`\r[^\n]`)

// Parse reads the text of a file; name is the file's in messages. runs are the names that may stand in column run, nil for any.
func Parse(name string, text []byte, runs []string) ([]Figure, error) {
	f := file{name: name, runs: runs, seen: map[[3]string]int{}}
	switch {
	case len(text) > MaxBytes:
		return nil, fmt.Errorf("%s has %d bytes: want %d at most", name, len(text), MaxBytes)
	case !utf8.Valid(text):
		return nil, fmt.Errorf("%s is no text in UTF-8: save it as CSV in UTF-8", name)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if err := malformed(name, string(text)); err != nil {
		return nil, err
	}
	rows := csv.NewReader(bytes.NewReader(text))
	rows.LazyQuotes, rows.FieldsPerRecord = true, -1
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read as CSV: want a row with %s, and rows of cells with commas between them", name, strings.Join(columnNames, ","))
		}
		f.row, _ = rows.FieldPos(0) // empty lines are no records
		f.add(cells)
		if len(f.problems) >= maxProblems || f.badHeader {
			break
		}
	}
	if f.header == nil || len(f.figures) == 0 && len(f.problems) == 0 {
		f.refuse("%s has no figures: want a row with %s, and a row for each figure", name, strings.Join(columnNames, ","))
	}
	if len(f.problems) > 0 {
		return nil, errors.New(strings.Join(f.problems, "; "))
	}
	return f.figures, nil
}

// malformed refuses what readers of CSV take differently.
func malformed(name, text string) error {
	if at := loneReturn.FindStringIndex(text); at != nil {
		row := 1 + strings.Count(text[:at[0]], "\n")
		return fmt.Errorf("%s, row %d: a carriage return has no line feed after it: want lines that end as on Linux or Windows", name, row)
	}
	row, line := 1, 1
	for {
		found := cell.FindString(text)
		line += strings.Count(found, "\n")
		text = strings.TrimPrefix(text[len(found):], "\r")
		switch {
		case text == "":
			return nil
		case text[0] == '\n':
			line++
			row = line
		case text[0] != ',':
			return fmt.Errorf("%s, row %d: text follows the closing quotation mark of a cell: want two marks for one within the cell", name, row)
		}
		text = text[1:]
	}
}

// OfConfigMap reads a key of a ConfigMap with these contents; the key may be empty where there is only one.
func OfConfigMap(name, key string, contents map[string][]byte, runs []string) ([]Figure, error) {
	keys := slices.Sorted(maps.Keys(contents))
	if key == "" && len(keys) == 1 {
		key = keys[0]
	}
	text, found := contents[key]
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("ConfigMap %s is empty: want a key with a CSV file", name)
	case key == "":
		return nil, fmt.Errorf("ConfigMap %s has keys %s: name one in key", name, some(keys))
	case !found:
		return nil, fmt.Errorf("ConfigMap %s has no key %s: %swant one of %s", name, key, meant(key, keys), some(keys))
	}
	return Parse(fmt.Sprintf("ConfigMap %s, key %s", name, key), text, runs)
}

// file is a file while it is read.
type file struct {
	name   string
	runs   []string
	row    int
	header []string
	// badHeader means that rows cannot be read.
	badHeader bool
	figures   []Figure
	seen      map[[3]string]int
	problems  []string
}

func (f *file) refuse(format string, values ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, values...))
}

// refuseCell says which cell is wrong, and what would be right.
func (f *file) refuseCell(column, format string, values ...any) {
	f.refuse("%s, row %d, column %s: %s", f.name, f.row, column, fmt.Sprintf(format, values...))
}

// add adds a row.
func (f *file) add(cells []string) {
	empty := true
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
		empty = empty && cells[i] == ""
	}
	switch {
	case f.header == nil:
		f.addHeader(cells)
		f.badHeader = len(f.problems) > 0
		return
	case empty:
		return
	case len(cells) > len(f.header):
		f.refuse("%s, row %d: %d cells, and the header has %d: a cell with commas needs quotation marks around it", f.name, f.row, len(cells), len(f.header))
		return
	case len(f.figures) == MaxRows:
		f.refuse("%s, row %d: want %d figures at most", f.name, f.row, MaxRows)
		return
	}
	before := len(f.problems)
	figure := f.figure(cells)
	key := [3]string{figure.Run, figure.Group, figure.Metric}
	if other, twice := f.seen[key]; twice && len(f.problems) == before {
		f.refuse("%s, row %d: the same run, group and metric as row %d", f.name, f.row, other)
	}
	f.seen[key] = f.row
	f.figures = append(f.figures, figure)
}

func (f *file) addHeader(cells []string) {
	f.header = cells
	if len(cells) == 1 && strings.Count(cells[0], ";") > 1 {
		f.refuse("%s, row 1: semicolons are between the cells: want commas", f.name)
		return
	}
	for i, cell := range cells {
		_, known := columns[cell]
		switch {
		case !known:
			f.refuse("%s, row 1: %q is no column: %swant %s", f.name, shorten(cell), meant(cell, columnNames), strings.Join(columnNames, ","))
		case slices.Contains(cells[:i], cell):
			f.refuse("%s, row 1: column %s is there twice", f.name, cell)
		}
	}
	for _, column := range columnNames {
		if columns[column] && !slices.Contains(cells, column) {
			f.refuse("%s, row 1: column %s is missing: want %s", f.name, column, strings.Join(columnNames, ","))
		}
	}
}

// figure reads a row that has no more cells than the header.
func (f *file) figure(cells []string) Figure {
	of := func(column string) string {
		i := slices.Index(f.header, column)
		if i < 0 || i >= len(cells) {
			return ""
		}
		return cells[i]
	}
	figure := Figure{Row: f.row, Run: of("run"), Group: of("group"), Metric: of("metric"), Note: of("note")}
	for _, column := range columnNames {
		switch cell := of(column); {
		case strings.ContainsAny(cell, "\r\n"):
			f.refuseCell(column, "the cell has several lines: a quotation mark may be missing")
		case utf8.RuneCountInString(cell) > maxCell:
			f.refuseCell(column, "%d characters: want %d at most", utf8.RuneCountInString(cell), maxCell)
		}
	}
	if f.runs != nil && !slices.Contains(f.runs, figure.Run) {
		f.refuseCell("run", "%q is unknown: %swant one of %s", shorten(figure.Run), meant(figure.Run, f.runs), some(f.runs))
	} else if figure.Run == "" {
		f.refuseCell("run", "is empty: want the name of a run, condition or point")
	}
	if !slices.Contains(metricNames, figure.Metric) {
		f.refuseCell("metric", "%q is unknown: %swant one of %s", shorten(figure.Metric), meant(figure.Metric, metricNames), strings.Join(metricNames, ", "))
	}
	figure.Value = f.value(figure.Metric, of("value"))
	return figure
}

func (f *file) value(metric, cell string) float64 {
	value, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil || !decimal.MatchString(cell) || math.IsInf(value, 0):
		f.refuseCell("value", "%q is no number: want one such as 97.5, without a unit", shorten(cell))
	case strings.HasSuffix(metric, "Percent") && (value < 0 || value > 100):
		f.refuseCell("value", "%s: want a share between 0 and 100", cell)
	case value < 0:
		f.refuseCell("value", "%s: want 0 or more", cell)
	case value != 0 && (value < leastValue || value > mostValue):
		f.refuseCell("value", "%s: want 0, or a number from 1e-12 to 1e15", cell)
	}
	return value
}

// meant asks for the nearest of the names, if any is near.
func meant(word string, names []string) string {
	if near := wording.Nearest(word, names); near != "" {
		return wording.Meant(near) + " "
	}
	return ""
}

// some names the first of many names.
func some(names []string) string { return wording.Some(names, 10) }

func shorten(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
