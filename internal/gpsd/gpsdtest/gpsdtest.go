// Package gpsdtest has a program that tells where its node is by all ways that apps have, and reads what it said.
package gpsdtest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/gpsd"
	"vignette.dev/vignette/internal/scenario"
)

// Script for bash tells three times the position's file and what gpsd's port answers, and then stays.
const Script = `until [ -s /vignette/run/position.json ]; do sleep 0.2; done
for i in 1 2 3; do
  echo "file $(cat /vignette/run/position.json)"
  exec 4<>/dev/tcp/127.0.0.1/2947; printf '?POLL;\n' >&4
  while read -r -t 10 -u 4 line; do case $line in *'"POLL"'*) echo "port $line"; break;; esac; done
  exec 4>&-
  sleep 1
done
echo "all told"; exec sleep 1000`

// End is the last line of what Script says.
const End = "all told\n"

// Northward is a scenario whose platform 3 goes a thousandth of a degree to the north each second of a minute, from 58° on.
func Northward(t testing.TB) (digest string, content []byte) {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	for second := range 60 {
		if err := b.Position(time.Duration(second)*time.Second, 3, geo.Position{Latitude: 58 + float64(second)/1000, Longitude: 8, Altitude: 20}); err != nil {
			t.Fatal(err)
		}
	}
	var compiled bytes.Buffer
	digest, err := b.Write(&compiled)
	if err != nil {
		t.Fatal(err)
	}
	return digest, compiled.Bytes()
}

// Reports that Script said, of the file and of the port. It wants three of each, with a position.
func Reports(t testing.TB, said string) (all []gpsd.TPV) {
	t.Helper()
	count := map[string]int{}
	for line := range strings.Lines(said) {
		way, text, _ := strings.Cut(line, " ")
		var poll struct{ TPV []gpsd.TPV }
		var err error
		switch way {
		case "file":
			poll.TPV = make([]gpsd.TPV, 1)
			err = json.Unmarshal([]byte(text), &poll.TPV[0])
		case "port":
			err = json.Unmarshal([]byte(text), &poll)
		default:
			continue
		}
		if err != nil || len(poll.TPV) != 1 || poll.TPV[0].Mode != gpsd.Mode3D {
			t.Errorf("%q: %v; want one report with a position", line, err)
			continue
		}
		count[way]++
		all = append(all, poll.TPV[0])
	}
	if count["file"] != 3 || count["port"] != 3 {
		t.Errorf("reports by way: %v; want 3 of the file and 3 of the port in\n%s", count, said)
	}
	return all
}

// CheckNorthward wants what Script said to be where Northward's platform was at the reports' own times, and to move.
func CheckNorthward(t testing.TB, said string, t0 time.Time) {
	t.Helper()
	seen := map[float64]bool{}
	for _, tpv := range Reports(t, said) {
		at, err := time.Parse(time.RFC3339, tpv.Time)
		if err != nil {
			t.Errorf("time of %+v: %v", tpv, err)
			continue
		}
		latitude := func(at time.Time) float64 { return 58 + float64(max(0, int(at.Sub(t0)/time.Second)))/1000 }
		least, most := latitude(at), latitude(at.Add(time.Millisecond)) // the time has milliseconds
		if got := *tpv.LatitudeDegrees; got < least-1e-8 || got > most+1e-8 || *tpv.LongitudeDegrees != 8 || tpv.Device != "vignette:platform-3" {
			t.Errorf("%s: %s at %v, %v; want platform 3 from %v to %v, 8", tpv.Time, tpv.Device, got, *tpv.LongitudeDegrees, least, most)
		}
		seen[*tpv.LatitudeDegrees] = true
	}
	if len(seen) < 2 {
		t.Errorf("latitudes %v; want a platform that moves", seen)
	}
}
