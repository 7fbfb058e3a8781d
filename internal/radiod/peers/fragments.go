package peers

import (
	"encoding/binary"
	"sync/atomic"
)

// A message goes in as many parts as it takes. Each has its number, that of the part, and the number of parts.
const (
	partHeader = 6
	maxParts   = 255
	// assemblies of messages that are under way at a time; the oldest is given up for a new one.
	assemblies = 64
)

// assembly is a message of which parts have come.
type assembly struct {
	number  uint32
	missing int
	parts   [][]byte
}

// assembler puts the parts of a session's messages together.
type assembler struct {
	under [assemblies]*assembly
	next  int
	torn  *atomic.Uint64 // messages given up
}

// partsOf tells in how many parts a message goes where each datagram has the given room.
func partsOf(length, room int) int { return max(1, (length+room-1)/room) }

func putPartHeader(b []byte, number uint32, part, parts int) []byte {
	b = binary.BigEndian.AppendUint32(b, number)
	return append(b, byte(part), byte(parts))
}

// add takes a part, and gives the message once it is whole. What it gives is only valid as long as part is.
func (a *assembler) add(part []byte) (message []byte, ok bool) {
	if len(part) < partHeader {
		return nil, false
	}
	number, index, parts := binary.BigEndian.Uint32(part), int(part[4]), int(part[5])
	body := part[partHeader:]
	if parts == 0 || index >= parts {
		return nil, false
	}
	if parts == 1 {
		return body, true
	}
	m := a.find(number, parts)
	if m == nil || len(m.parts) != parts || m.parts[index] != nil {
		return nil, false
	}
	m.parts[index] = append([]byte{}, body...)
	if m.missing--; m.missing > 0 {
		return nil, false
	}
	for _, p := range m.parts {
		message = append(message, p...)
	}
	a.forget(m)
	return message, true
}

func (a *assembler) find(number uint32, parts int) *assembly {
	for _, m := range a.under {
		if m != nil && m.number == number {
			return m
		}
	}
	if a.under[a.next] != nil {
		a.torn.Add(1)
	}
	m := &assembly{number: number, missing: parts, parts: make([][]byte, parts)}
	a.under[a.next] = m
	a.next = (a.next + 1) % assemblies
	return m
}

func (a *assembler) forget(m *assembly) {
	for i := range a.under {
		if a.under[i] == m {
			a.under[i] = nil
		}
	}
}
