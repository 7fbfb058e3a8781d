// Package antennaxml reads EMANE's antenna profile manifests and the antenna and blockage patterns that they name.
package antennaxml

import (
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/scenario/internal/reading"
)

// Entry is an entry of a manifest.
type Entry struct {
	ID int
	// Line is its first line in the file.
	Line int
	// AntennaURI and BlockageURI name the patterns; BlockageURI is empty for none.
	AntennaURI, BlockageURI string
	Placement               antenna.Placement
}

// parser parses one file.
type parser struct{ *reading.XML }

// ReadManifest reads a manifest. Errors about the file contain its name, and are *scenario.SyntaxError.
func ReadManifest(r io.Reader, name string) (entries []Entry, err error) {
	p := parser{reading.NewXML(r, name)}
	lines := map[int]int{}
	err = p.File([]string{"profiles"}, func(start xml.StartElement) error {
		if start.Name.Local != "profile" {
			return p.unexpected(start, "profile")
		}
		e, err := p.entry(start)
		switch {
		case err != nil:
			return err
		case lines[e.ID] > 0:
			return p.Errorf(e.Line, "profile %d is in line %d already: give each profile an id of its own", e.ID, lines[e.ID])
		case len(entries) == antenna.MaxProfiles:
			return p.Errorf(e.Line, "the manifest has more than %d profiles", antenna.MaxProfiles)
		}
		lines[e.ID] = e.Line
		entries = append(entries, e)
		return nil
	}, nil)
	if err == nil && len(entries) == 0 {
		err = p.Errorf(p.Line(), `the manifest has no profiles: want <profile id="1" antennapatternuri="…"/>`)
	}
	return entries, err
}

func (p parser) entry(start xml.StartElement) (e Entry, err error) {
	e.Line = p.Line()
	if e.ID, err = p.whole(start, "id", 0, math.MaxUint16); err != nil {
		return e, err
	}
	if e.AntennaURI = strings.TrimSpace(attribute(start, "antennapatternuri")); e.AntennaURI == "" {
		return e, p.Errorf(e.Line, "profile %d has no antennapatternuri: want the file of its antenna pattern", e.ID)
	}
	e.BlockageURI = strings.TrimSpace(attribute(start, "blockagepatternuri"))
	return e, p.Elements(func(start xml.StartElement) error {
		if start.Name.Local != "placement" {
			return p.unexpected(start, "placement")
		}
		for _, axis := range []struct {
			name  string
			value *float64
		}{{"north", &e.Placement.North}, {"east", &e.Placement.East}, {"up", &e.Placement.Up}} {
			v, err := p.number(start, axis.name)
			if err == nil && math.Abs(v) > 1e5 {
				err = p.Errorf(p.Line(), "placement: %s is %v: want metres from the platform's position", axis.name, v)
			}
			if err != nil {
				return err
			}
			*axis.value = v
		}
		return p.Skip()
	})
}

// Kind is the kind of a pattern: the name of its element.
type Kind string

// The kinds of patterns.
const (
	Antenna  Kind = "antennapattern"
	Blockage Kind = "blockagepattern"
)

// ReadPattern reads a pattern of a kind. A file may have one of each kind. Errors about the file contain its name, and are *scenario.SyntaxError.
func ReadPattern(r io.Reader, name string, kind Kind) (*antenna.Pattern, error) {
	p := parser{reading.NewXML(r, name)}
	var found *antenna.Pattern
	err := p.File([]string{"antennaprofile"}, func(start xml.StartElement) error {
		if start.Name.Local != string(Antenna) && start.Name.Local != string(Blockage) {
			return p.unexpected(start, string(Antenna), string(Blockage))
		}
		pattern, err := p.pattern(start.Name.Local)
		if err != nil || start.Name.Local != string(kind) {
			return err
		}
		if found != nil {
			return p.Errorf(p.Line(), "there is a second %s: want one in a file", kind)
		}
		found = pattern
		return nil
	}, nil)
	if err == nil && found == nil {
		err = p.Errorf(p.Line(), "the file has no %s", kind)
	}
	return found, err
}

func (p parser) pattern(name string) (*antenna.Pattern, error) {
	pattern, bearings := &antenna.Pattern{}, 0
	begins := p.Line()
	err := p.Elements(func(start xml.StartElement) error {
		if start.Name.Local != "elevation" {
			return p.unexpected(start, "elevation")
		}
		e, err := p.elevation(start)
		if err != nil {
			return err
		}
		if n := len(pattern.Elevations); n > 0 && e.Min <= pattern.Elevations[n-1].Max {
			return p.Errorf(p.Line(), "elevation from %d to %d overlaps with the one before, which ends at %d: want ascending ranges", e.Min, e.Max, pattern.Elevations[n-1].Max)
		}
		if bearings += len(e.Bearings); bearings > antenna.MaxBearings {
			return p.Errorf(p.Line(), "the pattern has more than %d bearings", antenna.MaxBearings)
		}
		pattern.Elevations = append(pattern.Elevations, e)
		return nil
	})
	if err == nil && len(pattern.Elevations) == 0 {
		err = p.Errorf(begins, "%s has no elevation", name)
	}
	return pattern, err
}

func (p parser) elevation(start xml.StartElement) (e antenna.Elevation, err error) {
	begins := p.Line()
	if e.Min, e.Max, err = p.span(start); err != nil {
		return e, err
	}
	err = p.Elements(func(start xml.StartElement) error {
		if start.Name.Local != "bearing" {
			return p.unexpected(start, "bearing")
		}
		b, err := p.bearing(start)
		if err != nil {
			return err
		}
		if n := len(e.Bearings); n > 0 && b.Min <= e.Bearings[n-1].Max {
			return p.Errorf(p.Line(), "bearing from %d to %d overlaps with the one before, which ends at %d: want ascending ranges", b.Min, b.Max, e.Bearings[n-1].Max)
		}
		e.Bearings = append(e.Bearings, b)
		return nil
	})
	if err == nil && len(e.Bearings) == 0 {
		err = p.Errorf(begins, "elevation from %d to %d has no bearing", e.Min, e.Max)
	}
	return e, err
}

// bearing reads a bearing with its gain. The last of several gains counts, as in EMANE.
func (p parser) bearing(start xml.StartElement) (b antenna.Bearing, err error) {
	begins, given := p.Line(), false
	if b.Min, b.Max, err = p.span(start); err != nil {
		return b, err
	}
	err = p.Elements(func(start xml.StartElement) (err error) {
		if start.Name.Local != "gain" {
			return p.unexpected(start, "gain")
		}
		if b.Gain, err = p.number(start, "value"); err != nil {
			return err
		}
		given = true
		return p.Skip()
	})
	if err == nil && !given {
		err = p.Errorf(begins, `bearing from %d to %d has no gain: want <gain value="3"/>`, b.Min, b.Max)
	}
	return b, err
}

// span is a range of full degrees.
func (p parser) span(start xml.StartElement) (low, high int16, err error) {
	least, err := p.whole(start, "min", math.MinInt16, math.MaxInt16)
	if err != nil {
		return 0, 0, err
	}
	most, err := p.whole(start, "max", math.MinInt16, math.MaxInt16)
	if err == nil && least > most {
		err = p.Errorf(p.Line(), "%s: min %d is above max %d", start.Name.Local, least, most)
	}
	return int16(least), int16(most), err //nolint:gosec // in range
}

func attribute(start xml.StartElement, name string) string {
	i := slices.IndexFunc(start.Attr, func(a xml.Attr) bool { return a.Name.Local == name })
	if i < 0 {
		return ""
	}
	return start.Attr[i].Value
}

func (p parser) whole(start xml.StartElement, name string, least, most int) (int, error) {
	text := strings.TrimSpace(attribute(start, name))
	v, err := strconv.Atoi(text)
	if err != nil || v < least || v > most {
		return 0, p.Errorf(p.Line(), "%s: %s is %q: want a whole number from %d to %d", start.Name.Local, name, reading.Short([]byte(text)), least, most)
	}
	return v, nil
}

func (p parser) number(start xml.StartElement, name string) (float64, error) {
	v, err := reading.Float([]byte(strings.TrimSpace(attribute(start, name))), name)
	if err != nil {
		return 0, p.Errorf(p.Line(), "%s: %s", start.Name.Local, err)
	}
	if math.Abs(v) > 1e6 {
		return 0, p.Errorf(p.Line(), "%s: %s is %v: want at most 1000000", start.Name.Local, name, v)
	}
	return v, nil
}

// unexpected reports an element that is not allowed at its place.
func (p parser) unexpected(start xml.StartElement, want ...string) error {
	return p.Errorf(p.Line(), "there is an element %s: want %s", reading.Label(start.Name.Local), strings.Join(want, " or "))
}
