// Package nmea reads a satellite receiver's log in the sentences of NMEA 0183: GGA, GNS, RMC and GLL of any talker, with the date of RMC or
// ZDA. It skips sentences of other kinds, such as those of AIS.
//
//	$GPGGA,120000.00,5806.0000,N,00754.0000,E,1,08,0.9,12.0,M,40.0,M,,*54
//	$GPRMC,120000.00,A,5806.0000,N,00754.0000,E,10.0,90.0,310126,,,A*5F
//
// A file is the log of one receiver. Without a date its times are times of day.
package nmea

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
)

// Parse parses a file. Errors about the file contain its name, and are *scenario.SyntaxError.
func Parse(r io.Reader, name string, options tracks.Options) (*tracks.File, error) {
	p := &parser{file: tracks.NewFile(name, options), track: &tracks.Track{}}
	p.file.Clock = tracks.TimesOfDay
	p.file.Tracks = []*tracks.Track{p.track}
	err := reading.EachLine(r, name, func(line []byte, number int) error {
		p.line = number
		return p.sentence(line)
	})
	if err == nil {
		p.end()
	}
	return p.file, err
}

type parser struct {
	file  *tracks.File
	track *tracks.Track
	line  int

	// clock is the time of day of the last sentences, and day the log's day, counted from its first. timed: there is a clock.
	clock time.Duration
	day   time.Duration
	timed bool
	// fixed: the moment has a point.
	fixed bool
	// date is the date of the log's first day, from 1970, once it is known.
	date  time.Duration
	dated bool
	// altitude is the last known altitude.
	altitude float64
}

// fix is a sentence's fix.
type fix struct {
	clock, latitude, north, longitude, east string
	// altitude is in metres; empty for kinds of sentences without one.
	altitude string
	// valid: the receiver had a fix.
	valid bool
}

// kinds has the sentences with a position, and the number of their fields.
var kinds = map[string]struct {
	fields int
	fix    func(f []string) fix
}{
	"GGA": {10, func(f []string) fix {
		return fix{f[1], f[2], f[3], f[4], f[5], f[9], f[6] != "" && f[6] != "0"}
	}},
	"GNS": {10, func(f []string) fix {
		return fix{f[1], f[2], f[3], f[4], f[5], f[9], strings.Trim(f[6], "N") != ""}
	}},
	"RMC": {10, func(f []string) fix { return fix{f[1], f[3], f[4], f[5], f[6], "", f[2] == "A"} }},
	"GLL": {7, func(f []string) fix { return fix{f[5], f[1], f[2], f[3], f[4], "", f[6] == "A"} }},
}

// sentence parses a line's sentence. It skips text before its $, such as a time by the logging program.
func (p *parser) sentence(line []byte) error {
	begin := bytes.LastIndexAny(line, "$!")
	if begin < 0 {
		if len(bytes.TrimSpace(line)) > 0 {
			p.file.Tally.Unknown("lines without a sentence")
		}
		return nil
	}
	text, sum, checked := strings.Cut(string(bytes.TrimSpace(line[begin+1:])), "*")
	if checked && !fits(text, sum) {
		p.file.Tally.Unknown("sentences whose checksum is wrong")
		return nil
	}
	fields := strings.Split(text, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	kind := fields[0]
	if len(kind) == 5 && kind[0] != 'P' {
		kind = kind[2:]
	}
	known, ok := kinds[kind]
	switch {
	case kind == "ZDA":
		return p.zda(fields)
	case !ok:
		p.file.Tally.Unknown(fields[0])
		return nil
	case len(fields) < known.fields, kind == "RMC" && !checked && len(fields) == known.fields && fields[9] != "" && len(fields[9]) < len("310126"):
		p.file.Tally.Unknown(kind + " cut short")
		return nil
	}
	if err := p.fix(kind, known.fix(fields), fields); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// fits reports whether a checksum matches a sentence.
func fits(text, sum string) bool {
	want, err := strconv.ParseUint(strings.TrimSpace(sum), 16, 8)
	for i := range len(text) {
		want ^= uint64(text[i])
	}
	return err == nil && want == 0
}

func (p *parser) fix(kind string, f fix, fields []string) error {
	if !f.valid || f.clock == "" || f.latitude == "" || f.longitude == "" {
		p.file.Tally.Unknown(kind + " without a fix")
		return nil
	}
	if err := p.time(f.clock); err != nil {
		return err
	}
	if kind == "RMC" && fields[9] != "" {
		if err := p.onDate(fields[9]); err != nil {
			return err
		}
	}
	position, err := f.position()
	if err != nil {
		return err
	}
	if kind == "GGA" && len(fields) > 10 && fields[10] != "" && fields[10] != "M" {
		return fmt.Errorf("after the altitude comes %q: want M, metres", reading.Short([]byte(fields[10])))
	}
	if f.altitude != "" {
		if p.altitude, err = reading.Float([]byte(f.altitude), "altitude"); err != nil {
			return err
		}
	}
	position.Altitude = p.altitude
	if p.fixed { // several sentences belong to one moment
		points := p.track.Segments[0]
		last := &points[len(points)-1]
		last.At, last.Position.Altitude = p.day+p.clock, p.altitude
		return nil
	}
	p.fixed = true
	return p.file.Add(p.track, tracks.Point{At: p.day + p.clock, Position: position, Line: p.line})
}

// time parses a sentence's time of day.
func (p *parser) time(text string) error {
	clock, err := timeOfDay(text)
	if err != nil {
		return err
	}
	p.fixed = p.fixed && clock == p.clock
	switch {
	case !p.timed:
	case clock < p.clock-12*time.Hour: // past midnight
		p.day += 24 * time.Hour
	case clock > p.clock+12*time.Hour: // a sentence from before midnight
		p.day -= 24 * time.Hour
	}
	p.clock, p.timed = clock, true
	return nil
}

// timeOfDay parses a time of day such as 120000.50.
func timeOfDay(text string) (time.Duration, error) {
	digits, _, _ := strings.Cut(text, ".")
	seconds, err := reading.Float([]byte(text), "time")
	if err != nil || len(digits) != 6 || seconds < 0 {
		return 0, fmt.Errorf("time is %q: want hours, minutes and seconds, such as 120000.00", reading.Short([]byte(text)))
	}
	whole := int(seconds)
	hours, minutes := whole/10000, whole/100%100
	rest := seconds - float64(hours*10000+minutes*100)
	if hours > 23 || minutes > 59 || rest >= 61 {
		return 0, fmt.Errorf("time is %q: want hours, minutes and seconds, such as 120000.00", reading.Short([]byte(text)))
	}
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(rest*1000+0.5)*time.Millisecond, nil
}

// onDate sets the log's current date, such as 310126. Years from 80 on are those of the last century.
func (p *parser) onDate(text string) error {
	at, err := time.Parse("020106", text)
	if err != nil {
		return fmt.Errorf("date is %q: want day, month and year, such as 310126", reading.Short([]byte(text)))
	}
	if at.Year() < 1980 {
		at = at.AddDate(100, 0, 0)
	}
	p.today(at)
	return nil
}

// today sets the current date. The first one dates all days before it.
func (p *parser) today(date time.Time) {
	since := time.Duration(date.UnixNano())
	if !p.dated {
		p.date, p.dated = since-p.day, true
	}
	p.day = since - p.date
}

// zda parses a time with its date.
func (p *parser) zda(fields []string) error {
	if len(fields) < 5 || fields[1] == "" || fields[4] == "" {
		p.file.Tally.Unknown("ZDA without a date")
		return nil
	}
	if err := p.time(fields[1]); err != nil {
		return fmt.Errorf("ZDA: %w", err)
	}
	date, err := time.Parse("2 1 2006", fmt.Sprintf("%s %s %s", strings.TrimLeft(fields[2], "0"), strings.TrimLeft(fields[3], "0"), fields[4]))
	if err != nil || date.Year() < 1980 || date.Year() > 2200 {
		return fmt.Errorf("ZDA: date is %q: want day, month and year, such as 31,01,2026", reading.Short([]byte(strings.Join(fields[2:5], ","))))
	}
	p.today(date)
	return nil
}

// end ends the file: times are dates if one was found.
func (p *parser) end() {
	if !p.dated {
		return
	}
	p.file.Clock = tracks.Dates
	for _, points := range p.track.Segments {
		for i := range points {
			points[i].At += p.date
		}
	}
}

func (f fix) position() (position geo.Position, err error) {
	if position.Latitude, err = degrees(f.latitude, f.north, "latitude", "N", "S"); err != nil {
		return position, err
	}
	position.Longitude, err = degrees(f.longitude, f.east, "longitude", "E", "W")
	return position, err
}

// degrees parses degrees and minutes such as 5806.0000, with a letter for the hemisphere.
func degrees(text, letter, what, positive, negative string) (float64, error) {
	v, err := reading.Float([]byte(text), what)
	if err != nil {
		return 0, err
	}
	whole := float64(int(v / 100))
	minutes := v - whole*100
	if v < 0 || v > 18000 || minutes >= 60 {
		return 0, fmt.Errorf("%s is %q: want degrees and minutes, such as 5806.0000", what, reading.Short([]byte(text)))
	}
	switch strings.ToUpper(letter) {
	case positive:
		return whole + minutes/60, nil
	case negative:
		return -whole - minutes/60, nil
	}
	return 0, fmt.Errorf("after the %s comes %q: want %s or %s", what, reading.Short([]byte(letter)), positive, negative)
}
