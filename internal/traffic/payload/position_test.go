package payload_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/position"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/traffic/payload/track"
)

var t0 = time.UnixMilli(1588759100000)

// wanderer is a scenario of one platform that is somewhere else each second.
func wanderer(t *testing.T, seed uint64) (*scenario.Scenario, *track.Platform) {
	t.Helper()
	random, b := rand.New(rand.NewPCG(seed, 1)), scenario.NewBuilder(scenario.Options{})
	for second := range 100 {
		p := geo.Position{Latitude: 160*random.Float64() - 80, Longitude: 360*random.Float64() - 180, Altitude: 3000*random.Float64() - 100}
		if err := b.Position(time.Duration(second)*time.Second, 5, p); err != nil {
			t.Fatal(err)
		}
	}
	s := scenariotest.Open(t, b)
	return s, platformOf(t, s)
}

// platformOf is platform 5 of a scenario.
func platformOf(t *testing.T, s *scenario.Scenario) *track.Platform {
	t.Helper()
	all, err := s.Movements(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := position.New(all[5])
	if err != nil {
		t.Fatal(err)
	}
	return track.NewPlatform(m, t0)
}

// truth is the position of the scenario itself, by the cursor that radiod uses.
func truth(t *testing.T, s *scenario.Scenario, at time.Time) geo.Position {
	t.Helper()
	c := s.NewCursor()
	if err := c.Seek(max(0, at.Sub(t0))); err != nil {
		t.Fatal(err)
	}
	p, _ := c.Position(0)
	return p
}

func geoJSONPosition(t *testing.T, content []byte) (latitude, longitude float64) {
	t.Helper()
	var feature struct {
		Geometry struct{ Coordinates []float64 }
	}
	if err := json.Unmarshal(content, &feature); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	return feature.Geometry.Coordinates[0], feature.Geometry.Coordinates[1]
}

func nffiPosition(t *testing.T, content []byte) (latitude, longitude float64) {
	t.Helper()
	message, _, _, ok := nffi.Read(content)
	if !ok {
		t.Fatalf("%s is no NFFI message", content)
	}
	return message.Position.LatitudeDegrees, message.Position.LongitudeDegrees
}

var sentence = regexp.MustCompile(`A,(\d\d)(\d\d\.\d+),([NS]),(\d\d\d)(\d\d\.\d+),([EW])`)

func gpsPosition(t *testing.T, content []byte) (latitude, longitude float64) {
	t.Helper()
	m := sentence.FindStringSubmatch(string(content))
	if m == nil {
		t.Fatalf("%s has no position", content)
	}
	angle := func(degrees, minutes, letter string) float64 {
		whole, err := strconv.ParseFloat(degrees, 64)
		part, err2 := strconv.ParseFloat(minutes, 64)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if letter == "S" || letter == "W" {
			return -(whole + part/60)
		}
		return whole + part/60
	}
	return angle(m[1], m[2], m[3]), angle(m[4], m[5], m[6])
}

func TestMessagesReportThePositionOfTheScenarioAtTheirTime(t *testing.T) {
	for kind, c := range map[string]struct {
		read func(*testing.T, []byte) (latitude, longitude float64)
		// degrees of rounding.
		degrees float64
	}{"geojson": {geoJSONPosition, 6e-7}, "nffi": {nffiPosition, 6e-7}, "nffi:3": {nffiPosition, 6e-7}, "gps": {gpsPosition, 1e-6}} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(kind, " ", seed), func(t *testing.T) {
				s, platform := wanderer(t, seed)
				sender := prt
				sender.Track = platform
				m := maker(t, kind, sender, 7)
				for after := -3 * time.Second; after < 110*time.Second; after += 333 * time.Millisecond {
					at := t0.Add(after)
					latitude, longitude := c.read(t, m.Append(nil, "PRT-S003_1", at))
					if want := truth(t, s, at); math.Abs(latitude-want.Latitude) > c.degrees || math.Abs(longitude-want.Longitude) > c.degrees {
						t.Fatalf("%v after T0: reports %v, %v; want %v, %v", after, latitude, longitude, want.Latitude, want.Longitude)
					}
					logged := platform.Reported(at)
					if want := truth(t, s, at); math.Abs(logged[0]-want.Latitude) > 1e-7 || math.Abs(logged[1]-want.Longitude) > 1e-7 || math.Abs(logged[2]-want.Altitude) > 0.06 {
						t.Fatalf("%v after T0: logs %v; want %v", after, *logged, want)
					}
				}
			})
		}
	}
}

var bearings = map[string]*regexp.Regexp{"nffi": regexp.MustCompile(`<bearing>([^<]*)<`), "gps": regexp.MustCompile(`[EW],[0-9.]+,([^,]*),`)}

func TestBearingsAreFromNorthAroundToNorth(t *testing.T) {
	for azimuth, want := range map[float64]string{-90: "270.0", 450: "090.0", 360: "000.0", 211.5: "211.5", 359.97: "000.0", -0.01: "000.0"} {
		b := scenario.NewBuilder(scenario.Options{})
		err := errors.Join(b.Position(0, 5, geo.Position{Latitude: 47, Longitude: 8}), b.Velocity(0, 5, geo.Velocity{Azimuth: azimuth, Speed: 3}))
		if err != nil {
			t.Fatal(err)
		}
		sender := prt
		sender.Track = platformOf(t, scenariotest.Open(t, b))
		for kind, bearing := range bearings {
			content := maker(t, kind, sender, 7).Append(nil, "PRT-S003_1", t0)
			if got := bearing.FindSubmatch(content); got == nil || string(got[1]) != want {
				t.Errorf("%s with azimuth %v has bearing %q; want %s", kind, azimuth, got, want)
			}
		}
	}
}

func TestEncodedMessagesReportThePlatformToo(t *testing.T) {
	s, platform := wanderer(t, 7)
	sender := prt
	sender.Track = platform
	m, err := payload.NewEncoded("geojson", encoding.Encodings("geojson")[0], encoding.None, sender, 7)
	if err != nil {
		t.Fatal(err)
	}
	at := t0.Add(42 * time.Second)
	if latitude, _ := geoJSONPosition(t, m.Append(nil, "PRT-S003_1", at)); math.Abs(latitude-truth(t, s, at).Latitude) > 6e-7 {
		t.Errorf("reports latitude %v; want %v", latitude, truth(t, s, at).Latitude)
	}
}

func TestAllTracksOfAMessageAreWhereThePlatformIs(t *testing.T) {
	s, platform := wanderer(t, 3)
	sender := prt
	sender.Track = platform
	content := maker(t, "nffi:4", sender, 7).Append(nil, "PRT-S003_1", t0)
	latitude := fmt.Sprintf("<latitude>%010.6f</latitude>", truth(t, s, t0).Latitude)
	if got := len(regexp.MustCompile(regexp.QuoteMeta(latitude)).FindAll(content, -1)); got != 4 {
		t.Errorf("%d tracks with %s; want 4 in\n%s", got, latitude, content)
	}
}

func TestASenderOutsideOfARunHasNoPlatform(t *testing.T) {
	t.Setenv("VIGNETTE_MOVEMENT", "")
	if s, platform, err := prt.OnNode("geojson"); s.Track != nil || platform != nil || err != nil {
		t.Errorf("%v, %v, %v; want no platform", s.Track, platform, err)
	}
}

func TestAMovementThatCannotBeReadIsNamed(t *testing.T) {
	t.Setenv("VIGNETTE_MOVEMENT", "/does/not/exist")
	t.Setenv("VIGNETTE_T0_NS", "1588759100000000000")
	if _, _, err := prt.OnNode("nffi"); err == nil {
		t.Error("no error; want one that names the file")
	}
	if _, _, err := prt.OnNode("bytes:100"); err != nil {
		t.Errorf("%v; want none for a payload without positions", err)
	}
	t.Setenv("VIGNETTE_T0_NS", "")
	if _, _, err := prt.OnNode("nffi"); err == nil {
		t.Error("no error without T0; want one that names the variable")
	}
}
