package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runclient "vignette.dev/vignette/internal/runapi/client"
)

// chain is an event log in which 1 hears 2, and 2 hears 3, until the last one goes out of reach.
const chain = `0.0 nem:1 location gps 58.10,7.90,3
0.0 nem:1 pathloss nem:2,90.0,90.0 nem:3,150.0,150.0
0.0 nem:2 pathloss nem:3,100.0,100.0
60.0 nem:2 pathloss nem:3,130.0,130.0
`

func chainFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "chain.eel")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func vignette(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = Main("test", append([]string{"vignette"}, args...), strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestInspectSaysWhatAScenarioHoldsAndDrawsIt(t *testing.T) {
	name := chainFile(t, chain)
	svg := filepath.Join(t.TempDir(), "chain.svg")
	code, out, errs := vignette("scenario", "inspect", name, "--every", "1m", "-o", svg)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	// At first four of six ordered pairs have one hop and two have two; in the end two have one and four have no way.
	for _, want := range []string{"platforms  3: 1-3\n", "duration   1m\n", "positions  yes\n", "pathloss   yes\n", "up to 121 dB",
		"        0s   66.7%   33.3%    0.0%    0.0%    0.0%    0.0%    0.0%    1.33       1\n",
		"        1m   33.3%    0.0%    0.0%    0.0%    0.0%    0.0%   66.7%    1.00       2\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it says\n%s\nwant %q", out, want)
		}
	}
	if drawn, err := os.ReadFile(svg); err != nil || !bytes.Contains(drawn, []byte("<svg")) {
		t.Errorf("the picture is %.40q, %v", drawn, err)
	}
}

func TestInspectNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a slip in a line":       {[]string{chainFile(t, chain+"61.0 nem:1 pathloss nem:2,loud\n")}, "chain.eel:5: "},
		"a file of no kind":      {[]string{"chain.dat"}, "Say --format eel"},
		"two formats":            {[]string{"a.eel", "b.csv"}, "files of one format"},
		"a manifest beside more": {[]string{"a.yaml", "b.eel"}, "give it alone"},
		"an experiment": {[]string{"../../scenarios/quickstart/experiment.yaml"},
			"Experiment is not inspected: vignette validate ../../scenarios/quickstart/experiment.yaml judges it, vignette run"},
		"a waveform":               {[]string{"../../charts/vignette/files/waveforms/baseline.yaml"}, "Waveform is not inspected: want a file with a Scenario"},
		"a scenario that is wrong": {[]string{manifestFile(t, "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: {format: ell, nodes: 3}\n")}, "s.yaml:4: spec.nodes: there is no such field"},
		"a manifest that is none":  {[]string{manifestFile(t, "kind: [\n")}, "s.yaml:1: is not YAML: the list that begins here"},
		"a picture that is none":   {[]string{chainFile(t, chain), "-o", "x.png"}, "ends in .svg"},
		"a step of nothing": {[]string{chainFile(t, chain), "--every", "1ns"},
			"--every 1ns: the table would have 60000000001 rows: want at most 10000, by --every 1s or more"},
		"a step back":         {[]string{chainFile(t, chain), "--every", "-1s"}, "--every -1s: want a time above zero"},
		"a step of zero":      {[]string{chainFile(t, chain), "--every", "0s"}, "--every 0s: want a time above zero"},
		"a moment before all": {[]string{chainFile(t, chain), "--at", "-1s"}, "--at -1s: want a moment"},
		"a moment after all":  {[]string{chainFile(t, chain), "--at", "2m", "-o", filepath.Join(t.TempDir(), "x.svg")}, "--at 2m: the scenario ends at 1m:"},
		"a moment of nothing": {[]string{chainFile(t, chain), "--at", "5s"}, "--at 5s is for the picture: add --output FILE.svg"},
		"no limit":            {[]string{chainFile(t, chain), "--limit", "NaN"}, "--limit NaN: want a pathloss"},
		"no file at all":      {nil, "needs at least one FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, errs := vignette(append([]string{"scenario", "inspect"}, c.args...)...); code != 1 || !strings.Contains(errs, c.want) {
				t.Errorf("exit code %d, %q; want …%s…", code, errs, c.want)
			}
		})
	}
}

func manifestFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInspectNumbersTracksAsAnObjectDoes(t *testing.T) {
	folder := t.TempDir()
	const track = `<gpx><trk><trkseg><trkpt lat="58" lon="8"><time>2026-01-31T12:00:00Z</time></trkpt></trkseg></trk></gpx>`
	const object = "kind: Scenario\napiVersion: vignette.dev/v1alpha1\nmetadata: {name: s}\nspec:\n  format: gpx\n  sources:\n  - {configMap: c, key: a.gpx}\n  - {configMap: c, key: b.gpx}\n"
	for name, text := range map[string]string{"a.gpx": track, "b.gpx": track, "s.yaml": object} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, files := range [][]string{{"a.gpx", "b.gpx"}, {"s.yaml"}} {
		args := []string{"scenario", "inspect"}
		for _, file := range files {
			args = append(args, filepath.Join(folder, file))
		}
		if code, out, errs := vignette(args...); code != 0 || !strings.Contains(out, "platforms  2: 1-2\n") {
			t.Errorf("%q: exit code %d: %s%s", files, code, out, errs)
		}
	}
}

func TestInspectReadsTracksOfAllFormats(t *testing.T) {
	folder := t.TempDir()
	for name, c := range map[string]struct {
		text, want string
		flags      []string
	}{
		"day1.gpx": {`<gpx><trk><name>a</name><trkseg><trkpt lat="58" lon="8"><time>2026-01-31T12:00:00Z</time></trkpt></trkseg></trk>` +
			`<trk><name>b</name><trkseg><trkpt lat="58" lon="8"><time>2026-02-01T12:00:00Z</time></trkpt></trkseg></trk></gpx>`, "duration   0s", []string{"--align", "tracks"}},
		"route.gpx":  {`<gpx><rte><rtept lat="58" lon="8"/><rtept lat="58.01" lon="8"/></rte></gpx>`, "duration   1m\n", []string{"--duration", "1m"}},
		"path.kml":   {`<kml><Placemark><LineString><coordinates>8,58 8,58.01</coordinates></LineString></Placemark></kml>`, "duration   1m51.3", []string{"--speed", "36km/h"}},
		"late.csv":   {"2026-01-31T12:00:00Z,1,58,8\n2026-01-31T12:01:00Z,1,58,8\n", "duration   30s\nstart      2026-01-31T12:00:30Z\n", []string{"--start", "2026-01-31T12:00:30Z"}},
		"move.scen":  {"$node_(0) set X_ 1\n$ns_ at 1 \"$node_(0) setdest 11 0 10\"\n", "duration   2.5s", []string{"--origin", "58,8,100m", "--unit", "1.5m", "--y-axis", "South"}},
		"gps.nmea":   {"$GPGGA,120000,5806.0,N,00754.0,E,1,08,0.9,12.0,M,,M,,\n$GPGGA,120007,5806.0,N,00754.0,E,1,08,0.9,12.0,M,,M,,\n", "duration   7s", nil},
		"fcd.xml":    {`<fcd-export><timestep time="3"><vehicle id="v" x="8" y="58"/></timestep></fcd-export>`, "duration   3s", nil},
		"named.data": {"time,name,lat,lon\n0,hq,58,8\n4,tank,58,8\n", "warning: platforms are numbered in the order of the tracks (tracks.named says other numbers): hq is 1, tank is 2", []string{"--format", "csv"}},
	} {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := vignette(append([]string{"scenario", "inspect", file}, c.flags...)...); code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d: %s%s; want %q", name, code, out, errs, c.want)
		}
	}
}

func TestInspectSaysWhichPlatformsHaveAntennaProfilesAndSinceWhen(t *testing.T) {
	folder := t.TempDir()
	const events = "0 nem:3 location gps 58,8,10\n0 nem:2 location gps 58,8,10\n0 nem:1 location gps 58,8,10\n" +
		"-Inf nem:1 antennaprofile 7,0,0\n-Inf nem:2 antennaprofile 7,90,0\n90 nem:3 antennaprofile 1,0,0\n91 nem:3 antennaprofile 7,0,0\n"
	const pattern = `<antennaprofile><antennapattern><elevation min="-90" max="90"><bearing min="0" max="359"><gain value="3"/></bearing></elevation></antennapattern></antennaprofile>`
	for name, text := range map[string]string{"a.eel": events, "omni.xml": pattern,
		"m.xml":  `<profiles><profile id="7" antennapatternuri="file:///elsewhere/omni.xml"/><profile id="1" antennapatternuri="omni.xml"/></profiles>`,
		"s.yaml": "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: {format: eel, source: {configMap: c, key: a.eel}, antennaProfiles: {configMap: c, key: m.xml}}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const want = "antennas   1-2: profile 7 from 0s\nantennas   3: profile 1 from 1m30s\n"
	for _, args := range [][]string{{filepath.Join(folder, "a.eel"), "--antenna-profiles", filepath.Join(folder, "m.xml")}, {filepath.Join(folder, "s.yaml")}} {
		if code, out, errs := vignette(append([]string{"scenario", "inspect"}, args...)...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%v: exit code %d: %s%s; want %q", args, code, out, errs, want)
		}
	}
	code, _, errs := vignette("scenario", "inspect", filepath.Join(folder, "a.eel"), "--antenna-profiles", filepath.Join(folder, "none.xml"))
	if want := "none.xml"; code != 1 || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, %q; want …%s…", code, errs, want)
	}
}

func TestInspectTakesTheConfigMapsOfAManifest(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a.csv: \"0,1,58,8\\n60,1,58,8\\n\"}\n---\n"
	const object = "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: {format: csv, source: {configMap: c, key: a.csv}}\n"
	for name, c := range map[string]struct {
		text, want string
		code       int
	}{
		"a ConfigMap in the file": {configMap + object, "duration   1m\n", 0},
		"another kind":            {strings.Replace(object, "Scenario", "Experiment", 1), "Experiment is not inspected: vignette validate", 1},
		"an unknown field":        {strings.Replace(object, "format: csv", "format: csv, apps: []", 1), "spec.apps: there is no such field", 1},
		"no YAML":                 {"a: b: c", "is not YAML", 1},
		"nothing":                 {"", "want the manifest of a Scenario", 1},
		"two of them":             {object + "---\n" + object, "a file with two Scenarios: want one", 1},
	} {
		file := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := vignette("scenario", "inspect", file); code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: exit code %d: %s%s; want %q", name, code, out, errs, c.want)
		}
	}
}

func TestInspectShowsTheOrderOfBattle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	const object = "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec:\n  format: synthetic\n  synthetic: {pattern: Grid, platforms: 7}\n  orderOfBattle:\n" +
		"  - {name: battalion, commander: 5, network: bn}\n  - {name: company-1, within: battalion, commander: 1, platforms: \"1-3\", network: co-1}\n" +
		"  - {name: staff, within: battalion, commander: 5, platforms: \"5-7\"}\n"
	if err := os.WriteFile(file, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := vignette("scenario", "inspect", file)
	want := `
unit                     commander  platforms  own
battalion                        5          6  none
  company-1                      1          3  1-3
  staff                          5          3  5-7

network       platforms  gateways to other networks
bn                    4  1 (co-1)
co-1                  3  1 (bn)
`
	if code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d: %s\n%s\nwant\n%s", code, errs, out, want)
	}
}

func TestFlagsAboutTracksAreRefusedWhereTheyMakeNoSense(t *testing.T) {
	file := chainFile(t, chain)
	for want, args := range map[string][]string{
		"--align together: want AsDated, Sources or Tracks":             {"--align", "together"},
		"--start noon: want a date such as 2026-01-31T12:00:00Z":        {"--start", "noon"},
		`--speed: "5" is not a speed`:                                   {"--speed", "5"},
		"--duration -1s: want a time above zero":                        {"--duration", "-1s"},
		"--origin 58: want latitude,longitude":                          {"--origin", "58"},
		`--origin 58,east: "east" is not an angle`:                      {"--origin", "58,east"},
		`--origin 58,8,high: "high" is not a length`:                    {"--origin", "58,8,high"},
		`--unit: "1" is not a length`:                                   {"--unit", "1"},
		"--y-axis up: want North or South":                              {"--y-axis", "up"},
		"tracks: format eel has none":                                   {"--align", "Sources"},
		"want eel, anglova-csv, gpx, csv, kml, nmea, ns2, sumo or synt": {"--format", "klm"},
	} {
		if code, _, errs := vignette(append([]string{"scenario", "inspect", file}, args...)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, %q; want …%s…", args, code, errs, want)
		}
	}
}

func TestPushStoresAScenarioOnceAndSaysWhatToWrite(t *testing.T) {
	stored, puts := map[string][]byte{}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, has := stored[r.URL.Path]
		switch {
		case r.Method == http.MethodPut:
			stored[r.URL.Path], _ = io.ReadAll(r.Body)
			puts++
		case !has:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	c := &cluster{archive: runclient.New(server.URL, nil, nil)}
	for range 2 {
		err := withScenario(t.Context(), []string{chainFile(t, chain)}, fileOptions{}, func(compiled *compiledScenario) error {
			var out bytes.Buffer
			if err := c.push(t.Context(), compiled, &out, io.Discard); err != nil {
				return err
			}
			if want := "format: eel\ncompiled: " + compiled.digest + "\n"; out.String() != want {
				t.Errorf("it says %q, want %q", out.String(), want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if puts != 1 || len(stored) != 1 {
		t.Errorf("stored %d scenarios by %d requests; want one by one", len(stored), puts)
	}
}
