package anglovacsv_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/anglovacsv"
	"vignette.dev/vignette/internal/scenario/internal/readertest"
)

func read(file []byte, b *scenario.Builder) (scenario.Report, error) {
	return scenario.Report{}, anglovacsv.Read(bytes.NewReader(file), "company1.csv", b, nil)
}

const header = "ts,d,i_nem_id,i_lat,i_lon,i_alt,j_nem_id,j_lat,j_lon,j_alt,pathloss\n"

const rows = `3600,120.5,100,58.17,7.95,10,101,58.171,7.95,12,98.5
3600,220.5,100,58.17,7.95,10,1450,58.172,7.95,14,121
3601,121.5,100,58.1701,7.95,10,101,58.171,7.95,12,99
`

func TestRowsHoldBothWaysFromTheFirstTimeOn(t *testing.T) {
	for name, file := range map[string]string{"with names": header + rows, "without": rows, "after a byte order mark": "\ufeff" + header + rows} {
		t.Run(name, func(t *testing.T) {
			s, _ := readertest.Compile(t, file, read)
			if s.Duration() != time.Second || len(s.Platforms()) != 3 {
				t.Errorf("platforms are %v, up to %s", s.Platforms(), s.Duration())
			}
			c := readertest.At(t, s, 0)
			for _, pair := range [][2]int{{0, 1}, {1, 0}} {
				if dB, known := c.Pathloss(pair[0], pair[1]); dB != 98.5 || !known {
					t.Errorf("pathloss of %v is %v, %t", pair, dB, known)
				}
			}
			c = readertest.At(t, s, time.Second)
			if dB, _ := c.Pathloss(1, 0); dB != 99 {
				t.Errorf("a second later it is %v", dB)
			}
			if dB, _ := c.Pathloss(2, 0); dB != 121 {
				t.Errorf("what has no new row is %v", dB)
			}
			if p, _ := c.Position(0); p != (geo.Position{Latitude: 58.1701, Longitude: 7.95, Altitude: 10}) {
				t.Errorf("position is %v", p)
			}
		})
	}
}

func TestHoweverRowsAreWrittenTheyAreTheSame(t *testing.T) {
	lines := strings.SplitAfter(rows, "\n")
	readertest.Same(t, header+rows, read, map[string]string{
		"backwards":                header + lines[2] + lines[1] + lines[0],
		"mixed":                    lines[1] + lines[2] + lines[0],
		"a byte order mark":        "\ufeff" + rows,
		"UTF-16":                   readertest.UTF16(header + rows),
		"lines of Windows":         strings.ReplaceAll(header+rows, "\n", "\r\n"),
		"quotes":                   `"` + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(header+rows, "\n"), ",", `","`), "\n", "\"\n\"") + `"`,
		"a mark before a quote":    "\ufeff" + strings.Replace(header, "ts", `"ts"`, 1) + rows,
		"names in capital letters": strings.ToUpper(header) + rows,
	})
}

func TestTimesMayBeTakenAsTheyAre(t *testing.T) {
	s, _ := readertest.Compile(t, rows, func(file []byte, b *scenario.Builder) (scenario.Report, error) {
		return scenario.Report{}, anglovacsv.Read(bytes.NewReader(file), "company1.csv", b, new(float64))
	})
	if s.Duration() != 3601*time.Second {
		t.Errorf("duration is %s", s.Duration())
	}
}

func TestRowsThatMakeNoSenseAreRefused(t *testing.T) {
	readertest.Refused(t, read, map[string]readertest.Wrong{
		"a column is missing":              {"ts,d,i_nem_id\n1,2,3\n", 1, "there is no column i_lat"},
		"a column is there twice":          {strings.Replace(header, "d,", "ts,", 1) + rows, 1, "the column ts is there twice: want it once"},
		"a row is short":                   {header + "3600,120\n", 2, "the row has 2 columns: want 11"},
		"ten columns without names":        {"3600,100,58.17,7.95,10,101,58.171,7.95,12,98.5\n", 1, "the row has 10 columns"},
		"a platform is 0":                  {header + strings.Replace(rows, ",100,", ",0,", 1), 2, "i_nem_id: platform"},
		"a pathloss is no number":          {header + strings.Replace(rows, "98.5", "far", 1), 2, `pathloss is "far"`},
		"a pair has two pathlosses":        {header + rows + "3601,1,101,58.171,7.95,12,100,58.1701,7.95,10,80\n", 5, "want one row for each pair and time"},
		"a platform is at two places":      {header + rows + "3601,1,100,58.171,7.95,12,102,58.1701,7.95,10,80\n", 5, "platform 100 is at 58.1701,7.95,10 and at 58.171,7.95,12 at 1 s: want one place"},
		"a pair is one platform":           {header + "1,1,7,1,1,1,7,1,1,1,80\n", 2, "link to itself"},
		"a quote is open":                  {header + "\"1,1,7\n", 2, `"`},
		"a latitude is not on this planet": {header + "1,1,7,91,1,1,8,1,1,1,80\n", 2, "latitude is 91"},
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(header + rows))
	f.Add([]byte(rows))
	readertest.Fuzz(f, read)
}
