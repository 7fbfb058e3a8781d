// Package wire reads and writes MQTT PUBLISH packets, as measuring and MQTT/UDP need it: OASIS MQTT 3.1.1 and 5.0, sections 1.5.5 (variable
// byte integer) and 3.3 (PUBLISH).
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
)

const (
	// TypePublish is the packet type in the upper half of a packet's first byte.
	TypePublish = 3
	typePubrel  = 6
	// MaxRemaining is the largest length that a variable byte integer can hold.
	MaxRemaining = 268_435_455
	maxVarint    = 4
	// maxContent leaves room for the lengths of topic and properties.
	maxContent = MaxRemaining - 3
	// retain is the flag of a PUBLISH packet (3.3.1.3).
	retain = 1
)

// ErrShort reports an incomplete packet.
var ErrShort = errors.New("packet is shorter than it says")

// AppendVarint adds a variable byte integer.
func AppendVarint(dst []byte, n int) []byte {
	for n > 127 {
		dst = append(dst, byte(n)|0x80)
		n >>= 7
	}
	return append(dst, byte(n))
}

// Varint reads a variable byte integer and returns its length in bytes.
func Varint(b []byte) (n, size int, err error) {
	for i := range maxVarint {
		if i >= len(b) {
			return 0, 0, ErrShort
		}
		n |= int(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return n, i + 1, nil
		}
	}
	return 0, 0, fmt.Errorf("length has more than %d bytes: want at most %d", maxVarint, MaxRemaining)
}

// PacketSize returns the size of the packet at the start of b; ErrShort if its header is incomplete.
func PacketSize(b []byte) (int, error) {
	if len(b) < 2 {
		return 0, ErrShort
	}
	remaining, size, err := Varint(b[1:])
	return 1 + size + remaining, err
}

// Publish is a PUBLISH packet. Payload and Topic alias the packet's bytes.
type Publish struct {
	Topic   string
	Payload []byte
	// Retain asks the broker to keep the message, or marks a kept one.
	Retain bool
}

// ValidPublish returns an error for an invalid message.
func ValidPublish(topic string, payload []byte) error {
	if err := mqtttopic.Valid(topic); err != nil {
		return err
	}
	if n := len(topic) + len(payload); n > maxContent {
		return fmt.Errorf("topic and payload have %d bytes: want at most %d", n, maxContent)
	}
	return nil
}

// AppendPublish appends a PUBLISH packet of QoS 0 without packet id and properties.
func AppendPublish(dst []byte, topic string, payload []byte) ([]byte, error) {
	if err := ValidPublish(topic, payload); err != nil {
		return dst, err
	}
	return Append(dst, Publish{Topic: topic, Payload: payload}, UDP), nil
}

// Append appends a valid message as a PUBLISH packet of QoS 0, with empty properties if the form has any.
func Append(dst []byte, p Publish, form Form) []byte {
	first := byte(TypePublish << 4)
	if p.Retain {
		first |= retain
	}
	dst = AppendVarint(append(dst, first), remaining(p, form))
	dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(p.Topic))), p.Topic...)
	if form.Properties {
		dst = append(dst, 0)
	}
	return append(dst, p.Payload...)
}

func remaining(p Publish, form Form) int {
	n := 2 + len(p.Topic) + len(p.Payload)
	if form.Properties {
		n++
	}
	return n
}

// Size is that of the packet that Append makes.
func Size(p Publish, form Form) int {
	n := remaining(p, form)
	return 1 + len(AppendVarint(nil, n)) + n
}

// Form describes how a protocol's packets differ.
type Form struct {
	// PacketID follows the topic in packets of QoS 1 and 2.
	PacketID bool
	// Properties precede the payload (MQTT 5).
	Properties bool
}

// The forms of PUBLISH. MQTT/UDP never has packet ids, whatever the flags say.
var (
	MQTT311 = Form{PacketID: true}
	MQTT5   = Form{PacketID: true, Properties: true}
	UDP     = Form{}
)

// ParsePublish reads the PUBLISH packet at the start of b, and ignores what follows.
func ParsePublish(b []byte, form Form) (Publish, error) {
	var p Publish
	if len(b) == 0 {
		return p, ErrShort
	}
	p.Retain = b[0]&retain != 0
	if kind := b[0] >> 4; kind != TypePublish {
		return p, fmt.Errorf("packet type is %d: want %d, PUBLISH", kind, TypePublish)
	}
	size, err := PacketSize(b)
	if err != nil {
		return p, err
	}
	if size > len(b) {
		return p, ErrShort
	}
	_, width, _ := Varint(b[1:])
	rest := b[1+width : size]
	if len(rest) < 2 {
		return p, ErrShort
	}
	length := int(binary.BigEndian.Uint16(rest))
	if rest = rest[2:]; len(rest) < length {
		return p, ErrShort
	}
	p.Topic, rest = string(rest[:length]), rest[length:]
	if rest, err = skipHeader(rest, form, b[0]>>1&3); err != nil {
		return p, err
	}
	p.Payload = rest
	if p.Topic == "" && form.Properties {
		return p, nil // MQTT 5 may have a topic alias instead
	}
	return p, mqtttopic.Valid(p.Topic)
}

// skipHeader skips the bytes between topic and payload.
func skipHeader(rest []byte, form Form, qos byte) ([]byte, error) {
	if form.PacketID && qos > 0 {
		if len(rest) < 2 {
			return nil, ErrShort
		}
		rest = rest[2:]
	}
	if form.Properties {
		n, size, err := Varint(rest)
		if err != nil {
			return nil, err
		}
		if len(rest) < size+n {
			return nil, ErrShort
		}
		rest = rest[size+n:]
	}
	return rest, nil
}

// PublishID returns the packet id of a complete PUBLISH; false for other packets and for QoS 0.
func PublishID(packet []byte) (id uint16, ok bool) {
	if len(packet) == 0 || packet[0]>>4 != TypePublish || packet[0]>>1&3 == 0 {
		return 0, false
	}
	_, width, err := Varint(packet[1:])
	if err != nil || len(packet) < 1+width+2 {
		return 0, false
	}
	rest := packet[1+width:]
	topic := int(binary.BigEndian.Uint16(rest))
	if len(rest) < 2+topic+2 {
		return 0, false
	}
	return binary.BigEndian.Uint16(rest[2+topic:]), true
}

// Pubrel reads the packet id of a PUBREL packet (3.6), if it is one.
func Pubrel(packet []byte) (id uint16, ok bool) {
	if len(packet) < 4 || packet[0]>>4 != typePubrel {
		return 0, false
	}
	return binary.BigEndian.Uint16(packet[2:]), true
}
