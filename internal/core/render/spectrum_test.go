package render

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// crowded has two networks of one spectrum, and a link.
const crowded = `
metadata: {name: crowded, namespace: team-nor, uid: 11111111-2222-3333-4444-555555555555}
spec:
  duration: 60s
  networks:
  - name: vhf
    spectrum: low
    rfpipe: {phy: {frequency: 300MHz, bandwidth: 250kHz, pathloss: FreeSpace}, interference: OutOfBand, rate: 175kbit}
    subnet: 198.18.1.0/24
  - name: relay
    spectrum: low
    tdma: {phy: {pathloss: FreeSpace, bandwidth: 1MHz, frequency: 300MHz}, structure: {slotDuration: 5ms}, rate: 1Mbit}
    subnet: 198.18.2.0/24
  - name: lan
    link: {rate: 1Mbit}
    subnet: 198.18.3.0/24
  nodes:
  - {name: hq, position: {latitude: "58.1", longitude: "7.9"}, networks: [vhf, relay, lan]}
  - {name: veh, count: 3, position: {latitude: "58.1", longitude: "7.8"}, networks: [vhf, relay]}
  apps: [{name: hub, mosquitto: {}}]
`

func spectrumErrors(t *testing.T, text string) field.ErrorList {
	t.Helper()
	in := companyOf(t, text)
	return checkSpectra(&in.Experiment.Spec, in.Topology, WaveformsOf(&in.Experiment.Spec, nil), nil)
}

func TestASpectrumOfOneNetworkOrOfOthersThanRadiosIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"two radios": {"", "", ""},
		"a link": {"- name: lan\n", "- name: lan\n    spectrum: low\n",
			"spec.networks[2].spectrum: Forbidden: is for radio models, and network lan has the model link"},
		"alone": {"- name: relay\n    spectrum: low", "- name: relay",
			`spec.networks[0].spectrum: Invalid value: "low": no other network has this spectrum: two or more share one`},
		"another pathloss": {"{pathloss: FreeSpace, ", "{pathloss: TwoRay, ",
			`spec.networks[1].spectrum: Invalid value: "low": its networks need one pathloss: network relay has TwoRay, one before it FreeSpace`},
		"another engine": {"    spectrum: low\n    tdma", "    engine: emane\n    spectrum: low\n    tdma",
			`spec.networks[1].spectrum: Invalid value: "low": its networks need one engine: network relay has emane, one before it native`},
		"nobody counts": {"interference: OutOfBand, rate: 175kbit}\n    subnet: 198.18.1.0/24\n  - name: relay\n    spectrum: low\n    tdma: {",
			"rate: 175kbit}\n    subnet: 198.18.1.0/24\n  - name: relay\n    spectrum: low\n    tdma: {interference: None, ",
			`spec.networks[0].spectrum: Invalid value: "low": none of its networks counts interference: one needs a waveform with interference OutOfBand or All`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(crowded, c.from, c.to, 1)
			errs := spectrumErrors(t, text)
			switch {
			case c.want == "" && len(errs) > 0:
				t.Error(errs.ToAggregate())
			case c.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want)):
				t.Errorf("%v; want %s", errs.ToAggregate(), c.want)
			}
		})
	}
}

func TestEMANEsNetworksOfASpectrumNeedSubidsAndNodesOfTheirOwn(t *testing.T) {
	emane := strings.ReplaceAll(crowded, "    spectrum: low\n", "    engine: emane\n    spectrum: low\n")
	apart := strings.Replace(strings.Replace(emane, "frequency: 300MHz, bandwidth: 250kHz", "subid: 7, frequency: 300MHz, bandwidth: 250kHz", 1), "networks: [vhf, relay, lan]", "networks: [vhf, lan]", 1)
	for text, want := range map[string]string{
		emane: `EMANE tells its networks apart by phy.subid, and networks vhf and relay both have 1`,
		apart: `with EMANE a node is in one of its networks, and veh-1 is in vhf and relay: want engine native, or two nodes`,
		strings.Replace(apart, "networks: [vhf, relay]", "networks: [relay]", 1): "",
	} {
		errs := spectrumErrors(t, text)
		if want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), want)) {
			t.Errorf("%v; want %q", errs.ToAggregate(), want)
		}
	}
}

func TestEMANEsNetworksOfASpectrumHaveTheSameSpectralMasks(t *testing.T) {
	text := strings.ReplaceAll(crowded, "    spectrum: low\n", "    engine: emane\n    spectrum: low\n")
	text = strings.Replace(text, "networks: [vhf, relay, lan]", "networks: [vhf, lan]", 1)
	text = strings.Replace(text, "networks: [vhf, relay]", "networks: [relay]", 1)
	text = strings.Replace(text, "frequency: 300MHz, bandwidth: 250kHz", "subid: 7, frequency: 300MHz, bandwidth: 250kHz", 1)
	in := companyOf(t, text)
	for masks, want := range map[string]string{"<a/>": "", "<b/>": "network relay needs the emane.spectralMasks of the networks before it"} {
		known := WaveformsOf(&in.Experiment.Spec, nil)
		for name, text := range map[string]string{"vhf": "<a/>", "relay": masks} {
			w := known[name]
			w.EMANE = &v1alpha1.EMANESettings{SpectralMasks: text}
			known[name] = w
		}
		errs := checkSpectra(&in.Experiment.Spec, in.Topology, known, nil)
		if want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), want)) {
			t.Errorf("%s: %v; want %q", masks, errs.ToAggregate(), want)
		}
	}
}
