package gpx_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/gpx"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
)

func with(options gpx.Options) readertest.Read {
	return func(file []byte, b *scenario.Builder) (scenario.Report, error) {
		return gpx.Read(bytes.NewReader(file), "tracks.gpx", b, options)
	}
}

const tracks = `<?xml version="1.0" encoding="UTF-8"?>
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
	s, report := readertest.Compile(t, tracks, with(gpx.Options{}))
	if !slices.Equal(report.Platforms, []int{7, 9}) || report.Sentences != 5 || report.Last != 20*time.Second {
		t.Errorf("report is %+v", report)
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
	s, _ := readertest.Compile(t, tracks, with(gpx.Options{}))
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
	s, _ := readertest.Compile(t, tracks, with(gpx.Options{Step: -1}))
	if got := at(t, s, 9.9, 7); !near(got, geo.Position{Latitude: 58, Longitude: 8, Altitude: 10}) {
		t.Errorf("between its points platform 7 is at %v", got)
	}
}

func TestWhatWasBeforeTheOriginIsCutOff(t *testing.T) {
	for _, start := range []time.Duration{5 * time.Second, 4500 * time.Millisecond} {
		origin := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC).Add(start)
		s, _ := readertest.Compile(t, tracks, with(gpx.Options{Origin: origin}))
		fraction := start.Seconds() / 10
		want := geo.Position{Latitude: 58 + 0.1*fraction, Longitude: 8 + 0.2*fraction, Altitude: 10 + 20*fraction}
		if got := at(t, s, 0, 7); !near(got, want) {
			t.Errorf("at the origin platform 7 is at %v: want %v", got, want)
		}
	}
}

func TestTracksHaveThePlatformsThatTheOptionsSay(t *testing.T) {
	s, _ := readertest.Compile(t, tracks, with(gpx.Options{Platform: 40}))
	if !slices.Equal(s.Platforms(), []int{40, 41}) {
		t.Errorf("platforms are %v", s.Platforms())
	}
	s, _ = readertest.Compile(t, strings.Replace(tracks, "<name>9</name>", "<name>bravo</name>", 1), with(gpx.Options{}))
	if !slices.Equal(s.Platforms(), []int{1, 2}) {
		t.Errorf("platforms are %v", s.Platforms())
	}
}

func TestTheFirstMomentOfAFileIsKnownBeforeItIsRead(t *testing.T) {
	c, err := gpx.Look(strings.NewReader(tracks), "tracks.gpx")
	if err != nil || !c.First.Equal(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)) || c.Tracks != 2 || !slices.Equal(c.Named, []int{7, 9}) {
		t.Errorf("it has %+v, %v", c, err)
	}
}

func TestAFileIsReadInTheEncodingThatItDeclares(t *testing.T) {
	named := strings.Replace(tracks, "<ele>10</ele>", "<ele>10</ele><name>Håøya</name>", 1)
	latin := strings.Replace(strings.Replace(named, "Håøya", "H\xe5\xf8ya", 1), "UTF-8", "ISO-8859-1", 1)
	readertest.Same(t, tracks, with(gpx.Options{}), map[string]string{
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
	for name, c := range map[string]struct {
		file   string
		line   int
		reason string
	}{
		"empty":                    {"", 1, "the file ends too early"},
		"another element":          {"<kml/>", 1, "the file is an element kml: want gpx"},
		"cut short":                {tracks[:600], 12, "unexpected EOF"},
		"a point without time":     {strings.Replace(tracks, "<time>2026-01-31T12:00:10Z</time>", "", 1), 7, `time is ""`},
		"a point without latitude": {strings.Replace(tracks, `lat="58.1" `, "", 1), 7, "no lat or no lon"},
		"a decimal comma":          {strings.Replace(tracks, `lat="58.1"`, `lat="58,1"`, 1), 7, `lat is "58,1": want a number with a decimal point, such as 58.1`},
		"a height in words":        {strings.Replace(tracks, "<ele>30<", "<ele>high<", 1), 7, `ele is "high": want a number`},
		"an unknown encoding":      {strings.Replace(tracks, "UTF-8", "klingon", 1), 1, `the encoding "klingon" is not known`},
		"not UTF-8":                {strings.Replace(tracks, "<name>7<", "<name>\xe5<", 1), 5, "the text is not in UTF-8: want a first line that names its encoding"},
		"a latitude of 98":         {strings.Replace(tracks, `lat="58.1"`, `lat="98.1"`, 1), 7, "latitude is 98.1"},
		"a time that goes back":    {strings.Replace(tracks, "12:00:10Z", "11:00:10Z", 1), 7, "want none before"},
		"two tracks of a name":     {strings.Replace(tracks, "<name>9<", "<name>7<", 1), 1, "two tracks have the name 7"},
		"a track of 30 years":      {strings.Replace(tracks, "2026-01-31T12:00:20Z", "2056-01-31T12:00:20Z", 1), 9, "want at most a year"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readertest.Refusal(t, c.file, with(gpx.Options{}))
			if err.Line != c.line || !strings.Contains(err.Reason, c.reason) {
				t.Errorf("error is %q: want line %d and %q", err, c.line, c.reason)
			}
		})
	}
}

func TestAStepThatMakesTooManyPositionsIsRefused(t *testing.T) {
	err := readertest.Refusal(t, strings.Replace(tracks, "12:00:10Z", "12:00:19Z", 1), with(gpx.Options{Step: time.Microsecond}))
	if !strings.Contains(err.Reason, "want a longer step") {
		t.Errorf("error is %q", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(tracks))
	f.Add([]byte("\ufeff" + strings.Replace(tracks, "UTF-8", "ISO-8859-1", 1)))
	f.Add([]byte(readertest.UTF16(tracks)))
	readertest.Fuzz(f, with(gpx.Options{Step: 24 * time.Hour}))
}
