package eel_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/eel"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
)

func read(file []byte, b *scenario.Builder) (scenario.Report, error) {
	return eel.Read(bytes.NewReader(file), "company1.eel", b)
}

const everything = `# a comment, and an empty line

-Inf nem:100 location gps 40.031075,-74.523518,3.5
0.0  nem:101	location gps 40.0,-74.5,3,msl
0.0  nem:102 location gps 40.0,-74.6,2,agl   # behind a sentence
0.0  nem:100 velocity 90,0,13.9,degrees,mps
0.0  nem:100 orientation 1,2,3
0.0  nem:100 antennaprofile 1,0,270
0.0  nem:100 pathLoss nem:101,70,200 nem:102,95.3
1.5  nem:100 pathlossex nem:101,300000000:80:81,0:90
1.5  nem:100 commeffect nem:101,0.05,0.001,10,2,45,54 nem:102,0,0,0,0,0,0
1.5  nem:101 fadingselection nem:100,nakagami nem:102,none
2.0  nem:101 jamming on
2.0  nem:101 jamming off
2.0  phy:7 location gps 1,2,3
`

func TestAllSentencesOfEMANEAreRead(t *testing.T) {
	s, report := readertest.Compile(t, everything, read)
	if !slices.Equal(s.Platforms(), []int{100, 101, 102}) || s.Duration() != 1500*time.Millisecond {
		t.Errorf("platforms are %v, up to %s", s.Platforms(), s.Duration())
	}
	if got := report.UnknownSentences(); !slices.Equal(got, []string{"2 × jamming", "1 × phy location"}) {
		t.Errorf("unknown are %q", got)
	}
	if len(report.Warnings) != 2 || !strings.Contains(report.Warnings[0], "agl") || !strings.Contains(report.Warnings[1], "pathlosses at a frequency") {
		t.Errorf("warnings are %q", report.Warnings)
	}
	c := readertest.At(t, s, 2*time.Second)
	if p, _ := c.Position(0); p != (geo.Position{Latitude: 40.031075, Longitude: -74.523518, Altitude: 3.5}) {
		t.Errorf("position is %v", p)
	}
	if v, _ := c.Velocity(0); v != (geo.Velocity{Azimuth: 90, Speed: 13.9}) {
		t.Errorf("velocity is %v", v)
	}
	if o, _ := c.Orientation(0); o != (geo.Orientation{Pitch: 1, Roll: 2, Yaw: 3}) {
		t.Errorf("orientation is %v", o)
	}
	if a, _ := c.AntennaProfile(0); a != (scenario.AntennaProfile{ID: 1, Elevation: 270}) {
		t.Errorf("antenna profile is %v", a)
	}
	if e, _ := c.CommEffect(0, 1); e != (scenario.CommEffect{Latency: 50 * time.Millisecond, Jitter: time.Millisecond,
		LossPercent: 10, DuplicationPercent: 2, UnicastBitsPerSecond: 45, BroadcastBitsPerSecond: 54}) {
		t.Errorf("comm effect is %v", e)
	}
}

// A running EMANE shows the direction: the first value is the loss of transmissions of the line's NEM.
func TestPathlossHasTwoDirections(t *testing.T) {
	s, _ := readertest.Compile(t, everything, read)
	c := readertest.At(t, s, 2*time.Second)
	for _, want := range []struct {
		from, to  int
		frequency uint64
		dB        float64
	}{
		{0, 1, math.MaxUint64, 90}, {1, 0, math.MaxUint64, 90}, {0, 1, 300e6, 80}, {1, 0, 300e6, 81}, {0, 2, 300e6, 95.3}, {2, 0, 300e6, 95.3},
	} {
		if dB, known := c.PathlossAt(want.from, want.to, want.frequency); dB != want.dB || !known {
			t.Errorf("pathloss from %d to %d at %d Hz is %v, %t: want %v", want.from, want.to, want.frequency, dB, known, want.dB)
		}
	}
	for at, want := range map[time.Duration][2]float64{time.Second: {70, 200}, 2 * time.Second: {90, 90}} {
		c := readertest.At(t, s, at)
		there, _ := c.Pathloss(0, 1)
		if back, _ := c.Pathloss(1, 0); there != want[0] || back != want[1] {
			t.Errorf("at %s pathloss is %v there and %v back: want %v, as a pathlossex at 0 Hz is that of all other frequencies", at, there, back, want)
		}
	}
	if _, known := c.Pathloss(1, 2); known {
		t.Error("a pathloss that no line gives is known")
	}
}

func TestFadingIsOfWhatTheModuleReceives(t *testing.T) {
	s, _ := readertest.Compile(t, everything, read)
	c := readertest.At(t, s, 2*time.Second)
	if f, known := c.FadingSelection(0, 1); f != scenario.FadingNakagami || !known {
		t.Errorf("fading of what 101 receives from 100 is %s, %t", f, known)
	}
	if _, known := c.FadingSelection(1, 0); known {
		t.Error("fading the other way is known")
	}
}

func TestMalformedSentencesAreRefusedWithLineAndReason(t *testing.T) {
	for name, c := range map[string]struct{ sentence, reason string }{
		"two words":             {"0.0 nem:1", "the sentence has 2 words: want time, module and keyword"},
		"no time":               {"soon nem:1 location gps 1,2,3", `time is "soon": want a number`},
		"time of infinity":      {"Inf nem:1 location gps 1,2,3", `time is "Inf": want a number`},
		"time since 1970":       {"1763708400 nem:1 location gps 1,2,3", "want seconds since the scenario's start"},
		"NEM 0":                 {"0 nem:0 location gps 1,2,3", `platform is "0": want a number from 1 to 65534`},
		"NEM 65535":             {"0 nem:65535 location gps 1,2,3", `platform is "65535"`},
		"no arguments":          {"0 nem:1 pathloss", "pathloss has no arguments"},
		"no gps":                {"0 nem:1 location utm 1,2,3", `location: kind is "utm"`},
		"two coordinates":       {"0 nem:1 location gps 1,2", `"1,2" has 2 values: want latitude,longitude,altitude`},
		"latitude of 100":       {"0 nem:1 location gps 100,2,3", "latitude is 100: want degrees from -90 to 90"},
		"unknown altitude":      {"0 nem:1 location gps 1,2,3,feet", `after the altitude comes "feet"`},
		"velocity in knots":     {"0 nem:1 velocity 1,2,3,knots", `after speed comes "knots"`},
		"pathloss of NaN":       {"0 nem:1 pathloss nem:2,NaN", `pathloss is "NaN": want a number`},
		"pathloss without dB":   {"0 nem:1 pathloss nem:2", `"nem:2" has 1 values: want nem:B,dB or nem:B,dB,dB`},
		"pathloss to itself":    {"0 nem:1 pathloss nem:1,80", "platform 1 is given a link to itself"},
		"pathloss to a bare 2":  {"0 nem:1 pathloss 2,80", `the other platform is "2": want nem:NUMBER`},
		"three pathlosses":      {"0 nem:1 pathloss nem:2,80,81,82", "has 4 values"},
		"pathlossex without Hz": {"0 nem:1 pathlossex nem:2,80", `"80" has 1 values: want hertz:dB`},
		"frequency of 0.5":      {"0 nem:1 pathlossex nem:2,0.5:80", `frequency is "0.5"`},
		"short comm effect":     {"0 nem:1 commeffect nem:2,0,0,0,0,0", "has 6 values"},
		"negative latency":      {"0 nem:1 commeffect nem:2,-1,0,0,0,0,0", "want none below 0"},
		"loss of 101 %":         {"0 nem:1 commeffect nem:2,0,0,101,0,0,0", "loss 101 %: want 0 to 100"},
		"rate of 1.5":           {"0 nem:1 commeffect nem:2,0,0,0,0,1.5,0", `rates are "1.5" and "0"`},
		"fading of rice":        {"0 nem:1 fadingselection nem:2,rice", `model is "rice": want none, nakagami or lognormal`},
		"antenna 1.5":           {"0 nem:1 antennaprofile 1.5,0,0", "profile is 1.5"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readertest.Refusal(t, "# first line\n0 nem:1 location gps 1,2,3\n"+c.sentence+"\n", read)
			if err.File != "company1.eel" || err.Line != 3 || !strings.Contains(err.Reason, c.reason) {
				t.Errorf("error is %q: want line 3 and %q", err, c.reason)
			}
		})
	}
}

func TestALineThatNeverEndsIsRefused(t *testing.T) {
	err := readertest.Refusal(t, "0 nem:1 pathloss"+strings.Repeat(" nem:2,80", 200_000), read)
	if !strings.Contains(err.Reason, "longer than") {
		t.Errorf("error is %q", err)
	}
}

func TestUnknownKindsDoNotFillTheMemory(t *testing.T) {
	var file strings.Builder
	for i := range 1000 {
		file.WriteString("0 nem:1 kind" + strings.Repeat("x", i) + " y\n")
	}
	_, report := readertest.Compile(t, file.String(), read)
	total := int64(0)
	for _, n := range report.Unknown {
		total += n
	}
	if len(report.Unknown) > 64 || total != 1000 {
		t.Errorf("%d kinds with %d sentences", len(report.Unknown), total)
	}
}

func TestAKeywordIsSafeToPrint(t *testing.T) {
	_, report := readertest.Compile(t, "0.0 nem:1 \x1b[31mred\x07 x\n", read)
	if got := report.UnknownSentences(); len(got) != 1 || got[0] != "1 × ?[31mred?" {
		t.Errorf("unknown are %q", got)
	}
}

func TestHoweverSentencesAreWrittenTheyAreTheSame(t *testing.T) {
	const events = "0.0 nem:1 location gps 58.1,7.9,3\n0.0 nem:1 pathloss nem:2,90\n5.0 nem:1 pathloss nem:2,95\n"
	lines := strings.SplitAfter(events, "\n")
	readertest.Same(t, events, read, map[string]string{
		"backwards":          lines[2] + lines[1] + lines[0],
		"a byte order mark":  "\ufeff" + events,
		"UTF-16":             readertest.UTF16(events),
		"lines of Windows":   strings.ReplaceAll(events, "\n", "\r\n"),
		"spaces and remarks": "# begin\n  " + strings.ReplaceAll(strings.ReplaceAll(events, " ", "\t "), "\n", " # remark\n\n"),
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\ufeff0.0 nem:1 location gps 58.1,7.9,3\r\n"))
	for line := range strings.Lines(everything) {
		f.Add([]byte(line))
	}
	f.Add([]byte(everything))
	readertest.Fuzz(f, read)
}

func TestOfTimesBefore0TheLastOneHoldsWhereverItStands(t *testing.T) {
	const lines = "0 nem:1 location gps 50,7,0\n-Inf nem:1 location gps 51,7,0\n-5 nem:2 location gps 52,7,0\n-9 nem:2 location gps 53,7,0\n-Inf nem:2 location gps 54,7,0\n"
	s, _ := readertest.Compile(t, lines, read)
	c := readertest.At(t, s, 0)
	for i, want := range []float64{50, 52} {
		if p, _ := c.Position(i); p.Latitude != want {
			t.Errorf("platform %d is at latitude %v; want %v", i+1, p.Latitude, want)
		}
	}
}
