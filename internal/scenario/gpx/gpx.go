// Package gpx reads tracks in the GPS exchange format (GPX 1.1, topografix.com/GPX/1/1). Each track is a platform. Waypoints
// and routes have no times and are passed over.
package gpx

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/utf8text"
)

// Options of reading.
type Options struct {
	// Platform of the first track; further tracks have the numbers after it. If it is 0, tracks whose names are all numbers
	// have these numbers, and otherwise tracks are numbered from 1.
	Platform int
	// Origin is the scenario's time 0; the first moment of any track in the file if zero. What was before it is cut off.
	Origin time.Time
	// Step at which positions between two points of a segment are reckoned; 1 s if zero. If it is negative, platforms jump
	// from point to point. Between segments, where reception was lost, a platform stays and then jumps.
	Step time.Duration
}

// Read a file whose name is for errors into a builder. Errors about the file are *scenario.SyntaxError.
func Read(r io.Reader, name string, b *scenario.Builder, options Options) (scenario.Report, error) {
	p := newParser(r, name)
	if err := p.file(); err != nil {
		return scenario.Report{}, err
	}
	if options.Step == 0 {
		options.Step = time.Second
	}
	origin := options.Origin
	if origin.IsZero() {
		origin = p.first()
	}
	p.tally.Origin(origin)
	numbers, err := p.numbers(options.Platform)
	if err != nil {
		return scenario.Report{}, err
	}
	tracks := &reading.Tracks{Builder: b, Step: options.Step}
	for i, t := range p.tracks {
		if err := p.put(tracks, numbers[i], t, origin); err != nil {
			return scenario.Report{}, err
		}
	}
	return p.tally.Report(), nil
}

// Contents of a file, for the common origin and the numbers of several files.
type Contents struct {
	// First moment of any track; zero if there is none.
	First time.Time
	// Tracks is how many there are. Named are their numbers if they have one each as names.
	Tracks int
	Named  []int
}

// Look into a file.
func Look(r io.Reader, name string) (Contents, error) {
	p := newParser(r, name)
	if err := p.file(); err != nil {
		return Contents{}, err
	}
	c := Contents{First: p.first(), Tracks: len(p.tracks)}
	for _, t := range p.tracks {
		number, err := reading.Platform([]byte(strings.TrimSpace(t.name)))
		if err != nil {
			c.Named = nil
			break
		}
		c.Named = append(c.Named, number)
	}
	return c, nil
}

type parser struct {
	xml    *xml.Decoder
	name   string
	tally  reading.Tally
	tracks []track
	// encoding is why the declared encoding is not read.
	encoding error
}

type track struct {
	name     string
	segments [][]point
}

type point struct {
	at       time.Time
	position geo.Position
	line     int
}

// trackPoint as in the file.
type trackPoint struct {
	Latitude  string `xml:"lat,attr"`
	Longitude string `xml:"lon,attr"`
	Elevation string `xml:"ele"`
	Time      string `xml:"time"`
}

func newParser(r io.Reader, name string) *parser {
	p := &parser{xml: xml.NewDecoder(utf8text.NewReader(r)), name: name}
	p.xml.CharsetReader = func(label string, text io.Reader) (io.Reader, error) {
		decoded, err := utf8text.Declared(label, text)
		p.encoding = err
		return decoded, err
	}
	return p
}

func (p *parser) errorf(line int, format string, args ...any) error {
	return &scenario.SyntaxError{File: p.name, Line: line, Reason: fmt.Sprintf(format, args...)}
}

func (p *parser) line() int {
	line, _ := p.xml.InputPos()
	return line
}

// fault of the XML decoder, with its line.
func (p *parser) fault(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case p.encoding != nil:
		return p.errorf(p.line(), "%s", p.encoding)
	case errors.As(err, &syntax) && syntax.Msg == "invalid UTF-8":
		return p.errorf(syntax.Line, "the text is not in UTF-8: want a first line that names its encoding, such as <?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>")
	case errors.As(err, &syntax):
		return p.errorf(syntax.Line, "%s", syntax.Msg)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return p.errorf(p.line(), "the file ends too early")
	}
	return p.errorf(p.line(), "%s", err)
}

// file is a gpx element with tracks.
func (p *parser) file() error {
	root := false
	for {
		token, err := p.xml.Token()
		if errors.Is(err, io.EOF) && root {
			return nil
		}
		if err != nil {
			return p.fault(err)
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case !root && start.Name.Local != "gpx":
			return p.errorf(p.line(), "the file is an element %s: want gpx", reading.Short([]byte(start.Name.Local)))
		case !root:
			root = true
		case start.Name.Local == "trk":
			err = p.track()
		default:
			if start.Name.Local != "metadata" && start.Name.Local != "extensions" {
				p.tally.Unknown(start.Name.Local)
			}
			if err := p.xml.Skip(); err != nil {
				return p.fault(err)
			}
		}
		if err != nil {
			return err
		}
	}
}

// elements in the current one, up to its end.
func (p *parser) elements(do func(start xml.StartElement) error) error {
	for {
		token, err := p.xml.Token()
		if err != nil {
			return p.fault(err)
		}
		switch e := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if err := do(e); err != nil {
				return err
			}
		}
	}
}

func (p *parser) track() error {
	p.tracks = append(p.tracks, track{})
	t := &p.tracks[len(p.tracks)-1]
	return p.elements(func(start xml.StartElement) error {
		switch start.Name.Local {
		case "name":
			if err := p.xml.DecodeElement(&t.name, &start); err != nil {
				return p.fault(err)
			}
			return nil
		case "trkseg":
			return p.segment(t)
		}
		if err := p.xml.Skip(); err != nil {
			return p.fault(err)
		}
		return nil
	})
}

func (p *parser) segment(t *track) error {
	var points []point
	err := p.elements(func(start xml.StartElement) error {
		line := p.line()
		if start.Name.Local != "trkpt" {
			if err := p.xml.Skip(); err != nil {
				return p.fault(err)
			}
			return nil
		}
		var raw trackPoint
		if err := p.xml.DecodeElement(&raw, &start); err != nil {
			return p.fault(err)
		}
		next, err := parsePoint(raw)
		if err != nil {
			return p.errorf(line, "%s", err)
		}
		next.line = line
		if len(points) > 0 && next.at.Before(points[len(points)-1].at) {
			return p.errorf(line, "time is %s: want none before that of the point before, %s", raw.Time, points[len(points)-1].at.Format(time.RFC3339Nano))
		}
		points = append(points, next)
		return nil
	})
	if len(points) > 0 {
		t.segments = append(t.segments, points)
	}
	return err
}

func parsePoint(raw trackPoint) (point, error) {
	if raw.Latitude == "" || raw.Longitude == "" {
		return point{}, errors.New("the point has no lat or no lon")
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(raw.Time))
	if err != nil {
		return point{}, fmt.Errorf("time is %q: want one such as 2026-01-31T12:00:00Z", reading.Short([]byte(raw.Time)))
	}
	position, err := raw.position()
	if err != nil {
		return point{}, err
	}
	return point{at: at, position: position}, position.Validate()
}

func (raw trackPoint) position() (position geo.Position, err error) {
	for _, field := range []struct {
		text, name string
		value      *float64
	}{{raw.Latitude, "lat", &position.Latitude}, {raw.Longitude, "lon", &position.Longitude}, {raw.Elevation, "ele", &position.Altitude}} {
		text := strings.TrimSpace(field.text)
		if text == "" && field.name == "ele" {
			continue
		}
		if *field.value, err = reading.Float([]byte(text), field.name); err != nil {
			return position, err
		}
	}
	return position, nil
}

// first moment of any track.
func (p *parser) first() time.Time {
	var first time.Time
	for _, t := range p.tracks {
		for _, s := range t.segments {
			if first.IsZero() || s[0].at.Before(first) {
				first = s[0].at
			}
		}
	}
	return first
}

// numbers of the tracks' platforms.
func (p *parser) numbers(from int) ([]int, error) {
	numbers := make([]int, len(p.tracks))
	named := from == 0
	for i, t := range p.tracks {
		number, err := reading.Platform([]byte(strings.TrimSpace(t.name)))
		numbers[i], named = number, named && err == nil
	}
	if !named {
		for i := range numbers {
			numbers[i] = max(from, 1) + i
		}
	}
	used := map[int]bool{}
	for _, number := range numbers {
		if used[number] {
			return nil, p.errorf(1, "two tracks have the name %d", number)
		}
		used[number] = true
	}
	return numbers, nil
}

func (p *parser) put(tracks *reading.Tracks, platform int, t track, origin time.Time) error {
	p.tally.Platform(platform)
	for _, s := range t.segments {
		points := make([]reading.Point, len(s))
		for i, point := range s {
			at := point.at.Sub(origin)
			if at > scenario.MaxDuration || at < -scenario.MaxDuration {
				return p.errorf(point.line, "time is %s, which is %s after the scenario's start: want at most a year", point.at.Format(time.RFC3339), at)
			}
			points[i] = reading.Point{At: at, Position: point.position}
			p.tally.Sentence(at)
		}
		if err := tracks.Add(platform, points); err != nil {
			return p.errorf(s[0].line, "%s", err)
		}
	}
	return nil
}
