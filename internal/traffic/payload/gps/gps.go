// Package gps makes small position records, about 115 bytes: an NMEA 0183 sentence RMC (recommended minimum data) behind a TAG block
// (NMEA 0183 version 4.10) with the message's id as text string (t) and the time in milliseconds (c):
//
//	\t:PRT-S003_28,c:1588759108433*hh\$GPRMC,095828.433,A,3844.8146,N,00909.3851,W,12.34,211.5,060520,,,A*hh
package gps

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/traffic/payload/track"
)

// kilometresPerHour of a knot.
const kilometresPerHour = 1.852

// Maker makes the records of one unit.
type Maker struct{ unit track.Track }

// New returns a Maker for a unit. The same seed gives the same track.
func New(seed int64) *Maker { return &Maker{unit: track.NewUnit(seed)} }

// Follow makes the records report another track.
func (m *Maker) Follow(unit track.Track) { m.unit = unit }

// Append appends the record with the given id to dst.
func (m *Maker) Append(dst []byte, id string, at time.Time) []byte {
	p := m.unit.MoveTo(at)
	utc := at.UTC()
	tag := fmt.Sprintf("t:%s,c:%d", id, at.UnixMilli())
	sentence := fmt.Sprintf("GPRMC,%s,A,%s,%s,%05.2f,%05.1f,%s,,,A", utc.Format("150405.000"),
		angle(p.LatitudeDegrees, 2, "N", "S"), angle(p.LongitudeDegrees, 3, "E", "W"),
		p.SpeedKilometresPerHour/kilometresPerHour, p.Bearing(), utc.Format("020106"))
	return fmt.Appendf(dst, "\\%s*%02X\\$%s*%02X\r\n", tag, checksum(tag), sentence, checksum(sentence))
}

// angle formats an angle in degrees and minutes, with the letter for its sign.
func angle(degrees float64, width int, positive, negative string) string {
	word := positive
	if degrees < 0 {
		word = negative
	}
	// Rounded before it is split, as 60 minutes are invalid.
	minutes := math.Round(math.Abs(degrees) * 60 * 1e4)
	return fmt.Sprintf("%0*d%07.4f,%s", width, int(minutes/60e4), math.Mod(minutes, 60e4)/1e4, word)
}

// checksum is that of NMEA 0183: exclusive or of all characters between the delimiters.
func checksum(text string) (sum byte) {
	for i := range len(text) {
		sum ^= text[i]
	}
	return sum
}

// maxTag is the longest TAG block that Parse reads.
const maxTag = 256

// Parse returns the id and the time in the TAG block.
func Parse(payload []byte) (id string, at time.Time, ok bool) {
	if len(payload) == 0 || payload[0] != '\\' {
		return "", at, false
	}
	rest := payload[1:min(len(payload), maxTag)]
	end := bytes.IndexByte(rest, '\\')
	if end < 0 {
		return "", at, false
	}
	tag, sum, found := strings.Cut(string(rest[:end]), "*")
	if want, err := strconv.ParseUint(sum, 16, 8); !found || err != nil || byte(want) != checksum(tag) {
		return "", at, false
	}
	for field := range strings.SplitSeq(tag, ",") {
		switch name, value, _ := strings.Cut(field, ":"); name {
		case "t":
			id = value
		case "c":
			if ms, err := strconv.ParseInt(value, 10, 64); err == nil && ms > 0 {
				at = time.UnixMilli(ms)
			}
		}
	}
	return id, at, id != ""
}
