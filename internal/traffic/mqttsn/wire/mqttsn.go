// Package wire reads and writes the packets of MQTT-SN 1.2 (MQTT For Sensor Networks, Protocol Specification Version 1.2, IBM 2013).
// internal/traffic/mqttsn/client and internal/traffic/mqttsn/gateway implement connections.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Type of a packet (table 3 of the specification).
type Type byte

// Types of packets.
const (
	TypeAdvertise     Type = 0x00
	TypeSearchGW      Type = 0x01
	TypeGWInfo        Type = 0x02
	TypeConnect       Type = 0x04
	TypeConnack       Type = 0x05
	TypeWillTopicReq  Type = 0x06
	TypeWillTopic     Type = 0x07
	TypeWillMsgReq    Type = 0x08
	TypeWillMsg       Type = 0x09
	TypeRegister      Type = 0x0A
	TypeRegack        Type = 0x0B
	TypePublish       Type = 0x0C
	TypePuback        Type = 0x0D
	TypePubcomp       Type = 0x0E
	TypePubrec        Type = 0x0F
	TypePubrel        Type = 0x10
	TypeSubscribe     Type = 0x12
	TypeSuback        Type = 0x13
	TypeUnsubscribe   Type = 0x14
	TypeUnsuback      Type = 0x15
	TypePingreq       Type = 0x16
	TypePingresp      Type = 0x17
	TypeDisconnect    Type = 0x18
	TypeWillTopicUpd  Type = 0x1A
	TypeWillTopicResp Type = 0x1B
	TypeWillMsgUpd    Type = 0x1C
	TypeWillMsgResp   Type = 0x1D
	// TypeForward is that of the forwarder encapsulation (5.5), which contains a packet.
	TypeForward Type = 0xFE
)

var typeNames = map[Type]string{
	TypeAdvertise: "ADVERTISE", TypeSearchGW: "SEARCHGW", TypeGWInfo: "GWINFO", TypeConnect: "CONNECT", TypeConnack: "CONNACK",
	TypeWillTopicReq: "WILLTOPICREQ", TypeWillTopic: "WILLTOPIC", TypeWillMsgReq: "WILLMSGREQ", TypeWillMsg: "WILLMSG",
	TypeRegister: "REGISTER", TypeRegack: "REGACK", TypePublish: "PUBLISH", TypePuback: "PUBACK", TypePubcomp: "PUBCOMP",
	TypePubrec: "PUBREC", TypePubrel: "PUBREL", TypeSubscribe: "SUBSCRIBE", TypeSuback: "SUBACK", TypeUnsubscribe: "UNSUBSCRIBE",
	TypeUnsuback: "UNSUBACK", TypePingreq: "PINGREQ", TypePingresp: "PINGRESP", TypeDisconnect: "DISCONNECT",
	TypeWillTopicUpd: "WILLTOPICUPD", TypeWillTopicResp: "WILLTOPICRESP", TypeWillMsgUpd: "WILLMSGUPD", TypeWillMsgResp: "WILLMSGRESP",
	TypeForward: "forwarder encapsulation",
}

// String returns the type's name in the specification.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("packet type 0x%02x", byte(t))
}

// ReturnCode of an acknowledgement (table 5).
type ReturnCode byte

// Return codes.
const (
	Accepted       ReturnCode = 0x00
	Congestion     ReturnCode = 0x01
	InvalidTopicID ReturnCode = 0x02
	NotSupported   ReturnCode = 0x03
)

// String returns the code's meaning.
func (c ReturnCode) String() string {
	switch c {
	case Accepted:
		return "accepted"
	case Congestion:
		return "rejected: congestion"
	case InvalidTopicID:
		return "rejected: invalid topic id"
	case NotSupported:
		return "rejected: not supported"
	}
	return fmt.Sprintf("return code 0x%02x", byte(c))
}

// TopicKind is the kind of a topic id (TopicIdType of the flags).
type TopicKind byte

// Kinds of topic ids. In SUBSCRIBE and UNSUBSCRIBE the first is a topic's name.
const (
	Registered TopicKind = 0
	Predefined TopicKind = 1
	// Short names have two octets, in place of the id.
	Short TopicKind = 2
)

// Limits of the protocol.
const (
	// MaxPacket is the longest packet that the length field allows.
	MaxPacket = 65535
	// MaxDatagram is the largest content of an IPv4 datagram: 65535 bytes less the headers of IP and UDP.
	MaxDatagram = 65507
	// PublishHeader is the length of a PUBLISH of more than 255 octets without its data.
	PublishHeader = 9
	// MaxClientID is the longest client id that the specification allows.
	MaxClientID = 23
	// protocolID of version 1.2.
	protocolID = 0x01
)

// ErrMalformed is in the chain of every error of Parse and ParseForward.
var ErrMalformed = errors.New("malformed MQTT-SN packet")

// Packet is a pointer to one of the structs in packets.go.
type Packet interface {
	kind() Type
	// body appends all that follows the type.
	body(dst []byte) []byte
	// parse takes all that follows the type.
	parse(body []byte) error
}

// TypeOf returns the type of a packet.
func TypeOf(p Packet) Type { return p.kind() }

// Append appends a packet to dst.
func Append(dst []byte, p Packet) ([]byte, error) {
	if v, ok := p.(interface{ valid() error }); ok {
		if err := v.valid(); err != nil {
			return dst, err
		}
	}
	start := len(dst)
	dst = p.body(append(dst, 0, byte(TypeOf(p))))
	size := len(dst) - start
	if size <= 255 {
		dst[start] = byte(size)
		return dst, nil
	}
	if size += 2; size > MaxPacket {
		return dst[:start], fmt.Errorf("%s of %d bytes: MQTT-SN has at most %d", TypeOf(p), size, MaxPacket)
	}
	dst = append(dst, 0, 0)
	copy(dst[start+4:], dst[start+2:len(dst)-2])
	dst[start], dst[start+3] = 1, byte(TypeOf(p))
	binary.BigEndian.PutUint16(dst[start+1:], uint16(size))
	return dst, nil
}

// header reads length and type, and returns the rest of the packet.
func header(b []byte) (t Type, body, after []byte, err error) {
	size, head := 0, 2
	switch {
	case len(b) < 2:
		return 0, nil, nil, fmt.Errorf("%w: %d octets: want 2 at least", ErrMalformed, len(b))
	case b[0] == 1:
		if len(b) < 4 {
			return 0, nil, nil, fmt.Errorf("%w: %d octets with a length of 3: want 4 at least", ErrMalformed, len(b))
		}
		size, head = int(binary.BigEndian.Uint16(b[1:])), 4
	default:
		size = int(b[0])
	}
	if size < head || size > len(b) {
		return 0, nil, nil, fmt.Errorf("%w: length field says %d, the datagram has %d octets", ErrMalformed, size, len(b))
	}
	return Type(b[head-1]), b[head:size], b[size:], nil
}

// Parse reads a datagram with one packet. Strings and data of the packet alias b.
func Parse(b []byte) (Packet, error) {
	t, body, after, err := header(b)
	if err != nil {
		return nil, err
	}
	if len(after) > 0 {
		return nil, fmt.Errorf("%w: %s is followed by %d octets", ErrMalformed, t, len(after))
	}
	p := empty(t)
	if p == nil {
		return nil, fmt.Errorf("%w: %s is not known", ErrMalformed, t)
	}
	if err := p.parse(body); err != nil {
		return nil, fmt.Errorf("%w: %s of %d octets: %w", ErrMalformed, t, len(b), err)
	}
	return p, nil
}

// empty returns an empty packet of a type; nil for an unknown one.
func empty(t Type) Packet {
	if f, ok := packets[t]; ok {
		return f()
	}
	return nil
}

var packets = map[Type]func() Packet{
	TypeAdvertise: func() Packet { return &Advertise{} }, TypeSearchGW: func() Packet { return &SearchGW{} },
	TypeGWInfo: func() Packet { return &GWInfo{} }, TypeConnect: func() Packet { return &Connect{} },
	TypeConnack: func() Packet { return &Connack{} }, TypeWillTopicReq: func() Packet { return &WillTopicReq{} },
	TypeWillTopic: func() Packet { return &WillTopic{} }, TypeWillMsgReq: func() Packet { return &WillMsgReq{} },
	TypeWillMsg: func() Packet { return &WillMsg{} }, TypeRegister: func() Packet { return &Register{} },
	TypeRegack: func() Packet { return &Regack{} }, TypePublish: func() Packet { return &Publish{} },
	TypePuback: func() Packet { return &Puback{} }, TypePubcomp: func() Packet { return &Pubcomp{} },
	TypePubrec: func() Packet { return &Pubrec{} }, TypePubrel: func() Packet { return &Pubrel{} },
	TypeSubscribe: func() Packet { return &Subscribe{} }, TypeSuback: func() Packet { return &Suback{} },
	TypeUnsubscribe: func() Packet { return &Unsubscribe{} }, TypeUnsuback: func() Packet { return &Unsuback{} },
	TypePingreq: func() Packet { return &Pingreq{} }, TypePingresp: func() Packet { return &Pingresp{} },
	TypeDisconnect: func() Packet { return &Disconnect{} }, TypeWillTopicUpd: func() Packet { return &WillTopicUpd{} },
	TypeWillTopicResp: func() Packet { return &WillTopicResp{} }, TypeWillMsgUpd: func() Packet { return &WillMsgUpd{} },
	TypeWillMsgResp: func() Packet { return &WillMsgResp{} },
}
