package live

import (
	"math"
	"slices"
)

// sketch counts values in buckets whose bounds grow by a constant factor, so that quantiles are known to half of it:
// a logarithmic histogram like DDSketch (Masson, Rim and Lee, 2019).
type sketch struct {
	counts []uint32
	count  uint64
	// min and max of the values, within a bucket where some were removed.
	min, max float64
}

const (
	// growth of the bounds: quantiles are within 0.25 %.
	growth = 1.005
	// minSeconds: all smaller values, also negative ones, are in the first bucket.
	minSeconds = 1e-6
	// maxBuckets reach up to 10^6 s.
	maxBuckets = 5600
)

var logGrowth = math.Log(growth)

func bucketOf(seconds float64) int {
	if seconds <= minSeconds {
		return 0
	}
	return min(1+int(math.Log(seconds/minSeconds)/logGrowth), maxBuckets-1)
}

func (s *sketch) add(seconds float64) {
	bucket := bucketOf(seconds)
	if bucket >= len(s.counts) {
		s.counts = append(slices.Grow(s.counts, bucket+64-len(s.counts)), make([]uint32, bucket+1-len(s.counts))...)
	}
	if s.count == 0 {
		s.min, s.max = seconds, seconds
	}
	s.min, s.max = min(s.min, seconds), max(s.max, seconds)
	s.counts[bucket]++
	s.count++
}

// remove subtracts a value that was added.
func (s *sketch) remove(seconds float64) {
	bucket := bucketOf(seconds)
	s.counts[bucket]--
	s.count--
	if s.counts[bucket] > 0 || s.count == 0 {
		return
	}
	if bucket == bucketOf(s.max) {
		s.max = max(middle(s.occupied(bucket, -1)), s.min)
	}
	if bucket == bucketOf(s.min) {
		s.min = min(middle(s.occupied(bucket, 1)), s.max)
	}
}

// occupied is the first bucket with a value, from one on in steps.
func (s *sketch) occupied(bucket, step int) int {
	for s.counts[bucket] == 0 {
		bucket += step
	}
	return bucket
}

// middle of a bucket's bounds.
func middle(bucket int) float64 {
	return minSeconds * math.Exp(max(float64(bucket)-0.5, 0)*logGrowth)
}

// quantile by linear interpolation between the two nearest values, as in the analysis; NaN without values.
func (s *sketch) quantile(q float64) float64 {
	switch {
	case s.count == 0:
		return math.NaN()
	case q <= 0:
		return s.min
	case q >= 1:
		return s.max
	}
	rank := q * float64(s.count-1)
	low := uint64(rank)
	below := s.value(low)
	if low+1 >= s.count {
		return below
	}
	return below + (rank-float64(low))*(s.value(low+1)-below)
}

// value at a rank, from 0, in ascending order.
func (s *sketch) value(rank uint64) float64 {
	var below uint64
	for bucket, n := range s.counts {
		below += uint64(n)
		if below <= rank {
			continue
		}
		if bucket == 0 {
			return min(s.min, minSeconds)
		}
		return min(max(middle(bucket), s.min), s.max)
	}
	return s.max
}
