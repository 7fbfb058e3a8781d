package wire

import (
	"bytes"
	"errors"
	"testing"
)

func TestVarintsAreThoseOfTheStandard(t *testing.T) {
	for _, c := range []struct {
		n    int
		want []byte
	}{
		{0, []byte{0x00}}, {127, []byte{0x7f}}, {128, []byte{0x80, 0x01}}, {321, []byte{0xc1, 0x02}}, {16383, []byte{0xff, 0x7f}},
		{16384, []byte{0x80, 0x80, 0x01}}, {2097151, []byte{0xff, 0xff, 0x7f}}, {2097152, []byte{0x80, 0x80, 0x80, 0x01}},
		{MaxRemaining, []byte{0xff, 0xff, 0xff, 0x7f}},
	} {
		got := AppendVarint(nil, c.n)
		n, size, err := Varint(got)
		if !bytes.Equal(got, c.want) || n != c.n || size != len(c.want) || err != nil {
			t.Errorf("%d: % x, back %d of %d bytes, %v; want % x", c.n, got, n, size, err, c.want)
		}
	}
	if _, _, err := Varint([]byte{0xff, 0xff, 0xff, 0xff, 0x01}); err == nil {
		t.Error("five bytes: want an error")
	}
	if _, _, err := Varint([]byte{0x80}); !errors.Is(err, ErrShort) {
		t.Errorf("an unfinished length: %v; want %v", err, ErrShort)
	}
}

func TestParsingDocumentedPackets(t *testing.T) {
	for name, c := range map[string]struct {
		form    Form
		packet  string
		topic   string
		payload string
	}{
		// MQTT 3.1.1, figure 3.11: topic a/b, packet identifier 10, QoS 1.
		"MQTT 3.1.1 QoS 1": {MQTT311, "\x32\x0a\x00\x03a/b\x00\x0ahey", "a/b", "hey"},
		"MQTT 3.1.1 QoS 0": {MQTT311, "\x30\x08\x00\x03a/bhey", "a/b", "hey"},
		"no payload":       {MQTT311, "\x30\x05\x00\x03a/b", "a/b", ""},
		// MQTT 5.0, figure 3-9: as above, with a property length of 0.
		"MQTT 5 QoS 1":         {MQTT5, "\x32\x0b\x00\x03a/b\x00\x0a\x00hey", "a/b", "hey"},
		"MQTT 5, properties":   {MQTT5, "\x30\x0b\x00\x03a/b\x02\x01\x01hey", "a/b", "hey"},
		"MQTT 5, topic alias":  {MQTT5, "\x30\x09\x00\x00\x03\x23\x00\x01hey", "", "hey"},
		"MQTT/UDP":             {UDP, "\x30\x08\x00\x03a/bhey", "a/b", "hey"},
		"MQTT/UDP, QoS flags":  {UDP, "\x32\x08\x00\x03a/bhey", "a/b", "hey"},
		"MQTT/UDP, number TTR": {UDP, "\x30\x08\x00\x03a/bheyn\x04\x00\x00\x00\x07", "a/b", "hey"},
	} {
		p, err := ParsePublish([]byte(c.packet), c.form)
		if err != nil || p.Topic != c.topic || string(p.Payload) != c.payload {
			t.Errorf("%s: topic %q, payload %q, %v; want %q, %q", name, p.Topic, p.Payload, err, c.topic, c.payload)
		}
	}
}

func TestBrokenPacketsAreRefused(t *testing.T) {
	for name, packet := range map[string]string{
		"nothing": "", "no length": "\x30", "not PUBLISH": "\xc0\x00", "cut off": "\x30\x08\x00\x03a/bhe", "topic longer than packet": "\x30\x05\x00\x09a/b",
		"no topic length": "\x30\x01\x00", "empty topic": "\x30\x03\x00\x00x", "wildcard in the topic": "\x30\x05\x00\x03a/#", "not UTF-8": "\x30\x03\x00\x01\xff",
	} {
		if p, err := ParsePublish([]byte(packet), UDP); err == nil {
			t.Errorf("%s: %+v; want an error", name, p)
		}
	}
}

func FuzzParsePublish(f *testing.F) {
	f.Add([]byte("\x30\x08\x00\x03a/bhey"), false)
	f.Add([]byte("\x32\x0b\x00\x03a/b\x00\x0a\x00hey"), true)
	f.Fuzz(func(t *testing.T, data []byte, five bool) {
		if five {
			_, _ = ParsePublish(data, MQTT5)
			return
		}
		p, err := ParsePublish(data, UDP)
		if err != nil {
			return
		}
		again, err := AppendPublish(nil, p.Topic, p.Payload)
		if err != nil {
			t.Fatalf("%+v was read but cannot be written: %v", p, err)
		}
		q, err := ParsePublish(again, UDP)
		if err != nil || q.Topic != p.Topic || !bytes.Equal(q.Payload, p.Payload) {
			t.Fatalf("%+v came back as %+v, %v", p, q, err)
		}
	})
}
