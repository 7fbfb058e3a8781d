package main

import (
	"fmt"
	"slices"
	"strings"
)

// setup is what an experiment of a further study is made of. Its lists are as written in the file.
type setup struct {
	form
	terrain
	name string
	// Networks of an experiment without the company's radio.
	Networks []string
	// Radio is the company's, indented.
	Radio           string
	Apps, Vehicles  []string
	started, events []string
	// lead in seconds from the start of publishers to their first messages, which come for so many seconds.
	lead, publishing int
	Drain            string
	// Scenario stands before an experiment without the company's radio, and Grid is its name.
	Scenario, Grid string
}

func (p setup) path() string { return "further/" + p.name + p.suffix() }

// Name returns the experiment's name.
func (p setup) Name() string { return p.name + p.suffix() }

// starts is when publishers start, in seconds after T0.
const starts = 30

func (p setup) stop() int { return starts + p.lead + p.publishing }

// Duration returns the duration in seconds.
func (p setup) Duration() int { return p.stop() + 5 }

// Timeline returns the entries as written in the file.
func (p setup) Timeline() []string {
	names := strings.Join(p.started, ", ")
	all := append([]string{fmt.Sprintf("{at: %ds, start: [%s]}", starts, names)}, p.events...)
	return append(all, fmt.Sprintf("{at: %ds, stop: [%s]}", p.stop(), names))
}

// Captured returns the names of the captured networks.
func (p setup) Captured() string {
	var names []string
	for _, network := range p.Networks {
		name, _, _ := strings.Cut(strings.TrimPrefix(network, "{name: "), ",")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func (p setup) text() string {
	if p.Radio != "" {
		return execute("further-company.yaml", p)
	}
	return execute("further-nets.yaml", p)
}

// study is one that authors of the published ones wanted next: a campaign, and what its experiments are made of.
type study struct {
	campaign
	setup
}

func furtherStudies() (all []study) {
	for _, f := range []form{{false}, {true}} {
		all = append(all, olsrRates(f), routingProtocols(f), brokerPlacement(f), redundantBrokers(f), brokerStructures(f), crossLayer(f), besideTracking(f), notification(f),
			tlsOverhead(f), waveforms(f), sharedChannel(f), repeatedMessages(f))
	}
	for i := range all {
		s := &all[i]
		s.campaign.Study, s.campaign.Name, s.campaign.file, s.template = "further", s.setup.Name(), s.setup.Name(), s.setup.path()
		s.campaign.Points = 1
		for _, a := range s.Axes {
			s.campaign.Points *= len(a.Levels)
		}
	}
	return all
}

// vehiclesOf lists nodes n1 to n24 in four groups of six, with their apps.
func vehiclesOf(apps func(number int) string) (all []string) {
	for i := 1; i <= 24; i++ {
		all = append(all, vehicle(i, fmt.Sprintf("p%d", (i+5)/6), "radio", apps(i)))
	}
	return all
}

func vehicle(number int, group, network, apps string) string {
	return fmt.Sprintf(`{name: n%d, group: %s, platform: "%[1]d", networks: [%[3]s], apps: [%s]}`, number, group, network, apps)
}

// overModified is E2's company over the modified terrain: a broker and a subscriber on n1, and 23 publishers.
func overModified(f form, name string) setup { return company24(f, name, terrain{true}) }

// overAnglova is the same over Anglova, mostly one hop. It is for what chains would hide by their losses.
func overAnglova(f form, name string) setup { return company24(f, name, terrain{}) }

func company24(f form, name string, over terrain) setup {
	return setup{form: f, terrain: over, name: name, Radio: company{form: f, messaging: messagingOf("mosquitto"), terrain: over, Study: "e2"}.Radio(),
		Apps: []string{"{name: broker, mosquitto: {}}",
			`{name: picture, subscriber: {protocol: mqtt, to: broker, topics: ["#"]}}`,
			"{name: bft, publisher: {protocol: mqtt, to: broker, payload: nffi, period: 10s, lead: 30s}}"},
		Vehicles: vehiclesOf(func(number int) string {
			return choose(number == 1, "broker, picture", "bft")
		}),
		started: []string{"bft"}, lead: 30, publishing: choose(f.Short, 60, 1200), Drain: choose(f.Short, "{max: 30s, quietFor: 10s}", "{max: 120s, quietFor: 30s}")}
}

// olsrRates varies how often OLSR sends. Messages hold for ten intervals, as published.
func olsrRates(f form) study {
	seconds := choose(f.Short, []int{1, 8}, []int{1, 2, 4, 8})
	levels := func(interval, validity string) (all []level) {
		for _, s := range seconds {
			all = append(all, level{fmt.Sprintf("%ds", s), []string{set("networks[radio].routing."+interval, fmt.Sprintf("%ds", s)), set("networks[radio].routing."+validity, fmt.Sprintf("%ds", 10*s))}})
		}
		return all
	}
	return study{campaign{Title: "How often should OLSRv2 send HELLO and TC where a company moves in chains?",
		Axes: []axis{{"hello", levels("hello", "helloValidity")}, {"tc", levels("tc", "tcValidity")}}}, overModified(f, "olsr-rates")}
}

// routingProtocols compares OLSR with Babel, with a plan of relays, and with none.
func routingProtocols(f form) study {
	routing := func(name, value string) level {
		return level{name, []string{set("networks[radio].routing", value)}}
	}
	axes := []axis{{"routing", []level{{Name: "olsrv2"},
		routing("olsrv1", "{protocol: olsrv1, hello: 2s, helloValidity: 20s, tc: 8s, tcValidity: 80s}"),
		routing("babel", "{protocol: babel, hello: 2s}"),
		routing("static", "{protocol: static, routes: ["+strings.Join(relays(), ", ")+"]}"),
		routing("none", "{protocol: none}")}}}
	s := study{campaign{Title: "What does a company that moves gain by OLSR, Babel, or a plan of relays made beforehand?"}, overModified(f, "routing")}
	if !f.Short {
		s.otherScenarios = []string{company{form: form{}, messaging: messagingOf("mosquitto"), Study: "e2"}.path()}
		axes = append(axes, axis{"terrain", []level{{Name: "modified"}, {"anglova", []string{set("scenario.ref", "anglova-like"), set("networks[radio].tdma.phy.transmitPower", "40dBm")}}}})
	}
	s.Axes = axes
	return s
}

// relays is a plan for a chain in the order of its nodes' numbers. The four nodes from 4k on are a block, whose first is its relay. A node
// reaches its own block and those beside it directly, and others over the relay of the block beside it.
func relays() (all []string) {
	const size, blocks = 4, 7
	for from := range blocks {
		var nodes []string
		for number := max(1, from*size); number < (from+1)*size && number <= 24; number++ {
			nodes = append(nodes, fmt.Sprintf("n%d", number))
		}
		for to := range blocks {
			via := from + choose(to > from, 1, -1)
			if to-from >= -1 && to-from <= 1 {
				continue
			}
			all = append(all, fmt.Sprintf("{nodes: [%s], to: 198.18.34.%d/30, via: n%d}", strings.Join(nodes, ", "), to*size, max(1, via*size)))
		}
	}
	return all
}

// brokerPlacement moves the broker through the company.
func brokerPlacement(f form) study {
	places := axis{Name: "place"}
	for i := 1; i <= 24; i++ {
		if f.Short && !slices.Contains([]int{1, 8, 16, 24}, i) {
			continue
		}
		l := level{Name: fmt.Sprintf("n%d", i)}
		if i > 1 {
			l.Set = []string{set("nodes[n1].apps", "[picture]"), set(fmt.Sprintf("nodes[n%d].apps", i), "[broker, bft]")}
		}
		places.Levels = append(places.Levels, l)
	}
	return study{campaign{Title: "On which vehicle of a company should its broker be?", Axes: []axis{places}}, overModified(f, "placement")}
}

// redundantBrokers ends the main broker, or its radio, in the middle.
func redundantBrokers(f form) study {
	p := overAnglova(f, "redundant")
	p.Apps = []string{"{name: main, mosquitto: {}}", "{name: standby, mosquitto: {}}",
		`{name: picture, subscriber: {protocol: mqtt, to: main, failover: [standby], qos: 1, topics: ["#"]}}`,
		"{name: bft, publisher: {protocol: mqtt, to: main, failover: [standby], qos: 1, payload: nffi, period: 10s, lead: 30s}}"}
	p.Vehicles = vehiclesOf(func(number int) string {
		switch number {
		case 1:
			return "main"
		case 2:
			return "picture"
		case 12:
			return "standby, bft"
		default:
			return "bft"
		}
	})
	p.publishing = choose(f.Short, 120, 1200)
	at := starts + p.lead + p.publishing/2
	p.events = []string{fmt.Sprintf("{at: %ds, stop: [main]}", at)}
	return study{campaign{Title: "The main broker ends, or its radio falls silent, in the middle: what does a standby save?", Axes: []axis{
		{"standby", []level{{Name: "cold"}, {"bridged", []string{set("apps[standby].mosquitto.bridges", `[{to: main, session: Persistent, topics: [{filter: "#", qos: 1}]}]`)}},
			{"none", []string{set("apps[standby]"), set("nodes[n12].apps", "[bft]"), set("apps[picture].subscriber.failover"), set("apps[bft].publisher.failover")}}}},
		{"loss", []level{{Name: "broker"}, {"radio", []string{set("timeline[1]", fmt.Sprintf("{at: %ds, set: [{network: radio, from: n1, radio: {transmit: false}}]}", at))}}}}}}, p}
}

// brokerStructures has a broker in each platoon, joined in several ways.
func brokerStructures(f form) study {
	p := overModified(f, "brokers")
	p.Apps, p.started = nil, nil
	for k := 1; k <= 4; k++ {
		p.Apps = append(p.Apps, fmt.Sprintf("{name: broker-%d, mosquitto: {}}", k), fmt.Sprintf(`{name: picture-%d, subscriber: {protocol: mqtt, to: broker-%[1]d, topics: ["#"]}}`, k),
			fmt.Sprintf("{name: bft-%d, publisher: {protocol: mqtt, to: broker-%[1]d, payload: nffi, period: 10s, lead: 30s}}", k))
		p.started = append(p.started, fmt.Sprintf("bft-%d", k))
	}
	p.Vehicles = vehiclesOf(func(number int) string {
		k := (number + 5) / 6
		return choose(number%6 == 1, fmt.Sprintf("broker-%d, picture-%[1]d", k), fmt.Sprintf("bft-%d", k))
	})
	everybody := func(broker string) (settings []string) {
		for k := 1; k <= 4; k++ {
			settings = append(settings, set(fmt.Sprintf("apps[bft-%d].publisher.to", k), broker), set(fmt.Sprintf("apps[picture-%d].subscriber.to", k), broker))
		}
		return settings
	}
	central, hierarchical, mesh := everybody("broker-1"), []string{}, []string{}
	for k := 1; k <= 4; k++ {
		bridges := []string{}
		for other := k + 1; other <= 4; other++ {
			bridges = append(bridges, fmt.Sprintf("{to: broker-%d, topics: [{filter: /P%d/#, direction: out}, {filter: /P%[1]d/#, direction: in}]}", other, k))
		}
		if k < 4 {
			mesh = append(mesh, set(fmt.Sprintf("apps[broker-%d].mosquitto.bridges", k), "["+strings.Join(bridges, ", ")+"]"))
		}
		if k > 1 {
			central = append(central, set(fmt.Sprintf("apps[broker-%d]", k)), set(fmt.Sprintf("nodes[n%d].apps", 6*k-5), fmt.Sprintf("[picture-%d]", k)))
			hierarchical = append(hierarchical, set(fmt.Sprintf("apps[broker-%d].mosquitto.bridges", k), "[{to: broker-1}]"))
		}
	}
	return study{campaign{Title: "One broker for a company, or one for each platoon: apart, below one, or each with each?",
		Axes: []axis{{"structure", []level{{"central", central}, {Name: "segmented"}, {"hierarchical", hierarchical}, {"mesh", mesh}}}}}, p}
}

// crossLayer lets publishers follow their radios' queues.
func crossLayer(f form) study {
	periods := axis{Name: "period"}
	for _, s := range choose(f.Short, []int{10, 2}, []int{10, 5, 2}) {
		periods.Levels = append(periods.Levels, level{fmt.Sprintf("%ds", s), []string{set("apps[bft].publisher.period", fmt.Sprintf("%ds", s))}})
	}
	return study{campaign{Title: "Do publishers that follow the queues of their radios deliver more, and sooner, than at a fixed rate?",
		Axes: []axis{periods, {"rate", []level{{Name: "fixed"}, {"adaptive", []string{set("apps[bft].publisher.adaptRate", "{highFrames: 8, lowFrames: 2, maxPeriod: 40s}")}}}}}},
		overModified(f, "cross-layer")}
}

// besideTracking adds imagery or a video to Blue Force Tracking.
func besideTracking(f form) study {
	p := overAnglova(f, "imagery")
	p.Apps[1] = `{name: picture, subscriber: {protocol: mqtt, to: broker, topics: ["/+/+/+/location"]}}`
	p.Apps = append(p.Apps, `{name: viewer, subscriber: {protocol: mqtt, to: broker, topics: ["imagery/#"]}}`,
		fmt.Sprintf(`{name: camera, publisher: {protocol: mqtt, to: broker, topic: "imagery/{node}", payload: "image:%d", period: %ds, lead: 30s}}`, choose(f.Short, 20_000, 50_000), choose(f.Short, 30, 60)))
	p.Vehicles = vehiclesOf(func(number int) string {
		switch number {
		case 1:
			return "broker, picture, viewer"
		case 13:
			return "bft, camera"
		default:
			return "bft"
		}
	})
	p.Vehicles[12] = vehicle(13, "camera", "radio", "bft, camera") // a group of its own in results
	p.started = []string{"bft", "camera"}
	video := []string{
		set("apps[camera]", fmt.Sprintf(`{mgen: {script: "30.0 ON 1 UDP DST n1/5000 PERIODIC [10 400]\n%d.0 OFF 1"}}`, 30+p.publishing)),
		set("apps[viewer]", `{mgen: {script: "0.0 LISTEN UDP 5000"}}`)}
	none := []string{set("apps[camera]"), set("apps[viewer]"), set("nodes[n13].apps", "[bft]"), set("nodes[n1].apps", "[broker, picture]"), set("timeline[0].start", "[bft]"),
		set(fmt.Sprintf("timeline[%d].stop", 1), "[bft]")}
	return study{campaign{Title: "What do an image a minute, or a video of 32 kbit/s, from one vehicle do to everybody's positions?",
		Axes: []axis{{"beside", []level{{Name: "imagery"}, {"video", video}, {"none", none}}}}}, p}
}

// notification compares WS-Notification by a broker with notification from each vehicle to the subscriber. There every vehicle
// is a notification producer of its own: a broker of its own messages alone.
func notification(f form) study {
	const producers = 12
	p := overAnglova(f, "wsn-direct")
	p.Apps = []string{"{name: producer, wsnBroker: {}}", "{name: bft, publisher: {protocol: ws-notification, to: producer, payload: nffi, period: 10s, lead: 30s}}"}
	var pictures []string
	brokered := []string{set("apps[picture-2].subscriber.to", "n1/producer"), set("nodes[n1].apps", "[producer, picture-2]")}
	for i := 2; i <= producers+1; i++ {
		name := fmt.Sprintf("picture-%d", i)
		pictures = append(pictures, name)
		p.Apps = append(p.Apps, fmt.Sprintf(`{name: %s, subscriber: {protocol: ws-notification, to: n%d/producer, topics: ["#"]}}`, name, i))
		brokered = append(brokered, set(fmt.Sprintf("nodes[n%d].apps", i), "[bft]"))
		if i > 2 {
			brokered = append(brokered, set("apps["+name+"]"))
		}
	}
	p.Vehicles = vehiclesOf(func(number int) string {
		switch {
		case number == 1:
			return strings.Join(pictures, ", ")
		case number <= producers+1:
			return "producer, bft"
		default:
			return ""
		}
	})
	return study{campaign{Title: "WS-Notification without a broker: does it pay that vehicles notify the subscriber themselves?",
		Axes: []axis{{"way", []level{{Name: "direct"}, {"brokered", brokered}}}}}, p}
}

// tlsOverhead has nine publishers and subscribers in pairs over one link, as E8 has.
func tlsOverhead(f form) study {
	p := setup{form: f, name: "tls", Networks: []string{"{name: link, waveform: tactical-broadband, subnet: 198.18.34.0/24}"},
		Apps: []string{"{name: broker, mosquitto: {}}",
			`{name: pubs, instances: 9, publisher: {protocol: mqtt, to: broker, topic: "tls/{instance}/data", payload: gps, period: 5s, lead: 30s}}`,
			`{name: subs, instances: 9, subscriber: {protocol: mqtt, to: broker, topics: ["tls/{instance}/data"]}}`},
		Vehicles: []string{"{name: client, networks: [link], apps: [pubs, subs]}", "{name: server, networks: [link], apps: [broker]}"},
		started:  []string{"subs", "pubs"}, lead: 30, publishing: choose(f.Short, 40, 600), Drain: "{max: 30s, quietFor: 10s}"}
	ways := axis{Name: "messaging"}
	for _, w := range []struct {
		name, protocol, broker string
		most                   int
	}{{"mqtt", "mqtt", "", 2}, {"amqp", "amqp", "{rabbitmq: {}}", 1}, {"stomp", "stomp", "{rabbitmq: {}}", 1}, {"wsn", "ws-notification", "{wsnBroker: {}}", 1}, {"xmpp", "xmpp", "{prosody: {}}", 0}} {
		for qos := range w.most + 1 {
			if f.Short && (w.name == "stomp" || qos == 2) {
				continue
			}
			ways.Levels = append(ways.Levels, level{fmt.Sprintf("%s-qos%d", w.name, qos), tlsWay(w.protocol, w.broker, qos)})
		}
	}
	return study{campaign{Title: "How much does TLS cost, by protocol and QoS?",
		Axes: []axis{ways, {"security", []level{{Name: "none"}, {"tls", []string{set("apps[broker].security", "{tls: true}")}}}}}}, p}
}

func tlsWay(protocol, broker string, qos int) (settings []string) {
	if broker != "" {
		settings = append(settings, set("apps[broker]", broker), set("apps[pubs].publisher.protocol", protocol), set("apps[subs].subscriber.protocol", protocol))
	}
	if qos > 0 {
		settings = append(settings, set("apps[pubs].publisher.qos", fmt.Sprint(qos)), set("apps[subs].subscriber.qos", fmt.Sprint(qos)))
	}
	return settings
}

// grid returns a scenario of nodes in a grid.
func grid(name string, count, metres int, frequency, exponent string) string {
	return execute("grid.yaml", map[string]any{"Grid": name, "Count": count, "Metres": metres, "Frequency": frequency, "Exponent": exponent})
}

// waveforms has nine nodes, 1 km apart, on waveforms of other worlds.
func waveforms(f form) study {
	p := setup{form: f, name: "waveforms", Grid: "grid-9", Scenario: grid("grid-9", 9, 1000, "868.1MHz", "3.5"),
		Networks: []string{"{name: net, waveform: lora-sf7, subnet: 198.18.34.0/24, mtu: 222}"},
		Apps: []string{"{name: bft, publisher: {protocol: mqtt-udp, network: net, payload: gps, period: 60s}}",
			`{name: picture, subscriber: {protocol: mqtt-udp, network: net, topics: ["#"]}}`},
		started: []string{"bft"}, publishing: choose(f.Short, 120, 3600), Drain: choose(f.Short, "{max: 60s, quietFor: 30s}", "{max: 20m, quietFor: 10m}")}
	for i := 1; i <= 9; i++ {
		p.Vehicles = append(p.Vehicles, vehicle(i, choose(i == 5, "base", "others"), "net", "bft, picture"))
	}
	names := axis{Name: "waveform"}
	for _, name := range []string{"lora-sf7", "lora-sf9", "lora-sf12", "hf", "nbwf", "lte"} {
		settings := []string{set("networks[net].waveform", name)}
		if name == "lte" {
			settings = append(settings, set("networks[net].base", "[n5]"))
		}
		if !strings.HasPrefix(name, "lora") {
			settings = append(settings, set("networks[net].mtu"))
		}
		names.Levels = append(names.Levels, level{name, settings})
	}
	periods := axis{"period", []level{{Name: "60s"}, {"600s", []string{set("apps[bft].publisher.period", "600s")}}}}
	if f.Short {
		periods = axis{"period", []level{{"20s", []string{set("apps[bft].publisher.period", "20s")}}}}
	}
	return study{campaign{Title: "How often may nine nodes tell their positions to each other by LoRa, HF, NBWF and LTE?", Axes: []axis{names, periods}}, p}
}

// sharedChannel is IST-161's case: 24 nodes in each other's range share 640 kbit/s, and nothing routes.
func sharedChannel(f form) study {
	p := setup{form: f, name: "shared-640", Grid: "grid-24", Scenario: grid("grid-24", 24, 200, "300MHz", "2"),
		Networks: []string{"{name: net, subnet: 198.18.34.0/24, tdma: {phy: {frequency: 300MHz}, structure: {slotDuration: 5ms}, rate: 640kbit}, routing: {protocol: none}}"},
		Apps: []string{"{name: broker, mosquitto: {}}", `{name: picture, subscriber: {protocol: mqtt, to: broker, topics: ["#"]}}`,
			"{name: bft, publisher: {protocol: mqtt, to: broker, payload: nffi, period: 10s, lead: 30s}}"},
		started: []string{"bft"}, lead: 30, publishing: choose(f.Short, 60, 1200), Drain: "{max: 60s, quietFor: 15s}"}
	for i := 1; i <= 24; i++ {
		p.Vehicles = append(p.Vehicles, vehicle(i, choose(i == 1, "hq", "veh"), "net", choose(i == 1, "broker, picture", "bft")))
	}
	protocol := func(name string) []string {
		return []string{set("apps[picture].subscriber.protocol", name), set("apps[bft].publisher.protocol", name)}
	}
	broadcast := append([]string{set("apps[broker]"), set("nodes[n1].apps", "[picture]"), set("apps[picture].subscriber.to"), set("apps[bft].publisher.to")}, protocol("mqtt-udp")...)
	gateway := append([]string{set("apps[gateway]", "{name: gateway, mqttsnGateway: {to: broker}}"), set("nodes[n1].apps", "[broker, gateway, picture]"),
		set("apps[picture].subscriber.to", "gateway"), set("apps[bft].publisher.to", "gateway")}, protocol("mqtt-sn")...)
	return study{campaign{Title: "24 nodes share 640 kbit/s without routing, as in IST-161: which protocol carries how much?",
		Axes: []axis{{"messaging", []level{{Name: "mqtt"}, {"mqttsn", gateway}, {"wsn", append([]string{set("apps[broker]", "{wsnBroker: {}}")}, protocol("ws-notification")...)}, {"mqtt-udp", broadcast}}},
			{"period", []level{{Name: "10s"}, {"2s", []string{set("apps[bft].publisher.period", "2s")}}}}}}, p}
}

// repeatedMessages is E4's setting 2 by MQTT/UDP, whose messages are sent once or several times.
func repeatedMessages(f form) study {
	p := setup{form: f, name: "repeats", Networks: []string{"{name: wan, waveform: tactical-2, subnet: 198.18.34.0/24}"},
		Apps:    []string{`{name: units, instances: 8, publisher: {protocol: mqtt-udp, network: wan, payload: geojson, period: 10s, lead: 10s}, subscriber: {protocol: mqtt-udp, network: wan, topics: ["#"]}}`},
		started: []string{"units"}, lead: 10, publishing: choose(f.Short, 60, 1200), Drain: "{max: 60s, quietFor: 20s}"}
	for _, name := range []string{"deu", "nor", "prt", "usa"} {
		p.Vehicles = append(p.Vehicles, fmt.Sprintf("{name: %s, networks: [wan], apps: [units]}", name))
	}
	repeats := axis{"repeats", []level{{Name: "none"}}}
	for i, name := range []string{"once", "twice"} {
		repeats.Levels = append(repeats.Levels, level{name, []string{set("apps[units].publisher.repeat", fmt.Sprintf("{times: %d, interval: 1s}", i+1))}})
	}
	axes := []axis{repeats}
	if !f.Short {
		axes = append(axes, axis{"link", []level{{Name: "tactical-2"}, {"tactical-1", []string{set("networks[wan].waveform", "tactical-1")}}}},
			axis{"period", []level{{Name: "10s"}, {"4s", []string{set("apps[units].publisher.period", "4s")}}}})
	}
	return study{campaign{Title: "MQTT/UDP has no acknowledgements: is it worth its data volume to send each message again?", Axes: axes}, p}
}
