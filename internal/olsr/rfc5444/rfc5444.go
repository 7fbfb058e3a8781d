// Package rfc5444 reads and writes the packets of MANET protocols (RFC 5444, "Generalized Mobile Ad Hoc Network
// Packet/Message Format"), with the time TLVs of RFC 5497 and the link metrics of RFC 7181 section 6.
//
// A packet is read in two steps, so that a router can drop a duplicate by its header. Split returns the
// messages, Decode the content of one. IPv4 and IPv6 addresses are supported; a message with others only has
// a header.
package rfc5444

import (
	"errors"
	"net/netip"
)

// Packet flags (RFC 5444 section 5.1).
const (
	packetHasSequence = 0x8
	packetHasTLVs     = 0x4
)

// Message flags (RFC 5444 section 5.2).
const (
	hasOriginator = 0x80
	hasHopLimit   = 0x40
	hasHopCount   = 0x20
	hasSequence   = 0x10
)

// Address block flags (RFC 5444 section 5.3).
const (
	hasHead         = 0x80
	hasFullTail     = 0x40
	hasZeroTail     = 0x20
	hasSinglePrefix = 0x10
	hasMultiPrefix  = 0x08
)

// TLV flags (RFC 5444 section 5.4.1).
const (
	hasExtension   = 0x80
	hasSingleIndex = 0x40
	hasMultiIndex  = 0x20
	hasValue       = 0x10
	hasLongLength  = 0x08
	isMultivalue   = 0x04
)

const (
	messageHeader = 4
	maxSize       = 1<<16 - 1
	// MaxAddresses of one address block.
	MaxAddresses = 255
)

// TLV of a packet or message.
type TLV struct {
	Type, Extension uint8
	Value           []byte
}

// AddressTLV of a block: it holds for the addresses First to Last, by index.
type AddressTLV struct {
	Type, Extension uint8
	First, Last     int
	// Multivalue reports whether each address has its own equal part of Value.
	Multivalue bool
	Value      []byte
}

// At returns the value for the address of that index; covered is false if the TLV does not hold for it.
func (t *AddressTLV) At(index int) (value []byte, covered bool) {
	if index < t.First || index > t.Last {
		return nil, false
	}
	if !t.Multivalue {
		return t.Value, true
	}
	size := len(t.Value) / (t.Last - t.First + 1)
	return t.Value[(index-t.First)*size:][:size], true
}

// AddressBlock with its TLVs. A single address is a prefix of its full length.
type AddressBlock struct {
	Addresses []netip.Prefix
	TLVs      []AddressTLV
}

// Header of a message.
type Header struct {
	Type uint8
	// AddressLength in bytes, 1 to 16.
	AddressLength int
	// Originator is not valid if the message names none.
	Originator netip.Addr
	// The Has fields report which of the following fields are present.
	HasHopLimit, HasHopCount, HasSequence bool
	HopLimit, HopCount                    uint8
	Sequence                              uint16
}

// Message is a header and what follows.
type Message struct {
	Header
	TLVs   []TLV
	Blocks []AddressBlock
}

// TLV returns the value of the first TLV of that type and type extension.
func (m *Message) TLV(kind, extension uint8) (value []byte, there bool) {
	for i := range m.TLVs {
		if t := &m.TLVs[i]; t.Type == kind && t.Extension == extension {
			return t.Value, true
		}
	}
	return nil, false
}

// RawMessage is a message of which only the header has been read.
type RawMessage struct {
	Header
	// Bytes of the complete message, Body those after the header.
	Bytes, Body []byte
}

// Packet as it was split.
type Packet struct {
	HasSequence bool
	Sequence    uint16
	TLVs        []TLV
	Messages    []RawMessage
}

// Errors of reading; all errors wrap one of them.
var (
	ErrTruncated = errors.New("ends within an element")
	ErrMalformed = errors.New("malformed")
)
