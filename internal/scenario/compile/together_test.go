package compile

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// tracksFrom returns a GPX file of tracks of two points, a minute apart, from a moment on.
func tracksFrom(begin string, names ...string) string {
	at, err := time.Parse(time.RFC3339, begin)
	if err != nil {
		panic(err)
	}
	var text strings.Builder
	text.WriteString("<gpx>")
	for _, name := range names {
		fmt.Fprintf(&text, `<trk><name>%s</name><trkseg><trkpt lat="58" lon="8"><time>%s</time></trkpt><trkpt lat="58.01" lon="8"><time>%s</time></trkpt></trkseg></trk>`,
			name, at.Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339))
	}
	text.WriteString("</gpx>")
	return text.String()
}

const noon = "2026-01-31T12:00:00Z"

func sourcesOf(keys ...string) (sources []v1alpha1.ScenarioSource) {
	for _, key := range keys {
		name, number, given := strings.Cut(key, "=")
		source := *from(name)
		if given {
			var platform int32
			_, _ = fmt.Sscan(number, &platform)
			source.Platform = &platform
		}
		sources = append(sources, source)
	}
	return sources
}

func TestTracksOfSeveralSourcesAreSeveralPlatforms(t *testing.T) {
	f := files{"a": tracksFrom(noon, "alpha"), "b": tracksFrom(noon, "bravo"), "two": tracksFrom(noon, "x", "y"), "7": tracksFrom(noon, "7"), "9": tracksFrom(noon, "9"), "none": "<gpx></gpx>"}
	for name, c := range map[string]struct {
		sources []string
		want    []int
		warning string
	}{
		"without numbers":           {[]string{"a", "b"}, []int{1, 2}, "files/a (alpha) is 1, files/b (bravo) is 2"},
		"two tracks in one":         {[]string{"two", "a"}, []int{1, 2, 3}, "files/two (x) is 1, files/two (y) is 2, files/a (alpha) is 3"},
		"one number is given":       {[]string{"a", "b=1", "two"}, []int{1, 2, 3, 4}, "files/a (alpha) is 2, files/two (x) is 3, files/two (y) is 4"},
		"all numbers are given":     {[]string{"a=5", "two=7"}, []int{5, 7, 8}, ""},
		"names are numbers":         {[]string{"7", "9"}, []int{7, 9}, ""},
		"names are the same number": {[]string{"7", "7"}, []int{1, 2}, "files/7 (7) is 1, files/7 (7) is 2"},
		"a name that is given away": {[]string{"7", "9=7"}, []int{1, 7}, "7 is 1"},
		"a file has no tracks":      {[]string{"none", "a", "b"}, []int{1, 2}, "files/a (alpha) is 1"},
		"a number is taken":         {[]string{"a=2", "two"}, []int{1, 2, 3}, "x is 1, y is 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s, result := compiled(t, v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf(c.sources...)}, f)
			if !slices.Equal(s.Platforms(), c.want) {
				t.Errorf("platforms are %v; want %v", s.Platforms(), c.want)
			}
			if said := strings.Join(result.Warnings, "; "); !strings.Contains(said, c.warning) || strings.Contains(said, "in the order of the tracks") != (c.warning != "") {
				t.Errorf("warnings %q; want %q", said, c.warning)
			}
		})
	}
}

func TestSourcesAreNotMergedWithoutAWord(t *testing.T) {
	f := files{"a": tracksFrom(noon, "alpha"), "later": tracksFrom("2026-01-31T13:00:00Z", "alpha"), "two": tracksFrom(noon, "x", "y"),
		"c1": "0,58,8\n60,58,8\n", "c2": "30,58,9\n90,58,9\n", "c3": "60,58,9\n90,58,9\n", "own": "0,1,58,8\n", "same": "0,1,59,8\n",
		"seconds": "0,2,58,8\n", "dates": noon + ",1,58,8\n", "clock": "12:00:00 RECV flow>1 gps>CURRENT,58,8,10\n"}
	for name, c := range map[string]struct {
		format  v1alpha1.ScenarioFormat
		sources []string
		want    string
	}{
		"two tracks of a number":           {"gpx", []string{"a=1", "a=1"}, "files/a (alpha) and files/a (alpha) both have positions of platform 1"},
		"a track beside two":               {"gpx", []string{"two=1", "a=2"}, "platform 2 is that of files/a and that of files/two, which has 2 tracks"},
		"two tracks before one":            {"gpx", []string{"a=2", "two=1"}, "platform 2 is that of files/a and that of files/two, which has 2 tracks"},
		"rows of a number":                 {"csv", []string{"c1=1", "c2=1"}, "files/c1 and files/c2 both have positions of platform 1 from 30s to 1m"},
		"rows with a column":               {"csv", []string{"own", "same"}, "files/own and files/same both have positions of platform 1"},
		"dates and seconds":                {"csv", []string{"dates", "seconds"}, "files/dates has dates and files/seconds has times in seconds"},
		"times of day and dates":           {"csv", []string{"clock", "dates"}, "files/clock has times of day and files/dates has dates"},
		"a source that goes on is allowed": {"csv", []string{"c1=1", "c3=1"}, ""},
		"a track that goes on is allowed":  {"gpx", []string{"a=1", "later=1"}, ""},
		"another platform is allowed":      {"csv", []string{"c1=1", "c2=2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(context.Background(), v1alpha1.ScenarioSpec{Format: c.format, Sources: sourcesOf(c.sources...)}, f.open, new(bytes.Buffer))
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

func TestEventLogsWithTheSamePositionsAreSaid(t *testing.T) {
	f := files{"a": "0.0 nem:1 location gps 58,8,3\n9.0 nem:1 location gps 58,8,4\n", "b": "5.0 nem:1 location gps 59,8,3\n8.0 nem:1 location gps 58,8,4\n"}
	_, result := compiled(t, v1alpha1.ScenarioSpec{Format: "eel", Sources: sourcesOf("a", "b")}, f)
	if said := strings.Join(result.Warnings, "; "); !strings.Contains(said, "files/a and files/b both have positions of platform 1 from 5s to 8s") {
		t.Errorf("warnings: %q", said)
	}
}

func TestSourcesHaveACommonOrigin(t *testing.T) {
	const pair = ",0,1,58,8,3,2,58,8.1,3,90\n"
	f := files{
		"dates1": "2026-01-31T12:00:10Z,1,58,8\n", "dates2": noon + ",2,58,8\n",
		"clock1": "23:59:55 RECV flow>2 gps>CURRENT,58,8,10\n", "clock2": "00:00:05 RECV flow>1 gps>CURRENT,58,8,10\n",
		"pairs1": "3610" + pair, "pairs2": "3600" + strings.Replace(pair, ",90", ",80", 1),
		"track1": tracksFrom("2026-01-31T12:00:10Z", "1"), "track2": tracksFrom(noon, "2"),
	}
	for name, c := range map[string]struct {
		format  v1alpha1.ScenarioFormat
		sources []string
	}{
		"rows with dates":               {"csv", []string{"dates1", "dates2"}},
		"rows the other way":            {"csv", []string{"dates2", "dates1"}},
		"lines of MGEN":                 {"csv", []string{"clock1", "clock2"}},
		"lines of MGEN, the other way":  {"csv", []string{"clock2", "clock1"}},
		"rows of pairs":                 {"anglova-csv", []string{"pairs1", "pairs2"}},
		"rows of pairs, the other way":  {"anglova-csv", []string{"pairs2", "pairs1"}},
		"tracks":                        {"gpx", []string{"track1", "track2"}},
		"tracks, with names as numbers": {"gpx", []string{"track2", "track1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := compiled(t, v1alpha1.ScenarioSpec{Format: c.format, Sources: sourcesOf(c.sources...)}, f)
			cursor := s.NewCursor()
			if c.format == "anglova-csv" {
				if early, _ := loss(t, s, 9*time.Second, 0, 1); early != 80 {
					t.Errorf("at 9 s the pathloss is %v", early)
				}
				if late, _ := loss(t, s, 10*time.Second, 0, 1); late != 90 {
					t.Errorf("at 10 s the pathloss is %v", late)
				}
				return
			}
			if err := cursor.Seek(9 * time.Second); err != nil {
				t.Fatal(err)
			}
			first, _ := s.Index(1)
			second, _ := s.Index(2)
			_, early := cursor.Position(second)
			_, late := cursor.Position(first)
			if !early || late {
				t.Errorf("at 9 s platform 2 is there: %t, platform 1: %t", early, late)
			}
			if err := cursor.Seek(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			if _, there := cursor.Position(first); !there {
				t.Error("at 10 s platform 1 is not there")
			}
		})
	}
}

func TestTracksOfDifferentDaysMayBeginTogether(t *testing.T) {
	f := files{"a": tracksFrom(noon, "1"), "b": tracksFrom("2026-02-01T12:00:00Z", "2"), "both": strings.Replace(tracksFrom(noon, "1")+tracksFrom("2026-02-01T12:00:00Z", "2"), "</gpx><gpx>", "", 1),
		"rows": "2026-01-31T12:00:00Z,1,58,8\n2026-01-31T12:01:00Z,1,58.01,8\n", "seconds": "500,2,58,8\n560,2,58.01,8\n"}
	for name, c := range map[string]struct {
		spec   v1alpha1.ScenarioSpec
		second time.Duration // when platform 2 begins
	}{
		"of each source":        {v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("a", "b"), Tracks: &v1alpha1.ScenarioTracks{Align: "Sources"}}, 0},
		"of each track":         {v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("both"), Tracks: &v1alpha1.ScenarioTracks{Align: "Tracks"}}, 0},
		"of one source":         {v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("both"), Tracks: &v1alpha1.ScenarioTracks{Align: "Sources"}}, 24 * time.Hour},
		"with a later one":      {v1alpha1.ScenarioSpec{Format: "gpx", Sources: later(sourcesOf("a", "b"), "30s"), Tracks: &v1alpha1.ScenarioTracks{Align: "Sources"}}, 30 * time.Second},
		"with one later track":  {v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("both"), Tracks: &v1alpha1.ScenarioTracks{Align: "Tracks", Named: []v1alpha1.NamedTrack{{Name: "2", Offset: "10s"}}}}, 10 * time.Second},
		"dates beside seconds":  {v1alpha1.ScenarioSpec{Format: "csv", Sources: sourcesOf("rows", "seconds"), Tracks: &v1alpha1.ScenarioTracks{Align: "Sources"}}, 0},
		"offset, not aligned":   {v1alpha1.ScenarioSpec{Format: "gpx", Sources: later(sourcesOf("a", "b"), "-24h")}, 0},
		"offset, earlier still": {v1alpha1.ScenarioSpec{Format: "gpx", Sources: later(sourcesOf("a", "b"), "-24h1m")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, result := compiled(t, c.spec, f)
			cursor := s.NewCursor()
			if err := cursor.Seek(c.second); err != nil {
				t.Fatal(err)
			}
			if _, there := cursor.Position(1); !there || (c.second > 0 && positionBefore(t, s, c.second)) {
				t.Errorf("platform 2 does not begin at %s", c.second)
			}
			if said := strings.Join(result.Warnings, "; "); strings.Contains(said, "no platform has a new position") != (c.second > time.Hour) {
				t.Errorf("warnings: %q", said)
			}
		})
	}
}

// positionBefore reports whether platform 2 has a position just before a moment.
func positionBefore(t *testing.T, s *scenario.Scenario, at time.Duration) bool {
	t.Helper()
	cursor := s.NewCursor()
	if err := cursor.Seek(at - 1); err != nil {
		t.Fatal(err)
	}
	_, there := cursor.Position(1)
	return there
}

// later returns a source that begins later.
func later(sources []v1alpha1.ScenarioSource, offset v1alpha1.Offset) []v1alpha1.ScenarioSource {
	sources[1].Offset = offset
	return sources
}

func TestTheStartOfTracksMayBeGiven(t *testing.T) {
	start := metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC))
	s, _ := compiled(t, v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("a"), Tracks: &v1alpha1.ScenarioTracks{Start: &start}}, files{"a": tracksFrom(noon, "1")})
	if s.Duration() != 30*time.Second {
		t.Errorf("what is left of a minute lasts %s", s.Duration())
	}
}

func TestANameThatNoTrackHasIsSaid(t *testing.T) {
	spec := v1alpha1.ScenarioSpec{Format: "gpx", Source: from("a"), Tracks: &v1alpha1.ScenarioTracks{Named: []v1alpha1.NamedTrack{{Name: "alpah", Offset: "5s"}}}}
	_, result := compiled(t, spec, files{"a": tracksFrom(noon, "alpha")})
	if said := strings.Join(result.Warnings, "; "); !strings.Contains(said, "tracks.named[alpah]: no track has this name") {
		t.Errorf("warnings: %q", said)
	}
}

func TestWhatTracksCannotBeIsRefused(t *testing.T) {
	start := metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	origin := &v1alpha1.Position{Latitude: "58", Longitude: "8"}
	far := metav1.NewTime(time.Date(9999, 1, 31, 12, 0, 0, 0, time.UTC))
	f := files{"rows": "0,1,58,8\n", "move": "$node_(0) set X_ 1\n", "untimed": "name,lat,lon\na,58,8\na,59,8\n"}
	for want, spec := range map[string]v1alpha1.ScenarioSpec{
		"tracks.origin is missing":                                                   {Format: "ns2", Source: from("move")},
		"tracks.origin is for coordinates":                                           {Format: "csv", Source: from("rows"), Tracks: &v1alpha1.ScenarioTracks{Origin: origin}},
		"tracks: format eel has none":                                                {Format: "eel", Source: from("rows"), Tracks: &v1alpha1.ScenarioTracks{}},
		"files of eel keep their times":                                              {Format: "eel", Sources: later(sourcesOf("rows", "rows"), "1s")},
		"tracks.start is for align AsDated":                                          {Format: "csv", Source: from("rows"), Tracks: &v1alpha1.ScenarioTracks{Start: &start, Align: "Tracks"}},
		"tracks.start is 9999-01-31T12:00:00Z: want a year from 1950 to 2200":        {Format: "csv", Source: from("rows"), Tracks: &v1alpha1.ScenarioTracks{Start: &far}},
		"the track takes 10000h, which is more than a year: want a shorter duration": {Format: "csv", Source: from("untimed"), Tracks: &v1alpha1.ScenarioTracks{Duration: "10000h"}},
		"tracks.start is a date, but files/rows":                                     {Format: "csv", Source: from("rows"), Tracks: &v1alpha1.ScenarioTracks{Start: &start}},
		"tracks.speed and tracks.duration exclude":                                   {Format: "csv", Source: from("rows"), Tracks: &v1alpha1.ScenarioTracks{Speed: "1m/s", Duration: "1s"}},
		"tracks.named[a].duration is":                                                {Format: "csv", Source: from("rows"), Tracks: &v1alpha1.ScenarioTracks{Named: []v1alpha1.NamedTrack{{Name: "a", Duration: "0s"}}}},
		`tracks.unit is "0m"`:                                                        {Format: "ns2", Source: from("move"), Tracks: &v1alpha1.ScenarioTracks{Origin: origin, Unit: "0m"}},
		"propagation.terrain: it moves no":                                           {Format: "csv", Source: from("rows"), Propagation: &v1alpha1.Propagation{Model: "FreeSpace", Frequency: "1MHz", Terrain: &later(sourcesOf("rows", "rows"), "1s")[1]}},
	} {
		if _, err := Compile(context.Background(), spec, f.open, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
}

func TestTracksOfDifferentDaysAreSaid(t *testing.T) {
	f := files{"a": tracksFrom(noon, "1"), "b": tracksFrom("2026-02-01T12:00:00Z", "2"), "c": tracksFrom("2026-01-31T12:30:00Z", "3")}
	_, result := compiled(t, v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("a", "b")}, f)
	if said := strings.Join(result.Warnings, "; "); !strings.Contains(said, "from 1m to 24h no platform has a new position: files/b (2) goes on then") {
		t.Errorf("warnings: %q", said)
	}
	_, result = compiled(t, v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("a", "c")}, f)
	if said := strings.Join(result.Warnings, "; "); strings.Contains(said, "no platform has a new position") {
		t.Errorf("warnings of one day: %q", said)
	}
}

func TestSourcesThatFollowEachOtherMayEndBeforeTheStart(t *testing.T) {
	rows := func(latitude int, begin, end string) string {
		return fmt.Sprintf("%s,1,%d,8\n%s,1,%d,8\n", begin, latitude, end, latitude)
	}
	f := files{"a": rows(58, "2026-01-31T10:00:00Z", "2026-01-31T10:10:00Z"), "b": rows(59, "2026-01-31T10:20:00Z", "2026-01-31T10:50:00Z"),
		"c": rows(60, "2026-01-31T10:55:00Z", "2026-01-31T12:10:00Z")}
	start := metav1.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for want, sources := range map[float64][]string{59: {"b", "a"}, 60: {"c", "b", "a"}} {
		s, report := compiled(t, v1alpha1.ScenarioSpec{Format: "csv", Sources: sourcesOf(sources...), Tracks: &v1alpha1.ScenarioTracks{Start: &start}}, f)
		c := s.NewCursor()
		if err := c.Seek(0); err != nil {
			t.Fatal(err)
		}
		if p, known := c.Position(0); !known || p.Latitude != want {
			t.Errorf("of %v the platform begins at latitude %v; want %v", sources, p.Latitude, want)
		}
		goesOn := slices.Contains(sources, "c")
		if said := strings.Join(report.Warnings, "\n"); strings.Contains(said, "stays where it was then") == goesOn {
			t.Errorf("warnings of %v: %q", sources, said)
		}
	}
}
