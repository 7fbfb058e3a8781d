// Package positioncsv reads rows of positions, and position lines in the manner of MGEN logs.
//
// A row is time,platform,latitude,longitude[,altitude], separated by commas, semicolons or tabs; or without the platform where the
// options give it. A first line with names may put columns in another order. Time is in seconds since the scenario's start, in seconds
// since 1970, or a date and time by RFC 3339.
//
// A line of an MGEN log (https://github.com/USNavalResearchLaboratory/mgen) tells where the sender was when it sent:
//
//	15:13:31.500000 RECV proto>UDP flow>3 seq>7 src>10.0.0.3/5000 … gps>CURRENT,58.2,7.97,12
package positioncsv

import (
	"bytes"
	"cmp"
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
)

// Options of reading.
type Options struct {
	// Platform of rows and lines that have none of their own.
	Platform int
	// Sources are the platforms of senders' addresses in MGEN logs (10.0.0.3). A sender that is not among them is the
	// platform of its flow number.
	Sources map[string]int
	// Origin is the scenario's time 0 where times are dates or times of day; the smallest one of the file if zero. See First.
	Origin time.Time
	// Step at whose multiples positions between two rows of a platform are reckoned; if it is not above 0, platforms jump from row
	// to row.
	Step time.Duration
}

// Read a file whose name is for errors into a builder, which must not be promised sorted events. The rows may come in any order. Errors
// about the file are *scenario.SyntaxError.
func Read(r io.Reader, name string, b *scenario.Builder, options Options) (scenario.Report, error) {
	p := &parser{options: options}
	if err := p.file(r, name); err != nil {
		return scenario.Report{}, err
	}
	if err := p.put(&reading.Tracks{Builder: b, Step: options.Step}, name); err != nil {
		return scenario.Report{}, err
	}
	return p.tally.Report(), nil
}

// First moment of a file, for the common origin of several files. It is zero where times are seconds. Times of day are those of the first
// day of year 0.
func First(r io.Reader, name string, options Options) (time.Time, error) {
	p := &parser{options: options}
	if err := p.file(r, name); err != nil || !p.absolute {
		return time.Time{}, err
	}
	return p.first(), nil
}

// midnight of times of day.
var midnight = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)

// Earlier of two first moments. Of two times of day that are more than half a day apart the smaller one is that of the next day.
func Earlier(a, b time.Time) time.Time {
	apart := a.Sub(b)
	if onADay := a.Year() <= 0 && b.Year() <= 0; onADay && (apart > 12*time.Hour || apart < -12*time.Hour) {
		apart = -apart
	}
	if apart < 0 {
		return a
	}
	return b
}

type parser struct {
	options Options
	tally   reading.Tally
	rows    []row

	separator byte
	columns   []string // of rows; nil until the first one
	dated     bool     // times are dates

	begun    bool
	smallest time.Duration
	// absolute times are dates or times of day; rows count from base then.
	absolute bool
	base     time.Time
	// day and clock of MGEN's last line, which has no date.
	day, clock time.Duration
}

// row that was understood.
type row struct {
	reading.Point
	platform, line int
}

// file of rows and lines.
func (p *parser) file(r io.Reader, name string) error {
	lines := reading.NewLines(r, name)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		before := len(p.rows)
		if err := p.line(line); err != nil {
			return lines.Errorf("%s", err)
		}
		if len(p.rows) > before {
			p.rows[before].line = lines.Number()
		}
	}
}

// first moment of the rows and lines.
func (p *parser) first() time.Time { return p.base.Add(p.smallest) }

// moment of a row or a line.
func (p *parser) moment(at time.Duration) {
	if !p.begun || at < p.smallest {
		p.smallest = at
	}
	p.begun = true
}

// put the rows into the tracks, each platform's in the order of their times.
func (p *parser) put(tracks *reading.Tracks, name string) error {
	var shift time.Duration
	if p.absolute {
		origin, first := p.options.Origin, p.first()
		if origin.IsZero() {
			origin = first
		}
		shift = p.base.Sub(origin)
		if first.Before(origin) && Earlier(origin, first) == origin {
			shift += 24 * time.Hour // times of day after midnight
		}
		if p.dated {
			p.tally.Origin(origin)
		}
	}
	slices.SortStableFunc(p.rows, func(a, b row) int { return cmp.Or(a.platform-b.platform, cmp.Compare(a.At, b.At)) })
	for i := range p.rows {
		r := &p.rows[i]
		seconds := r.At.Seconds() + shift.Seconds()
		r.At += shift
		points := []reading.Point{r.Point}
		if i > 0 && p.rows[i-1].platform == r.platform && tracks.Step > 0 {
			points = []reading.Point{p.rows[i-1].Point, r.Point}
		}
		p.tally.Platform(r.platform)
		p.tally.Sentence(r.At)
		_, err := reading.Duration(seconds)
		if err == nil {
			err = tracks.Add(r.platform, points)
		}
		if err != nil {
			return &scenario.SyntaxError{File: name, Line: r.line, Reason: err.Error()}
		}
	}
	return nil
}

func (p *parser) line(line []byte) error {
	if clock, rest, ok := timeOfDay(line); ok {
		return p.mgen(clock, rest)
	}
	if p.columns == nil {
		if header, err := p.header(line); header || err != nil {
			return err
		}
	}
	return p.row(line)
}

// keep a position until all are known.
func (p *parser) keep(at time.Duration, platform int, position geo.Position) error {
	if err := position.Validate(); err != nil {
		return fmt.Errorf("platform %d: %w", platform, err)
	}
	p.rows = append(p.rows, row{Point: reading.Point{At: at, Position: position}, platform: platform})
	return nil
}

// usual order of the columns.
var usual = []string{"time", "platform", "latitude", "longitude", "altitude"}

// names that columns go by.
var names = map[string][]string{
	"time":      {"time", "t", "ts", "timestamp", "seconds"},
	"platform":  {"platform", "nem", "nem_id", "nemid", "node", "id"},
	"latitude":  {"latitude", "lat"},
	"longitude": {"longitude", "lon", "lng", "long"},
	"altitude":  {"altitude", "alt", "height", "ele", "elevation"},
}

// header learns the columns from the first line, and says whether it was a line with names.
func (p *parser) header(line []byte) (bool, error) {
	p.separator = ','
	for _, separator := range []byte{';', '\t'} {
		if bytes.IndexByte(line, separator) >= 0 {
			p.separator = separator
		}
	}
	fields, err := p.fields(line)
	if err != nil {
		return false, err
	}
	if c := bytes.TrimSpace(fields[0]); len(c) > 0 && (c[0] >= '0' && c[0] <= '9' || c[0] == '-' || c[0] == '+' || c[0] == '.') {
		return false, p.usualColumns(len(fields))
	}
	for _, field := range fields {
		p.columns = append(p.columns, columnOf(strings.ToLower(string(bytes.TrimSpace(field)))))
	}
	for _, column := range usual {
		given := column == "platform" && p.options.Platform != 0
		if column != "altitude" && !given && !slices.Contains(p.columns, column) {
			return false, fmt.Errorf("there is no column %s among %q", column, reading.Short(line))
		}
	}
	return true, nil
}

// fields of a row, which may be in quotes.
func (p *parser) fields(line []byte) ([][]byte, error) {
	if bytes.IndexByte(line, '"') < 0 {
		return bytes.Split(line, []byte{p.separator}), nil
	}
	var fields [][]byte
	for {
		line = bytes.TrimLeft(line, " ")
		field, rest, more := bytes.Cut(line, []byte{p.separator})
		if len(line) > 0 && line[0] == '"' {
			inside, after, closed := bytes.Cut(line[1:], []byte{'"'})
			if !closed {
				return nil, errors.New("a quote is not closed")
			}
			var beside []byte
			beside, rest, more = bytes.Cut(after, []byte{p.separator})
			if len(bytes.TrimSpace(beside)) > 0 {
				return nil, fmt.Errorf("after a quote comes %q: want the next column", reading.Short(beside))
			}
			field = inside
		}
		fields = append(fields, field)
		if !more {
			return fields, nil
		}
		line = rest
	}
}

// columnOf a name; "" for one that is not used.
func columnOf(name string) string {
	for column, list := range names {
		if slices.Contains(list, name) {
			return column
		}
	}
	return ""
}

func (p *parser) usualColumns(n int) error {
	columns := slices.Clone(usual)
	if p.options.Platform != 0 && n < len(columns) {
		columns = slices.Delete(columns, 1, 2)
	}
	if n != len(columns) && n != len(columns)-1 {
		return fmt.Errorf("the row has %d columns: want %s", n, strings.Join(columns, ","))
	}
	p.columns = columns[:n]
	return nil
}

func (p *parser) row(line []byte) error {
	fields, err := p.fields(line)
	if err != nil {
		return err
	}
	if len(fields) != len(p.columns) {
		return fmt.Errorf("the row has %d columns: want %d", len(fields), len(p.columns))
	}
	var at time.Duration
	var position geo.Position
	platform := p.options.Platform
	for i, column := range p.columns {
		field := bytes.TrimSpace(fields[i])
		var err error
		switch column {
		case "time":
			if at, err = p.time(field); err == nil {
				p.moment(at)
			}
		case "platform":
			platform, err = reading.Platform(field)
		case "latitude":
			position.Latitude, err = reading.Float(field, column)
		case "longitude":
			position.Longitude, err = reading.Float(field, column)
		case "altitude":
			position.Altitude, err = reading.Float(field, column)
		}
		if err != nil {
			return err
		}
	}
	return p.keep(at, platform, position)
}

// sinceEpoch are seconds above those that a scenario may last: they count from 1970.
const sinceEpoch = 1e9

// time in seconds or as a date; the first row decides which.
func (p *parser) time(field []byte) (time.Duration, error) {
	date, err := time.Parse(time.RFC3339, string(field))
	if seconds, err := reading.Float(field, "time"); err == nil && seconds > sinceEpoch {
		date = time.UnixMicro(int64(math.Round(min(seconds, 1e12) * 1e6)))
	}
	isDate := err == nil || !date.IsZero()
	if !p.begun {
		p.dated, p.absolute, p.base = isDate, isDate, date
	}
	switch {
	case isDate != p.dated:
		return 0, fmt.Errorf("time is %q: want times that are all seconds, or all like 2026-01-31T12:00:00Z", reading.Short(field))
	case isDate:
		return date.Sub(p.base), nil
	}
	return reading.Seconds(field)
}

// timeOfDay at the beginning of a line of an MGEN log, and what follows it.
func timeOfDay(line []byte) (clock time.Duration, rest []byte, ok bool) {
	word, rest, _ := bytes.Cut(line, []byte(" "))
	if len(word) < 8 || word[2] != ':' || word[5] != ':' {
		return 0, nil, false
	}
	at, err := time.Parse("15:04:05", string(word))
	if err != nil {
		return 0, nil, false
	}
	return at.Sub(midnight), rest, true
}

func (p *parser) mgen(clock time.Duration, rest []byte) error {
	if !p.begun {
		p.absolute, p.base = true, midnight
	} else if clock < p.clock-12*time.Hour { // past midnight
		p.day += 24 * time.Hour
	} else if clock > p.clock+12*time.Hour { // a line from before midnight
		p.day -= 24 * time.Hour
	}
	p.clock = clock
	at := p.day + clock
	p.moment(at)
	words := bytes.Fields(rest)
	if len(words) == 0 {
		return errors.New("after the time there is no event")
	}
	attributes := map[string][]byte{}
	for _, word := range words[1:] {
		name, value, _ := bytes.Cut(word, []byte(">"))
		attributes[strings.ToLower(string(name))] = value
	}
	gps, ok := attributes["gps"]
	if !ok {
		p.tally.Unknown("MGEN " + string(words[0]) + " without gps")
		return nil
	}
	fields := bytes.Split(gps, []byte(","))
	if status := string(fields[0]); status != "CURRENT" && status != "STALE" {
		p.tally.Unknown("MGEN gps " + status)
		return nil
	}
	position, err := mgenPosition(fields)
	if err != nil {
		return err
	}
	platform, err := p.sender(attributes)
	if err != nil {
		return err
	}
	return p.keep(at, platform, position)
}

func mgenPosition(fields [][]byte) (p geo.Position, err error) {
	if len(fields) != 4 {
		return p, fmt.Errorf("gps has %d values: want CURRENT,latitude,longitude,altitude", len(fields))
	}
	if p.Latitude, err = reading.Float(fields[1], "latitude"); err != nil {
		return p, err
	}
	if p.Longitude, err = reading.Float(fields[2], "longitude"); err != nil {
		return p, err
	}
	p.Altitude, err = reading.Float(fields[3], "altitude")
	return p, err
}

func (p *parser) sender(attributes map[string][]byte) (int, error) {
	address, _, _ := strings.Cut(string(attributes["src"]), "/")
	if platform, ok := p.options.Sources[address]; ok {
		return platform, nil
	}
	if p.options.Platform != 0 {
		return p.options.Platform, nil
	}
	if flow, ok := attributes["flow"]; ok {
		return reading.Platform(flow)
	}
	return 0, fmt.Errorf("sender is %q: want a flow, or a platform for it", address)
}
