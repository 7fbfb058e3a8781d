package phy

import (
	"math"
	"slices"
)

// Curve is a packet completion rate (PCR) curve: the probability that a frame arrives, by SINR, size and
// rate. A nil Curve is a step at 0 dB.
type Curve struct {
	// sizeBytes of the frames that the points are for; 0 for frames of any size.
	sizeBytes float64
	rates     []rateCurve // the first also holds for rates without a curve
}

// rateCurve is the curve of one rate, or of all.
type rateCurve struct {
	bitsPerSecond float64
	points        []point // by ascending SINR, at least one
}

type point struct{ sinrDB, completion float64 }

// Completion is the probability that a frame of that size and rate arrives at that SINR. It is linear between
// two points. If the curve has a size, it is completion^(size/curve's size). As in EMANE it is 0 left of the
// curve and 1 right of it, whatever the last point says.
func (c *Curve) Completion(sinrDB float64, sizeBytes int, rateBitsPerSecond float64) float64 {
	return c.scaleToSize(c.unscaledCompletion(sinrDB, rateBitsPerSecond), sizeBytes)
}

// unscaledCompletion is the completion of frames of the curve's size, or of all frames if it has none. 0 and 1 hold
// for every size.
func (c *Curve) unscaledCompletion(sinrDB, rateBitsPerSecond float64) float64 {
	switch {
	case c != nil:
		return c.forRate(rateBitsPerSecond).at(sinrDB)
	case sinrDB >= 0:
		return 1
	}
	return 0
}

// scaleToSize scales a completion to frames of a size.
func (c *Curve) scaleToSize(unsized float64, sizeBytes int) float64 {
	if c == nil || c.sizeBytes == 0 || unsized <= 0 || unsized >= 1 {
		return unsized
	}
	return math.Pow(unsized, float64(sizeBytes)/c.sizeBytes)
}

func (c *Curve) forRate(bitsPerSecond float64) *rateCurve {
	for i := range c.rates {
		if c.rates[i].bitsPerSecond == bitsPerSecond {
			return &c.rates[i]
		}
	}
	return &c.rates[0]
}

func (r *rateCurve) at(sinrDB float64) (completion float64) {
	last := len(r.points) - 1
	switch {
	case !(sinrDB >= r.points[0].sinrDB): // NaN as well
		return 0
	case sinrDB > r.points[last].sinrDB:
		return 1
	}
	above, exact := slices.BinarySearchFunc(r.points, sinrDB, func(p point, sinrDB float64) int {
		switch {
		case p.sinrDB < sinrDB:
			return -1
		case p.sinrDB > sinrDB:
			return 1
		}
		return 0
	})
	if exact {
		return r.points[above].completion
	}
	low, high := r.points[above-1], r.points[above]
	return low.completion + (high.completion-low.completion)*(sinrDB-low.sinrDB)/(high.sinrDB-low.sinrDB)
}

// RatesBitsPerSecond of the curve; none if it holds for every rate.
func (c *Curve) RatesBitsPerSecond() (rates []float64) {
	for _, r := range c.rates {
		if r.bitsPerSecond > 0 {
			rates = append(rates, r.bitsPerSecond)
		}
	}
	return rates
}
