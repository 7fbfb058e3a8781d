// Package phy is the physical layer that the radio models share. It has received power, sensitivity, SINR over
// thermal noise, interference and jammers, packet completion rate (PCR) curves, and random draws. It follows
// EMANE's published physical layer; docs/reference/radio/physical-layer.md has the complete model.
package phy

import (
	"cmp"
	"math"

	"vignette.dev/vignette/internal/radio"
)

// Radio is one node's radio as it is now.
type Radio struct {
	// FrequencyHertz of the carrier, and BandwidthHertz for sending, receiving and noise.
	FrequencyHertz, BandwidthHertz float64
	TransmitPowerDBm               float64
	// AntennaGainDBi of an omnidirectional antenna, sending and receiving.
	AntennaGainDBi float64
	NoiseFigureDB  float64
	// SubID distinguishes waveforms that share a frequency.
	SubID int
	// Transmit is false under radio silence (EMCON): the radio does not send, but receives.
	Transmit bool
}

// thermalNoiseDBmPerHertz is kT at 290 K, as EMANE rounds it.
const thermalNoiseDBmPerHertz = -174

// SensitivityDBm is the weakest signal that is received. It equals the thermal noise in the receiver's band:
// -174 dBm/Hz + noise figure + 10·log10(bandwidth in Hz).
func (r *Radio) SensitivityDBm() float64 {
	return thermalNoiseDBmPerHertz + r.NoiseFigureDB + 10*math.Log10(r.BandwidthHertz)
}

// Milliwatts of a power in dBm, or a ratio from dB.
func Milliwatts(dBm float64) float64 { return math.Exp(dBm * (math.Ln10 / 10)) }

// DBm of a power in milliwatts, or a ratio in dB.
func DBm(milliwatts float64) float64 { return 10 * math.Log10(milliwatts) }

// Environment gives the propagation between radios. Its methods must neither block nor allocate. Times are
// nanoseconds of the engine's clock, never long past.
type Environment interface {
	// Pathloss from one port to another. If it is unknown, nothing is received.
	Pathloss(from, to *radio.Port, now int64) (dB float64, known bool)
	// Jamming is the power of jammers in the given band at a port's antenna, before its gain.
	Jamming(at *radio.Port, now int64, frequencyHertz, bandwidthHertz float64) (milliwatts float64)
}

// Versioned is an Environment that reports changes of its pathloss. Neighbours are then computed once per
// version, so that a frame's cost depends on its receivers and not on the network's size.
type Versioned interface {
	Environment
	// Version at a time. Every change of any pathloss between members changes it.
	Version(now int64) uint64
}

// Batched is an Environment that gives many pathlosses at once. In a large network with moving members,
// asking for each would dominate the cost.
type Batched interface {
	Environment
	// PathlossToAll writes the pathloss in dB from one port to each of the others, all by their NEM ids. It
	// is NaN if unknown.
	PathlossToAll(from int, to []int, now int64, dB []float64)
}

// Interference says which other transmissions raise the noise at a receiver.
type Interference int

const (
	// None means thermal noise only.
	None Interference = iota
	// OutOfBand means jammers, transmissions of another subid, and those on another frequency whose band
	// overlaps.
	OutOfBand
	// All means OutOfBand and overlapping transmissions of the same waveform.
	All
)

// overlap is the share of a signal's power that lies in a receiver's band. The power is uniform over the
// signal's band.
func overlap(signalHertz, signalBandwidth, receiverHertz, receiverBandwidth float64) float64 {
	if signalHertz == receiverHertz && signalBandwidth <= receiverBandwidth {
		return 1
	}
	low := math.Max(signalHertz-signalBandwidth/2, receiverHertz-receiverBandwidth/2)
	high := math.Min(signalHertz+signalBandwidth/2, receiverHertz+receiverBandwidth/2)
	return math.Max(high-low, 0) / signalBandwidth
}

// Noise is the band of a jammer. A value of 0 is that of the receiver.
type Noise struct{ FrequencyHertz, BandwidthHertz float64 }

// Share of the jammer's power that lies in a receiver's band.
func (n Noise) Share(frequencyHertz, bandwidthHertz float64) float64 {
	bandwidth := cmp.Or(n.BandwidthHertz, bandwidthHertz)
	if bandwidth <= 0 {
		return 0
	}
	return overlap(cmp.Or(n.FrequencyHertz, frequencyHertz), bandwidth, frequencyHertz, bandwidthHertz)
}
