package tdma

import (
	"encoding/binary"
	"math/bits"
)

// Ethernet types, and the offset of layer 3 in a frame.
const (
	typeIPv4    = 0x0800
	typeIPv6    = 0x86dd
	layer3Start = 14
)

// dscpOf returns an Ethernet frame's DSCP; 0 for neither IPv4 nor IPv6.
func dscpOf(data []byte) uint8 {
	if len(data) < layer3Start+2 {
		return 0
	}
	header := data[layer3Start:]
	switch binary.BigEndian.Uint16(data[12:]) {
	case typeIPv4:
		return header[1] >> 2
	case typeIPv6:
		return uint8(binary.BigEndian.Uint16(header) >> 6 & 0x3f)
	default:
		return 0
	}
}

// classOf returns the class of a DSCP, by EMANE's table.
func classOf(dscp uint8) int {
	switch {
	case dscp >= 48:
		return 3
	case dscp >= 32:
		return 2
	case dscp >= 8 && dscp <= 23:
		return 1
	default:
		return 0
	}
}

// messageBytes is the size of EMANE's message for a slot: frames and fragments with headers in the encoding
// of Protocol Buffers. A PCR curve for a packet size counts these bytes; a slot's capacity does not count the
// headers.
func messageBytes(absoluteSlot int64, rateBitsPerSecond uint64, parts []part) int {
	size := 1 + varint(uint64(absoluteSlot)) + 1 + varint(rateBitsPerSecond)
	for i := range parts {
		p := &parts[i]
		body := 2 + 1 + varint(uint64(p.nem)) + 2 + 1 + varint(uint64(p.bytes)) + p.bytes
		if p.offset > 0 || !p.last {
			fragment := 2 + 1 + varint(uint64(p.parts-1)) + 1 + varint(uint64(p.offset)) + 1 + varint(p.sequence)
			body += 1 + varint(uint64(fragment)) + fragment
		}
		size += 1 + varint(uint64(body)) + body
	}
	return size
}

// varint is the number of bytes of a number in that encoding, at 7 bits each.
func varint(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }
