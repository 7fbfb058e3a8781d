package nmea_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/scenario/nmea"
)

func with(rules tracks.Rules) readertest.Read {
	return readertest.Tracks(nmea.Parse, tracks.Options{}, rules)
}

// log returns a log of sentences, with their checksums.
func log(sentences ...string) string {
	var text strings.Builder
	for _, s := range sentences {
		sum := byte(0)
		for i := 1; i < len(s); i++ {
			sum ^= s[i]
		}
		fmt.Fprintf(&text, "%s*%02X\r\n", s, sum)
	}
	return text.String()
}

func gga(clock, latitude string) string {
	return "$GPGGA," + clock + "," + latitude + ",N,00754.0000,W,1,08,0.9,12.5,M,40.0,M,,"
}

func rmc(clock, latitude, date string) string {
	return "$GPRMC," + clock + ",A," + latitude + ",N,00754.0000,W,10.0,90.0," + date + ",,,A"
}

func at(latitude float64) geo.Position {
	return geo.Position{Latitude: latitude, Longitude: -7.9, Altitude: 12.5}
}

func TestPositionsAreReadFromSentencesOfAllKinds(t *testing.T) {
	gns := func(clock, latitude string) string {
		return "$GNGNS," + clock + "," + latitude + ",N,00754.0000,W,AN,08,0.9,12.5,40.0,,"
	}
	for name, c := range map[string]struct {
		file   string
		second float64
	}{
		"GGA":                  {log(gga("120000.00", "5806.0000"), gga("120010.00", "5812.0000")), 10},
		"GNS":                  {log(gns("120000.00", "5806.0000"), gns("120010.00", "5812.0000")), 10},
		"another talker":       {log(strings.Replace(gga("120000", "5806.0"), "GP", "BD", 1), strings.Replace(gga("120010", "5812.0"), "GP", "GL", 1)), 10},
		"GGA, GLL":             {log(gga("120000", "5806.0"), "$GPGLL,5812.0,N,00754.0,W,120010,A,A"), 10},
		"GGA, RMC at once":     {log(gga("120000", "5806.0"), rmc("120000", "5806.0", "310126"), gga("120010", "5812.0"), rmc("120010", "5812.0", "310126")), 10},
		"RMC before GGA":       {log(rmc("120000", "5806.0", "310126"), gga("120000", "5806.0"), rmc("120010", "5812.0", "310126"), gga("120010", "5812.0")), 10},
		"past midnight":        {log(gga("235955", "5806.0"), gga("000005", "5812.0")), 10},
		"past a dated night":   {log(gga("235955", "5806.0"), rmc("235955", "5806.0", "310126"), gga("000005", "5812.0"), rmc("000005", "5812.0", "010226")), 10},
		"past a new year":      {log(gga("235955", "5806.0"), rmc("235955", "5806.0", "311299"), gga("000005", "5812.0"), rmc("000005", "5812.0", "010100")), 10},
		"after two days":       {log(gga("120000", "5806.0"), rmc("120000", "5806.0", "310126"), rmc("120010", "5812.0", "020226")), 2*86400 + 10},
		"date of ZDA":          {log("$GPZDA,120000,31,01,2026,00,00", gga("120000", "5806.0"), "$GPZDA,120010,01,02,2026,,", gga("120010", "5812.0")), 86410},
		"out of order":         {log(gga("120010", "5812.0"), gga("120000", "5806.0")), 10},
		"without checksums":    {gga("120000", "5806.0") + "\n" + gga("120010", "5812.0") + "\n", 10},
		"behind other times":   {"12:00:01.123 " + log(gga("120000", "5806.0")) + `\s:gps,c:1*55\` + log(gga("120010", "5812.0")), 10},
		"others between":       {log(gga("120000", "5806.0"), "$GPGSV,3,1,11,03,03,111,00", "!AIVDM,1,1,,A,13aEOK?P00PD2wVMdLDRhgvL289?,0", "$PGRME,15.0,M", gga("120010", "5812.0")), 10},
		"no fix between":       {log(gga("120000", "5806.0"), "$GPGGA,120005,,,,,0,00,,,M,,M,,", "$GPRMC,120006,V,,,,,,,310126,,,N", gga("120010", "5812.0")), 10},
		"damaged between":      {log(gga("120000", "5806.0")) + "$GPGGA,120005.00,9999.0,N,00754.0,W,1,08,0.9,12.5,M,40.0,M,,*00\n" + log(gga("120010", "5812.0")), 10},
		"cut at the end":       {log(gga("120000", "5806.0"), gga("120010", "5812.0")) + "$GPGGA,1200", 10},
		"cut in its date":      {log(gga("120000", "5806.0"), gga("120010", "5812.0")) + "$GPRMC,120020.00,A,5818.0,N,00754.0,E,10.0,90.0,3101", 10},
		"marked":               {"\ufeff" + log(gga("120000", "5806.0"), gga("120010", "5812.0")), 10},
		"UTF-16":               {readertest.UTF16(log(gga("120000", "5806.0"), gga("120010", "5812.0"))), 10},
		"ISO-8859-1 in others": {log(gga("120000", "5806.0")) + "$GPTXT,01,01,02,H\xe5\xf8ya\n" + log(gga("120010", "5812.0")), 10},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := readertest.Compile(t, c.file, with(tracks.Rules{}))
			readertest.Places(t, s, readertest.Place{Platform: 1, Seconds: 0, Position: at(58.1)}, readertest.Place{Platform: 1, Seconds: c.second, Position: at(58.2)})
			if got := s.Duration().Seconds(); got != c.second {
				t.Errorf("it lasts %v s: want %v", got, c.second)
			}
		})
	}
}

func TestALogWithADateHasIt(t *testing.T) {
	_, report := readertest.Compile(t, log(gga("120000", "5806.0"), rmc("120001", "5806.0", "310126")), with(tracks.Rules{}))
	if want := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC); !report.Origin.Equal(want) {
		t.Errorf("it begins at %s: want %s", report.Origin, want)
	}
}

func TestWhatIsPassedOverIsCounted(t *testing.T) {
	file := log(gga("120000", "5806.0"), "$GPGGA,120005,,,,,0,00,,,M,,M,,", "!AIVDM,1,1,,A,13aEOK,0") + "$GPGGA,120006,1*00\n$GPGGA,12\nhello\n"
	_, report := readertest.Compile(t, file, with(tracks.Rules{}))
	want := "1 × AIVDM, 1 × GGA cut short, 1 × GGA without a fix, 1 × lines without a sentence, 1 × sentences whose checksum is wrong"
	if got := strings.Join(report.UnknownSentences(), ", "); got != want {
		t.Errorf("it counts %s; want %s", got, want)
	}
}

func TestSentencesThatMakeNoSenseAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, reason string }{
		"a time":          {log(gga("noon", "5806.0")), `GGA: time is "noon": want hours, minutes and seconds, such as 120000.00`},
		"a 25th hour":     {log(gga("250000", "5806.0")), `GGA: time is "250000"`},
		"a latitude":      {log(gga("120000", "north")), `GGA: latitude is "north": want a number`},
		"60 minutes":      {log(gga("120000", "5860.0")), `GGA: latitude is "5860.0": want degrees and minutes, such as 5806.0000`},
		"91 degrees":      {log(gga("120000", "9106.0")), "latitude is 91.1"},
		"a hemisphere":    {strings.Replace(gga("120000", "5806.0"), ",N,", ",E,", 1), `GGA: after the latitude comes "E": want N or S`},
		"a date":          {log(rmc("120000", "5806.0", "320126")), `RMC: date is "320126": want day, month and year, such as 310126`},
		"a date of ZDA":   {log("$GPZDA,120000,32,01,2026,,"), `ZDA: date is "32,01,2026"`},
		"feet":            {strings.Replace(gga("120000", "5806.0"), ",12.5,M,", ",12.5,F,", 1), `GGA: after the altitude comes "F": want M, metres`},
		"an altitude":     {strings.Replace(gga("120000", "5806.0"), "12.5", "high", 1), `GGA: altitude is "high": want a number`},
		"a time of day 0": {log(gga("-10000", "5806.0")), `GGA: time is "-10000"`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := readertest.Refusal(t, c.file, with(tracks.Rules{})); err.Line != 1 || !strings.Contains(err.Reason, c.reason) {
				t.Errorf("error is %q: want %q", err, c.reason)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(log(gga("120000", "5806.0"), rmc("120010", "5812.0", "310126"))))
	f.Add([]byte(log("$GPZDA,120000,31,01,2026,00,00", "$GPGLL,5812.0,N,00754.0,W,120010,A,A")))
	f.Add([]byte(gga("235959", "5806.0") + "\n" + gga("000001", "5806.0")))
	f.Add([]byte(readertest.UTF16(gga("120000", "5806.0"))))
	readertest.Fuzz(f, with(tracks.Rules{Step: 24 * time.Hour}))
}
