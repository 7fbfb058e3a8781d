package main

import (
	"math"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/terrain"
)

func init() {
	plots["free-space"] = plotFreeSpace
	plots["two-ray"] = plotTwoRay
	plots["log-distance"] = plotLogDistance
	plots["diffraction"] = plotDiffraction
}

// frequency of the pictures in Hz.
const frequency = 300e6

// eastOf returns the place so many metres east of a place on the equator.
func eastOf(metres, altitude float64) geo.Position {
	return geo.Position{Longitude: metres / geo.SemiMajorAxis * 180 / math.Pi, Altitude: altitude}
}

// Over a distance of 10^x metres, with antennas at the given height.
func over(m propagation.Model, height, hertz float64) func(x float64) float64 {
	return func(x float64) float64 {
		return m.Pathloss(eastOf(0, height), eastOf(math.Pow(10, x), height), hertz)
	}
}

func lossChart(title string, series ...Series) (*Chart, error) {
	return &Chart{Title: title, X: Axis{Label: "log10 of the distance in metres", Min: 1, Max: 4.5, Step: 0.5},
		Y: Axis{Label: "pathloss in dB", Min: 20, Max: 180, Step: 20}, Series: series}, nil
}

func plotFreeSpace() (*Chart, error) {
	return lossChart("Free space",
		Sampled("30 MHz", 1, 4.5, 70, over(propagation.FreeSpace{}, 3, 30e6)),
		Sampled("300 MHz", 1, 4.5, 70, over(propagation.FreeSpace{}, 3, frequency)),
		Sampled("2.4 GHz", 1, 4.5, 70, over(propagation.FreeSpace{}, 3, 2.4e9)))
}

func plotTwoRay() (*Chart, error) {
	free := Sampled("free space", 1, 4.5, 70, over(propagation.FreeSpace{}, 3, frequency))
	free.Dashed = true
	emane := func(x float64) float64 { return max(0, 40*x-20*math.Log10(3*3)) }
	return lossChart("Two rays over flat ground, both antennas 3 m high, 300 MHz",
		Sampled("EMANE's 2ray", 1, 4.5, 140, emane),
		Sampled("two rays", 1, 4.5, 140, over(propagation.TwoRay{}, 3, frequency)), free)
}

func plotLogDistance() (*Chart, error) {
	shadowed := propagation.LogDistance{Exponent: 3, Shadowing: propagation.NewShadowing(1, 6, 50)}
	return lossChart("Log-distance at 300 MHz",
		Sampled("exponent 2", 1, 4.5, 70, over(propagation.LogDistance{Exponent: 2}, 3, frequency)),
		Sampled("exponent 3", 1, 4.5, 70, over(propagation.LogDistance{Exponent: 3}, 3, frequency)),
		Sampled("exponent 3, shadowing of 6 dB over 50 m", 1, 4.5, 700, over(shadowed, 3, frequency)))
}

func plotDiffraction() (*Chart, error) {
	hills := terrain.Synthetic(1)
	start := geo.Position{Latitude: 58.19, Longitude: 7.9}
	at := func(kilometres float64) geo.Position {
		p := geo.Position{Latitude: start.Latitude, Longitude: start.Longitude + kilometres/58.8}
		ground, _ := hills.Elevation(p.Latitude, p.Longitude)
		p.Altitude = ground + 3
		return p
	}
	loss := func(m propagation.Model) func(kilometres float64) float64 {
		return func(kilometres float64) float64 { return m.Pathloss(at(0), at(kilometres), frequency) }
	}
	ground := Sampled("the ground's height, in units of 5 m", 0.05, 10, 200, func(kilometres float64) float64 { return (at(kilometres).Altitude - 3) / 5 })
	free := Sampled("free space", 0.05, 10, 200, loss(propagation.FreeSpace{}))
	free.Dashed = true
	return &Chart{Title: "Driving away over hills, antennas 3 m high, 300 MHz",
		X: Axis{Label: "distance in km", Max: 10, Step: 1}, Y: Axis{Label: "pathloss in dB", Max: 180, Step: 20},
		Series: []Series{Sampled("diffraction", 0.05, 10, 400, loss(propagation.Diffraction{Terrain: hills})), free, ground}}, nil
}
