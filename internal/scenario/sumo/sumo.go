// Package sumo reads the positions of SUMO's vehicles and persons: the output of sumo --fcd-output
// (https://sumo.dlr.de/docs/Simulation/Output/FCDOutput.html). With --fcd-output.geo positions are degrees, otherwise metres in the
// coordinates of the network.
package sumo

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
)

// Parse parses a file. Errors about the file contain its name, and are *scenario.SyntaxError. Each vehicle, person and container is a platform.
func Parse(r io.Reader, name string, options tracks.Options) (*tracks.File, error) {
	p := &parser{XML: reading.NewXML(r, name), file: tracks.NewFile(name, options), plane: options.Plane}
	p.file.ByName = true
	return p.file, p.File([]string{"fcd-export"}, p.element, p.comment)
}

type parser struct {
	*reading.XML
	file  *tracks.File
	plane *tracks.Plane
	// said is the kind of coordinates that the file declares.
	said coordinates
}

type coordinates int

const (
	unsaid coordinates = iota
	metres
	degrees
)

// geoOption is the option in the configuration that SUMO writes at the head of its outputs.
var geoOption = regexp.MustCompile(`<fcd-output\.geo\s+value="(true|1|x|yes|on)"`)

// comment reads a comment at the head of the file.
func (p *parser) comment(text string) {
	switch {
	case geoOption.MatchString(text):
		p.said = degrees
	case strings.Contains(text, "<fcd-output "):
		p.said = metres
	}
}

func (p *parser) element(start xml.StartElement) error {
	if start.Name.Local != "timestep" {
		p.file.Tally.Unknown(start.Name.Local)
		return p.Skip()
	}
	at, err := seconds(attributes(start)["time"])
	if err != nil {
		return p.Errorf(p.Line(), "%s", err)
	}
	return p.Elements(func(start xml.StartElement) error {
		switch start.Name.Local {
		case "vehicle", "person", "container":
			if err := p.place(at, attributes(start)); err != nil {
				return p.Errorf(p.Line(), "%s: %s", start.Name.Local, err)
			}
		default:
			p.file.Tally.Unknown(start.Name.Local)
		}
		return p.Skip()
	})
}

func attributes(start xml.StartElement) map[string]string {
	values := map[string]string{}
	for _, a := range start.Attr {
		values[a.Name.Local] = strings.TrimSpace(a.Value)
	}
	return values
}

// clock matches SUMO's times with --human-readable-time: days, if there are any, hours, minutes and seconds.
var clock = regexp.MustCompile(`^(?:(\d{1,3}):)?(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)$`)

// seconds parses a timestep's time.
func seconds(text string) (time.Duration, error) {
	parts := clock.FindStringSubmatch(text)
	if parts == nil {
		return reading.Seconds([]byte(text))
	}
	var at time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if parts[i+1] == "" {
			continue
		}
		v, err := reading.Float([]byte(parts[i+1]), "time")
		if err != nil {
			return 0, err
		}
		at += time.Duration(v * float64(unit))
	}
	return at, nil
}

// place adds a place of a vehicle or person.
func (p *parser) place(at time.Duration, a map[string]string) error {
	if a["id"] == "" {
		return errors.New("it has no id")
	}
	if a["x"] == "" || a["y"] == "" {
		return errors.New("it has no x or no y: want both in fcd-output.attributes")
	}
	position, err := p.position(a)
	if err != nil {
		return err
	}
	return p.file.Add(p.file.Named(a["id"]), tracks.Point{At: at, Position: position, Line: p.Line()})
}

func (p *parser) position(a map[string]string) (position geo.Position, err error) {
	z := 0.0
	if a["z"] != "" {
		if z, err = reading.Float([]byte(a["z"]), "z"); err != nil {
			return position, err
		}
	}
	switch {
	case p.said != degrees && p.plane != nil:
		return p.onPlane(a, z)
	case p.said == metres:
		return position, tracks.ErrNoPlane
	}
	position.Altitude = z
	if position.Longitude, err = reading.Float([]byte(a["x"]), "x"); err != nil {
		return position, err
	}
	if position.Latitude, err = reading.Float([]byte(a["y"]), "y"); err != nil {
		return position, err
	}
	if position.Validate() != nil {
		return position, fmt.Errorf("x is %s and y is %s, which are no degrees: %w", reading.Short([]byte(a["x"])), reading.Short([]byte(a["y"])), tracks.ErrNoPlane)
	}
	return position, nil
}

func (p *parser) onPlane(a map[string]string, z float64) (position geo.Position, err error) {
	x, err := p.plane.Coordinate(a["x"], "x")
	if err != nil {
		return position, err
	}
	y, err := p.plane.Coordinate(a["y"], "y")
	if err != nil {
		return position, err
	}
	return p.plane.Position(x, y, z), nil
}
