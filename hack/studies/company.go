package main

import "fmt"

// messaging is the messaging of the company of E1 and E2.
type messaging struct {
	key string
	// Broker is as written in the file; Words describes all of the messaging.
	Broker, Words string
	// Publish and Subscribe are protocols.
	Publish, Subscribe string
	// Gateway: MQTT-SN clients connect to a gateway in front of the broker.
	Gateway bool
}

// SubscribeTo is where the subscriber connects.
func (m messaging) SubscribeTo() string {
	return choose(m.Subscribe == "mqtt-sn", "gateway", "broker")
}

var companyMessaging = []messaging{
	{"wsn", "wsnBroker: {}", "WS-Notification 1.3, one broker on node 1", "ws-notification", "ws-notification", false},
	{"mosquitto", "mosquitto: {}", "one Mosquitto on node 1", "mqtt", "mqtt", false},
	{"vernemq", "vernemq: {}", "one VerneMQ on node 1", "mqtt", "mqtt", false},
	{"rabbitmq", "rabbitmq: {}", "one RabbitMQ on node 1, by MQTT", "mqtt", "mqtt", false},
	{"mqttsn-vernemq", "vernemq: {}", "MQTT-SN to a gateway on node 1, which has VerneMQ behind it", "mqtt-sn", "mqtt", true},
	{"mqttsn-mosquitto", "mosquitto: {}", "MQTT-SN to a gateway on node 1, which has Mosquitto behind it", "mqtt-sn", "mqtt", true},
	{"mqttsn-both-vernemq", "vernemq: {}", "MQTT-SN at both ends, through a gateway on node 1 with VerneMQ behind it", "mqtt-sn", "mqtt-sn", true},
	{"mqttsn-both-mosquitto", "mosquitto: {}", "MQTT-SN at both ends, through a gateway on node 1 with Mosquitto behind it", "mqtt-sn", "mqtt-sn", true},
}

// company is one run of E1 or E2.
type company struct {
	form
	messaging
	terrain
	Study string
	// QoS is the publishers'. The subscriber's is 0.
	QoS int
	// EMANE carries the frames in place of the built-in engine.
	EMANE bool
}

// companies are E1's two runs; E2's eight, those of them without VerneMQ's image, and those with a subscriber by MQTT-SN; short forms of
// E2 over the modified terrain; one of each study with EMANE.
func companies() (all []company) {
	for _, m := range companyMessaging {
		for _, f := range []form{{false}, {true}} {
			if m.key == "wsn" || m.key == "mosquitto" {
				all = append(all, company{form: f, messaging: m, Study: "e1"})
			}
			if m.key == "mosquitto" {
				all = append(all,
					company{form: f, messaging: m, Study: "e1", EMANE: true},
					company{form: f, messaging: m, terrain: terrain{true}, Study: "e2", EMANE: true})
			}
			if !f.Short || m.Subscribe != "mqtt-sn" { // their names would be too long
				all = append(all, company{form: f, messaging: m, terrain: terrain{true}, Study: "e2"})
			}
		}
		all = append(all, company{form: form{}, messaging: m, Study: "e2"})
		if m.key != "wsn" {
			all = append(all, company{form: form{}, messaging: m, terrain: terrain{true}, Study: "e2", QoS: 1})
		}
	}
	return all
}

func (c company) key() string {
	if c.Study == "e1" {
		return c.messaging.key
	}
	return fmt.Sprintf("%s-qos%d-%s", c.messaging.key, c.QoS, choose(c.Modified, "modified", "anglova"))
}

func (c company) path() string {
	if c.EMANE {
		return c.folder(c.Study+"/emane") + c.key() + ".yaml"
	}
	return c.folder(c.Study) + c.key() + ".yaml"
}

// Name returns the experiment's name.
func (c company) Name() string {
	if c.EMANE {
		return c.Study + "-" + c.key() + "-emane" + c.suffix()
	}
	return c.Study + "-" + c.key() + c.suffix()
}

// Title returns the file's title.
func (c company) Title() string {
	if c.Study == "e1" {
		return "E1: 24 vehicles, wideband RF pipe, OLSRv1, the synthetic stand-in for Anglova"
	}
	return "E2: 24 vehicles, Swiss wideband TDMA, OLSRv2, the synthetic stand-in for " + choose(c.Modified, "the modified Anglova", "Anglova")
}

// Span returns the used part of the movement in a full form, unless it uses all.
func (c company) Span() string {
	if c.Study == "e1" {
		return ", its first 30 minutes"
	}
	return ""
}

// Payload returns the form of NFFI.
func (c company) Payload() string { return choose(c.Study == "e1", "nffi-long", "nffi") }

// Radio returns the file's radio, indented.
func (c company) Radio() string {
	if c.Study == "e1" {
		return execute("rfpipe.yaml", nil)
	}
	return execute("tdma.yaml", map[string]int{"Power": choose(c.Modified, 37, 40), "Pathloss": choose(c.Modified, 118, 121)})
}

// Messages returns the messages of each of 23 vehicles: one every 10 s from 1:00 on.
func (c company) Messages() int {
	return choose(c.Short, 6, choose(c.Study == "e1", 174, 120))
}

// All returns the number of all messages.
func (c company) All() int { return 23 * c.Messages() }

// Until returns the end of publishing as a clock time.
func (c company) Until() string {
	return choose(c.Short, "2:00", choose(c.Study == "e1", "30:00", "21:00"))
}

// Stop returns the end of publishing.
func (c company) Stop() string {
	return choose(c.Short, "120s", choose(c.Study == "e1", "30m", "1260s"))
}

// Duration returns the experiment's duration.
func (c company) Duration() string {
	return choose(c.Short, "125s", choose(c.Study == "e1", "30m", "1265s"))
}

// Seed returns the study's number.
func (c company) Seed() string { return c.Study[1:] }

// Subnet returns the radio's subnet.
func (c company) Subnet() string {
	return choose(c.Study == "e1", "198.18.11.0/24", "198.18.12.0/24")
}

// Drain returns the run's drain time.
func (c company) Drain() string {
	return choose(c.Short, "{max: 30s, quietFor: 10s}", choose(c.Study == "e1", "{max: 60s, quietFor: 20s}", "{max: 120s, quietFor: 30s}"))
}
