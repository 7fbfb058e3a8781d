// Package eel reads emulation event logs (EEL), the scenario files of EMANE and of the Anglova scenario.
//
// A sentence is a line: time in seconds, module, keyword, arguments. The reader knows those of EMANE's event loaders for modules
// nem:N, in upper or lower case:
//
//	location gps latitude,longitude,altitude[,msl|agl]
//	velocity azimuth,elevation,metres per second
//	orientation pitch,roll,yaw
//	antennaprofile profile,azimuth,elevation
//	pathloss nem:B,dB[,dB from B] …
//	pathlossex nem:B,hertz:dB[:dB from B] … …
//	commeffect nem:B,latency,jitter,loss %,duplication %,unicast bit/s,broadcast bit/s …
//	fadingselection nem:B,none|nakagami|lognormal …
//
// The module of a line transmits and nem:B receives. In a fadingselection the module receives from nem:B.
// A pathloss without a second value applies to both directions. Text after # is a comment.
package eel

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/reading"
)

// Read reads a file into a builder. Errors about the file contain its name, and are *scenario.SyntaxError.
func Read(r io.Reader, name string, b *scenario.Builder) (scenario.Report, error) {
	p := parser{builder: b}
	if err := reading.EachLine(r, name, func(line []byte, _ int) error { return p.sentence(line) }); err != nil {
		return scenario.Report{}, err
	}
	return p.tally.Report(), nil
}

type parser struct {
	builder *scenario.Builder
	tally   reading.Tally
	words   [][]byte
	fields  [][]byte

	// Of the current sentence.
	at       time.Duration
	platform int
}

// loaders has the loaders of known sentences, by keyword.
var loaders = map[string]func(p *parser, arguments [][]byte) error{
	"location":        (*parser).location,
	"velocity":        (*parser).velocity,
	"orientation":     (*parser).orientation,
	"antennaprofile":  (*parser).antennaProfile,
	"pathloss":        (*parser).pathloss,
	"pathlossex":      (*parser).pathlossEx,
	"commeffect":      (*parser).commEffect,
	"fadingselection": (*parser).fadingSelection,
}

func (p *parser) sentence(line []byte) error {
	line, _, _ = bytes.Cut(line, []byte("#"))
	p.words = slices.AppendSeq(p.words[:0], bytes.FieldsFuncSeq(line, func(c rune) bool { return c == ' ' || c == '\t' || c == '\r' }))
	if len(p.words) == 0 {
		return nil
	}
	if len(p.words) < 3 {
		return fmt.Errorf("the sentence has %d words: want time, module and keyword", len(p.words))
	}
	at, err := parseTime(p.words[0])
	if err != nil {
		return err
	}
	keyword := strings.ToLower(string(p.words[2]))
	module, number, _ := bytes.Cut(p.words[1], []byte(":"))
	load := loaders[keyword]
	switch {
	case load == nil:
		p.tally.Unknown(keyword)
		return nil
	case string(module) != "nem":
		p.tally.Unknown(string(module) + " " + keyword)
		return nil
	}
	platform, err := reading.Platform(number)
	if err != nil {
		return fmt.Errorf("module is %q: %w", reading.Short(p.words[1]), err)
	}
	p.at, p.platform = at, platform
	if len(p.words) == 3 {
		return fmt.Errorf("%s has no arguments", keyword)
	}
	if err := load(p, p.words[3:]); err != nil {
		return fmt.Errorf("%s: %w", keyword, err)
	}
	return nil
}

// parseTime parses seconds. EMANE's tools write -Inf for initial conditions, which come before all other times.
func parseTime(text []byte) (time.Duration, error) {
	if v, err := strconv.ParseFloat(string(text), 64); err == nil && math.IsInf(v, -1) {
		return math.MinInt64, nil
	}
	return reading.Seconds(text)
}

// list returns the separated parts of a word.
func (p *parser) list(word []byte, separator string) [][]byte {
	p.fields = slices.AppendSeq(p.fields[:0], bytes.SplitSeq(word, []byte(separator)))
	return p.fields
}

// three parses three numbers and returns the words after them.
func (p *parser) three(word []byte, names [3]string) (v [3]float64, rest [][]byte, err error) {
	fields := p.list(word, ",")
	if len(fields) < 3 {
		return v, nil, fmt.Errorf("%q has %d values: want %s", reading.Short(word), len(fields), strings.Join(names[:], ","))
	}
	for i := range v {
		if v[i], err = reading.Float(fields[i], names[i]); err != nil {
			return v, nil, err
		}
	}
	return v, fields[3:], nil
}

func (p *parser) location(arguments [][]byte) error {
	if string(arguments[0]) != "gps" || len(arguments) != 2 {
		return fmt.Errorf("kind is %q with %d arguments: want gps latitude,longitude,altitude", reading.Short(arguments[0]), len(arguments)-1)
	}
	v, rest, err := p.three(arguments[1], [3]string{"latitude", "longitude", "altitude"})
	if err != nil {
		return err
	}
	if len(rest) > 1 || (len(rest) == 1 && string(rest[0]) != "msl" && string(rest[0]) != "agl") {
		return fmt.Errorf("after the altitude comes %q: want msl, agl or nothing", reading.Short(bytes.Join(rest, []byte(","))))
	}
	if len(rest) == 1 && string(rest[0]) == "agl" {
		p.tally.Warn("altitudes above ground (agl) are taken as they stand, as EMANE does")
	}
	return p.builder.Position(p.at, p.platform, geo.Position{Latitude: v[0], Longitude: v[1], Altitude: v[2]})
}

func (p *parser) velocity(arguments [][]byte) error {
	v, err := p.posture(arguments, [3]string{"azimuth", "elevation", "speed"}, "degrees", "mps", "azimuth", "relative")
	if err != nil {
		return err
	}
	return p.builder.Velocity(p.at, p.platform, geo.Velocity{Azimuth: v[0], Elevation: v[1], Speed: v[2]})
}

func (p *parser) orientation(arguments [][]byte) error {
	v, err := p.posture(arguments, [3]string{"pitch", "roll", "yaw"}, "degrees", "relative")
	if err != nil {
		return err
	}
	return p.builder.Orientation(p.at, p.platform, geo.Orientation{Pitch: v[0], Roll: v[1], Yaw: v[2]})
}

// posture parses three numbers, which words about their units may follow.
func (p *parser) posture(arguments [][]byte, names [3]string, units ...string) ([3]float64, error) {
	if len(arguments) != 1 {
		return [3]float64{}, fmt.Errorf("it has %d arguments: want %s", len(arguments), strings.Join(names[:], ","))
	}
	v, rest, err := p.three(arguments[0], names)
	for _, word := range rest {
		if !slices.Contains(units, string(word)) {
			return v, fmt.Errorf("after %s comes %q: want one of %s, or nothing", names[2], reading.Short(word), strings.Join(units, ", "))
		}
	}
	return v, err
}

func (p *parser) antennaProfile(arguments [][]byte) error {
	if len(arguments) != 1 {
		return fmt.Errorf("it has %d arguments: want profile,azimuth,elevation", len(arguments))
	}
	v, rest, err := p.three(arguments[0], [3]string{"profile", "azimuth", "elevation"})
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return fmt.Errorf("%q has more values than profile,azimuth,elevation", reading.Short(arguments[0]))
	case v[0] != math.Trunc(v[0]) || v[0] < 0 || v[0] > math.MaxUint16:
		return fmt.Errorf("profile is %v: want a number from 0 to 65535", v[0])
	}
	return p.builder.AntennaProfile(p.at, p.platform, scenario.AntennaProfile{ID: int(v[0]), Azimuth: v[1], Elevation: v[2]})
}

// peer parses the peer at the beginning of a list of fields.
func (p *parser) peer(field []byte) (int, error) {
	number, ok := bytes.CutPrefix(field, []byte("nem:"))
	if !ok {
		return 0, fmt.Errorf("the other platform is %q: want nem:NUMBER", reading.Short(field))
	}
	return reading.Platform(number)
}

func (p *parser) pathloss(arguments [][]byte) error {
	for _, argument := range arguments {
		fields := p.list(argument, ",")
		if len(fields) != 2 && len(fields) != 3 {
			return fmt.Errorf("%q has %d values: want nem:B,dB or nem:B,dB,dB", reading.Short(argument), len(fields))
		}
		peer, err := p.peer(fields[0])
		if err != nil {
			return err
		}
		forward, reverse, err := both(fields[1:])
		if err != nil {
			return err
		}
		if err := p.builder.Pathloss(p.at, p.platform, peer, forward); err != nil {
			return err
		}
		if err := p.builder.Pathloss(p.at, peer, p.platform, reverse); err != nil {
			return err
		}
	}
	return nil
}

// both returns both directions' pathloss, from one value or two.
func both(fields [][]byte) (forward, reverse float64, err error) {
	if forward, err = reading.Float(fields[0], "pathloss"); err != nil || len(fields) == 1 {
		return forward, forward, err
	}
	reverse, err = reading.Float(fields[1], "reverse pathloss")
	return forward, reverse, err
}

func (p *parser) pathlossEx(arguments [][]byte) error {
	for _, argument := range arguments {
		first, list, _ := bytes.Cut(argument, []byte(","))
		peer, err := p.peer(first)
		if err != nil {
			return err
		}
		for entry := range bytes.SplitSeq(list, []byte(",")) {
			if err := p.pathlossAt(peer, entry); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *parser) pathlossAt(peer int, entry []byte) error {
	fields := p.list(entry, ":")
	if len(fields) != 2 && len(fields) != 3 {
		return fmt.Errorf("%q has %d values: want hertz:dB or hertz:dB:dB", reading.Short(entry), len(fields))
	}
	frequency, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil {
		return fmt.Errorf("frequency is %q: want a whole number of hertz", reading.Short(fields[0]))
	}
	forward, reverse, err := both(fields[1:])
	if err != nil {
		return err
	}
	if frequency > 0 {
		p.tally.Warn("pathlosses at a frequency (pathlossex) hold for radios that send at it: hops, links and pictures leave them out")
	}
	if err := p.builder.PathlossAt(p.at, p.platform, peer, frequency, forward); err != nil {
		return err
	}
	return p.builder.PathlossAt(p.at, peer, p.platform, frequency, reverse)
}

func (p *parser) commEffect(arguments [][]byte) error {
	for _, argument := range arguments {
		fields := p.list(argument, ",")
		if len(fields) != 7 {
			return fmt.Errorf("%q has %d values: want nem:B,latency,jitter,loss,duplication,unicast,broadcast", reading.Short(argument), len(fields))
		}
		peer, err := p.peer(fields[0])
		if err != nil {
			return err
		}
		effect, err := parseCommEffect(fields[1:])
		if err != nil {
			return err
		}
		if err := p.builder.CommEffect(p.at, p.platform, peer, effect); err != nil {
			return err
		}
	}
	return nil
}

func parseCommEffect(fields [][]byte) (e scenario.CommEffect, err error) {
	latency, err1 := reading.Float(fields[0], "latency")
	jitter, err2 := reading.Float(fields[1], "jitter")
	if err := cmp.Or(err1, err2); err != nil {
		return e, err
	}
	e.Latency, err1 = reading.Duration(latency)
	e.Jitter, err2 = reading.Duration(jitter)
	if err := cmp.Or(err1, err2); err != nil {
		return e, err
	}
	e.LossPercent, err1 = reading.Float(fields[2], "loss")
	e.DuplicationPercent, err2 = reading.Float(fields[3], "duplication")
	if err := cmp.Or(err1, err2); err != nil {
		return e, err
	}
	e.UnicastBitsPerSecond, err1 = strconv.ParseUint(string(fields[4]), 10, 64)
	e.BroadcastBitsPerSecond, err2 = strconv.ParseUint(string(fields[5]), 10, 64)
	if err1 != nil || err2 != nil {
		return e, fmt.Errorf("rates are %q and %q: want whole numbers of bit/s", reading.Short(fields[4]), reading.Short(fields[5]))
	}
	return e, nil
}

func (p *parser) fadingSelection(arguments [][]byte) error {
	for _, argument := range arguments {
		fields := p.list(argument, ",")
		if len(fields) != 2 {
			return fmt.Errorf("%q has %d values: want nem:B,none|nakagami|lognormal", reading.Short(argument), len(fields))
		}
		transmitter, err := p.peer(fields[0])
		if err != nil {
			return err
		}
		fading, err := parseFading(string(fields[1]))
		if err != nil {
			return err
		}
		if err := p.builder.FadingSelection(p.at, transmitter, p.platform, fading); err != nil {
			return err
		}
	}
	return nil
}

func parseFading(name string) (scenario.Fading, error) {
	for _, fading := range []scenario.Fading{scenario.FadingNone, scenario.FadingNakagami, scenario.FadingLognormal} {
		if fading.String() == name {
			return fading, nil
		}
	}
	return 0, fmt.Errorf("model is %q: want none, nakagami or lognormal", reading.Short([]byte(name)))
}
