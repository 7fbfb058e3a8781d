package link

import (
	"hash/fnv"
	"math"
	"strconv"

	"vignette.dev/vignette/internal/radio"
)

// stream gives random numbers by index. So the n-th frame from a source to a set of destinations has the same
// outcome in every run with the same seed.
type stream uint64

// newStream derives a stream from the network's seed, the source's NEM id, the name of the destination set,
// and the purpose.
func newStream(seed int64, source int, destinations, purpose string) stream {
	h := fnv.New64a()
	for _, part := range []string{strconv.FormatInt(seed, 10), strconv.Itoa(source), destinations, purpose} {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return stream(radio.Mix(h.Sum64()))
}

// streams of a queue: one for each purpose, so that enabling one effect does not change another. The index is
// the frame's place among those offered to the queue.
type streams struct {
	loss, state, jitter, duplicate, duplicateJitter, corrupt, duplicateCorrupt stream
}

func newStreams(seed int64, source int, destinations string) streams {
	of := func(purpose string) stream { return newStream(seed, source, destinations, purpose) }
	return streams{of("loss"), of("state"), of("jitter"), of("duplicate"), of("duplicateJitter"), of("corrupt"), of("duplicateCorrupt")}
}

// uniform is the index-th number of the stream, in [0, 1).
func (s stream) uniform(index uint64) float64 {
	return float64(s.bits(index)) / (1 << 53)
}

// openUniform is the index-th number of the stream, in (0, 1) without both ends.
func (s stream) openUniform(index uint64) float64 {
	return (float64(s.bits(index)>>1) + 0.5) / (1 << 52)
}

// normal is the index-th number of the stream, of the standard normal distribution.
func (s stream) normal(index uint64) float64 {
	return math.Sqrt2 * math.Erfinv(2*s.openUniform(index)-1)
}

// bits is the index-th number of the stream, of 53 bits.
func (s stream) bits(index uint64) uint64 {
	return radio.Mix(uint64(s)+(index+1)*radio.Golden) >> 11
}
