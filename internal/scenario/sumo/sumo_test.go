package sumo_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/scenario/sumo"
)

var plane = tracks.NewPlane(geo.Position{Latitude: 58, Longitude: 8}, 1, false)

func with(plane *tracks.Plane) readertest.Read {
	return readertest.Tracks(sumo.Parse, tracks.Options{Plane: plane}, tracks.Rules{})
}

const (
	geographic = `<!-- generated on 2026-01-31 by Eclipse SUMO sumo Version 1.20.0
<sumoConfiguration><output><fcd-output value="fcd.xml"/><fcd-output.geo value="true"/></output></sumoConfiguration> -->`
	network = `<!-- generated on 2026-01-31 by Eclipse SUMO sumo Version 1.20.0
<sumoConfiguration><output><fcd-output value="fcd.xml"/></output></sumoConfiguration> -->`
)

const degrees = `<?xml version="1.0" encoding="UTF-8"?>
<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <timestep time="0.00">
        <vehicle id="veh0" x="8.000000" y="58.000000" angle="90.00" type="car" speed="13.89" pos="5.10" lane="e0_0" slope="0.00"/>
    </timestep>
    <timestep time="2.00">
        <vehicle id="veh0" x="8.002000" y="58.000000" angle="90.00" type="car" speed="13.89" pos="5.10" lane="e0_0" slope="0.00"/>
        <person id="ped0" x="8.100000" y="58.100000" angle="0.00" speed="1.20" pos="1.00" edge="e0" slope="0.00"/>
    </timestep>
</fcd-export>
`

func metres(file string) string {
	return strings.NewReplacer(`x="8.000000" y="58.000000"`, `x="0.00" y="0.00"`, `x="8.002000" y="58.000000"`, `x="118.17" y="0.00"`,
		`x="8.100000" y="58.100000"`, `x="5892.60" y="11145.36"`).Replace(file)
}

func TestVehiclesAndPersonsMove(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		plane *tracks.Plane
	}{
		"in degrees":                    {degrees, nil},
		"in degrees, as SUMO says":      {geographic + strings.TrimPrefix(degrees, `<?xml version="1.0" encoding="UTF-8"?>`), plane},
		"in metres of a plane":          {metres(degrees), plane},
		"in metres, as SUMO says":       {network + strings.TrimPrefix(metres(degrees), `<?xml version="1.0" encoding="UTF-8"?>`), plane},
		"with times as a clock":         {strings.NewReplacer(`"0.00"`, `"00:00:00.00"`, `time="2.00"`, `time="0:00:00:02"`).Replace(degrees), nil},
		"with timesteps in disorder":    {disordered(degrees), nil},
		"with a byte order mark":        {"\ufeff" + degrees, nil},
		"in UTF-16":                     {readertest.UTF16(strings.Replace(degrees, "UTF-8", "UTF-16", 1)), nil},
		"with quotes of the other kind": {strings.ReplaceAll(degrees, `"`, "'"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, report := readertest.Compile(t, c.file, with(c.plane))
			if !slices.Equal(s.Platforms(), []int{1, 2}) {
				t.Fatalf("platforms are %v", s.Platforms())
			}
			i := 1
			if first, _ := readertest.Positions(t, s, 1, 2); first[0].Latitude > 58.05 {
				i = 2 // the file has the other one first
			}
			for _, want := range []readertest.Place{{Platform: i, Seconds: 0, Position: geo.Position{Latitude: 58, Longitude: 8}},
				{Platform: i, Seconds: 1, Position: geo.Position{Latitude: 58, Longitude: 8.001}}, {Platform: 3 - i, Seconds: 2, Position: geo.Position{Latitude: 58.1, Longitude: 8.1}}} {
				if got, known := readertest.Positions(t, s, want.Platform, want.Seconds); !known[0] || geo.Distance(got[0], want.Position) > 20 {
					t.Errorf("at %g s platform %d is at %v; want %v", want.Seconds, want.Platform, got[0], want.Position)
				}
			}
			if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, "veh0 is ") || !strings.Contains(said, "ped0 is ") {
				t.Errorf("warnings: %q", said)
			}
		})
	}
}

// disordered has the second timestep first.
func disordered(file string) string {
	head, rest, _ := strings.Cut(file, "    <timestep")
	first, second, _ := strings.Cut(rest, "    <timestep")
	second, tail, _ := strings.Cut(second, "</fcd-export>")
	return head + "    <timestep" + second + "    <timestep" + first + "</fcd-export>" + tail
}

func TestNamesThatAreNumbersArePlatforms(t *testing.T) {
	s, _ := readertest.Compile(t, strings.NewReplacer("veh0", "12", "ped0", "7").Replace(degrees), with(nil))
	if !slices.Equal(s.Platforms(), []int{7, 12}) {
		t.Errorf("platforms are %v", s.Platforms())
	}
}

func TestFilesThatMakeNoSenseAreRefused(t *testing.T) {
	readertest.Refused(t, with(nil), map[string]readertest.Wrong{
		"another element":           {"<routes/>", 1, "the file is an element routes: want fcd-export"},
		"metres without an origin":  {metres(degrees), 8, "which are no degrees: its coordinates are metres on a plane: want tracks.origin"},
		"metres, as SUMO says":      {network + degrees[strings.Index(degrees, "\n"):], 5, "its coordinates are metres on a plane"},
		"a vehicle without a name":  {strings.Replace(degrees, `id="veh0" `, "", 1), 4, "vehicle: it has no id"},
		"a vehicle that is nowhere": {strings.Replace(degrees, ` x="8.000000"`, "", 1), 4, "vehicle: it has no x or no y"},
		"a time in words":           {strings.Replace(degrees, "0.00", "noon", 1), 3, `time is "noon": want a number`},
		"a place in words":          {strings.Replace(degrees, "8.000000", "here", 1), 4, `vehicle: x is "here": want a number`},
		"a decimal comma":           {strings.Replace(degrees, "8.000000", "8,0", 1), 4, `vehicle: x is "8,0": want a number with a decimal point, such as 8.0`},
		"cut short":                 {degrees[:400], 7, "the file ends too early"},
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(degrees))
	f.Add([]byte(geographic + degrees))
	f.Add([]byte(readertest.UTF16(degrees)))
	readertest.Fuzz(f, readertest.Tracks(sumo.Parse, tracks.Options{}, tracks.Rules{Step: 24 * time.Hour}))
}
