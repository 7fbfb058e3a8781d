// Package positioncsv reads rows of positions, and position lines like those of MGEN logs.
//
// A row is time,platform,latitude,longitude[,altitude], separated by commas, semicolons or tabs. With semicolons or tabs numbers may have decimal commas.
// The platform is left out if the options give it.
// A first line with names may reorder the columns, and leave out platform and time. Time is in seconds since the
// scenario's start, in seconds or milliseconds since 1970, or a date. A platform is a number or a name.
//
// A line of an MGEN log (https://github.com/USNavalResearchLaboratory/mgen) has the sender's position at the transmission (sent):
//
//	15:13:31.500000 RECV proto>UDP flow>3 seq>7 src>10.0.0.3/5000 … sent>15:13:31.400000 … gps>CURRENT,58.2,7.97,12
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
	"unicode"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/wording"
)

// Parse parses a file, with rows in any order. Errors about the file contain its name, and are *scenario.SyntaxError.
func Parse(r io.Reader, name string, options tracks.Options) (*tracks.File, error) {
	p := &parser{platform: options.Platform, file: tracks.NewFile(name, options)}
	p.file.ByName = true
	return p.file, reading.EachLine(r, name, func(line []byte, number int) error {
		line = bytes.Trim(line, " \r") // a tab at the end stands before an empty column
		if text := bytes.TrimSpace(line); len(text) == 0 || text[0] == '#' {
			return nil
		}
		p.number = number
		return p.line(line)
	})
}

// midnight is the start of times of day.
var midnight = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)

type parser struct {
	file *tracks.File
	// platform is that of rows and lines without one; 0 if unknown.
	platform int
	// number is the line's number.
	number int

	separator byte     // of columns; 0 until the first row, or a line sep= before it
	columns   []string // of rows; nil until the first one

	begun bool // a time is known, and so the clock
	// The day and clock of MGEN's last line, which has no date; passed: there was one.
	day, clock time.Duration
	passed     bool
}

// on sets the clock of the file's times, which the first time decides.
func (p *parser) on(clock tracks.Clock, field []byte) error {
	if !p.begun {
		p.begun, p.file.Clock = true, clock
	}
	if clock != p.file.Clock {
		return fmt.Errorf("time is %q: want times that are all seconds, or all like 2026-01-31T12:00:00Z", reading.Short(field))
	}
	return nil
}

func (p *parser) line(line []byte) error {
	if clock, rest, ok := timeOfDay(line); ok {
		return p.mgen(clock, rest)
	}
	if p.separatorLine(line) || p.blank(line) {
		return nil
	}
	if p.columns == nil {
		if header, err := p.header(line); header || err != nil {
			return err
		}
	}
	return p.row(line)
}

// keep adds a position to a track.
func (p *parser) keep(at time.Duration, t *tracks.Track, position geo.Position) error {
	if err := p.file.Add(t, tracks.Point{At: at, Position: position, Line: p.number}); err != nil {
		return fmt.Errorf("platform %s: %w", cmp.Or(reading.Label(t.Name), fmt.Sprint(t.Platform)), err)
	}
	t.Ordered = t.Ordered || at == tracks.Untimed // then by the order of the rows
	return nil
}

// track returns the track of a platform's number or name.
func (p *parser) track(text []byte) (*tracks.Track, error) {
	number, err := reading.Platform(text)
	switch {
	case err == nil:
		return p.file.Numbered(number), nil
	case len(text) == 0 || isNumber(text):
		return nil, fmt.Errorf("%w, or a name", err)
	case len(text) > maxName:
		return nil, fmt.Errorf("platform is %q: want a name of at most %d bytes", reading.Short(text), maxName)
	}
	return p.file.Named(reading.Text(text)), nil
}

// maxName is the longest name of a platform, in bytes.
const maxName = 253

func isNumber(text []byte) bool {
	_, err := reading.Float(text, "")
	return err == nil
}

// own returns the track of a file with one platform.
func (p *parser) own() *tracks.Track {
	if p.platform != 0 {
		return p.file.Numbered(p.platform)
	}
	return p.file.Named("")
}

// The usual order of the columns.
var usual = []string{"time", "platform", "latitude", "longitude", "altitude"}

// names are the accepted names of the columns.
var names = map[string][]string{
	"time":      {"time", "t", "ts", "timestamp", "seconds"},
	"platform":  {"platform", "nem", "nem_id", "nemid", "node", "id", "name", "vehicle", "vehicle_id", "unit", "callsign"},
	"latitude":  {"latitude", "lat"},
	"longitude": {"longitude", "lon", "lng", "long"},
	"altitude":  {"altitude", "alt", "height", "ele", "elevation"},
}

// resembling are words in names of unknown columns that may be meant as one of these. Others, such as battery, are passed over.
var resembling = map[string][]string{
	"platform": {"platform", "nem", "node", "id", "name", "vehicle", "unit", "callsign", "device", "asset", "track", "radio"},
	"time":     {"time", "utc", "gps", "date", "ts"},
	"altitude": {"altitude", "alt", "height", "ele", "elevation", "hae", "msl", "z"},
}

// mayMean returns the unknown columns that may be meant as one that is missing.
func mayMean(unknown []string, column string) (found []string) {
	for _, name := range unknown {
		words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) })
		if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(resembling[column], word) }) {
			found = append(found, reading.Label(name))
		}
	}
	return found
}

// separatorLine reads a first line such as sep=;, which tells spreadsheets the separator of columns.
func (p *parser) separatorLine(line []byte) bool {
	separator, found := bytes.CutPrefix(bytes.ToLower(bytes.Trim(line, `"`)), []byte("sep="))
	if p.columns != nil || !found || len(separator) != 1 {
		return false
	}
	p.separator = separator[0]
	return true
}

// blank reports whether all cells of a row are empty, as in rows that spreadsheets leave.
func (p *parser) blank(line []byte) bool {
	return p.columns != nil && len(bytes.Trim(line, string(p.separator)+" \t\"")) == 0
}

// header reads the columns from the first line, and reports whether it was a line with names.
func (p *parser) header(line []byte) (bool, error) {
	if p.separator == 0 {
		p.separator = ','
		for _, separator := range []byte{';', '\t'} {
			if bytes.IndexByte(line, separator) >= 0 {
				p.separator = separator
			}
		}
	}
	fields, err := p.fields(line)
	if err != nil {
		return false, err
	}
	if c := bytes.TrimSpace(fields[0]); len(c) > 0 && (c[0] >= '0' && c[0] <= '9' || c[0] == '-' || c[0] == '+' || c[0] == '.') {
		return false, p.usualColumns(len(fields))
	}
	var unknown []string
	for _, field := range fields {
		name := strings.ToLower(string(bytes.TrimSpace(field)))
		column := columnOf(name)
		if column != "" && slices.Contains(p.columns, column) {
			p.file.Tally.Warn(fmt.Sprintf("the column %s is passed over: an earlier one has the %s", reading.Label(name), column))
			column = ""
		} else if column == "" && name != "" {
			unknown = append(unknown, name)
		}
		p.columns = append(p.columns, column)
	}
	for _, column := range []string{"latitude", "longitude"} {
		if !slices.Contains(p.columns, column) {
			hint := ""
			if len(fields) == 1 {
				hint = ": want commas, semicolons or tabs between columns"
			}
			return false, fmt.Errorf("there is no column %s among %q%s", column, reading.Short(line), hint)
		}
	}
	return true, p.judge(unknown)
}

// judge unknown columns. Some of them may be meant as a column that is missing.
func (p *parser) judge(unknown []string) error {
	for _, column := range []string{"platform", "time", "altitude"} {
		meant := mayMean(unknown, column)
		if len(meant) == 0 || slices.Contains(p.columns, column) || column == "platform" && p.platform != 0 {
			continue
		}
		said := "column " + meant[0] + " is not known"
		if len(meant) > 1 {
			said = "columns " + wording.Some(meant, 8) + " are not known"
		}
		want := fmt.Sprintf("%s: for the %s want %s", said, column, wording.Or(names[column]))
		switch column {
		case "platform":
			return errors.New(want + ", or a platform for the source")
		case "time":
			p.file.WhyUntimed = want
		default:
			p.file.Tally.Warn(want)
		}
	}
	return nil
}

// fields splits a row, whose fields may be in quotes.
func (p *parser) fields(line []byte) ([][]byte, error) {
	if bytes.IndexByte(line, '"') < 0 {
		return bytes.Split(line, []byte{p.separator}), nil
	}
	var fields [][]byte
	for {
		line = bytes.TrimLeft(line, " ")
		field, rest, more := bytes.Cut(line, []byte{p.separator})
		if len(line) > 0 && line[0] == '"' {
			inside, after, closed := quoted(line[1:])
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

// quoted returns the text up to its closing quote, in which two quotes mean one, and the text after it.
func quoted(text []byte) (inside, after []byte, closed bool) {
	for {
		part, rest, found := bytes.Cut(text, []byte{'"'})
		inside = append(inside, part...)
		if !found || len(rest) == 0 || rest[0] != '"' {
			return inside, rest, found
		}
		inside, text = append(inside, '"'), rest[1:]
	}
}

// columnOf returns the column of a name; "" for an unused one.
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
	if p.platform != 0 && n < len(columns) {
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
	for len(fields) > len(p.columns) && len(bytes.TrimSpace(fields[len(fields)-1])) == 0 {
		fields = fields[:len(fields)-1] // of columns that hold nothing
	}
	if len(fields) != len(p.columns) {
		return fmt.Errorf("the row has %d columns: want %d", len(fields), len(p.columns))
	}
	at := tracks.Untimed
	var position geo.Position
	var t *tracks.Track
	for i, column := range p.columns {
		field := bytes.TrimSpace(fields[i])
		var err error
		switch column {
		case "time":
			at, err = p.time(field)
		case "platform":
			t, err = p.track(field)
		case "latitude":
			position.Latitude, err = p.float(field, column)
		case "longitude":
			position.Longitude, err = p.float(field, column)
		case "altitude":
			if len(field) > 0 { // an empty cell is an altitude that is not given
				position.Altitude, err = p.float(field, column)
			}
		}
		if err != nil {
			return err
		}
	}
	if t == nil {
		t = p.own()
	}
	return p.keep(at, t, position)
}

// float parses a number with a decimal point, or with a comma unless that separates columns.
func (p *parser) float(field []byte, column string) (float64, error) {
	if p.separator != ',' && bytes.Count(field, []byte{','}) == 1 {
		field = bytes.Replace(field, []byte{','}, []byte{'.'}, 1)
	}
	return reading.Float(field, column)
}

const (
	// sinceEpoch is the number of seconds above which times count from 1970, as no scenario lasts that long.
	sinceEpoch = 1e9
	// inMilliseconds is a number above the seconds of any date.
	inMilliseconds = 1e11
)

// time parses seconds or a date. The first row decides which. A row may have none.
func (p *parser) time(field []byte) (time.Duration, error) {
	if len(field) == 0 {
		return tracks.Untimed, nil
	}
	seconds, err := p.float(field, "time")
	switch {
	case err == nil && seconds > sinceEpoch:
		if seconds > inMilliseconds {
			seconds /= 1e3
		}
		date := time.UnixMicro(int64(math.Round(min(seconds, inMilliseconds) * 1e6))).UTC()
		if date.Year() > 2200 {
			return 0, fmt.Errorf("time is %q: want seconds or milliseconds since 1970, or a date", reading.Short(field))
		}
		field = []byte(date.Format(time.RFC3339Nano))
	case err == nil:
		if err := p.on(tracks.Seconds, field); err != nil {
			return 0, err
		}
		return reading.Duration(seconds)
	}
	at, err := p.file.Date(string(field))
	if err != nil {
		return 0, fmt.Errorf("%w, or seconds", err)
	}
	return at, p.on(tracks.Dates, field)
}

// timeOfDay parses the beginning of an MGEN log's line, and returns the rest.
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
	if err := p.on(tracks.TimesOfDay, []byte("that of a line of MGEN")); err != nil {
		return err
	}
	if !p.passed {
		p.passed = true
	} else if clock < p.clock-12*time.Hour { // past midnight
		p.day += 24 * time.Hour
	} else if clock > p.clock+12*time.Hour { // a line from before midnight
		p.day -= 24 * time.Hour
	}
	p.clock = clock
	at := p.day + clock
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
		p.file.Tally.Unknown("MGEN " + string(words[0]) + " without gps")
		return nil
	}
	fields := bytes.Split(gps, []byte(","))
	if status := string(fields[0]); status != "CURRENT" && status != "STALE" {
		p.file.Tally.Unknown("MGEN gps " + status)
		return nil
	}
	position, err := mgenPosition(fields)
	if err != nil {
		return err
	}
	if text, given := attributes["sent"]; given {
		sent, _, ok := timeOfDay(text)
		if !ok {
			return fmt.Errorf("sent is %q: want a time of day, such as 15:13:31.400000", reading.Short(text))
		}
		at += time.Duration(math.Remainder(float64(sent-clock), float64(24*time.Hour))) // perhaps before midnight
	}
	t, err := p.sender(attributes)
	if err != nil {
		return err
	}
	return p.keep(at, t, position)
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

// sender returns the sender's track by its flow's number, else by its address.
func (p *parser) sender(attributes map[string][]byte) (*tracks.Track, error) {
	if p.platform != 0 {
		return p.own(), nil
	}
	if flow, ok := attributes["flow"]; ok {
		number, err := reading.Platform(flow)
		return p.file.Numbered(max(number, 1)), err
	}
	if address, _, _ := strings.Cut(string(attributes["src"]), "/"); address != "" {
		return p.file.Named(address), nil
	}
	return nil, errors.New("the line has no flow and no src: want one of them, or a platform for the source")
}
