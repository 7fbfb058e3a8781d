// Package nffi makes NATO Friendly Force Information messages (draft STANAG 5527, NFFI 1.3,
// namespace urn:nato:fft:protocols:nffi13): one message with one track, of 880 to 885 bytes, or of 909 in a long form.
//
// The elements and their order are those of the schema's track: positionalData, identificationData,
// operStatusData, deviceSpecificData. The message's id is the track's additionalId; the time in
// milliseconds is its specialUserDefined, as dateTime is too coarse.
package nffi

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/xml"
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/traffic/payload/track"
)

// Schema is the XML schema of the messages.
//
//go:embed nffi.xsd
var Schema []byte

// MinBytes and MaxBytes are the sizes in MQTT messages of the published experiments.
const (
	MinBytes = 880
	MaxBytes = 909
)

// report is the text for remarks. Names differ in length between experiments, and
// remarks make up the difference.
const report = "Moving along the main supply route with the column, spacing 50 m, visibility good, no contact, " +
	"fuel and ammunition above three quarters, crew complete, next report from the checkpoint; " +
	"radio check with the company net done, casualties none, vehicle state green, requesting nothing at present."

// MaxTracks is the largest number of tracks of a message.
const MaxTracks = 1000

// Maker makes the messages of one unit, or of several.
type Maker struct {
	unit    track.Track
	country string
	name    string
	entity  string
	remarks string
	// exact: remarks are shorter in a message with a longer id, so that all have the same size.
	exact bool
	// others have the message's further tracks.
	others []*Maker
}

// New returns a Maker for an entity of a unit of a country. Its messages have MinBytes with a number of one digit, and 5 bytes more
// with one of six.
func New(country, unit, entity string, seed int64) *Maker {
	return newMaker(country, unit, entity, seed, MinBytes)
}

// NewLong returns a Maker of messages of MaxBytes, by longer remarks.
func NewLong(country, unit, entity string, seed int64) *Maker {
	m := newMaker(country, unit, entity, seed, MaxBytes)
	m.exact = true
	return m
}

func newMaker(country, unit, entity string, seed int64, size int) *Maker {
	m := &Maker{unit: track.NewUnit(seed), country: escape(country), name: escape(unit), entity: escape(entity)}
	bare := len(m.message(nil, m.firstID(), time.Unix(0, 0), track.Position{}))
	m.remarks = report[:min(max(size-bare, 0), len(report))]
	return m
}

// firstID is the escaped id of the first message.
func (m *Maker) firstID() string { return m.entity + "_1" }

// remarksFor returns the remarks of the message with an id.
func (m *Maker) remarksFor(id string) string {
	if !m.exact {
		return m.remarks
	}
	return m.remarks[:max(len(m.remarks)-max(len(id)-len(m.firstID()), 0), 0)]
}

// NewTracks returns a Maker of messages with several tracks, from 1 to MaxTracks: those of the entity, then of further ones of its unit.
func NewTracks(country, unit, entity string, seed int64, tracks int) (*Maker, error) {
	if tracks < 1 || tracks > MaxTracks {
		return nil, fmt.Errorf("payload nffi:%d: want from 1 to %d tracks", tracks, MaxTracks)
	}
	m := New(country, unit, entity, seed)
	for n := 2; n <= tracks; n++ {
		m.others = append(m.others, New(country, unit, fmt.Sprintf("%s-%d", entity, n), seed+int64(n)))
	}
	return m, nil
}

func escape(s string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(s)) // a buffer never fails
	return out.String()
}

// Track is the content of a message with one track.
type Track struct {
	Country, Unit, Entity, Remarks string
	Position                       track.Position
}

// Append appends the message of a track, with the given id, to dst.
func Append(dst []byte, t Track, id string, at time.Time) []byte {
	m := Maker{country: escape(t.Country), name: escape(t.Unit), entity: escape(t.Entity), remarks: escape(t.Remarks)}
	return m.message(dst, escape(id), at, t.Position)
}

// Follow makes all tracks of the messages report another one: the unit is together.
func (m *Maker) Follow(unit track.Track) {
	m.unit = unit
	for _, other := range m.others {
		other.unit = unit
	}
}

// Append appends the message with the given id to dst.
func (m *Maker) Append(dst []byte, id string, at time.Time) []byte {
	return m.message(dst, escape(id), at, m.unit.MoveTo(at))
}

func (m *Maker) message(dst []byte, id string, at time.Time, p track.Position) []byte {
	dst = m.track(append(dst, `<NFFIMessage xmlns="urn:nato:fft:protocols:nffi13">`...), id, at, p)
	for i, other := range m.others {
		dst = other.track(dst, fmt.Sprintf("%s-%d", id, i+2), at, other.unit.MoveTo(at))
	}
	return append(dst, `</NFFIMessage>`...)
}

// track formats numbers with fixed widths, so that its size does not depend on the position.
func (m *Maker) track(dst []byte, id string, at time.Time, p track.Position) []byte {
	return fmt.Appendf(dst, `<track>`+
		`<positionalData secClassification="UNCLASSIFIED">`+
		`<trackSource><sourceSystem><country>%s</country><system>BFT</system></sourceSystem><transponderId>%s</transponderId></trackSource>`+
		`<dateTime>%s</dateTime>`+
		`<coordinates><latitude>%010.6f</latitude><longitude>%011.6f</longitude><altitude>%06.1f</altitude></coordinates>`+
		`<bearing>%05.1f</bearing><speed>%04.1f</speed></positionalData>`+
		`<identificationData><unitSymbol>SFGPUCIZ---D---</unitSymbol><unitShortName>%s</unitShortName></identificationData>`+
		`<operStatusData><statusCode>OPERATIONAL</statusCode></operStatusData>`+
		`<deviceSpecificData><additionalId>%s</additionalId>`+
		`<specialUserDefined>%013d</specialUserDefined><remarks>%s</remarks></deviceSpecificData>`+
		`</track>`,
		m.country, m.entity, at.UTC().Format("20060102150405"),
		p.LatitudeDegrees, p.LongitudeDegrees, p.AltitudeMetres, p.Bearing(), p.SpeedKilometresPerHour,
		m.name, id, at.UnixMilli(), m.remarksFor(id))
}

// document has the elements of a message that a Track needs.
type document struct {
	XMLName xml.Name `xml:"urn:nato:fft:protocols:nffi13 NFFIMessage"`
	Tracks  []struct {
		Country   string  `xml:"positionalData>trackSource>sourceSystem>country"`
		Entity    string  `xml:"positionalData>trackSource>transponderId"`
		Latitude  float64 `xml:"positionalData>coordinates>latitude"`
		Longitude float64 `xml:"positionalData>coordinates>longitude"`
		Altitude  float64 `xml:"positionalData>coordinates>altitude"`
		Bearing   float64 `xml:"positionalData>bearing"`
		Speed     float64 `xml:"positionalData>speed"`
		Unit      string  `xml:"identificationData>unitShortName"`
		ID        string  `xml:"deviceSpecificData>additionalId"`
		Time      string  `xml:"deviceSpecificData>specialUserDefined"`
		Remarks   string  `xml:"deviceSpecificData>remarks"`
	} `xml:"track"`
}

// Read returns the content of a message, of whose tracks it takes the first.
func Read(message []byte) (t Track, id string, at time.Time, ok bool) {
	var d document
	if xml.Unmarshal(message, &d) != nil || len(d.Tracks) == 0 || d.Tracks[0].ID == "" {
		return t, "", at, false
	}
	first := d.Tracks[0]
	if ms, err := strconv.ParseInt(first.Time, 10, 64); err == nil && ms > 0 {
		at = time.UnixMilli(ms)
	}
	position := track.Position{LatitudeDegrees: first.Latitude, LongitudeDegrees: first.Longitude, BearingDegrees: first.Bearing,
		SpeedKilometresPerHour: first.Speed, AltitudeMetres: first.Altitude}
	return Track{first.Country, first.Unit, first.Entity, first.Remarks, position}, first.ID, at, true
}

// Parse returns the id in the first track's additionalId, and the time in its specialUserDefined if a Maker wrote it.
func Parse(payload []byte) (id string, at time.Time, ok bool) {
	if trimmed := bytes.TrimLeft(payload, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '<' {
		return "", at, false
	}
	id = element(payload, "additionalId")
	if id == "" {
		return "", at, false
	}
	if ms, err := strconv.ParseInt(element(payload, "specialUserDefined"), 10, 64); err == nil && ms > 0 {
		at = time.UnixMilli(ms)
	}
	return id, at, true
}

// element returns the text of the first element of a name. An XML parser for two elements would
// cost a receiver far more, and other producers' tracks need not have them.
func element(payload []byte, name string) string {
	_, after, found := bytes.Cut(payload, []byte("<"+name+">"))
	if !found {
		return ""
	}
	text, _, found := bytes.Cut(after, []byte("</"+name+">"))
	if !found || bytes.IndexByte(text, '<') >= 0 {
		return ""
	}
	return html.UnescapeString(strings.TrimSpace(string(text)))
}
