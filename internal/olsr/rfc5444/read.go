package rfc5444

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// cursor reads elements from a byte slice. After a truncated element all later ones fail too.
type cursor struct {
	b    []byte
	fail bool
}

func (c *cursor) bytes(n int) []byte {
	if c.fail || n > len(c.b) {
		c.fail = true
		return nil
	}
	taken := c.b[:n:n]
	c.b = c.b[n:]
	return taken
}

func (c *cursor) uint8() uint8 {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uint16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// Split reads a packet's header and those of its messages into p, whose slices it reuses. The result refers
// to packet. On an error p has the messages before the bad one.
func Split(packet []byte, p *Packet) error {
	*p = Packet{TLVs: p.TLVs[:0], Messages: p.Messages[:0]}
	c := cursor{b: packet}
	first := c.uint8()
	if version := first >> 4; version != 0 {
		return fmt.Errorf("packet of version %d, not 0: %w", version, ErrMalformed)
	}
	if p.HasSequence = first&packetHasSequence != 0; p.HasSequence {
		p.Sequence = c.uint16()
	}
	if first&packetHasTLVs != 0 {
		var err error
		if p.TLVs, err = readTLVs(&c, p.TLVs); err != nil {
			return fmt.Errorf("packet: %w", err)
		}
	}
	for !c.fail && len(c.b) > 0 {
		m, err := readHeader(&c)
		if err != nil {
			return fmt.Errorf("message %d: %w", len(p.Messages)+1, err)
		}
		p.Messages = append(p.Messages, m)
	}
	if c.fail {
		return fmt.Errorf("packet of %d bytes: %w", len(packet), ErrTruncated)
	}
	return nil
}

func readHeader(c *cursor) (RawMessage, error) {
	start := c.b
	m := RawMessage{}
	m.Type = c.uint8()
	flags := c.uint8()
	m.AddressLength = int(flags&0xf) + 1
	size := int(c.uint16())
	if c.fail || size > len(start) {
		return m, ErrTruncated
	}
	if size < messageHeader {
		return m, fmt.Errorf("size of %d bytes, less than its header: %w", size, ErrMalformed)
	}
	m.Bytes = start[:size:size]
	c.b = start[size:]
	body := cursor{b: m.Bytes[messageHeader:]}
	if flags&hasOriginator != 0 {
		m.Originator, _ = netip.AddrFromSlice(body.bytes(m.AddressLength))
	}
	if m.HasHopLimit = flags&hasHopLimit != 0; m.HasHopLimit {
		m.HopLimit = body.uint8()
	}
	if m.HasHopCount = flags&hasHopCount != 0; m.HasHopCount {
		m.HopCount = body.uint8()
	}
	if m.HasSequence = flags&hasSequence != 0; m.HasSequence {
		m.Sequence = body.uint16()
	}
	if body.fail {
		return m, ErrTruncated
	}
	m.Body = body.b
	return m, nil
}

// Forwarded returns a copy of the message with the hop limit decreased and the hop count increased.
func (m *RawMessage) Forwarded() []byte {
	b := append([]byte(nil), m.Bytes...)
	at := messageHeader
	if b[1]&hasOriginator != 0 {
		at += m.AddressLength
	}
	if m.HasHopLimit {
		b[at]--
		at++
	}
	if m.HasHopCount {
		b[at]++
	}
	return b
}

// Decode reads the message after the header, and reuses the slices of into. Values refer to the packet.
func (m *RawMessage) Decode(into *Message) error {
	into.Header = m.Header
	into.TLVs, into.Blocks = into.TLVs[:0], into.Blocks[:0]
	if m.AddressLength != 4 && m.AddressLength != 16 {
		return fmt.Errorf("addresses of %d bytes, not 4 or 16: %w", m.AddressLength, ErrMalformed)
	}
	c := cursor{b: m.Body}
	var err error
	if into.TLVs, err = readTLVs(&c, into.TLVs); err != nil {
		return err
	}
	for len(c.b) > 0 {
		// A previous block keeps its slices.
		if n := len(into.Blocks); n < cap(into.Blocks) {
			into.Blocks = into.Blocks[:n+1]
		} else {
			into.Blocks = append(into.Blocks, AddressBlock{})
		}
		block := &into.Blocks[len(into.Blocks)-1]
		if err := readBlock(&c, m.AddressLength, block); err != nil {
			into.Blocks = into.Blocks[:len(into.Blocks)-1]
			return fmt.Errorf("address block %d: %w", len(into.Blocks)+1, err)
		}
	}
	return nil
}

// tlvBlock takes a TLV block's content (RFC 5444 section 5.4).
func tlvBlock(c *cursor) (cursor, error) {
	size := int(c.uint16())
	content := c.bytes(size)
	if c.fail {
		return cursor{}, fmt.Errorf("TLV block of %d bytes: %w", size, ErrTruncated)
	}
	return cursor{b: content}, nil
}

func readTLVs(c *cursor, tlvs []TLV) ([]TLV, error) {
	block, err := tlvBlock(c)
	if err != nil {
		return tlvs, err
	}
	for len(block.b) > 0 {
		t, flags, err := readTLV(&block, 0)
		if err != nil {
			return tlvs, err
		}
		if flags&(hasSingleIndex|hasMultiIndex|isMultivalue) != 0 {
			return tlvs, fmt.Errorf("TLV %d has an index, but no address: %w", t.Type, ErrMalformed)
		}
		tlvs = append(tlvs, TLV{Type: t.Type, Extension: t.Extension, Value: t.Value})
	}
	return tlvs, nil
}

// readTLV reads a TLV (RFC 5444 section 5.4.1) of a block with that many addresses.
func readTLV(c *cursor, addresses int) (AddressTLV, uint8, error) {
	t := AddressTLV{Type: c.uint8(), Last: addresses - 1}
	flags := c.uint8()
	if flags&hasExtension != 0 {
		t.Extension = c.uint8()
	}
	switch flags & (hasSingleIndex | hasMultiIndex) {
	case hasSingleIndex:
		t.First = int(c.uint8())
		t.Last = t.First
	case hasMultiIndex:
		t.First = int(c.uint8())
		t.Last = int(c.uint8())
	case hasSingleIndex | hasMultiIndex:
		return t, flags, fmt.Errorf("TLV %d has both kinds of index: %w", t.Type, ErrMalformed)
	}
	t.Multivalue = flags&isMultivalue != 0
	switch {
	case flags&hasValue == 0 && (flags&hasLongLength != 0 || t.Multivalue):
		return t, flags, fmt.Errorf("TLV %d has a length, but no value: %w", t.Type, ErrMalformed)
	case flags&hasLongLength != 0:
		t.Value = c.bytes(int(c.uint16()))
	case flags&hasValue != 0:
		t.Value = c.bytes(int(c.uint8()))
	}
	if c.fail {
		return t, flags, fmt.Errorf("TLV %d: %w", t.Type, ErrTruncated)
	}
	return t, flags, nil
}

func readBlock(c *cursor, length int, block *AddressBlock) error {
	var err error
	if block.Addresses, err = readAddresses(c, length, block.Addresses[:0]); err != nil {
		return err
	}
	block.TLVs = block.TLVs[:0]
	tlvs, err := tlvBlock(c)
	if err != nil {
		return err
	}
	for len(tlvs.b) > 0 {
		t, _, err := readTLV(&tlvs, len(block.Addresses))
		switch {
		case err != nil:
			return err
		case t.First > t.Last || t.Last >= len(block.Addresses):
			return fmt.Errorf("TLV %d is of addresses %d to %d of %d: %w", t.Type, t.First, t.Last, len(block.Addresses), ErrMalformed)
		case t.Multivalue && len(t.Value)%(t.Last-t.First+1) != 0:
			return fmt.Errorf("TLV %d has %d bytes for %d addresses: %w", t.Type, len(t.Value), t.Last-t.First+1, ErrMalformed)
		}
		block.TLVs = append(block.TLVs, t)
	}
	return nil
}

// readAddresses of a block (RFC 5444 section 5.3).
func readAddresses(c *cursor, length int, addresses []netip.Prefix) ([]netip.Prefix, error) {
	count := int(c.uint8())
	flags := c.uint8()
	var address [16]byte
	head, tail := 0, 0
	if flags&hasHead != 0 {
		head = copy(address[:], c.bytes(int(c.uint8())))
	}
	switch flags & (hasFullTail | hasZeroTail) {
	case hasFullTail:
		tail = int(c.uint8())
		if bytes := c.bytes(tail); tail <= length {
			copy(address[length-tail:length], bytes)
		}
	case hasZeroTail:
		tail = int(c.uint8())
	case hasFullTail | hasZeroTail:
		return addresses, fmt.Errorf("both kinds of tail: %w", ErrMalformed)
	}
	middle := length - head - tail
	if count == 0 || middle < 0 || flags&(hasSinglePrefix|hasMultiPrefix) == hasSinglePrefix|hasMultiPrefix {
		return addresses, fmt.Errorf("%d addresses, head %d, tail %d bytes, flags %#02x: %w", count, head, tail, flags, ErrMalformed)
	}
	middles := c.bytes(count * middle)
	prefixes := c.bytes(prefixLengths(flags, count))
	if c.fail {
		return addresses, ErrTruncated
	}
	for i := range count {
		copy(address[head:head+middle], middles[i*middle:])
		bits := 8 * length
		if len(prefixes) > 0 {
			bits = int(prefixes[min(i, len(prefixes)-1)])
		}
		if bits > 8*length {
			return addresses, fmt.Errorf("prefix of %d bits: %w", bits, ErrMalformed)
		}
		whole, _ := netip.AddrFromSlice(address[:length])
		addresses = append(addresses, netip.PrefixFrom(whole, bits))
	}
	return addresses, nil
}

func prefixLengths(flags uint8, count int) int {
	switch {
	case flags&hasSinglePrefix != 0:
		return 1
	case flags&hasMultiPrefix != 0:
		return count
	}
	return 0
}
