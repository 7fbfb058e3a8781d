package peers

import "encoding/binary"

// A message is sent in parts. Each has the message's number, its own, and the number of parts.
const (
	partHeader = 6
	maxParts   = 255
	// assemblies bounds the incomplete messages; a new one replaces the oldest.
	assemblies = 64
)

// assembly is an incomplete message.
type assembly struct {
	number  uint32
	missing int
	parts   [][]byte
}

// assembler puts the parts of a session's messages together.
type assembler struct {
	pending [assemblies]*assembly
	next    int
}

// partsOf returns the number of parts of a message, for datagrams with the given room.
func partsOf(length, room int) int { return max(1, (length+room-1)/room) }

func putPartHeader(b []byte, number uint32, part, parts int) []byte {
	b = binary.BigEndian.AppendUint32(b, number)
	return append(b, byte(part), byte(parts))
}

// add takes a part, and returns the message once it is complete. The message may be part of the argument's
// memory.
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
	for _, m := range a.pending {
		if m != nil && m.number == number {
			return m
		}
	}
	m := &assembly{number: number, missing: parts, parts: make([][]byte, parts)}
	a.pending[a.next] = m
	a.next = (a.next + 1) % assemblies
	return m
}

func (a *assembler) forget(m *assembly) {
	for i := range a.pending {
		if a.pending[i] == m {
			a.pending[i] = nil
		}
	}
}
