package render

import (
	"strings"
	"testing"
)

func TestANodeWithoutASlotThatSendsHasAWarning(t *testing.T) {
	const company = `
metadata: {name: noslot}
spec:
  duration: 20s
  networks:
  - {name: vhf, subnet: 198.18.1.0/24, tdma: {phy: {frequency: 300MHz, pathloss: FreeSpace}, schedule: '<emane-tdma-schedule><structure frames="1" slots="2" slotoverhead="0" slotduration="5000" bandwidth="1M"/><multiframe frequency="300M" power="30" class="0" datarate="1M"><frame index="0"><slot index="0" nodes="1"/></frame></multiframe></emane-tdma-schedule>'}}
  - {name: lan, subnet: 198.18.2.0/24, link: {}}
  apps:
  - {name: picture, subscriber: {protocol: mqtt-udp}}
  - {name: bft, publisher: {protocol: mqtt-udp, payload: geojson, period: 1s}}
  - {name: rest, messaging: {transport: coap, push: {to: all, period: 1s}}}
  - {name: raw, mgen: {script: "0.0 LISTEN UDP 5000"}}
  nodes:
  - {name: hq, networks: [vhf], apps: [picture, bft, rest]}
  - {name: veh, count: 2, networks: [vhf], apps: [bft]}
`
	const later = `
  timeline:
  - {at: 5s, set: [{network: vhf, schedule: '<emane-tdma-schedule><structure frames="1" slots="2" slotoverhead="0" slotduration="5000" bandwidth="1M"/><multiframe frequency="300M" power="30" class="0" datarate="1M"><frame index="0"><slot index="1" nodes="NEMS"/></frame></multiframe></emane-tdma-schedule>'}]}
`
	const warning = `spec.networks[0].tdma.schedule: Invalid value: "": network vhf has no slot to send in for veh-1 (NEM id 2)`
	for name, c := range map[string]struct {
		edits []string
		want  string
	}{
		"two publishers":             {want: warning + ", veh-2 (NEM id 3): what app bft sends is lost. Want slots with these NEM ids"},
		"one that gets a slot later": {[]string{"apps: [bft]}\n", "apps: [bft]}" + strings.ReplaceAll(later, "NEMS", "2")}, "for veh-2 (NEM id 3): what app bft"},
		"two that get slots later":   {[]string{"apps: [bft]}\n", "apps: [bft]}" + strings.ReplaceAll(later, "NEMS", "2,3")}, ""},
		"nodes that only receive":    {[]string{"apps: [bft]}\n", "apps: [picture, raw]}\n"}, ""},
		"nodes with routing": {[]string{"apps: [bft]}\n", "apps: [picture]}\n", "198.18.1.0/24,", "198.18.1.0/24, routing: {protocol: olsrv2},"},
			warning + ", veh-2 (NEM id 3): what routing sends is lost"},
		"nodes with a service":             {[]string{"apps: [bft]}\n", "apps: [rest]}\n"}, "what app rest sends is lost"},
		"a flow":                           {[]string{"apps: [bft]}\n", "apps: [raw]}\n", "0.0 LISTEN UDP 5000", "0.0 ON 1 UDP DST hq/5000 PERIODIC [1 100]"}, "what app raw sends is lost"},
		"broadcasts on another network":    {[]string{"count: 2, networks: [vhf]", "count: 2, networks: [lan, vhf]"}, ""},
		"broadcasts on the second network": {[]string{"count: 2, networks: [vhf]", "count: 2, networks: [lan, vhf]", "payload: geojson", "network: vhf"}, warning},
		"a slot for each":                  {[]string{`nodes="1"`, `nodes="1-3"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := companyOf(t, strings.NewReplacer(c.edits...).Replace(company))
			wantSaid(t, name, muteWarnings(in, WaveformsOf(&in.Experiment.Spec, nil)), c.want)
			if c.want == "" {
				return
			}
			wantSaid(t, name, SpecWarnings(in, WaveformsOf(&in.Experiment.Spec, nil), nil), c.want)
		})
	}
}
