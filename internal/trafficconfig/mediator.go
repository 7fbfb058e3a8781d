package trafficconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mediator is the configuration of a mediator, the JSON file named by `traffic mediate --config FILE`.
type Mediator struct {
	// Instance is node/app.
	Instance string `json:"instance"`
	// Legs are connections to brokers.
	Legs []Leg `json:"legs"`
	// QueueMessages and QueueBytes bound what waits for one leg; by default 10000 messages and 64 MiB.
	QueueMessages int `json:"queueMessages,omitempty"`
	QueueBytes    int `json:"queueBytes,omitempty"`
	// Seed of back-offs.
	Seed int64 `json:"seed"`
	// MetricsPort for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}

// Leg of a mediator: a connection to a broker.
type Leg struct {
	// Name of the leg in metrics and messages for people, such as amqp@hub/rabbit.
	Name string `json:"name"`
	// Protocol, Version, Broker, Security, Transport and WSN are as in Config.
	Protocol  string    `json:"protocol"`
	Version   string    `json:"version,omitempty"`
	Broker    string    `json:"broker"`
	Security  *Security `json:"security,omitempty"`
	Transport string    `json:"transport,omitempty"`
	WSN       *WSN      `json:"wsn,omitempty"`
	// QoS of what is subscribed and published here.
	QoS int `json:"qos"`
	// Topics are MQTT topic filters of what is taken from this leg, without the prefix.
	Topics []string `json:"topics"`
	// Prefix that topics have on this leg only: taken away from what comes in, and put before what goes out. It ends with a slash.
	Prefix string `json:"prefix,omitempty"`
}

// Validate says what is wrong with a configuration, if anything.
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
	most, known := maxQoS[l.Protocol]
	switch {
	case l.Name == "":
		return fmt.Errorf("name is empty")
	case !known || l.Protocol == ProtocolMQTTUDP:
		return fmt.Errorf("protocol is %q: want one with a broker, of %s", l.Protocol, strings.Join(slices.Sorted(maps.Keys(maxQoS)), ", "))
	case l.Broker == "":
		return fmt.Errorf("broker is empty: want host:port")
	case l.QoS < 0 || l.QoS > most:
		return fmt.Errorf("qos is %d: protocol %s has 0 to %d", l.QoS, l.Protocol, most)
	case len(l.Topics) == 0:
		return fmt.Errorf("topics is empty: want a topic filter, such as #")
	case strings.ContainsAny(l.Prefix, "+#") || l.Prefix != "" && !strings.HasSuffix(l.Prefix, "/"):
		return fmt.Errorf("prefix is %q: want levels that each end with a slash, without + and #", l.Prefix)
	}
	return nil
}
