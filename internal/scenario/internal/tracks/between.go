package tracks

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
)

// MaxInterpolated is the most interpolated positions of a file: two platforms a month, or 243 platforms half a day, at 1 s.
const MaxInterpolated = 10_000_000

// stepper adds points to a builder. With a step above 0 platforms move evenly from one point to the next: a position
// changes at the multiples of step, at the first point and at the last one. Otherwise it jumps at each point.
type stepper struct {
	builder *scenario.Builder
	step    time.Duration
	made    time.Duration // the number of interpolated positions
}

// add adds a platform's points, in the order of their times. Of those at one moment the last counts.
func (s *stepper) add(platform int, points []Point) error {
	var before *Point
	for i, p := range points {
		if i+1 < len(points) && points[i+1].At == p.At {
			continue
		}
		if s.step <= 0 || before == nil || i == len(points)-1 {
			if err := s.builder.Position(p.At, platform, p.Position); err != nil {
				return err
			}
		}
		if s.step > 0 && before != nil {
			if err := s.between(platform, *before, p); err != nil {
				return err
			}
		}
		before = &points[i]
	}
	return nil
}

// between interpolates between two points, at the multiples of step after the first and up to the second.
func (s *stepper) between(platform int, from, to Point) error {
	at := (from.At/s.step + 1) * s.step
	if from.At < 0 {
		at = 0
	}
	if s.made += max(0, to.At-at) / s.step; s.made > MaxInterpolated {
		return fmt.Errorf("between the points of the tracks there are more than %d positions at steps of %s: want shorter tracks", MaxInterpolated, s.step)
	}
	for ; at <= to.At; at += s.step {
		fraction := float64(at-from.At) / float64(to.At-from.At)
		if err := s.builder.Position(at, platform, geo.Interpolate(from.Position, to.Position, fraction)); err != nil {
			return err
		}
	}
	return nil
}
