package encoding

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/exi"
	"vignette.dev/vignette/internal/gz"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/traffic/payload/track"
)

var made = time.UnixMilli(1588759108433)

// example has a message for each model, with characters that encodings have to escape.
func example(model, id string) Message {
	switch model {
	case Military:
		return Message{ID: id, Made: made, From: "a1", To: []string{"b1"}, Type: "TEXT", Text: "Hill <204> & \"bridge\"\nclear, Müller out"}
	case Operational:
		return Message{ID: id, Made: made, From: "hq", To: []string{"a1", "b1"}, Precedence: "PRIORITY", Classification: "RESTRICTED", Text: "Move to <PL RED> & hold"}
	case NFFI:
		return Message{ID: id, Made: made, Country: "A&B", Unit: "<unit>", Entity: "PRT-S003", Text: "no contact", Position: track.Position{
			LatitudeDegrees: 38.746912, LongitudeDegrees: -9.156418, BearingDegrees: 211.5, SpeedKilometresPerHour: 12.3, AltitudeMetres: 104.1}}
	}
	return Message{ID: id, Made: made, Country: "PRT", Unit: "PRT \"1\"", Entity: "PRT-S003", Position: track.Position{LatitudeDegrees: 38.746912, LongitudeDegrees: -9.156418}}
}

// everyCodec calls a test with each codec that there is.
func everyCodec(t *testing.T, do func(t *testing.T, c *Codec)) {
	t.Helper()
	for _, model := range Models() {
		for _, encoding := range Encodings(model) {
			for _, compression := range Compressions() {
				t.Run(strings.Join([]string{model, encoding, compression}, " "), func(t *testing.T) {
					c, err := New(model, encoding, compression)
					if err != nil {
						t.Fatal(err)
					}
					do(t, c)
				})
			}
		}
	}
}

func encoded(t testing.TB, c *Codec, m Message) []byte {
	t.Helper()
	content, err := c.Append([]byte("before "), m)
	if err != nil {
		t.Fatal(err)
	}
	content, found := bytes.CutPrefix(content, []byte("before "))
	if !found {
		t.Fatalf("what stood before the message is gone: %q", content)
	}
	return content
}

func TestEveryMessageComesBackFromEveryEncoding(t *testing.T) {
	everyCodec(t, func(t *testing.T, c *Codec) {
		want := example(c.model.name, "a1/chat_3")
		got, err := c.Decode(encoded(t, c, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what was encoded and what came back differ:\n%s", diff)
		}
	})
}

func TestTheIdAndTimeAreFoundWithoutAWordAboutTheEncoding(t *testing.T) {
	everyCodec(t, func(t *testing.T, c *Codec) {
		for _, id := range []string{"a1/chat_3", "PRT-S003_999999", "a&b_1", "Ü_1"} {
			got, at, ok := Identify(encoded(t, c, example(c.model.name, id)))
			if !ok || got != id || !at.Equal(made) {
				t.Errorf("%q at %v, %v; want %q at %v", got, at, ok, id, made)
			}
		}
	})
}

func TestTheIdIsFoundBehindTheCookieOfEXI(t *testing.T) {
	for _, encoding := range []string{EXI, EXISchemaless} {
		c, err := New(NFFI, encoding, "")
		if err != nil {
			t.Fatal(err)
		}
		content := append([]byte("$EXI"), encoded(t, c, example(NFFI, "PRT-S003_1"))...)
		if got, at, ok := Identify(content); !ok || got != "PRT-S003_1" || !at.Equal(made) {
			t.Errorf("%s: %q at %v, %v; want PRT-S003_1 at %v", encoding, got, at, ok, made)
		}
	}
}

func TestNoCodecReadsWhatAnotherWrote(t *testing.T) {
	everyCodec(t, func(t *testing.T, c *Codec) {
		everyCodec(t, func(t *testing.T, other *Codec) {
			if _, err := other.Decode(encoded(t, c, example(c.model.name, "a1_1"))); *c != *other && err == nil {
				t.Errorf("%s %s was read", c.model.name, c.name())
			}
		})
	})
}

func TestMilitaryJSONIsThePublishedFormByteForByte(t *testing.T) {
	c, err := New(Military, JSON, "")
	if err != nil {
		t.Fatal(err)
	}
	m := example(Military, "a1/chat_3")
	want := military.Append(nil, military.Message{Type: m.Type, From: m.From, To: m.To[0], Text: m.Text}, m.ID, made, 0)
	if got := encoded(t, c, m); !bytes.Equal(got, want) {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestCombinationsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range []struct{ model, encoding, compression, want string }{
		{"chat", JSON, "", `message model "chat": want military, operational, nffi or geojson`},
		{Military, "yaml", "", `encoding "yaml": message model military has a JSON and an XML form: want json, cbor`},
		{GeoJSON, XML, "", `encoding "xml": message model geojson is JSON by RFC 7946: want json or cbor`},
		{NFFI, JSON, "", `encoding "json": message model nffi is XML by its schema: want xml`},
		{Operational, CBOR, "", `encoding "cbor": message model operational is XML, the content of a SOAP body: want xml`},
		{Military, JSON, "zip", `compression "zip": want none or gzip`},
	} {
		if _, err := New(c.model, c.encoding, c.compression); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}

func TestAMessageThatAModelCannotHaveIsRefused(t *testing.T) {
	for want, c := range map[string]struct {
		model  string
		change func(*Message)
	}{
		`message id is empty`:      {Military, func(m *Message) { m.ID = "" }},
		`to ["b1" "b2"]: want one`: {Military, func(m *Message) { m.To = []string{"b1", "b2"} }},
		`text has character U+0001 at 2, which XML 1.0 has not: want text without control characters`: {Operational, func(m *Message) { m.Text = "ab\x01" }},
		`from has byte 0xFF at 0`:            {Military, func(m *Message) { m.From = "\xff" }},
		`sendingTime 1969-12-31T23:59:59Z`:   {Military, func(m *Message) { m.Made = time.Unix(-1, 0) }},
		`precedence "URGENT": want ROUTINE`:  {Operational, func(m *Message) { m.Precedence = "URGENT" }},
		`classification "NATO": want UNCLAS`: {Operational, func(m *Message) { m.Classification = "NATO" }},
		`receivers []: want the name`:        {Operational, func(m *Message) { m.To = nil }},
		`sender is empty`:                    {Operational, func(m *Message) { m.From = "" }},
		`country is empty`:                   {NFFI, func(m *Message) { m.Country = "" }},
	} {
		codec, err := New(c.model, Encodings(c.model)[0], "")
		if err != nil {
			t.Fatal(err)
		}
		m := example(c.model, "a1_1")
		c.change(&m)
		if _, err := codec.Append(nil, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestJSONAndCBORCarryCharactersThatXMLHasNot(t *testing.T) {
	want := example(Military, "a1/chat_3")
	want.Text = "bell \a, escape \x1b, \uffff"
	for _, name := range Encodings(Military) {
		codec, err := New(Military, name, Gzip)
		if err != nil {
			t.Fatal(err)
		}
		content, err := codec.Append(nil, want)
		if name != JSON && name != CBOR {
			if err == nil || !strings.Contains(err.Error(), "text has character U+0007 at 5, which XML 1.0 has not: want text without control characters") {
				t.Errorf("%s: %v; want a refusal", name, err)
			}
			continue
		}
		got, decodeErr := codec.Decode(content)
		if err != nil || decodeErr != nil || got.Text != want.Text {
			t.Errorf("%s: %v, %v, %q; want %q", name, err, decodeErr, got.Text, want.Text)
		}
	}
}

func TestMediaTypesAreTheRegisteredOnes(t *testing.T) {
	for _, c := range []struct{ model, encoding, want string }{
		{Military, JSON, "application/json"}, {GeoJSON, JSON, "application/geo+json"}, {Military, CBOR, "application/cbor"}, {NFFI, XML, "application/xml"},
	} {
		codec, err := New(c.model, c.encoding, Gzip)
		if err != nil || codec.ContentType() != c.want || codec.ContentEncoding() != "gzip" {
			t.Errorf("%v %s: %q, %q; want %q, gzip", err, c.encoding, codec.ContentType(), codec.ContentEncoding(), c.want)
		}
	}
}

func TestAMessageOfASOAPToolkitIsIdentified(t *testing.T) {
	envelope := `<?xml version="1.0"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body>` +
		`<ns2:OperationalMessage xmlns:ns2="urn:vignette:operational"><ns2:messageId>a&amp;b_1</ns2:messageId><ns2:sendingTime>1588759108433</ns2:sendingTime>` +
		`</ns2:OperationalMessage></s:Body></s:Envelope>`
	if id, at, ok := Identify([]byte(envelope)); !ok || id != "a&b_1" || !at.Equal(made) {
		t.Errorf("%q at %v, %v; want a&b_1", id, at, ok)
	}
}

func TestAnEnvelopeInEXIIsIdentified(t *testing.T) {
	body := encoded(t, codec(t, Operational, XML), example(Operational, "a1_1"))
	envelope := `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header/><s:Body>` + string(body) + `</s:Body></s:Envelope>`
	content, err := exi.Encode(nil, []byte(envelope), exi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if id, at, ok := Identify(content); !ok || id != "a1_1" || !at.Equal(made) {
		t.Errorf("%q at %v, %v; want a1_1", id, at, ok)
	}
}

func TestCompressedContentThatGrowsWithoutEndIsRefused(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	_, _ = fmt.Fprintf(w, `{"msgId":"a_1","text":"%s"}`, strings.Repeat(" ", 64<<20))
	w.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if id, _, ok := Identify(bomb.Bytes()); ok {
		t.Errorf("identified %q", id)
	}
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if allocated > 8*maxBytes {
		t.Errorf("%d bytes allocated for 64 MiB; want at most %d", allocated, 8*maxBytes)
	}
	c, err := New(Military, JSON, Gzip)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Decode(bomb.Bytes()); err == nil || !strings.Contains(err.Error(), "want a military message in json, compressed by gzip") {
		t.Errorf("%v; want a refusal", err)
	}
}

func TestWhatIsNoMessageIsNotIdentified(t *testing.T) {
	for _, content := range []string{"", "{", "{}", "<", "<message/>", "<msgId></msgId>", "<a:b:msgId>x</a:b:msgId", "\xa0", "\xbf", "\x1f\x8b\x08", "\x80", "\x80\x00"} {
		if id, _, ok := Identify([]byte(content)); ok {
			t.Errorf("%q is %q; want nothing", content, id)
		}
	}
}

// FuzzIdentify: whatever comes is read or refused, and a message that is read can be identified.
func FuzzIdentify(f *testing.F) {
	for _, model := range Models() {
		for _, encoding := range Encodings(model) {
			c, err := New(model, encoding, "")
			if err != nil {
				f.Fatal(err)
			}
			content, err := c.Append(nil, example(model, "a1/chat_3"))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(content)
			f.Add(gz.Append(nil, content))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if id, _, ok := Identify(content); ok && id == "" {
			t.Errorf("an empty id in %q", content)
		}
		for _, model := range Models() {
			for _, encoding := range Encodings(model) {
				c, err := New(model, encoding, "")
				if err != nil {
					t.Fatal(err)
				}
				if m, err := c.Decode(content); err == nil && m.ID == "" {
					t.Errorf("a message without an id in %q", content)
				}
			}
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	for _, model := range Models() {
		for _, encoding := range Encodings(model) {
			c, err := New(model, encoding, "")
			if err != nil {
				b.Fatal(err)
			}
			content := encoded(b, c, example(model, "a1/chat_3"))
			b.Run(model+" "+encoding, func(b *testing.B) {
				for b.Loop() {
					Identify(content)
				}
			})
		}
	}
}

// cborAnyDecoding decodes without a model.
var cborAnyDecoding = must(cbor.DecOptions{DefaultMapType: reflect.TypeFor[map[string]any]()}.DecMode())

func TestCBORHasTheMembersOfTheJSON(t *testing.T) {
	for _, model := range []string{Military, GeoJSON} {
		inJSON, err := New(model, JSON, "")
		if err != nil {
			t.Fatal(err)
		}
		inCBOR, err := New(model, CBOR, "")
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		if err := json.Unmarshal(encoded(t, inJSON, example(model, "a1_1")), &want); err != nil {
			t.Fatal(err)
		}
		if err := cborAnyDecoding.Unmarshal(encoded(t, inCBOR, example(model, "a1_1")), &got); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: CBOR is not as JSON:\n%s", model, diff)
		}
	}
}
