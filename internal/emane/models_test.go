package emane

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func wifi() *v1alpha1.RadioNetworkSpec {
	return &v1alpha1.RadioNetworkSpec{Members: members(2), Waveform: v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANEWiFi,
		PHY: &v1alpha1.PHY{Frequency: "2.4GHz", Bandwidth: "20MHz", TransmitPower: "20dBm", Pathloss: v1alpha1.PathlossFreeSpace},
		Parameters: []v1alpha1.EMANEParameter{{Layer: "mac", Name: "mode", Values: []string{"3"}}, {Layer: "mac", Name: "enablepromiscuousmode", Values: []string{"on"}},
			{Layer: "phy", Name: "some", Values: []string{"a", "b"}}}}}}
}

func bypass() *v1alpha1.RadioNetworkSpec {
	return &v1alpha1.RadioNetworkSpec{Members: members(2), Waveform: v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANEBypass}}}
}

func commEffect() *v1alpha1.RadioNetworkSpec {
	rate := v1alpha1.DataRate("9.6kbit")
	return &v1alpha1.RadioNetworkSpec{Members: members(2), Waveform: v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANECommEffect,
		Effect: &v1alpha1.EMANEEffect{Delay: "100ms", Jitter: "10ms", Loss: "12.5%", Duplicate: "1%", Rate: &rate}}}}
}

// transponder has some of a bent pipe's parameters.
func transponder(receive, transmit, action string) (all []v1alpha1.EMANEParameter) {
	for _, p := range [][2]string{{"transponder.receive.frequency", receive}, {"transponder.transmit.frequency", transmit}, {"transponder.receive.action", action}} {
		all = append(all, v1alpha1.EMANEParameter{Layer: v1alpha1.EMANELayerMAC, Name: p[0], Values: []string{"0:" + p[1]}})
	}
	return all
}

// bentPipe has a satellite, veh-3, that sends on what the others send.
func bentPipe() *v1alpha1.RadioNetworkSpec {
	return &v1alpha1.RadioNetworkSpec{Members: members(3), Waveform: v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANEBentPipe,
		PHY:        &v1alpha1.PHY{NoiseFigure: "3dB", Pathloss: v1alpha1.PathlossFreeSpace},
		Parameters: transponder("20G", "30G", "process"),
		Nodes:      []v1alpha1.EMANENodes{{Names: []string{"veh-3"}, Parameters: transponder("30G", "20G", "ubend")}}}}}
}

func TestANodesOwnParametersReplaceThoseOfAll(t *testing.T) {
	spec := bentPipe()
	first := func(member int) string {
		for _, raw := range rawOf(&spec.Waveform, &spec.Members[member]) {
			if raw.Name == "transponder.receive.frequency" {
				return raw.Values[0]
			}
		}
		return ""
	}
	if first(0) != "0:20G" || first(2) != "0:30G" {
		t.Errorf("veh-1 receives at %s and veh-3 at %s; want 0:20G and 0:30G", first(0), first(2))
	}
	group := []v1alpha1.EMANEParameter{{Layer: v1alpha1.EMANELayerMAC, Name: "transponder.receive.frequency", Values: []string{"0:10G"}}}
	spec.Waveform.EMANE.Nodes = append(spec.Waveform.EMANE.Nodes, v1alpha1.EMANENodes{Names: []string{"veh"}, Parameters: group})
	if first(0) != "0:10G" || first(2) != "0:10G" {
		t.Errorf("veh-1 receives at %s and veh-3 at %s; want the later entry's 0:10G, as it names their group", first(0), first(2))
	}
}

func TestPowerAndGainOfABentPipeAreItsAntennas(t *testing.T) {
	spec := bentPipe()
	power, gain := v1alpha1.Power("1W"), v1alpha1.Gain("3dBi")
	for name, change := range map[string]v1alpha1.RadioPatch{"transmitPower": {TransmitPower: &power}, "antennaGain": {AntennaGain: &gain}} {
		errs := CheckChange(&spec.Waveform, nil, &v1alpha1.RadioChange{Radio: &change}, field.NewPath("change"))
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "change.radio."+name+": Forbidden: the model's antennas have it in emane.parameters") {
			t.Errorf("%s: found %v", name, errs)
		}
	}
	radio := Radio{PowerDBm: 30, GainDBi: 3}
	if all := radio.Parameters(&spec.Waveform); len(all) != 1 || len(all[PHY]) != 1 {
		t.Errorf("changes of %v are sent to EMANE; want that of silence only", all)
	}
}

func TestFilesOfEMANEsOtherModelsAreAsAccepted(t *testing.T) {
	for name, spec := range map[string]*v1alpha1.RadioNetworkSpec{"ieee80211abg": wifi(), "bypass": bypass(), "commeffect": commEffect(), "bentpipe": bentPipe()} {
		files, err := Render(spec, &spec.Members[len(spec.Members)-1], process())
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		for _, f := range files {
			if f.Name != Platform {
				fmt.Fprintf(&all, "== %s\n%s", f.Name, f.Text)
			}
		}
		golden.Check(t, name+".txt", all.String())
	}
}

func TestParametersGoBesideThoseOfRFPipe(t *testing.T) {
	spec := pipe()
	spec.Waveform.EMANE = &v1alpha1.EMANESettings{Parameters: []v1alpha1.EMANEParameter{{Layer: "mac", Name: "radiometricenable", Values: []string{"on"}}}}
	files, err := Render(spec, &spec.Members[0], process())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name == "mac.xml" && (!strings.Contains(string(f.Text), `library="rfpipemaclayer"`) || !strings.Contains(string(f.Text), `name="radiometricenable" value="on"`)) {
			t.Errorf("mac.xml is %s", f.Text)
		}
	}
}

func TestSettingsThatContradictFieldsOrTheModelAreRefused(t *testing.T) {
	parameter := func(spec *v1alpha1.RadioNetworkSpec, layer v1alpha1.EMANELayer, name string) *v1alpha1.RadioNetworkSpec {
		if spec.Waveform.EMANE == nil {
			spec.Waveform.EMANE = &v1alpha1.EMANESettings{}
		}
		spec.Waveform.EMANE.Parameters = []v1alpha1.EMANEParameter{{Layer: layer, Name: name, Values: []string{"1"}}}
		return spec
	}
	collisions, silent, slow := wifi(), bypass(), commEffect()
	collisions.Waveform.EMANE.Interference, silent.Silent = v1alpha1.InterferenceAll, true
	elsewhere, loud, noCurve := bentPipe(), bentPipe(), bentPipe()
	elsewhere.Waveform.EMANE.Nodes[0].Names = []string{"sat"}
	loud.Radios = []v1alpha1.Radio{{Nodes: []string{"veh-1"}, TransmitPower: power("5W")}}
	noCurve.Waveform.EMANE.Nodes[0].Parameters[0].Name = "pcrcurveuri"
	rate := v1alpha1.DataRate("0.5bit")
	slow.Waveform.EMANE.Effect.Rate = &rate
	for name, c := range map[string]struct {
		spec *v1alpha1.RadioNetworkSpec
		want string
	}{
		"the rate of RF Pipe":       {parameter(pipe(), "mac", "datarate"), `waveform.emane.parameters[0].name: Invalid value: "datarate": rfpipe.rate sets it`},
		"the queue of TDMA":         {parameter(slotted(), "mac", "queue.depth"), "tdma.queue.depth sets it"},
		"the power of another MAC":  {parameter(wifi(), "phy", "txpower"), "emane.phy.transmitPower sets it"},
		"radio silence":             {parameter(wifi(), "phy", "radiosilenceenable"), "silent sets it"},
		"a layer that is not there": {parameter(commEffect(), "mac", "mode"), `waveform.emane.parameters[0].layer: Unsupported value: "mac": supported values: "shim"`},
		"a node of another network": {elsewhere, `waveform.emane.nodes[0].names[0]: Invalid value: "sat": the network has no node or group of this name`},
		"the power of an antenna":   {loud, "radios[0]: Forbidden: the antennas of EMANE's model bentpipe"},
		"a node's curve":            {noCurve, `waveform.emane.nodes[0].parameters[0].name: Invalid value: "pcrcurveuri": emane.pcr sets it`},
		"collisions":                {collisions, `waveform.emane.interference: Invalid value: "All"`},
		"silence without a radio":   {silent, "silent: Invalid value: true: EMANE's model bypass"},
		"half a bit per second":     {slow, `waveform.emane.effect.rate: Invalid value: "0.5bit"`},
	} {
		if err := Check(c.spec).ToAggregate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestACurveOfAnotherModelIsRefusedFor80211(t *testing.T) {
	spec := wifi()
	spec.Waveform.EMANE.PCR = ownPCR
	if _, err := Render(spec, &spec.Members[0], process()); err == nil || !strings.Contains(err.Error(), "waveform.emane.pcr: want a file of EMANE's 802.11 model") {
		t.Errorf("refused as %v", err)
	}
}

func TestCommEffectsArePublishedForEachLinkAndAgainForLaterProcesses(t *testing.T) {
	f, err := NewFeed(commEffect(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _, err := f.Changes(0)
	if err != nil || len(first) != 2 || first[0].ID != CommEffectEvent || first[0].NEM != 1 {
		t.Fatalf("%v, %v: want two events of comm effects", first, err)
	}
	// NEM 2; 0.1 s, 0.01 s, 12.5 %, 1 % as float32; 9600 bit/s twice.
	want := "\x0a\x1c\x08\x02\x15\xcd\xcc\xcc\x3d\x1d\x0a\xd7\x23\x3c\x25\x00\x00\x48\x41\x2d\x00\x00\x80\x3f\x30\x80\x4b\x38\x80\x4b"
	if string(first[0].Data) != want {
		t.Errorf("the event is %x, want %x", first[0].Data, want)
	}
	if later, _, _, _ := f.Changes(time.Second); len(later) > 0 {
		t.Errorf("%v later, want none", later)
	}
	if all := f.All(); len(all) != 2 {
		t.Errorf("all are %v, want two", all)
	}
}

func TestCommEffectsOfTheScenarioHoldFromTheirTimeOn(t *testing.T) {
	spec := commEffect()
	spec.CommEffects = true
	b := scenario.NewBuilder(scenario.Options{})
	if err := b.CommEffect(time.Second, 1, 2, scenario.CommEffect{Latency: 250 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	f, err := NewFeed(spec, scenariotest.Open(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _, err := f.Changes(0); err != nil || len(first) != 2 {
		t.Fatalf("%v, %v: want the waveform's effect for both links", first, err)
	}
	// NEM 1; 0.25 s, else nothing.
	want := "\x0a\x1a\x08\x01\x15\x00\x00\x80\x3e\x1d\x00\x00\x00\x00\x25\x00\x00\x00\x00\x2d\x00\x00\x00\x00\x30\x00\x38\x00"
	if later, _, _, err := f.Changes(time.Second); err != nil || len(later) != 1 || later[0].NEM != 2 || string(later[0].Data) != want {
		t.Errorf("%+v, %v: want one event for NEM 2 with %x", later, err, want)
	}
}

func TestAModelWithoutAPhysicalLayerTakesNoSilence(t *testing.T) {
	off := true
	errs := CheckChange(&bypass().Waveform, nil, &v1alpha1.RadioChange{Silent: &off}, field.NewPath("change"))
	if len(errs) != 1 || errs[0].Field != "change.silent" {
		t.Errorf("found %v", errs)
	}
	if all := (&Radio{}).Parameters(&bypass().Waveform); len(all) > 0 {
		t.Errorf("parameters are %v, want none", all)
	}
}
