package framering

import (
	"bytes"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"
)

func bytesOf(size int) []byte { return bytes.Repeat([]byte{byte(size)}, size) }

func ringOf(t *testing.T, bytes int) *Ring {
	t.Helper()
	r, err := New(filepath.Join(t.TempDir(), "frames"), bytes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// FuzzRing holds the ring against a plain queue, whatever lengths come and whenever it is drained.
func FuzzRing(f *testing.F) {
	f.Add([]byte{1, 200, 0, 255, 3, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		r := ringOf(t, 4096)
		var want [][]byte
		for i, b := range script {
			if b == 0 {
				err := r.Drain(r.Head.Load(), math.MaxUint64, func(d Frame) {
					if len(want) == 0 || !bytes.Equal(d.Data, want[0]) || d.WireLength != len(want[0]) || d.Out != (len(d.Data)%2 == 0) {
						t.Fatalf("frame % x comes out of turn", d.Data)
					}
					want = want[1:]
				})
				r.Free()
				if err != nil || len(want) > 0 {
					t.Fatalf("%d frames stay in a ring that was drained, %v", len(want), err)
				}
				continue
			}
			frame := bytes.Repeat([]byte{byte(i)}, int(b)*4)
			if r.Push(uint32(i%MaxTaps), len(frame)%2 == 0, int64(i), frame, len(frame)) {
				want = append(want, frame)
			} else if len(want) == 0 {
				t.Fatalf("no room for %d bytes in an empty ring", len(frame))
			}
		}
	})
}

func TestTheRingIsSafeForOneWriterAndOneReader(t *testing.T) {
	r := ringOf(t, 8192)
	const frames = 20000
	var got []int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := uint32(0); i < frames; {
			if r.Push(0, true, int64(i), bytesOf(int(60+i%300)), int(60+i%300)) {
				i++
			}
		}
	}()
	for len(got) < frames {
		err := r.Drain(r.Head.Load(), 4096, func(d Frame) {
			if !bytes.Equal(d.Data, bytesOf(int(60+d.Stamp%300))) {
				t.Errorf("frame %d is not as it was", d.Stamp)
			}
			got = append(got, d.Stamp)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Free()
	}
	<-done
	if !slices.IsSorted(got) || len(maps.Collect(slices.All(got))) != frames {
		t.Errorf("%d frames, sorted %v", len(got), slices.IsSorted(got))
	}
}
