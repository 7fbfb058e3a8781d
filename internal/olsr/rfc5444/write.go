package rfc5444

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// AppendPacketHeader begins a packet without TLVs; messages follow it.
func AppendPacketHeader(b []byte, sequence uint16, withSequence bool) []byte {
	if !withSequence {
		return append(b, 0)
	}
	return binary.BigEndian.AppendUint16(append(b, packetHasSequence), sequence)
}

// Append appends the message. An error says what cannot be written.
func (m *Message) Append(b []byte) ([]byte, error) {
	if m.AddressLength < 1 || m.AddressLength > 16 {
		return b, fmt.Errorf("address length %d is not 1 to 16", m.AddressLength)
	}
	start := len(b)
	b = m.appendHeader(b)
	at := len(b)
	b = append(b, 0, 0)
	for _, t := range m.TLVs {
		b = appendTLV(b, AddressTLV{Type: t.Type, Extension: t.Extension, Value: t.Value, Last: -1}, 0)
	}
	if len(b)-start > maxSize {
		return b[:start], fmt.Errorf("message of %d bytes is longer than %d", len(b)-start, maxSize)
	}
	binary.BigEndian.PutUint16(b[at:], uint16(len(b)-at-2))
	for i := range m.Blocks {
		var err error
		if b, err = m.Blocks[i].append(b, m.AddressLength); err != nil {
			return b[:start], fmt.Errorf("address block %d: %w", i+1, err)
		}
		if len(b)-start > maxSize {
			return b[:start], fmt.Errorf("message of %d bytes is longer than %d", len(b)-start, maxSize)
		}
	}
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return b, nil
}

func (m *Message) appendHeader(b []byte) []byte {
	flags := uint8(m.AddressLength - 1)
	set := func(flag uint8, there bool) {
		if there {
			flags |= flag
		}
	}
	set(hasOriginator, m.Originator.IsValid())
	set(hasHopLimit, m.HasHopLimit)
	set(hasHopCount, m.HasHopCount)
	set(hasSequence, m.HasSequence)
	b = append(b, m.Type, flags, 0, 0)
	b = append(b, m.Originator.AsSlice()...)
	if m.HasHopLimit {
		b = append(b, m.HopLimit)
	}
	if m.HasHopCount {
		b = append(b, m.HopCount)
	}
	if m.HasSequence {
		b = binary.BigEndian.AppendUint16(b, m.Sequence)
	}
	return b
}

// appendTLV appends a TLV of a block with that many addresses.
func appendTLV(b []byte, t AddressTLV, addresses int) []byte {
	at := len(b) + 1
	b = append(b, t.Type, 0)
	flags := uint8(0)
	if t.Extension != 0 {
		flags |= hasExtension
		b = append(b, t.Extension)
	}
	switch {
	case t.First == 0 && t.Last == addresses-1:
	case t.First == t.Last:
		flags |= hasSingleIndex
		b = append(b, uint8(t.First))
	default:
		flags |= hasMultiIndex
		b = append(b, uint8(t.First), uint8(t.Last))
	}
	if len(t.Value) > 0 || t.Multivalue {
		flags |= hasValue
		if t.Multivalue {
			flags |= isMultivalue
		}
		if len(t.Value) > 255 {
			flags |= hasLongLength
			b = binary.BigEndian.AppendUint16(b, uint16(len(t.Value)))
		} else {
			b = append(b, uint8(len(t.Value)))
		}
		b = append(b, t.Value...)
	}
	b[at] = flags
	return b
}

func (a *AddressBlock) append(b []byte, length int) ([]byte, error) {
	if n := len(a.Addresses); n == 0 || n > MaxAddresses {
		return b, fmt.Errorf("%d addresses, not 1 to %d", n, MaxAddresses)
	}
	for _, p := range a.Addresses {
		if !p.IsValid() || p.Addr().BitLen() != 8*length {
			return b, fmt.Errorf("%v is not an address of %d bytes", p, length)
		}
	}
	b = a.appendAddresses(b, length)
	at := len(b)
	b = append(b, 0, 0)
	for _, t := range a.TLVs {
		if t.First < 0 || t.First > t.Last || t.Last >= len(a.Addresses) || len(t.Value) > maxSize {
			return b, fmt.Errorf("TLV %d with %d bytes is of addresses %d to %d of %d", t.Type, len(t.Value), t.First, t.Last, len(a.Addresses))
		}
		b = appendTLV(b, t, len(a.Addresses))
	}
	if len(b)-at-2 > maxSize {
		return b, fmt.Errorf("TLVs of %d bytes are longer than %d", len(b)-at-2, maxSize)
	}
	binary.BigEndian.PutUint16(b[at:], uint16(len(b)-at-2))
	return b, nil
}

// appendAddresses appends addresses with their common head, and common zeros at the tail, only once.
func (a *AddressBlock) appendAddresses(b []byte, length int) []byte {
	head, tail := length, length
	first := a.Addresses[0].Addr().As16()
	from := 16 - length
	single := true
	whole := true
	for _, p := range a.Addresses {
		bytes := p.Addr().As16()
		head = min(head, common(first[from:], bytes[from:]))
		tail = min(tail, zeros(bytes[from:]))
		single = single && p.Bits() == a.Addresses[0].Bits()
		whole = whole && p.Bits() == 8*length
	}
	// A head or tail costs a byte for its length.
	if head > length-1 {
		head = length - 1
	}
	if tail = min(tail, length-head); tail < 2 {
		tail = 0
	}
	if head == 0 || len(a.Addresses) == 1 {
		head = 0
	}
	flags := uint8(0)
	at := len(b) + 1
	b = append(b, uint8(len(a.Addresses)), 0)
	if head > 0 {
		flags |= hasHead
		b = append(append(b, uint8(head)), first[from:from+head]...)
	}
	if tail > 0 {
		flags |= hasZeroTail
		b = append(b, uint8(tail))
	}
	for _, p := range a.Addresses {
		bytes := p.Addr().As16()
		b = append(b, bytes[from+head:16-tail]...)
	}
	switch {
	case whole:
	case single:
		flags |= hasSinglePrefix
		b = append(b, uint8(a.Addresses[0].Bits()))
	default:
		flags |= hasMultiPrefix
		for _, p := range a.Addresses {
			b = append(b, uint8(p.Bits()))
		}
	}
	b[at] = flags
	return b
}

func common(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

func zeros(a []byte) int {
	for i := range a {
		if a[len(a)-1-i] != 0 {
			return i
		}
	}
	return len(a)
}

// Attribute of one address: a TLV that holds for it.
type Attribute struct {
	Type, Extension uint8
	Value           []byte
}

// Entry is an address with its attributes.
type Entry struct {
	Address    netip.Prefix
	Attributes []Attribute
}

// Blocks puts entries into as few address blocks and TLVs as their order allows. Successive entries with an
// attribute share one TLV. TLVs share the values of the entries.
func Blocks(entries []Entry) []AddressBlock {
	var blocks []AddressBlock
	for len(entries) > 0 {
		n := min(len(entries), MaxAddresses)
		blocks = append(blocks, block(entries[:n]))
		entries = entries[n:]
	}
	return blocks
}

// key of an attribute within an entry; an entry may have several of one type (RFC 7181's link metrics).
type key struct {
	kind, extension uint8
	nth             int
}

func (e *Entry) find(k key) ([]byte, bool) {
	for _, a := range e.Attributes {
		if a.Type != k.kind || a.Extension != k.extension {
			continue
		}
		if k.nth == 0 {
			return a.Value, true
		}
		k.nth--
	}
	return nil, false
}

func keys(entries []Entry) (all []key) {
	for i := range entries {
		attributes := entries[i].Attributes
		for n, a := range attributes {
			k := key{kind: a.Type, extension: a.Extension}
			for _, before := range attributes[:n] {
				if before.Type == a.Type && before.Extension == a.Extension {
					k.nth++
				}
			}
			if !slices.Contains(all, k) {
				all = append(all, k)
			}
		}
	}
	return all
}

func block(entries []Entry) AddressBlock {
	b := AddressBlock{Addresses: make([]netip.Prefix, len(entries))}
	for i := range entries {
		b.Addresses[i] = entries[i].Address
	}
	for _, k := range keys(entries) {
		for i := 0; i < len(entries); {
			value, there := entries[i].find(k)
			if !there {
				i++
				continue
			}
			t := row(entries, i, k, value)
			b.TLVs = append(b.TLVs, t)
			i = t.Last + 1
		}
	}
	return b
}

// row returns the TLV of successive entries from first that have an attribute with values of equal length.
func row(entries []Entry, first int, k key, value []byte) AddressTLV {
	t := AddressTLV{Type: k.kind, Extension: k.extension, First: first, Last: first, Value: value}
	for i := first + 1; i < len(entries); i++ {
		next, there := entries[i].find(k)
		if !there || len(next) != len(value) {
			break
		}
		t.Multivalue = t.Multivalue || string(next) != string(value)
		t.Last = i
	}
	if t.Multivalue {
		t.Value = make([]byte, 0, len(value)*(t.Last-first+1))
		for i := first; i <= t.Last; i++ {
			next, _ := entries[i].find(k)
			t.Value = append(t.Value, next...)
		}
	}
	return t
}
