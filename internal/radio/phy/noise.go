package phy

import "math"

// Noise is the band of a jammer. A value of 0 is that of the receiver.
type Noise struct{ FrequencyHertz, BandwidthHertz float64 }

// Share of the jammer's power that lies in a receiver's band. The power is uniform over the jammer's own band.
func (n Noise) Share(frequencyHertz, bandwidthHertz float64) float64 {
	frequency, bandwidth := n.FrequencyHertz, n.BandwidthHertz
	if frequency == 0 {
		frequency = frequencyHertz
	}
	if bandwidth == 0 {
		bandwidth = bandwidthHertz
	}
	if bandwidth <= 0 {
		return 0
	}
	low := math.Max(frequency-bandwidth/2, frequencyHertz-bandwidthHertz/2)
	high := math.Min(frequency+bandwidth/2, frequencyHertz+bandwidthHertz/2)
	return math.Max(high-low, 0) / bandwidth
}
