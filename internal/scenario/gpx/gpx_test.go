package gpx_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/gpx"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
)

func with(platform int, rules tracks.Rules) readertest.Read {
	return readertest.Tracks(gpx.Parse, tracks.Options{Platform: platform}, rules)
}

const twoTracks = `<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="test" xmlns="http://www.topografix.com/GPX/1/1">
<metadata><time>2026-01-31T12:00:00Z</time></metadata>
<wpt lat="1" lon="2"/>
<trk><name>7</name><trkseg>
<trkpt lat="58.0" lon="8.0"><ele>10</ele><time>2026-01-31T12:00:00Z</time></trkpt>
<trkpt lat="58.1" lon="8.2"><ele>30</ele><time>2026-01-31T12:00:10Z</time><extensions><x>y</x></extensions></trkpt>
</trkseg><trkseg>
<trkpt lat="58.5" lon="8.5"><time>2026-01-31T12:00:20Z</time></trkpt>
</trkseg></trk>
<trk><name>9</name><trkseg>
<trkpt lat="58.0" lon="179.9"><time>2026-01-31T13:00:05.500+01:00</time></trkpt>
<trkpt lat="58.0" lon="-179.9"><time>2026-01-31T12:00:09.500Z</time></trkpt>
</trkseg></trk>
</gpx>`

func near(a, b geo.Position) bool { return geo.Distance(a, b) < 0.01 }

func at(t *testing.T, s *scenario.Scenario, seconds float64, platform int) geo.Position {
	t.Helper()
	i, ok := s.Index(platform)
	if !ok {
		t.Fatalf("there is no platform %d among %v", platform, s.Platforms())
	}
	p, known := readertest.At(t, s, time.Duration(seconds*1e9)).Position(i)
	if !known {
		return geo.Position{Latitude: math.NaN()}
	}
	return p
}

func TestPlatformsMoveEvenlyBetweenThePointsOfASegment(t *testing.T) {
	s, report := readertest.Compile(t, twoTracks, with(0, tracks.Rules{}))
	if !slices.Equal(s.Platforms(), []int{7, 9}) || s.Duration() != 20*time.Second {
		t.Errorf("platforms are %v, up to %s", s.Platforms(), s.Duration())
	}
	if want := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC); !report.Origin.Equal(want) {
		t.Errorf("origin is %s: want %s", report.Origin, want)
	}
	if !slices.Equal(report.UnknownSentences(), []string{"1 × wpt"}) {
		t.Errorf("unknown are %q", report.UnknownSentences())
	}
	for _, c := range []struct {
		seconds float64
		want    geo.Position
	}{
		{0, geo.Position{Latitude: 58, Longitude: 8, Altitude: 10}},
		{4.9, geo.Position{Latitude: 58.04, Longitude: 8.08, Altitude: 18}},
		{5, geo.Position{Latitude: 58.05, Longitude: 8.1, Altitude: 20}},
		{10, geo.Position{Latitude: 58.1, Longitude: 8.2, Altitude: 30}},
		{19.9, geo.Position{Latitude: 58.1, Longitude: 8.2, Altitude: 30}},
		{20, geo.Position{Latitude: 58.5, Longitude: 8.5}},
	} {
		if got := at(t, s, c.seconds, 7); !near(got, c.want) {
			t.Errorf("at %g s platform 7 is at %v: want %v", c.seconds, got, c.want)
		}
	}
}

func TestATrackGoesTheShortWayOverTheDateLine(t *testing.T) {
	s, _ := readertest.Compile(t, twoTracks, with(0, tracks.Rules{}))
	for _, c := range []struct{ seconds, longitude float64 }{{5.5, 179.9}, {7, 179.975}, {8, -179.975}, {9.5, -179.9}} {
		if got := at(t, s, c.seconds, 9); !near(got, geo.Position{Latitude: 58, Longitude: c.longitude}) {
			t.Errorf("at %g s platform 9 is at %v: want longitude %v", c.seconds, got, c.longitude)
		}
	}
	if got := at(t, s, 5, 9); !math.IsNaN(got.Latitude) {
		t.Errorf("before its first point platform 9 is at %v", got)
	}
}

func TestPlatformsMayJumpFromPointToPoint(t *testing.T) {
	s, _ := readertest.Compile(t, twoTracks, with(0, tracks.Rules{Step: -1}))
	if got := at(t, s, 9.9, 7); !near(got, geo.Position{Latitude: 58, Longitude: 8, Altitude: 10}) {
		t.Errorf("between its points platform 7 is at %v", got)
	}
}

func TestWhatWasBeforeTheOriginIsCutOff(t *testing.T) {
	for _, start := range []time.Duration{5 * time.Second, 4500 * time.Millisecond} {
		origin := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC).Add(start)
		s, _ := readertest.Compile(t, twoTracks, with(0, tracks.Rules{Start: origin}))
		fraction := start.Seconds() / 10
		want := geo.Position{Latitude: 58 + 0.1*fraction, Longitude: 8 + 0.2*fraction, Altitude: 10 + 20*fraction}
		if got := at(t, s, 0, 7); !near(got, want) {
			t.Errorf("at the origin platform 7 is at %v: want %v", got, want)
		}
	}
}

func TestTracksHaveThePlatformsThatTheOptionsSay(t *testing.T) {
	s, _ := readertest.Compile(t, twoTracks, with(40, tracks.Rules{}))
	if !slices.Equal(s.Platforms(), []int{40, 41}) {
		t.Errorf("platforms are %v", s.Platforms())
	}
	s, _ = readertest.Compile(t, strings.Replace(twoTracks, "<name>9</name>", "<name>bravo</name>", 1), with(0, tracks.Rules{}))
	if !slices.Equal(s.Platforms(), []int{1, 2}) {
		t.Errorf("platforms are %v", s.Platforms())
	}
}

const route = `<gpx><rte><name>plan</name><rtept lat="58" lon="8"/><rtept lat="58.001" lon="8"/><rtept lat="58.004" lon="8"/></rte></gpx>`

func TestPointsWithoutTimesAreReachedAtAPace(t *testing.T) {
	track := strings.NewReplacer("rtept", "trkpt", "<rte>", "<trk><trkseg>", "</rte>", "</trkseg></trk>", "<name>plan</name>", "").Replace(route)
	for name, file := range map[string]string{"a route": route, "a track": track} {
		t.Run(name, func(t *testing.T) {
			s, _ := readertest.Compile(t, file, with(0, tracks.Rules{Pace: tracks.Pace{Duration: 400 * time.Second}}))
			readertest.Places(t, s,
				readertest.Place{Platform: 1, Seconds: 0, Position: geo.Position{Latitude: 58, Longitude: 8}},
				readertest.Place{Platform: 1, Seconds: 100, Position: geo.Position{Latitude: 58.001, Longitude: 8}},
				readertest.Place{Platform: 1, Seconds: 400, Position: geo.Position{Latitude: 58.004, Longitude: 8}})
			s, _ = readertest.Compile(t, file, with(0, tracks.Rules{Pace: tracks.Pace{MetresPerSecond: 11.13816}}))
			if got := s.Duration().Seconds(); math.Abs(got-40) > 0.5 {
				t.Errorf("at 11.1 m/s 446 m take %v s", got)
			}
		})
	}
}

func TestPointsBetweenThoseWithTimesAreReachedEvenly(t *testing.T) {
	file := strings.Replace(twoTracks, `<trkpt lat="58.1" lon="8.2">`, `<trkpt lat="58.025" lon="8.05"><ele>15</ele></trkpt><trkpt lat="58.1" lon="8.2">`, 1)
	s, report := readertest.Compile(t, file, with(0, tracks.Rules{}))
	readertest.Places(t, s, readertest.Place{Platform: 7, Seconds: 10, Position: geo.Position{Latitude: 58.1, Longitude: 8.2, Altitude: 30}})
	if got := at(t, s, 5, 7); math.Abs(got.Latitude-58.05) > 0.0001 {
		t.Errorf("half-way it is at %v", got)
	}
	if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, "7: 1 points without times are reached at an even speed") {
		t.Errorf("warnings: %q", said)
	}
}

func TestARouteBesideTracksIsPassedOver(t *testing.T) {
	file := strings.Replace(twoTracks, "</gpx>", strings.TrimPrefix(route, "<gpx>"), 1)
	s, report := readertest.Compile(t, file, with(0, tracks.Rules{Pace: tracks.Pace{MetresPerSecond: 1}}))
	if !slices.Equal(s.Platforms(), []int{7, 9}) || report.Unknown["rte"] != 1 {
		t.Errorf("report is %+v", report)
	}
}

func TestAFileIsReadInTheEncodingThatItDeclares(t *testing.T) {
	named := strings.Replace(twoTracks, "<ele>10</ele>", "<ele>10</ele><name>Håøya</name>", 1)
	latin := strings.Replace(strings.Replace(named, "Håøya", "H\xe5\xf8ya", 1), "UTF-8", "ISO-8859-1", 1)
	readertest.Same(t, twoTracks, with(0, tracks.Rules{}), map[string]string{
		"UTF-8":                     named,
		"a byte order mark":         "\ufeff" + named,
		"ISO-8859-1":                latin,
		"iso-8859-1 in lower case":  strings.Replace(latin, "ISO-8859-1", "iso-8859-1", 1),
		"windows-1252":              strings.Replace(latin, "ISO-8859-1", "windows-1252", 1),
		"UTF-16":                    readertest.UTF16(strings.Replace(named, "UTF-8", "UTF-16", 1)),
		"UTF-16 that is not said":   readertest.UTF16(named),
		"lines of Windows":          strings.ReplaceAll(named, "\n", "\r\n"),
		"no declaration":            named[strings.Index(named, "<gpx"):],
		"quotes of the other kind":  strings.ReplaceAll(named, `"`, "'"),
		"spaces around its numbers": strings.ReplaceAll(strings.ReplaceAll(named, `lat="`, `lat=" `), "<ele>", "<ele>\n "),
	})
}

func TestFilesThatAreNoTracksAreRefused(t *testing.T) {
	readertest.Refused(t, with(0, tracks.Rules{}), map[string]readertest.Wrong{
		"empty":                    {"", 1, "the file is empty: want gpx"},
		"another element":          {"<kml/>", 1, "the file is an element kml: want gpx"},
		"cut short":                {twoTracks[:600], 12, "the file ends too early"},
		"a point without time":     {strings.Replace(twoTracks, "<time>2026-01-31T12:00:10Z</time>", "", 1), 7, "the point has no time: want one such as 2026-01-31T12:00:00Z, or a speed or duration"},
		"a time in words":          {strings.Replace(twoTracks, "2026-01-31T12:00:10Z", "noon", 1), 7, `time is "noon": want one such as`},
		"a point without latitude": {strings.Replace(twoTracks, `lat="58.1" `, "", 1), 7, "no lat or no lon"},
		"a decimal comma":          {strings.Replace(twoTracks, `lat="58.1"`, `lat="58,1"`, 1), 7, `lat is "58,1": want a number with a decimal point, such as 58.1`},
		"a height in words":        {strings.Replace(twoTracks, "<ele>30<", "<ele>high<", 1), 7, `ele is "high": want a number`},
		"an unknown encoding":      {strings.Replace(twoTracks, "UTF-8", "klingon", 1), 1, `the encoding "klingon" is not known`},
		"not UTF-8":                {strings.Replace(twoTracks, "<name>7<", "<name>\xe5<", 1), 5, "the text is not in UTF-8: want a first line that names its encoding"},
		"a latitude of 98":         {strings.Replace(twoTracks, `lat="58.1"`, `lat="98.1"`, 1), 7, "latitude is 98.1"},
		"a time that goes back":    {strings.Replace(twoTracks, "12:00:10Z", "11:00:10Z", 1), 7, "want points in the order of their times"},
		"another XML":              {`<?xml version="1.1"?><gpx/>`, 1, `the file is of another version of XML: want version="1.0"`},
		"an element that is open":  {strings.Replace(twoTracks, "</trkseg><trkseg>", "</trk>", 1), 8, "the file is not well-formed XML: element <trkseg> closed by </trk>"},
		"parts at one time":        {strings.Replace(twoTracks, "2026-01-31T12:00:20Z", "2026-01-31T12:00:05Z", 1), 9, "this part of the track begins at 5s, before the end of another at 10s, in line 7: want parts that follow each other"},
		"a track of 30 years":      {strings.Replace(twoTracks, "2026-01-31T12:00:20Z", "2056-01-31T12:00:20Z", 1), 9, "want at most a year"},
	})
}

func TestAStepThatMakesTooManyPositionsIsRefused(t *testing.T) {
	err := readertest.Refusal(t, strings.Replace(twoTracks, "12:00:10Z", "12:00:19Z", 1), with(0, tracks.Rules{Step: time.Microsecond}))
	if !strings.Contains(err.Reason, "want shorter tracks") {
		t.Errorf("error is %q", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(twoTracks))
	f.Add([]byte("\ufeff" + strings.Replace(twoTracks, "UTF-8", "ISO-8859-1", 1)))
	f.Add([]byte(route))
	f.Add([]byte(readertest.UTF16(twoTracks)))
	readertest.Fuzz(f, with(0, tracks.Rules{Step: 24 * time.Hour, Pace: tracks.Pace{MetresPerSecond: 1000}}))
}
