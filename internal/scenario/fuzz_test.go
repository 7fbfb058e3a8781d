package scenario_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"vignette.dev/vignette/internal/scenario"
)

// walk reads a complete file, which may be refused anywhere, but only with a *CorruptError.
func walk(t *testing.T, file []byte) {
	t.Helper()
	var corrupt *scenario.CorruptError
	s, err := scenario.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		if !errors.As(err, &corrupt) {
			t.Fatalf("error is %v: want a *CorruptError", err)
		}
		return
	}
	c := s.NewCursor()
	for range 200 {
		at, more := c.Next()
		if !more {
			break
		}
		if err := c.Seek(at); err != nil {
			if !errors.As(err, &corrupt) {
				t.Fatalf("error is %v: want a *CorruptError", err)
			}
			break
		}
		look(s, c)
	}
	if err := c.Seek(time.Second); err == nil {
		look(s, c)
	}
}

// look reads all values.
func look(s *scenario.Scenario, c *scenario.Cursor) {
	for i := range s.Platforms() {
		c.Position(i)
		c.Velocity(i)
		c.Orientation(i)
		c.AntennaProfile(i)
		for j := range min(8, len(s.Platforms())) {
			c.PathlossAt(i, j, 1)
			c.CommEffect(i, j)
			c.FadingSelection(j, i)
		}
	}
}

func small(t testing.TB) []byte {
	file, _ := compiled(t, scenario.Options{}, func(b *scenario.Builder) {
		for second := range 5 {
			at := time.Duration(second) * time.Second
			must(t, b.Pathloss(at, 1, 2, float64(80+second)))
			must(t, b.Pathloss(at, 2, 1, float64(80+second)))
			must(t, b.Pathloss(at, 3, 2, float64(80-second)))
			must(t, b.CommEffect(at, 3, 2, scenario.CommEffect{LossPercent: float64(second)}))
			must(t, b.PathlossAt(at, 3, 2, 300e6, float64(80-second)))
		}
	})
	return file
}

func FuzzOpen(f *testing.F) {
	f.Add(small(f))
	f.Fuzz(walk)
}

// FuzzContents gets past the checksums: the fuzzer makes an index and a chunk, and a valid file is put around them.
func FuzzContents(f *testing.F) {
	index, chunk := scenario.Contents(small(f))
	f.Add(index, chunk)
	f.Fuzz(func(t *testing.T, index, chunk []byte) {
		walk(t, scenario.Container(index, chunk))
		walk(t, scenario.ContainerOfChunk(chunk))
	})
}
