// Package gpx reads tracks in the GPS exchange format (GPX 1.1, topografix.com/GPX/1/1). Each track is a platform. A route is one if
// the file has no tracks and the times of its points can be computed. Waypoints are skipped.
package gpx

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
)

// Parse reads a file. Errors about the file contain its name, and are *scenario.SyntaxError.
func Parse(r io.Reader, name string, options tracks.Options) (*tracks.File, error) {
	p := &parser{XML: reading.NewXML(r, name), file: tracks.NewFile(name, options)}
	p.file.Clock = tracks.Dates
	return p.file, p.File([]string{"gpx"}, p.element, nil)
}

type parser struct {
	*reading.XML
	file *tracks.File
}

// point is a point of the file.
type point struct {
	Latitude  string `xml:"lat,attr"`
	Longitude string `xml:"lon,attr"`
	Elevation string `xml:"ele"`
	Time      string `xml:"time"`
}

func (p *parser) element(start xml.StartElement) error {
	switch start.Name.Local {
	case "trk":
		return p.track(&tracks.Track{Ordered: true}, "trkseg")
	case "rte":
		return p.track(&tracks.Track{Ordered: true, Plan: "rte"}, "rtept")
	case "metadata", "extensions":
	default:
		p.file.Tally.Unknown(start.Name.Local)
	}
	return p.Skip()
}

// track reads a track with segments, or a route, which is one segment.
func (p *parser) track(t *tracks.Track, content string) error {
	if err := p.file.Begin(t); err != nil {
		return p.Errorf(p.Line(), "%s", err)
	}
	return p.Elements(func(start xml.StartElement) error {
		switch start.Name.Local {
		case "name":
			return p.Decode(&t.Name, start)
		case content:
			if content == "rtept" {
				return p.point(t, start)
			}
			first := true
			return p.Elements(func(start xml.StartElement) error {
				if start.Name.Local != "trkpt" {
					return p.Skip()
				}
				if first {
					t.Segments, first = append(t.Segments, nil), false
				}
				return p.point(t, start)
			})
		}
		return p.Skip()
	})
}

// point adds a point to the last segment.
func (p *parser) point(t *tracks.Track, start xml.StartElement) error {
	line := p.Line()
	var raw point
	if err := p.Decode(&raw, start); err != nil {
		return err
	}
	next, err := p.parsePoint(raw)
	if err == nil {
		err = p.file.Count(next.Position)
	}
	if err != nil {
		return p.Errorf(line, "%s", err)
	}
	next.Line = line
	if len(t.Segments) == 0 {
		t.Segments = make([][]tracks.Point, 1)
	}
	last := len(t.Segments) - 1
	t.Segments[last] = append(t.Segments[last], next)
	return nil
}

func (p *parser) parsePoint(raw point) (next tracks.Point, err error) {
	if raw.Latitude == "" || raw.Longitude == "" {
		return next, errors.New("the point has no lat or no lon")
	}
	next.At = tracks.Untimed
	if strings.TrimSpace(raw.Time) != "" {
		if next.At, err = p.file.Date(raw.Time); err != nil {
			return next, err
		}
	}
	next.Position, err = raw.position()
	return next, err
}

func (raw point) position() (position geo.Position, err error) {
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
