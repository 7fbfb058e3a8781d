package main

import (
	"fmt"
	"strings"
)

// exchange is a way in which E6's units exchange messages or positions.
type exchange struct {
	key string
	// Letter is that of the publication, or none.
	Letter string
	// Words describes it.
	Words string
	// Transport, Encoding, Compression and Model are as written in the file; an empty one is left out.
	Transport, Encoding, Compression, Model string
	// Payload is that of positions; without it units send the script's messages.
	Payload   string
	Multicast bool
}

func exchanges() []exchange {
	soap := func(key, words, encoding, compression string) []exchange {
		return []exchange{
			{key: "messages-soap-udp-" + key, Words: "SOAP over UDP, " + words, Transport: "soap-udp", Encoding: encoding, Compression: compression, Model: "operational"},
			{key: "bft-soap-udp-" + key, Words: "SOAP over UDP, " + words, Transport: "soap-udp", Encoding: encoding, Compression: compression, Payload: "nffi"},
		}
	}
	all := []exchange{
		{key: "messages-http-json", Letter: "A", Words: "HTTP, JSON", Transport: "http", Encoding: "json"},
		{key: "messages-http-cbor", Letter: "B", Words: "HTTP, CBOR", Transport: "http", Encoding: "cbor"},
		{key: "messages-http-exi", Letter: "C", Words: "HTTP, EXI", Transport: "http", Encoding: "exi"},
		{key: "messages-coap-json", Letter: "D", Words: "CoAP over UDP, JSON", Transport: "coap", Encoding: "json"},
		{key: "messages-coap-cbor", Letter: "E", Words: "CoAP over UDP, CBOR", Transport: "coap", Encoding: "cbor"},
		{key: "messages-coap-tcp-cbor", Letter: "F", Words: "CoAP over TCP, CBOR", Transport: "coap-tcp", Encoding: "cbor"},
	}
	all = append(all, soap("xml", "XML", "xml", "")...)
	all = append(all, soap("gzip", "XML, the envelope compressed by gzip", "xml", "gzip")...)
	all = append(all, soap("exi", "EXI in the envelope's body", "exi", "")...)
	return append(all,
		exchange{key: "bft-coap-unicast-cbor", Words: "CoAP over UDP, CBOR", Transport: "coap", Encoding: "cbor", Payload: "geojson"},
		exchange{key: "bft-coap-multicast-cbor", Words: "CoAP over UDP, multicast within each platoon, CBOR", Transport: "coap", Encoding: "cbor", Payload: "geojson", Multicast: true},
		exchange{key: "bft-coap-multicast-json", Words: "CoAP over UDP, multicast within each platoon, JSON", Transport: "coap", Encoding: "json", Payload: "geojson", Multicast: true})
}

// platoons is one run of E6.
type platoons struct {
	form
	terrain
	exchange
}

func allPlatoons() (all []platoons) {
	for _, e := range exchanges() {
		all = append(all, platoons{form{}, terrain{}, e}, platoons{form{true}, terrain{}, e})
	}
	return all
}

func (p platoons) path() string { return p.folder("e6") + p.key + ".yaml" }

// Name returns the experiment's name.
func (p platoons) Name() string { return "e6-" + p.key + p.suffix() }

// Script returns the messages, if units send messages.
func (p platoons) Script() []scripted {
	if p.Payload != "" {
		return nil
	}
	return choose(p.Short, shortScript, script)()
}

// Lines returns the fields of a messaging service that say how it sends.
func (p platoons) Lines() []string {
	lines := []string{"transport: " + p.Transport, "encoding: " + p.Encoding}
	if p.Compression != "" {
		lines = append(lines, "compression: "+p.Compression)
	}
	if p.Model != "" {
		lines = append(lines, "model: "+p.Model)
	}
	if p.Payload == "" && p.Short {
		lines = append(lines, "timeout: 20s")
	}
	if p.CoAP() != "" {
		lines = append(lines, "coap: "+p.CoAP())
	}
	if p.Payload != "" {
		lines = append(lines, "receipt: false")
	}
	return lines
}

// CoAP returns CoAP's settings: a position that is lost is not sent again, as the next one follows.
func (p platoons) CoAP() string {
	return choose(p.Payload != "" && p.Transport == "coap", "{confirmable: false}", "")
}

// MulticastField returns the field's value, or nothing where it is left out.
func (p platoons) MulticastField() string { return choose(p.Multicast, "true", "") }

// Settings returns Lines in one line.
func (p platoons) Settings() string { return strings.Join(p.Lines(), ", ") }

// LeadersPort returns a port beside the platoon's own service.
func (p platoons) LeadersPort() int { return choose(p.Transport == "coap", 5684, 3703) }

// Push returns the periodic positions, to a platoon or to all who run the app.
func (p platoons) Push(to string) string {
	return fmt.Sprintf("{to: %s, period: %ds, payload: %s}", to, positionSeconds, p.Payload)
}

// positionSeconds is the period of positions.
const positionSeconds = 10

// Start returns the start of the services in seconds after T0: all nodes have routes to all others by then.
func (p platoons) Start() int { return choose(p.Short, 40, 60) }

// Positions returns the positions of each unit.
func (p platoons) Positions() int { return choose(p.Short, 4, scriptSeconds/positionSeconds) }

// Stop returns the end of positions in seconds after T0.
func (p platoons) Stop() int { return p.Start() + positionSeconds*p.Positions() }

// Duration returns the duration in seconds.
func (p platoons) Duration() int {
	if p.Payload != "" {
		return p.Stop() + 5
	}
	return choose(p.Short, 90, p.Start()+scriptFirst+scriptSeconds+5)
}

// Drain returns the run's drain time, in which every request has its receipt or has failed. Positions have neither.
func (p platoons) Drain() string {
	if p.Payload != "" {
		return "{max: 60s, quietFor: 15s}"
	}
	return choose(p.Short, "{max: 60s, quietFor: 25s}", "{max: 120s, quietFor: 65s}")
}
