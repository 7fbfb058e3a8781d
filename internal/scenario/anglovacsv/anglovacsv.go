// Package anglovacsv reads rows of pairs, as known from analyses of the Anglova scenario:
//
//	ts,d,i_nem_id,i_lat,i_lon,i_alt,j_nem_id,j_lat,j_lon,j_alt,pathloss
//
// with ts in seconds, d the distance in metres (not used), degrees, metres and dB. There is one row for each unordered pair and
// time, and its pathloss applies to both directions. The first line may name the columns, which then may have another order.
package anglovacsv

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/utf8text"
)

// columns are in their usual order.
var columns = []string{"ts", "d", "i_nem_id", "i_lat", "i_lon", "i_alt", "j_nem_id", "j_lat", "j_lon", "j_alt", "pathloss"}

// Read reads a file into a builder. A nil origin is the file's smallest time. Errors about the file are *scenario.SyntaxError.
func Read(r io.Reader, name string, b *scenario.Builder, origin *float64) error {
	p := &parser{builder: b, name: name, seen: map[[2]int]seen{}, places: map[int]place{}}
	if origin != nil {
		p.origin = *origin
		return p.file(r, p.row)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if p.origin, err = First(bytes.NewReader(text), name); err != nil {
		return err
	}
	return p.file(bytes.NewReader(text), p.row)
}

// First returns the smallest time of a file, for the common origin of several files.
func First(r io.Reader, name string) (seconds float64, err error) {
	p, first := &parser{name: name}, math.Inf(1)
	err = p.file(r, func(row []string) error {
		at, err := p.float(row, "ts")
		first = min(first, at)
		return err
	})
	if math.IsInf(first, 1) {
		first = 0
	}
	return first, err
}

// file is a file of rows.
func (p *parser) file(r io.Reader, do func(row []string) error) error {
	rows := csv.NewReader(utf8text.NewReader(r))
	rows.ReuseRecord, rows.FieldsPerRecord, rows.TrimLeadingSpace, rows.Comment = true, -1, true, '#'
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var syntax *csv.ParseError
		switch {
		case errors.As(err, &syntax):
			return p.errorAt(syntax.Line, errors.New(`a quote (") stands in the middle of a column, or is not closed`))
		case err != nil:
			return fmt.Errorf("%s: %w", p.name, err)
		}
		header, err := p.begin(row)
		if err == nil && !header {
			err = do(row)
		}
		if err != nil {
			line, _ := rows.FieldPos(0)
			return p.errorAt(line, err)
		}
	}
}

type parser struct {
	builder *scenario.Builder
	name    string
	// column has the index in the file of each of columns; nil until the first row.
	column map[string]int
	width  int
	origin float64
	// seen has the last row of each pair, places the last position of each platform.
	seen   map[[2]int]seen
	places map[int]place
}

type seen struct {
	at time.Duration
	dB float64
}

type place struct {
	at       time.Duration
	position geo.Position
}

func (p *parser) errorAt(line int, err error) error {
	return &scenario.SyntaxError{File: p.name, Line: line, Reason: err.Error()}
}

// header reports whether the first row names the columns.
func (p *parser) header(row []string) (bool, error) {
	p.column, p.width = map[string]int{}, len(row)
	first := strings.ToLower(row[0])
	if _, err := reading.Float([]byte(first), ""); err == nil {
		if len(row) != len(columns) {
			return false, fmt.Errorf("the row has %d columns: want %s", len(row), strings.Join(columns, ","))
		}
		for i, name := range columns {
			p.column[name] = i
		}
		return false, nil
	}
	for i, name := range row {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := p.column[name]; twice && name != "d" && slices.Contains(columns, name) {
			return false, fmt.Errorf("the column %s is there twice: want it once", name)
		}
		p.column[name] = i
	}
	for _, name := range columns {
		if _, ok := p.column[name]; !ok && name != "d" {
			return false, fmt.Errorf("there is no column %s: want %s", name, strings.Join(columns, ","))
		}
	}
	return true, nil
}

// begin starts a row, and reports whether it names the columns.
func (p *parser) begin(row []string) (header bool, err error) {
	if p.column == nil {
		if header, err := p.header(row); header || err != nil {
			return header, err
		}
	}
	if len(row) != p.width {
		return false, fmt.Errorf("the row has %d columns: want %d", len(row), p.width)
	}
	return false, nil
}

func (p *parser) row(row []string) error {
	at, err := p.time(row)
	if err != nil {
		return err
	}
	i, err := p.end(row, "i", at)
	if err != nil {
		return err
	}
	j, err := p.end(row, "j", at)
	if err != nil {
		return err
	}
	dB, err := p.float(row, "pathloss")
	if err != nil {
		return err
	}
	return p.pair(at, i, j, dB)
}

func (p *parser) time(row []string) (time.Duration, error) {
	seconds, err := p.float(row, "ts")
	if err != nil {
		return 0, err
	}
	return reading.Duration(seconds - p.origin)
}

// end is one end of the pair: a platform and its position.
func (p *parser) end(row []string, which string, at time.Duration) (int, error) {
	platform, err := reading.Platform([]byte(row[p.column[which+"_nem_id"]]))
	if err != nil {
		return 0, fmt.Errorf("%s_nem_id: %w", which, err)
	}
	var v [3]float64
	for i, name := range []string{"_lat", "_lon", "_alt"} {
		if v[i], err = p.float(row, which+name); err != nil {
			return 0, err
		}
	}
	position := geo.Position{Latitude: v[0], Longitude: v[1], Altitude: v[2]}
	last, known := p.places[platform]
	if known && last.at == at {
		if last.position != position {
			return 0, fmt.Errorf("platform %d is at %s and at %s at %g s: want one place at a time", platform, inFile(last.position), inFile(position), at.Seconds())
		}
		return platform, nil
	}
	p.places[platform] = place{at, position}
	return platform, p.builder.Position(at, platform, position)
}

// inFile writes a position as the file does: latitude, longitude and altitude.
func inFile(p geo.Position) string {
	return fmt.Sprintf("%v,%v,%v", p.Latitude, p.Longitude, p.Altitude)
}

func (p *parser) pair(at time.Duration, i, j int, dB float64) error {
	key := [2]int{min(i, j), max(i, j)}
	if last, known := p.seen[key]; known && last.at == at && last.dB != dB {
		return fmt.Errorf("the pathloss of %d and %d is %v dB and %v dB at %g s: want one row for each pair and time", i, j, last.dB, dB, at.Seconds())
	}
	p.seen[key] = seen{at, dB}
	if err := p.builder.Pathloss(at, i, j, dB); err != nil {
		return err
	}
	return p.builder.Pathloss(at, j, i, dB)
}

func (p *parser) float(row []string, column string) (float64, error) {
	return reading.Float([]byte(strings.TrimSpace(row[p.column[column]])), column)
}
