package positioncsv_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/scenario/positioncsv"
)

// options are those of reading. Platforms jump from row to row without a step.
type options struct {
	platform int
	rules    tracks.Rules
}

func with(o options) readertest.Read {
	if o.rules.Step == 0 {
		o.rules.Step = -1
	}
	return readertest.Tracks(positioncsv.Parse, tracks.Options{Platform: o.platform}, o.rules)
}

func TestPositionsAreReadFromRowsAndLines(t *testing.T) {
	at5 := geo.Position{Latitude: 58.1, Longitude: 8.1, Altitude: 20}
	for name, c := range map[string]struct {
		options  options
		file     string
		platform int
		want     geo.Position
		at       time.Duration
	}{
		"as usual":          {options{}, "0,7,58,8,10\n5,7,58.1,8.1,20\n", 7, at5, 5 * time.Second},
		"without altitude":  {options{}, "0,7,58,8\n5,7,58.1,8.1\n", 7, geo.Position{Latitude: 58.1, Longitude: 8.1}, 5 * time.Second},
		"a last cell empty": {options{}, "time\tnode\tlat\tlon\talt\r\n0\t7\t58\t8\t10\r\n5\t7\t58.1\t8.1\t\r\n", 7, geo.Position{Latitude: 58.1, Longitude: 8.1}, 5 * time.Second},
		"an altitude empty": {options{}, "time,node,lat,lon,alt\n0,7,58,8,10\n5,7,58.1,8.1,\n", 7, geo.Position{Latitude: 58.1, Longitude: 8.1}, 5 * time.Second},
		"a leap second":     {options{}, "2016-12-31T23:59:56Z,7,58,8,10\n2016-12-31T23:59:60Z,7,58.1,8.1,20\n", 7, at5, 4 * time.Second},
		"of one platform":   {options{platform: 7}, "# a comment\n\n0,58,8,10\r\n5,58.1,8.1,20\r\n", 7, at5, 5 * time.Second},
		"with names":        {options{}, "\ufeffnode;alt;lon;lat;speed;t\n7;10;8;58;3;0\n7;20;8.1;58.1;3;5\n", 7, at5, 5 * time.Second},
		"with tabs":         {options{}, "0\t7\t58\t8\t10\n5\t7\t58.1\t8.1\t20\n", 7, at5, 5 * time.Second},
		"with dates":        {options{}, "2026-01-31T12:00:00Z,7,58,8,10\n2026-01-31T13:00:05+01:00,7,58.1,8.1,20\n", 7, at5, 5 * time.Second},
		"from an origin": {options{rules: tracks.Rules{Start: time.Date(2026, 1, 31, 11, 59, 0, 0, time.UTC)}},
			"2026-01-31T12:00:00Z,7,58,8,10\n2026-01-31T12:00:05Z,7,58.1,8.1,20\n", 7, at5, 65 * time.Second},
		"evenly": {options{rules: tracks.Rules{Step: time.Second}}, "0,7,58,8,10\n10,7,58.2,8.2,30\n", 7, at5, 5 * time.Second},
		"of MGEN by flow": {options{}, "23:59:58.000000 LISTEN proto>UDP port>5000\n" +
			"23:59:58.500000 RECV proto>UDP flow>7 seq>1 src>10.0.0.3/5000 gps>CURRENT,58,8,10\n" +
			"23:59:59.500000 RECV proto>UDP flow>7 seq>2 src>10.0.0.3/5000 gps>INVALID,999,999,-999\n" +
			"00:00:03.500000 RECV proto>UDP flow>7 seq>3 src>10.0.0.3/5000 gps>STALE,58.1,8.1,20\n", 7, at5, 5 * time.Second},
		"of MGEN by when it was sent": {options{}, "00:00:02.000000 RECV flow>7 sent>23:59:58.500000 gps>CURRENT,58,8,10\n" +
			"00:00:20.000000 RECV flow>7 sent>00:00:03.500000 gps>CURRENT,58.1,8.1,20\n", 7, at5, 5 * time.Second},
		"of MGEN by address": {options{rules: tracks.Rules{Named: map[string]tracks.Rule{"10.0.0.3": {Platform: 9}}}},
			"12:00:00.000000 RECV src>10.0.0.3/5000 gps>CURRENT,58.1,8.1,20\n", 9, at5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := readertest.Compile(t, c.file, with(c.options))
			i, ok := s.Index(c.platform)
			if !ok {
				t.Fatalf("platforms are %v: want %d", s.Platforms(), c.platform)
			}
			p, known := readertest.At(t, s, c.at).Position(i)
			if !known || geo.Distance(p, c.want) > 0.01 {
				t.Errorf("at %s platform %d is at %v, %t: want %v", c.at, c.platform, p, known, c.want)
			}
			if before, known := readertest.At(t, s, c.at-1).Position(i); known && geo.Distance(before, c.want) < 0.01 {
				t.Errorf("it is there before %s already", c.at)
			}
		})
	}
}

func TestHoweverRowsAreWrittenTheyAreTheSame(t *testing.T) {
	const rows = "time,platform,latitude,longitude,altitude\n2026-01-31T08:00:00Z,2,58.1,8.1,20\n2026-01-31T08:00:10Z,2,58.2,8.2,30\n" +
		"2026-01-31T08:10:00Z,1,58,8,10\n2026-01-31T08:10:04Z,1,58.3,8,10\n"
	lines := strings.SplitAfter(rows, "\n")
	readertest.Same(t, rows, with(options{rules: tracks.Rules{Step: time.Second}}), map[string]string{
		"the later platform first":  lines[0] + lines[3] + lines[4] + lines[1] + lines[2],
		"backwards":                 lines[0] + lines[4] + lines[3] + lines[2] + lines[1],
		"mixed":                     lines[0] + lines[2] + lines[4] + lines[1] + lines[3],
		"without names":             strings.Join(lines[1:], ""),
		"a byte order mark":         "\ufeff" + rows,
		"UTF-16":                    readertest.UTF16(rows),
		"lines of Windows":          strings.ReplaceAll(rows, "\n", "\r\n"),
		"semicolons":                strings.ReplaceAll(rows, ",", ";"),
		"decimal commas":            strings.ReplaceAll(strings.ReplaceAll(rows, ",", ";"), ".", ","),
		"tabs":                      strings.ReplaceAll(rows, ",", "\t"),
		"empty columns":             strings.ReplaceAll(rows, "\n", ",,\n"),
		"empty columns behind tabs": strings.ReplaceAll(strings.ReplaceAll(rows, ",", "\t"), "\n", "\t\n"),
		"a line sep=;":              "sep=;\r\n" + strings.ReplaceAll(rows, ",", ";"),
		"a line sep=|":              "\"sep=|\"\n" + strings.ReplaceAll(rows, ",", "|"),
		"empty rows":                lines[0] + ",,,,\n" + strings.Join(lines[1:], "") + "\"\",,,,\n",
		"spaces":                    strings.ReplaceAll(rows, ",", " , "),
		"quotes":                    `"` + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(rows, "\n"), ",", `","`), "\n", "\"\n\"") + `"`,
		"quotes around one column":  strings.ReplaceAll(rows, "58.1", `"58.1"`),
		"columns of other names":    strings.Replace(rows, "time,platform,latitude,longitude,altitude", "Timestamp,NEM_ID,Lat,Lon,Ele", 1),
		"another zone":              strings.ReplaceAll(strings.ReplaceAll(rows, "T08", "T10"), "Z,", "+02:00,"),
		"seconds since 1970": "time,platform,latitude,longitude,altitude\n1769846400,2,58.1,8.1,20\n1769846410.0,2,58.2,8.2,30\n" +
			"1769847000,1,58,8,10\n1769847004,1,58.3,8,10\n",
		"milliseconds since 1970": "time,platform,latitude,longitude,altitude\n1769846400000,2,58.1,8.1,20\n1769846410000,2,58.2,8.2,30\n" +
			"1769847000000,1,58,8,10\n1769847004000,1,58.3,8,10\n",
		"seconds": "0,2,58.1,8.1,20\n10,2,58.2,8.2,30\n600,1,58,8,10\n604,1,58.3,8,10\n",
		"times of day of MGEN, over midnight and not in order": "23:56:00 RECV flow>2 gps>CURRENT,58.1,8.1,20\n00:06:00 RECV flow>1 gps>CURRENT,58,8,10\n" +
			"23:56:10 RECV flow>2 gps>CURRENT,58.2,8.2,30\n00:06:04 RECV flow>1 gps>CURRENT,58.3,8,10\n",
	})
}

func TestPlatformsMayHaveNames(t *testing.T) {
	const rows = "time,platform,lat,lon\n0,hq,58,8\n0,4,58.1,8\n0,tank 1,58.2,8\n5,hq,58.01,8\n"
	s, report := readertest.Compile(t, rows, with(options{}))
	readertest.Places(t, s,
		readertest.Place{Platform: 1, Seconds: 5, Position: geo.Position{Latitude: 58.01, Longitude: 8}},
		readertest.Place{Platform: 4, Seconds: 5, Position: geo.Position{Latitude: 58.1, Longitude: 8}},
		readertest.Place{Platform: 2, Seconds: 5, Position: geo.Position{Latitude: 58.2, Longitude: 8}})
	if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, "in the order of the tracks (tracks.named says other numbers): hq is 1, tank 1 is 2") {
		t.Errorf("warnings: %q", said)
	}
	s, report = readertest.Compile(t, rows, with(options{rules: tracks.Rules{Named: map[string]tracks.Rule{"hq": {Platform: 9}, "tank 1": {Platform: 8}}}}))
	if !slices.Equal(s.Platforms(), []int{4, 8, 9}) || len(report.Warnings) > 0 {
		t.Errorf("platforms are %v, warnings %q", s.Platforms(), report.Warnings)
	}
}

func TestNamesMayBeInQuotesAndInAnotherEncoding(t *testing.T) {
	named := options{rules: tracks.Rules{Named: map[string]tracks.Rule{`Håøya "1", north`: {Platform: 7}}}}
	for name, text := range map[string]string{"UTF-8": "0,\"Håøya \"\"1\"\", north\",58,8\n", "ISO-8859-1": "0,\"H\xe5\xf8ya \"\"1\"\", north\" ,58,8\n"} {
		s, _ := readertest.Compile(t, text, with(named))
		if !slices.Equal(s.Platforms(), []int{7}) {
			t.Errorf("in %s its platforms are %v", name, s.Platforms())
		}
	}
}

func TestAFileOfOnePlatformNeedsNoColumnForIt(t *testing.T) {
	s, _ := readertest.Compile(t, "time,lat,lon\n0,58,8\n5,58.1,8\n", with(options{}))
	readertest.Places(t, s, readertest.Place{Platform: 1, Seconds: 5, Position: geo.Position{Latitude: 58.1, Longitude: 8}})
}

func TestRowsWithoutTimesAreReachedAtAPace(t *testing.T) {
	s, _ := readertest.Compile(t, "name,lat,lon\na,58,8\nb,59,8\na,58.1,8\nb,59.1,8\n",
		with(options{rules: tracks.Rules{Step: time.Second, Pace: tracks.Pace{Duration: 10 * time.Second}}}))
	readertest.Places(t, s,
		readertest.Place{Platform: 1, Seconds: 5, Position: geo.Position{Latitude: 58.05, Longitude: 8}},
		readertest.Place{Platform: 2, Seconds: 10, Position: geo.Position{Latitude: 59.1, Longitude: 8}})
}

func TestLinesOfMGENWithoutPositionAreCounted(t *testing.T) {
	s, report := readertest.Compile(t, "12:00:00.0 LISTEN proto>UDP port>5000\n12:00:01.0 RECV flow>1 gps>INVALID,999,999,-999\n", with(options{}))
	if report.Unknown["MGEN LISTEN without gps"] != 1 || report.Unknown["MGEN gps INVALID"] != 1 || len(s.Platforms()) != 0 {
		t.Errorf("platforms are %v, report %+v", s.Platforms(), report)
	}
}

func TestRowsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		file    string
		line    int
		reason  string
	}{
		"a column is missing":      {options{}, "time,node,lat\n0,1,58\n", 1, "there is no column longitude"},
		"three columns":            {options{}, "0,58,8\n", 1, "the row has 3 columns: want time,platform,latitude,longitude,altitude"},
		"a row is short":           {options{}, "0,7,58,8,10\n5,7,58.1,8.1\n", 2, "the row has 4 columns: want 5"},
		"no known platform":        {options{}, "vehicle_name,time,lat,lon\na,0,58,8\n", 1, "column vehicle_name is not known: for the platform want platform, nem, nem_id, nemid, node, id, name, vehicle, vehicle_id, unit or callsign, or a platform for the source"},
		"no known time":            {options{platform: 7}, "gps_time,utc,lat,lon\n0,0,58,8\n", 2, "the point has no time: columns gps_time, utc are not known: for the time want time, t, ts, timestamp or seconds, or a speed"},
		"a latitude of 91":         {options{}, "0,7,91,8,10\n", 1, "platform 7: latitude is 91"},
		"a platform of 0":          {options{}, "0,0,58,8,10\n", 1, `platform is "0": want a number from 1 to 65534, or a name`},
		"a platform of nothing":    {options{}, "0,,58,8,10\n", 1, `platform is ""`},
		"a row without a time":     {options{}, "time,node,lat,lon\n,7,58,8\n", 2, "the point has no time"},
		"no time, and a duration":  {options{rules: tracks.Rules{Pace: tracks.Pace{Duration: time.Minute}}}, "time,node,lat,lon\n0,7,58,8\n,7,58,9\n", 3, "a duration is for tracks without any: want a speed instead"},
		"microseconds since 1970":  {options{}, "time,node,lat,lon\n1769846400000000,7,58,8\n", 2, `time is "1769846400000000": want seconds or milliseconds since 1970, or a date`},
		"a time in words":          {options{}, "time,node,lat,lon\nnoon,7,58,8\n", 2, `time is "noon": want one such as 2026-01-31T12:00:00Z, or seconds`},
		"seconds after dates":      {options{}, "2026-01-31T12:00:00Z,7,58,8,10\n5,7,58,8,10\n", 2, "want times that are all seconds, or all like"},
		"a line between digits":    {options{}, "0,7,58,8_1\n", 1, `longitude is "8_1": want a number`},
		"a number to the base 16":  {options{}, "0,7,0x1p4,8\n", 1, `latitude is "0x1p4": want a number`},
		"another separator":        {options{}, "time|node|lat|lon\n0|1|58|8\n", 1, `there is no column latitude among "time|node|lat|lon": want commas, semicolons or tabs`},
		"a decimal comma":          {options{}, "0,7,\"58,1\",8\n", 1, `latitude is "58,1": want a number with a decimal point, such as 58.1`},
		"two decimal commas":       {options{}, "0;7;5,8,1;8\n", 1, `latitude is "5,8,1": want a number`},
		"a quote that is open":     {options{}, "0,7,\"58,8\n", 1, "a quote is not closed"},
		"a word behind a quote":    {options{}, "0,7,\"58\"x,8\n", 1, `after a quote comes "x"`},
		"a row of two years later": {options{}, "2026-01-31T12:00:00Z,7,58,8\n2028-01-31T12:00:00Z,7,58,8\n", 2, "at most a year"},
		"MGEN with two numbers":    {options{}, "12:00:00.0 RECV flow>1 gps>CURRENT,1,2\n", 1, "gps has 3 values"},
		"MGEN sent at no time":     {options{}, "12:00:00.0 RECV flow>1 sent>noon gps>CURRENT,1,2,3\n", 1, "sent is \"noon\": want a time of day"},
		"MGEN without a sender":    {options{}, "12:00:00.0 RECV gps>CURRENT,1,2,3\n", 1, "the line has no flow and no src"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readertest.Refusal(t, c.file, with(c.options))
			if err.Line != c.line || !strings.Contains(err.Reason, c.reason) {
				t.Errorf("error is %q: want line %d and %q", err, c.line, c.reason)
			}
		})
	}
}

func TestTwoColumnsOfOneMeaningAreSaid(t *testing.T) {
	_, report := readertest.Compile(t, "id,name,lat,lon,time\n1,tank,58,8,0\n1,tank,58.1,8,5\n", with(options{}))
	if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, "the column name is passed over: an earlier one has the platform") {
		t.Errorf("warnings: %q", said)
	}
}

func TestAnUnknownColumnInPlaceOfTheAltitudeIsSaid(t *testing.T) {
	const want = "column alt_m is not known: for the altitude want altitude, alt, height, ele or elevation"
	for header, said := range map[string]bool{"id,time,lat,lon,alt_m": true, "id,time,lat,lon,speed": false, "time,lat,lon,vdop,provider": false, "id,time,alt,lat,lon,alt_m": false} {
		_, report := readertest.Compile(t, header+"\n1,0,58,8,3"+strings.Repeat(",1", strings.Count(header, ",")-4)+"\n", with(options{}))
		if got := strings.Join(report.Warnings, "; "); strings.Contains(got, want) != said {
			t.Errorf("of %s: warnings %q", header, got)
		}
	}
}

func TestALeapIsSaid(t *testing.T) {
	_, report := readertest.Compile(t, "0,tank,58,8\n9,tank,58.01,8\n10,tank,59.01,8\n11,tank,58.01,8\n11.001,tank,58.011,8\n", with(options{}))
	const want = "2 positions need more than 1000 m/s: in line 3 platform 1 (tank) goes 111 km, from 58.01000, 8.00000 at 9s to 59.01000, 8.00000 at 10s"
	if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, want) {
		t.Errorf("warnings: %q", said)
	}
}

func TestTimesInTwoUnitsAreSaid(t *testing.T) {
	const want = "parts of tracks with one very long time without positions: 1: platform 1 (tank) has none for 83h19m55s before that of line 3, and else for at most 3s: are all times in one unit?"
	for rows, said := range map[string]bool{
		"0,tank,58,8\n2,tank,58,8\n300000,tank,58,8\n5,tank,58,8\n":  true,
		"0,tank,58,8\n7200,tank,58,8\n14400,tank,58,8\n":             false,
		"0,tank,58,8\n300000,tank,58,8\n":                            false,
		"0,tank,58,8\n2,tank,58,8\n3000,tank,58,8\n3002,tank,58,8\n": false,
	} {
		_, report := readertest.Compile(t, rows, with(options{}))
		if got := strings.Join(report.Warnings, "; "); strings.Contains(got, "without positions") != said || said && !strings.Contains(got, want) {
			t.Errorf("of %q: warnings %q", rows, got)
		}
	}
}

func TestTwoPlacesAtOneMomentAreSaid(t *testing.T) {
	_, report := readertest.Compile(t, "0,7,58,8\n5,7,58.1,8\n5,7,58.4,8\n5,8,58.1,8\n5,8,58.1,8\n", with(options{}))
	if said := strings.Join(report.Warnings, "; "); !strings.Contains(said, "1 positions have the moment of another one of their platform, the first in line 3: the last of a moment counts") {
		t.Errorf("warnings: %q", said)
	}
}

func TestOfTwoPlacesAtOneMomentTheLastCounts(t *testing.T) {
	s, _ := readertest.Compile(t, "0,7,57,8\n0,7,58,8\n5,7,58.1,8\n5,7,58.4,8\n9,7,58.4,8\n", with(options{rules: tracks.Rules{Step: time.Second}}))
	for _, at := range []struct{ seconds, latitude float64 }{{0, 58}, {5, 58.4}, {6, 58.4}, {9, 58.4}} {
		readertest.Places(t, s, readertest.Place{Platform: 7, Seconds: at.seconds, Position: geo.Position{Latitude: at.latitude, Longitude: 8}})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("time,node,lat,lon,alt\n0,7,58,8,10\n5,7,58.1,8.1,20\n"))
	f.Add([]byte("name,time,lat,lon\nhq,0,58,8\n4,1,58,8\n"))
	f.Add([]byte("2026-01-31T12:00:00Z,7,58,8\n"))
	f.Add([]byte("12:00:00.0 RECV flow>1 src>10.0.0.1/1 gps>CURRENT,1,2,3\n"))
	f.Add([]byte("\ufeff\"time\";\"node\";\"lat\";\"lon\"\n\"5\";\"7\";\"58\";\"8\"\n\"0\";\"7\";\"58\";\"8\"\n"))
	f.Add([]byte(readertest.UTF16("0,7,58,8\n")))
	readertest.Fuzz(f, with(options{rules: tracks.Rules{Step: 24 * time.Hour}}))
}
