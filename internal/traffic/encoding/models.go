package encoding

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/traffic/payload/geojson"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/traffic/payload/operational"
	"vignette.dev/vignette/internal/traffic/payload/track"
)

// The names of the models.
const (
	Military    = "military"
	Operational = "operational"
	NFFI        = "nffi"
	GeoJSON     = "geojson"
)

// model is a message model.
type model struct {
	name string
	// encodings that the model can be had in, the published one first, and the reason why in no others.
	encodings []string
	reason    string
	// jsonType is the media type of its JSON.
	jsonType string
	// append and read handle the model's JSON, or its XML for encodings whose form is XML.
	append func(dst []byte, m Message, encoding string) ([]byte, error)
	read   func(plain []byte, encoding string) (Message, bool)
	// value is a new value that the model's JSON decodes into, for CBOR.
	value func() any
}

var models = []model{
	{
		name: Military, encodings: []string{JSON, CBOR, XML, EXI, EXISchemaless}, reason: "has a JSON and an XML form", jsonType: "application/json",
		append: appendMilitary, read: readMilitary, value: func() any { return &military.Form{} },
	},
	{
		name: Operational, encodings: []string{XML, EXI, EXISchemaless}, reason: "is XML, the content of a SOAP body",
		append: appendOperational, read: readOperational,
	},
	{
		name: NFFI, encodings: []string{XML, EXI, EXISchemaless}, reason: "is XML by its schema",
		append: appendNFFI, read: readNFFI,
	},
	{
		name: GeoJSON, encodings: []string{JSON, CBOR}, reason: "is JSON by RFC 7946", jsonType: "application/geo+json",
		append: appendGeoJSON, read: readGeoJSON, value: func() any { return &geojson.Feature{} },
	},
}

func appendMilitary(dst []byte, m Message, encoding string) ([]byte, error) {
	if len(m.To) != 1 {
		return dst, fmt.Errorf("to %q: want one addressee or group, as a military message has", m.To)
	}
	if m.Made.UnixMilli() < 0 {
		return dst, fmt.Errorf("sendingTime %s: want a time since 1970", m.Made.UTC().Format(time.RFC3339))
	}
	content := military.Message{Type: m.Type, From: m.From, To: m.To[0], Text: m.Text}
	if forms[encoding].isJSON {
		return military.Append(dst, content, m.ID, m.Made, 0), nil
	}
	return military.AppendXML(dst, content, m.ID, m.Made), nil
}

func readMilitary(plain []byte, encoding string) (m Message, ok bool) {
	var f military.Form
	if forms[encoding].isJSON {
		ok = json.Unmarshal(plain, &f) == nil
	} else {
		ok = unmarshalRoot(plain, military.Root, &f)
	}
	return Message{ID: f.ID, Made: milliseconds(f.SendingTimeMilliseconds), From: f.From, To: []string{f.To}, Text: f.Text, Type: f.Type}, ok && f.ID != ""
}

// unmarshalRoot reports whether XML has a root of a name in no namespace, and holds the value.
func unmarshalRoot(content []byte, root string, value any) bool {
	decoder := xml.NewDecoder(bytes.NewReader(content))
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name == xml.Name{Local: root} && decoder.DecodeElement(value, &start) == nil
		}
	}
}

// milliseconds returns a time since the Unix epoch; zero if absent.
func milliseconds(ms int64) (at time.Time) {
	if ms > 0 {
		at = time.UnixMilli(ms)
	}
	return at
}

func appendOperational(dst []byte, m Message, _ string) ([]byte, error) {
	return operational.Append(dst, operational.Message{Sender: m.From, Receivers: m.To, Precedence: m.Precedence, Classification: m.Classification, Text: m.Text}, m.ID, m.Made)
}

func readOperational(plain []byte, _ string) (Message, bool) {
	f, id, at, ok := operational.Read(plain)
	return Message{ID: id, Made: at, From: f.Sender, To: f.Receivers, Precedence: f.Precedence, Classification: f.Classification, Text: f.Text}, ok
}

func appendNFFI(dst []byte, m Message, _ string) ([]byte, error) {
	for _, field := range []text{{"country", m.Country}, {"unit", m.Unit}, {"entity", m.Entity}} {
		if field.value == "" {
			return dst, fmt.Errorf("%s is empty: want a name", field.name)
		}
	}
	return nffi.Append(dst, nffi.Track{Country: m.Country, Unit: m.Unit, Entity: m.Entity, Remarks: m.Text, Position: m.Position}, m.ID, m.Made), nil
}

func readNFFI(plain []byte, _ string) (Message, bool) {
	t, id, at, ok := nffi.Read(plain)
	return Message{ID: id, Made: at, Text: t.Remarks, Country: t.Country, Unit: t.Unit, Entity: t.Entity, Position: t.Position}, ok
}

func appendGeoJSON(dst []byte, m Message, _ string) ([]byte, error) {
	return geojson.Append(dst, m.Country, m.Unit, m.Entity, m.Position, m.ID, m.Made), nil
}

func readGeoJSON(plain []byte, _ string) (m Message, ok bool) {
	var f geojson.Feature
	if json.Unmarshal(plain, &f) != nil || f.Properties.ID == "" {
		return m, false
	}
	p := f.Properties
	m = Message{ID: p.ID, Made: milliseconds(p.TimestampMilliseconds), Country: p.Country, Unit: p.Unit, Entity: p.Entity}
	if at := f.Geometry.Coordinates; len(at) >= 2 {
		m.Position = track.Position{LatitudeDegrees: at[0], LongitudeDegrees: at[1]}
	}
	return m, true
}
