package trafficconfig

import (
	"fmt"
	"strings"

	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/wsn"
)

// Mediator is the configuration of a mediator, the JSON file named by `traffic mediate --config FILE`.
type Mediator struct {
	// Instance is node/app.
	Instance string `json:"instance"`
	// Legs are connections to brokers.
	Legs []Leg `json:"legs"`
	// QueueMessages and QueueBytes limit the queue of one leg; by default 10000 messages and 64 MiB.
	QueueMessages int `json:"queueMessages,omitempty"`
	QueueBytes    int `json:"queueBytes,omitempty"`
	// Seed seeds the back-offs.
	Seed int64 `json:"seed"`
	// MetricsPort is the port for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}

// Leg is a mediator's connection to a broker.
type Leg struct {
	// Name is the leg's name in metrics and log messages, such as amqp@hub/rabbit.
	Name string `json:"name"`
	// Protocol, Version, Broker, Security, Transport and WSN are as in Config.
	Protocol  string             `json:"protocol"`
	Version   string             `json:"version,omitempty"`
	Broker    string             `json:"broker"`
	Security  *protocol.Security `json:"security,omitempty"`
	Transport string             `json:"transport,omitempty"`
	WSN       *wsn.Options       `json:"wsn,omitempty"`
	// QoS is the quality of service of this leg's subscriptions and messages.
	QoS int `json:"qos"`
	// Topics are MQTT topic filters of the messages taken from this leg, without the prefix.
	Topics []string `json:"topics"`
	// Prefix is the prefix of topics on this leg only: removed from received topics, added to published ones. It ends with a slash.
	Prefix string `json:"prefix,omitempty"`
}

// Validate returns what is wrong with a configuration, if anything.
func (m Mediator) Validate() error {
	switch {
	case m.Instance == "":
		return fmt.Errorf("instance is empty: want node/app")
	case len(m.Legs) < 2:
		return fmt.Errorf("legs are %d: want two at least", len(m.Legs))
	case m.QueueMessages < 0 || m.QueueBytes < 0:
		return fmt.Errorf("queueMessages is %d and queueBytes %d: want 0, for the default, or more", m.QueueMessages, m.QueueBytes)
	case m.MetricsPort < 0 || m.MetricsPort > 65535:
		return fmt.Errorf("metricsPort is %d: want 0 to 65535", m.MetricsPort)
	}
	names := map[string]bool{}
	for i, leg := range m.Legs {
		if err := leg.validate(); err != nil {
			return fmt.Errorf("legs[%d]: %w", i, err)
		}
		if names[leg.Name] {
			return fmt.Errorf("legs[%d]: name %q is another leg's too", i, leg.Name)
		}
		names[leg.Name] = true
	}
	return nil
}

func (l Leg) validate() error {
	described := ProtocolOf(l.Protocol)
	switch {
	case l.Name == "":
		return fmt.Errorf("name is empty")
	case described.Name == "" || described.Broadcast:
		return fmt.Errorf("protocol is %q: want one with a broker, of %s", l.Protocol, protocolNames())
	case l.Broker == "":
		return fmt.Errorf("broker is empty: want host:port")
	case l.QoS < 0 || l.QoS > described.MaxQoS:
		return fmt.Errorf("qos is %d: protocol %s has 0 to %d", l.QoS, l.Protocol, described.MaxQoS)
	case len(l.Topics) == 0:
		return fmt.Errorf("topics is empty: want a topic filter, such as #")
	case strings.ContainsAny(l.Prefix, "+#") || l.Prefix != "" && !strings.HasSuffix(l.Prefix, "/"):
		return fmt.Errorf("prefix is %q: want levels that each end with a slash, without + and #", l.Prefix)
	}
	return nil
}
