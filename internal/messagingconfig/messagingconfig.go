// Package messagingconfig is the operator's configuration of a node's messaging service, a JSON file named by
// `traffic messaging --config FILE`.
package messagingconfig

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/exi"
	"vignette.dev/vignette/internal/traffic/coap"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/http"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/internal/traffic/soap"
)

// Transports of messaging services, each described in its protocol's folder. Their clients are in messaging.Transports.
var Transports = []protocol.Transport{http.Transport, coap.Transport, coap.OverTCP, soap.Transport, soap.OverUDP}

// TransportOf returns the transport with a name, or one without a name.
func TransportOf[Name ~string](name Name) protocol.Transport {
	for _, t := range Transports {
		if t.Name == string(name) {
			return t
		}
	}
	return protocol.Transport{}
}

// Config configures one messaging service.
type Config struct {
	// Instance is node/app. The message log has it, and message ids are made from it: node/app_1, node/app_2, …
	Instance string `json:"instance"`
	// Transport is the name of one of Transports.
	Transport string `json:"transport"`
	// Port at which the service is reached, on all addresses.
	Port int `json:"port"`
	// ClientOnly calls servers of the user's own, and serves nobody. Port is then theirs.
	ClientOnly bool `json:"clientOnly,omitempty"`
	// Path of requests to a node; empty for the services' own.
	Path string `json:"path,omitempty"`
	// Encoding and Compression are those of the messages that the service sends; see package encoding. It reads all of them. Without an
	// encoding each model has its default.
	Encoding    string `json:"encoding,omitempty"`
	Compression string `json:"compression,omitempty"`
	// Model of scripted messages: military or operational.
	Model string `json:"model,omitempty"`
	// Receipt asks addressees for a response.
	Receipt        bool                `json:"receipt"`
	TimeoutSeconds float64             `json:"timeoutSeconds"`
	HTTP           request.HTTPOptions `json:"http,omitzero"`
	CoAP           request.CoAPOptions `json:"coap,omitzero"`
	SOAP           request.SOAPOptions `json:"soap,omitzero"`
	// Topic is that of messages to this node alone.
	Topic string `json:"topic"`
	// Interface and Groups for multicast; none without.
	Interface string  `json:"interface,omitempty"`
	Groups    []Group `json:"groups,omitempty"`
	// Addressees of all messages, each once.
	Addressees []Addressee `json:"addressees,omitempty"`
	// Destinations has the addressees, as indexes, of each node, group or all that messages are to.
	Destinations map[string][]int `json:"destinations,omitempty"`
	// Messages of a script, in the order of their times; or Push.
	Messages []Message `json:"messages,omitempty"`
	Push     *Push     `json:"push,omitempty"`
	// Reply is the payload of responses; empty for a receipt only.
	Reply string `json:"reply,omitempty"`

	// Country, Unit and Entity are in payloads of positions.
	Country string `json:"country,omitempty"`
	Unit    string `json:"unit,omitempty"`
	Entity  string `json:"entity,omitempty"`
	Seed    int64  `json:"seed"`
	// MetricsPort is the port for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}

// Group is a multicast group that the service receives.
type Group struct {
	// Name of the group of nodes, or all.
	Name string `json:"name"`
	// Address of the multicast group.
	Address string `json:"address"`
	// Topic of the messages to it.
	Topic string `json:"topic"`
}

// Addressee is one destination of requests: a node, or a multicast group.
type Addressee struct {
	// Address is host:port.
	Address string `json:"address"`
	// Topic in the message log.
	Topic string `json:"topic"`
	// Group is the name of the multicast group; empty for a node.
	Group string `json:"group,omitempty"`
}

// Message is one message of a script.
type Message struct {
	AtSeconds float64 `json:"atSeconds"`
	// Type, From, To and Text are in the message. To is one of Config.Destinations, each of whose addressees gets a request of its own.
	Type string `json:"type"`
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text,omitempty"`
	// Bytes is the size of the message as JSON, to which its text is filled up with spaces; 0 for no filling.
	Bytes int `json:"bytes,omitempty"`
}

// Push is a periodic message.
type Push struct {
	// To is one of Config.Destinations.
	To            string  `json:"to"`
	PeriodSeconds float64 `json:"periodSeconds"`
	// Payload is geojson, nffi, nffi:N, gps, image:N or bytes:N.
	Payload string `json:"payload"`
	// FirstAfterSeconds is lead and phase: the time from the start to the first message.
	FirstAfterSeconds float64 `json:"firstAfterSeconds"`
}

// Validate returns what is wrong with a configuration, if anything.
func (c Config) Validate() error {
	switch {
	case c.Instance == "":
		return fmt.Errorf("instance is empty: want node/app")
	case TransportOf(c.Transport).Name == "":
		return fmt.Errorf("transport is %q: want one of %s", c.Transport, transportNames())
	case c.Port < 1 || c.Port > 65535:
		return fmt.Errorf("port is %d: want 1 to 65535", c.Port)
	case !(c.TimeoutSeconds > 0 && c.TimeoutSeconds <= 1e6):
		return fmt.Errorf("timeoutSeconds is %v: want more than 0, 1000000 at most", c.TimeoutSeconds)
	case c.Topic == "":
		return fmt.Errorf("topic is empty: want that of messages to this node")
	case len(c.Messages) > 0 && c.Push != nil:
		return fmt.Errorf("messages and push: want one of them")
	}
	if err := c.validateDestinations(); err != nil {
		return err
	}
	for i, m := range c.Messages {
		if !(m.AtSeconds >= 0 && m.AtSeconds <= 1e9) || i > 0 && m.AtSeconds < c.Messages[i-1].AtSeconds {
			return fmt.Errorf("messages[%d].atSeconds is %v: want 0 or more, in order of time", i, m.AtSeconds)
		}
		if len(c.Destinations[m.To]) == 0 {
			return fmt.Errorf("messages[%d].to is %q: want one of destinations", i, m.To)
		}
	}
	if p := c.Push; p != nil {
		if !(p.PeriodSeconds >= 0.001 && p.PeriodSeconds <= 1e6) {
			return fmt.Errorf("push.periodSeconds is %v: want 0.001 to 1000000", p.PeriodSeconds)
		}
		if len(c.Destinations[p.To]) == 0 {
			return fmt.Errorf("push.to is %q: want one of destinations", p.To)
		}
	}
	return nil
}

// IsModel reports whether a kind of payload is a message model, which can be had in several encodings.
func IsModel(kind string) bool { return slices.Contains(encoding.Models(), kind) }

// EncodingOf returns the encoding of a model: the configured one, or the model's default. SOAP carries XML.
func (c Config) EncodingOf(model string) string {
	known := encoding.Encodings(model)
	switch {
	case c.Encoding != "" || len(known) == 0:
		return c.Encoding
	case c.BySOAP() && slices.Contains(known, encoding.XML):
		return encoding.XML
	}
	return known[0]
}

// BySOAP reports whether requests are SOAP envelopes.
func (c Config) BySOAP() bool { return TransportOf(c.Transport).SOAP }

// Codec returns the codec of a message model.
func (c Config) Codec(model string) (*encoding.Codec, error) {
	return encoding.New(model, c.EncodingOf(model), c.Compression)
}

// Limits of what is carried, in bytes.
const (
	// maxEnvelopeBytes of SOAP beside the body.
	maxEnvelopeBytes = 1 << 10
	// maxProxiedBytes is the largest body that a proxy takes.
	maxProxiedBytes = 8 << 20
)

// MaxBytes is the most that the transport carries in one request or response: of a SOAP envelope, else of a body.
func (c Config) MaxBytes(multicast, proxied bool) int {
	t := TransportOf(c.Transport)
	most := t.MaxBytes
	if multicast && t.MaxMulticastBytes != 0 {
		most = t.MaxMulticastBytes
	}
	if proxied {
		most = min(most, maxProxiedBytes)
	}
	if c.SOAP.Envelope == request.EnvelopeEXI {
		most = min(most, exi.MaxBytes)
	}
	return most
}

// MaxPayloadBytes is the largest payload that is of no message model: SOAP has it in base64, a third larger.
func (c Config) MaxPayloadBytes(multicast, proxied bool) int {
	most := c.MaxBytes(multicast, proxied)
	if c.BySOAP() {
		most = (most - maxEnvelopeBytes) / 4 * 3
	}
	return most
}

// transportNames are the names of all transports, for a message.
func transportNames() string {
	names := make([]string, len(Transports))
	for i, t := range Transports {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

// validateDestinations checks the addressees, and that destinations have only them.
func (c Config) validateDestinations() error {
	for i, a := range c.Addressees {
		if host, port, err := net.SplitHostPort(a.Address); err != nil || host == "" || port == "" {
			return fmt.Errorf("addressees[%d].address is %q: want host:port", i, a.Address)
		}
		if a.Topic == "" {
			return fmt.Errorf("addressees[%d].topic is empty: want a topic", i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		for i, index := range c.Destinations[name] {
			if index < 0 || index >= len(c.Addressees) {
				return fmt.Errorf("destinations.%s[%d] is %d: want the index of one of %d addressees", name, i, index, len(c.Addressees))
			}
		}
	}
	return nil
}

// AddresseesOf returns the addressees of a destination of a valid configuration.
func (c Config) AddresseesOf(to string) []Addressee {
	all := make([]Addressee, 0, len(c.Destinations[to]))
	for _, i := range c.Destinations[to] {
		all = append(all, c.Addressees[i])
	}
	return all
}

// AddDestination adds a destination with its addressees, unless it is there.
func (c *Config) AddDestination(to string, addressees []Addressee) {
	if c.Destinations[to] != nil {
		return
	}
	if c.Destinations == nil {
		c.Destinations = map[string][]int{}
	}
	known := map[Addressee]int{}
	for i, a := range c.Addressees {
		known[a] = i
	}
	indexes := []int{}
	for _, a := range addressees {
		i, found := known[a]
		if !found {
			i = len(c.Addressees)
			c.Addressees = append(c.Addressees, a)
		}
		indexes = append(indexes, i)
	}
	c.Destinations[to] = indexes
}
