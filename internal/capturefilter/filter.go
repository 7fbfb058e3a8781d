// Package capturefilter implements the filters of captures: a part of tcpdump's language.
package capturefilter

import (
	"bytes"
	"encoding/binary"
	"net"
)

// Depth is the number of bytes that a filter may read of a frame: Ethernet, the longest IPv4 header and
// ports.
const Depth = 128

// Filter decides which frames a capture keeps.
type Filter struct{ keep predicate }

// Check returns what is wrong with a filter, or nil; the empty one is valid.
func Check(text string) error {
	_, err := Parse(text)
	return err
}

// Match reports whether the filter keeps an Ethernet frame. data is the beginning of the frame and wireLength
// its length. As in libpcap, a frame that ends before a field that the filter reads is not kept. If a frame
// ends within addresses or ports, the result depends on libpcap's optimiser, so it may differ here.
func (f *Filter) Match(data []byte, wireLength int) bool {
	return f == nil || f.keep(frame{data, wireLength}) == yes
}

type frame struct {
	data       []byte
	wireLength int
}

// matchResult of a predicate. A read beyond the frame's end decides the complete filter, also within a negation,
// as it ends libpcap's program.
type matchResult uint8

const (
	no matchResult = iota
	yes
	beyondEnd
)

type predicate func(frame) matchResult

func resultOf(b bool) matchResult {
	if b {
		return yes
	}
	return no
}

func and(a, b predicate) predicate {
	return func(f frame) matchResult {
		if v := a(f); v != yes {
			return v
		}
		return b(f)
	}
}

func or(a, b predicate) predicate {
	return func(f frame) matchResult {
		if v := a(f); v != no {
			return v
		}
		return b(f)
	}
}

func not(a predicate) predicate {
	return func(f frame) matchResult {
		switch a(f) {
		case yes:
			return no
		case no:
			return yes
		}
		return beyondEnd
	}
}

// octet and the following functions compare a field at an offset in the frame.
func octet(offset int, want byte) predicate {
	return func(f frame) matchResult {
		if len(f.data) <= offset {
			return beyondEnd
		}
		return resultOf(f.data[offset] == want)
	}
}

// masked reads only words that the mask selects.
func masked(offset int, mask, want []byte) predicate {
	for words := len(want) &^ 3; words > 0 && words == len(want) && bytes.Equal(mask[words-4:words], []byte{0, 0, 0, 0}); words = len(want) {
		want = want[:words-4]
	}
	return func(f frame) matchResult {
		if len(f.data) < offset+len(want) {
			return beyondEnd
		}
		for i, b := range f.data[offset : offset+len(want)] {
			if b&mask[i] != want[i] {
				return no
			}
		}
		return yes
	}
}

func equal(offset int, want []byte) predicate {
	return func(f frame) matchResult {
		if len(f.data) < offset+len(want) {
			return beyondEnd
		}
		return resultOf(bytes.Equal(f.data[offset:offset+len(want)], want))
	}
}

// Offsets in an Ethernet frame, and protocol numbers.
const (
	typeOffset    = 12
	payload       = 14
	etherIP       = 0x0800
	etherARP      = 0x0806
	etherRARP     = 0x8035
	etherIP6      = 0x86dd
	etherATALK    = 0x809b
	etherAARP     = 0x80f3
	ip6Header     = 40
	ip6Fragment   = 44
	protocolICMP  = 1
	protocolIGMP  = 2
	protocolTCP   = 6
	protocolUDP   = 17
	protocolICMP6 = 58
	protocolPIM   = 103
	protocolSCTP  = 132
)

func etherType(value uint16) predicate {
	return equal(typeOffset, binary.BigEndian.AppendUint16(nil, value))
}

func ipProtocol(number byte) predicate { return and(etherType(etherIP), octet(payload+9, number)) }

// ip6Protocol reads the first header and the one after a fragment header, as libpcap does, and no other
// extension.
func ip6Protocol(number byte) predicate {
	return and(etherType(etherIP6), or(octet(payload+6, number),
		and(octet(payload+6, ip6Fragment), octet(payload+ip6Header, number))))
}

func anyProtocol(number byte) predicate { return or(ipProtocol(number), ip6Protocol(number)) }

var protocols = map[string]predicate{
	"ip": etherType(etherIP), "ip6": etherType(etherIP6), "arp": etherType(etherARP), "rarp": etherType(etherRARP),
	"tcp": anyProtocol(protocolTCP), "udp": anyProtocol(protocolUDP), "sctp": anyProtocol(protocolSCTP),
	"pim": anyProtocol(protocolPIM), "icmp": ipProtocol(protocolICMP), "igmp": ipProtocol(protocolIGMP),
	"icmp6": ip6Protocol(protocolICMP6),
}

var (
	broadcast = equal(0, net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	multicast = masked(0, []byte{1}, []byte{1})
	// ipMulticast is 224.0.0.0 and above, including limited broadcast, as in libpcap.
	ipMulticast  = and(etherType(etherIP), func(f frame) matchResult { return atLeast(f, payload+16, 224) })
	ip6Multicast = and(etherType(etherIP6), octet(payload+24, 0xff))
)

func atLeast(f frame, offset int, least byte) matchResult {
	if len(f.data) <= offset {
		return beyondEnd
	}
	return resultOf(f.data[offset] >= least)
}

// direction of a primitive.
type direction int

const (
	sourceOrDestination direction = iota
	source
	destination
	sourceAndDestination
)

func (d direction) combine(src, dst predicate) predicate {
	switch d {
	case source:
		return src
	case destination:
		return dst
	case sourceAndDestination:
		return and(src, dst)
	}
	return or(src, dst)
}

// hosts matches addresses in IP. It matches those in ARP and RARP if that protocol or none is named.
func hosts(protocol string, d direction, n *net.IPNet) predicate {
	at := func(etherType predicate, src, dst int) predicate {
		return and(etherType, d.combine(masked(src, n.Mask, n.IP), masked(dst, n.Mask, n.IP)))
	}
	if len(n.IP) == net.IPv6len {
		return at(protocols["ip6"], payload+8, payload+24)
	}
	ip := at(protocols["ip"], payload+12, payload+16)
	arp := at(protocols["arp"], payload+14, payload+24)
	rarp := at(protocols["rarp"], payload+14, payload+24)
	switch protocol {
	case "ip":
		return ip
	case "arp":
		return arp
	case "rarp":
		return rarp
	}
	return or(ip, or(arp, rarp))
}

func ethernetHost(d direction, address net.HardwareAddr) predicate {
	return d.combine(equal(6, address), equal(0, address))
}

// ports matches a range of ports: in IPv4 in first fragments only, in IPv6 without extension headers.
func ports(protocol string, d direction, low, high uint16) predicate {
	numbers := map[string][]byte{"tcp": {protocolTCP}, "udp": {protocolUDP}, "sctp": {protocolSCTP},
		"": {protocolTCP, protocolUDP, protocolSCTP}}[protocol]
	ip, ip6 := never, never
	for _, number := range numbers {
		ip = or(ip, octet(payload+9, number))
		ip6 = or(ip6, octet(payload+6, number))
	}
	ip = and(ip, and(unfragmented, d.combine(port4(0, low, high), port4(2, low, high))))
	ip6 = and(ip6, d.combine(port6(0, low, high), port6(2, low, high)))
	return or(and(protocols["ip"], ip), and(protocols["ip6"], ip6))
}

func never(frame) matchResult { return no }

func unfragmented(f frame) matchResult {
	if len(f.data) < payload+8 {
		return beyondEnd
	}
	return resultOf(binary.BigEndian.Uint16(f.data[payload+6:])&0x1fff == 0)
}

func port4(offset int, low, high uint16) predicate {
	return func(f frame) matchResult {
		if len(f.data) <= payload {
			return beyondEnd
		}
		return portAt(f, payload+4*int(f.data[payload]&0xf)+offset, low, high)
	}
}

func port6(offset int, low, high uint16) predicate {
	return func(f frame) matchResult { return portAt(f, payload+ip6Header+offset, low, high) }
}

func portAt(f frame, offset int, low, high uint16) matchResult {
	if len(f.data) < offset+2 {
		return beyondEnd
	}
	port := binary.BigEndian.Uint16(f.data[offset:])
	return resultOf(port >= low && port <= high)
}
