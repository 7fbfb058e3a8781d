package terrain

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/utf8text"
)

// esriHeader is the header of an ESRI ASCII grid.
type esriHeader struct {
	columns, rows    float64
	x, y, dx, dy     float64
	xCentre, yCentre bool
	noData           float64
	seen             map[string]bool
	firstNumber      string
}

// ReadESRI reads an ESRI ASCII grid (also called Arc/Info ASCII grid, .asc) with coordinates in degrees of WGS 84 and elevations
// in metres. Errors name the file and the line.
func ReadESRI(r io.Reader, name string) (*Grid, error) {
	words := &wordReader{r: bufio.NewReader(utf8text.NewReader(r)), line: 1}
	header, err := readESRIHeader(words)
	if err == nil {
		var g *Grid
		if g, err = header.grid(); err == nil {
			if err = header.fill(g, words); err == nil {
				return g, nil
			}
		}
	}
	return nil, fmt.Errorf("%s:%d: %w", name, words.line, err)
}

func readESRIHeader(words *wordReader) (*esriHeader, error) {
	h := &esriHeader{noData: -9999, seen: map[string]bool{}}
	for {
		word, err := words.next()
		if err != nil {
			return nil, fmt.Errorf("the header of the grid is not complete: %w", explainEnd(err))
		}
		if c := word[0]; c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9') || isNaN(word) {
			h.firstNumber = word
			return h, h.complete()
		}
		key := strings.ToLower(word)
		if h.seen[key] {
			return nil, fmt.Errorf("%s is given twice", key)
		}
		h.seen[key] = true
		text, err := words.next()
		if err != nil {
			return nil, fmt.Errorf("%s has no value: %w", key, explainEnd(err))
		}
		if err := h.set(key, text); err != nil {
			return nil, err
		}
	}
}

// explainEnd replaces io.EOF by an error in plain words.
func explainEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file ends too early")
	}
	return err
}

func (h *esriHeader) set(key, text string) error {
	v, err := number(text)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if key == "nodata_value" {
		h.noData = v
		return nil
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%s: %q must be finite", key, text)
	}
	switch key {
	case "ncols":
		h.columns = v
	case "nrows":
		h.rows = v
	case "xllcorner", "xllcenter":
		h.x, h.xCentre = v, key == "xllcenter"
	case "yllcorner", "yllcenter":
		h.y, h.yCentre = v, key == "yllcenter"
	case "cellsize":
		h.dx, h.dy = v, v
	case "dx":
		h.dx = v
	case "dy":
		h.dy = v
	default:
		return fmt.Errorf("%q is no word of the header: ncols, nrows, xllcorner or xllcenter, yllcorner or yllcenter, cellsize (or dx and dy), nodata_value", key)
	}
	return nil
}

func (h *esriHeader) complete() error {
	for _, either := range [][]string{{"ncols"}, {"nrows"}, {"xllcorner", "xllcenter"}, {"yllcorner", "yllcenter"}, {"cellsize", "dx"}, {"cellsize", "dy"}} {
		given := 0
		for _, key := range either {
			if h.seen[key] {
				given++
			}
		}
		if given != 1 {
			return fmt.Errorf("the header must have one of %s", strings.Join(either, ", "))
		}
	}
	return nil
}

func (h *esriHeader) grid() (*Grid, error) {
	if !(h.columns >= 1 && h.rows >= 1 && h.columns*h.rows <= MaxCells) || h.columns != math.Trunc(h.columns) || h.rows != math.Trunc(h.rows) {
		return nil, fmt.Errorf("ncols %g and nrows %g must be whole, from 1, and at most %d cells in all", h.columns, h.rows, MaxCells)
	}
	g := &Grid{West: h.x, South: h.y, CellLongitude: h.dx, CellLatitude: h.dy, Columns: int(h.columns), Rows: int(h.rows)}
	if !h.xCentre {
		g.West += h.dx / 2
	}
	if !h.yCentre {
		g.South += h.dy / 2
	}
	southWest, northEast := g.Bounds()
	if !(h.dx > 0 && h.dy > 0) || southWest.Latitude < -90.5 || northEast.Latitude > 90.5 || southWest.Longitude < -360.5 || northEast.Longitude > 360.5 {
		return nil, fmt.Errorf("the grid spans latitude %g … %g and longitude %g … %g: must be degrees (project it to WGS 84 first), with cells above zero",
			southWest.Latitude, northEast.Latitude, southWest.Longitude, northEast.Longitude)
	}
	return g, nil
}

func (h *esriHeader) fill(g *Grid, words *wordReader) error {
	word := h.firstNumber
	for n := range g.Columns * g.Rows {
		if n > 0 {
			var err error
			if word, err = words.next(); errors.Is(err, io.EOF) {
				return fmt.Errorf("the grid ends after %d of %d elevations", n, g.Columns*g.Rows)
			} else if err != nil {
				return err
			}
		}
		v, err := number(word)
		if err != nil {
			return fmt.Errorf("elevation %w", err)
		}
		switch {
		case v == h.noData || math.IsNaN(v):
			v = math.NaN()
		case v < -12000 || v > 9000:
			return fmt.Errorf("elevation %g m must be on Earth, or the nodata_value %g", v, h.noData)
		}
		g.metres = append(g.metres, float32(v))
	}
	if word, err := words.next(); err == nil {
		return fmt.Errorf("%q follows after the last elevation", word)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// isNaN reports whether a word means "not a number", as C's printf on several systems and other programs
// write it.
func isNaN(word string) bool {
	word = strings.TrimLeft(strings.ToLower(word), "+-")
	return word == "nan" || strings.HasPrefix(word, "nan(") || strings.HasPrefix(word, "1.#qnan") || strings.HasPrefix(word, "1.#ind")
}

func number(word string) (float64, error) {
	if isNaN(word) {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(word, 64)
	if err != nil && strings.Count(word, ",") == 1 {
		return 0, fmt.Errorf("%q is not a number: want a decimal point, such as %s", word, strings.Replace(word, ",", ".", 1))
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", word)
	}
	return v, nil
}

// wordReader splits a text at white space and counts lines.
type wordReader struct {
	r    *bufio.Reader
	line int
	word []byte
}

const maxWord = 64

func (w *wordReader) next() (string, error) {
	w.word = w.word[:0]
	for {
		c, err := w.r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && len(w.word) > 0 {
				return string(w.word), nil
			}
			return "", err
		}
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			if len(w.word) > 0 {
				return string(w.word), w.r.UnreadByte()
			}
			if c == '\n' {
				w.line++
			}
			continue
		}
		if w.word = append(w.word, c); len(w.word) > maxWord {
			return "", fmt.Errorf("%q… is longer than a number may be", w.word)
		}
	}
}
