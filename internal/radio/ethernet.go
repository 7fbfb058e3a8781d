package radio

import (
	"fmt"
	"net"
)

// HeaderLength of an Ethernet frame: destination, source, type. A TAP carries no FCS.
const HeaderLength = 14

// MAC is an Ethernet address in the low 48 bits, first octet highest.
type MAC uint64

// multicastBit is the group bit of an address; broadcast has it too.
const multicastBit MAC = 1 << 40

// ParseMAC reads six octets in hexadecimal, such as 02:02:00:00:00:01.
func ParseMAC(text string) (MAC, error) {
	hardware, err := net.ParseMAC(text)
	if err != nil || len(hardware) != 6 {
		return 0, fmt.Errorf("mac %q: want six octets in hexadecimal, such as 02:02:00:00:00:01", text)
	}
	return macOf(hardware), nil
}

func (m MAC) String() string {
	return net.HardwareAddr{byte(m >> 40), byte(m >> 32), byte(m >> 24), byte(m >> 16), byte(m >> 8), byte(m)}.String()
}

// IsMulticast reports whether a frame to m is for all members: multicast or broadcast.
func (m MAC) IsMulticast() bool { return m&multicastBit != 0 }

// destination reads the destination of an Ethernet frame. ok is false if data is shorter than a header.
func destination(data []byte) (m MAC, ok bool) {
	if len(data) < HeaderLength {
		return 0, false
	}
	return macOf(data), true
}

func macOf(b []byte) MAC {
	_ = b[5]
	return MAC(b[0])<<40 | MAC(b[1])<<32 | MAC(b[2])<<24 | MAC(b[3])<<16 | MAC(b[4])<<8 | MAC(b[5])
}
