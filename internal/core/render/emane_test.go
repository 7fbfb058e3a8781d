package render

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func emaneNetwork() *v1alpha1.RadioNetwork {
	n := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Name: "1234-vhf", Namespace: "vignette-system", UID: "5678", Labels: map[string]string{"a": "b"}}}
	n.Spec.Waveform.RFPipe = &v1alpha1.RFPipeModel{Rate: "175kbit", PHY: v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "250kHz"}}
	power := v1alpha1.Power("50W")
	n.Spec.Radios = []v1alpha1.Radio{{Nodes: []string{"hq"}, TransmitPower: &power}}
	n.Spec.Members = []v1alpha1.Member{{Node: "veh-1", NEM: 2, Address: "198.18.1.2/24"}, {Node: "hq", NEM: 1, Address: "198.18.1.1/24"}, {Node: "veh-2", NEM: 3, Address: "198.18.1.3/24"}}
	return n
}

func TestTheEMANEPodOfAHostMatchesItsGoldenFile(t *testing.T) {
	n := emaneNetwork()
	pod, files, err := EMANEPod(n, "host-a", n.Spec.Members, nil, Options{EMANEImage: "r/emane:1", EMANEAnnotations: map[string]string{"mesh": "none"}, PullPolicy: corev1.PullIfNotPresent, PullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}})
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "emane", pod, files)
}

func TestOnlyModelsWithTimeSlotsHaveRealTimePriority(t *testing.T) {
	pipe, bypass, library, slots := emaneNetwork(), emaneNetwork(), emaneNetwork(), emaneNetwork()
	bypass.Spec.Waveform = v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANEBypass}}
	library.Spec.Waveform = v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: "mymaclayer", PHY: &v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "250kHz"}}}
	slots.Spec.Waveform = v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{PHY: v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "250kHz"},
		Structure: v1alpha1.TDMAStructure{Frames: 2, SlotDuration: "5ms", SlotOverhead: "3us"}, Rate: "1Mbit"}}
	for what, c := range map[string]struct {
		network *v1alpha1.RadioNetwork
		want    bool
	}{"rfpipe": {pipe, false}, "bypass": {bypass, false}, "another library": {library, true}, "tdma": {slots, true}} {
		pod, _, err := EMANEPod(c.network, "host-a", c.network.Spec.Members[:1], nil, Options{})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		container := pod.Spec.Containers[0]
		has := slices.Contains(container.SecurityContext.Capabilities.Add, "SYS_NICE")
		if asks := slices.Contains(container.Env, corev1.EnvVar{Name: "EMANE_SLOTS", Value: "true"}); has != c.want || asks != c.want {
			t.Errorf("%s: right %v, asked for %v; want %v", what, has, asks, c.want)
		}
	}
}

func TestEveryNEMOfAnEMANEPodHasItsFilesAndAPortOfItsOwn(t *testing.T) {
	n := emaneNetwork()
	pod, files, err := EMANEPod(n, "host-a", n.Spec.Members, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, item := range pod.Spec.Volumes[0].ConfigMap.Items {
		if keys[item.Path] != "" {
			t.Errorf("%s twice", item.Path)
		}
		keys[item.Path] = item.Key
	}
	for path, text := range map[string]string{"1/platform.xml": "127.0.0.1:47000", "2/platform.xml": "127.0.0.1:47001", "3/platform.xml": "nem3",
		"1/phy.xml": `"txpower" value="46.98`, "2/phy.xml": `"txpower" value="0"`, "3/mac.xml": "file:///etc/emane/pcr.xml", "pcr.xml": "<pcr>", "3/nem.xml": "<nem>"} {
		if !strings.Contains(files.Data[keys[path]], text) {
			t.Errorf("%s is\n%s\nwant %s in it", path, files.Data[keys[path]], text)
		}
	}
}

func TestPodsOfOneNetworkOnSeveralHostsHaveNamesOfTheirOwn(t *testing.T) {
	if a, b := EMANEPodName("n", "host-a"), EMANEPodName("n", "host-b"); a == b {
		t.Errorf("both are %s", a)
	}
}

func TestAnEMANEPodWaitsForItsRadiosAndNamesAMissingOne(t *testing.T) {
	command := exec.Command("bash", "-c", emaneScript, "emane", "65534")
	command.Env = append(os.Environ(), "EMANE_PATIENCE_SECONDS=1")
	said, err := command.CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != 2 || !strings.Contains(string(said), "no radio nem65534 after 1 s") {
		t.Errorf("%v: %s; want exit status 2, and the radio named", err, said)
	}
}

func TestMoreFilesThanFitAConfigMapAreRefusedWithNumbers(t *testing.T) {
	path := field.NewPath("spec", "networks").Index(0).Child("engine")
	errs := checkEMANEFiles(emaneNetwork(), path, 0, 4000)
	if len(errs) != 1 || errs[0].Field != path.String() || !strings.Contains(errs[0].Detail, "files of 3 nodes have ") || !strings.Contains(errs[0].Detail, "room for 4000: attach fewer nodes") {
		t.Errorf("room for 4000 bytes: %v", errs)
	}
	if errs := checkEMANEFiles(emaneNetwork(), path, 0, emaneFilesLimit); len(errs) > 0 {
		t.Errorf("a ConfigMap: %v", errs)
	}
}

// scheduleOf frames of one slot for NEM id 1.
func scheduleOf(frames int) string {
	return fmt.Sprintf(`<emane-tdma-schedule><structure frames="%d" slots="1" slotoverhead="0" slotduration="1000" bandwidth="1000000"/>
<multiframe frequency="300M" power="0" class="0" datarate="1M"><frame index="0:%d"><slot index="0" nodes="1"/></frame></multiframe></emane-tdma-schedule>`, frames, frames-1)
}

func TestAScheduleThatNoEventHoldsIsRefusedAtOnce(t *testing.T) {
	n := v1alpha1.Network{Name: "vhf", Subnet: "198.18.1.0/24", Engine: v1alpha1.EngineEMANE, TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit", Schedule: scheduleOf(60000)}}
	spec := &v1alpha1.ExperimentSpec{Networks: []v1alpha1.Network{n}, Nodes: []v1alpha1.Node{{Name: "hq", Networks: []string{"vhf"}}}}
	expanded, errs := topology.Expand(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	c := &radioChecker{spec: spec, topology: expanded, reported: map[string]bool{}}
	w, _ := InPlace(n)
	found := c.checkEMANE(n, &w, field.NewPath("spec", "networks").Index(0))
	if len(found) != 1 || !strings.Contains(found[0].Error(), "waveform.tdma.schedule: Forbidden: 60000 frames of 1 slots are ") {
		t.Errorf("found %v", found)
	}
}

func TestChangesThatEMANEDoesNotSupportAreRefused(t *testing.T) {
	power, gain, frequency, rate, off := v1alpha1.Power("1W"), v1alpha1.Gain("3dBi"), v1alpha1.Frequency("310MHz"), v1alpha1.DataRate("500kbit"), false
	pipe := &v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "1Mbit"}}
	slots := &v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit"}}
	given := &v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{Schedule: scheduleOf(1)}}
	wifi := &v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANEWiFi, PHY: &v1alpha1.PHY{}}}
	bypass := &v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANEBypass}}
	for name, c := range map[string]struct {
		waveform *v1alpha1.WaveformSpec
		change   v1alpha1.RadioChange
		message  string // empty if it is supported
	}{
		"a jammer":               {pipe, v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "j"}}, "jammer: Forbidden: EMANE has no sources of noise"},
		"frequency":              {pipe, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Frequency: &frequency}}, "radio.frequency: Forbidden: EMANE takes it at its start only"},
		"antenna gain":           {slots, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{AntennaGain: &gain}}, ""},
		"power of slots":         {slots, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: &power}}, ""},
		"power of given slots":   {given, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: &power}}, "radio.transmitPower: Forbidden: the power of EMANE's TDMA is its schedule's"},
		"a schedule too long":    {slots, v1alpha1.RadioChange{Schedule: scheduleOf(60000)}, "schedule: Invalid value: \"\": 60000 frames of 1 slots are "},
		"a schedule":             {slots, v1alpha1.RadioChange{Schedule: scheduleOf(600)}, ""},
		"power of a pipe":        {pipe, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: &power}}, ""},
		"rate of a pipe":         {pipe, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: &rate}}, ""},
		"rate of slots":          {slots, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: &rate}}, ""},
		"radio silence":          {slots, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Transmit: &off}}, ""},
		"power of 802.11":        {wifi, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: &power}}, ""},
		"rate of 802.11":         {wifi, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: &rate}}, "radio.rate: Forbidden: is for rfpipe and tdma"},
		"power of bypass":        {bypass, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: &power}}, "radio: Forbidden: is for rfpipe and tdma"},
		"silence of bypass":      {bypass, v1alpha1.RadioChange{Silent: &off}, "silent: Forbidden: EMANE's model bypass"},
		"silence of the network": {pipe, v1alpha1.RadioChange{Silent: &off}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			model := NewChangeable(c.waveform, []int{1, 2})
			model.engine = v1alpha1.EngineEMANE
			errs := model.Change(c.change, field.NewPath("change"))
			if c.message == "" && len(errs) > 0 || c.message != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.message)) {
				t.Errorf("found %v, want %q", errs, c.message)
			}
		})
	}
}

// checkSettings of an experiment of two nodes on a network whose waveform has settings of EMANE's own.
func checkSettings(t *testing.T, engine v1alpha1.Engine, settings *v1alpha1.EMANESettings, base v1alpha1.WaveformSpec) field.ErrorList {
	t.Helper()
	base.EMANE = settings
	n := v1alpha1.Network{Name: "vhf", Subnet: "198.18.1.0/24", Waveform: "own", Engine: engine}
	spec := &v1alpha1.ExperimentSpec{Networks: []v1alpha1.Network{n}, Nodes: []v1alpha1.Node{{Name: "hq", Networks: []string{"vhf"}}, {Name: "veh", Networks: []string{"vhf"}}}}
	expanded, errs := topology.Expand(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return CheckRadioModels(spec, expanded, map[string]v1alpha1.WaveformSpec{"vhf": base}, nil)
}

func TestSettingsOfEMANEsOwnNeedItsEngine(t *testing.T) {
	bypass, pipe := &v1alpha1.EMANESettings{Model: v1alpha1.EMANEBypass}, v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "1Mbit"}}
	parameters := &v1alpha1.EMANESettings{Parameters: []v1alpha1.EMANEParameter{{Layer: "mac", Name: "radiometricenable", Values: []string{"on"}}}}
	for name, errs := range map[string]field.ErrorList{
		"a model":    checkSettings(t, v1alpha1.EngineNative, bypass, v1alpha1.WaveformSpec{}),
		"parameters": checkSettings(t, v1alpha1.EngineNative, parameters, pipe),
	} {
		if !strings.Contains(errs.ToAggregate().Error(), `spec.networks[0].engine: Invalid value: "native": waveform own has settings of EMANE's own: want engine emane`) {
			t.Errorf("%s: found %v", name, errs)
		}
	}
	if errs := checkSettings(t, v1alpha1.EngineEMANE, bypass, v1alpha1.WaveformSpec{}); len(errs) > 0 {
		t.Errorf("found %v with engine emane; want none, as bypass needs no positions", errs)
	}
}

func TestCommEffectsAreForEMANEsModelOfThem(t *testing.T) {
	n := v1alpha1.Network{Name: "vhf", Waveform: "own", CommEffects: true}
	for model, want := range map[string]int{v1alpha1.EMANECommEffect: 0, v1alpha1.EMANEBypass: 1} {
		w := &v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: model}}
		if errs := checkForLink(n, w, field.NewPath("network")); len(errs) != want {
			t.Errorf("%s: found %v", model, errs)
		}
	}
}

func TestAWaveformsParametersAreCheckedWithoutANetwork(t *testing.T) {
	w := &v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "1Mbit"},
		EMANE: &v1alpha1.EMANESettings{Parameters: []v1alpha1.EMANEParameter{{Layer: "mac", Name: "datarate", Values: []string{"1"}}}}}
	if errs := CheckWaveform(w); len(errs) != 1 || errs[0].Field != "spec.emane.parameters[0].name" {
		t.Errorf("found %v", errs)
	}
}
