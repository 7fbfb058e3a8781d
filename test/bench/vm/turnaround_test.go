package main

import (
	"encoding/binary"
	"testing"

	"vignette.dev/vignette/internal/pcapng"
)

// segment is a frame with a TCP segment that carries something, and padding as Ethernet may have.
func segment(carried string) []byte {
	frame := make([]byte, 14+20+20, 100)
	frame[12], frame[14], frame[23], frame[14+20+12] = 8, 0x45, 6, 5<<4
	binary.BigEndian.PutUint16(frame[16:], uint16(20+20+len(carried))) //nolint:gosec // as long as the test wants
	return append(append(frame, carried...), 0, 0)
}

func TestStampsAreThoseOfTheFirstFrameThatCarriesSomethingEachWay(t *testing.T) {
	capture := pcapng.AppendSection(nil, "vhf", "")
	for _, f := range []struct {
		at      int64
		out     bool
		carried string
	}{{1 << 40, true, "a"}, {2 << 40, false, "a"}, {3 << 40, false, "a"}, {4 << 40, false, "bc"}, {5 << 40, true, ""}} {
		frame := segment(f.carried)
		capture = pcapng.AppendPacket(capture, f.at, f.out, len(frame), frame)
	}
	capture = pcapng.AppendPacket(capture, 6<<40, true, 20, make([]byte, 20)) // no TCP
	s := stampsIn(append(capture, 6, 0, 0))                                   // torn
	if len(s.out) != 1 || len(s.in) != 2 || s.out["a"] != 1<<40 || s.in["a"] != 2<<40 || s.in["bc"] != 4<<40 {
		t.Errorf("stamps %+v; want a out at 1, a in at 2 and bc in at 4 times 2^40", s)
	}
}
