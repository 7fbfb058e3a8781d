// Package kml reads tracks in the Keyhole Markup Language (KML 2.2, 2.3 and Google's gx extensions):
//
//   - Track and gx:Track, also in a MultiTrack: a platform, with the times of its when elements
//   - LineString: a path without times, or with the begin and end of a TimeSpan
//   - Point with a TimeStamp or TimeSpan: in a folder, those of one name are a platform; if each has a different name, the folder is one
//
// Paths without times count only if the file has nothing else. Other features are skipped.
package kml

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
)

// maxDepth is the limit of nested folders and geometries.
const maxDepth = 64

// Parse parses a file. Errors about the file contain its name, and are *scenario.SyntaxError.
func Parse(r io.Reader, name string, options tracks.Options) (*tracks.File, error) {
	p := &parser{XML: reading.NewXML(r, name), file: tracks.NewFile(name, options)}
	p.file.Clock = tracks.Dates
	root := &folder{}
	err := p.File([]string{"kml", "Document", "Folder"}, func(start xml.StartElement) error { return p.feature(start, root, 0) }, nil)
	p.gather(root)
	return p.file, err
}

type parser struct {
	*reading.XML
	file *tracks.File
}

// folder is a folder with its timed points.
type folder struct {
	name   string
	points []stamped
}

type stamped struct {
	name  string
	point tracks.Point
	mark  *mark
}

// nonFeatures are elements that are no features.
var nonFeatures = map[string]bool{"name": true, "description": true, "open": true, "visibility": true, "Style": true, "StyleMap": true, "styleUrl": true,
	"Schema": true, "Snippet": true, "snippet": true, "LookAt": true, "Camera": true, "ExtendedData": true, "author": true, "link": true, "address": true,
	"phoneNumber": true, "Region": true, "Metadata": true, "TimeSpan": true, "TimeStamp": true, "Tour": true}

// feature reads a feature in a folder.
func (p *parser) feature(start xml.StartElement, in *folder, depth int) error {
	switch name := start.Name.Local; {
	case depth > maxDepth:
		return p.tooDeep()
	case name == "Document" || name == "Folder":
		f := &folder{name: in.name}
		err := p.Elements(func(start xml.StartElement) error {
			if start.Name.Local == "name" {
				return p.Decode(&f.name, start)
			}
			return p.feature(start, f, depth+1)
		})
		p.gather(f)
		return err
	case name == "Placemark":
		return p.placemark(in, depth+1)
	case !nonFeatures[name]:
		p.file.Tally.Unknown(name)
	}
	return p.Skip()
}

func (p *parser) tooDeep() error {
	return p.Errorf(p.Line(), "folders or geometries are nested more than %d deep", maxDepth)
}

// mark is a placemark.
type mark struct {
	name              string
	stamp, begin, end string
	stampAt           int // the line of the time
	lines             [][]tracks.Point
	points            []tracks.Point
	// The segments of its tracks, if it has any.
	segments  [][]tracks.Point
	hasTracks bool
}

// times reads a placemark's times.
type times struct {
	When  string `xml:"when"`
	Begin string `xml:"begin"`
	End   string `xml:"end"`
}

func (p *parser) placemark(in *folder, depth int) error {
	m := &mark{}
	err := p.Elements(func(start xml.StartElement) error {
		switch start.Name.Local {
		case "name":
			return p.Decode(&m.name, start)
		case "TimeStamp", "TimeSpan":
			m.stampAt = p.Line()
			var t times
			if err := p.Decode(&t, start); err != nil {
				return err
			}
			m.stamp, m.begin, m.end = t.When, t.Begin, t.End
			return nil
		}
		return p.geometry(m, start, depth)
	})
	if err != nil {
		return err
	}
	return p.keep(m, in)
}

// geometry reads a placemark's geometry.
func (p *parser) geometry(m *mark, start xml.StartElement, depth int) error {
	switch name := start.Name.Local; {
	case depth > maxDepth:
		return p.tooDeep()
	case name == "MultiGeometry" || name == "MultiTrack":
		return p.Elements(func(start xml.StartElement) error { return p.geometry(m, start, depth+1) })
	case name == "Track":
		m.hasTracks = true
		return p.track(m)
	case name == "LineString" || name == "Point":
		points, err := p.coordinates()
		if err != nil {
			return err
		}
		if name == "Point" {
			m.points = append(m.points, points...)
		} else if len(points) > 0 {
			m.lines = append(m.lines, points)
		}
		return nil
	case name == "altitudeMode" || name == "interpolate" || nonFeatures[name]:
	default:
		p.file.Tally.Unknown("Placemark " + name)
	}
	return p.Skip()
}

// spacedComma is invalid in KML, but some files have it.
var spacedComma = regexp.MustCompile(`\s*,\s*`)

// coordinates parses a line or a point: longitude,latitude[,altitude], with spaces between.
func (p *parser) coordinates() (points []tracks.Point, err error) {
	err = p.Elements(func(start xml.StartElement) error {
		switch start.Name.Local {
		case "altitudeMode":
			return p.altitudeMode(start)
		case "coordinates":
		default:
			return p.Skip()
		}
		line := p.Line()
		var text string
		if err := p.Decode(&text, start); err != nil {
			return err
		}
		for tuple := range strings.FieldsSeq(spacedComma.ReplaceAllString(text, ",")) {
			position, err := p.position(strings.Split(tuple, ","), tuple)
			if err != nil {
				return p.Errorf(line, "%s", err)
			}
			points = append(points, tracks.Point{At: tracks.Untimed, Position: position, Line: line})
		}
		return nil
	})
	return points, err
}

func (p *parser) altitudeMode(start xml.StartElement) error {
	var mode string
	if err := p.Decode(&mode, start); err != nil {
		return err
	}
	if strings.HasPrefix(strings.TrimSpace(mode), "relativeTo") {
		p.file.Tally.Warn("altitudes above the ground (relativeToGround) are taken as they stand, as above the sea")
	}
	return nil
}

// position parses longitude, latitude and perhaps altitude.
func (p *parser) position(fields []string, text string) (position geo.Position, err error) {
	if len(fields) != 2 && len(fields) != 3 {
		return position, fmt.Errorf("coordinates are %q: want longitude, latitude and altitude", reading.Short([]byte(text)))
	}
	values := [3]float64{}
	for i, field := range fields {
		if values[i], err = reading.Float([]byte(field), [...]string{"longitude", "latitude", "altitude"}[i]); err != nil {
			return position, err
		}
	}
	position = geo.Position{Longitude: values[0], Latitude: values[1], Altitude: values[2]}
	return position, p.file.Count(position)
}

// track reads a track of times and as many coordinates.
func (p *parser) track(m *mark) error {
	var whens []string
	var points []tracks.Point
	var missing []bool
	begin := p.Line()
	err := p.Elements(func(start xml.StartElement) error {
		line := p.Line()
		var text string
		switch start.Name.Local {
		case "altitudeMode":
			return p.altitudeMode(start)
		case "when", "coord":
			if err := p.Decode(&text, start); err != nil {
				return err
			}
		default:
			return p.Skip()
		}
		if start.Name.Local == "when" {
			if whens = append(whens, text); len(whens) > tracks.MaxPoints {
				return p.Errorf(line, "the track has more than %d when: want fewer, or a part of it", tracks.MaxPoints)
			}
			return nil
		}
		missing = append(missing, strings.TrimSpace(text) == "")
		points = append(points, tracks.Point{Line: line})
		var err error
		if missing[len(missing)-1] {
			err = p.file.Count(geo.Position{})
		} else {
			points[len(points)-1].Position, err = p.position(strings.Fields(text), text)
		}
		if err != nil {
			return p.Errorf(line, "%s", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(whens) != len(points) {
		return p.Errorf(begin, "the track has %d when and %d coord: want one of each for each point", len(whens), len(points))
	}
	segment, err := p.timed(points, whens, missing)
	if len(segment) > 0 {
		m.segments = append(m.segments, segment)
	}
	return err
}

// timed returns a track's points without the missing ones.
func (p *parser) timed(points []tracks.Point, whens []string, missing []bool) (segment []tracks.Point, err error) {
	for i, point := range points {
		if missing[i] {
			p.file.Tally.Unknown("coord without coordinates")
			continue
		}
		if point.At = tracks.Untimed; strings.TrimSpace(whens[i]) != "" {
			if point.At, err = p.date(whens[i]); err != nil {
				return nil, p.Errorf(point.Line, "%s", err)
			}
		}
		segment = append(segment, point)
	}
	return segment, nil
}

// keep stores a placemark's content.
func (p *parser) keep(m *mark, in *folder) error {
	if m.hasTracks {
		if err := p.begin(&tracks.Track{Name: strings.TrimSpace(m.name), Segments: m.segments, Ordered: true}); err != nil {
			return err
		}
	}
	begin, end := m.begin, m.end
	if m.stamp != "" {
		begin = m.stamp
	}
	for _, points := range m.lines {
		t := &tracks.Track{Name: strings.TrimSpace(m.name), Segments: [][]tracks.Point{points}, Plan: "LineString", Ordered: true}
		if m.begin != "" && m.end != "" {
			t.Plan = ""
			if err := p.stamp(&points[0], begin, m.stampAt); err != nil {
				return err
			}
			if err := p.stamp(&points[len(points)-1], end, m.stampAt); err != nil {
				return err
			}
		}
		if err := p.begin(t); err != nil {
			return err
		}
	}
	for _, point := range m.points {
		for _, when := range []string{begin, end} {
			if when == "" {
				continue
			}
			if err := p.stamp(&point, when, m.stampAt); err != nil {
				return err
			}
			in.points = append(in.points, stamped{strings.TrimSpace(m.name), point, m})
		}
		if begin == "" && end == "" {
			p.file.Tally.Unknown("Point without a time")
		}
	}
	return nil
}

func (p *parser) begin(t *tracks.Track) error {
	if err := p.file.Begin(t); err != nil {
		return p.Errorf(p.Line(), "%s", err)
	}
	return nil
}

// date parses a date of KML, which may also be a year or a month; that is its begin.
func (p *parser) date(text string) (time.Duration, error) {
	switch text = strings.TrimSpace(text); {
	case year.MatchString(text):
		text += "-01-01"
	case month.MatchString(text):
		text += "-01"
	}
	return p.file.Date(text)
}

var year, month = regexp.MustCompile(`^\d{4}$`), regexp.MustCompile(`^\d{4}-\d\d$`)

// stamp sets a point's time.
func (p *parser) stamp(point *tracks.Point, when string, line int) (err error) {
	if point.At, err = p.date(when); err != nil {
		return p.Errorf(line, "%s", err)
	}
	return nil
}

// gather gathers a folder's points in tracks: by their names if two placemarks share one. A placemark with a TimeSpan has two points.
func (p *parser) gather(f *folder) {
	named, marks, repeated := map[string]*mark{}, map[*mark]bool{}, false
	for _, s := range f.points {
		other := named[s.name]
		repeated = repeated || (other != nil && other != s.mark && s.name != "")
		named[s.name], marks[s.mark] = s.mark, true
	}
	byName := map[string]*tracks.Track{}
	for _, s := range f.points {
		name := f.name
		if repeated || len(marks) == 1 {
			name = s.name
		}
		t := byName[name]
		if t == nil {
			t = &tracks.Track{Name: strings.TrimSpace(name), Segments: make([][]tracks.Point, 1)}
			byName[name] = t
			p.file.Tracks = append(p.file.Tracks, t)
		}
		t.Segments[0] = append(t.Segments[0], s.point)
	}
}
