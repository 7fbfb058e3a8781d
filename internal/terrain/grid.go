package terrain

import (
	"context"
	"fmt"
	"math"
)

// MaxCells that a grid may have.
const MaxCells = 1 << 24

// Grid of elevations whose rows run from north to south and whose columns from west to east.
type Grid struct {
	// West and South are the longitude and latitude in degrees of the centre of the cell in the south-western corner.
	West, South float64
	// CellLatitude and CellLongitude are the distances between the centres of neighbouring cells in degrees.
	CellLatitude, CellLongitude float64
	Columns, Rows               int
	// metres above mean sea level by row and column; NaN for no data.
	metres []float32
}

// Elevation is interpolated bilinearly between the centres of the cells. In the outer half of the outermost
// cells it is that of their centres. It is unknown outside the grid, and beside a cell without data.
func (g *Grid) Elevation(latitude, longitude float64) (metres float64, ok bool) {
	x := (g.nearestLongitude(longitude) - g.West) / g.CellLongitude
	y := float64(g.Rows-1) - (latitude-g.South)/g.CellLatitude
	if !(x >= -0.5 && y >= -0.5 && x <= float64(g.Columns)-0.5 && y <= float64(g.Rows)-0.5) {
		return 0, false
	}
	column, right, u := between(x, g.Columns)
	row, below, v := between(y, g.Rows)
	north := g.mix(row, column, right, u)
	if v > 0 {
		north += v * (g.mix(below, column, right, u) - north)
	}
	return north, !math.IsNaN(north)
}

// nearestLongitude returns the longitude of the same meridian that lies in the grid, or east of it. A grid may cross the
// antimeridian, or count from 0 to 360 degrees.
func (g *Grid) nearestLongitude(longitude float64) float64 {
	if turns := math.Floor((longitude - (g.West - g.CellLongitude/2)) / 360); turns != 0 {
		longitude -= 360 * turns
	}
	return longitude
}

// between returns the two indexes around a coordinate, and its distance from the first.
func between(x float64, n int) (first, second int, share float64) {
	x = min(max(x, 0), float64(n-1))
	first = int(x)
	return first, min(first+1, n-1), x - float64(first)
}

func (g *Grid) mix(row, left, right int, share float64) float64 {
	a := float64(g.metres[row*g.Columns+left])
	if share > 0 {
		a += share * (float64(g.metres[row*g.Columns+right]) - a)
	}
	return a
}

// Missing is the number of cells without data.
func (g *Grid) Missing() int {
	n := 0
	for _, m := range g.metres {
		if math.IsNaN(float64(m)) {
			n++
		}
	}
	return n
}

// Bounds in degrees of the known area.
func (g *Grid) Bounds() (southWest, northEast Place) {
	southWest = Place{Latitude: g.South - g.CellLatitude/2, Longitude: g.West - g.CellLongitude/2}
	return southWest, Place{
		Latitude:  southWest.Latitude + float64(g.Rows)*g.CellLatitude,
		Longitude: southWest.Longitude + float64(g.Columns)*g.CellLongitude,
	}
}

// Raster reads a surface into a grid that spans the two corners, with cells of about the given size. A grid
// is faster than a synthetic surface. Grids of neighbouring or overlapping areas within the same degree of
// latitude have the same cells.
func Raster(ctx context.Context, ground Surface, southWest, northEast Place, cellMetres float64) (*Grid, error) {
	const degreeMetres = earthRadiusMetres * math.Pi / 180
	middle := math.Round((southWest.Latitude + northEast.Latitude) / 2)
	g := &Grid{CellLatitude: cellMetres / degreeMetres}
	g.CellLongitude = g.CellLatitude / max(math.Cos(middle*math.Pi/180), 0.01)
	g.West = math.Floor(southWest.Longitude/g.CellLongitude) * g.CellLongitude
	g.South = math.Floor(southWest.Latitude/g.CellLatitude) * g.CellLatitude
	columns := math.Ceil((northEast.Longitude-g.West)/g.CellLongitude) + 1
	rows := math.Ceil((northEast.Latitude-g.South)/g.CellLatitude) + 1
	if !(columns >= 1 && rows >= 1 && columns*rows <= MaxCells) {
		return nil, fmt.Errorf("a grid with cells of %g m from %v to %v would have %g × %g cells: must be from 1 to %d in all",
			cellMetres, southWest, northEast, columns, rows, MaxCells)
	}
	g.Columns, g.Rows = int(columns), int(rows)
	g.metres = make([]float32, g.Columns*g.Rows)
	for i := range g.metres {
		if err := ctx.Err(); i%g.Columns == 0 && err != nil {
			return nil, err
		}
		latitude := g.South + float64(g.Rows-1-i/g.Columns)*g.CellLatitude
		metres, ok := ground.Elevation(latitude, g.West+float64(i%g.Columns)*g.CellLongitude)
		if !ok {
			metres = math.NaN()
		}
		g.metres[i] = float32(metres)
	}
	return g, nil
}
