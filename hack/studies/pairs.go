package main

import (
	"fmt"
	"strings"
)

// pairing is a way of messaging of E8.
type pairing struct {
	key string
	// Broker is as written in the file; Between runs on the server's node, and Words describes all of the messaging.
	Broker, Between, Words string
	// Publish and Subscribe are protocols.
	Publish, Subscribe string
	// Pairs is the number of pairs of publishers and subscribers.
	Pairs int
	// qos is from 0, or -1 if the protocol has none.
	qos int
	// Gateway is MQTT-SN's.
	Gateway bool
}

func pairings() (all []pairing) {
	for qos := range 3 {
		all = append(all, pairing{fmt.Sprintf("mqtt-qos%d", qos), "mosquitto: {}", "the broker", fmt.Sprintf("MQTT 3.1.1 through Mosquitto, QoS %d", qos), "mqtt", "mqtt", 27, qos, false})
	}
	for qos := range 2 {
		all = append(all,
			pairing{fmt.Sprintf("mqttsn-standard-qos%d", qos), "mosquitto: {}", "gateway and broker",
				fmt.Sprintf("MQTT-SN at both ends, through a gateway with Mosquitto behind it, QoS %d", qos), "mqtt-sn", "mqtt-sn", 18, qos, true},
			pairing{fmt.Sprintf("mqttsn-hybrid-qos%d", qos), "mosquitto: {}", "gateway and broker",
				fmt.Sprintf("MQTT-SN from publishers to a gateway with Mosquitto behind it, MQTT 3.1.1 to subscribers, QoS %d", qos), "mqtt-sn", "mqtt", 18, qos, true})
	}
	for _, transport := range []string{"tcp", "pgm"} {
		words := map[string]string{"tcp": "ZeroMQ over TCP through a broker that filters by topic", "pgm": "ZeroMQ over PGM (in UDP, multicast) through a broker that filters by topic"}
		all = append(all, pairing{"zeromq-" + transport, "zeromqBroker: {transport: " + transport + "}", "the broker", words[transport], "zeromq", "zeromq", 27, -1, false})
	}
	return all
}

// pair is one run of E8.
type pair struct {
	form
	link
	pairing
	// Image: the payload is an image; else it is a position record.
	Image bool
	// Often: the load saturates the narrow links; else they carry it.
	Often bool
}

// pairs are E8's matrix, and a short form of each way of messaging and payload, over one network.
func pairs() (all []pair) {
	for _, p := range pairings() {
		for _, image := range []bool{false, true} {
			if image && p.Publish == "mqtt-sn" {
				continue
			}
			for _, l := range []link{"low-band-5g", "tactical-broadband", "satcom", "nbwf", "cnr-1", "cnr-10"} {
				all = append(all, pair{form{}, l, p, image, false}, pair{form{}, l, p, image, true})
			}
			all = append(all, pair{form{true}, "tactical-broadband", p, image, false})
		}
	}
	return all
}

// OnlyInCampaign reports whether the run has no file of its own: the greater load has files over one network.
func (p pair) OnlyInCampaign() bool { return p.Often && p.link != "cnr-1" }

func (p pair) key() string {
	return p.pairing.key + "-" + choose(p.Image, "image", "gps") + choose(p.Often, "-often", "")
}

func (p pair) path() string {
	if p.Short {
		return "e8/short/" + p.key() + ".yaml"
	}
	return "e8/" + string(p.link) + "/" + p.key() + ".yaml"
}

// Name returns the experiment's name.
func (p pair) Name() string {
	if p.Short {
		return "e8-" + p.key() + "-short"
	}
	return "e8-" + strings.TrimPrefix(string(p.link), "tactical-") + "-" + p.key() // a name has at most 40 letters
}

// Network returns the link's waveform. With PGM it is in place.
func (p pair) Network() string {
	if p.pairing.key != "zeromq-pgm" {
		return "waveform: " + string(p.link)
	}
	return map[link]string{
		"low-band-5g": "link: {rate: 100Mbit, delay: 20ms}", "tactical-broadband": "link: {rate: 2Mbit, delay: 100ms, loss: 1%}",
		"satcom": "link: {rate: 250kbit, delay: 550ms}", "nbwf": "link: {rate: 16kbit, delay: 500ms}",
		"cnr-1": "link: {rate: 9.6kbit, delay: 100ms, loss: 1%}", "cnr-10": "link: {rate: 9.6kbit, delay: 100ms, loss: 10%}",
	}[p.link]
}

// PublishTo and SubscribeTo are where each side connects.
func (p pair) PublishTo() string { return choose(p.Publish == "mqtt-sn", "gateway", "broker") }

// SubscribeTo is where subscribers connect.
func (p pair) SubscribeTo() string {
	return choose(p.Subscribe == "mqtt-sn", "gateway", "broker")
}

// QoSField returns the field as written in the file.
func (p pair) QoSField() string {
	if p.qos < 0 {
		return ""
	}
	return fmt.Sprintf(", qos: %d", p.qos)
}

// Payload returns the messages' payload.
func (p pair) Payload() string { return choose(p.Image, "image:20000", "gps") }

// PayloadWords describes it.
func (p pair) PayloadWords() string {
	return choose(p.Image, "an image of 20 000 bytes", "a GPS record (about 115 bytes)")
}

// Period returns the period in seconds. The greater load is above what nbwf carries, by every way of messaging. The other one
// fits the narrowest link, with acknowledgements.
func (p pair) Period() int { return choose(p.Short, choose(p.Image, 20, 5), p.fullPeriod()) }

func (p pair) fullPeriod() int {
	if p.Often {
		return choose(p.Image, 240, 1)
	}
	return choose(p.Image, 900, 30)
}

// Messages returns a publisher's messages.
func (p pair) Messages() int {
	if p.Often {
		return choose(p.Image, 7, 600)
	}
	return choose(p.Image, 2, choose(p.Short, 8, 20))
}

// Publishing returns the publishing time in seconds.
func (p pair) Publishing() int { return p.Period() * p.Messages() }

// FullPublishing returns that of the full form, in seconds.
func (p pair) FullPublishing() int {
	return pair{form{}, p.link, p.pairing, p.Image, p.Often}.Publishing()
}

// Start returns the start of clients, in seconds after T0.
func (p pair) Start() int { return 5 }

// Lead returns the lead in seconds: 54 clients connect over the narrowest link, and PGM senders are known after 12 s.
func (p pair) Lead() int { return choose(p.Short, 15, 60) }

// Stop returns the stop of publishers, in seconds after T0.
func (p pair) Stop() int { return p.Start() + p.Lead() + p.Publishing() }

// Duration returns the duration in seconds.
func (p pair) Duration() int { return p.Stop() + 5 }

// Drain returns the drain time: TCP can be silent for two minutes between two retries, MQTT-SN for ten seconds.
func (p pair) Drain() string {
	if p.Short {
		return "{max: 40s, quietFor: 15s}"
	}
	return choose(p.Image, "{max: 900s, quietFor: 180s}", choose(p.Often, "{max: 600s, quietFor: 120s}", "{max: 180s, quietFor: 120s}"))
}
