package rfpipe

import (
	"math"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
)

func TestJitterIsUniformOverItsWidth(t *testing.T) {
	const delay, jitter, frames = 50 * time.Millisecond, 20 * time.Millisecond, 20_000
	for seed := range int64(3) {
		m := Model{config: Config{Seed: seed, Delay: delay, Jitter: jitter}}
		s := &sender{port: &radio.Port{PortOptions: radio.PortOptions{NEM: 3}}}
		values := make([]float64, frames)
		for i := range values {
			b := burst{sender: s}
			b.Index = uint64(i)
			values[i] = float64(m.delay(&b)-int64(delay))/float64(jitter) + 0.5
		}
		slices.Sort(values)
		if values[0] < 0 || values[frames-1] > 1 {
			t.Fatalf("jitter from %v to %v of its width; want 0 to 1", values[0], values[frames-1])
		}
		distance := 0.0
		for i, v := range values {
			distance = max(distance, v-float64(i)/frames, float64(i+1)/frames-v)
		}
		if statistic := distance * math.Sqrt(frames); statistic > 1.628 { // at 1 %
			t.Errorf("seed %d: Kolmogorov-Smirnov statistic %.2f; want at most 1.628", seed, statistic)
		}
	}
}
