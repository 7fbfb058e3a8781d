package phy

import "vignette.dev/vignette/internal/radio"

// draws gives random numbers by index. So the n-th transmission of a source has the same outcome at a
// receiver in every run with the same seed.
type draws uint64

func newDraws(seed int64) draws {
	return draws(radio.Mix(uint64(seed) + radio.Golden)) //nolint:gosec // any mapping that distinguishes seeds will do
}

// uniform number in [0, 1) of a source's transmission at a receiver.
func (d draws) uniform(source, destination int, index uint64) float64 {
	pair := radio.Mix(uint64(d) ^ uint64(source)<<32 ^ uint64(destination)) //nolint:gosec // NEM ids are positive
	return float64(radio.Mix(pair+(index+1)*radio.Golden)>>11) / (1 << 53)
}

// Uniform number in [0, 1) for other purposes of a model, such as jitter. Streams of different purposes are
// independent.
func Uniform(seed int64, purpose uint64, source int, index uint64) float64 {
	return draws(radio.Mix(uint64(newDraws(seed))+purpose*radio.Golden)).uniform(source, 0, index)
}
