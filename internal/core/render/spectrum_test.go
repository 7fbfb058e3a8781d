package render

import (
	"strings"
	"testing"

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

func TestASpectrumOfOneNetworkOrOfOthersThanRadiosIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"two radios": {"", "", ""},
		"a link": {"- name: lan\n", "- name: lan\n    spectrum: low\n",
			"spec.networks[2].spectrum: Forbidden: is for radio models, and network lan has the model link"},
		"alone": {"- name: relay\n    spectrum: low", "- name: relay",
			`spec.networks[0].spectrum: Invalid value: "low": no other network has this spectrum: two or more share one`},
		"another pathloss": {"{pathloss: FreeSpace, ", "{pathloss: TwoRay, ",
			`spec.networks[1].spectrum: Invalid value: "low": its networks need one pathloss: network relay has TwoRay, one before it FreeSpace`},
		"EMANE": {"    spectrum: low\n    tdma", "    engine: emane\n    spectrum: low\n    tdma",
			"spec.networks[1].spectrum: Forbidden: is for engine native, and network relay has engine emane"},
		"nobody counts": {"interference: OutOfBand, rate: 175kbit}\n    subnet: 198.18.1.0/24\n  - name: relay\n    spectrum: low\n    tdma: {",
			"rate: 175kbit}\n    subnet: 198.18.1.0/24\n  - name: relay\n    spectrum: low\n    tdma: {interference: None, ",
			`spec.networks[0].spectrum: Invalid value: "low": none of its networks counts interference: one needs a waveform with interference OutOfBand or All`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(crowded, c.from, c.to, 1)
			in := companyOf(t, text)
			errs := checkSpectra(&in.Experiment.Spec, in.Topology, WaveformsOf(&in.Experiment.Spec, map[string]v1alpha1.WaveformSpec{}))
			switch {
			case c.want == "" && len(errs) > 0:
				t.Error(errs.ToAggregate())
			case c.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want)):
				t.Errorf("%v; want %s", errs.ToAggregate(), c.want)
			}
		})
	}
}
