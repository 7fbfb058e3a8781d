package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/anglovacsv"
	"vignette.dev/vignette/internal/scenario/gpx"
	"vignette.dev/vignette/internal/scenario/positioncsv"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// file of a scenario, with what the files have in common.
type file struct {
	source v1alpha1.ScenarioSource
	text   []byte
	// platform of the file, or of its first track; 0 if the file says it.
	platform int
	// origin and originSeconds are the time 0 of all files.
	origin        time.Time
	originSeconds *float64
}

func (f *file) name() string { return name(f.source) }

// together gives files a common origin, and GPX tracks numbers: what each file would take for itself does not fit the others.
func (c *compilation) together(files []*file) error {
	for _, f := range files {
		if f.source.Platform != nil {
			f.platform = int(*f.source.Platform)
		}
	}
	if len(files) < 2 {
		return nil
	}
	switch c.spec.Format {
	case v1alpha1.ScenarioGPX:
		return c.tracksTogether(files)
	case v1alpha1.ScenarioCSV:
		return c.rowsTogether(files)
	case v1alpha1.ScenarioAnglovaCSV:
		return c.pairsTogether(files)
	}
	return nil
}

func (c *compilation) rowsTogether(files []*file) error {
	var origin time.Time
	var dated *file
	for i, f := range files {
		first, err := positioncsv.First(c.reader(f.text), f.name(), positioncsv.Options{Platform: f.platform})
		if err != nil {
			return err
		}
		if i > 0 && kindOfTime(first) != kindOfTime(origin) {
			return fmt.Errorf("%s has %s and %s has %s: want one of them in all sources", dated.name(), kindOfTime(origin), f.name(), kindOfTime(first))
		}
		if i == 0 {
			origin, dated = first, f
		}
		origin = positioncsv.Earlier(origin, first)
	}
	for _, f := range files {
		f.origin = origin
	}
	return nil
}

// kindOfTime that the first moment of rows has.
func kindOfTime(first time.Time) string {
	switch {
	case first.IsZero():
		return "times in seconds"
	case first.Year() <= 0:
		return "times of day"
	}
	return "dates"
}

func (c *compilation) pairsTogether(files []*file) error {
	var origin float64
	for i, f := range files {
		first, err := anglovacsv.First(c.reader(f.text), f.name())
		if err != nil {
			return err
		}
		if i == 0 || first < origin {
			origin = first
		}
	}
	for _, f := range files {
		f.originSeconds = &origin
	}
	return nil
}

func (c *compilation) tracksTogether(files []*file) error {
	var origin time.Time
	contents := make([]gpx.Contents, len(files))
	for i, f := range files {
		var err error
		if contents[i], err = gpx.Look(c.reader(f.text), f.name()); err != nil {
			return err
		}
		first := contents[i].First
		if origin.IsZero() || (!first.IsZero() && first.Before(origin)) {
			origin = first
		}
	}
	for _, f := range files {
		f.origin = origin
	}
	return c.numberTracks(files, contents)
}

// numberTracks of the files that say no platform: by the tracks' names if all of them are numbers and each is there once, else by the order of the
// files. Two files with one platform are refused.
func (c *compilation) numberTracks(files []*file, contents []gpx.Contents) error {
	users := map[int]*file{}
	for i, f := range files {
		if f.platform != 0 {
			for n := range contents[i].Tracks {
				number := f.platform + n
				if user := users[number]; user != nil {
					return fmt.Errorf("platform %d is that of %s and that of %s, which has %d tracks: want each platform in one source", number, user.name(), f.name(), contents[i].Tracks)
				}
				users[number] = f
			}
		}
	}
	if namesFit(files, contents, users) {
		return nil
	}
	var said []string
	next := 1
	for i, f := range files {
		if f.platform != 0 || contents[i].Tracks == 0 {
			continue
		}
		for taken := true; taken; {
			taken = false
			for n := range contents[i].Tracks {
				if users[next+n] != nil {
					next, taken = next+n+1, true
					break
				}
			}
		}
		f.platform = next
		next += contents[i].Tracks
		said = append(said, fmt.Sprintf("%s is %s", f.name(), numbers(f.platform, contents[i].Tracks)))
	}
	const most = 8
	if len(said) > most {
		said = append(said[:most], fmt.Sprintf("and so on for %d more", len(said)-most))
	}
	c.warnings = append(c.warnings, "tracks have the numbers of platforms in the order of their sources: "+strings.Join(said, ", "))
	return nil
}

// numbers of so many platforms from one on.
func numbers(from, count int) string {
	if count == 1 {
		return fmt.Sprintf("platform %d", from)
	}
	return fmt.Sprintf("platforms %d to %d", from, from+count-1)
}

// namesFit reports whether the names of all tracks of the files that say no platform are numbers that nobody else has.
func namesFit(files []*file, contents []gpx.Contents, users map[int]*file) bool {
	seen := map[int]bool{}
	for i, f := range files {
		if f.platform != 0 {
			continue
		}
		if len(contents[i].Named) != contents[i].Tracks {
			return false
		}
		for _, number := range contents[i].Named {
			if seen[number] || users[number] != nil {
				return false
			}
			seen[number] = true
		}
	}
	return true
}

// longestPause without any position after which the sources seem to be of different times.
const longestPause = time.Hour

// pauses are said: sources of different days keep their dates.
func (c *compilation) pauses() {
	var all []placed
	for _, platform := range slices.Sorted(maps.Keys(c.placed)) {
		all = append(all, c.placed[platform]...)
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.First, b.First) })
	for i := 1; i < len(all); i++ {
		last := max(all[0].Last, all[i-1].Last)
		all[0].Last = last
		if all[i].First-last > longestPause {
			c.warnings = append(c.warnings, fmt.Sprintf("from %s to %s no platform has a new position: %s goes on then, as its times say; sources of different days are not moved to a common start",
				last, all[i].First, all[i].file.name()))
			return
		}
	}
}

// placed is where a file has positions of a platform.
type placed struct {
	file *file
	scenario.Span
}

// apart refuses, or for event logs says, that two files have positions of a platform at the same times.
func (c *compilation) apart(f *file, spans map[int]scenario.Span) error {
	said := false // of one platform of a source is enough
	for _, platform := range slices.Sorted(maps.Keys(spans)) {
		span := spans[platform]
		for _, other := range c.placed[platform] {
			if !other.Overlaps(span) {
				continue
			}
			what := fmt.Sprintf("%s and %s both have positions of platform %d from %s to %s", other.file.name(), f.name(), platform,
				max(span.First, other.First), min(span.Last, other.Last))
			if c.spec.Format == v1alpha1.ScenarioCSV || c.spec.Format == v1alpha1.ScenarioGPX {
				return fmt.Errorf("%s: want each platform in one source, or sources that follow each other", what)
			}
			if !said {
				c.warnings = append(c.warnings, what+": of two for one moment the later source's holds")
			}
			said = true
		}
		c.placed[platform] = append(c.placed[platform], placed{f, span})
	}
	return nil
}
