package tdma

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A frame that comes at a random time waits for its node's next slot, uniformly from 0 to a frame's length.
// It arrives as that slot ends.
func TestTheAccessDelayIsUniformFromOneSlotToAFrameAndASlot(t *testing.T) {
	const frames = 2000
	slot, length := 10*time.Millisecond, 40*time.Millisecond
	s := newSimulation(t, 4, func(c *Config) { c.Schedule = schedule(t, 4, milliseconds(4, slot), 1e6) })
	random := rand.New(rand.NewPCG(1, 2))
	s.pass(time.Second)
	for i := range frames {
		s.pass(100*time.Millisecond + time.Duration(random.Int64N(int64(length))))
		s.send(i%4, everybody, 0, uint64(i), 900)
	}
	s.pass(time.Second)
	var delays []float64
	for _, a := range s.received[s.ports[0]] {
		delays = append(delays, float64(a.at-a.sent))
	}
	checkUniform(t, delays, float64(slot), float64(slot+length))
	lowest, highest := slices.Min(delays), slices.Max(delays)
	t.Logf("%d frames: delay from %.2f to %.2f ms, mean %.2f", len(delays), lowest/1e6, highest/1e6, mean(delays)/1e6)
}

// checkUniform is the Kolmogorov-Smirnov test at a significance of 1 %.
func checkUniform(t *testing.T, values []float64, low, high float64) {
	t.Helper()
	slices.Sort(values)
	n, distance := float64(len(values)), 0.0
	for i, v := range values {
		expected := (v - low) / (high - low)
		distance = max(distance, expected-float64(i)/n, float64(i+1)/n-expected)
	}
	if critical := 1.628 / math.Sqrt(n); distance > critical || len(values) == 0 {
		t.Errorf("%d values lie %.4f away from a uniform distribution from %g to %g; want at most %.4f", len(values), distance, low, high, critical)
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
