package compile

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// tracks of a GPX file, each of two points a minute apart.
func tracks(begin string, names ...string) string {
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
	f := files{"a": tracks(noon, "alpha"), "b": tracks(noon, "bravo"), "two": tracks(noon, "x", "y"), "7": tracks(noon, "7"), "9": tracks(noon, "9"), "none": "<gpx></gpx>"}
	for name, c := range map[string]struct {
		sources []string
		want    []int
		warning string
	}{
		"without numbers":             {[]string{"a", "b"}, []int{1, 2}, "files/a is platform 1, files/b is platform 2"},
		"two tracks in one":           {[]string{"two", "a"}, []int{1, 2, 3}, "files/two is platforms 1 to 2, files/a is platform 3"},
		"one number is given":         {[]string{"a", "b=1", "two"}, []int{1, 2, 3, 4}, "files/a is platform 2, files/two is platforms 3 to 4"},
		"all numbers are given":       {[]string{"a=5", "two=7"}, []int{5, 7, 8}, ""},
		"names are numbers":           {[]string{"7", "9"}, []int{7, 9}, ""},
		"names are the same number":   {[]string{"7", "7"}, []int{1, 2}, "files/7 is platform 1, files/7 is platform 2"},
		"a name that is given away":   {[]string{"7", "9=7"}, []int{1, 7}, "files/7 is platform 1"},
		"a file has no tracks":        {[]string{"none", "a"}, []int{1}, "files/a is platform 1"},
		"a space of one is too small": {[]string{"a=2", "two"}, []int{2, 3, 4}, "files/two is platforms 3 to 4"},
	} {
		t.Run(name, func(t *testing.T) {
			s, result := compiled(t, v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf(c.sources...)}, f)
			if !slices.Equal(s.Platforms(), c.want) {
				t.Errorf("platforms are %v; want %v", s.Platforms(), c.want)
			}
			if said := strings.Join(result.Warnings, "; "); !strings.Contains(said, c.warning) || strings.Contains(said, "in the order of their sources") != (c.warning != "") {
				t.Errorf("warnings %q; want %q", said, c.warning)
			}
		})
	}
}

func TestSourcesAreNotMergedWithoutAWord(t *testing.T) {
	f := files{"a": tracks(noon, "alpha"), "two": tracks(noon, "x", "y"),
		"c1": "0,58,8\n60,58,8\n", "c2": "30,58,9\n90,58,9\n", "c3": "60,58,9\n90,58,9\n", "own": "0,1,58,8\n", "same": "0,1,59,8\n",
		"seconds": "0,2,58,8\n", "dates": noon + ",1,58,8\n", "clock": "12:00:00 RECV flow>1 gps>CURRENT,58,8,10\n"}
	for name, c := range map[string]struct {
		format  v1alpha1.ScenarioFormat
		sources []string
		want    string
	}{
		"two tracks of a number":           {"gpx", []string{"a=1", "a=1"}, "platform 1 is that of files/a and that of files/a"},
		"a track beside two":               {"gpx", []string{"two=1", "a=2"}, "platform 2 is that of files/two and that of files/a"},
		"two tracks before one":            {"gpx", []string{"a=2", "two=1"}, "platform 2 is that of files/a and that of files/two, which has 2 tracks"},
		"rows of a number":                 {"csv", []string{"c1=1", "c2=1"}, "files/c1 and files/c2 both have positions of platform 1 from 30s to 1m0s"},
		"rows with a column":               {"csv", []string{"own", "same"}, "files/own and files/same both have positions of platform 1"},
		"dates and seconds":                {"csv", []string{"dates", "seconds"}, "files/dates has dates and files/seconds has times in seconds"},
		"times of day and dates":           {"csv", []string{"clock", "dates"}, "files/clock has times of day and files/dates has dates"},
		"a source that goes on is allowed": {"csv", []string{"c1=1", "c3=1"}, ""},
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
		"track1": tracks("2026-01-31T12:00:10Z", "1"), "track2": tracks(noon, "2"),
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

func TestTracksOfDifferentDaysAreSaid(t *testing.T) {
	f := files{"a": tracks(noon, "1"), "b": tracks("2026-02-01T12:00:00Z", "2"), "c": tracks("2026-01-31T12:30:00Z", "3")}
	_, result := compiled(t, v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("a", "b")}, f)
	if said := strings.Join(result.Warnings, "; "); !strings.Contains(said, "from 1m0s to 24h0m0s no platform has a new position: files/b goes on then") {
		t.Errorf("warnings: %q", said)
	}
	_, result = compiled(t, v1alpha1.ScenarioSpec{Format: "gpx", Sources: sourcesOf("a", "c")}, f)
	if said := strings.Join(result.Warnings, "; "); strings.Contains(said, "no platform has a new position") {
		t.Errorf("warnings of one day: %q", said)
	}
}
