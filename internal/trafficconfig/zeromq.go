package trafficconfig

import (
	"fmt"

	"vignette.dev/vignette/internal/traffic/mqttwire"
)

// Transports of ZeroMQ.
const (
	TransportTCP = "tcp"
	TransportPGM = "pgm"
)

// LeastPGMKilobits per second that a sender by PGM may be given: one packet of 1500 bytes a second. At less libpgm ends the process.
const LeastPGMKilobits = 12

// PGM is how ZeroMQ's messages go by multicast: PGM (RFC 3208) in UDP, on Config.Interface. Groups are IPv4 address:port.
type PGM struct {
	// Publish is the group that a publisher sends to. No two publishers of a node have the same port: the requests to repeat what was lost,
	// which come to that port, would reach only one of them.
	Publish string `json:"publish,omitempty"`
	// Subscribe is the group that the broker sends to.
	Subscribe string `json:"subscribe,omitempty"`
	// RateKilobits per second that a sender may use.
	RateKilobits int `json:"rateKilobits"`
}

// ZeroMQBroker is what the operator tells a ZeroMQ broker, as a JSON file.
type ZeroMQBroker struct {
	// Instance is node/app.
	Instance string `json:"instance"`
	// Transport is tcp or pgm.
	Transport string `json:"transport"`
	// Address of TCP, such as 0.0.0.0, and the port of publishers; that of subscribers is the one above.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	// PGM for that transport.
	PGM *BrokerPGM `json:"pgm,omitempty"`
	// MetricsPort for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}

// BrokerPGM is what a ZeroMQ broker of that transport has.
type BrokerPGM struct {
	Interface string `json:"interface"`
	// Publishers are the groups that publishers send to, Subscribers is the one that the broker sends to.
	Publishers  []string `json:"publishers"`
	Subscribers string   `json:"subscribers"`
	// RateKilobits per second that the broker may use; its publishers have the same.
	RateKilobits int `json:"rateKilobits"`
	// Filters of all subscribers: nothing else is passed on. Multicast does not tell the broker who listens.
	Filters []string `json:"filters"`
}

// Validate says what is wrong with a configuration, if anything.
func (c ZeroMQBroker) Validate() error {
	switch {
	case c.Transport == TransportTCP && (c.Port < 1 || c.Port > 65534):
		return fmt.Errorf("port is %d: want 1 to 65534, as subscribers have the port above", c.Port)
	case c.Transport == TransportTCP:
		return nil
	case c.Transport != TransportPGM:
		return fmt.Errorf("transport is %q: want %s or %s", c.Transport, TransportTCP, TransportPGM)
	case c.PGM == nil:
		return fmt.Errorf("pgm is missing: transport pgm wants it")
	case c.PGM.Interface == "" || len(c.PGM.Publishers) == 0 || c.PGM.Subscribers == "":
		return fmt.Errorf("pgm.interface is %q, with %d groups of publishers and %q of subscribers: want an interface and one group each at least",
			c.PGM.Interface, len(c.PGM.Publishers), c.PGM.Subscribers)
	case c.PGM.RateKilobits < LeastPGMKilobits:
		return fmt.Errorf("pgm.rateKilobits is %d: want %d at least", c.PGM.RateKilobits, LeastPGMKilobits)
	}
	for _, filter := range c.PGM.Filters {
		if err := mqttwire.ValidFilter(filter); err != nil {
			return fmt.Errorf("pgm.filters: %w", err)
		}
	}
	return nil
}
