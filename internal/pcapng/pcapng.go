// Package pcapng writes and checks the blocks of radiod's captures (draft-ietf-opsawg-pcapng). They are
// sections with one Ethernet interface and nanosecond timestamps, and frames with their direction. A capture
// file may have several sections. gopacket's writer depends on its decoders of every protocol. It writes to a
// stream instead of making complete blocks, which keep an archive readable.
package pcapng

import (
	"encoding/binary"
	"fmt"
)

// Block types, options and their values.
const (
	sectionBlock   = 0x0A0D0D0A
	interfaceBlock = 1
	packetBlock    = 6

	byteOrderMagic    = 0x1A2B3C4D
	linkEthernet      = 1
	optionEnd         = 0
	optionName        = 2 // of an interface
	optionFlags       = 2 // of a packet
	optionDescription = 3
	optionProgram     = 4
	optionResolution  = 9
	nanoseconds       = 9 // 10^-9 s

	flagInbound, flagOutbound = 1, 2

	// packetOverhead of a frame in a file, without padding: block header, times and lengths, flags, end, trailer.
	packetOverhead = 28 + 12 + 4
	minimumBlock   = 12
	maximumBlock   = 1 << 20
)

func appendOption(b []byte, code uint16, value []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return pad(append(b, value...), len(value))
}

func pad(b []byte, length int) []byte {
	for ; length%4 != 0; length++ {
		b = append(b, 0)
	}
	return b
}

// beginBlock and endBlock put a block's length before and after it.
func beginBlock(b []byte, kind uint32) []byte {
	return append(binary.LittleEndian.AppendUint32(b, kind), 0, 0, 0, 0)
}

func endBlock(b []byte, start int) []byte {
	length := uint32(len(b) - start + 4)
	binary.LittleEndian.PutUint32(b[start+4:], length)
	return binary.LittleEndian.AppendUint32(b, length)
}

// SnapLength of every interface: libpcap requires the same in all sections, however much of a frame is kept.
const SnapLength = 262144

// AppendSection begins a section with one Ethernet interface and timestamps in nanoseconds.
func AppendSection(b []byte, name, description string) []byte {
	start := len(b)
	b = beginBlock(b, sectionBlock)
	b = binary.LittleEndian.AppendUint32(b, byteOrderMagic)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, ^uint64(0)) // the section's length is not known yet
	b = appendOption(b, optionProgram, []byte("vignette radiod"))
	b = endBlock(appendOption(b, optionEnd, nil), start)
	start = len(b)
	b = beginBlock(b, interfaceBlock)
	b = binary.LittleEndian.AppendUint16(b, linkEthernet)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, SnapLength)
	b = appendOption(b, optionName, []byte(name))
	b = appendOption(b, optionDescription, []byte(description))
	b = appendOption(b, optionResolution, []byte{nanoseconds})
	return endBlock(appendOption(b, optionEnd, nil), start)
}

// AppendPacket adds a frame, of which data is the beginning and wireLength the length; out reports whether
// the node sent it. The timestamp is in nanoseconds since the Unix epoch.
func AppendPacket(b []byte, realtimeNanoseconds int64, out bool, wireLength int, data []byte) []byte {
	start := len(b)
	b = beginBlock(b, packetBlock)
	b = binary.LittleEndian.AppendUint32(b, 0) // the section's only interface
	b = binary.LittleEndian.AppendUint32(b, uint32(uint64(realtimeNanoseconds)>>32))
	b = binary.LittleEndian.AppendUint32(b, uint32(realtimeNanoseconds))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	b = binary.LittleEndian.AppendUint32(b, uint32(wireLength))
	b = pad(append(b, data...), len(data))
	b = binary.LittleEndian.AppendUint32(b, optionFlags|4<<16)
	flags := uint32(flagInbound)
	if out {
		flags = flagOutbound
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint32(b, optionEnd)
	return endBlock(b, start)
}

// PacketSize is the number of bytes that AppendPacket adds for a frame with that many bytes kept.
func PacketSize(kept int) int64 { return packetOverhead + int64(kept+3)&^3 }

// BlockScanner follows the blocks of a capture as its bytes arrive, and knows where the last complete one ended.
type BlockScanner struct {
	// Bytes of complete blocks, Frames and FrameBytes in them.
	Bytes              int64
	Frames, FrameBytes uint64

	head [24]byte
	have int64 // bytes of the block that has begun
	err  error
}

// Write implements io.Writer; it fails if the bytes are not blocks of this package.
func (w *BlockScanner) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0 && w.err == nil; {
		n := 0
		if w.have < int64(len(w.head)) {
			n = copy(w.head[w.have:min(int64(len(w.head)), max(w.length(), 8))], rest)
		} else {
			n = int(min(int64(len(rest)), w.length()-w.have))
		}
		w.have += int64(n)
		rest = rest[n:]
		w.check()
	}
	return len(b), w.err
}

// length of the current block, or 0 while it is not known.
func (w *BlockScanner) length() int64 {
	if w.have < 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(w.head[4:]))
}

func (w *BlockScanner) check() {
	length := w.length()
	switch {
	case w.have < 8:
	case length < minimumBlock || length > maximumBlock || length%4 != 0:
		w.err = fmt.Errorf("block at offset %d: its length is %d, want 12 to %d and a multiple of 4", w.Bytes, length, maximumBlock)
	case w.have == length:
		if binary.LittleEndian.Uint32(w.head[:]) == packetBlock && length >= packetOverhead {
			w.Frames++
			w.FrameBytes += uint64(binary.LittleEndian.Uint32(w.head[20:]))
		}
		w.Bytes += length
		w.have = 0
	}
}

// Incomplete reports whether the last block is incomplete, or the bytes were no capture.
func (w *BlockScanner) Incomplete() bool { return w.have > 0 || w.err != nil }
