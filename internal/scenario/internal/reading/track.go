package reading

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
)

// MaxInterpolated positions of one file: two platforms a month, or 243 platforms half a day, at 1 s.
const MaxInterpolated = 10_000_000

// Point of a track.
type Point struct {
	At       time.Duration
	Position geo.Position
}

// Tracks puts tracks of a file into a builder. With a Step above 0 platforms move evenly from one point to the next: a position
// changes at the multiples of Step, at the first point and at the last one. Otherwise it jumps at each point.
type Tracks struct {
	Builder *scenario.Builder
	Step    time.Duration
	made    time.Duration // number of positions made up so far
}

// Add the points of a platform, in the order of their times.
func (t *Tracks) Add(platform int, points []Point) error {
	for i, p := range points {
		if t.Step <= 0 || i == 0 || i == len(points)-1 {
			if err := t.Builder.Position(p.At, platform, p.Position); err != nil {
				return err
			}
		}
		if t.Step > 0 && i > 0 {
			if err := t.between(platform, points[i-1], p); err != nil {
				return err
			}
		}
	}
	return nil
}

// between two points, at the multiples of Step after the first and up to the second.
func (t *Tracks) between(platform int, from, to Point) error {
	at := (from.At/t.Step + 1) * t.Step
	if from.At < 0 {
		at = 0
	}
	if t.made += max(0, to.At-at) / t.Step; t.made > MaxInterpolated {
		return fmt.Errorf("between the points of the tracks there are more than %d positions at steps of %s: want a longer step or shorter tracks", MaxInterpolated, t.Step)
	}
	for ; at <= to.At; at += t.Step {
		fraction := float64(at-from.At) / float64(to.At-from.At)
		if err := t.Builder.Position(at, platform, geo.Interpolate(from.Position, to.Position, fraction)); err != nil {
			return err
		}
	}
	return nil
}
