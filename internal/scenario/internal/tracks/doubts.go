package tracks

import (
	"cmp"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/wording"
)

const (
	// samePlace is how many metres apart two points of one time may be without a warning.
	samePlace = 1
	// fast is the speed in m/s above which a position is probably an error. Within a second so many metres may be noise.
	fast = 1000
)

// doubts are about points of a source that are probably errors.
type doubts struct {
	// twice counts points at the time of the one before, at another place.
	twice, twiceLine int
	// leaps counts points too far from the one before.
	leaps     int
	firstLeap string
	// pauses counts segments with one pause that is far longer than the others.
	pauses     int
	firstPause string
}

// longerPause is how many times the next longest pause one must last to be doubtful.
const longerPause = 100

// doubt counts the doubtful points of a segment, which is in order of time.
func (p *putter) doubt(t *placed, segment []Point) {
	for i := 1; i < len(segment); i++ {
		from, to := segment[i-1], segment[i]
		metres, apart := geo.Distance(from.Position, to.Position), to.At-from.At
		again := apart == 0 && metres > samePlace
		if !again && (apart == 0 || metres <= fast*max(apart, time.Second).Seconds()) {
			continue
		}
		d := p.doubtsOf(t.source)
		if again {
			d.twice++
			d.twiceLine = cmp.Or(d.twiceLine, to.Line)
			continue
		}
		if d.leaps++; d.leaps == 1 {
			d.firstLeap = fmt.Sprintf("in line %d %s goes %.0f km, from %s at %s to %s at %s",
				to.Line, t.platform(), metres/1000, place(from.Position), from.At, place(to.Position), to.At)
		}
	}
}

// doubtPause counts a segment with one long pause, as of times in seconds and in milliseconds.
func (p *putter) doubtPause(t *placed, segment []Point) {
	var longest, next time.Duration
	line := 0
	for i := 1; i < len(segment); i++ {
		switch pause := segment[i].At - segment[i-1].At; {
		case pause > longest:
			longest, next, line = pause, longest, segment[i].Line
		case pause > next:
			next = pause
		}
	}
	if longest <= longestPause || next == 0 || longest/longerPause < next {
		return
	}
	d := p.doubtsOf(t.source)
	if d.pauses++; d.pauses == 1 {
		d.firstPause = fmt.Sprintf("%s has none for %s before that of line %d, and else for at most %s", t.platform(), longest, line, next)
	}
}

func (p *putter) doubtsOf(source *Source) *doubts {
	if p.doubts == nil {
		p.doubts = map[*Source]*doubts{}
	}
	if p.doubts[source] == nil {
		p.doubts[source] = &doubts{}
	}
	return p.doubts[source]
}

// platform names a track's platform for people.
func (p *placed) platform() string {
	return fmt.Sprintf("platform %d%s", p.number, wording.InParentheses(reading.Label(p.Name)))
}

func place(p geo.Position) string { return fmt.Sprintf("%.5f, %.5f", p.Latitude, p.Longitude) }

// warn of the doubts about a file.
func (d *doubts) warn(tally *reading.Tally, file string) {
	if d.twice > 0 {
		tally.Warn(fmt.Sprintf("%s: %d positions have the moment of another one of their platform, the first in line %d: the last of a moment counts", file, d.twice, d.twiceLine))
	}
	if d.leaps > 0 {
		tally.Warn(fmt.Sprintf("%s: %d positions need more than %d m/s: %s", file, d.leaps, fast, d.firstLeap))
	}
	if d.pauses > 0 {
		tally.Warn(fmt.Sprintf("%s: parts of tracks with one very long time without positions: %d: %s: are all times in one unit?", file, d.pauses, d.firstPause))
	}
}
