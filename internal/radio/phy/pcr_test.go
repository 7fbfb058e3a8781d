package phy

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func curveOf(t *testing.T, text string) *Curve {
	t.Helper()
	c, err := ParsePCR([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const rfPipePCR = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE pcr SYSTEM "file:///usr/share/emane/dtd/rfpipepcr.dtd">
<pcr>
  <!-- points -->
  <table pktsize="128">
    <row sinr="-3.5" por="10.0"/>
    <row sinr="0"    por="50"/>
    <row sinr="10.0" por="90.0"/>
  </table>
</pcr>`

const tdmaPCR = `<tdmabasemodel-pcr packetsize="0">
  <datarate bps="1M"><entry sinr="5.0" por="100"/><entry sinr="0.0" por="20"/></datarate>
  <datarate bps="2.5M"><entry sinr="10" por="0.0"/><entry sinr="12" por="100.0"/></datarate>
</tdmabasemodel-pcr>`

const wifiPCR = `<!DOCTYPE pcr SYSTEM "file:///usr/share/emane/dtd/ieee80211pcr.dtd">
<pcr>
  <table pktsize="128">
    <datarate index="1"><row sinr="-9.0" por="0.0"/><row sinr="-7.0" por="20"/></datarate>
    <datarate index="3"><row sinr="0" por="0"/><row sinr="4" por="100"/></datarate>
    <datarate index="12"><row sinr="20" por="0"/><row sinr="22" por="100.0"/></datarate>
  </table>
</pcr>`

const bentPipePCR = `<bentpipe-model-pcr packetsize="128"><curve index="7"><entry sinr="-10" por="0"/><entry sinr="10" por="100"/></curve></bentpipe-model-pcr>`

func TestCompletionIsLinearBetweenThePointsOfTheCurve(t *testing.T) {
	pipe, tdma, wifi, bent := curveOf(t, rfPipePCR), curveOf(t, tdmaPCR), curveOf(t, wifiPCR), curveOf(t, bentPipePCR)
	for name, c := range map[string]struct {
		curve *Curve
		sinr  float64
		bytes int
		rate  float64
		want  float64
	}{
		"left of the curve":          {pipe, -3.51, 128, 1e6, 0},
		"first point":                {pipe, -3.5, 128, 1e6, 0.1},
		"between":                    {pipe, 5, 128, 1e6, 0.7},
		"last point":                 {pipe, 10, 128, 1e6, 0.9},
		"right of the curve":         {pipe, 10.01, 128, 1e6, 1},
		"right of it, large frame":   {pipe, 10.01, 1500, 1e6, 1},
		"twice the size":             {pipe, 5, 256, 1e6, 0.49},
		"half the size":              {pipe, 0, 64, 1e6, math.Sqrt(0.5)},
		"rate of the first curve":    {tdma, 2.5, 9999, 1e6, 0.6},
		"rate of the second curve":   {tdma, 11, 1, 2.5e6, 0.5},
		"rate without a curve":       {tdma, 2.5, 1, 7e6, 0.6},
		"802.11 at 1 Mbit/s":         {wifi, -8, 128, 1e6, 0.1},
		"802.11 at 5.5 Mbit/s":       {wifi, 1, 128, 5.5e6, 0.25},
		"802.11 at 54 Mbit/s":        {wifi, 21, 256, 54e6, 0.25},
		"802.11 at another rate":     {wifi, -8, 128, 175e3, 0.1},
		"bent pipe":                  {bent, 0, 128, 1e6, 0.5},
		"no curve, at the noise":     {nil, 0, 1, 1, 1},
		"no curve, below the noise":  {nil, -1e-9, 1, 1, 0},
		"not a number is not heard":  {pipe, math.NaN(), 1, 1, 0},
		"infinite is always heard":   {pipe, math.Inf(1), 1, 1, 1},
		"minus infinity never heard": {pipe, math.Inf(-1), 1, 1, 0},
	} {
		if got := c.curve.Completion(c.sinr, c.bytes, c.rate); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

func TestRatesOfACurve(t *testing.T) {
	if rates := curveOf(t, tdmaPCR).RatesBitsPerSecond(); len(rates) != 2 || rates[0] != 1e6 || rates[1] != 2.5e6 {
		t.Errorf("rates %v", rates)
	}
	if rates := curveOf(t, rfPipePCR).RatesBitsPerSecond(); rates != nil {
		t.Errorf("rates %v of a curve for every rate", rates)
	}
}

func TestAnAscendingCurveGivesAscendingCompletion(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		c := &Curve{sizeBytes: float64(random.IntN(3) * 100), rates: make([]rateCurve, 1)}
		sinr, completion := -20*random.Float64(), 0.0
		for range 1 + random.IntN(12) {
			c.rates[0].points = append(c.rates[0].points, point{sinr, completion})
			sinr += 0.01 + 3*random.Float64()
			completion += (1 - completion) * random.Float64()
		}
		before := 0.0
		for x := -25.0; x < 40; x += 0.1 {
			now := c.Completion(x, 1000, 1e6)
			if now < before || now < 0 || now > 1 {
				t.Fatalf("%v at %v dB after %v", now, x, before)
			}
			before = now
		}
	}
}

func TestACurveIsReadWithAMarkAndWithAnyDeclaredEncoding(t *testing.T) {
	for name, text := range map[string]string{
		"a byte order mark":  "\ufeff" + rfPipePCR,
		"a declared 8859-1":  strings.Replace(rfPipePCR, "UTF-8", "ISO-8859-1", 1),
		"a declared US form": strings.Replace(rfPipePCR, "UTF-8", "us-ascii", 1),
	} {
		if got, want := curveOf(t, text).Completion(0, 128, 0), curveOf(t, rfPipePCR).Completion(0, 128, 0); got != want {
			t.Errorf("%s: completion is %v; want %v", name, got, want)
		}
	}
}

func TestWrongPCRFilesAreRefusedWithTheirLineAndReason(t *testing.T) {
	table := func(rows string) string { return "<pcr>\n<table pktsize=\"0\">\n" + rows + "\n</table>\n</pcr>" }
	for name, c := range map[string]struct{ text, want string }{
		"empty":                   {"", "pcr: no curve: want a table or a datarate with at least one point"},
		"another version":         {`<?xml version="1.1"?><pcr/>`, `line 1: the text is of another version of XML: want version="1.0"`},
		"a size below zero":       {`<pcr><table pktsize="-5"/></pcr>`, `pktsize of table: "-5", want a number from 0 to 4294967295`},
		"no XML":                  {"sinr,por", `line 1: text "sinr,por": want elements only`},
		"another root":            {"<emane/>", "line 1: element emane: want pcr with table and row"},
		"cut off":                 {"<pcr><table pktsize='0'>", "pcr: line 1: the text ends too early"},
		"closed otherwise":        {"<pcr>\n</table>", "pcr: line 2: the text is not well-formed XML: element <pcr> closed by </table>"},
		"no table":                {"<pcr></pcr>", "no curve"},
		"no rows":                 {table(""), "curve without points"},
		"two tables":              {"<pcr><table pktsize='0'/>\n<table pktsize='0'/></pcr>", "line 2: second table: want one"},
		"two roots":               {"<pcr/>\n<pcr/>", "line 2: second root element"},
		"no sinr":                 {table("<row por='1'/>"), "line 3: sinr of row: missing"},
		"sinr no number":          {table("<row sinr='x' por='1'/>"), `line 3: sinr of row: "x", want a number from -255 to 255`},
		"sinr not finite":         {table("<row sinr='NaN' por='1'/>"), `"NaN", want a number`},
		"sinr hexadecimal":        {table("<row sinr='0x1p2' por='1'/>"), `"0x1p2", want a number`},
		"por too large":           {table("<row sinr='1' por='100.5'/>"), `por of row: "100.5", want a number from 0 to 100`},
		"por negative":            {table("<row sinr='1' por='-1'/>"), `por of row: "-1"`},
		"rows not in order":       {table("<row sinr='1' por='1'/>\n<row sinr='0' por='2'/>"), "line 4: sinr of row: 0 after 1, want ascending values"},
		"rows twice":              {table("<row sinr='1' por='1'/>\n<row sinr='1' por='2'/>"), "line 4: sinr of row: 1 after 1"},
		"no size":                 {"<pcr><table><row sinr='1' por='1'/></table></pcr>", "pktsize of table: missing"},
		"part of a byte":          {"<pcr><table pktsize='1.5'/></pcr>", "pktsize of table: 1.5, want whole bytes"},
		"no rate":                 {"<tdmabasemodel-pcr packetsize='0'><datarate/></tdmabasemodel-pcr>", "bps of datarate: missing"},
		"rate twice":              {"<tdmabasemodel-pcr packetsize='0'><datarate bps='1M'/><datarate bps='1000K'/></tdmabasemodel-pcr>", "second curve for 1e+06 bit/s"},
		"entry twice":             {"<tdmabasemodel-pcr packetsize='0'><datarate bps='1M'><entry sinr='1' por='1'/><entry sinr='1' por='1'/></datarate></tdmabasemodel-pcr>", "sinr 1: given twice"},
		"802.11 without index":    {"<pcr><table pktsize='0'><datarate/></table></pcr>", "index of datarate: missing"},
		"802.11 beyond its rates": {"<pcr><table pktsize='0'><datarate index='13'/></table></pcr>", "want a number from 1 to 12"},
		"half an index":           {"<pcr><table pktsize='0'><datarate index='1.5'/></table></pcr>", "want a whole number from 1 (1 Mbit/s) to 12 (54 Mbit/s)"},
		"802.11 rate twice":       {"<pcr><table pktsize='0'><datarate index='2'/><datarate index='2'/></table></pcr>", "second curve for 2e+06 bit/s"},
		"a row before a rate":     {"<pcr><table pktsize='0'><row sinr='1' por='1'/><datarate index='2'/></table></pcr>", "datarate beside rows of the table"},
		"a row after a rate":      {"<pcr><table pktsize='0'><datarate index='2'/><row sinr='1' por='1'/></table></pcr>", "row beside a datarate"},
		"two transponders":        {"<bentpipe-model-pcr packetsize='0'><curve index='0'/><curve index='3'/></bentpipe-model-pcr>", "second curve, of index 3: a network's radios have one"},
		"TDMA size too large":     {"<tdmabasemodel-pcr packetsize='65536'/>", "want a number from 0 to 65535"},
		"elements mixed":          {"<pcr><datarate bps='1'/></pcr>", "element pcr/datarate: want"},
		"text between entries":    {table("<row sinr='1' por='1'/> hello"), `text "hello"`},
	} {
		if _, err := ParsePCR([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want %q", name, err, c.want)
		}
	}
}

func FuzzParsePCR(f *testing.F) {
	for _, seed := range []string{rfPipePCR, tdmaPCR, wifiPCR, bentPipePCR, "<pcr><table pktsize='1K'><row sinr='-1' por='0'/></table></pcr>"} {
		f.Add([]byte(seed), 1.5, 900)
	}
	f.Fuzz(func(t *testing.T, text []byte, sinr float64, size int) {
		c, err := ParsePCR(text)
		if err != nil {
			return
		}
		for _, rate := range append(c.RatesBitsPerSecond(), 0) {
			if _, err := ParsePCR([]byte(c.RFPipe(rate))); err != nil && strings.Contains(err.Error(), "XML") {
				t.Errorf("written as RF Pipe's: %v", err) // two points of one SINR in two decimals are for EMANE to refuse
			}
			if p := c.Completion(sinr, max(size, 0), rate); !(p >= 0 && p <= 1) {
				t.Errorf("completion %v at %v dB and %d bytes", p, sinr, size)
			}
		}
	})
}

func TestACurveIsWrittenAsEMANEsOtherModelsHaveIt(t *testing.T) {
	wifi, bent := curveOf(t, wifiPCR), curveOf(t, bentPipePCR)
	for name, c := range map[string]struct{ got, want string }{
		"802.11 as RF Pipe's":          {wifi.RFPipe(5.5e6), `<pcr><table pktsize="128"><row sinr="0.00" por="0.00"/><row sinr="4.00" por="100.00"/></table></pcr>`},
		"802.11 of no rate as RF Pipe": {wifi.RFPipe(175e3), `<pcr><table pktsize="128"><row sinr="-9.00" por="0.00"/><row sinr="-7.00" por="20.00"/></table></pcr>`},
		"bent pipe as TDMA's": {bent.TDMA(), `<tdmabasemodel-pcr packetsize="128"><datarate bps="1000000"><entry sinr="-10.00" por="0.00"/><entry sinr="10.00" por="100.00"/>` +
			`</datarate></tdmabasemodel-pcr>`},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s; want %s", name, c.got, c.want)
		}
	}
	for _, rate := range wifi.RatesBitsPerSecond() {
		for sinr := -12.0; sinr < 25; sinr += 0.25 {
			if got, want := curveOf(t, wifi.TDMA()).Completion(sinr, 300, rate), wifi.Completion(sinr, 300, rate); math.Abs(got-want) > 1e-9 {
				t.Fatalf("802.11 as TDMA's at %v dB and %v bit/s: %v; want %v", sinr, rate, got, want)
			}
		}
	}
}

func TestABentPipesTransmittersMayHaveCurvesOfTheirOwn(t *testing.T) {
	curve := func(index string) string {
		return `<curve index="` + index + `"><entry sinr="-10" por="0"/><entry sinr="10" por="100"/></curve>`
	}
	in := func(curves string) string {
		return `<bentpipe-model-pcr packetsize="0">` + curves + `</bentpipe-model-pcr>`
	}
	if err := CheckBentPipePCR([]byte(in(curve("0") + curve("3")))); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		in(curve("3") + curve("3")): "second curve of index 3",
		in(""):                      "no curve",
		rfPipePCR:                   "want a file of EMANE's Bent Pipe model",
	} {
		if err := CheckBentPipePCR([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
