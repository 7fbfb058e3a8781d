package v1

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"time"
)

// Message types (RFC 3626 section 18.4).
const (
	typeHello = 1
	typeTC    = 2
	typeMID   = 3
	typeHNA   = 4
)

// Link types, and neighbour types (RFC 3626 sections 18.5 and 18.6).
const (
	linkUnspecified, linkAsymmetric, linkSymmetric, linkLost = 0, 1, 2, 3
	notNeighbour, symmetricNeighbour, mprNeighbour           = 0, 1, 2
)

const (
	packetHeader  = 4
	messageHeader = 12
	addressSize   = 4
)

// message of a packet (RFC 3626 section 3.3).
type message struct {
	Type       uint8
	Validity   time.Duration
	Originator netip.Addr
	TTL, Hops  uint8
	Sequence   uint16
	// Bytes of the complete message, Body those after the header.
	Bytes, Body []byte
}

// split splits a packet into its messages; on an error it returns those before the bad one.
func split(packet []byte, messages []message) ([]message, error) {
	if len(packet) < packetHeader {
		return messages, fmt.Errorf("packet of %d bytes has no header", len(packet))
	}
	if stated := int(binary.BigEndian.Uint16(packet)); stated > len(packet) || stated < packetHeader {
		return messages, fmt.Errorf("packet of %d bytes states %d", len(packet), stated)
	}
	for b := packet[packetHeader:binary.BigEndian.Uint16(packet)]; len(b) > 0; {
		if len(b) < messageHeader {
			return messages, fmt.Errorf("message header of %d bytes, not %d", len(b), messageHeader)
		}
		size := int(binary.BigEndian.Uint16(b[2:]))
		if size < messageHeader || size > len(b) {
			return messages, fmt.Errorf("message of %d bytes states %d", len(b), size)
		}
		messages = append(messages, message{
			Type: b[0], Validity: timeOf(b[1]), Originator: netip.AddrFrom4([4]byte(b[4:])), TTL: b[8], Hops: b[9],
			Sequence: binary.BigEndian.Uint16(b[10:]), Bytes: b[:size:size], Body: b[messageHeader:size:size],
		})
		b = b[size:]
	}
	return messages, nil
}

// append the message, with its body.
func (m *message) append(b []byte) []byte {
	b = append(b, m.Type, timeCode(m.Validity))
	b = binary.BigEndian.AppendUint16(b, uint16(messageHeader+len(m.Body)))
	b = append(b, m.Originator.AsSlice()...)
	b = append(b, m.TTL, m.Hops)
	b = binary.BigEndian.AppendUint16(b, m.Sequence)
	return append(b, m.Body...)
}

// timeOf a code: C·(1 + a/16)·2^b, where C is 1/16 s, a the high four bits and b the low (RFC 3626 section 18.3).
func timeOf(code uint8) time.Duration {
	return time.Duration(16+int64(code>>4)) << (code & 0xf) * time.Second / 256
}

// timeCode is the code of the least time that is not less than t.
func timeCode(t time.Duration) uint8 {
	units := uint64((max(t, 0)*256 + time.Second - 1) / time.Second)
	exponent := max(bits.Len64(units)-5, 0)
	mantissa := max((units+1<<exponent-1)>>exponent, 16)
	if mantissa == 32 {
		mantissa, exponent = 16, exponent+1
	}
	if exponent > 15 {
		return 0xff
	}
	return uint8(mantissa-16)<<4 | uint8(exponent)
}

// hello is the body of a HELLO (RFC 3626 section 6.1).
type hello struct {
	Interval    time.Duration
	Willingness uint8
	Groups      []group
}

// group of addresses with a link code.
type group struct {
	Link, Neighbour uint8
	Addresses       []netip.Addr
}

func readHello(b []byte) (hello, error) {
	if len(b) < 4 {
		return hello{}, fmt.Errorf("HELLO of %d bytes, less than 4", len(b))
	}
	h := hello{Interval: timeOf(b[2]), Willingness: b[3]}
	for b = b[4:]; len(b) > 0; {
		if len(b) < 4 {
			return h, fmt.Errorf("link message header of %d bytes, not 4", len(b))
		}
		code, size := b[0], int(binary.BigEndian.Uint16(b[2:]))
		if size < 4 || size > len(b) {
			return h, fmt.Errorf("link message of %d bytes states %d", len(b), size)
		}
		addresses, err := readAddresses(b[4:size])
		if err != nil {
			return h, err
		}
		// Link codes above 15, and a symmetric link to a node that is no neighbour, are ignored (RFC 3626
		// section 6.1.1).
		if g := (group{Link: code & 3, Neighbour: code >> 2 & 3, Addresses: addresses}); code < 16 && g.Neighbour != 3 && (g.Link != linkSymmetric || g.Neighbour != notNeighbour) {
			h.Groups = append(h.Groups, g)
		}
		b = b[size:]
	}
	return h, nil
}

func (h *hello) append(b []byte) []byte {
	b = append(b, 0, 0, timeCode(h.Interval), h.Willingness)
	for _, g := range h.Groups {
		b = append(b, g.Link|g.Neighbour<<2, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(4+addressSize*len(g.Addresses)))
		b = appendAddresses(b, g.Addresses)
	}
	return b
}

func readAddresses(b []byte) ([]netip.Addr, error) {
	if len(b)%addressSize != 0 {
		return nil, fmt.Errorf("addresses of %d bytes, not a multiple of %d", len(b), addressSize)
	}
	all := make([]netip.Addr, 0, len(b)/addressSize)
	for ; len(b) > 0; b = b[addressSize:] {
		all = append(all, netip.AddrFrom4([4]byte(b)))
	}
	return all, nil
}

func appendAddresses(b []byte, addresses []netip.Addr) []byte {
	for _, a := range addresses {
		b = append(b, a.AsSlice()...)
	}
	return b
}

// readTC reads the body of a TC (RFC 3626 section 9.1).
func readTC(b []byte) (ansn uint16, addresses []netip.Addr, err error) {
	if len(b) < 4 {
		return 0, nil, fmt.Errorf("TC of %d bytes, less than 4", len(b))
	}
	addresses, err = readAddresses(b[4:])
	return binary.BigEndian.Uint16(b), addresses, err
}

func appendTC(b []byte, ansn uint16, addresses []netip.Addr) []byte {
	return appendAddresses(append(binary.BigEndian.AppendUint16(b, ansn), 0, 0), addresses)
}

// readHNA reads the body of an HNA (RFC 3626 section 12.1).
func readHNA(b []byte) ([]netip.Prefix, error) {
	if len(b)%(2*addressSize) != 0 {
		return nil, fmt.Errorf("networks of %d bytes, not a multiple of %d", len(b), 2*addressSize)
	}
	var all []netip.Prefix
	for ; len(b) > 0; b = b[2*addressSize:] {
		mask := binary.BigEndian.Uint32(b[addressSize:])
		ones := bits.LeadingZeros32(^mask)
		if mask<<ones != 0 {
			return nil, fmt.Errorf("netmask %#08x has a gap", mask)
		}
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte(b)), ones).Masked())
	}
	return all, nil
}

func appendHNA(b []byte, networks []netip.Prefix) []byte {
	for _, p := range networks {
		b = append(b, p.Addr().AsSlice()...)
		b = binary.BigEndian.AppendUint32(b, ^uint32(1<<(32-p.Bits())-1))
	}
	return b
}
