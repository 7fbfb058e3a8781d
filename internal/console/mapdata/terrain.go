package mapdata

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/terrain"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Terrain is a grid of heights in metres, for hill shading. Null heights are unknown.
type Terrain struct {
	// West and South are the outer corner of the first cell of the last row.
	West        float64 `json:"west"`
	South       float64 `json:"south"`
	CellDegrees float64 `json:"cellDegrees"`
	Columns     int     `json:"columns"`
	Rows        int     `json:"rows"`
	// Heights by rows from north to south, each from west to east.
	Heights []*int `json:"heights"`
}

const (
	// maxCells along one side of the grid.
	maxCells = 192
	// leastCellDegrees is about 20 m.
	leastCellDegrees = 0.0002
	// marginShare of the area beyond the outermost positions.
	marginShare = 0.1
	// maxTerrainBytes of an unpacked terrain file.
	maxTerrainBytes = 64 << 20
)

// terrainOf the run's Scenario, if that is still the one that the run has.
func (m *Maps) terrainOf(ctx context.Context, s Source, r *run, made *Map) (*Terrain, error) {
	if r.scenario == nil || !made.Positions || s.Objects == nil {
		return nil, nil
	}
	object, err := s.Objects.Scenario(ctx, s.Namespace, r.scenario.Name)
	if err != nil {
		return nil, fmt.Errorf("the Scenario %s cannot be read any more", r.scenario.Name)
	}
	if object.Status.Digest != r.scenario.Digest {
		return nil, fmt.Errorf("the Scenario %s has changed since the run", r.scenario.Name)
	}
	ground, err := groundOf(&object.Spec, func(source v1alpha1.ScenarioSource) ([]byte, error) {
		return s.Objects.ConfigMap(ctx, s.Namespace, source.ConfigMap, source.Key)
	})
	if ground == nil || err != nil {
		return nil, err
	}
	done, err := m.work(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	tracks := make([][]Point, len(made.Nodes))
	for i := range made.Nodes {
		tracks[i] = made.Nodes[i].Track
	}
	return gridOf(ctx, ground, tracks), nil
}

// groundOf a scenario; nil without terrain.
func groundOf(spec *v1alpha1.ScenarioSpec, open compile.Open) (terrain.Surface, error) {
	p := spec.Propagation
	switch {
	case p == nil:
		return nil, nil
	case p.SyntheticTerrain != nil:
		return terrain.Synthetic(*p.SyntheticTerrain), nil
	case p.Terrain == nil:
		return nil, nil
	}
	name := p.Terrain.ConfigMap + "/" + p.Terrain.Key
	packed, err := open(*p.Terrain)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", name)
	}
	text, err := compile.Unpack(p.Terrain.Key, packed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	content, err := io.ReadAll(io.LimitReader(text, maxTerrainBytes+1))
	if err != nil || len(content) > maxTerrainBytes {
		return nil, fmt.Errorf("%s is damaged, or has more than %d MiB when unpacked", name, maxTerrainBytes>>20)
	}
	return terrain.ReadESRI(bytes.NewReader(content), name)
}

// gridOf the ground around all points; nil without points.
func gridOf(ctx context.Context, ground terrain.Surface, tracks [][]Point) *Terrain {
	west, south, east, north := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	first := math.NaN() // longitudes are counted from the first one: the area may cross the antimeridian
	for _, track := range tracks {
		for _, p := range track {
			if math.IsNaN(first) {
				first = p[2]
			}
			longitude := first + math.Remainder(p[2]-first, 360)
			west, east = min(west, longitude), max(east, longitude)
			south, north = min(south, p[1]), max(north, p[1])
		}
	}
	if math.IsNaN(first) {
		return nil
	}
	extent := max(east-west, north-south)
	margin := max(extent*marginShare, 10*leastCellDegrees)
	west, south, east, north = west-margin, south-margin, east+margin, north+margin
	cell := max((extent+2*margin)/maxCells, leastCellDegrees)
	made := &Terrain{West: west, South: south, CellDegrees: cell, Columns: cells(east-west, cell), Rows: cells(north-south, cell)}
	made.Heights = make([]*int, 0, made.Columns*made.Rows)
	for row := made.Rows - 1; row >= 0 && ctx.Err() == nil; row-- {
		for column := range made.Columns {
			longitude := math.Remainder(west+(float64(column)+0.5)*cell, 360)
			if metres, known := ground.Elevation(south+(float64(row)+0.5)*cell, longitude); known {
				height := int(math.Round(metres))
				made.Heights = append(made.Heights, &height)
			} else {
				made.Heights = append(made.Heights, nil)
			}
		}
	}
	return made
}

func cells(extent, cell float64) int { return max(int(math.Ceil(extent/cell-1e-9)), 1) }
