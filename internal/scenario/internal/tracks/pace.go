package tracks

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/wording"
)

// Pace is the pace of points without times. At most one field is set.
type Pace struct {
	MetresPerSecond float64
	// Duration is that of the complete track.
	Duration time.Duration
}

// fill computes the times of points without one.
func (p *putter) fill() error {
	for _, t := range p.all {
		timed := slices.ContainsFunc(t.Segments, func(s []Point) bool { return slices.ContainsFunc(s, hasTime) })
		err := p.builder.Ended()
		switch {
		case err != nil:
		case timed:
			err = p.fillGaps(t)
		default:
			err = t.fillAll()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func hasTime(p Point) bool { return p.At != Untimed }

// noTime is the error of a point whose time cannot be computed.
func (p *placed) noTime(point Point) error {
	want := cmp.Or(p.source.WhyUntimed, "want one such as 2026-01-31T12:00:00Z")
	return p.source.errorf(point.Line, "the point has no time: %s, or a speed or duration for points without times (tracks.speed, tracks.duration; --speed, --duration)", want)
}

// fillAll fills a track without any times. It is then one segment, which begins at 0.
func (p *placed) fillAll() error {
	points := slices.Concat(p.Segments...)
	p.Segments, p.untimed = [][]Point{points}, true
	if p.pace == (Pace{}) {
		return p.noTime(points[0])
	}
	along := distances(points)
	all := along[len(along)-1]
	for i := range points {
		seconds := along[i] / p.pace.MetresPerSecond
		if p.pace.MetresPerSecond == 0 {
			seconds = share(along[i], all, i, len(points)-1) * p.pace.Duration.Seconds()
		}
		at, err := reading.Duration(seconds)
		if err != nil && p.pace.Duration > 0 {
			return p.source.errorf(points[i].Line, "the track takes %s, which is more than a year: want a shorter duration", wording.Time(p.pace.Duration))
		}
		if err != nil {
			return p.source.errorf(points[i].Line, "at %g m/s the track takes more than a year: want a higher speed", p.pace.MetresPerSecond)
		}
		points[i].At = at
	}
	return nil
}

// fillGaps fills between points with times, and with a speed before and after them.
func (p *putter) fillGaps(t *placed) error {
	filled := 0
	for _, points := range t.Segments {
		last := -1 // with a time
		for i := 0; i <= len(points); i++ {
			if i < len(points) && !hasTime(points[i]) {
				continue
			}
			if i-last > 1 {
				filled += i - last - 1
				if err := t.fillGap(points, last, i); err != nil {
					return err
				}
			}
			last = i
		}
		if err := t.forward(points); err != nil {
			return err
		}
	}
	if filled > 0 {
		p.tally.Warn(fmt.Sprintf("%s: %d points without times are reached at an even speed between, before or after those with times", t.label(), filled))
	}
	return nil
}

// fillGap fills between two points of a segment, of which one may be missing.
func (p *placed) fillGap(points []Point, from, to int) error {
	begin, end := max(from, 0), min(to, len(points)-1)
	gap := points[begin : end+1]
	along := distances(gap)
	all := along[len(along)-1]
	speed := p.pace.MetresPerSecond
	for i := range gap {
		switch {
		case hasTime(gap[i]):
			continue
		case from >= 0 && to < len(points):
			first, last := gap[0].At, gap[len(gap)-1].At
			gap[i].At = first + time.Duration(share(along[i], all, i, len(gap)-1)*float64(last-first))
			continue
		case from < 0 && to == len(points) && p.pace != (Pace{}):
			return p.source.errorf(gap[i].Line, "no point of this part of the track has a time, and others have: want a time for one of them, or for none of the track")
		case speed == 0 && p.pace.Duration > 0:
			return p.source.errorf(gap[i].Line, "the point has no time, and a duration is for tracks without any: want a speed instead (tracks.speed, --speed)")
		case speed == 0:
			return p.noTime(gap[i])
		}
		anchor, metres := points[begin], along[i]
		if from < 0 {
			anchor, metres = points[end], along[i]-all
		}
		after, err := reading.Duration(metres / speed)
		if err != nil {
			return p.source.errorf(gap[i].Line, "at %g m/s the track takes more than a year: want a higher speed", speed)
		}
		gap[i].At = anchor.At + after
	}
	return nil
}

// forward refuses times that go back if the order of points is that of the path.
func (p *placed) forward(points []Point) error {
	for i := 1; i < len(points) && p.Ordered; i++ {
		if points[i].At < points[i-1].At {
			return p.source.errorf(points[i].Line, "its time is %s before that of the point before: want points in the order of their times", points[i-1].At-points[i].At)
		}
	}
	return nil
}

// distances returns the distances of points from the first one, along the path.
func distances(points []Point) []float64 {
	along := make([]float64, len(points))
	for i := 1; i < len(points); i++ {
		along[i] = along[i-1] + geo.Distance(points[i-1].Position, points[i].Position)
	}
	return along
}

// share returns the share of a path, or of the number of its points if it has no length.
func share(metres, all float64, i, last int) float64 {
	switch {
	case last == 0:
		return 0
	case all == 0:
		return float64(i) / float64(last)
	}
	return metres / all
}
