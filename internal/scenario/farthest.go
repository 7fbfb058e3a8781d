package scenario

import (
	"context"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/geo"
)

// Separation is the greatest distance between two of some places.
type Separation struct {
	Metres float64
	// A and B are the indexes of the two places.
	A, B int
	// At is when they first are so far apart.
	At time.Duration
}

// Farthest returns the greatest distance between any two of some platforms and fixed places until a time. The indexes of the
// fixed places follow those of the platforms. A platform counts while its position is known.
func (s *Scenario) Farthest(ctx context.Context, platforms []int, fixed []geo.Position, until time.Duration) (Separation, error) {
	var farthest Separation
	movers := make([]int, len(platforms))
	for i, platform := range platforms {
		var known bool
		if movers[i], known = s.Index(platform); !known {
			return farthest, fmt.Errorf("the scenario has no platform %d", platform)
		}
	}
	still := make([]geo.Vector, len(fixed))
	for i, position := range fixed {
		still[i] = position.ECEF()
	}
	cursor := s.NewCursor()
	for n, at, more := 0, time.Duration(0), true; more && at <= until; n++ {
		if n%momentsPerCheck == 0 && ctx.Err() != nil {
			return Separation{}, ctx.Err()
		}
		if err := cursor.Seek(at); err != nil {
			return Separation{}, err
		}
		farthest.grow(cursor, movers, still, at)
		at, more = cursor.Next()
	}
	return farthest, nil
}

// grow takes the places at a cursor's moment.
func (f *Separation) grow(cursor *Cursor, movers []int, still []geo.Vector, at time.Duration) {
	places, indexes := make([]geo.Vector, 0, len(movers)+len(still)), make([]int, 0, len(movers)+len(still))
	for i, mover := range movers {
		if position, known := cursor.Position(mover); known {
			places, indexes = append(places, position.ECEF()), append(indexes, i)
		}
	}
	for i, place := range still {
		places, indexes = append(places, place), append(indexes, len(movers)+i)
	}
	if a, b, metres, ok := geo.Farthest(places, f.Metres); ok {
		*f = Separation{Metres: metres, A: indexes[a], B: indexes[b], At: at}
	}
}
