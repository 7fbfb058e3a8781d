package dataplane

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"vignette.dev/vignette/internal/radio"
)

// networkID identifies a network in datagrams.
type networkID [16]byte

func networkIDOf(uid string) (id networkID) {
	sum := sha256.Sum256([]byte(uid))
	copy(id[:], sum[:])
	return id
}

const (
	shipmentVersion = 2
	// shipmentHeader: version, network, source, index, three figures of the slot, three times, three figures of the transmission,
	// length of the frame, number of receivers and of parts.
	shipmentHeader = 1 + 16 + 2 + 8 + 3*8 + 3*8 + 3*8 + 4 + 2 + 4
	// partHeader: destination, class, whether it is the last one, sequence number, offset, length, time, length of the frame.
	partHeader = 8 + 1 + 1 + 8 + 4 + 4 + 8 + 4
)

// appendShipment encodes a transmission of a network, with its times converted by peerTime.
func appendShipment(b []byte, id networkID, s *radio.Shipment, peerTime func(int64) int64) []byte {
	b = append(append(b, shipmentVersion), id[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(s.Source)) //nolint:gosec // NEM ids have 16 bits
	b = binary.BigEndian.AppendUint64(b, s.Index)
	for _, v := range [...]int64{s.Slot, s.SlotDuration, s.OnAir, peerTime(s.Sent), peerTime(s.Start), peerTime(s.Due)} {
		b = binary.BigEndian.AppendUint64(b, uint64(v)) //nolint:gosec // any mapping does
	}
	for _, v := range [...]float64{s.FrequencyHertz, s.PowerDBm, s.RateBitsPerSecond} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(s.Bytes))          //nolint:gosec // a frame's length
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.Receivers))) //nolint:gosec // no more than NEM ids
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.Parts)))     //nolint:gosec // no more than bytes in a message
	for _, nem := range s.Receivers {
		b = binary.BigEndian.AppendUint16(b, nem)
	}
	for i := range s.Parts {
		b = appendPart(b, &s.Parts[i], peerTime)
	}
	return append(b, s.Data...)
}

func appendPart(b []byte, p *radio.Part, peerTime func(int64) int64) []byte {
	last := byte(0)
	if p.Last {
		last = 1
	}
	b = binary.BigEndian.AppendUint64(b, uint64(p.Destination))
	b = append(b, byte(p.Class), last)
	b = binary.BigEndian.AppendUint64(b, p.Sequence)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Offset))         //nolint:gosec // within a frame
	b = binary.BigEndian.AppendUint32(b, uint32(p.Bytes))          //nolint:gosec // within a frame
	b = binary.BigEndian.AppendUint64(b, uint64(peerTime(p.Sent))) //nolint:gosec // any mapping does
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Data)))      //nolint:gosec // a frame's length
	return append(b, p.Data...)
}

// parseShipment decodes a transmission, with its times as sent; it keeps nothing of b.
func parseShipment(b []byte) (id networkID, s *radio.Shipment, err error) {
	if len(b) < shipmentHeader || b[0] != shipmentVersion {
		return id, nil, fmt.Errorf("transmission of %d bytes: want at least %d, the first one %d: both hosts need the same release", len(b), shipmentHeader, shipmentVersion)
	}
	copy(id[:], b[1:])
	at := 17
	word := func() uint64 {
		at += 8
		return binary.BigEndian.Uint64(b[at-8:])
	}
	s = &radio.Shipment{Source: int(binary.BigEndian.Uint16(b[at:]))}
	at += 2
	s.Index = word()
	s.Slot, s.SlotDuration, s.OnAir = int64(word()), int64(word()), int64(word()) //nolint:gosec // as they were written
	s.Sent, s.Start, s.Due = int64(word()), int64(word()), int64(word())          //nolint:gosec // as they were written
	s.FrequencyHertz, s.PowerDBm, s.RateBitsPerSecond = math.Float64frombits(word()), math.Float64frombits(word()), math.Float64frombits(word())
	s.Bytes = int(binary.BigEndian.Uint32(b[at:]))
	receivers, parts := int(binary.BigEndian.Uint16(b[at+4:])), int(binary.BigEndian.Uint32(b[at+6:]))
	rest := b[at+10:]
	if len(rest) < 2*receivers {
		return id, nil, fmt.Errorf("transmission of %d bytes: it ends within its %d receivers", len(b), receivers)
	}
	for i := range receivers {
		s.Receivers = append(s.Receivers, binary.BigEndian.Uint16(rest[2*i:]))
	}
	data := rest[2*receivers:]
	for range parts {
		var p radio.Part
		if p, data, err = parsePart(data); err != nil {
			return id, nil, fmt.Errorf("transmission of %d bytes in %d parts: %w", len(b), parts, err)
		}
		s.Parts = append(s.Parts, p)
	}
	if len(data) > 0 {
		if parts > 0 || len(data) != s.Bytes {
			return id, nil, fmt.Errorf("transmission of a frame of %d bytes: it has %d", s.Bytes, len(data))
		}
		s.Data = append([]byte(nil), data...)
	}
	return id, s, nil
}

// parsePart decodes a part, and returns what follows it.
func parsePart(b []byte) (p radio.Part, rest []byte, err error) {
	if len(b) < partHeader {
		return p, nil, fmt.Errorf("%d bytes are left for a part: want at least %d", len(b), partHeader)
	}
	p.Destination, p.Class, p.Last = radio.MAC(binary.BigEndian.Uint64(b)), int(b[8]), b[9] == 1
	p.Sequence = binary.BigEndian.Uint64(b[10:])
	p.Offset, p.Bytes = int(binary.BigEndian.Uint32(b[18:])), int(binary.BigEndian.Uint32(b[22:]))
	p.Sent = int64(binary.BigEndian.Uint64(b[26:])) //nolint:gosec // as it was written
	length := int(binary.BigEndian.Uint32(b[34:]))
	if b = b[partHeader:]; len(b) < length {
		return p, nil, fmt.Errorf("a part ends after %d bytes of its frame: want %d", len(b), length)
	}
	if p.Last != (length > 0) {
		return p, nil, fmt.Errorf("a part has %d bytes of its frame: want them with the last part alone", length)
	}
	p.Data = append([]byte(nil), b[:length]...)
	return p, b[length:], nil
}
