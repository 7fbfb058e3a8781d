package terrain

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

const small = `ncols 3
nrows 2
xllcorner 7.0
yllcorner 58.0
cellsize 0.5
NODATA_value -9999
10 20 30
40 50 -9999
`

func read(t *testing.T, text string) *Grid {
	t.Helper()
	g, err := ReadESRI(strings.NewReader(text), "small.asc")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestElevationIsInterpolatedBetweenTheCentresOfCells(t *testing.T) {
	g := read(t, small)
	for name, c := range map[string]struct{ latitude, longitude, metres float64 }{
		"centre of the north-western cell":  {58.75, 7.25, 10},
		"centre of the south-western cell":  {58.25, 7.25, 40},
		"half-way east":                     {58.75, 7.5, 15},
		"in the middle of four":             {58.5, 7.5, 30},
		"a quarter":                         {58.625, 7.375, 20},
		"outer half of the outermost cells": {58.99, 7.01, 10},
		"beside no data, not touching it":   {58.75, 8.0, 25},
	} {
		metres, ok := g.Elevation(c.latitude, c.longitude)
		if !ok || math.Abs(metres-c.metres) > 1e-9 {
			t.Errorf("%s: got %v, %v; want %v", name, metres, ok, c.metres)
		}
	}
}

func TestElevationIsNotKnownOutsideAndBesideMissingCells(t *testing.T) {
	g := read(t, small)
	for name, place := range map[string]Place{
		"south": {57.99, 7.25}, "north": {59.01, 7.25}, "west": {58.5, 6.99}, "east": {58.5, 8.51},
		"beside the missing cell": {58.4, 8.2}, "not a number": {math.NaN(), 7.25},
	} {
		if metres, ok := g.Elevation(place.Latitude, place.Longitude); ok {
			t.Errorf("%s: got %v", name, metres)
		}
	}
	if g.Missing() != 1 {
		t.Errorf("missing: %d", g.Missing())
	}
}

func TestAGridMayCrossTheAntimeridian(t *testing.T) {
	for name, west := range map[string]string{"counted to the east": "179", "counted to the west": "-181"} {
		g := read(t, "ncols 2\nnrows 1\nxllcorner "+west+"\nyllcorner 58\ncellsize 1\n10 20\n")
		for longitude, want := range map[float64]float64{179.5: 10, 180: 15, -180: 15, -179.5: 20, -179: 20, 179: 10} {
			if metres, ok := g.Elevation(58.5, longitude); !ok || math.Abs(metres-want) > 1e-6 {
				t.Errorf("%s: at %g degrees there are %g m, %t; want %g", name, longitude, metres, ok, want)
			}
		}
		for _, longitude := range []float64{178.9, -178.9, 0} {
			if metres, ok := g.Elevation(58.5, longitude); ok {
				t.Errorf("%s: at %g degrees, outside, there are %g m", name, longitude, metres)
			}
		}
	}
}

func TestGridsAreReadHoweverTheyAreWritten(t *testing.T) {
	want := read(t, "ncols 2\nnrows 1\nxllcorner 7\nyllcorner 58\ncellsize 1\nnodata_value -9999\n-9999 20\n")
	for name, text := range map[string]string{
		"a byte order mark":     "\ufeffncols 2\nnrows 1\nxllcorner 7\nyllcorner 58\ncellsize 1\n-9999 20\n",
		"UTF-16":                utf16("ncols 2\nnrows 1\nxllcorner 7\nyllcorner 58\ncellsize 1\n-9999 20\n"),
		"lines of Windows":      "NCOLS 2\r\nNROWS 1\r\nXLLCORNER 7\r\nYLLCORNER 58\r\nCELLSIZE 1\r\n-9999 20\r\n",
		"nan":                   "ncols 2\nnrows 1\nxllcorner 7\nyllcorner 58\ncellsize 1\nNODATA_value nan\nnan 20\n",
		"NaN, without a word":   "ncols 2\nnrows 1\nxllcorner 7\nyllcorner 58\ncellsize 1\nNaN 20\n",
		"-nan of the C library": "ncols 2\nnrows 1\nxllcorner 7\nyllcorner 58\ncellsize 1\nNODATA_value -nan\n-nan 20\n",
		"nan of Windows":        "ncols 2\nnrows 1\nxllcorner 7\nyllcorner 58\ncellsize 1\nNODATA_value 1.#QNAN\n-1.#IND 20\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, text)
			if got.Missing() != 1 || !math.IsNaN(float64(got.metres[0])) || got.metres[1] != 20 {
				t.Errorf("elevations are %v; want those of %v", got.metres, want.metres)
			}
		})
	}
}

// utf16 little-endian, with its byte order mark.
func utf16(text string) string {
	coded := "\xff\xfe"
	for _, c := range []byte(text) {
		coded += string([]byte{c, 0})
	}
	return coded
}

func TestCentresOfCellsMayBeGiven(t *testing.T) {
	g := read(t, strings.Replace(strings.Replace(small, "xllcorner 7.0", "XLLCENTER 7.25", 1), "yllcorner 58.0", "yllcenter 58.25", 1))
	if metres, ok := g.Elevation(58.75, 7.25); !ok || metres != 10 {
		t.Errorf("got %v, %v", metres, ok)
	}
}

func TestWrongGridsAreRefusedWithTheirLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", "small.asc:1: the header of the grid is not complete: the file ends too early"},
		"unknown word":        {"ncols 3\nfoo 2\n", `small.asc:2: "foo" is no word of the header`},
		"twice":               {"ncols 3\nncols 3\n", "small.asc:2: ncols is given twice"},
		"no number":           {"ncols x\n", `small.asc:1: ncols: "x" is not a number`},
		"a decimal comma":     {"ncols 1\nnrows 1\nyllcorner 0\nxllcorner 7,5\ncellsize 1\n5\n", `small.asc:4: xllcorner: "7,5" is not a number: want a decimal point, such as 7.5`},
		"corner is missing":   {"ncols 1\nnrows 1\nyllcorner 0\ncellsize 1\n5\n", "one of xllcorner, xllcenter"},
		"corner and centre":   {"ncols 1\nnrows 1\nyllcorner 0\nxllcorner 0\nxllcenter 1\ncellsize 1\n5\n", "one of xllcorner, xllcenter"},
		"too many cells":      {"ncols 1000000\nnrows 1000000\nyllcorner 0\nxllcorner 0\ncellsize 1\n5\n", "at most 16777216 cells"},
		"half a column":       {"ncols 1.5\nnrows 1\nyllcorner 0\nxllcorner 0\ncellsize 1\n5\n", "must be whole"},
		"projected":           {"ncols 1\nnrows 1\nyllcorner 6450000\nxllcorner 430000\ncellsize 50\n5\n", "must be degrees"},
		"no size":             {"ncols 1\nnrows 1\nyllcorner 0\nxllcorner 0\ncellsize 0\n5\n", "with cells above zero"},
		"too short":           {strings.TrimSuffix(small, " 50 -9999\n"), "small.asc:8: the grid ends after 4 of 6 elevations"},
		"too long":            {small + "7\n", `small.asc:9: "7" follows after the last elevation`},
		"elevation no number": {strings.Replace(small, "50", "fifty", 1), `small.asc:8: elevation "fifty" is not a number`},
		"elevation not Earth": {strings.Replace(small, "50", "99999", 1), "small.asc:8: elevation 99999 m must be on Earth"},
		"endless word":        {strings.Repeat("x", 100), "longer than a number may be"},
	} {
		_, err := ReadESRI(strings.NewReader(c.text), "small.asc")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
}

func FuzzReadESRI(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("ncols 1\nnrows 1\nxllcenter 0\nyllcenter 0\ndx 1\ndy 2\n-.5e1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := ReadESRI(bytes.NewReader(text), "f")
		if err != nil {
			return
		}
		if len(g.metres) != g.Rows*g.Columns {
			t.Fatalf("%d elevations of %d rows and %d columns", len(g.metres), g.Rows, g.Columns)
		}
		southWest, northEast := g.Bounds()
		for _, p := range []Place{southWest, northEast, {(southWest.Latitude + northEast.Latitude) / 2, southWest.Longitude}} {
			if metres, ok := g.Elevation(p.Latitude, p.Longitude); ok && (metres < -12000 || metres > 9000 || math.IsNaN(metres)) {
				t.Fatalf("elevation %v at %v", metres, p)
			}
		}
	})
}

// latitudes is ground as high as its latitude in thousandths of a degree, and records its places.
type latitudes struct{ asked *[]Place }

func (l latitudes) Elevation(latitude, longitude float64) (float64, bool) {
	*l.asked = append(*l.asked, Place{latitude, longitude})
	return latitude * 1000, true
}

func TestAProfileFollowsTheGreatCircle(t *testing.T) {
	for name, c := range map[string]struct{ from, to Place }{
		"short":                  {Place{58.17, 7.95}, Place{58.215, 8.0}},
		"long, east to west":     {Place{60, 10}, Place{60, 4}},
		"across the date line":   {Place{60, 179.5}, Place{60.2, -179.5}},
		"along the meridian":     {Place{58, 8}, Place{59, 8}},
		"far, beyond the pole's": {Place{80, 0}, Place{80, 120}},
	} {
		var asked []Place
		heights := make([]float64, 101)
		if !Profile(latitudes{&asked}, c.from, c.to, heights) {
			t.Fatal(name)
		}
		whole := newArc(c.from, c.to)
		for i, p := range asked {
			want := whole.at(float64(i) / 100)
			if off := newArc(p, want).metres(); off > 5 {
				t.Errorf("%s: point %d at %v is %.1f m off the great circle", name, i, p, off)
			}
			if heights[i] != p.Latitude*1000 {
				t.Errorf("%s: height %d is %v", name, i, heights[i])
			}
		}
	}
}

func TestAProfileOfOnePlaceIsThatPlace(t *testing.T) {
	var asked []Place
	p := Place{58.2, 7.9}
	if heights := make([]float64, 5); !Profile(latitudes{&asked}, p, p, heights) || heights[0] != heights[4] || heights[2] != 58200 {
		t.Errorf("got %v", asked)
	}
}

func TestAProfileThatLeavesTheGridIsNotKnown(t *testing.T) {
	if Profile(read(t, small), Place{58.7, 7.2}, Place{60, 7.2}, make([]float64, 20)) {
		t.Error("known")
	}
}

func TestSyntheticHillsAreTheSameEverywhereAndAlways(t *testing.T) {
	got := ""
	for _, seed := range []int64{1, 2, -7} {
		h := Synthetic(seed)
		for _, p := range []Place{{58.19, 7.97}, {58.2, 7.97}, {-33.5, 151.2}, {0, 0}, {89.9, -179.9}} {
			metres, _ := h.Elevation(p.Latitude, p.Longitude)
			got += fmt.Sprintf("%016x\n", math.Float64bits(metres))
		}
	}
	if got != hillsGolden {
		t.Errorf("the hills of these seeds have moved, bit by bit:\n%s", got)
	}
}

func TestSyntheticHillsAreHillyAndSmooth(t *testing.T) {
	h := Synthetic(1)
	low, high, steepest := math.Inf(1), math.Inf(-1), 0.0
	before := math.NaN()
	for i := range 20000 {
		metres, ok := h.Elevation(58+float64(i)/111195.*5, 7.97)
		if !ok {
			t.Fatal("not known")
		}
		low, high = min(low, metres), max(high, metres)
		if !math.IsNaN(before) {
			steepest = max(steepest, math.Abs(metres-before)/5)
		}
		before = metres
	}
	t.Logf("from %.0f m to %.0f m, steepest %.0f %%", low, high, steepest*100)
	if high-low < 150 || high-low > 700 || steepest > 2 || steepest < 0.1 {
		t.Errorf("from %v to %v, steepest %v", low, high, steepest)
	}
}

func TestARasterIsNearTheSurfaceItWasReadFrom(t *testing.T) {
	h := Synthetic(3)
	g, err := Raster(t.Context(), h, Place{58.17, 7.95}, Place{58.18, 7.97}, 20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		latitude, longitude := 58.17+float64(i)*1e-4, 7.95+float64(i)*2e-4
		want, _ := h.Elevation(latitude, longitude)
		got, ok := g.Elevation(latitude, longitude)
		if !ok || math.Abs(got-want) > 5 {
			t.Fatalf("at %v, %v: got %v, want %v", latitude, longitude, got, want)
		}
	}
	if _, err := Raster(t.Context(), h, Place{0, 0}, Place{50, 50}, 20); err == nil || !strings.Contains(err.Error(), "16777216") {
		t.Errorf("a continent: %v", err)
	}
}

func TestTheSeriesForSineAndCosineAreExactEnough(t *testing.T) {
	for degrees := -90.0; degrees <= 90; degrees += 0.37 {
		s, c := sincos(degrees)
		wantS, wantC := math.Sincos(degrees * math.Pi / 180)
		if math.Abs(s-wantS) > 1e-15 || math.Abs(c-wantC) > 1e-15 {
			t.Fatalf("%v: %v, %v", degrees, s-wantS, c-wantC)
		}
	}
}
