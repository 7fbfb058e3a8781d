// Package synthetic generates movements from a seed: a company of vehicles with the hop statistics known of the Anglova
// scenario, and simple geometry. They are no recordings.
package synthetic

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Step is the time between positions.
const Step = time.Second

// Origin is the centre of all movements: the middle of the published area of the Anglova scenario's first company.
var Origin = geo.Position{Latitude: 58.1925, Longitude: 7.975}

// point is in metres east and north of the origin.
type point struct{ x, y float64 }

func (a point) plus(b point) point            { return point{a.x + b.x, a.y + b.y} }
func (a point) minus(b point) point           { return point{a.x - b.x, a.y - b.y} }
func (a point) times(f float64) point         { return point{a.x * f, a.y * f} }
func (a point) length() float64               { return math.Hypot(a.x, a.y) }
func (a point) turned(sin, cos float64) point { return point{a.x*cos - a.y*sin, a.x*sin + a.y*cos} }

// mover has the places of all platforms, from moment 0 on, and moves them by one step.
type mover interface {
	places() []point
	step()
}

// flyer is a mover of which some platforms fly, at an altitude in metres above the sea.
type flyer interface {
	altitude(platform int) float64
}

// Generate generates a movement into a builder, in steps of a second, sorted. The altitude of positions on the ground is 0: a propagation
// model adds the terrain's and the antenna's height.
func Generate(ctx context.Context, parameters v1alpha1.SyntheticMovement, b *scenario.Builder) error {
	p, err := withDefaults(parameters)
	if err != nil {
		return err
	}
	m, err := p.mover(ctx)
	if err != nil {
		return err
	}
	frame := geo.NewFrame(Origin)
	last := make([]point, p.platforms)
	altitude := func(int) float64 { return 0 }
	if flying, ok := m.(flyer); ok {
		altitude = flying.altitude
	}
	for t := time.Duration(0); t <= p.duration; t += Step {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, place := range m.places() {
			if t > 0 && place == last[i] {
				continue
			}
			last[i] = place
			at := frame.Position(geo.Vector{X: place.x, Y: place.y})
			at.Altitude += altitude(i)
			if err := b.Position(t, i+1, at); err != nil {
				return fmt.Errorf("synthetic movement: platform %d at %v: %w", i+1, t, err)
			}
		}
		if _, stands := m.(stationary); stands {
			break
		}
		m.step()
	}
	return b.Extend(p.duration)
}

// Check returns what is impossible in the parameters.
func Check(parameters v1alpha1.SyntheticMovement) error {
	_, err := withDefaults(parameters)
	return err
}

// movement are parameters with all defaults.
type movement struct {
	pattern   string
	platforms int
	duration  time.Duration
	seed      int64
	spacing   float64
}

// withDefaults applies the API's defaults.
func withDefaults(parameters v1alpha1.SyntheticMovement) (movement, error) {
	p := movement{pattern: parameters.Pattern, platforms: companyPlatforms, duration: 2 * time.Hour, seed: parameters.Seed, spacing: 500}
	if parameters.Platforms != 0 {
		p.platforms = int(parameters.Platforms)
	}
	if parameters.Duration != "" {
		p.duration = parameters.Duration.Std()
	}
	if parameters.Spacing != "" {
		p.spacing = parameters.Spacing.Float()
	}
	switch {
	case p.platforms < 2 || p.platforms > 1000:
		return p, fmt.Errorf("synthetic movement: platforms is %d: must be from 2 to 1000", p.platforms)
	case p.pattern == AnglovaLikeBattalion && (p.platforms <= companyPlatforms || p.platforms > BattalionPlatforms): // a rule of the API has the same limits
		return p, fmt.Errorf("synthetic movement: platforms is %d: want %d to %d of AnglovaLikeBattalion, such as %[3]d for all; %d are AnglovaLike",
			p.platforms, companyPlatforms+1, BattalionPlatforms, companyPlatforms)
	case p.duration <= 0 || p.duration > scenario.MaxDuration:
		return p, fmt.Errorf("synthetic movement: duration is %s: must be above zero and at most %s", wording.Time(p.duration), wording.Time(scenario.MaxDuration))
	case !(p.spacing > 0 && p.spacing <= 100_000):
		return p, fmt.Errorf("synthetic movement: spacing is %g m: must be above zero and at most 100 km", p.spacing)
	}
	return p, p.checkSize()
}

// Size returns a movement's number of platforms, and of moments at which they move.
func Size(parameters v1alpha1.SyntheticMovement) (platforms, moments int64) {
	p, _ := withDefaults(parameters) // Check reports any error
	return int64(p.platforms), p.moments()
}

func (p movement) moments() int64 {
	if p.pattern == "Grid" || p.pattern == "Line" {
		return 1
	}
	return int64(p.duration/Step) + 1
}

// maxPositions is the most positions of a movement: 1000 platforms for a day, or 24 for six weeks. More takes too long. A rule of the API has the same limit.
const maxPositions = 90_000_000

// checkSize returns an error, before the generation, for a movement with too many positions.
func (p movement) checkSize() error {
	if positions := int64(p.platforms) * p.moments(); positions > maxPositions {
		longest := time.Duration(maxPositions/p.platforms) * Step
		return fmt.Errorf("synthetic movement: %d platforms for %s have %d positions: want at most %d, which is %s for so many platforms",
			p.platforms, wording.Time(p.duration), positions, maxPositions, wording.Time(longest.Truncate(time.Hour)))
	}
	return nil
}

func (p movement) company(ctx context.Context) (mover, error) {
	over, err := p.surveyor(ctx, p.seed, point{})
	if err != nil {
		return nil, err
	}
	return newCompany(p, over), nil
}

// surveyor returns the surveyor of a sector of the ground of a seed, and of the links for which a company was made.
func (p movement) surveyor(ctx context.Context, groundSeed int64, sector point) (*surveyor, error) {
	shape, centre := shapeOf(p.pattern), Origin
	if sector != (point{}) {
		centre = geo.NewFrame(Origin).Position(geo.Vector{X: sector.x, Y: sector.y})
	}
	ground, err := ground(ctx, groundSeed, centre, shape.largest/2+math.Hypot(shape.wide, shape.high)/2+1000)
	if err != nil {
		return nil, err
	}
	over := newSurveyor(ground, shape.limitDB)
	over.sector = sector
	return over, nil
}

func (p movement) mover(ctx context.Context) (mover, error) {
	switch p.pattern {
	case AnglovaLike, AnglovaLikeModified:
		return p.company(ctx)
	case AnglovaLikeBattalion:
		return p.battalion(ctx)
	case "Grid":
		return p.grid(int(math.Ceil(math.Sqrt(float64(p.platforms))))), nil
	case "Line":
		return p.grid(p.platforms), nil
	case "RandomWaypoint":
		return p.randomWaypoint(), nil
	}
	return nil, fmt.Errorf("synthetic movement: pattern is %q: must be AnglovaLike, AnglovaLikeModified, AnglovaLikeBattalion, Grid, Line or RandomWaypoint", p.pattern)
}

// random returns the random numbers of one use.
func (p movement) random(use uint64) *rand.Rand { return rand.New(rand.NewPCG(uint64(p.seed), use)) }

// stationary are platforms that do not move.
type stationary []point

func (s stationary) places() []point { return s }
func (s stationary) step()           {}

// grid returns a grid of so many columns, row by row from the north-west, around the origin.
func (p movement) grid(columns int) stationary {
	rows := (p.platforms + columns - 1) / columns
	s := make(stationary, p.platforms)
	for i := range s {
		s[i] = point{
			x: (float64(i%columns) - float64(columns-1)/2) * p.spacing,
			y: (float64(rows-1)/2 - float64(i/columns)) * p.spacing,
		}
	}
	return s
}
