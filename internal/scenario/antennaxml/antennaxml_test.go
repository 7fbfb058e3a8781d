package antennaxml_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/antennaxml"
)

const manifest = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE profiles SYSTEM "file:///usr/share/emane/dtd/antennaprofile.dtd">
<profiles>
  <!-- on the mast -->
  <profile id="2" antennapatternuri="file:///etc/emane/sector.xml" blockagepatternuri="aft.xml">
    <placement north="-1.5" east="0" up="10"/>
  </profile>
  <profile id="1" antennapatternuri="omni.xml"/>
</profiles>
`

func TestAManifestIsReadAsItStands(t *testing.T) {
	got, err := antennaxml.ReadManifest(strings.NewReader(manifest), "m.xml")
	want := []antennaxml.Entry{
		{ID: 2, Line: 5, AntennaURI: "file:///etc/emane/sector.xml", BlockageURI: "aft.xml", Placement: antenna.Placement{North: -1.5, Up: 10}},
		{ID: 1, Line: 8, AntennaURI: "omni.xml"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestWhatIsWrongWithAManifestIsNamedByLine(t *testing.T) {
	for want, text := range map[string]string{
		"m.xml:1: the file is an element platform: want profiles":                   "<platform/>",
		"m.xml:1: the manifest has no profiles":                                     "<profiles/>",
		"m.xml:2: there is an element antenna: want profile":                        "<profiles>\n<antenna/></profiles>",
		`m.xml:2: profile: id is "": want a whole number from 0 to 65535`:           "<profiles>\n<profile antennapatternuri='a.xml'/></profiles>",
		`m.xml:1: profile: id is "1.5": want a whole number`:                        "<profiles><profile id='1.5' antennapatternuri='a.xml'/></profiles>",
		`m.xml:1: profile: id is "65536": want a whole number`:                      "<profiles><profile id='65536' antennapatternuri='a.xml'/></profiles>",
		"m.xml:2: profile 1 has no antennapatternuri: want the file of its antenna": "<profiles>\n<profile id='1' antennapatternuri=' '/></profiles>",
		"m.xml:3: profile 1 is in line 2 already":                                   "<profiles>\n<profile id='1' antennapatternuri='a'/>\n<profile id='1' antennapatternuri='b'/></profiles>",
		"m.xml:1: there is an element position: want placement":                     "<profiles><profile id='1' antennapatternuri='a'><position/></profile></profiles>",
		`m.xml:1: placement: east is "": want a number`:                             "<profiles><profile id='1' antennapatternuri='a'><placement north='1' up='1'/></profile></profiles>",
		`m.xml:1: placement: up is "1,5": want a number with a decimal point`:       "<profiles><profile id='1' antennapatternuri='a'><placement north='1' east='1' up='1,5'/></profile></profiles>",
		"m.xml:1: placement: north is 200000: want metres":                          "<profiles><profile id='1' antennapatternuri='a'><placement north='200000' east='1' up='1'/></profile></profiles>",
		"m.xml:1: the file ends too early":                                          "<profiles><profile id='1'",
	} {
		if _, err := antennaxml.ReadManifest(strings.NewReader(text), "m.xml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v; want %q", text, err, want)
		}
	}
}

func TestAFileMayHoldBothPatterns(t *testing.T) {
	const text = `<antennaprofile>
<antennapattern><elevation min="-90" max="0"><bearing min="0" max="5"><gain value="-3.5"/></bearing></elevation></antennapattern>
<blockagepattern><elevation min="1" max="1"><bearing min="7" max="9"><gain value="1"/><gain value="-10"/></bearing></elevation></blockagepattern>
</antennaprofile>`
	for kind, want := range map[antennaxml.Kind]antenna.Elevation{
		antennaxml.Antenna:  {Min: -90, Max: 0, Bearings: []antenna.Bearing{{Min: 0, Max: 5, Gain: -3.5}}},
		antennaxml.Blockage: {Min: 1, Max: 1, Bearings: []antenna.Bearing{{Min: 7, Max: 9, Gain: -10}}},
	} {
		got, err := antennaxml.ReadPattern(strings.NewReader("\ufeff"+text), "p.xml", kind)
		if err != nil || !reflect.DeepEqual(got.Elevations, []antenna.Elevation{want}) {
			t.Errorf("%s: got %+v, %v; want %+v", kind, got, err, want)
		}
	}
}

// In the file of a pattern.
func in(text string) string {
	return "<antennaprofile><antennapattern>\n" + text + "</antennapattern></antennaprofile>"
}

func TestWhatIsWrongWithAPatternIsNamedByLine(t *testing.T) {
	const good = "<elevation min='0' max='9'><bearing min='0' max='9'><gain value='1'/></bearing></elevation>"
	for want, text := range map[string]string{
		"p.xml:1: the file is an element antennapattern: want antennaprofile": "<antennapattern/>",
		"p.xml:1: the file has no antennapattern":                             "<antennaprofile><blockagepattern>" + good + "</blockagepattern></antennaprofile>",
		"p.xml:1: antennapattern has no elevation":                            "<antennaprofile><antennapattern/></antennaprofile>",
		"there is a second antennapattern: want one in a file":                strings.Repeat("<antennapattern>"+good+"</antennapattern>", 2),
		"there is an element gian: want gain":                                 in("<elevation min='0' max='9'><bearing min='0' max='9'><gian value='1'/></bearing></elevation>"),
		"p.xml:2: elevation from 0 to 9 has no bearing":                       in("<elevation min='0' max='9'></elevation>"),
		"p.xml:2: bearing from 0 to 9 has no gain":                            in("<elevation min='0' max='9'><bearing min='0' max='9'/></elevation>"),
		"p.xml:3: elevation from 9 to 12 overlaps with the one before, which": in(good + "\n<elevation min='9' max='12'><bearing min='0' max='9'><gain value='1'/></bearing></elevation>"),
		"bearing from -5 to 0 overlaps with the one before, which ends at 9":  in("<elevation min='0' max='9'><bearing min='0' max='9'><gain value='1'/></bearing><bearing min='-5' max='0'><gain value='1'/></bearing></elevation>"),
		"p.xml:2: elevation: min 9 is above max 0":                            in("<elevation min='9' max='0'/>"),
		`p.xml:2: elevation: max is "north": want a whole number`:             in("<elevation min='9' max='north'/>"),
		`gain: value is "NaN": want a number`:                                 in("<elevation min='0' max='9'><bearing min='0' max='9'><gain value='NaN'/></bearing></elevation>"),
	} {
		if strings.HasPrefix(text, "<antennapattern><") {
			text = "<antennaprofile>" + text + "</antennaprofile>"
		}
		if _, err := antennaxml.ReadPattern(strings.NewReader(text), "p.xml", antennaxml.Antenna); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v; want %q", text, err, want)
		}
	}
}

// orderly fails the test unless an error names a line of the file.
func orderly(t *testing.T, err error) {
	t.Helper()
	if syntax := (*scenario.SyntaxError)(nil); err != nil && !errors.As(err, &syntax) {
		t.Fatalf("error is %v: want one about a line", err)
	}
}

func FuzzReadManifest(f *testing.F) {
	f.Add(manifest)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := antennaxml.ReadManifest(strings.NewReader(text), "m.xml")
		orderly(t, err)
		if err == nil && len(entries) == 0 {
			t.Fatal("a manifest without profiles is none")
		}
	})
}

func FuzzReadPattern(f *testing.F) {
	f.Add(in("<elevation min='-90' max='90'><bearing min='0' max='359'><gain value='1.5'/></bearing></elevation>"))
	f.Fuzz(func(t *testing.T, text string) {
		pattern, err := antennaxml.ReadPattern(strings.NewReader(text), "p.xml", antennaxml.Antenna)
		orderly(t, err)
		if err != nil {
			return
		}
		profiles := antenna.Profiles{{ID: 1, Antenna: pattern}}
		if err := profiles.Check(); err != nil {
			t.Fatalf("what was read is refused: %v", err)
		}
		if again, err := antenna.Decode(profiles.Encode()); err != nil || !reflect.DeepEqual(again, profiles) {
			t.Fatalf("encoded and decoded it is %v, %v; want %v", again, err, profiles)
		}
	})
}
