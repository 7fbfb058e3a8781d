// Package geojson makes Blue Force Tracking positions as GeoJSON features on one line, in the forms published with the multinational
// MQTT experiments: that of E4, about 225 bytes, and that of E3 with other names of properties, 8 bytes more.
//
// As published, coordinates are latitude, longitude, altitude; RFC 7946 has longitude first.
package geojson

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/traffic/payload/track"
)

// MaxBytes is the largest message in the published experiments.
const MaxBytes = 255

// The texts between the values of a message.
const (
	beforePosition = `{"type": "Feature", "geometry": {"type": "Point", "coordinates": [`
	afterPosition  = `, 0]}, "properties": {`
	beforeCountry  = `"country": `
	beforeUnit     = `, "unit": `
	beforeNode     = `, "node_id": `
	beforeID       = `, "msg_id": `
	beforeTime     = `, "timestamp": `
	end            = "}}"
)

// Maker makes the messages of one unit.
type Maker struct {
	unit           track.Track
	middle, before []byte
}

// New returns a Maker for an entity of a unit of a country.
func New(country, unit, entity string, seed int64) *Maker {
	return &Maker{unit: track.NewUnit(seed), before: []byte(beforePosition), middle: middle(country, unit, entity)}
}

// NewIDs returns a Maker whose messages have the properties country-Id, unit-Id and entity-Id.
func NewIDs(country, unit, entity string, seed int64) *Maker {
	m := New(country, unit, entity, seed)
	m.middle = []byte(afterPosition + `"country-Id": ` + quote(country) + `, "unit-Id": ` + quote(unit) + `, "entity-Id": ` + quote(entity) + beforeID)
	return m
}

func middle(country, unit, entity string) []byte {
	return []byte(afterPosition + beforeCountry + quote(country) + beforeUnit + quote(unit) + beforeNode + quote(entity) + beforeID)
}

func quote(s string) string {
	text, _ := json.Marshal(s) // a string always encodes
	return string(text)
}

// Append appends the message of an entity of a unit at a position, with the given id, to dst.
func Append(dst []byte, country, unit, entity string, p track.Position, id string, at time.Time) []byte {
	m := Maker{before: []byte(beforePosition), middle: middle(country, unit, entity)}
	return m.message(dst, id, at, p)
}

// Follow makes the messages report another track.
func (m *Maker) Follow(unit track.Track) { m.unit = unit }

// Append appends the message with the given id to dst.
func (m *Maker) Append(dst []byte, id string, at time.Time) []byte {
	return m.message(dst, id, at, m.unit.MoveTo(at))
}

func (m *Maker) message(dst []byte, id string, at time.Time, p track.Position) []byte {
	dst = append(dst, m.before...)
	dst = appendDegrees(dst, p.LatitudeDegrees)
	dst = append(dst, ", "...)
	dst = appendDegrees(dst, p.LongitudeDegrees)
	dst = append(dst, m.middle...)
	dst = append(dst, quote(id)...)
	dst = append(dst, beforeTime...)
	dst = strconv.AppendInt(dst, at.UnixMilli(), 10)
	return append(dst, end...)
}

// appendDegrees writes at most six decimals, about 0.1 m.
func appendDegrees(dst []byte, degrees float64) []byte {
	return strconv.AppendFloat(dst, math.Round(degrees*1e6)/1e6, 'f', -1, 64)
}

// Feature has the members of a message, in order.
type Feature struct {
	Type     string `json:"type"`
	Geometry struct {
		Type        string    `json:"type"`
		Coordinates []float64 `json:"coordinates"`
	} `json:"geometry"`
	Properties struct {
		Country               string `json:"country"`
		Unit                  string `json:"unit"`
		Entity                string `json:"node_id"`
		ID                    string `json:"msg_id"`
		TimestampMilliseconds int64  `json:"timestamp"`
	} `json:"properties"`
}

// Parse returns the id in properties.msg_id and the time in properties.timestamp (zero if absent).
func Parse(payload []byte) (id string, at time.Time, ok bool) {
	if id, at, ok := parseOwn(payload); ok {
		return id, at, true
	}
	if trimmed := bytes.TrimLeft(payload, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return "", at, false
	}
	var feature struct {
		Properties struct {
			ID                    string `json:"msg_id"`
			TimestampMilliseconds int64  `json:"timestamp"`
		} `json:"properties"`
	}
	if json.Unmarshal(payload, &feature) != nil || feature.Properties.ID == "" {
		return "", at, false
	}
	if ms := feature.Properties.TimestampMilliseconds; ms > 0 {
		at = time.UnixMilli(ms)
	}
	return feature.Properties.ID, at, true
}

// parseOwn parses what a Maker makes, at a fraction of the cost of JSON, as subscribers parse every message. Any difference,
// such as an escape in a name, is left to Parse.
func parseOwn(payload []byte) (id string, at time.Time, ok bool) {
	rest, ok := bytes.CutPrefix(payload, []byte(beforePosition))
	if !ok {
		return "", at, false
	}
	position, rest, ok := bytes.Cut(rest, []byte(afterPosition+beforeCountry))
	if !ok || !isPosition(position) {
		return "", at, false
	}
	for _, next := range []string{beforeUnit, beforeNode, beforeID} {
		if _, rest, ok = cutString(rest, next); !ok {
			return "", at, false
		}
	}
	name, rest, ok := cutString(rest, beforeTime)
	if !ok || len(name) == 0 {
		return "", at, false
	}
	number, ok := bytes.CutSuffix(rest, []byte(end))
	if !ok || len(number) == 0 || number[0] < '1' || number[0] > '9' {
		return "", at, false
	}
	ms, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return "", at, false
	}
	return string(name), time.UnixMilli(ms), true
}

// cutString splits off a quoted string of printable ASCII without escapes.
func cutString(text []byte, next string) (value, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	length := bytes.IndexByte(text[1:], '"')
	if length < 0 {
		return nil, nil, false
	}
	value = text[1 : 1+length]
	for _, b := range value {
		if b < ' ' || b > '~' || b == '\\' {
			return nil, nil, false
		}
	}
	rest, ok = bytes.CutPrefix(text[2+length:], []byte(next))
	return value, rest, ok
}

// isPosition reports whether a text is two numbers as appendDegrees writes them.
func isPosition(text []byte) bool {
	latitude, longitude, ok := bytes.Cut(text, []byte(", "))
	return ok && isDegrees(latitude) && isDegrees(longitude)
}

func isDegrees(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	whole, fraction, point := bytes.Cut(text, []byte("."))
	return isDigits(whole) && (len(whole) == 1 || whole[0] != '0') && (!point || isDigits(fraction))
}

func isDigits(text []byte) bool {
	for _, b := range text {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(text) > 0
}
