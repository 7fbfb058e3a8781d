package worker

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"vignette.dev/vignette/internal/radio"
)

// networkID names a network on the wire.
type networkID [16]byte

func networkIDOf(uid string) (id networkID) {
	sum := sha256.Sum256([]byte(uid))
	copy(id[:], sum[:])
	return id
}

const (
	shipmentVersion = 1
	// shipmentHeader: version, network, source, index, three times, three figures of the transmission, length of the frame, number of receivers.
	shipmentHeader = 1 + 16 + 2 + 8 + 3*8 + 3*8 + 4 + 2
)

// appendShipment writes a transmission of a network, with its times as told gives them.
func appendShipment(b []byte, id networkID, s *radio.Shipment, told func(int64) int64) []byte {
	b = append(append(b, shipmentVersion), id[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(s.Source)) //nolint:gosec // NEM ids have 16 bits
	b = binary.BigEndian.AppendUint64(b, s.Index)
	for _, t := range [...]int64{s.Sent, s.Start, s.Due} {
		b = binary.BigEndian.AppendUint64(b, uint64(told(t))) //nolint:gosec // any mapping does
	}
	for _, v := range [...]float64{s.FrequencyHertz, s.PowerDBm, s.RateBitsPerSecond} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(s.Bytes))          //nolint:gosec // a frame's length
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.Receivers))) //nolint:gosec // no more than NEM ids
	for _, nem := range s.Receivers {
		b = binary.BigEndian.AppendUint16(b, nem)
	}
	return append(b, s.Data...)
}

// parseShipment reads a transmission, with its times as they were told; it keeps nothing of b.
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
	s.Sent, s.Start, s.Due = int64(word()), int64(word()), int64(word()) //nolint:gosec // as they were written
	s.FrequencyHertz, s.PowerDBm, s.RateBitsPerSecond = math.Float64frombits(word()), math.Float64frombits(word()), math.Float64frombits(word())
	s.Bytes = int(binary.BigEndian.Uint32(b[at:]))
	receivers := int(binary.BigEndian.Uint16(b[at+4:]))
	rest := b[at+6:]
	if len(rest) < 2*receivers {
		return id, nil, fmt.Errorf("transmission of %d bytes: it ends within its %d receivers", len(b), receivers)
	}
	for i := range receivers {
		s.Receivers = append(s.Receivers, binary.BigEndian.Uint16(rest[2*i:]))
	}
	if data := rest[2*receivers:]; len(data) > 0 {
		if len(data) != s.Bytes {
			return id, nil, fmt.Errorf("transmission of a frame of %d bytes: it has %d", s.Bytes, len(data))
		}
		s.Data = append([]byte(nil), data...)
	}
	return id, s, nil
}
