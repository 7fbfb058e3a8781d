package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// firstPlatform is the number of the first unit's platform. Platforms of units have numbers that are no node's NEM id, as those would carry nodes.
const firstPlatform = 101

// tracks are made-up ways of a coalition's units during a run of some seconds: 8 of each nation, in the order of the nations' names.
type tracks struct {
	Study   string
	nations int
	// Seconds is the time in which units go along their ways.
	Seconds int
	seed    uint64
}

// Name returns the name of the Scenario and of its ConfigMap.
func (t tracks) Name() string { return fmt.Sprintf("%s-tracks-%d", t.Study, t.Seconds) }

// NationsWord returns the number of nations in words.
func (t tracks) NationsWord() string { return choose(t.nations == 3, "three", "four") }

// Routes returns a route of GPX for each unit, named by its platform.
func (t tracks) Routes() (all []string) {
	for unit := range 8 * t.nations {
		all = append(all, t.route(firstPlatform+unit))
	}
	return all
}

// route begins near Lisbon, as the published example, and has two even legs at 20 to 40 km/h.
func (t tracks) route(platform int) string {
	random := rand.New(rand.NewPCG(t.seed, uint64(platform)))
	const metresPerDegree = 111_320.0
	latitude, longitude := 38.74+0.1*(random.Float64()-0.5), -9.16+0.1*(random.Float64()-0.5)
	bearing, leg := 2*math.Pi*random.Float64(), (20+20*random.Float64())/3.6*float64(t.Seconds)/2
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
