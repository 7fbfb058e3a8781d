package pcapng

import (
	"math/rand/v2"
	"testing"
)

func TestTheScannerFindsTheEndOfTheLastCompleteBlockHoweverBytesArrive(t *testing.T) {
	content := AppendSection(nil, "radio0", "a test")
	ends := map[int]uint64{} // frames by the offsets at which blocks end
	first := AppendSection(nil, "radio0", "a test")
	for i := range 20 {
		content = AppendPacket(content, int64(i), i%2 == 0, 100, make([]byte, i))
		ends[len(content)] = uint64(i + 1)
	}
	for cut := len(first); cut <= len(content); cut++ {
		var w BlockScanner
		for at := 0; at < cut; {
			n := min(1+rand.IntN(50), cut-at)
			if _, err := w.Write(content[at : at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		frames, whole := ends[cut]
		whole = whole || cut == len(first)
		if w.Incomplete() == whole || whole && (w.Bytes != int64(cut) || w.Frames != frames) {
			t.Fatalf("cut at %d: torn %v, %d bytes and %d frames whole", cut, w.Incomplete(), w.Bytes, w.Frames)
		}
		if w.Bytes > int64(cut) {
			t.Fatalf("cut at %d: %d bytes whole", cut, w.Bytes)
		}
	}
}

func TestPacketSizeIsWhatAppendPacketAdds(t *testing.T) {
	for kept := range 70 {
		if got := len(AppendPacket(nil, 1, true, 100, make([]byte, kept))); int64(got) != PacketSize(kept) {
			t.Errorf("%d bytes kept: %d bytes added, PacketSize says %d", kept, got, PacketSize(kept))
		}
	}
}

func FuzzWhole(f *testing.F) {
	f.Add(AppendPacket(AppendSection(nil, "radio0", "x"), 5, true, 3, []byte{1, 2, 3}))
	f.Fuzz(func(t *testing.T, content []byte) {
		var w BlockScanner
		_, err := w.Write(content)
		if w.Bytes > int64(len(content)) || err == nil && !w.Incomplete() && w.Bytes != int64(len(content)) {
			t.Fatalf("%d bytes: %d whole, torn %v, %v", len(content), w.Bytes, w.Incomplete(), err)
		}
		var again BlockScanner
		if _, err := again.Write(content[:w.Bytes]); err != nil || again.Incomplete() || again.Frames != w.Frames {
			t.Fatalf("what was found whole is not: %v", err)
		}
	})
}
