package phy

// draws gives random numbers by index. So the n-th transmission of a source has the same outcome at a
// receiver in every run with the same seed.
type draws uint64

const golden = 0x9e3779b97f4a7c15

func newDraws(seed int64) draws {
	return draws(mix(uint64(seed) + golden)) //nolint:gosec // any mapping that distinguishes seeds will do
}

// uniform number in [0, 1) of a source's transmission at a receiver.
func (d draws) uniform(source, destination int, index uint64) float64 {
	pair := mix(uint64(d) ^ uint64(source)<<32 ^ uint64(destination)) //nolint:gosec // NEM ids are positive
	return float64(mix(pair+(index+1)*golden)>>11) / (1 << 53)
}

// Uniform number in [0, 1) for other purposes of a model, such as jitter. Streams of different purposes are
// independent.
func Uniform(seed int64, purpose uint64, source int, index uint64) float64 {
	return draws(mix(uint64(newDraws(seed))+purpose*golden)).uniform(source, 0, index)
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014). With a counter as its state it is a counter-based generator.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
