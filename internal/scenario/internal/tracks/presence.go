package tracks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/wording"
)

// Presence has the times at which sources have positions of platforms.
type Presence struct{ of map[int][]present }

type present struct {
	source string
	scenario.Span
}

// Add adds a source's positions of a platform. It returns a message if another source has some at the same times.
func (p *Presence) Add(source string, platform int, span scenario.Span) (clash string) {
	for _, other := range p.of[platform] {
		if clash == "" && other.Overlaps(span) {
			clash = fmt.Sprintf("%s and %s both have positions of platform %d from %s to %s", other.source, source, platform,
				wording.Time(max(span.First, other.First)), wording.Time(min(span.Last, other.Last)))
		}
	}
	if p.of == nil {
		p.of = map[int][]present{}
	}
	p.of[platform] = append(p.of[platform], present{source, span})
	return clash
}

// longestPause is the pause without any position that suggests sources of different times.
const longestPause = time.Hour

// Pause returns a message about a long time without new positions, as with sources of different days.
func (p *Presence) Pause() string {
	var all []present
	for _, platform := range slices.Sorted(maps.Keys(p.of)) {
		all = append(all, p.of[platform]...)
	}
	slices.SortStableFunc(all, func(a, b present) int { return cmp.Compare(a.First, b.First) })
	last := time.Duration(0)
	for i, s := range all {
		if s.First-last > longestPause && i == 0 {
			return fmt.Sprintf("no platform has a position before %s, when %s begins", wording.Time(s.First), s.source)
		}
		if s.First-last > longestPause {
			return fmt.Sprintf("from %s to %s no platform has a new position: %s goes on then, as its times say", wording.Time(last), wording.Time(s.First), s.source)
		}
		last = max(last, s.Last)
	}
	return ""
}
