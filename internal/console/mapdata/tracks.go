package mapdata

import (
	"context"
	"math"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
)

// Point of a track: seconds after T0, latitude and longitude in degrees, altitude in metres.
type Point [4]float64

// track of a mobile platform, by its number.
type track struct {
	platform int
	points   []Point
}

const (
	// maxSamples of all platforms before they are thinned.
	maxSamples = 600_000
	// maxMoments of one platform.
	maxMoments = 7200
	// maxPoints of all tracks together, about 2 MB of JSON.
	maxPoints = 60_000
	// toleranceMetres that a thinned track may be off at any time. It grows where there are too many points.
	toleranceMetres = 5
)

// tracksOf a scenario until a time, thinned. There are positions at each second, or fewer for many platforms.
func tracksOf(ctx context.Context, s *scenario.Scenario, until time.Duration) ([]track, error) {
	platforms := s.Platforms()
	if len(platforms) == 0 || !s.HasPositions() {
		return nil, nil
	}
	until = min(until, s.Duration())
	moments := min(maxMoments, maxSamples/len(platforms))
	step := max((until/time.Duration(moments)).Truncate(time.Second)+time.Second, time.Second)
	tracks := make([]track, len(platforms))
	cursor := s.NewCursor()
	for at := time.Duration(0); ; at = min(at+step, until) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := cursor.Seek(at); err != nil {
			return nil, err
		}
		for i, platform := range platforms {
			tracks[i].platform = platform
			if p, known := cursor.Position(i); known {
				tracks[i].points = append(tracks[i].points, pointAt(at, p))
			}
		}
		if at >= until {
			break
		}
	}
	room := maxPoints / len(platforms)
	for i := range tracks {
		tracks[i].points = thinned(tracks[i].points, room)
	}
	return tracks, nil
}

func pointAt(at time.Duration, p geo.Position) Point {
	return Point{round(at.Seconds(), 1e3), round(p.Latitude, 1e7), round(p.Longitude, 1e7), round(p.Altitude, 10)}
}

func round(value, parts float64) float64 { return math.Round(value*parts) / parts }

// thinned has the points that a straight, even movement between their neighbours does not give, at most so many.
func thinned(points []Point, room int) []Point {
	for tolerance := float64(toleranceMetres); ; tolerance *= 2 {
		kept := withinTolerance(points, tolerance)
		if len(kept) <= max(room, 2) {
			return kept
		}
	}
}

// withinTolerance is the algorithm of Douglas and Peucker, with distances at equal times.
func withinTolerance(points []Point, tolerance float64) []Point {
	if len(points) < 2 {
		return points
	}
	keep := make([]bool, len(points))
	last := len(points) - 1
	keep[0], keep[last] = true, true
	for todo := [][2]int{{0, last}}; len(todo) > 0; {
		from, to := todo[len(todo)-1][0], todo[len(todo)-1][1]
		todo = todo[:len(todo)-1]
		worst, far := 0, tolerance
		for i := from + 1; i < to; i++ {
			if off := offMetres(points[from], points[to], points[i]); off > far {
				worst, far = i, off
			}
		}
		if worst > 0 {
			keep[worst] = true
			todo = append(todo, [2]int{from, worst}, [2]int{worst, to})
		}
	}
	kept := []Point{}
	for i, point := range points {
		if keep[i] {
			kept = append(kept, point)
		}
	}
	if len(kept) == 2 && offMetres(kept[0], kept[0], kept[1]) <= tolerance {
		return kept[:1] // it never moves
	}
	return kept
}

// offMetres between a point and the even movement from a to b at its time.
func offMetres(a, b, at Point) float64 {
	share := 0.0
	if b[0] > a[0] {
		share = (at[0] - a[0]) / (b[0] - a[0])
	}
	return geo.Distance(geo.Interpolate(positionOf(a), positionOf(b), share), positionOf(at))
}

func positionOf(p Point) geo.Position {
	return geo.Position{Latitude: p[1], Longitude: p[2], Altitude: p[3]}
}
