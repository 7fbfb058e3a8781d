// Package protocol has the form in which a protocol's folder describes it to the operator, the command line and the traffic program.
// A description links no client.
package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// Protocol is a protocol of publishers and subscribers.
type Protocol struct {
	// Name in the API and in configurations, such as mqtt.
	Name string
	// Broadcast: it has no broker, and sends to all nodes of one network.
	Broadcast bool
	// Brokers are the kinds of app that serve it, by their fields in the API, such as mosquitto. An image of the user may serve it too.
	Brokers []string
	// Server says what they are, such as MQTT broker. A node has room for one, as all take the same port. It is empty for a protocol whose
	// brokers all serve one before it in the registry.
	Server string
	// Port of its brokers, of UDP or TCP, and SecurePort that with TLS; 0 for the same.
	Port, SecurePort int
	UDP              bool
	// MinQoS and MaxQoS of a publisher, below 0 without a connection. A subscriber has 0 at least.
	MinQoS, MaxQoS int
	// MaxPayloadBytes is the largest payload, for any topic.
	MaxPayloadBytes int
	// MaxTopicBytes is the longest topic or filter in UTF-8; 0 for that of MQTT. NotInTopics is what none may contain; empty for nothing.
	MaxTopicBytes int
	NotInTopics   string
	// Multicast are its transports that ask nobody for a connection.
	Multicast []string
	// Versions: a client has a version of MQTT.
	Versions bool
	// CLibrary: its client needs a library that is not written in Go, which only the image of ZeroMQ has.
	CLibrary bool
}

// Connectionless reports whether a client can publish once its socket is open, as it asks nobody for a connection.
func (p Protocol) Connectionless(transport string, qos int) bool {
	return p.Broadcast || qos < 0 || slices.Contains(p.Multicast, transport)
}

// CheckTopic returns an error for a topic or filter of MQTT that the protocol cannot carry. Its words follow the topic.
func (p Protocol) CheckTopic(topic string) error {
	switch {
	case p.MaxTopicBytes > 0 && len(topic) > p.MaxTopicBytes:
		return fmt.Errorf("has %d bytes: %s carries at most %d", len(topic), p.Name, p.MaxTopicBytes)
	case p.NotInTopics != "" && strings.Contains(topic, p.NotInTopics):
		return fmt.Errorf("has %s inside: %s takes that for another character", p.NotInTopics, p.Name)
	}
	return nil
}

// Transport is a protocol of requests and responses, between messaging services.
type Transport struct {
	// Name in the API and in configurations, such as coap-tcp.
	Name string
	// Port of services, of UDP or TCP. They do not run as root.
	Port int
	UDP  bool
	// MaxBytes is the largest request or response: of a SOAP envelope, else of a body. MaxMulticastBytes is that of a request to a
	// group; 0 without multicast.
	MaxBytes, MaxMulticastBytes int
	// HTTP: a proxy carries it, and each request has a response.
	HTTP bool
	// SOAP: requests are SOAP envelopes.
	SOAP bool
}

// Security is the security of the connection to the broker. Empty parts are not used.
type Security struct {
	// CAFile has the CA certificates, as PEM, that verify the broker's. It turns TLS on.
	CAFile string `json:"caFile,omitempty"`
	// UsernameFile and PasswordFile have the client's user name and password.
	UsernameFile string `json:"usernameFile,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
}
