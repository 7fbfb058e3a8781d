package client

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload/track"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/internal/traffic/request/requesttest"
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

// encoded is a message in an encoding.
func encoded(t *testing.T, model, name string) content {
	t.Helper()
	codec, err := encoding.New(model, name, encoding.None)
	if err != nil {
		t.Fatal(err)
	}
	message, err := codec.Append(nil, messages()[model])
	if err != nil {
		t.Fatal(err)
	}
	return content{message, codec.ContentType(), codec.ContentEncoding()}
}

// size is that of the whole envelope with a message.
func size(t *testing.T, model, name, whole string) int {
	t.Helper()
	element, err := encoded(t, model, name).element()
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
	columns := []struct{ title, encoding, envelope string }{
		{"`xml`", encoding.XML, ""}, {"`xml`, `gzip`", encoding.XML, request.EnvelopeGzip}, {"`xml`, envelope `EXI`", encoding.XML, request.EnvelopeEXI},
		{"`exi`", encoding.EXI, ""}, {"`exi`, `gzip`", encoding.EXI, request.EnvelopeGzip},
	}
	table := &strings.Builder{}
	table.WriteString("| envelope with a message, text of 39 |")
	for _, c := range columns {
		table.WriteString(" " + c.title + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, model := range []string{encoding.Military, encoding.Operational, encoding.NFFI} {
		fmt.Fprintf(table, "| `%s` |", model)
		for _, c := range columns {
			fmt.Fprintf(table, " %d |", size(t, model, c.encoding, c.envelope))
		}
		table.WriteString("\n")
	}
	t.Log("\n" + table.String())
	golden.CheckTable(t, "../../../../docs/reference/encodings.md", table.String())
}

func TestMessagesAreIdentifiedBehindEveryEncoding(t *testing.T) {
	overBoth(t, func(t *testing.T, open request.Open, whole string) {
		at, got := requesttest.Address(t), make(chan []byte, 1)
		requesttest.Start(t, open, request.Setup{Listen: at, Handler: func(_ time.Time, r request.Request) request.Response {
			got <- r.Body
			return request.Response{}
		}})
		client := requesttest.Start(t, open, request.Setup{SOAP: request.SOAPOptions{Envelope: whole}})
		for model, m := range messages() {
			for _, name := range encoding.Encodings(model) {
				c := encoded(t, model, name)
				if _, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: c.body, ContentType: c.kind, ContentEncoding: c.encoding}, request.Events{}); err != nil {
					t.Fatalf("%s %s: %v", model, name, err)
				}
				if id, _, ok := encoding.Identify(<-got); !ok || id != m.ID {
					t.Errorf("%s %s is identified as %q; want %q", model, name, id, m.ID)
				}
			}
		}
	})
}
