package soapreq

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload/track"
)

// messages are those of the table, each with a text of the same length.
func messages() map[string]encoding.Message {
	const text = "Two vehicles at the ford, moving north."
	made := time.UnixMilli(1588759108433)
	position := track.Position{LatitudeDegrees: 38.746912, LongitudeDegrees: -9.156418, BearingDegrees: 211.5, SpeedKilometresPerHour: 23.4, AltitudeMetres: 104.1}
	return map[string]encoding.Message{
		encoding.Military:    {ID: "a1/chat_3", Made: made, From: "a1", To: []string{"b1"}, Type: "TEXT", Text: text},
		encoding.Operational: {ID: "a1/chat_3", Made: made, From: "a1", To: []string{"b1", "b2"}, Precedence: "PRIORITY", Text: text},
		encoding.NFFI:        {ID: "PRT-S003_28", Made: made, Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S003", Position: position, Text: text},
	}
}

// size is that of the whole envelope with a message.
func size(t *testing.T, model, encodingName, compression string) int {
	t.Helper()
	body, bodyCompression, whole := Divide(encodingName, compression)
	codec, err := encoding.New(model, body, bodyCompression)
	if err != nil {
		t.Fatal(err)
	}
	message, err := codec.Append(nil, messages()[model])
	if err != nil {
		t.Fatal(err)
	}
	element, err := content{message, codec.ContentType(), codec.ContentEncoding()}.element()
	if err != nil {
		t.Fatal(err)
	}
	h := soap.Header{Action: actionRequest, MessageID: "urn:uuid:6b1c0b2e-1f0f-4c43-9f0e-2d6a6a0c5d11", To: soap.EPR{Address: "soap.udp://b1:3702/messages"}}
	datagram, err := encode(whole, soap.Envelope(soap.SOAP12, h, "", element))
	if err != nil {
		t.Fatal(err)
	}
	return len(datagram)
}

func TestTheTableOfSizesIsWhatEnvelopesHave(t *testing.T) {
	columns := []struct{ encoding, compression string }{
		{encoding.XML, encoding.None}, {encoding.XML, encoding.Gzip}, {encoding.EXISchemaless, encoding.None}, {encoding.EXI, encoding.None}, {encoding.EXI, encoding.Gzip},
	}
	table := &strings.Builder{}
	table.WriteString("| envelope with a message, text of 39 |")
	for _, c := range columns {
		fmt.Fprintf(table, " `%s`", c.encoding)
		if c.compression != encoding.None {
			fmt.Fprintf(table, ", `%s`", c.compression)
		}
		table.WriteString(" |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, model := range []string{encoding.Military, encoding.Operational, encoding.NFFI} {
		fmt.Fprintf(table, "| `%s` |", model)
		for _, c := range columns {
			fmt.Fprintf(table, " %d |", size(t, model, c.encoding, c.compression))
		}
		table.WriteString("\n")
	}
	t.Log("\n" + table.String())
	golden.CheckTable(t, "../../../docs/reference/encodings.md", table.String())
}

func TestEncodingAndCompressionAreDivided(t *testing.T) {
	for of, want := range map[[2]string][3]string{
		{"xml", "none"}:            {"xml", "none", ""},
		{"xml", ""}:                {"xml", "none", ""},
		{"xml", "gzip"}:            {"xml", "none", "gzip"},
		{"exi", "none"}:            {"exi", "none", ""},
		{"exi", "gzip"}:            {"exi", "none", "gzip"},
		{"exi-schemaless", "none"}: {"xml", "none", "exi"},
		{"exi-schemaless", "gzip"}: {"exi-schemaless", "none", "gzip"},
		{"json", "none"}:           {"json", "none", ""},
	} {
		body, compression, whole := Divide(of[0], of[1])
		if got := [3]string{body, compression, whole}; got != want {
			t.Errorf("%v is divided into %q; want %q", of, got, want)
		}
	}
}
