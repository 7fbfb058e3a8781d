package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Units of E4: 8 of each of four nations, in the order of the nations' names. Their platforms have numbers that are no node's NEM id, as
// those would carry nodes.
const allUnits, firstPlatform = 32, 101

// tracks are made-up ways of E4's units during a run of some seconds.
type tracks int

// Name returns the name of the Scenario and of its ConfigMap.
func (t tracks) Name() string { return fmt.Sprintf("e4-tracks-%d", int(t)) }

// Seconds returns the time in which units go along their ways.
func (t tracks) Seconds() int { return int(t) }

// Routes returns a route of GPX for each unit, named by its platform.
func (t tracks) Routes() (all []string) {
	for unit := range allUnits {
		all = append(all, t.route(firstPlatform+unit))
	}
	return all
}

// route begins near Lisbon, as the published example, and has two even legs at 20 to 40 km/h.
func (t tracks) route(platform int) string {
	random := rand.New(rand.NewPCG(4, uint64(platform)))
	const metresPerDegree = 111_320.0
	latitude, longitude := 38.74+0.1*(random.Float64()-0.5), -9.16+0.1*(random.Float64()-0.5)
	bearing, leg := 2*math.Pi*random.Float64(), (20+20*random.Float64())/3.6*float64(t)/2
	var b strings.Builder
	fmt.Fprintf(&b, "<rte><name>%d</name>", platform)
	for range 3 {
		fmt.Fprintf(&b, `<rtept lat="%.5f" lon="%.5f"/>`, latitude, longitude)
		latitude += leg * math.Cos(bearing) / metresPerDegree
		longitude += leg * math.Sin(bearing) / (metresPerDegree * math.Cos(latitude*math.Pi/180))
		bearing += math.Pi / 2 * (random.Float64() - 0.5)
	}
	return b.String() + "</rte>"
}
