// Package zeromq describes ZeroMQ's publish/subscribe to all programs, and configures its broker. Client, broker and library are in its folders.
package zeromq

import (
	"fmt"
	"slices"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/protocol"
)

// Protocol has no port at IANA; its port is a common one. Subscribers use the next port.
var Protocol = protocol.Protocol{
	Name: "zeromq", Server: "ZeroMQ broker", Brokers: []string{"zeromqBroker"}, Port: 5555, MaxPayloadBytes: 268_435_000, CLibrary: true,
	Multicast: []string{TransportPGM, TransportPGMRaw},
}

// Transports of ZeroMQ.
const (
	TransportTCP = "tcp"
	// TransportPGM is PGM in UDP.
	TransportPGM = "pgm"
	// TransportPGMRaw is PGM by raw sockets, which take CAP_NET_RAW.
	TransportPGMRaw = "pgm-raw"
)

// Multicast reports whether a transport is PGM, in UDP or by raw sockets.
func Multicast(transport string) bool {
	return slices.Contains(Protocol.Multicast, transport)
}

// MinPGMKilobits is the lowest rate of a PGM sender in kbit/s: one packet of 1500 bytes a second. libpgm ends the process below it.
const MinPGMKilobits = 12

// PGM configures PGM (RFC 3208) by multicast on the client's interface. Groups are IPv4 address:port.
type PGM struct {
	// Publish is the group of a publisher. Each publisher of a node needs another port: requests for repetition come to that port
	// and reach only one of the sockets on it.
	Publish string `json:"publish,omitempty"`
	// Subscribe is the group to which the broker sends.
	Subscribe string `json:"subscribe,omitempty"`
	// RateKilobits is a sender's highest rate in kbit/s.
	RateKilobits int `json:"rateKilobits"`
}

// BrokerConfig is the operator's configuration of a ZeroMQ broker, a JSON file.
type BrokerConfig struct {
	// Instance is node/app.
	Instance string `json:"instance"`
	// Transport is tcp, pgm or pgm-raw.
	Transport string `json:"transport"`
	// Address is the TCP address, such as 0.0.0.0. Port is for publishers; the next port is for subscribers.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	// PGM configures pgm and pgm-raw.
	PGM *BrokerPGM `json:"pgm,omitempty"`
	// MetricsPort is the port for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}

// BrokerPGM configures a ZeroMQ broker by multicast.
type BrokerPGM struct {
	Interface string `json:"interface"`
	// Publishers are the groups of publishers, Subscribers is the group to which the broker sends.
	Publishers  []string `json:"publishers"`
	Subscribers string   `json:"subscribers"`
	// RateKilobits is the broker's highest rate in kbit/s, and that of its publishers.
	RateKilobits int `json:"rateKilobits"`
	// Filters are those of all subscribers. The broker forwards no other message: multicast does not show it who subscribes.
	Filters []string `json:"filters"`
}

// Validate returns what is wrong with a configuration, if anything.
func (c BrokerConfig) Validate() error {
	switch {
	case c.Transport == TransportTCP && (c.Port < 1 || c.Port > 65534):
		return fmt.Errorf("port is %d: want 1 to 65534, as subscribers have the port above", c.Port)
	case c.Transport == TransportTCP:
		return nil
	case !Multicast(c.Transport):
		return fmt.Errorf("transport is %q: want %s, %s or %s", c.Transport, TransportTCP, TransportPGM, TransportPGMRaw)
	case c.PGM == nil:
		return fmt.Errorf("pgm is missing: transport %s wants it", c.Transport)
	case c.PGM.Interface == "" || len(c.PGM.Publishers) == 0 || c.PGM.Subscribers == "":
		return fmt.Errorf("pgm.interface is %q, with %d groups of publishers and %q of subscribers: want an interface and one group each at least",
			c.PGM.Interface, len(c.PGM.Publishers), c.PGM.Subscribers)
	case c.PGM.RateKilobits < MinPGMKilobits:
		return fmt.Errorf("pgm.rateKilobits is %d: want %d at least", c.PGM.RateKilobits, MinPGMKilobits)
	}
	for _, filter := range c.PGM.Filters {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return fmt.Errorf("pgm.filters: %w", err)
		}
	}
	return nil
}
