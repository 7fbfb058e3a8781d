// Package positioncsv reads rows of positions, and position lines in the manner of MGEN logs.
//
// A row is time,platform,latitude,longitude[,altitude], separated by commas, semicolons or tabs; or without the platform where the
// options give it. A first line with names may put columns in another order. Time is in seconds, or a date and time by RFC 3339.
//
// A line of an MGEN log (https://github.com/USNavalResearchLaboratory/mgen) tells where the sender was when it sent:
//
//	15:13:31.500000 RECV proto>UDP flow>3 seq>7 src>10.0.0.3/5000 … gps>CURRENT,58.2,7.97,12
package positioncsv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	// Origin is the scenario's time 0 where times are dates; the first one of the file if zero.
	Origin time.Time
	// Step at whose multiples positions between two rows of a platform are reckoned; if it is not above 0, platforms jump from row
	// to row. The rows of each platform must then come in the order of their times, and the builder must not be promised sorted
	// events.
	Step time.Duration
}

// Read a file whose name is for errors into a builder. Errors about the file are *scenario.SyntaxError.
func Read(r io.Reader, name string, b *scenario.Builder, options Options) (scenario.Report, error) {
	lines := reading.NewLines(r, name)
	p := &parser{
		options: options, tracks: reading.Tracks{Builder: b, Step: options.Step},
		last: map[int]reading.Point{}, origin: options.Origin,
	}
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			p.tally.Origin(p.origin)
			return p.tally.Report(), nil
		}
		if err != nil {
			return scenario.Report{}, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if err := p.line(line); err != nil {
			return scenario.Report{}, lines.Errorf("%s", err)
		}
	}
}

type parser struct {
	options Options
	tally   reading.Tally
	tracks  reading.Tracks
	// last point of each platform, for what lies between it and the next.
	last map[int]reading.Point

	separator byte
	columns   []string // of rows; nil until the first one
	dated     bool     // times are dates
	origin    time.Time

	begun      bool
	day, clock time.Duration // of MGEN's lines, which have no date
	start      time.Duration
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

// put a position into the builder.
func (p *parser) put(at time.Duration, platform int, position geo.Position) error {
	if err := position.Validate(); err != nil {
		return fmt.Errorf("platform %d: %w", platform, err)
	}
	point := reading.Point{At: at, Position: position}
	points := []reading.Point{point}
	if last, known := p.last[platform]; known && p.tracks.Step > 0 {
		if at < last.At {
			return fmt.Errorf("platform %d: time is %g s: want none before %g s, that of its last position", platform, at.Seconds(), last.At.Seconds())
		}
		points = []reading.Point{last, point}
	}
	p.last[platform] = point
	p.tally.Platform(platform)
	p.tally.Sentence(at)
	return p.tracks.Add(platform, points)
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
	fields := bytes.Split(line, []byte{p.separator})
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
	fields := bytes.Split(line, []byte{p.separator})
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
			at, err = p.time(field)
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
	return p.put(at, platform, position)
}

// time in seconds or as a date; the first row decides which.
func (p *parser) time(field []byte) (time.Duration, error) {
	date, err := time.Parse(time.RFC3339, string(field))
	isDate := err == nil
	if !p.begun {
		p.begun, p.dated = true, isDate
		if isDate && p.origin.IsZero() {
			p.origin = date
		}
	}
	switch {
	case isDate != p.dated:
		return 0, fmt.Errorf("time is %q: want times that are all seconds, or all like 2026-01-31T12:00:00Z", reading.Short(field))
	case isDate:
		return reading.Duration(date.Sub(p.origin).Seconds())
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
	return at.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), rest, true
}

func (p *parser) mgen(clock time.Duration, rest []byte) error {
	if !p.begun {
		p.begun, p.start = true, clock
	} else if clock < p.clock-12*time.Hour { // past midnight
		p.day += 24 * time.Hour
	}
	p.clock = clock
	at := p.day + clock - p.start
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
	return p.put(at, platform, position)
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
