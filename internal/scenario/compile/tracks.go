package compile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// readTracks reads all files of tracks, with common numbers and times.
func (c *compilation) readTracks(parse tracks.Parse, files []*file, b *scenario.Builder) error {
	rules, plane := trackRules(c.spec.Tracks)
	sources, points := make([]tracks.Source, len(files)), 0
	for i, f := range files {
		number := 0
		if f.source.Platform != nil {
			number = int(*f.source.Platform)
		}
		parsed, err := parse(c.reader(f.text), f.name(), tracks.Options{Context: c.ctx, Platform: number, Plane: plane})
		if err != nil {
			return err
		}
		f.text = nil
		if points += parsed.Points(); points > tracks.MaxPoints {
			return fmt.Errorf("with %s the sources have more than %d points: want fewer, or parts of them", f.name(), tracks.MaxPoints)
		}
		sources[i] = tracks.Source{File: parsed, Platform: number, Offset: f.source.Offset.Std()}
	}
	report, err := tracks.Put(b, sources, rules)
	if err != nil {
		return err
	}
	for kind, n := range report.Unknown {
		c.unknown[kind] += n
	}
	c.warnings = append(c.warnings, report.Warnings...)
	c.start = report.Origin
	return c.ctx.Err()
}

// alignments are the alignments of tracks.
var alignments = map[v1alpha1.TrackAlignment]tracks.Align{v1alpha1.AlignSources: tracks.AlignSources, v1alpha1.AlignTracks: tracks.AlignTracks}

// trackRules returns a scenario's rules of tracks, and the plane of its coordinates; nil if it has none.
func trackRules(t *v1alpha1.ScenarioTracks) (rules tracks.Rules, plane *tracks.Plane) {
	if t == nil {
		return rules, nil
	}
	rules = tracks.Rules{Align: alignments[t.Align], Pace: paceOf(t.Speed, t.Duration), Named: map[string]tracks.Rule{}, Step: time.Second}
	if t.Start != nil {
		rules.Start = t.Start.Time
	}
	for _, n := range t.Named {
		rule := tracks.Rule{Offset: n.Offset.Std(), Pace: paceOf(n.Speed, n.Duration)}
		if n.Platform != nil {
			rule.Platform = int(*n.Platform)
		}
		rules.Named[n.Name] = rule
	}
	if o := t.Origin; o != nil {
		origin := geo.Position{Latitude: o.Latitude.Float(), Longitude: o.Longitude.Float(), Altitude: o.Altitude.Float()}
		plane = tracks.NewPlane(origin, cmp.Or(t.Unit, "1m").Float(), t.YAxis == "South")
	}
	return rules, plane
}

func paceOf(speed v1alpha1.Speed, duration v1alpha1.Duration) tracks.Pace {
	return tracks.Pace{MetresPerSecond: speed.MetresPerSecond(), Duration: duration.Std()}
}

// checkTracks returns what is impossible in the rules of tracks, whatever the files have.
func checkTracks(spec *v1alpha1.ScenarioSpec) error {
	f, err := formatOf(spec.Format)
	if spec.Format == v1alpha1.ScenarioSynthetic || spec.Compiled != "" {
		f, err = format{name: spec.Format}, nil
	}
	if err != nil {
		return err
	}
	if err := checkSources(spec, f); err != nil {
		return err
	}
	t := spec.Tracks
	switch {
	case f.plane && (t == nil || t.Origin == nil):
		return fmt.Errorf("tracks.origin is missing: coordinates of %s are metres: want the latitude and longitude of 0, 0 (--origin)", f.name)
	case t == nil:
		return nil
	case spec.Compiled != "":
		return errors.New("tracks: the scenario is compiled already: leave the field out")
	case f.tracks == nil:
		return fmt.Errorf("tracks: format %s has none: leave the field out", f.name)
	case t.Origin != nil && !f.plane && f.name != v1alpha1.ScenarioSUMO:
		return fmt.Errorf("tracks.origin is for coordinates in metres, of ns2 and sumo: leave it out for %s", f.name)
	case t.Start != nil && alignments[t.Align] != tracks.AlignNone:
		return fmt.Errorf("tracks.start is for align AsDated: leave one of the two out, as with align %s dates do not count", t.Align)
	case t.Start != nil && reading.CheckYear(t.Start.Time) != nil:
		return fmt.Errorf("tracks.start is %s: %w", t.Start.Format(time.RFC3339), reading.CheckYear(t.Start.Time))
	case t.Unit != "" && !(t.Unit.Float() > 0):
		return fmt.Errorf("tracks.unit is %q: must be above zero, such as 1.5m", t.Unit)
	}
	if t.Origin != nil {
		if err := (geo.Position{Latitude: t.Origin.Latitude.Float(), Longitude: t.Origin.Longitude.Float()}).Validate(); err != nil {
			return fmt.Errorf("tracks.origin: %w", err)
		}
	}
	return checkPaces(t)
}

// checkSources refuses offsets and platforms of sources to which they do not apply. A terrain has no tracks.
func checkSources(spec *v1alpha1.ScenarioSpec, f format) error {
	if spec.Compiled != "" && len(spec.Files()) > 0 {
		return fmt.Errorf("source: the scenario is compiled already, and %s is not read: leave one of source and compiled out", name(spec.Files()[0]))
	}
	for _, source := range spec.Files() {
		if f.tracks == nil && source.Offset != "" {
			return fmt.Errorf("offset of %s: files of %s keep their times: leave it out", name(source), f.name)
		}
		if source.Platform != nil && (f.tracks == nil || f.name == v1alpha1.ScenarioNS2) {
			return fmt.Errorf("platform of %s: files of %s number their platforms: leave it out", name(source), f.name)
		}
	}
	if p := spec.Propagation; p != nil && p.Terrain != nil && (p.Terrain.Offset != "" || p.Terrain.Platform != nil) {
		return errors.New("propagation.terrain: it moves no platform: leave platform and offset out")
	}
	return checkAntennas(spec)
}

// checkPaces checks the paces of tracks without times.
func checkPaces(t *v1alpha1.ScenarioTracks) error {
	check := func(where string, speed v1alpha1.Speed, duration v1alpha1.Duration) error {
		switch {
		case speed != "" && duration != "":
			return fmt.Errorf("%s.speed and %s.duration exclude each other: leave out one of the two", where, where)
		case duration != "" && duration.Std() <= 0:
			return fmt.Errorf("%s.duration is %q: must be above zero, such as 10m", where, duration)
		case speed != "" && !(speed.MetresPerSecond() > 0 && !math.IsInf(speed.MetresPerSecond(), 0)):
			return fmt.Errorf("%s.speed is %q: must be above zero, such as 5m/s", where, speed)
		}
		return nil
	}
	if err := check("tracks", t.Speed, t.Duration); err != nil {
		return err
	}
	for _, n := range t.Named {
		if err := check(fmt.Sprintf("tracks.named[%s]", n.Name), n.Speed, n.Duration); err != nil {
			return err
		}
	}
	return nil
}
