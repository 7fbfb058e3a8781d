package zeromqbroker

import (
	"fmt"

	"vignette.dev/vignette/internal/traffic/mqttwire"
	"vignette.dev/vignette/internal/trafficconfig"
)

// Config of a broker, as the operator writes it.
type Config struct {
	// Instance is node/app.
	Instance string `json:"instance"`
	// Transport is tcp or pgm.
	Transport string `json:"transport"`
	// Address of TCP, such as 0.0.0.0, and the port of publishers; that of subscribers is the one above.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	// PGM for that transport.
	PGM *PGM `json:"pgm,omitempty"`
	// MetricsPort for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}

// PGM is what a broker of that transport has.
type PGM struct {
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
func (c Config) Validate() error {
	switch {
	case c.Transport == trafficconfig.TransportTCP && (c.Port < 1 || c.Port > 65534):
		return fmt.Errorf("port is %d: want 1 to 65534, as subscribers have the port above", c.Port)
	case c.Transport == trafficconfig.TransportTCP:
		return nil
	case c.Transport != trafficconfig.TransportPGM:
		return fmt.Errorf("transport is %q: want %s or %s", c.Transport, trafficconfig.TransportTCP, trafficconfig.TransportPGM)
	case c.PGM == nil:
		return fmt.Errorf("pgm is missing: transport pgm wants it")
	case c.PGM.Interface == "" || len(c.PGM.Publishers) == 0 || c.PGM.Subscribers == "":
		return fmt.Errorf("pgm.interface is %q, with %d groups of publishers and %q of subscribers: want an interface and one group each at least",
			c.PGM.Interface, len(c.PGM.Publishers), c.PGM.Subscribers)
	case c.PGM.RateKilobits < 1:
		return fmt.Errorf("pgm.rateKilobits is %d: want 1 at least", c.PGM.RateKilobits)
	}
	for _, filter := range c.PGM.Filters {
		if err := mqttwire.ValidFilter(filter); err != nil {
			return fmt.Errorf("pgm.filters: %w", err)
		}
	}
	return nil
}
