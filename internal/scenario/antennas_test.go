package scenario_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/scenario"
)

func omni(gain float64) *antenna.Pattern {
	return &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -90, Max: 90, Bearings: []antenna.Bearing{{Min: 0, Max: 359, Gain: gain}}}}}
}

var profiles = antenna.Profiles{{ID: 1, Antenna: omni(3)}, {ID: 4, Antenna: omni(-3), Blockage: omni(-1), Placement: antenna.Placement{Up: 2.5}}}

// withAntennas returns a scenario: platform 3 has a profile from the start, platform 1 from 5 s on.
func withAntennas(t testing.TB, options scenario.Options) []byte {
	file, _ := compiled(t, options, func(b *scenario.Builder) {
		b.Antennas(profiles)
		must(t, b.AntennaProfile(-time.Second, 3, scenario.AntennaProfile{ID: 4, Azimuth: 90}))
		must(t, b.AntennaProfile(5*time.Second, 1, scenario.AntennaProfile{ID: 1}))
		must(t, b.AntennaProfile(7*time.Second, 1, scenario.AntennaProfile{ID: 4}))
	})
	return file
}

func TestAScenarioHasItsAntennasAndSinceWhen(t *testing.T) {
	for _, sorted := range []bool{false, true} {
		s := open(t, withAntennas(t, scenario.Options{Sorted: sorted}))
		if !reflect.DeepEqual(s.Antennas(), profiles) {
			t.Errorf("sorted %t: profiles are %+v; want %+v", sorted, s.Antennas(), profiles)
		}
		if want := []scenario.AntennaStart{{Platform: 1, At: 5 * time.Second}, {Platform: 3}}; !reflect.DeepEqual(s.AntennaStarts(), want) {
			t.Errorf("sorted %t: profiles begin at %v; want %v", sorted, s.AntennaStarts(), want)
		}
		if names := s.OtherContents(); len(names) > 0 {
			t.Errorf("sorted %t: %v is said to be of no use", sorted, names)
		}
	}
}

func TestWithoutAManifestAScenarioHasNoAntennas(t *testing.T) {
	file, _ := compiled(t, scenario.Options{}, func(b *scenario.Builder) { must(t, b.AntennaProfile(0, 1, scenario.AntennaProfile{ID: 9})) })
	if s := open(t, file); s.Antennas() != nil || s.AntennaStarts() != nil || !reflect.DeepEqual(s.OtherContents(), []string{scenario.AntennaEvents}) {
		t.Errorf("it has %v since %v, and %v of no use; want antenna profiles of no use", s.Antennas(), s.AntennaStarts(), s.OtherContents())
	}
}

func TestAProfileThatTheManifestLacksIsRefused(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	defer b.Close()
	b.Antennas(profiles)
	err := b.AntennaProfile(0, 2, scenario.AntennaProfile{ID: 7})
	if want := "platform 2: antenna profile is 7: the manifest has no such profile"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v; want %q", err, want)
	}
}

func FuzzAntennas(f *testing.F) {
	index, chunk := scenario.Contents(withAntennas(f, scenario.Options{}))
	f.Add(index)
	f.Fuzz(func(t *testing.T, index []byte) { walk(t, scenario.ContainerWithAntennas(index, chunk)) })
}
