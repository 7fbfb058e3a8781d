package compile

import (
	"bytes"
	"compress/gzip"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	antennaEvents = "-Inf nem:1 location gps 58.19,7.97,10\n-Inf nem:2 location gps 58.20,7.97,10\n0 nem:1 pathloss nem:2,90\n" +
		"0 nem:1 antennaprofile 2,90,5\n3 nem:2 antennaprofile 1,0,0\n4 nem:1 orientation 0,0,45\n4 nem:1 antennaprofile 1,10,0\n"
	antennaManifest = `<profiles><profile id="2" antennapatternuri="file:///etc/emane/beam.xml" blockagepatternuri="beam.xml"><placement north="0" east="0" up="2"/></profile>
<profile id="1" antennapatternuri="omni.xml"/></profiles>`
	elevations = `<elevation min="-90" max="90"><bearing min="0" max="359"><gain value="3"/></bearing></elevation>`
	beamFile   = "<antennaprofile><antennapattern>" + elevations + "</antennapattern><blockagepattern>" + elevations + "</blockagepattern></antennaprofile>"
	omniFile   = "<antennaprofile><antennapattern>" + elevations + "</antennapattern></antennaprofile>"
)

// antennaFiles returns the files with some texts replaced.
func antennaFiles(other files) files {
	all := files{"e": antennaEvents, "m": antennaManifest, "beam.xml": beamFile, "omni.xml": omniFile}
	for key, text := range other {
		all[key] = text
	}
	return all
}

func antennaSpec() v1alpha1.ScenarioSpec {
	return v1alpha1.ScenarioSpec{Format: "eel", Source: from("e"), AntennaProfiles: from("m")}
}

// packed packs with gzip.
func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAntennaProfilesAreCompiledWithTheirPatterns(t *testing.T) {
	small := antennaFiles(nil)
	small["omni.xml.gz"] = packed(t, omniFile)
	delete(small, "omni.xml")
	for name, c := range map[string]struct {
		f           files
		propagation *v1alpha1.Propagation
	}{
		"as they are":      {antennaFiles(nil), nil},
		"packed":           {small, nil},
		"with propagation": {antennaFiles(nil), &v1alpha1.Propagation{Model: "FreeSpace", Frequency: "300MHz"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := antennaSpec()
			spec.Propagation = c.propagation
			s, result := compiled(t, spec, c.f)
			if p := s.Antennas(); len(p) != 2 || p[0].ID != 1 || p[0].Blockage != nil || p[1].Blockage == nil || p[1].Placement.Up != 2 {
				t.Fatalf("profiles are %+v", p)
			}
			if want := []scenario.AntennaStart{{Platform: 1}, {Platform: 2, At: 3 * time.Second}}; !reflect.DeepEqual(s.AntennaStarts(), want) || result.Statistics.AntennaProfiles != "1-2" {
				t.Errorf("profiles begin at %v, of platforms %s; want %v", s.AntennaStarts(), result.Statistics.AntennaProfiles, want)
			}
			if got, want := result.Statistics.AntennaFileBytes, int64(emane.AntennaFileBytes(s)); got != want || got == 0 {
				t.Errorf("EMANE's files have %d bytes; want %d, and more than none", got, want)
			}
			cursor := s.NewCursor()
			for at, want := range map[time.Duration]scenario.AntennaProfile{0: {ID: 2, Azimuth: 90, Elevation: 5}, 4 * time.Second: {ID: 1, Azimuth: 10}} {
				if err := cursor.Seek(at); err != nil {
					t.Fatal(err)
				}
				if got, known := cursor.AntennaProfile(0); !known || got != want {
					t.Errorf("at %s platform 1 has %+v, %t; want %+v", at, got, known, want)
				}
			}
			if o, known := cursor.Orientation(0); known && o != (geo.Orientation{Yaw: 45}) {
				t.Errorf("orientation is %v", o)
			}
			if s.Duration() != 4*time.Second {
				t.Errorf("duration is %s; want all 4 s, though nobody moves", s.Duration())
			}
			if slices.ContainsFunc(result.Warnings, func(w string) bool { return strings.Contains(w, "ntenna") }) {
				t.Errorf("warnings: %q", result.Warnings)
			}
		})
	}
}

func TestPropagationKeepsATurnOfAPlatformThatStandsStill(t *testing.T) {
	spec := antennaSpec()
	spec.Propagation = &v1alpha1.Propagation{Model: "FreeSpace", Frequency: "300MHz"}
	s, _ := compiled(t, spec, antennaFiles(nil))
	cursor := s.NewCursor()
	if err := cursor.Seek(4 * time.Second); err != nil {
		t.Fatal(err)
	}
	if o, known := cursor.Orientation(0); !known || o.Yaw != 45 {
		t.Errorf("orientation is %v, %t; want a yaw of 45", o, known)
	}
}

func TestWhatIsWrongWithAntennaProfilesIsSaid(t *testing.T) {
	none := antennaFiles(nil)
	delete(none, "beam.xml")
	for want, f := range map[string]files{
		`files/m:1: profile 2 names antennapattern "file:///etc/emane/beam.xml", which is read from the key beam.xml: files/beam.xml: no key "beam.xml"`: none,
		"files/m:1: the file ends too early":                                                            antennaFiles(files{"m": "<profiles>"}),
		"files/beam.xml:1: the file has no blockage":                                                    antennaFiles(files{"beam.xml": omniFile}),
		"files/e:4: antennaprofile: platform 1: antenna profile is 2: the manifest has no such profile": antennaFiles(files{"m": `<profiles><profile id="1" antennapatternuri="omni.xml"/></profiles>`}),
		"antennaProfiles: gains depend on directions, but the sources have no positions":                antennaFiles(files{"e": "0 nem:1 pathloss nem:2,90\n0 nem:1 antennaprofile 1,0,0\n"}),
		"antennaProfiles: platforms with an antenna profile but without a position: 2, 3: want location": antennaFiles(files{
			"e": "0 nem:1 location gps 58,8,10\n0 nem:1 antennaprofile 1,0,0\n0 nem:2 antennaprofile 1,0,0\n0 nem:3 antennaprofile 1,0,0\n"}),
	} {
		_, err := Compile(context.Background(), antennaSpec(), f.open, new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v; want %q", err, want)
		}
	}
}

func TestAntennaProfilesAreRefusedWhereNothingTakesThem(t *testing.T) {
	platform := int32(1)
	for want, change := range map[string]func(*v1alpha1.ScenarioSpec){
		"antennaProfiles: only eel has antennaprofile events, which say who has which: leave it out for csv": func(s *v1alpha1.ScenarioSpec) { s.Format = "csv" },
		"antennaProfiles: a compiled scenario has them already":                                              func(s *v1alpha1.ScenarioSpec) { s.Compiled, s.Source = "sha256:0", nil },
		"antennaProfiles: it moves no platform: leave platform and offset out":                               func(s *v1alpha1.ScenarioSpec) { s.AntennaProfiles.Platform = &platform },
	} {
		spec := antennaSpec()
		change(&spec)
		if err := Check(&spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v; want %q", err, want)
		}
	}
}

func TestDoubtfulAntennaProfilesAreWarnedOf(t *testing.T) {
	const unused = `<elevation min="-90" max="90"><bearing min="-180" max="-1"><gain value="3"/></bearing></elevation>`
	for want, f := range map[string]files{
		"antennaProfiles is given, but the sources have no antennaprofile events": antennaFiles(files{"e": "0 nem:1 location gps 58,8,10\n"}),
		"files/omni.xml: bearing from -180 to -1: bearings are from 0 to 359":     antennaFiles(files{"omni.xml": strings.Replace(omniFile, elevations, unused, 1)}),
		"files/omni.xml: elevation from 0 to 180: elevations are from -90 to 90":  antennaFiles(files{"omni.xml": strings.Replace(omniFile, `min="-90" max="90"`, `min="0" max="180"`, 1)}),
	} {
		_, result := compiled(t, antennaSpec(), f)
		if said := strings.Join(result.Warnings, "; "); !strings.Contains(said, want) {
			t.Errorf("warnings %q; want %q", said, want)
		}
	}
}
