package mqttsn

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/protocol"
)

// Modes of a gateway.
const (
	Transparent = "Transparent"
	Aggregating = "Aggregating"
)

// GatewayConfig is a gateway's configuration.
type GatewayConfig struct {
	// Name is the gateway's name, with which it logs in to the broker for its own connection.
	Name string `json:"name"`
	// Listen is the address and UDP port, by default :1884.
	Listen string `json:"listen,omitempty"`
	// GatewayID is the id in ADVERTISE and GWINFO; 1 by default.
	GatewayID byte `json:"gatewayId,omitempty"`
	// Mode is Transparent (the default) or Aggregating.
	Mode string `json:"mode,omitempty"`
	// Broker is host:port of the MQTT broker, Security that of the connections to it; nil for none.
	Broker   string             `json:"broker"`
	Security *protocol.Security `json:"security,omitempty"`
	// PredefinedTopics are topics by id, in decimal, 1 to 65534. Clients may use them without REGISTER. QoS -1 has only these and short names.
	PredefinedTopics map[string]string `json:"predefinedTopics,omitempty"`
	// AdvertiseSeconds is the time between two ADVERTISE broadcasts; 0 for none.
	AdvertiseSeconds int `json:"advertiseSeconds,omitempty"`
	// AdvertiseNotOn is an interface without ADVERTISE broadcasts, as it is outside the experiment's network.
	AdvertiseNotOn string `json:"advertiseNotOn,omitempty"`
	// MetricsPort is the port for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
	// Seed seeds the back-off's jitter.
	Seed int64 `json:"seed"`

	// Limits. 0 selects the default.

	// MaxClients is the most clients at once; by default 256.
	MaxClients int `json:"maxClients,omitempty"`
	// MaxTopics is the most topic ids of one client; by default 20000. All clients together have at most ten times as many.
	MaxTopics int `json:"maxTopics,omitempty"`
	// MaxQueued is the most messages queued for one client, which may be asleep; by default 1000.
	MaxQueued int `json:"maxQueued,omitempty"`
	// MaxQueuedBytes is the most bytes of content queued for all clients; by default 64 MiB.
	MaxQueuedBytes int `json:"maxQueuedBytes,omitempty"`
	// Window is the most unacknowledged messages of QoS 1 and 2, and registrations, of a client; by default 10.
	Window int `json:"window,omitempty"`
	// RetrySeconds and Retries are for packets that a client does not acknowledge; by default 10 and 5 (the specification's T_RETRY and N_RETRY).
	RetrySeconds float64 `json:"retrySeconds,omitempty"`
	Retries      int     `json:"retries,omitempty"`
}

// Validate returns what is wrong with a configuration, if anything.
func (c GatewayConfig) Validate() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("name is empty: want the gateway's name at the broker")
	case c.Mode != "" && c.Mode != Transparent && c.Mode != Aggregating:
		return fmt.Errorf("mode is %q: want %s or %s", c.Mode, Transparent, Aggregating)
	case c.AdvertiseSeconds < 0 || c.AdvertiseSeconds > 65535:
		return fmt.Errorf("advertiseSeconds is %d: want 0 to 65535", c.AdvertiseSeconds)
	case c.MetricsPort < 0 || c.MetricsPort > 65535:
		return fmt.Errorf("metricsPort is %d: want 0 to 65535", c.MetricsPort)
	case !(c.RetrySeconds >= 0 && c.RetrySeconds <= 3600):
		return fmt.Errorf("retrySeconds is %v: want 0 to 3600", c.RetrySeconds)
	}
	if host, port, err := net.SplitHostPort(c.Broker); err != nil || host == "" || port == "" {
		return fmt.Errorf("broker %q: want host:port", c.Broker)
	}
	for name, n := range map[string]int{"maxClients": c.MaxClients, "maxTopics": c.MaxTopics, "maxQueued": c.MaxQueued,
		"maxQueuedBytes": c.MaxQueuedBytes, "window": c.Window, "retries": c.Retries} {
		if n < 0 {
			return fmt.Errorf("%s is %d: want 1 or more, or 0 for the default", name, n)
		}
	}
	if _, err := c.Address(); err != nil {
		return err
	}
	_, err := c.TopicsByID()
	return err
}

// Address is where the gateway listens.
func (c GatewayConfig) Address() (netip.AddrPort, error) {
	text := cmp.Or(c.Listen, ":1884")
	if text[0] == ':' {
		text = "0.0.0.0" + text
	}
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		return address, fmt.Errorf("listen is %q: want address:port or :port", c.Listen)
	}
	return address, nil
}

// TopicsByID are the predefined topics.
func (c GatewayConfig) TopicsByID() (map[uint16]string, error) {
	topics := make(map[uint16]string, len(c.PredefinedTopics))
	for text, topic := range c.PredefinedTopics {
		id, err := strconv.ParseUint(text, 10, 16)
		if err != nil || id == 0 || id == ReservedTopicID {
			return nil, fmt.Errorf("predefinedTopics has the id %q: want 1 to %d", text, ReservedTopicID-1)
		}
		if err := mqtttopic.Valid(topic); err != nil {
			return nil, fmt.Errorf("predefinedTopics[%s]: %w", text, err)
		}
		topics[uint16(id)] = topic
	}
	return topics, nil
}

// ReservedTopicID is no topic's id, nor is 0 (5.3.11).
const ReservedTopicID = 0xFFFF

// WithDefaults replaces zeros.
func (c GatewayConfig) WithDefaults() GatewayConfig {
	c.MaxClients = cmp.Or(c.MaxClients, 256)
	c.MaxTopics = min(cmp.Or(c.MaxTopics, 20000), ReservedTopicID-1)
	c.MaxQueued = cmp.Or(c.MaxQueued, 1000)
	c.MaxQueuedBytes = cmp.Or(c.MaxQueuedBytes, 64<<20)
	c.Window = cmp.Or(c.Window, 10)
	c.Retries = cmp.Or(c.Retries, 5)
	c.RetrySeconds = cmp.Or(c.RetrySeconds, 10)
	c.GatewayID = cmp.Or(c.GatewayID, 1)
	c.Mode = cmp.Or(c.Mode, Transparent)
	return c
}

// Retry is the time after which a packet without an acknowledgement is sent again.
func (c GatewayConfig) Retry() time.Duration {
	return time.Duration(c.RetrySeconds * float64(time.Second))
}
