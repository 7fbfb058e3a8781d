package synthetic

import (
	"context"
	"math"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/scenario"
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

// at returns a moment's connectivity. It computes only pairs with a platform that has moved since the last one.
func (s *surveyor) at(places []point) scenario.Connectivity {
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
	return scenario.NewConnectivity(n, func(i, j int) bool { return s.linked[i*n+j] })
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
