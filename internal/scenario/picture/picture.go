// Package picture draws a scenario as SVG: platforms, their tracks and their links at a moment, and their connectivity
// over time. It uses no plotting library, which would be the largest part of its programs. The same
// scenario gives the same bytes.
package picture

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/wording"
)

// Options are the options of a picture.
type Options struct {
	// At is the moment of the map.
	At time.Duration
	// LimitDB is the largest pathloss of a drawn link.
	LimitDB float64
	// Points is the most points of a track, and of the curves over time; 300 if zero.
	Points int
}

// The size of the map, of a chart and of the space around them, in pixels.
const (
	mapSize     = 620.0
	chartHeight = 130.0
	margin      = 60.0
	width       = mapSize + 2*margin
)

// Write writes the picture.
func Write(ctx context.Context, w io.Writer, s *scenario.Scenario, options Options) error {
	if options.Points <= 0 {
		options.Points = 300
	}
	step := max(s.Duration()/time.Duration(options.Points), time.Millisecond)
	line, err := s.Timeline(ctx, step, options.LimitDB)
	if err != nil {
		return err
	}
	tracks, err := readTracks(ctx, s, step)
	if err != nil {
		return err
	}
	c := s.NewCursor()
	if err := c.Seek(options.At); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	p := &picture{Writer: out, scenario: s, options: options}
	height := margin
	if s.HasPositions() {
		height += mapSize + margin
	}
	if s.HasPathloss() {
		height += 3 * (chartHeight + margin)
	}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n", width, height)
	p.printf(`<rect width="100%%" height="100%%" fill="#fff"/>` + "\n")
	top := margin
	if s.HasPositions() {
		p.plan(tracks, c, top)
		top += mapSize + margin
	}
	if s.HasPathloss() {
		p.charts(line, top)
	}
	p.printf("</svg>\n")
	return out.Flush()
}

type picture struct {
	*bufio.Writer
	scenario *scenario.Scenario
	options  Options
}

// printf leaves errors to Flush, as bufio.Writer does.
func (p *picture) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// readTracks reads the platforms' positions.
func readTracks(ctx context.Context, s *scenario.Scenario, step time.Duration) ([][]geo.Position, error) {
	tracks := make([][]geo.Position, len(s.Platforms()))
	c := s.NewCursor()
	for at := time.Duration(0); ; at += step {
		at = min(at, s.Duration()) // the end, too
		if err := cmp.Or(ctx.Err(), c.Seek(at)); err != nil {
			return nil, err
		}
		for i := range tracks {
			if place, known := c.Position(i); known {
				tracks[i] = append(tracks[i], place)
			}
		}
		if at >= s.Duration() {
			return tracks, nil
		}
	}
}

// plan is the map of the tracks, and of the platforms and links at a moment, north up.
type plan struct {
	frame       geo.Frame
	west, north float64 // in metres from the frame's origin
	scale       float64 // in pixels per metre
	top         float64
}

func newPlan(tracks [][]geo.Position, top float64) plan {
	var origin *geo.Position
	low, high := geo.Vector{X: math.Inf(1), Y: math.Inf(1)}, geo.Vector{X: math.Inf(-1), Y: math.Inf(-1)}
	var frame geo.Frame
	for _, track := range tracks {
		for _, place := range track {
			if origin == nil {
				origin = &place
				frame = geo.NewFrame(place)
			}
			v := frame.ENU(place)
			low.X, low.Y = min(low.X, v.X), min(low.Y, v.Y)
			high.X, high.Y = max(high.X, v.X), max(high.Y, v.Y)
		}
	}
	if origin == nil {
		return plan{scale: 1, top: top}
	}
	side := max(high.X-low.X, high.Y-low.Y, 1)
	return plan{frame: frame, scale: mapSize / side, top: top,
		west: (low.X + high.X - side) / 2, north: (low.Y + high.Y + side) / 2}
}

// pixel returns the pixel of a position.
func (m plan) pixel(place geo.Position) (x, y float64) {
	v := m.frame.ENU(place)
	return margin + (v.X-m.west)*m.scale, m.top + (m.north-v.Y)*m.scale
}

func (p *picture) plan(tracks [][]geo.Position, c *scenario.Cursor, top float64) {
	var now []geo.Position // may lie between the points of the tracks
	for i := range tracks {
		if place, known := c.Position(i); known {
			now = append(now, place)
		}
	}
	m := newPlan(append(slices.Clip(tracks), now), top)
	p.printf(`<text x="%.0f" y="%.0f" font-size="14">%d platforms, links up to %g dB at %s</text>`+"\n",
		margin, top-30, len(tracks), p.options.LimitDB, wording.Time(p.options.At))
	for i, track := range tracks {
		if len(track) < 2 {
			continue
		}
		p.printf(`<polyline fill="none" stroke="%s" stroke-opacity="0.5" points="`, colour(i, len(tracks)))
		for _, place := range track {
			x, y := m.pixel(place)
			p.printf("%.1f,%.1f ", x, y)
		}
		p.printf(`"/>` + "\n")
	}
	p.links(m, c)
	for i, platform := range p.scenario.Platforms() {
		if place, known := c.Position(i); known {
			x, y := m.pixel(place)
			p.printf(`<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/><text x="%.1f" y="%.1f">%d</text>`+"\n",
				x, y, colour(i, len(tracks)), x+5, y-3, platform)
		}
	}
	p.scaleBar(m)
}

// links draws links as lines. Thin ones are in one direction only.
func (p *picture) links(m plan, c *scenario.Cursor) {
	for i := range p.scenario.Platforms() {
		for j := range i {
			ways := 0
			for _, pair := range [...][2]int{{i, j}, {j, i}} {
				if dB, known := c.Pathloss(pair[0], pair[1]); known && dB <= p.options.LimitDB {
					ways++
				}
			}
			a, knownA := c.Position(i)
			b, knownB := c.Position(j)
			if ways > 0 && knownA && knownB {
				x1, y1 := m.pixel(a)
				x2, y2 := m.pixel(b)
				p.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#555" stroke-opacity="0.6" stroke-width="%.1f"/>`+"\n", x1, y1, x2, y2, 0.5*float64(ways))
			}
		}
	}
}

// colour returns the colour of the i-th of n platforms: all hues, 65 % saturated and 40 % light, in the form that every SVG reader supports.
func colour(i, n int) string {
	const light, spread = 0.4, 0.65 * 0.4
	hue := float64(i) * 360 / float64(max(n, 1))
	channel := func(shift float64) int {
		k := math.Mod(shift+hue/30, 12)
		return int(math.Round(255 * (light - spread*max(-1, min(k-3, 9-k, 1)))))
	}
	return fmt.Sprintf("#%02x%02x%02x", channel(0), channel(8), channel(4))
}

// scaleBar draws a bar of a round number of metres.
func (p *picture) scaleBar(m plan) {
	metres := roundDown(mapSize / 4 / m.scale)
	y := m.top + mapSize + 25
	p.printf(`<line x1="%.0f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#000" stroke-width="2"/><text x="%.0f" y="%.1f">%g m</text>`+"\n",
		margin, y, margin+metres*m.scale, y, margin, y-5, metres)
}

// roundDown rounds down to 1, 2 or 5 times a power of ten.
func roundDown(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, digit := range []float64{5, 2} {
		if digit*power <= v {
			return digit * power
		}
	}
	return power
}

// charts draws the connectivity over time.
func (p *picture) charts(line []scenario.ConnectivityAt, top float64) {
	for _, chart := range []struct {
		title string
		value func(scenario.ConnectivityAt) float64
	}{
		{"mean hops of the pairs that have a way", func(c scenario.ConnectivityAt) float64 { return c.MeanHops() }},
		{"hops of the longest shortest way", func(c scenario.ConnectivityAt) float64 { return float64(c.MaxHops()) }},
		{"share of the ordered pairs that have a way", func(c scenario.ConnectivityAt) float64 { return c.Connected() }},
	} {
		p.chart(chart.title, line, chart.value, top)
		top += chartHeight + margin
	}
}

func (p *picture) chart(title string, line []scenario.ConnectivityAt, value func(scenario.ConnectivityAt) float64, top float64) {
	highest := 1.0
	for _, at := range line {
		highest = max(highest, math.Ceil(value(at)))
	}
	x := func(t time.Duration) float64 {
		return margin + mapSize*t.Seconds()/max(p.scenario.Duration().Seconds(), 1e-9)
	}
	y := func(v float64) float64 { return top + chartHeight*(1-v/highest) }
	p.printf(`<text x="%.0f" y="%.0f">%s</text>`+"\n", margin, top-8, title)
	for _, tick := range []float64{0, highest / 2, highest} {
		p.printf(`<line x1="%.0f" y1="%.1f" x2="%.0f" y2="%.1f" stroke="#ccc"/><text x="%.0f" y="%.1f" text-anchor="end">%g</text>`+"\n",
			margin, y(tick), margin+mapSize, y(tick), margin-5, y(tick)+4, tick)
	}
	for quarter := range 5 {
		t := p.scenario.Duration() * time.Duration(quarter) / 4
		p.printf(`<text x="%.1f" y="%.0f" text-anchor="middle">%s</text>`+"\n", x(t), top+chartHeight+15, wording.Time(t.Round(time.Second)))
	}
	p.printf(`<line x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f" stroke="#c00" stroke-dasharray="3"/>`+"\n",
		x(min(max(p.options.At, 0), p.scenario.Duration())), top, x(min(max(p.options.At, 0), p.scenario.Duration())), top+chartHeight)
	p.printf(`<polyline fill="none" stroke="#036" points="`)
	for _, at := range line {
		p.printf("%.1f,%.1f ", x(at.At), y(value(at)))
	}
	p.printf(`"/>` + "\n")
}
