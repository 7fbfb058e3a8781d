package link

import (
	"hash/fnv"
	"strconv"
)

// stream gives random numbers by index, so that the n-th frame from a source to a set of
// destinations meets the same fate in every run with the same seed, whatever else happens.
type stream uint64

// newStream of a network's seed, the source's NEM id and the name of the destination set.
func newStream(seed int64, source int, destinations string) stream {
	h := fnv.New64a()
	for _, part := range []string{strconv.FormatInt(seed, 10), strconv.Itoa(source), destinations} {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return stream(mix(h.Sum64()))
}

// uniform is the index-th number of the stream, in [0, 1).
func (s stream) uniform(index uint64) float64 {
	const golden = 0x9e3779b97f4a7c15
	return float64(mix(uint64(s)+(index+1)*golden)>>11) / (1 << 53)
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014); with a counter for its state it is a counter-based generator.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
