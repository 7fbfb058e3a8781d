package compile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/antennaxml"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkAntennas returns why a scenario cannot have antenna profiles, if so, without a look at its files.
func checkAntennas(spec *v1alpha1.ScenarioSpec) error {
	a := spec.AntennaProfiles
	switch {
	case a == nil:
		return nil
	case spec.Format != v1alpha1.ScenarioEEL:
		return fmt.Errorf("antennaProfiles: only eel has antennaprofile events, which say who has which: leave it out for %s", spec.Format)
	case spec.Compiled != "":
		return errors.New("antennaProfiles: a compiled scenario has them already: leave the field out")
	case a.Platform != nil || a.Offset != "":
		return errors.New("antennaProfiles: it moves no platform: leave platform and offset out")
	}
	return nil
}

// readAntennas reads the manifest's antennas, if there is one.
func (c *compilation) readAntennas(b *scenario.Builder) error {
	source := c.spec.AntennaProfiles
	if source == nil {
		return nil
	}
	text, err := c.fetch(*source)
	if err != nil {
		return err
	}
	entries, err := antennaxml.ReadManifest(c.reader(text), name(*source))
	if err != nil {
		return err
	}
	library := patterns{c: c, manifest: *source, texts: map[string][]byte{}, read: map[[2]string]*antenna.Pattern{}}
	for _, e := range entries {
		p := antenna.Profile{ID: e.ID, Placement: e.Placement}
		if p.Antenna, err = library.get(e, antennaxml.Antenna, e.AntennaURI); err != nil {
			return err
		}
		if e.BlockageURI != "" {
			if p.Blockage, err = library.get(e, antennaxml.Blockage, e.BlockageURI); err != nil {
				return err
			}
		}
		c.antennas = append(c.antennas, p)
	}
	slices.SortFunc(c.antennas, func(x, y antenna.Profile) int { return cmp.Compare(x.ID, y.ID) })
	if err := c.antennas.Check(); err != nil {
		return fmt.Errorf("%s: %w", name(*source), err)
	}
	b.Antennas(c.antennas)
	return nil
}

// patterns has a manifest's patterns, each read once.
type patterns struct {
	c        *compilation
	manifest v1alpha1.ScenarioSource
	texts    map[string][]byte // by key
	read     map[[2]string]*antenna.Pattern
}

// get returns the pattern of a kind in a manifest's entry.
func (p *patterns) get(e antennaxml.Entry, kind antennaxml.Kind, uri string) (*antenna.Pattern, error) {
	key := path.Base(uri)
	if known := p.read[[2]string{key, string(kind)}]; known != nil {
		return known, nil
	}
	source := v1alpha1.ScenarioSource{ConfigMap: p.manifest.ConfigMap, Key: key}
	text, fetched := p.texts[key]
	if !fetched {
		var err error
		if text, err = p.fetch(source); err != nil {
			return nil, fmt.Errorf("%s:%d: profile %d names %s %q, which is read from the key %s: %w", name(p.manifest), e.Line, e.ID, kind, uri, key, err)
		}
		p.texts[key] = text
	}
	pattern, err := antennaxml.ReadPattern(bytes.NewReader(text), name(source), kind)
	if err != nil {
		return nil, err
	}
	if unused := unusedRanges(pattern); unused != "" {
		p.c.warnings = append(p.c.warnings, fmt.Sprintf("%s: %s", name(source), unused))
	}
	p.read[[2]string{key, string(kind)}] = pattern
	return pattern, nil
}

// fetch reads a pattern's file, or its packed form if there is no other.
func (p *patterns) fetch(source v1alpha1.ScenarioSource) ([]byte, error) {
	text, err := p.c.fetch(source)
	if err == nil {
		return text, nil
	}
	source.Key += ".gz"
	if packed, failed := p.c.fetch(source); failed == nil {
		return packed, nil
	}
	return nil, err
}

// unusedRanges describes the parts of a pattern that no direction ever uses.
func unusedRanges(p *antenna.Pattern) string {
	for _, e := range p.Elevations {
		if e.Min < -90 || e.Max > 90 {
			return fmt.Sprintf("elevation from %d to %d: elevations are from -90 to 90 degrees, and what lies outside is not used", e.Min, e.Max)
		}
		for _, b := range e.Bearings {
			if b.Min < 0 || b.Max > 360 {
				return fmt.Sprintf("bearing from %d to %d: bearings are from 0 to 359 degrees, and what lies outside is not used", b.Min, b.Max)
			}
		}
	}
	return ""
}

// checkUsedAntennas returns what a compiled scenario lacks for its antenna profiles.
func (c *compilation) checkUsedAntennas(s *scenario.Scenario) error {
	if c.antennas == nil {
		return nil
	}
	platforms := s.AntennaPlatforms()
	if len(platforms) == 0 {
		c.warnings = append(c.warnings, "antennaProfiles is given, but the sources have no antennaprofile events: every radio keeps its antennaGain")
		return nil
	}
	if !s.HasPositions() {
		return errors.New("antennaProfiles: gains depend on directions, but the sources have no positions: want location sentences, such as: 0.0 nem:1 location gps 58.1,7.9,3")
	}
	end := s.NewCursor()
	if err := end.Seek(s.Duration()); err != nil {
		return err
	}
	var without []string
	for _, platform := range platforms {
		i, _ := s.Index(platform)
		if _, known := end.Position(i); !known {
			without = append(without, fmt.Sprint(platform))
		}
	}
	if len(without) > 0 {
		return fmt.Errorf("antennaProfiles: platforms with an antenna profile but without a position: %s: want location sentences for them", strings.Join(without, ", "))
	}
	return nil
}
