package main

import (
	"fmt"
	"slices"
	"strings"
)

// campaign is a campaign over runs of a study. One run is its template, and its levels produce the others.
type campaign struct {
	Study, Name, Title string
	// file is below the study's folder of campaigns.
	file string
	// template is the run whose spec is the campaign's template.
	template string
	Axes     []axis
	// Exclude and Include are as written in the file.
	Exclude, Include []string
	// Points is the number of points.
	Points int
	// Files describes the runs' files in words.
	Files string
	// run returns the file of a point by its levels; nil where points have none.
	run func(levels map[string]string) string
	// otherScenarios are those of these runs, which the file has beside the template's.
	otherScenarios []string
}

type axis struct {
	Name   string
	Levels []level
}

type level struct {
	Name string
	// Set are settings as written in the file.
	Set []string
}

// set sets a field; an empty value removes it.
func set(path string, value ...string) string {
	if len(value) == 0 {
		return fmt.Sprintf(`{path: "%s"}`, path)
	}
	return fmt.Sprintf(`{path: "%s", value: %s}`, path, value[0])
}

func (c campaign) path() string { return c.Study + "/campaigns/" + c.file + ".yaml" }

// Spec returns the template's spec, indented.
func (c campaign) Spec() string {
	_, spec, _ := strings.Cut(runs()[c.template], "\nspec:\n")
	if at := strings.LastIndex(spec, "\nspec:\n"); at >= 0 { // after a Scenario
		spec = spec[at+len("\nspec:\n"):]
	}
	var b strings.Builder
	for line := range strings.Lines(spec) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// Scenarios returns the scenarios beside the campaign, each once.
func (c campaign) Scenarios() (all []string) {
	for _, path := range append([]string{c.template}, c.otherScenarios...) {
		text := runs()[path]
		if at := strings.LastIndex(text, "---\n"); at >= 0 && !slices.Contains(all, text[:at]) {
			all = append(all, text[:at])
		}
	}
	return all
}

func campaigns() []campaign {
	all := []campaign{e4Campaign(1, form{}), e4Campaign(2, form{}), e4Campaign(2, form{true}), e8Campaign(form{}), e8Campaign(form{true}),
		e3Campaign(), e2Campaign("vernemq"), e2Campaign("mosquitto"), e2ShortCampaign()}
	for _, f := range []form{{false}, {true}} {
		all = append(all, e1Campaign(f), e6Campaign(f, "messages"), e6Campaign(f, "bft"), e5Campaign(f))
	}
	for _, s := range furtherStudies() {
		all = append(all, s.campaign)
	}
	return all
}

// times returns a run's times: its duration and its timeline.
func times(duration int, timeline string) []string {
	return []string{set("duration", fmt.Sprintf("%ds", duration)), set("timeline", timeline)}
}

// e4Campaign is one of E4's two, or the short forms of setting 2 that need no external image.
func e4Campaign(setting int, f form) campaign {
	of := func(messaging, link_ string, period int) nation {
		return nation{f, link(link_), setting, messaging, period}
	}
	first := of("mosquitto", "baseline", 2)
	brokers := []level{{Name: "mosquitto"}}
	if !f.Short {
		brokers = append(brokers, e4Broker(of("vernemq", "baseline", 2), set("apps[broker]", "{vernemq: {cluster: true}}")))
	}
	if setting == 2 {
		brokers = append(brokers, e4Broker(of("mqtt-udp", "baseline", 2), set("apps[broker]"),
			set("apps[units].publisher", `{protocol: mqtt-udp, network: wan, payload: geojson, period: 2s, lead: 10s, platforms: "101-132"}`),
			set("apps[units].subscriber", `{protocol: mqtt-udp, network: wan, topics: ["#"]}`)))
	}
	var others []string
	if !f.Short {
		others = append(others, of("vernemq", "baseline", 2).path())
	}
	links := axis{"link", []level{{Name: "baseline"}}}
	var include []string
	for _, l := range []string{"baseline", "tactical-1", "tactical-2"} {
		if l != "baseline" {
			links.Levels = append(links.Levels, level{l, []string{set("networks[wan].waveform", l), set("drain", of("mosquitto", l, 2).Drain())}})
		}
		// The hub's units are an app of their own, which the other brokers lack.
		include = append(include, fmt.Sprintf(`{name: mosquitto-%s-10s, levels: {broker: mosquitto, link: %s, period: 10s}, set: [%s]}`, l, l,
			set("apps[units-hub].publisher.period", "10s")))
	}
	return campaign{Study: "e4", Name: fmt.Sprintf("e4-s%d%s", setting, f.suffix()), file: fmt.Sprintf("setting%d%s", setting, f.suffix()), template: first.path(),
		Title:          fmt.Sprintf("E4, setting %d%s: ways of messaging, data links and periods.", setting, choose(f.Short, ", short forms that need no image from elsewhere", "")),
		Axes:           []axis{{"broker", brokers}, links, {"period", []level{{Name: "2s"}, {"10s", []string{set("apps[units].publisher.period", "10s")}}}}},
		otherScenarios: others, Points: 6 * len(brokers), Files: fmt.Sprintf("setting%d-BROKER-LINK-PERIOD.yaml%s", setting, choose(f.Short, " in short", "")),
		Exclude: []string{"{broker: mosquitto, period: 10s}      # these are included below"}, Include: include,
		run: func(levels map[string]string) string {
			return of(levels["broker"], levels["link"], choose(levels["period"] == "2s", 2, 10)).path()
		}}
}

// e4Broker returns the level of a way of messaging without bridges.
func e4Broker(n nation, apps ...string) level {
	settings := append([]string{set("apps[hub]"), set("apps[units-hub]")}, apps...)
	for _, node := range n.Nodes() {
		if n.Messaging == "mqtt-udp" || node == "nor" {
			settings = append(settings, set("nodes["+node+"].apps", "["+n.AppsOf(node)+"]"))
		}
	}
	if n.cluster() { // the clients of these brokers start later
		settings = append(settings, set("apps[units].publisher.platforms", `"`+n.Platforms()+`"`), set("scenario.ref", n.Tracks().Name()))
		settings = append(settings, times(n.Duration(), fmt.Sprintf("[{at: %ds, start: [units]}, {at: %ds, stop: [units]}]", n.Start(), n.Stop()))...)
	} else {
		settings = append(settings, set("timeline[0].start", "[units]"), set("timeline[1].stop", "[units]"))
	}
	return level{n.Messaging, settings}
}

// e3Campaign has all of E3.
func e3Campaign() campaign {
	slow := coalition{form{}, "internet", "vernemq"}
	units := "bft-nor, bft-prt, bft-usa"
	vernemq := append([]string{set("apps[hub]", "{vernemq: {}}"), set("scenario.ref", slow.Tracks().Name())},
		times(slow.Duration(), fmt.Sprintf("[{at: %ds, start: [picture, %s]}, {at: %ds, stop: [%[2]s]}]", slow.Start(), units, slow.Stop()))...)
	satcom := []string{set("networks[internet].link"), set("networks[internet].waveform", "satcom"), set("drain", coalition{form{}, "satcom", "vernemq"}.Drain())}
	return campaign{Study: "e3", Name: "e3", file: "all", template: coalition{form{}, "internet", "mosquitto"}.path(), Title: "E3: two brokers as Norway's hub, over two paths to the cloud.",
		otherScenarios: []string{slow.path()},
		Axes:           []axis{{"hub", []level{{Name: "mosquitto"}, {"vernemq", vernemq}}}, {"path", []level{{Name: "internet"}, {"satcom", satcom}}}}, Points: 4, Files: "the four files of E3",
		run: func(levels map[string]string) string {
			return coalition{form{}, link(levels["path"]), levels["hub"]}.path()
		}}
}

func messagingOf(key string) messaging {
	return companyMessaging[slices.IndexFunc(companyMessaging, func(m messaging) bool { return m.key == key })]
}

// withoutGateway lets publishers connect directly to the broker.
func withoutGateway(key, broker, protocol string) level {
	return level{key, []string{set("apps[gateway]"), set("apps[broker]", broker), set("nodes[hq].apps", "[broker, picture]"),
		set("apps[picture].subscriber.protocol", protocol), set("apps[bft].publisher.protocol", protocol), set("apps[bft].publisher.to", "broker")}}
}

// e2Messaging returns the levels of three ways of messaging, with MQTT-SN's as the template.
func e2Messaging(broker string) axis {
	return axis{"messaging", []level{withoutGateway("wsn", "{wsnBroker: {}}", "ws-notification"), withoutGateway(broker, "{"+broker+": {}}", "mqtt"), {Name: "mqttsn-" + broker}}}
}

// e2Campaign is the published one, with VerneMQ, or the same with another broker.
func e2Campaign(broker string) campaign {
	of := func(key string, qos int, modified bool) company {
		return company{form: form{}, messaging: messagingOf(key), terrain: terrain{modified}, Study: "e2", QoS: qos}
	}
	qos1 := []string{set("apps[bft].publisher.qos", "1")}
	modified := []string{set("scenario.ref", "anglova-like-modified"), set("networks[radio].tdma.phy.transmitPower", "37dBm")}
	name := choose(broker == "vernemq", "e2", "e2-"+broker)
	return campaign{Study: "e2", Name: name, file: "with-" + broker, template: of("mqttsn-"+broker, 0, false).path(), Title: "E2: WS-Notification, MQTT and MQTT-SN over two terrains.",
		otherScenarios: []string{of("wsn", 0, true).path()}, Points: 8, Files: "MESSAGING-QOS-TERRAIN.yaml",
		Axes:    []axis{e2Messaging(broker), {"qos", []level{{Name: "qos0"}, {"qos1", qos1}}}, {"terrain", []level{{Name: "anglova"}, {"modified", modified}}}},
		Exclude: []string{"{messaging: wsn, qos: qos1}", "{terrain: anglova, qos: qos1}"},
		run: func(levels map[string]string) string {
			return of(levels["messaging"], choose(levels["qos"] == "qos1", 1, 0), levels["terrain"] == "modified").path()
		}}
}

// e2ShortCampaign has the short forms that need no external image.
func e2ShortCampaign() campaign {
	of := func(key string) string {
		return company{form: form{true}, messaging: messagingOf(key), terrain: terrain{true}, Study: "e2"}.path()
	}
	return campaign{Study: "e2", Name: "e2-short", file: "short", template: of("mqttsn-mosquitto"), Title: "E2, short forms that need no image from elsewhere.",
		Axes: []axis{e2Messaging("mosquitto")}, Points: 3, Files: "MESSAGING-qos0-modified.yaml in short", run: func(levels map[string]string) string { return of(levels["messaging"]) }}
}

func e1Campaign(f form) campaign {
	of := func(key string) string { return company{form: f, messaging: messagingOf(key), Study: "e1"}.path() }
	wsn := level{"wsn", []string{set("apps[broker]", "{wsnBroker: {}}"), set("apps[picture].subscriber.protocol", "ws-notification"), set("apps[bft].publisher.protocol", "ws-notification")}}
	return campaign{Study: "e1", Name: "e1" + f.suffix(), file: choose(f.Short, "short", "all"), template: of("mosquitto"), Title: "E1: MQTT and WS-Notification" + choose(f.Short, ", short forms.", "."),
		Axes: []axis{{"messaging", []level{{Name: "mosquitto"}, wsn}}}, Points: 2, Files: "MESSAGING.yaml" + choose(f.Short, " in short", ""),
		run: func(levels map[string]string) string { return of(levels["messaging"]) }}
}

// e8Networks are named by their levels, short to leave room in the names of experiments.
var e8Networks = []struct{ level, link string }{{"low-band-5g", "low-band-5g"}, {"broadband", "tactical-broadband"}, {"satcom", "satcom"}, {"nbwf", "nbwf"}, {"cnr-1", "cnr-1"}, {"cnr-10", "cnr-10"}}

// e8Payloads are the payloads in their loads, as levels.
var e8Payloads = []struct {
	level        string
	image, often bool
}{{"gps", false, false}, {"image", true, false}, {"gps-often", false, true}, {"image-often", true, true}}

// e8Campaign is all of E8, or all short forms.
func e8Campaign(f form) campaign {
	payloads := choose(f.Short, e8Payloads[:2], e8Payloads)
	of := func(network link, key string, image, often bool) pair {
		all := pairings()
		return pair{f, network, all[slices.IndexFunc(all, func(p pairing) bool { return p.key == key })], image, often}
	}
	first := link(choose(f.Short, "tactical-broadband", "low-band-5g"))
	c := campaign{Study: "e8", Name: "e8" + f.suffix(), file: choose(f.Short, "short", "all"), template: of(first, "mqttsn-standard-qos0", false, false).path(),
		Title:  "E8: ways of messaging and payloads" + choose(f.Short, " over tactical broadband, short forms.", " over six networks, in two loads."),
		Points: choose(f.Short, 14, 168), Files: choose(f.Short, "MESSAGING-PAYLOAD.yaml in short", "NETWORK/MESSAGING-PAYLOAD.yaml; of the greater load there are only those of cnr-1")}
	networks, ways, loads := axis{Name: "network"}, axis{Name: "messaging"}, axis{Name: "payload"}
	for _, n := range e8Networks {
		settings := []string{set("networks[link].waveform", n.link)}
		if link(n.link) == first {
			settings = nil
		}
		networks.Levels = append(networks.Levels, level{n.level, settings})
	}
	for _, p := range pairings() {
		ways.Levels = append(ways.Levels, level{p.key, e8Messaging(of(first, p.key, false, false))})
		for _, payload := range payloads {
			if p.Publish == "mqtt-sn" && payload.image {
				c.Exclude = append(c.Exclude, fmt.Sprintf("{messaging: %s, payload: %s}", p.key, payload.level))
			}
		}
	}
	for _, payload := range payloads {
		loads.Levels = append(loads.Levels, level{payload.level, e8Load(of(first, "mqtt-qos0", payload.image, payload.often))})
	}
	c.Axes = []axis{ways, loads}
	if !f.Short {
		c.Axes = append([]axis{networks}, c.Axes...)
		c.pgm(of)
	}
	c.run = func(levels map[string]string) string {
		at := slices.IndexFunc(e8Networks, func(n struct{ level, link string }) bool { return n.level == levels["network"] })
		return of(choose(at < 0, first, link(e8Networks[max(at, 0)].link)), levels["messaging"], strings.HasPrefix(levels["payload"], "image"), strings.HasSuffix(levels["payload"], "-often")).path()
	}
	return c
}

// e8Load returns the settings of a payload and its load; none of the template's.
func e8Load(p pair) (settings []string) {
	if !p.Image && !p.Often {
		return nil
	}
	if p.Image {
		settings = append(settings, set("apps[pubs].publisher.payload", `"`+p.Payload()+`"`))
	}
	settings = append(settings, set("apps[pubs].publisher.period", fmt.Sprintf("%ds", p.Period())), set("drain", p.Drain()))
	return append(settings, times(p.Duration(), fmt.Sprintf("[{at: %ds, start: [subs, pubs]}, {at: %ds, stop: [pubs]}]", p.Start(), p.Stop()))...)
}

// pgm adds the points of PGM, which have the link in place.
func (c *campaign) pgm(of func(link, string, bool, bool) pair) {
	c.Exclude = append(c.Exclude, "{messaging: zeromq-pgm}      # these are included below")
	for _, n := range e8Networks {
		_, described, _ := strings.Cut(of(link(n.link), "zeromq-pgm", false, false).Network(), "link: ")
		for _, payload := range e8Payloads {
			name := n.level + "-pgm-" + strings.Replace(payload.level, "-often", "-2", 1) // of 24 letters at most
			c.Include = append(c.Include, fmt.Sprintf(`{name: %s, levels: {network: %s, messaging: zeromq-pgm, payload: %s}, set: [%s, %s]}`, name, n.level, payload.level,
				set("networks[link].waveform"), set("networks[link].link", described)))
		}
	}
}

// e8Messaging returns the settings that change the template, MQTT-SN at both ends with QoS 0, into a pair's messaging.
func e8Messaging(p pair) (settings []string) {
	if !p.Gateway {
		settings = []string{set("apps[gateway]"), set("apps[broker]", "{"+p.Broker+"}"), set("nodes[server].apps", "[broker]"), set("apps[pubs].instances", fmt.Sprint(p.Pairs)),
			set("apps[subs].instances", fmt.Sprint(p.Pairs))}
	}
	for _, side := range []struct{ path, protocol, to, standard string }{
		{"apps[pubs].publisher", p.Publish, p.PublishTo(), "mqtt-sn"}, {"apps[subs].subscriber", p.Subscribe, p.SubscribeTo(), "mqtt-sn"}} {
		if side.protocol != side.standard {
			settings = append(settings, set(side.path+".protocol", side.protocol), set(side.path+".to", side.to))
		}
		switch {
		case p.qos < 0:
			settings = append(settings, set(side.path+".qos"))
		case p.qos > 0:
			settings = append(settings, set(side.path+".qos", fmt.Sprint(p.qos)))
		}
	}
	if network, inPlace := strings.CutPrefix(p.Network(), "link: "); inPlace && p.Short {
		settings = append(settings, set("networks[link].waveform"), set("networks[link].link", network))
	}
	return settings
}

// e6Campaign has the ways to exchange messages, or positions (bft). Positions by multicast are among the latter.
func e6Campaign(f form, what string) campaign {
	var ways []exchange
	for _, e := range exchanges() {
		if strings.HasPrefix(e.key, what+"-") {
			ways = append(ways, e)
		}
	}
	of := func(e exchange) platoons { return platoons{f, terrain{}, e} }
	among := axis{Name: "exchange"}
	for _, e := range ways {
		among.Levels = append(among.Levels, level{strings.TrimPrefix(e.key, what+"-"), e6Settings(of(ways[0]), of(e))})
	}
	return campaign{Study: "e6", Name: "e6-" + what + f.suffix(), file: what + f.suffix(), template: of(ways[0]).path(),
		Title: "E6: " + choose(what == "bft", "ways to exchange positions", "ways to exchange messages") + choose(f.Short, ", short forms.", "."),
		Axes:  []axis{among}, Points: len(ways), Files: what + "-EXCHANGE.yaml" + choose(f.Short, " in short", ""),
		run: func(levels map[string]string) string {
			return of(ways[slices.IndexFunc(ways, func(e exchange) bool { return e.key == what+"-"+levels["exchange"] })]).path()
		}}
}

// e6Settings returns the settings that change the template's messaging services into those of another exchange.
func e6Settings(template, p platoons) (settings []string) {
	services := choose(p.Payload == "", []string{"chat"}, []string{"bft-a", "bft-b", "bft-lead"})
	for _, service := range services {
		field := func(name, was, is string) {
			switch path := "apps[" + service + "].messaging." + name; {
			case was == is:
			case is == "":
				settings = append(settings, set(path))
			default:
				settings = append(settings, set(path, is))
			}
		}
		field("transport", template.Transport, p.Transport)
		field("encoding", template.Encoding, p.Encoding)
		field("compression", template.Compression, p.Compression)
		field("model", template.Model, p.Model)
		field("coap", template.CoAP(), p.CoAP())
		field("push.payload", template.Payload, p.Payload)
		if service == "bft-lead" {
			field("port", fmt.Sprint(template.LeadersPort()), fmt.Sprint(p.LeadersPort()))
		} else {
			field("multicast", template.MulticastField(), p.MulticastField())
		}
	}
	return settings
}

// e5Campaign is all of E5, or all short forms. The template has all apps, for the ways without them to take out.
func e5Campaign(f form) campaign {
	networks, ways := choose(f.Short, []link{"wifi-1"}, serviceNetworks), proxiedWays()
	of := func(network link, way proxied, rest, cut bool) service { return service{f, network, way, rest, cut} }
	wayOf := func(key string) proxied {
		return ways[slices.IndexFunc(ways, func(w proxied) bool { return w.key == key })]
	}
	first, rest := of(networks[0], wayOf("amqp"), false, false), of(networks[0], wayOf("amqp"), true, false)
	c := campaign{Study: "e5", Name: "e5" + f.suffix(), file: choose(f.Short, "short", "all"), template: first.path(),
		Title:  "E5: two services, with and without proxies" + choose(f.Short, " over WiFi 1, short forms.", ", over six networks, whole and cut."),
		Points: 4 * len(ways) * len(networks), Files: choose(f.Short, "SERVICE-WAY.yaml in short", "NETWORK/SERVICE-WAY.yaml; of networks but "+string(networks[0])+" there are none")}
	way, network := axis{Name: "way"}, axis{Name: "network"}
	for _, w := range ways {
		way.Levels = append(way.Levels, level{w.key, e5Way(of(first.link, w, false, false))})
	}
	for _, l := range networks {
		network.Levels = append(network.Levels, level{string(l), e5Network(l, first.link)})
	}
	restful := []string{set("apps[service].messaging.transport", rest.Transport()), set("apps[service].messaging.encoding", "json"),
		set("apps[service].messaging.push.payload", rest.Payload()), set("apps[service].messaging.push.period", fmt.Sprintf("%ds", rest.Period())),
		set("apps[service].messaging.reply", rest.Reply())}
	c.Axes = []axis{{"service", []level{{Name: "nffi"}, {"rest", restful}}}, way,
		{"link", []level{{Name: "whole"}, {"cut", []string{set("timeline", of(first.link, first.proxied, false, true).timeline())}}}}}
	if !f.Short {
		c.Axes = append([]axis{network}, c.Axes...)
	}
	c.run = func(levels map[string]string) string {
		return of(choose(f.Short, first.link, link(levels["network"])), wayOf(levels["way"]), levels["service"] == "rest", levels["link"] == "cut").path()
	}
	return c
}

// e5Network returns the settings of another network than the template's.
func e5Network(l, template link) (settings []string) {
	if l != template {
		settings = append(settings, set("networks[link].waveform", string(l)))
	}
	if l == "edge" {
		settings = append(settings, set("networks[link].base", "[server]"))
	}
	return settings
}

// e5Way returns the settings that change the template, proxies by AMQP, into another way.
func e5Way(s service) (settings []string) {
	if s.Protocol != "amqp" {
		settings = []string{set("apps[broker]"), set("nodes[server].apps", "["+s.AppsOf("server")+"]")}
	}
	switch s.Protocol {
	case "":
		return append(settings, set("apps[near]"), set("apps[far]"), set("nodes[client].apps", "["+s.AppsOf("client")+"]"), set("apps[service].messaging.via"))
	case "http", "coap":
		settings = append(settings, set("apps[near].proxy.protocol", s.Protocol), set("apps[near].proxy.broker"))
	}
	if s.Compression != "" {
		settings = append(settings, set("apps[near].proxy.compression", s.Compression))
	}
	return settings
}
