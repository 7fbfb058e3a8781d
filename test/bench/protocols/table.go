package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// table prints a line as soon as it is measured. Ratios are to the tool's line, the first.
type table struct {
	w    io.Writer
	tool line
}

// column has a title of two lines, whose longer one is its width.
type column struct {
	above, title string
	value        func(l, tool line) float64
	digits       int
}

var columns = []column{
	{above: "messages", title: "per second", value: func(l, _ line) float64 { return l.perSecond }},
	{above: "lost", title: "%", value: func(l, _ line) float64 { return l.lostPercent }, digits: 2},
	{above: "publisher", title: "µs/message", value: func(l, _ line) float64 { return l.publisher }, digits: 2},
	{above: "broker", title: "µs/message", value: func(l, _ line) float64 { return l.brokers }, digits: 2},
	{above: "subscriber", title: "µs/message", value: func(l, _ line) float64 { return l.subscriber }, digits: 2},
	{above: "messages/s and", title: "publisher core", value: func(l, _ line) float64 { return 1e6 / l.publisher }},
	{above: "rate", title: "× tool", value: func(l, tool line) float64 { return l.perSecond / tool.perSecond }, digits: 2},
	{above: "publisher", title: "× tool", value: func(l, tool line) float64 { return l.publisher / tool.publisher }, digits: 2},
	{above: "median", title: "delay ms", value: func(l, _ line) float64 { return l.median }, digits: 3},
	{above: "p99", title: "delay ms", value: func(l, _ line) float64 { return l.p99 }, digits: 3},
}

// width returns a column's width in characters, with the space before it.
func (c column) width() int { return 2 + max(len([]rune(c.above)), len([]rune(c.title))) }

func newTable(w io.Writer) *table {
	t := &table{w: w, tool: none()}
	fmt.Fprintf(w, "Messages of %d bytes; delays at %d messages/s; µs are processor time; the tool is mosquitto_pub\n", messageBytes, calmRate)
	t.row("", func(c column) string { return c.above })
	t.row("protocol", func(c column) string { return c.title })
	return t
}

func (t *table) row(name string, cell func(column) string) {
	var text strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&text, "%*s", c.width(), cell(c))
	}
	fmt.Fprintf(t.w, "%s  %s\n", &text, name)
}

// print prints an entry's line, and keeps the tool's line for the ratios of the following ones.
func (t *table) print(e entry, l line) {
	if l.skipped != "" {
		t.row(e.name+": skipped, "+l.skipped, func(column) string { return "" })
		return
	}
	if e.tool {
		t.tool = l
	}
	t.row(e.name, func(c column) string { return number(c.value(l, t.tool), c.digits) })
}

func number(value float64, digits int) string {
	if math.IsNaN(value) {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, value)
}
