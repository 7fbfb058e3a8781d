package kml_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/scenario/kml"
)

func with(rules tracks.Rules) readertest.Read {
	return readertest.Tracks(kml.Parse, tracks.Options{}, rules)
}

// document returns a document with features.
func document(features string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document><name>d</name>
` + features + "\n</Document></kml>"
}

const track = `<Placemark><name>alpha</name><gx:Track><altitudeMode>absolute</altitudeMode>
<when>2026-01-31T12:00:00Z</when>
<when>2026-01-31T12:00:10Z</when>
<gx:coord>8.0 58.0 10</gx:coord>
<gx:coord>8.2 58.1 30</gx:coord>
</gx:Track></Placemark>`

func stamped(name, when, coordinates string) string {
	return "<Placemark><name>" + name + "</name><TimeStamp><when>" + when + "</when></TimeStamp><Point><coordinates>" + coordinates + "</coordinates></Point></Placemark>"
}

var (
	begin   = geo.Position{Latitude: 58, Longitude: 8, Altitude: 10}
	halfWay = geo.Position{Latitude: 58.05, Longitude: 8.1, Altitude: 20}
	end     = geo.Position{Latitude: 58.1, Longitude: 8.2, Altitude: 30}
)

func TestTracksAreFoundInAllTheirForms(t *testing.T) {
	const line = "<LineString><coordinates>8.0,58.0,10\n 8.2,58.1,30</coordinates></LineString>"
	multi := strings.NewReplacer("<gx:Track>", "<gx:MultiTrack><gx:interpolate>0</gx:interpolate><gx:Track>", "</gx:Track>", "</gx:Track></gx:MultiTrack>").Replace(track)
	paired := strings.Replace(strings.Replace(track, "<when>2026-01-31T12:00:10Z</when>\n", "", 1), "<gx:coord>8.2", "<when>2026-01-31T12:00:10Z</when>\n<gx:coord>8.2", 1)
	for name, c := range map[string]struct {
		features string
		pace     tracks.Pace
	}{
		"gx:Track":                {track, tracks.Pace{}},
		"in pairs":                {paired, tracks.Pace{}},
		"Track of KML 2.3":        {strings.ReplaceAll(track, "gx:", ""), tracks.Pace{}},
		"gx:MultiTrack":           {multi, tracks.Pace{}},
		"in folders":              {"<Folder><Folder>" + track + "</Folder></Folder>", tracks.Pace{}},
		"points of one name":      {stamped("a", "2026-01-31T12:00:10Z", "8.2,58.1,30") + stamped("a", "2026-01-31T12:00:00Z", "8.0,58.0,10"), tracks.Pace{}},
		"points of a folder":      {"<Folder><name>f</name>" + stamped("a", "2026-01-31T12:00:00Z", "8.0,58.0,10") + stamped("b", "2026-01-31T12:00:10Z", "8.2,58.1,30") + "</Folder>", tracks.Pace{}},
		"a line with a time span": {"<Placemark><TimeSpan><begin>2026-01-31T12:00:00Z</begin><end>2026-01-31T12:00:10Z</end></TimeSpan>" + line + "</Placemark>", tracks.Pace{}},
		"a line that takes 10 s":  {"<Placemark>" + line + "</Placemark>", tracks.Pace{Duration: 10 * time.Second}},
		"a line with spaces":      {"<Placemark>" + strings.ReplaceAll(line, ",", " , ") + "</Placemark>", tracks.Pace{Duration: 10 * time.Second}},
		"a line beside a track":   {"<Placemark>" + line + "</Placemark>" + track, tracks.Pace{}},
		"a point without a time":  {"<Placemark><Point><coordinates>1,2</coordinates></Point></Placemark>" + track, tracks.Pace{}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := readertest.Compile(t, document(c.features), with(tracks.Rules{Pace: c.pace}))
			if !slices.Equal(s.Platforms(), []int{1}) {
				t.Fatalf("platforms are %v", s.Platforms())
			}
			readertest.Places(t, s, readertest.Place{Platform: 1, Seconds: 0, Position: begin}, readertest.Place{Platform: 1, Seconds: 5, Position: halfWay},
				readertest.Place{Platform: 1, Seconds: 10, Position: end})
		})
	}
}

func TestAYearOrAMonthIsATime(t *testing.T) {
	s, _ := readertest.Compile(t, document(stamped("a", "2026", "8.0,58.0,10")+stamped("a", "2026-02", "8.2,58.1,30")), with(tracks.Rules{}))
	readertest.Places(t, s, readertest.Place{Platform: 1, Seconds: 31 * 24 * 3600, Position: end})
}

// spanned is a point with a TimeSpan, from and to a second after noon.
func spanned(name string, from, to int, coordinates string) string {
	return fmt.Sprintf("<Placemark><name>%s</name><TimeSpan><begin>2026-01-31T12:00:%02dZ</begin><end>2026-01-31T12:00:%02dZ</end></TimeSpan>"+
		"<Point><coordinates>%s</coordinates></Point></Placemark>", name, from, to, coordinates)
}

func TestPointsWithTimeSpansAreThePlatformOfTheirFolder(t *testing.T) {
	s, _ := readertest.Compile(t, document("<Folder><name>truck</name>"+spanned("p1", 0, 10, "8,58")+spanned("p2", 20, 30, "8.2,58")+"</Folder>"+
		"<Folder><name>post</name>"+spanned("p3", 0, 10, "9,58")+"</Folder>"), with(tracks.Rules{}))
	if !slices.Equal(s.Platforms(), []int{1, 2}) {
		t.Fatalf("platforms are %v: want one for each folder", s.Platforms())
	}
	readertest.Places(t, s, readertest.Place{Platform: 1, Seconds: 5, Position: geo.Position{Latitude: 58, Longitude: 8}},
		readertest.Place{Platform: 1, Seconds: 30, Position: geo.Position{Latitude: 58, Longitude: 8.2}},
		readertest.Place{Platform: 2, Seconds: 0, Position: geo.Position{Latitude: 58, Longitude: 9}})
}

func TestPointsOfTwoNamesAreTwoPlatforms(t *testing.T) {
	s, report := readertest.Compile(t, document(stamped("alpha", "2026-01-31T12:00:00Z", "8,58")+stamped("bravo", "2026-01-31T12:00:00Z", "9,58")+
		stamped("alpha", "2026-01-31T12:00:10Z", "8.1,58")), with(tracks.Rules{}))
	readertest.Places(t, s, readertest.Place{Platform: 1, Seconds: 10, Position: geo.Position{Latitude: 58, Longitude: 8.1}},
		readertest.Place{Platform: 2, Seconds: 0, Position: geo.Position{Latitude: 58, Longitude: 9}})
	if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, "alpha is 1, bravo is 2") {
		t.Errorf("warnings: %q", said)
	}
}

func TestWhatIsNoTrackIsCounted(t *testing.T) {
	file := document(track + "<GroundOverlay/><Placemark><Polygon/></Placemark><Placemark><Point><coordinates>1,2</coordinates></Point></Placemark><Style/>" +
		"<Placemark><LineString><coordinates>1,2 3,4</coordinates></LineString></Placemark>")
	_, report := readertest.Compile(t, file, with(tracks.Rules{}))
	if got := strings.Join(report.UnknownSentences(), ", "); got != "1 × GroundOverlay, 1 × LineString, 1 × Placemark Polygon, 1 × Point without a time" {
		t.Errorf("it counts %s", got)
	}
}

func TestAFileIsReadInTheEncodingThatItDeclares(t *testing.T) {
	file := strings.Replace(document(track), "alpha", "Håøya", 1)
	latin := strings.Replace(strings.Replace(file, "Håøya", "H\xe5\xf8ya", 1), "UTF-8", "ISO-8859-1", 1)
	readertest.Same(t, document(track), with(tracks.Rules{}), map[string]string{
		"UTF-8":                    file,
		"a byte order mark":        "\ufeff" + file,
		"ISO-8859-1":               latin,
		"UTF-16":                   readertest.UTF16(strings.Replace(file, "UTF-8", "UTF-16", 1)),
		"UTF-16 that is not said":  readertest.UTF16(file),
		"lines of Windows":         strings.ReplaceAll(file, "\n", "\r\n"),
		"quotes of the other kind": strings.ReplaceAll(file, `"`, "'"),
		"other zone":               strings.ReplaceAll(strings.ReplaceAll(file, "T12:", "T13:"), "Z<", "+01:00<"),
		"without a zone":           strings.ReplaceAll(file, "Z</when>", "</when>"),
	})
}

func TestFilesThatMakeNoSenseAreRefused(t *testing.T) {
	readertest.Refused(t, with(tracks.Rules{}), map[string]readertest.Wrong{
		"empty":               {"", 1, "the file is empty: want kml"},
		"another element":     {"<gpx/>", 1, "the file is an element gpx: want kml"},
		"a time too few":      {document(strings.Replace(track, "<when>2026-01-31T12:00:00Z</when>\n", "", 1)), 3, "the track has 1 when and 2 coord"},
		"a time in words":     {document(strings.Replace(track, "2026-01-31T12:00:10Z", "noon", 1)), 7, `time is "noon": want one such as 2026-01-31T12:00:00Z`},
		"a coordinate":        {document(strings.Replace(track, "8.2 58.1 30", "8.2", 1)), 7, `coordinates are "8.2": want longitude, latitude and altitude`},
		"a decimal comma":     {document(strings.Replace(track, "8.2 58.1 30", "8,2 58.1 30", 1)), 7, `longitude is "8,2": want a number with a decimal point, such as 8.2`},
		"a latitude of 98":    {document(strings.Replace(track, "8.2 58.1 30", "8.2 98.1 30", 1)), 7, "latitude is 98.1"},
		"a time that is back": {document(strings.Replace(track, "12:00:10Z", "11:00:10Z", 1)), 7, "want points in the order of their times"},
		"folders in folders":  {strings.Repeat("<Folder>", 100_000), 1, "nested more than 64 deep"},
		"a span that is back": {document("<Placemark><TimeSpan><begin>2026-01-31T12:00:10Z</begin><end>2026-01-31T12:00:00Z</end></TimeSpan><LineString><coordinates>8,58 9,58</coordinates></LineString></Placemark>"), 3, "want points in the order"},
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(document(track)))
	f.Add([]byte(document(stamped("a", "2026-01-31", "8,58") + stamped("a", "2026-01-31T12:00:00", "8,58,1"))))
	f.Add([]byte(document("<Placemark><TimeSpan><begin>2026-01-31T12:00:00Z</begin></TimeSpan><LineString><coordinates>8,58 9,58</coordinates></LineString></Placemark>")))
	f.Add([]byte(readertest.UTF16(document(track))))
	readertest.Fuzz(f, with(tracks.Rules{Step: 24 * time.Hour, Pace: tracks.Pace{MetresPerSecond: 1000}}))
}
