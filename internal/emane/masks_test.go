package emane

import (
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const ownMasks = `<?xml version="1.0"?>
<spectral-mask-manifest><!-- measured -->
  <mask id="1"><primary><width hz="250K" dBr="-40"/><width hz="250K" dBr="0"/><width hz="250K" dBr="-40.5"/></primary></mask>
  <mask id="7"><primary><width hz="1M" dBr="0"/></primary><spurs><spur offset_from_center_hz="-2.4G"><width hz="10" dBr="-60"/></spur></spurs></mask>
</spectral-mask-manifest>`

// masked has mask 7, and mask 1 for veh-2.
func masked() *v1alpha1.RadioNetworkSpec {
	index := func(mask string) []v1alpha1.EMANEParameter {
		return []v1alpha1.EMANEParameter{{Layer: v1alpha1.EMANELayerPHY, Name: "spectralmaskindex", Values: []string{mask}}}
	}
	spec := pipe()
	spec.Waveform.EMANE = &v1alpha1.EMANESettings{SpectralMasks: ownMasks, Parameters: index("7"), Nodes: []v1alpha1.EMANENodes{{Names: []string{"veh-2"}, Parameters: index("1")}}}
	return spec
}

func TestFilesOfAProcessWithSpectralMasksAreAsAccepted(t *testing.T) {
	spec, all := masked(), ""
	for i := range spec.Members[:2] {
		files, err := Render(spec, &spec.Members[i], process())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Name == "phy.xml" || i == 0 && (f.Name == Platform || f.Name == Masks) {
				all += "# " + f.Name + " of " + spec.Members[i].Node + "\n" + string(f.Text)
			}
			if f.Shared != (f.Name == PCR || f.Name == Masks) {
				t.Errorf("%s is shared: %t", f.Name, f.Shared)
			}
		}
	}
	golden.Check(t, "masks.txt", all)
}

func TestWhatEMANERefusesInMasksIsNamedWithItsLine(t *testing.T) {
	mask := func(inside string) string {
		return "<spectral-mask-manifest>\n" + inside + "</spectral-mask-manifest>"
	}
	for text, want := range map[string]string{
		mask(""):             "it has no masks",
		mask("<pcr/>"):       "line 2: pcr in spectral-mask-manifest is not known",
		"<pcr/>":             "line 1: the root element is pcr: want spectral-mask-manifest",
		"<spectral-mask-man": "line 1 is not well-formed XML",
		mask(`<mask><primary><width hz="1" dBr="0"/></primary></mask>`):        "line 2: mask has no id",
		mask(`<mask id="0"><primary><width hz="1" dBr="0"/></primary></mask>`): `line 2: mask "0": want an id from 1 to 65535`,
		mask(`<mask id="65536"/>`): `mask "65536": want an id`,
		mask(`<mask id="01"/>`):    `mask "01": want an id`,
		mask(`<mask id="1"><primary><width hz="1" dBr="0"/></primary></mask><mask id="1"/>`): "mask 1 is there twice",
		mask(`<mask id="1"/>`):                 "mask 1 has no primary",
		mask(`<mask id="1"><primary/></mask>`): "a primary of mask 1 has no width",
		mask(`<mask id="1"><primary><width hz="1" dBr="0"/></primary><primary/></mask>`):                                         "mask 1 has a second primary",
		mask(`<mask id="1"><spurs/><primary><width hz="1" dBr="0"/></primary></mask>`):                                           "mask 1 has its primary after its spurs",
		mask(`<mask id="1"><primary><width hz="1"/></primary></mask>`):                                                           "width has no dBr", // EMANE ends at it
		mask(`<mask id="1"><primary><width hz="1" dBr="0" db="0"/></primary></mask>`):                                            "width has the attribute db",
		mask(`<mask id="1"><primary><width hz="0" dBr="0"/></primary></mask>`):                                                   `width "0": want whole hertz above 0`,
		mask(`<mask id="1"><primary><width hz="1.5" dBr="0"/></primary></mask>`):                                                 `width "1.5": want whole hertz`,
		mask(`<mask id="1"><primary><width hz="64k" dBr="0"/></primary></mask>`):                                                 `width "64k": want whole hertz`,
		mask(`<mask id="1"><primary><width hz="0500" dBr="0"/></primary></mask>`):                                                `width "0500": want whole hertz`,
		mask(`<mask id="1"><primary><width hz="9999G" dBr="0"/></primary></mask>`):                                               `width "9999G": want whole hertz`,
		mask(`<mask id="1"><primary><width hz="1" dBr="1e1"/></primary></mask>`):                                                 `dBr "1e1": want decibels`,
		mask(`<mask id="1"><primary><width hz="1" dBr="-301"/></primary></mask>`):                                                `dBr "-301": want decibels from -300 to 300`,
		mask(`<mask id="1"><primary><width hz="1" dBr="0"/></primary><spurs><spur offset_from_center_hz="far"/></spurs></mask>`): `offset_from_center_hz "far": want whole hertz`,
		mask(`<mask id="1"><primary><width hz="1" dBr="0"/></primary><spurs><spur offset_from_center_hz="1"/></spurs></mask>`):   "a spur of mask 1 has no width",
	} {
		if _, err := masksOf(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
	if ids, err := masksOf(ownMasks); err != nil || !slices.Equal(ids, []string{"1", "7"}) {
		t.Errorf("masks %v, %v; want 1 and 7", ids, err)
	}
}

func TestAMaskThatIsNotThereIsRefusedWithThoseThatAre(t *testing.T) {
	other, node, none, satellite, layerless, wrong := masked(), masked(), masked(), bentPipe(), bypass(), masked()
	other.Waveform.EMANE.Parameters[0].Values[0] = "2"
	node.Waveform.EMANE.Nodes[0].Parameters[0].Values[0] = "2"
	none.Waveform.EMANE.SpectralMasks = ""
	none.Waveform.EMANE.Nodes = nil
	satellite.Waveform.EMANE.SpectralMasks = ownMasks
	satellite.Waveform.EMANE.Parameters = append(satellite.Waveform.EMANE.Parameters, v1alpha1.EMANEParameter{Layer: "mac", Name: "antenna.defines", Values: []string{"0:omni;40;7", "1:omni;40;3"}})
	layerless.Waveform.EMANE.SpectralMasks = ownMasks
	wrong.Waveform.EMANE.SpectralMasks = "<pcr/>"
	for want, spec := range map[string]*v1alpha1.RadioNetworkSpec{
		`waveform.emane.parameters[0].values: Invalid value: "2": spectralMasks has the masks 1, 7: want the id of one`: other,
		`waveform.emane.nodes[0].parameters[0].values: Invalid value: "2": spectralMasks has the masks 1, 7`:            node,
		`waveform.emane.parameters[0].values: Invalid value: "7": spectralMasks has no masks: want the id of one, or 0`: none,
		`waveform.emane.parameters[3].values: Invalid value: "3": spectralMasks has the masks 1, 7`:                     satellite,
		`waveform.emane.spectralMasks: Forbidden: they are for models over EMANE's physical layer, and bypass has none`: layerless,
		`waveform.emane.spectralMasks: Invalid value: "": line 1: the root element is pcr: want spectral-mask-manifest`: wrong,
	} {
		if errs := Check(spec); len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("found %v\nwant %s", errs, want)
		}
	}
	square := masked()
	square.Waveform.EMANE.Parameters[0].Values[0] = "0"
	if errs := Check(square); len(errs) > 0 {
		t.Errorf("found %v for mask 0; want none", errs)
	}
}

// An accepted mask is written as it was meant: the file has the same masks.
func FuzzMasks(f *testing.F) {
	f.Add(`<spectral-mask-manifest><mask id="1"><primary><width hz="1M" dBr="0"/></primary></mask></spectral-mask-manifest>`)
	f.Add(`<!-- two --><spectral-mask-manifest><mask id="1"><primary><width hz="250K" dBr="-40.5"/><width hz="1" dBr="0"/></primary></mask>
<mask id="65535"><primary><width hz="2.4G" dBr="0"/></primary><spurs><spur offset_from_center_hz="-1.5M"><width hz="5" dBr="+3"/></spur></spurs></mask></spectral-mask-manifest>`)
	f.Add(`<spectral-mask-manifest><mask id="1"/></spectral-mask-manifest>`)
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := masksOf(text)
		if err != nil || text == "" {
			return
		}
		file, err := maskFile(text)
		if err != nil {
			t.Fatalf("%q is accepted, and cannot be written: %v", text, err)
		}
		if again, err := masksOf(string(file.Text)); err != nil || !slices.Equal(again, ids) {
			t.Fatalf("the file of %q has the masks %v, %v; want %v", text, again, err, ids)
		}
	})
}
