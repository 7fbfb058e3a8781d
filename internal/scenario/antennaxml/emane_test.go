package antennaxml_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/antennaxml"
)

// patternOf reads a kind from the file that EMANE read, too.
func patternOf(t *testing.T, kind antennaxml.Kind) *antenna.Pattern {
	t.Helper()
	text, err := os.ReadFile("testdata/pattern.xml")
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := antennaxml.ReadPattern(bytes.NewReader(text), "pattern.xml", kind)
	if err != nil {
		t.Fatal(err)
	}
	return pattern
}

func platformOf(v []float64) (antenna.Platform, antenna.Placement) {
	return antenna.Platform{Position: geo.Position{Latitude: v[0], Longitude: v[1], Altitude: v[2]}, Orientation: geo.Orientation{Pitch: v[3], Roll: v[4], Yaw: v[5]},
		Velocity: geo.Velocity{Azimuth: v[6], Elevation: v[7], Speed: v[8]}}, antenna.Placement{North: v[9], East: v[10], Up: v[11]}
}

func TestGainsAreThoseOfEMANE(t *testing.T) {
	text, err := os.ReadFile("testdata/emane.txt")
	if err != nil {
		t.Fatal(err)
	}
	profile := antenna.Profile{Antenna: patternOf(t, antennaxml.Antenna), Blockage: patternOf(t, antennaxml.Blockage)}
	cases := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		v := make([]float64, 32)
		for i, word := range strings.Fields(line) {
			if _, err := fmt.Sscan(word, &v[i]); err != nil {
				t.Fatal(err)
			}
		}
		here, placed := platformOf(v)
		there, placedThere := platformOf(v[12:])
		at, to := antenna.NewMount(here, placed), antenna.NewMount(there, placedThere)
		pointed := antenna.Pointed{Profile: &profile, Azimuth: v[24], Elevation: v[25]}
		if got, want := pointed.Gain(&at, &to), v[30]+v[31]; math.Abs(got-want) > 1e-9 {
			t.Errorf("case %d: gain %v dBi; EMANE has %v", cases, got, want)
		}
		cases++
	}
	if cases < 50 {
		t.Errorf("%d cases; want all", cases)
	}
}
