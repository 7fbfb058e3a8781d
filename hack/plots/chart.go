package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Chart is a chart of series over common axes.
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series
}

// Axis goes from Min to Max with a labelled line at every Step.
type Axis struct {
	Label          string
	Min, Max, Step float64
}

// Series is a line, or marks without one.
type Series struct {
	Name   string
	X, Y   []float64
	Marks  bool // circles at the points and no line
	Dashed bool
}

// Sampled returns the line of a function at n+1 points.
func Sampled(name string, from, to float64, n int, f func(x float64) float64) Series {
	s := Series{Name: name}
	for i := range n + 1 {
		x := from + (to-from)*float64(i)/float64(n)
		s.X, s.Y = append(s.X, x), append(s.Y, f(x))
	}
	return s
}

// The drawing in pixels.
const (
	width, height            = 720, 400
	left, right, top, bottom = 64, 704, 40, 348
)

// colours are those of Okabe and Ito, which people with any colour vision can distinguish.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// SVG draws the chart. Points beyond its axes are left out.
func (c *Chart) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text(&b, (left+right)/2, 22, "middle", `font-size="14"`, c.Title)
	c.grid(&b)
	for i, s := range c.Series {
		c.draw(&b, &s, colours[i%len(colours)])
		c.legend(&b, i, &s)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c *Chart) grid(b *strings.Builder) {
	for x := c.X.Min; x <= c.X.Max+c.X.Step/1e6; x += c.X.Step {
		fmt.Fprintf(b, `<path d="M%s %dV%d" stroke="#ddd"/>`+"\n", pixel(c.X.at(x, left, right)), top, bottom)
		text(b, c.X.at(x, left, right), bottom+16, "middle", "", label(x))
	}
	for y := c.Y.Min; y <= c.Y.Max+c.Y.Step/1e6; y += c.Y.Step {
		fmt.Fprintf(b, `<path d="M%d %sH%d" stroke="#ddd"/>`+"\n", left, pixel(c.Y.at(y, bottom, top)), right)
		text(b, left-6, c.Y.at(y, bottom, top)+4, "end", "", label(y))
	}
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" stroke="black" fill="none"/>`+"\n", left, top, bottom, right)
	text(b, (left+right)/2, height-14, "middle", "", c.X.Label)
	text(b, 0, 0, "middle", fmt.Sprintf(`transform="translate(16 %d) rotate(-90)"`, (top+bottom)/2), c.Y.Label)
}

// label formats a value without the rounding errors of a sum.
func label(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e9)/1e9, 'g', 6, 64)
}

func text(b *strings.Builder, x, y float64, anchor, attributes, content string) {
	fmt.Fprintf(b, `<text x="%s" y="%s" text-anchor="%s" %s>%s</text>`+"\n", pixel(x), pixel(y), anchor, attributes, html.EscapeString(content))
}

// at returns the pixel of a value, with Min at low and Max at high.
func (a *Axis) at(v, low, high float64) float64 {
	return low + (v-a.Min)/(a.Max-a.Min)*(high-low)
}

func (a *Axis) holds(v float64) bool {
	slack := (a.Max - a.Min) * 1e-9
	return v >= a.Min-slack && v <= a.Max+slack
}

func pixel(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func (c *Chart) draw(b *strings.Builder, s *Series, colour string) {
	path, pen := "", "M"
	for i, x := range s.X {
		if !c.X.holds(x) || !c.Y.holds(s.Y[i]) {
			pen = "M"
			continue
		}
		px, py := pixel(c.X.at(x, left, right)), pixel(c.Y.at(s.Y[i], bottom, top))
		if s.Marks {
			fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3.5" fill="%s"/>`+"\n", px, py, colour)
			continue
		}
		path += pen + px + " " + py
		pen = "L"
	}
	if path != "" {
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", path, colour, dashes(s))
	}
}

func dashes(s *Series) string {
	if s.Dashed {
		return ` stroke-dasharray="6 4"`
	}
	return ""
}

func (c *Chart) legend(b *strings.Builder, i int, s *Series) {
	y := float64(top + 14 + 18*i)
	if s.Marks {
		fmt.Fprintf(b, `<circle cx="%d" cy="%s" r="3.5" fill="%s"/>`+"\n", right-264, pixel(y-4), colours[i%len(colours)])
	} else {
		fmt.Fprintf(b, `<path d="M%d %sh24" stroke="%s" stroke-width="2"%s/>`+"\n", right-276, pixel(y-4), colours[i%len(colours)], dashes(s))
	}
	text(b, right-246, y, "start", "", s.Name)
}
