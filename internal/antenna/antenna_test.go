package antenna_test

import (
	"math"
	"reflect"
	"testing"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/geo"
)

// beam of 10 dBi from bearing 350 to 10, at elevations from -5 to 5.
func beam() *antenna.Pattern {
	return &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -5, Max: 5, Bearings: []antenna.Bearing{{Min: 0, Max: 10, Gain: 10}, {Min: 350, Max: 359, Gain: 10}}}}}
}

func mast() *antenna.Pattern {
	return &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -90, Max: 90, Bearings: []antenna.Bearing{{Min: 170, Max: 190, Gain: -30}}}}}
}

var here = geo.Position{Latitude: 58, Longitude: 8, Altitude: 100}

// towards is a place by its direction and its distance.
func towards(bearing, elevation, metres float64) geo.Position {
	sinB, cosB := math.Sincos(bearing * math.Pi / 180)
	sinE, cosE := math.Sincos(elevation * math.Pi / 180)
	return geo.NewFrame(here).FromENU(geo.Vector{X: metres * cosE * sinB, Y: metres * cosE * cosB, Z: metres * sinE})
}

func TestGainIsThatOfTheWholeDegreesTowardsTheOther(t *testing.T) {
	const none = -327
	for name, c := range map[string]struct {
		pointed            antenna.Pointed
		bearing, elevation float64
		orientation        geo.Orientation
		want               float64
	}{
		"straight ahead":          {antenna.Pointed{}, 0, 0, geo.Orientation{}, 10},
		"at the beam's edge":      {antenna.Pointed{}, 10.4, 0, geo.Orientation{}, 10},
		"beside the beam":         {antenna.Pointed{}, 10.6, 0, geo.Orientation{}, none},
		"at its other edge":       {antenna.Pointed{}, 349.6, 0, geo.Orientation{}, 10},
		"just left of ahead":      {antenna.Pointed{}, 359.7, 0, geo.Orientation{}, 10},
		"above it":                {antenna.Pointed{}, 0, 5.6, geo.Orientation{}, none},
		"raised":                  {antenna.Pointed{Elevation: 20}, 0, 22, geo.Orientation{}, 10},
		"turned":                  {antenna.Pointed{Azimuth: 90}, 95, 0, geo.Orientation{}, 10},
		"turned the other way":    {antenna.Pointed{Azimuth: -270}, 95, 0, geo.Orientation{}, 10},
		"on a turned platform":    {antenna.Pointed{Azimuth: 45}, 95, 0, geo.Orientation{Yaw: 45}, 10},
		"on a pitched platform":   {antenna.Pointed{}, 0, 30, geo.Orientation{Pitch: 30}, 10},
		"on a rolled platform":    {antenna.Pointed{Azimuth: 90}, 90, -30, geo.Orientation{Roll: 30}, 10},
		"exactly south, not seen": {antenna.Pointed{}, 180, 0, geo.Orientation{}, none - 30},
		"through the mast":        {antenna.Pointed{Azimuth: 180}, 180, 0, geo.Orientation{}, 10 - 30},
	} {
		t.Run(name, func(t *testing.T) {
			c.pointed.Profile = &antenna.Profile{Antenna: beam(), Blockage: mast()}
			at := antenna.NewMount(antenna.Platform{Position: here, Orientation: c.orientation}, antenna.Placement{})
			to := antenna.NewMount(antenna.Platform{Position: towards(c.bearing, c.elevation, 2000)}, antenna.Placement{})
			if got := c.pointed.Gain(&at, &to); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("gain %v dBi; want %v", got, c.want)
			}
		})
	}
}

func TestAPlatformOnTheSameMeridianToTheSouthIsBehind(t *testing.T) {
	pointed := antenna.Pointed{Profile: &antenna.Profile{Antenna: beam()}}
	north, south := antenna.NewMount(antenna.Platform{Position: geo.Position{Latitude: 1}}, antenna.Placement{}), antenna.NewMount(antenna.Platform{Position: geo.Position{Latitude: 0.99}}, antenna.Placement{})
	if behind, ahead := pointed.Gain(&north, &south), pointed.Gain(&south, &north); behind != -327 || ahead != 10 {
		t.Errorf("%v dBi behind and %v ahead; want -327 and 10", behind, ahead)
	}
}

func TestPlacementsMoveTheAntennas(t *testing.T) {
	pointed := antenna.Pointed{Profile: &antenna.Profile{Antenna: beam()}}
	at := antenna.NewMount(antenna.Platform{Position: here}, antenna.Placement{})
	mount := func(p antenna.Placement) *antenna.Mount {
		m := antenna.NewMount(antenna.Platform{Position: towards(0, 0, 100)}, p)
		return &m
	}
	if low, high := pointed.Gain(&at, mount(antenna.Placement{Up: 9})), pointed.Gain(&at, mount(antenna.Placement{Up: 11})); low != 10 || high != -327 {
		t.Errorf("9 m up %v dBi, 11 m up %v; want within 5 degrees of 100 m, and not", low, high)
	}
	raised := antenna.NewMount(antenna.Platform{Position: here}, antenna.Placement{Up: 11})
	if level := pointed.Gain(&raised, mount(antenna.Placement{Up: 11})); level != 10 {
		t.Errorf("both raised %v dBi; want 10", level)
	}
}

func TestPlatformsInOnePlaceHaveADirection(t *testing.T) {
	pointed := antenna.Pointed{Profile: &antenna.Profile{Antenna: beam()}, Azimuth: 270}
	at := antenna.NewMount(antenna.Platform{Position: here}, antenna.Placement{})
	if gain := pointed.Gain(&at, &at); gain != 10 {
		t.Errorf("%v dBi; want 10, as EMANE takes 270 degrees", gain)
	}
}

func TestProfilesAreDecodedAsTheyWere(t *testing.T) {
	shared := beam()
	profiles := antenna.Profiles{{ID: 0, Antenna: shared}, {ID: 7, Antenna: mast(), Blockage: shared, Placement: antenna.Placement{North: -1.5, East: 2, Up: 0.1}}}
	decoded, err := antenna.Decode(profiles.Encode())
	if err != nil || !reflect.DeepEqual(decoded, profiles) || decoded[0].Antenna != decoded[1].Blockage {
		t.Errorf("got %+v, %v; want %+v, with a shared pattern once", decoded, err, profiles)
	}
	if decoded.Find(7) == nil || decoded.Find(1) != nil {
		t.Error("a profile is not found by its ID")
	}
}

func TestProfilesThatMakeNoSenseAreRefused(t *testing.T) {
	raw := antenna.Profiles{{ID: 1, Antenna: beam(), Blockage: mast()}}.Encode()
	for length := range raw {
		if _, err := antenna.Decode(raw[:length]); err == nil {
			t.Errorf("the first %d bytes of %d are taken for profiles", length, len(raw))
		}
	}
	for name, p := range map[string]antenna.Profiles{
		"out of order":     {{ID: 2, Antenna: beam()}, {ID: 1, Antenna: beam()}},
		"twice":            {{ID: 2, Antenna: beam()}, {ID: 2, Antenna: beam()}},
		"without pattern":  {{ID: 2}},
		"an empty pattern": {{ID: 2, Antenna: &antenna.Pattern{}}},
		"no number":        {{ID: 2, Antenna: &antenna.Pattern{Elevations: []antenna.Elevation{{Bearings: []antenna.Bearing{{Gain: math.NaN()}}}}}}},
		"overlapping":      {{ID: 2, Antenna: &antenna.Pattern{Elevations: []antenna.Elevation{{Bearings: []antenna.Bearing{{Max: 5}, {Min: 5, Max: 6}}}}}}},
	} {
		if p.Check() == nil {
			t.Errorf("%s: the profiles are taken for good", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(antenna.Profiles{{ID: 1, Antenna: beam(), Blockage: mast()}}.Encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		profiles, err := antenna.Decode(raw)
		if err != nil || len(profiles) == 0 {
			return
		}
		at, to := antenna.NewMount(antenna.Platform{Position: here}, profiles[0].Placement), antenna.NewMount(antenna.Platform{Position: towards(9, 9, 9)}, antenna.Placement{})
		if gain := (&antenna.Pointed{Profile: &profiles[0]}).Gain(&at, &to); math.IsNaN(gain) {
			t.Error("the gain is no number")
		}
	})
}
