package main

import (
	"math"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// The terrains count hops over links up to these losses. So such a link has to carry messages, not only short HELLOs.
func TestLinksAtTheLimitOfTheTerrainCarryHalfOfE2sMessages(t *testing.T) {
	const (
		lossesInDB     = -5.5 - 5.5 // of the antennas
		noiseDBm       = -112.02    // of 250 kHz and a noise figure of 8 dB
		lowestRate     = 380_000
		slotsOfMessage = 5 // 960 bytes with headers, at 237 a slot
	)
	for path, link := range map[string]struct{ power, pathloss float64 }{
		"e2/mosquitto-qos0-modified.yaml": {37, 118},
		"e2/mosquitto-qos0-anglova.yaml":  {40, 121},
	} {
		var e v1alpha1.Experiment
		if err := yaml.UnmarshalStrict([]byte(last(runs()[path])), &e); err != nil {
			t.Fatal(err)
		}
		curve, err := phy.ParsePCR([]byte(e.Spec.Networks[0].TDMA.PCR))
		if err != nil {
			t.Fatal(err)
		}
		arrive := func(pathloss float64) float64 {
			return math.Pow(curve.Completion(link.power+lossesInDB-pathloss-noiseDBm, 0, lowestRate), slotsOfMessage)
		}
		if share := arrive(link.pathloss); share < 0.4 || share > 0.6 {
			t.Errorf("%s: %.2f of the messages arrive over %g dB; want about half", path, share, link.pathloss)
		}
		if share := arrive(link.pathloss - 0.5); share < 0.9 {
			t.Errorf("%s: %.2f of the messages arrive over half a decibel less; want nearly all", path, share)
		}
	}
}
