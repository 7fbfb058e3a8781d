package wire

import "fmt"

// Forward is the forwarder encapsulation (5.5): a packet with the wireless address of its source or destination node.
type Forward struct {
	// Radius of the broadcast in the wireless network, 0 to 3; 0 is the whole network.
	Radius byte
	// Node is the wireless node's address in that network's form; at most 252 octets.
	Node []byte
	// Packet is the encapsulated packet.
	Packet []byte
}

const forwardHeader = 3

// AppendForward appends an encapsulation to dst.
func AppendForward(dst []byte, f Forward) ([]byte, error) {
	if len(f.Node) > 255-forwardHeader {
		return dst, fmt.Errorf("wireless node id has %d octets: the encapsulation has at most %d", len(f.Node), 255-forwardHeader)
	}
	dst = append(dst, byte(forwardHeader+len(f.Node)), byte(TypeForward), f.Radius&3)
	return append(append(dst, f.Node...), f.Packet...), nil
}

// IsForward reports whether a datagram is an encapsulation.
func IsForward(b []byte) bool {
	t, _, _, err := header(b)
	return err == nil && t == TypeForward
}

// ParseForward reads an encapsulation, whose length field ends before the packet inside. The result aliases b.
func ParseForward(b []byte) (Forward, error) {
	t, body, packet, err := header(b)
	switch {
	case err != nil:
		return Forward{}, err
	case t != TypeForward:
		return Forward{}, fmt.Errorf("%w: %s: want a forwarder encapsulation", ErrMalformed, t)
	case len(body) < 1:
		return Forward{}, fmt.Errorf("%w: %s without a control octet", ErrMalformed, t)
	}
	return Forward{Radius: body[0] & 3, Node: body[1:], Packet: packet}, nil
}
