// Package geojson makes Blue Force Tracking positions as GeoJSON features, in the form published
// with the multinational MQTT experiments (E4): one line, about 230 bytes.
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

// MaxBytes of a message in the published experiments.
const MaxBytes = 255

// Maker makes the messages of one unit.
type Maker struct {
	unit           *track.Unit
	middle, before []byte
}

// New makes the messages of an entity of a unit of a country.
func New(country, unit, entity string, seed int64) *Maker {
	m := &Maker{unit: track.NewUnit(seed)}
	m.middle = []byte(`, 0]}, "properties": {"country": ` + quote(country) + `, "unit": ` + quote(unit) + `, "node_id": ` + quote(entity) + `, "msg_id": `)
	m.before = []byte(`{"type": "Feature", "geometry": {"type": "Point", "coordinates": [`)
	return m
}

func quote(s string) string {
	text, _ := json.Marshal(s) // a string always has a JSON form
	return string(text)
}

// Append adds the message with the given id to dst.
func (m *Maker) Append(dst []byte, id string, at time.Time) []byte {
	p := m.unit.MoveTo(at)
	dst = append(dst, m.before...)
	dst = appendDegrees(dst, p.LatitudeDegrees)
	dst = append(dst, ", "...)
	dst = appendDegrees(dst, p.LongitudeDegrees)
	dst = append(dst, m.middle...)
	dst = append(dst, quote(id)...)
	dst = append(dst, `, "timestamp": `...)
	dst = strconv.AppendInt(dst, at.UnixMilli(), 10)
	return append(dst, "}}"...)
}

// appendDegrees writes six decimals at most, about 0.1 m.
func appendDegrees(dst []byte, degrees float64) []byte {
	return strconv.AppendFloat(dst, math.Round(degrees*1e6)/1e6, 'f', -1, 64)
}

// Parse finds the id in properties.msg_id and the time in properties.timestamp (zero where there is none).
func Parse(payload []byte) (id string, at time.Time, ok bool) {
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
