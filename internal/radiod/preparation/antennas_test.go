package preparation

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/radiod/waveforms"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// lobes have a gain for each bearing and elevation, as whole degrees: bearing/8 dB at elevations from -9 to 9, and 1 dB above.
func lobes() *antenna.Pattern {
	p := &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -9, Max: 9}, {Min: 10, Max: 90, Bearings: []antenna.Bearing{{Min: 0, Max: 359, Gain: 1}}}}}
	for b := range int16(360) {
		p.Elevations[0].Bearings = append(p.Elevations[0].Bearings, antenna.Bearing{Min: b, Max: b, Gain: float64(b) / 8})
	}
	return p
}

// start of the tests' platforms.
var start = geo.Position{Latitude: 58, Longitude: 8, Altitude: 10}

// kilometreTowards is the place a kilometre from the start in a direction.
func kilometreTowards(bearing float64) geo.Position {
	s, c := math.Sincos(bearing * math.Pi / 180)
	return geo.NewFrame(start).FromENU(geo.Vector{X: 1000 * s, Y: 1000 * c})
}

// beamScenario has platform 1 at the start and platform 2 a kilometre away in a direction. Between them are 100.5 dB.
// The profiles have lobes.
func beamScenario(t *testing.T, bearing float64, build func(b *scenario.Builder) error) *scenario.Scenario {
	t.Helper()
	_, content := radiodtest.Compile(t, func(b *scenario.Builder) error {
		b.Antennas(antenna.Profiles{{ID: 1, Antenna: lobes()}, {ID: 2, Antenna: lobes(), Blockage: &antenna.Pattern{Elevations: []antenna.Elevation{
			{Min: -90, Max: 90, Bearings: []antenna.Bearing{{Min: 0, Max: 180, Gain: -20}}}}}}})
		return errors.Join(b.Position(0, 1, start), b.Position(0, 2, kilometreTowards(bearing)), b.Pathloss(0, 1, 2, 100.5), b.Pathloss(0, 2, 1, 100.5), build(b))
	})
	return opened(t, content)
}

func profile(at time.Duration, platform, id int, azimuth float64) func(*scenario.Builder) error {
	return func(b *scenario.Builder) error {
		return b.AntennaProfile(at, platform, scenario.AntennaProfile{ID: id, Azimuth: azimuth})
	}
}

// gains in dB from the first node's connector to the second's, and back, as the radio model sees them.
func gains(t *testing.T, spec *v1alpha1.RadioNetworkSpec, m *moment) [2]float64 {
	t.Helper()
	n, err := waveforms.Network("run", spec, spec.T0.UnixNano()+m.AtNanoseconds, false)
	if err != nil {
		t.Fatal(err)
	}
	medium := phy.NewMedium(phy.Config{Radio: func(p *radio.Port) phy.Radio { return n.Now.Radios.Of(p.NEM).Radio }, Environment: environmentAt(m)})
	var ports []*radio.Port
	for nem := range 3 {
		ports = append(ports, &radio.Port{PortOptions: radio.PortOptions{NEM: nem + 1}})
	}
	medium.Members(ports, radio.SetSlots(nil, ports))
	result := [2]float64{math.NaN(), math.NaN()}
	for i, pair := range [2][2]int{{0, 1}, {1, 0}} {
		if n := medium.Neighbour(0, ports[pair[0]], ports[pair[1]], 100); n != nil {
			result[i] = n.GainDB
		}
	}
	return result
}

// closeTo tells that two figures are equal but for the rounding of floating point.
func closeTo(a, b float64) bool { return math.Abs(a-b) < 1e-9 || math.IsNaN(a) && math.IsNaN(b) }

func TestReceivedPowerHasTheGainsOfBothAntennasTowardsEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *scenario.Builder) error
		at    time.Duration
		want  float64 // of both antennas together
	}{
		"no profile yet":    {profile(time.Second, 1, 1, 0), 0, 2 + 2},
		"a beam to 64":      {profile(0, 1, 1, 0), 0, 8 + 2},
		"a turned antenna":  {profile(0, 1, 1, 24), 0, 5 + 2},
		"after a change":    {both(profile(0, 1, 1, 0), profile(time.Second, 1, 1, 24)), time.Second, 5 + 2},
		"with a blockage":   {profile(0, 1, 2, 0), 0, 8 - 20 + 2},
		"a blockage stays":  {profile(0, 1, 2, 24), 0, 5 - 20 + 2},
		"two profiles":      {both(profile(0, 1, 1, 0), profile(0, 2, 1, 0)), 0, 8 + 30.5},
		"a turned platform": {both(profile(0, 1, 1, 0), orientation(0, geo.Orientation{Yaw: 16})), 0, 6 + 2},
		"a moving platform": {both(profile(0, 1, 1, 0), velocity(0, geo.Velocity{Azimuth: 16, Speed: 5})), 0, 6 + 2},
		"turned as it goes": {both(profile(0, 1, 1, 0), both(orientation(0, geo.Orientation{Yaw: 8}), velocity(0, geo.Velocity{Azimuth: 16}))), 0, 5 + 2},
		"turned later":      {both(profile(0, 1, 1, 0), orientation(time.Second, geo.Orientation{Yaw: 32})), time.Second, 4 + 2},
		"looking down":      {both(profile(0, 1, 1, 0), orientation(0, geo.Orientation{Pitch: -30})), 0, 1 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			spec, s := radiodtest.Physical(v1alpha1.PathlossScenario), beamScenario(t, 64, c.build)
			spec.Waveform.RFPipe.PHY.AntennaGain = "2dBi"
			for _, steps := range []bool{false, true} {
				m := prepared(t, spec, s, c.at, steps)
				for _, got := range gains(t, spec, m) {
					if want := c.want - 100.5; !closeTo(got, want) {
						t.Errorf("steps %v: received %v dB above what is sent; want %v", steps, got, want)
					}
				}
				if loss, known := (Moment{InputsOf(spec, nil, s), m}).Pathloss(1, 2); loss != 100.5 || !known {
					t.Errorf("reported pathloss %v, %v; want that of the scenario", loss, known)
				}
			}
		})
	}
}

// both of two things in a scenario.
func both(first, second func(*scenario.Builder) error) func(*scenario.Builder) error {
	return func(b *scenario.Builder) error { return errors.Join(first(b), second(b)) }
}

func orientation(at time.Duration, o geo.Orientation) func(*scenario.Builder) error {
	return func(b *scenario.Builder) error { return b.Orientation(at, 1, o) }
}

func velocity(at time.Duration, v geo.Velocity) func(*scenario.Builder) error {
	return func(b *scenario.Builder) error { return b.Velocity(at, 1, v) }
}

func TestTurningAPlatformAndItsTargetAlikeChangesNothing(t *testing.T) {
	spec := radiodtest.Physical(v1alpha1.PathlossScenario)
	for turn := 0.0; turn < 720; turn += 45.5 {
		for _, bearing := range []float64{0.2, 89.7, 180, 301.3} {
			s := beamScenario(t, bearing+turn, both(profile(0, 1, 2, 7), orientation(0, geo.Orientation{Yaw: turn})))
			unturned := beamScenario(t, bearing, profile(0, 1, 2, 7))
			got, want := gains(t, spec, prepared(t, spec, s, 0, false)), gains(t, spec, prepared(t, spec, unturned, 0, false))
			if got != want || math.IsNaN(got[0]) {
				t.Errorf("turned by %v, target at %v: %v dB; unturned %v", turn, bearing, got, want)
			}
		}
	}
}

func TestGainsFollowPlatformsThatMove(t *testing.T) {
	_, content := radiodtest.Compile(t, func(b *scenario.Builder) error {
		b.Antennas(antenna.Profiles{{ID: 1, Antenna: lobes()}})
		return errors.Join(b.Position(0, 1, start), b.Position(0, 2, kilometreTowards(64)), b.Position(time.Second, 2, kilometreTowards(128)), b.Position(2*time.Second, 1, kilometreTowards(300)), profile(0, 1, 1, 0)(b))
	})
	spec, s := radiodtest.Physical(v1alpha1.PathlossFreeSpace), opened(t, content)
	for second, want := range map[time.Duration]float64{0: 8, time.Second: 16} {
		loss := propagation.FreeSpaceLoss(1000, 300e6)
		for _, steps := range []bool{false, true} {
			if got := gains(t, spec, prepared(t, spec, s, second, steps)); math.Abs(got[0]-(want-loss)) > 1e-4 || got[0] != got[1] {
				t.Errorf("at %v, steps %v: %v dB; want %v both ways", second, steps, got, want-loss)
			}
		}
	}
	if at1, steps := gains(t, spec, prepared(t, spec, s, 2*time.Second, false)), gains(t, spec, prepared(t, spec, s, 2*time.Second, true)); at1 != steps {
		t.Errorf("come to at once %v dB, step by step %v; want the same", at1, steps)
	}
}

func TestALiveGainIsForRadiosWithoutAProfile(t *testing.T) {
	change := v1alpha1.TimedRadioChange{AtNanoseconds: int64(time.Second), RadioChange: v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{AntennaGain: ptr.To(v1alpha1.Gain("9dBi"))}}}
	spec, s := radiodtest.Physical(v1alpha1.PathlossScenario, change), beamScenario(t, 64, profile(0, 1, 1, 0))
	for _, steps := range []bool{false, true} {
		if got := gains(t, spec, prepared(t, spec, s, time.Second, steps)); !closeTo(got[0], 8+9-100.5) || !closeTo(got[1], 8+9-100.5) {
			t.Errorf("steps %v: %v dB; want the profile's gain and the new one of the other radio", steps, got)
		}
	}
}

func TestWithoutAPositionOfBothNothingIsReceivedThroughAProfile(t *testing.T) {
	_, content := radiodtest.Compile(t, func(b *scenario.Builder) error {
		b.Antennas(antenna.Profiles{{ID: 1, Antenna: lobes()}})
		return errors.Join(b.Position(0, 1, start), b.Position(time.Second, 2, kilometreTowards(64)), b.Pathloss(0, 1, 2, 100.5), b.Pathloss(0, 2, 1, 100.5), profile(0, 1, 1, 0)(b))
	})
	spec, s := radiodtest.Physical(v1alpha1.PathlossScenario), opened(t, content)
	for second, want := range map[time.Duration]float64{0: math.NaN(), time.Second: 8 - 100.5} {
		if got := gains(t, spec, prepared(t, spec, s, second, true)); !closeTo(got[0], want) || !closeTo(got[1], want) {
			t.Errorf("at %v: %v dB; want %v", second, got, want)
		}
	}
}

func TestAJammersPowerHasTheGainTowardsIt(t *testing.T) {
	where := kilometreTowards(200)
	jammer := v1alpha1.Jammer{Name: "a", Power: ptr.To(v1alpha1.Power("40dBm")), Position: &v1alpha1.Position{
		Latitude: v1alpha1.Degrees(fmt.Sprintf("%.9f", where.Latitude)), Longitude: v1alpha1.Degrees(fmt.Sprintf("%.9f", where.Longitude)), Altitude: "10m"}}
	power := func(s *scenario.Scenario, j v1alpha1.Jammer) float64 {
		a := environmentAt(prepared(t, radiodtest.Physical(v1alpha1.PathlossScenario, radiodtest.Jam(0, j)), s, 0, false))
		return phy.DBm(a.Jamming(&radio.Port{PortOptions: radio.PortOptions{NEM: 1}}, 0, 300e6, 1e6))
	}
	with, without := beamScenario(t, 64, profile(0, 1, 1, 0)), beamScenario(t, 64, profile(0, 2, 1, 0))
	if got, want := power(with, jammer), power(without, jammer)+200.0/8; !closeTo(got, want) {
		t.Errorf("%v dBm; want %v", got, want)
	}
	jammer.Position, jammer.Pathloss = nil, ptr.To(v1alpha1.Decibel("80dB"))
	if got := power(with, jammer); !closeTo(got, -40) {
		t.Errorf("%v dBm of a jammer that is nowhere; want -40 at the fixed gain", got)
	}
}

func TestANetworkWithoutProfilesKeepsNothingOfThem(t *testing.T) {
	spec, s := radiodtest.Physical(v1alpha1.PathlossScenario), beamScenario(t, 64, profile(0, 9, 1, 0))
	m := prepared(t, spec, s, 0, false)
	if InputsOf(spec, nil, s).fixedGains != nil || &m.withoutAntennas[0] != &m.Pathloss[0] {
		t.Error("profiles of platforms that are in no node take memory")
	}
}
