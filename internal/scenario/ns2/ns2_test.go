package ns2_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/scenario/ns2"
)

var origin = geo.Position{Latitude: 58, Longitude: 8, Altitude: 100}

func on(metres float64, south bool) readertest.Read {
	return readertest.Tracks(ns2.Parse, tracks.Options{Plane: tracks.NewPlane(origin, metres, south)}, tracks.Rules{})
}

// at returns the position with coordinates east and north of the origin, and above it.
func at(x, y, z float64) geo.Position {
	return geo.NewFrame(origin).Position(geo.Vector{X: x, Y: y, Z: z})
}

const script = `#
# nodes: 2, pause: 0.00, max speed: 10.00
$node_(1) set X_ 100.0
$node_(1) set Y_ 50.0
$node_(1) set Z_ 5.0
$node_(2) set X_ 0
$node_(2) set Y_ 0
$god_ set-dist 1 2 1
$ns_ at 10.0 "$node_(1) setdest 200.0 50.0 10.0"
$ns_ at 30.0 "$node_(1) setdest 200.0 150.0 5.0"
$ns_ at 40.0 "$node_(1) setdest 100.0 100.0 10.0"
`

func TestNodesGoWhereTheyAreTold(t *testing.T) {
	s, report := readertest.Compile(t, script, on(1, false))
	readertest.Places(t, s,
		readertest.Place{Platform: 1, Seconds: 0, Position: at(100, 50, 5)},
		readertest.Place{Platform: 1, Seconds: 10, Position: at(100, 50, 5)},
		readertest.Place{Platform: 1, Seconds: 15, Position: at(150, 50, 5)},
		readertest.Place{Platform: 1, Seconds: 20, Position: at(200, 50, 5)},
		readertest.Place{Platform: 1, Seconds: 30, Position: at(200, 50, 5)},
		readertest.Place{Platform: 1, Seconds: 40, Position: at(200, 100, 5)}, // the next order comes before it arrives
		readertest.Place{Platform: 1, Seconds: 45, Position: at(150, 100, 5)},
		readertest.Place{Platform: 1, Seconds: 50, Position: at(100, 100, 5)},
		readertest.Place{Platform: 2, Seconds: 50, Position: at(0, 0, 0)})
	if s.Duration() != 50*time.Second || report.Unknown["$god_ set-dist"] != 1 || len(report.Warnings) > 0 {
		t.Errorf("it lasts %s, report %+v", s.Duration(), report)
	}
}

func TestCoordinatesMayBeThoseOfCOREsCanvas(t *testing.T) {
	s, _ := readertest.Compile(t, script, on(1.5, true))
	readertest.Places(t, s, readertest.Place{Platform: 1, Seconds: 0, Position: at(150, -75, 7.5)},
		readertest.Place{Platform: 1, Seconds: 25, Position: at(300, -75, 7.5)}) // 150 m at 10 m/s
}

func TestJumpsAndSpeedsOfZeroTakeNoTime(t *testing.T) {
	s, _ := readertest.Compile(t, `$node_(1) set X_ 0
$node_(1) set Y_ 0
$ns_ at 10 "$node_(1) setdest 100 0 0"
$ns_ at 20 "$node_(1) set X_ 500; $node_(1) set Y_ 300"; $node_(2) set X_ 7
$ns_ at 20 {$node_(2) set X_ 500; $node_(2) set Y_ 300}
`, on(1, false))
	for _, want := range []readertest.Place{{Platform: 1, Seconds: 9.9, Position: at(0, 0, 0)}, {Platform: 1, Seconds: 10, Position: at(100, 0, 0)},
		{Platform: 1, Seconds: 19.9, Position: at(100, 0, 0)}, {Platform: 1, Seconds: 20, Position: at(500, 300, 0)},
		{Platform: 2, Seconds: 0, Position: at(7, 0, 0)}, {Platform: 2, Seconds: 20, Position: at(500, 300, 0)}} {
		readertest.Places(t, s, want)
	}
}

func TestNodesAreNumberedFromOneWhereThereIsANodeZero(t *testing.T) {
	s, report := readertest.Compile(t, strings.ReplaceAll(script, "$node_(2)", "$node_(0)"), on(1, false))
	if !slices.Equal(s.Platforms(), []int{1, 2}) {
		t.Errorf("platforms are %v", s.Platforms())
	}
	readertest.Places(t, s, readertest.Place{Platform: 1, Seconds: 0, Position: at(0, 0, 0)}, readertest.Place{Platform: 2, Seconds: 0, Position: at(100, 50, 5)})
	if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, "node 0 is platform 1") {
		t.Errorf("warnings: %q", said)
	}
}

func TestHoweverAScriptIsWrittenItIsTheSame(t *testing.T) {
	lines := strings.SplitAfter(script, "\n")
	backwards := slices.Clone(lines)
	slices.Reverse(backwards)
	readertest.Same(t, script, on(1, false), map[string]string{
		"backwards":              strings.Join(backwards, ""),
		"a byte order mark":      "\ufeff" + script,
		"UTF-16":                 readertest.UTF16(script),
		"ISO-8859-1 in comments": "# H\xe5\xf8ya\n" + script,
		"lines of Windows":       strings.ReplaceAll(script, "\n", "\r\n"),
		"braces":                 strings.NewReplacer(`"$`, "{$", "0\"\n", "0}\n").Replace(script),
		"other variables":        strings.NewReplacer("$ns_", "$ns", "$node_(", "$n(").Replace(script),
		"more space":             strings.ReplaceAll(script, " ", " \t "),
		"semicolons":             strings.ReplaceAll(script, "\n", ";\n")[2:],
		"comments behind":        strings.ReplaceAll(script, "\n", " ;# as drawn; by hand\n")[2:],
		"statements in one line": strings.ReplaceAll(script[strings.Index(script, "$"):], "\n", "; "),
		"exponents":              strings.ReplaceAll(script, "200.0", "2.0e2"),
	})
}

func TestLinesThatMakeNoSenseAreRefused(t *testing.T) {
	readertest.Refused(t, on(1, false), map[string]readertest.Wrong{
		"a coordinate in words":   {"$node_(1) set X_ here\n", 1, `X_ is "here": want a number`},
		"a decimal comma":         {"$node_(1) set X_ 1,5\n", 1, `X_ is "1,5": want a number with a decimal point, such as 1.5`},
		"a time in words":         {"\n$ns_ at noon \"$node_(1) setdest 1 1 1\"\n", 2, `time is "noon": want a number`},
		"a destination too short": {"$ns_ at 1 \"$node_(1) setdest 1 1\"\n", 1, "setdest has 2 values: want x, y and speed"},
		"a speed below zero":      {"$ns_ at 1 \"$node_(1) setdest 1 1 -1\"\n", 1, "speed is -1: want metres per second"},
		"a node too many":         {"$node_(65535) set X_ 1\n", 1, "want a number from 0 to 65534"},
		"a place far away":        {"$node_(1) set X_ 1e9\n", 1, "want at most 1000 km from the origin"},
		"a way of many years":     {"$ns_ at 1 \"$node_(1) setdest 900000 1 0.0001\"\n", 1, "takes more than a year to get there"},
	})
	err := readertest.Refusal(t, script, readertest.Tracks(ns2.Parse, tracks.Options{}, tracks.Rules{}))
	if !strings.Contains(err.Reason, "want tracks.origin") {
		t.Errorf("without an origin the error is %q", err)
	}
}

func TestBracketsAloneAreNoStatement(t *testing.T) {
	_, report := readertest.Compile(t, "if {$x} {\n$node_(1) set X_ 1\n}\n", on(1, false))
	if _, said := report.Unknown[""]; said || report.Unknown["if $x"] != 1 {
		t.Errorf("passed over were %v", report.Unknown)
	}
}

func TestANodeWithoutAPlaceBeginsAtTheOrigin(t *testing.T) {
	s, report := readertest.Compile(t, `$ns_ at 5 "$node_(3) setdest 100 0 10"`, on(1, false))
	readertest.Places(t, s, readertest.Place{Platform: 3, Seconds: 10, Position: at(50, 0, 0)})
	if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, "node 3 is sent off before it has X_ and Y_: it begins at 0, 0") {
		t.Errorf("warnings: %q", said)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(script))
	f.Add([]byte("$ns_ at 20 {$node_(0) set Y_ 300}\n"))
	f.Add([]byte(readertest.UTF16(script)))
	plane := tracks.NewPlane(origin, 1, false)
	readertest.Fuzz(f, readertest.Tracks(ns2.Parse, tracks.Options{Plane: plane}, tracks.Rules{Step: 24 * time.Hour}))
}
