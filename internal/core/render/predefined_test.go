package render

import (
	"maps"
	"testing"
)

func TestTopicsWithoutAConnectionHaveTheSameIDsAtPublishersAndGateways(t *testing.T) {
	sites := MakeSites(inputOf(t, `[{name: a, mosquitto: {}}, {name: g, mqttsnGateway: {to: a}},
		{name: bare, publisher: {protocol: mqtt-sn, qos: -1, to: hq/g, topic: "/{country}/{entity}"}, instances: 2},
		{name: short, publisher: {protocol: mqtt-sn, qos: -1, to: hq/g, topic: ab}},
		{name: zero, publisher: {protocol: mqtt-sn, qos: 0, to: hq/g, topic: zero}}]`,
		`[{name: hq, networks: [lan], apps: [a, g]}, {name: veh, networks: [lan], apps: [bare, short, zero]}, {name: alt, networks: [lan], apps: [g, bare]}]`))
	all := map[string]uint16{"/ALT/ALT-S001": 1, "/ALT/ALT-S002": 2, "/VEH/VEH-S001": 3, "/VEH/VEH-S002": 4}
	for name, want := range map[string]map[string]uint16{
		"hq/a": nil, "hq/g": all, "alt/g": all,
		"veh/bare": {"/VEH/VEH-S001": 3, "/VEH/VEH-S002": 4}, "alt/bare": {"/ALT/ALT-S001": 1, "/ALT/ALT-S002": 2}, "veh/short": nil, "veh/zero": nil,
	} {
		found := false
		for _, node := range sites {
			for _, site := range node {
				if site.Node+"/"+site.App.Name != name {
					continue
				}
				found = true
				if !maps.Equal(site.PredefinedTopics, want) {
					t.Errorf("%s has %v; want %v", name, site.PredefinedTopics, want)
				}
			}
		}
		if !found {
			t.Errorf("there is no %s", name)
		}
	}
}
