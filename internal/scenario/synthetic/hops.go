package synthetic

import (
	"context"
	"fmt"
	"math"
	"strings"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/terrain"
)

// The radio conditions for the companies: pathloss by diffraction at FrequencyHertz over the synthetic terrain of the same seed, with
// antennas AntennaMetres above the ground. There is a link if the pathloss is at most the pattern's limit.
const (
	FrequencyHertz = 300e6
	AntennaMetres  = 3.0
	// LimitDB is the largest pathloss of a link in published analyses of the Anglova scenario. By the calculation of
	// ModifiedLimitDB it is that of 10 W (40 dBm).
	LimitDB = 121.0
	// ModifiedLimitDB is the budget of 5 W (37 dBm) with antennas of -5.5 dBi, a bandwidth of 250 kHz, a noise figure of 8 dB, and a SINR
	// of 20 dB: 37 - 11 - (-174 + 54 + 8) - 20.
	ModifiedLimitDB = 118.0
	// marginDB is a link's margin in a company's check of the network, since compiled scenarios round positions and pathloss.
	marginDB = 0.1
	// CellMetres is the cell size of the terrain's grid.
	CellMetres = 50.0
)

// Hops sums up the shortest paths between all ordered pairs of platforms at several moments.
type Hops struct {
	// Pairs[h] is the number of pairs whose shortest path has h hops; Pairs[0] had none.
	Pairs []int
	// Moments is the number of moments, and Connected that of moments in which every platform reached every other.
	Moments, Connected int
}

// Mean returns the mean number of hops of connected pairs.
func (h Hops) Mean() float64 {
	pairs, hops := 0, 0
	for n, count := range h.Pairs[1:] {
		pairs, hops = pairs+count, hops+(n+1)*count
	}
	return float64(hops) / float64(pairs)
}

// Max returns the largest number of hops.
func (h Hops) Max() int { return len(h.Pairs) - 1 }

// Share returns the share of pairs whose shortest path has so many hops, or of pairs without any for 0.
func (h Hops) Share(hops int) float64 {
	all := 0
	for _, count := range h.Pairs {
		all += count
	}
	return float64(h.Pairs[hops]) / float64(all)
}

// String returns all in one line.
func (h Hops) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "mean %.2f hops, most %d, all connected in %.1f %% of %d moments, pairs by hops:",
		h.Mean(), h.Max(), 100*float64(h.Connected)/float64(h.Moments), h.Moments)
	for n := 1; n < len(h.Pairs); n++ {
		fmt.Fprintf(&text, " %d: %.1f %%", n, 100*h.Share(n))
	}
	fmt.Fprintf(&text, ", no way: %.2f %%", 100*h.Share(0))
	return text.String()
}

// Add adds one moment, of so many platforms, with the links between them.
func (h *Hops) Add(platforms int, linked func(i, j int) bool) {
	neighbours := make([][]int, platforms)
	for i := range platforms {
		for j := range platforms {
			if i != j && linked(i, j) {
				neighbours[i] = append(neighbours[i], j)
			}
		}
	}
	unreached := 0
	for i := range platforms {
		unreached += h.from(i, neighbours)
	}
	h.Moments++
	h.count(0, unreached)
	if unreached == 0 {
		h.Connected++
	}
}

// from counts hops from one platform, breadth first, and returns the number of unreached ones.
func (h *Hops) from(source int, neighbours [][]int) (unreached int) {
	seen := make([]bool, len(neighbours))
	seen[source] = true
	left := len(neighbours) - 1
	for front, hops := []int{source}, 1; len(front) > 0; hops++ {
		var next []int
		for _, i := range front {
			for _, j := range neighbours[i] {
				if !seen[j] {
					seen[j] = true
					next = append(next, j)
				}
			}
		}
		h.count(hops, len(next))
		left -= len(next)
		front = next
	}
	return left
}

func (h *Hops) count(hops, pairs int) {
	for pairs > 0 && len(h.Pairs) <= hops || len(h.Pairs) == 0 {
		h.Pairs = append(h.Pairs, 0)
	}
	if pairs > 0 {
		h.Pairs[hops] += pairs
	}
}

// ground returns the ground for which a company of this seed was made, out to so many metres from a centre on each side.
func ground(ctx context.Context, seed int64, centre geo.Position, metres float64) (*terrain.Grid, error) {
	north := metres / 111_000
	east := north / math.Cos(centre.Latitude*math.Pi/180)
	return terrain.Raster(ctx, terrain.Synthetic(seed), terrain.Place{Latitude: centre.Latitude - north, Longitude: centre.Longitude - east},
		terrain.Place{Latitude: centre.Latitude + north, Longitude: centre.Longitude + east}, CellMetres)
}

// surveyor counts the hops of movements over a ground.
type surveyor struct {
	ground  terrain.Surface
	model   propagation.Model
	limitDB float64
	frame   geo.Frame
	// sector is the origin of all places.
	sector point

	// The last moment's places and positions, and which of them are linked, by i*n+j.
	places    []point
	positions []geo.Position
	linked    []bool
}

func newSurveyor(over terrain.Surface, limitDB float64) *surveyor {
	return &surveyor{ground: over, model: propagation.Diffraction{Terrain: over}, limitDB: limitDB, frame: geo.NewFrame(Origin)}
}

// add adds a moment. It computes only pairs with a platform that has moved since the last one.
func (s *surveyor) add(h *Hops, places []point) {
	n := len(places)
	moved := make([]bool, n)
	if len(s.places) != n {
		s.places, s.positions, s.linked = make([]point, n), make([]geo.Position, n), make([]bool, n*n)
		for i := range s.places {
			s.places[i].x = math.NaN()
		}
	}
	for i, at := range places {
		if moved[i] = at != s.places[i]; moved[i] {
			s.places[i] = at
			s.positions[i] = s.position(at)
			s.positions[i].Altitude = s.height(at) + AntennaMetres
		}
	}
	for i := range n {
		for j := range i {
			if moved[i] || moved[j] {
				linked := s.model.Pathloss(s.positions[i], s.positions[j], FrequencyHertz) <= s.limitDB-marginDB
				s.linked[i*n+j], s.linked[j*n+i] = linked, linked
			}
		}
	}
	h.Add(n, func(i, j int) bool { return s.linked[i*n+j] })
}

func (s *surveyor) position(at point) geo.Position {
	at = at.plus(s.sector)
	return s.frame.Position(geo.Vector{X: at.x, Y: at.y})
}

// height returns the ground's height at a place.
func (s *surveyor) height(at point) float64 {
	p := s.position(at)
	metres, _ := s.ground.Elevation(p.Latitude, p.Longitude)
	return metres
}
