package tracks

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/wording"
)

// Align selects what begins at the scenario's start.
type Align int

// The alignments.
const (
	// AlignNone keeps times unchanged. The start is the first moment of all files if times are dates or times of day.
	AlignNone Align = iota
	// AlignSources lets each file begin at the start.
	AlignSources
	// AlignTracks lets each track begin at the start.
	AlignTracks
)

// Rules convert files into moving platforms.
type Rules struct {
	Align Align
	// Start is the scenario's time 0, if times are dates; the first moment of all files if zero.
	Start time.Time
	// Pace is the pace of tracks without times.
	Pace Pace
	// Named are rules for the tracks of a name.
	Named map[string]Rule
	// Step is the time between computed positions between two points of a segment; 1 s if zero. If negative, platforms jump.
	Step time.Duration
}

// Rule is the rule for the tracks of a name.
type Rule struct {
	// Platform is the track's platform; 0 for none.
	Platform int
	// Offset delays the track.
	Offset time.Duration
	Pace   Pace
}

// Source is a file with its settings.
type Source struct {
	*File
	// Platform is that of its first track, which the others follow; 0 for none.
	Platform int
	// Offset delays the file.
	Offset time.Duration
}

// placed is a track with its place in the scenario.
type placed struct {
	*Track
	source *Source
	// name is the track's name, or that of its file for a file's only track without a name.
	name   string
	pace   Pace
	offset time.Duration
	number int
	// untimed: the track's times count from the start.
	untimed bool
	// shift is from the file's times to the scenario's.
	shift time.Duration
}

// label names a track for people.
func (p *placed) label() string {
	if name := reading.Label(p.Name); name != "" {
		return name
	}
	return p.source.Name
}

// first returns the first moment by its clock.
func (p *placed) first() time.Duration { return p.span().First }

// span returns the span of its points.
func (p *placed) span() scenario.Span {
	s := scenario.Span{First: p.Segments[0][0].At, Last: p.Segments[0][0].At}
	for _, segment := range p.Segments {
		for _, point := range segment {
			s = scenario.Span{First: min(s.First, point.At), Last: max(s.Last, point.At)}
		}
	}
	return s
}

// Put puts the tracks of all of a scenario's files into a builder. Errors about a file are *scenario.SyntaxError.
func Put(b *scenario.Builder, sources []Source, rules Rules) (scenario.Report, error) {
	p := &putter{builder: b, rules: rules}
	p.rules.Step = cmp.Or(p.rules.Step, time.Second)
	for i := range sources {
		p.take(&sources[i])
	}
	for _, step := range []func() error{p.numbers, p.fill, p.shifts, p.put} {
		if err := step(); err != nil {
			return scenario.Report{}, err
		}
	}
	return p.report(sources), nil
}

// putter puts tracks into a builder.
type putter struct {
	builder  *scenario.Builder
	rules    Rules
	all      []*placed
	tally    reading.Tally
	presence Presence
	doubts   map[*Source]*doubts
}

// take takes a source's tracks. Planned ones count only if there are no others.
func (p *putter) take(source *Source) {
	plans, there := 0, 0
	for _, t := range source.Tracks {
		t.Segments = slices.DeleteFunc(t.Segments, func(s []Point) bool { return len(s) == 0 })
		switch {
		case len(t.Segments) == 0:
		case t.Plan != "":
			plans++
		default:
			there++
		}
	}
	for _, t := range source.Tracks {
		name := strings.TrimSpace(t.Name)
		if name == "" && len(source.Tracks) == 1 {
			name = nameOf(source.Name)
		}
		rule := p.rules.Named[name]
		pace := rule.Pace
		if pace == (Pace{}) {
			pace = p.rules.Pace
		}
		switch {
		case len(t.Segments) == 0:
		case t.Plan != "" && (there > 0 || pace == (Pace{})):
			p.tally.Unknown(t.Plan)
		default:
			p.all = append(p.all, &placed{Track: t, source: source, name: name, pace: pace, offset: source.Offset + rule.Offset, number: rule.Platform})
		}
	}
}

// nameOf returns a file's name without folder and endings.
func nameOf(file string) string {
	name := strings.TrimSuffix(path.Base(file), ".gz")
	return strings.TrimSuffix(name, path.Ext(name))
}

// shifts sets the shifts of all tracks.
func (p *putter) shifts() error {
	var timed []*placed
	for _, t := range p.all {
		t.shift = t.offset
		if !t.untimed {
			timed = append(timed, t)
		}
	}
	switch p.rules.Align {
	case AlignTracks:
		for _, t := range timed {
			t.shift -= t.first()
		}
	case AlignSources:
		firsts := firstsOf(timed)
		for _, t := range timed {
			t.shift -= firsts[t.source]
		}
	default:
		return p.keepTimes(timed)
	}
	return nil
}

// keepTimes keeps the times of all files relative to each other.
func (p *putter) keepTimes(timed []*placed) error {
	if err := p.oneClock(timed); err != nil {
		return err
	}
	if len(timed) == 0 || timed[0].source.Clock == Seconds {
		return nil
	}
	earlier := earlierDate
	if timed[0].source.Clock == TimesOfDay {
		earlier = earlierTimeOfDay
	}
	firsts := firstsOf(timed)
	origin := firsts[timed[0].source]
	for _, t := range timed { // in the order of the files, as among three times of day none need be the earliest
		origin = earlier(origin, firsts[t.source])
	}
	if !p.rules.Start.IsZero() {
		origin = time.Duration(p.rules.Start.UnixNano())
	}
	if timed[0].source.Clock == Dates {
		p.tally.Origin(time.Unix(0, int64(origin)).UTC())
	}
	for _, t := range timed {
		t.shift -= origin
		if first := firsts[t.source]; t.source.Clock == TimesOfDay && first < origin && earlier(origin, first) == origin {
			t.shift += 24 * time.Hour // times of day after midnight
		}
	}
	return nil
}

// oneClock refuses times of two kinds, and a date as start of times that are not dates.
func (p *putter) oneClock(timed []*placed) error {
	for _, t := range timed {
		clock, other := timed[0].source.Clock, t.source.Clock
		if other != clock {
			return fmt.Errorf("%s has %s and %s has %s: want one of them in all sources, or a common start (tracks.align, --align)",
				timed[0].source.Name, clock, t.source.Name, other)
		}
		if other != Dates && !p.rules.Start.IsZero() {
			return fmt.Errorf("tracks.start is a date, but %s has %s: want dates, or no start", t.source.Name, other)
		}
	}
	return nil
}

// firstsOf returns the first moment of each source.
func firstsOf(timed []*placed) map[*Source]time.Duration {
	firsts := map[*Source]time.Duration{}
	for _, t := range timed {
		had, known := firsts[t.source]
		if at := t.first(); !known || at < had {
			firsts[t.source] = at
		}
	}
	return firsts
}

func earlierDate(a, b time.Duration) time.Duration { return min(a, b) }

// earlierTimeOfDay returns the earlier of two: if they are more than half a day apart, the smaller one belongs to the next day.
func earlierTimeOfDay(a, b time.Duration) time.Duration {
	if apart := a - b; apart > 12*time.Hour || apart < -12*time.Hour {
		return max(a, b)
	}
	return min(a, b)
}

// put puts the points of all tracks into the builder, later starts later. Of all points before the start the last one counts.
func (p *putter) put() error {
	steppers, begins := map[*Source]*stepper{}, map[*placed]time.Duration{}
	for _, t := range p.all {
		begins[t] = t.first() + t.shift
	}
	for _, t := range slices.SortedStableFunc(slices.Values(p.all), func(a, b *placed) int { return cmp.Compare(begins[a], begins[b]) }) {
		s := steppers[t.source]
		if s == nil {
			s = &stepper{builder: p.builder, step: p.rules.Step}
			steppers[t.source] = s
		}
		if err := p.putTrack(s, t); err != nil {
			return err
		}
	}
	p.warnOfStill()
	return nil
}

// warnOfStill warns of platforms of which all tracks end before the start.
func (p *putter) warnOfStill() {
	last := map[int]time.Duration{}
	for _, t := range p.all {
		end := t.span().Last
		if other, known := last[t.number]; !known || end > other {
			last[t.number] = end
		}
	}
	for _, t := range p.all {
		if end := t.span().Last; end < 0 && end == last[t.number] {
			p.tally.Warn(fmt.Sprintf("%s ends %s before the scenario's start: its platform stays where it was then", t.label(), -end))
		}
	}
}

func (p *putter) putTrack(s *stepper, t *placed) error {
	if err := p.builder.Ended(); err != nil {
		return err
	}
	slices.SortStableFunc(t.Segments, func(a, b []Point) int { return cmp.Compare(a[0].At, b[0].At) })
	for n, segment := range t.Segments {
		for i := range segment {
			if err := p.move(t, &segment[i]); err != nil {
				return err
			}
		}
		if n > 0 {
			if end := t.Segments[n-1][len(t.Segments[n-1])-1]; segment[0].At < end.At {
				return t.source.errorf(segment[0].Line, "this part of the track begins at %s, before the end of another at %s, in line %d: want parts that follow each other, or tracks of their own",
					segment[0].At, end.At, end.Line)
			}
		}
		if !t.Ordered {
			slices.SortStableFunc(segment, func(a, b Point) int { return cmp.Compare(a.At, b.At) })
		}
		p.doubt(t, segment)
		p.doubtPause(t, segment)
		if err := s.add(t.number, segment); err != nil {
			return t.source.errorf(segment[0].Line, "%s", err)
		}
	}
	if clash := p.presence.Add(t.where(), t.number, t.span()); clash != "" {
		return fmt.Errorf("%s: want each platform in one source, or sources that follow each other", clash)
	}
	return nil
}

// where returns a track's place in its file, for errors about several.
func (p *placed) where() string {
	if name := reading.Label(p.Name); name != "" && !p.source.ByName {
		return fmt.Sprintf("%s (%s)", p.source.Name, name)
	}
	return p.source.Name
}

// move shifts a point from the file's time to the scenario's.
func (p *putter) move(t *placed, point *Point) error {
	point.At += t.shift
	if point.At > scenario.MaxDuration || point.At < -scenario.MaxDuration {
		return t.source.errorf(point.Line, "the point is %s after the scenario's start: want at most a year, by a common start of all tracks (tracks.align, --align) or a part of the file",
			wording.Time(point.At.Round(time.Second)))
	}
	return nil
}

// report returns the report on all files.
func (p *putter) report(sources []Source) scenario.Report {
	there := map[string]bool{}
	for _, t := range p.all {
		there[t.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(p.rules.Named)) {
		if !there[name] {
			p.tally.Warn(fmt.Sprintf("tracks.named[%s]: no track has this name", reading.Label(name)))
		}
	}
	if pause := p.presence.Pause(); pause != "" {
		p.tally.Warn(pause + "; a common start (tracks.align, --align) moves the sources together")
	}
	for i, s := range sources {
		own := s.Tally.Report()
		for kind, n := range own.Unknown {
			p.tally.UnknownTimes(kind, n)
		}
		for _, warning := range own.Warnings {
			p.tally.Warn(s.Name + ": " + warning)
		}
		if d := p.doubts[&sources[i]]; d != nil {
			d.warn(&p.tally, s.Name)
		}
	}
	return p.tally.Report()
}
