package wsn

import (
	"errors"
	"fmt"
	"net"
)

// BrokerConfig is a broker's configuration, a JSON file.
type BrokerConfig struct {
	// Instance is node/app. The metrics have it.
	Instance string `json:"instance"`
	// Listen is the address of the service, such as :8080.
	Listen string `json:"listen"`
	// CertFile and KeyFile, as PEM, turn HTTPS on; both or none.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// CAFile has the CA certificates for consumers with https addresses. Without it the broker refuses such consumers.
	CAFile string `json:"caFile,omitempty"`
	// UsernameFile and PasswordFile have the clients' login (HTTP basic authentication); both or none.
	UsernameFile string `json:"usernameFile,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
	// MetricsPort is the port for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
	Limits
}

// Limits are a broker's limits. 0 selects the default.
type Limits struct {
	// QueueMessages is the most messages in a queue of one subscriber or pull point, by default 1000. Further ones are dropped.
	QueueMessages int `json:"queueMessages,omitempty"`
	// HeldMiB is the most MiB of queued and last messages, by default 256. The oldest last ones give way; then further ones are refused.
	HeldMiB int `json:"heldMiB,omitempty"`
	// Subscriptions is the limit of subscriptions, pull points and registered publishers each, by default 20000.
	Subscriptions int `json:"subscriptions,omitempty"`
	// Topics is the most topics whose last message is kept, by default 10000. The topic with the oldest message goes first.
	Topics int `json:"topics,omitempty"`
	// Failures is how many consecutive failed deliveries end a subscription, by default 20.
	Failures int `json:"failures,omitempty"`
	// Connections is the most simultaneous connections, by default 12000. Further ones wait.
	Connections int `json:"connections,omitempty"`
}

// WithDefaults replaces zeros.
func (l Limits) WithDefaults() Limits {
	for _, d := range []struct {
		value  *int
		preset int
	}{{&l.QueueMessages, 1000}, {&l.HeldMiB, 256}, {&l.Subscriptions, 20000}, {&l.Topics, 10000}, {&l.Failures, 20}, {&l.Connections, 12000}} {
		if *d.value == 0 {
			*d.value = d.preset
		}
	}
	return l
}

// Validate returns what is wrong with a configuration, if anything.
func (c BrokerConfig) Validate() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("listen is %q: want host:port or :port", c.Listen)
	}
	for name, value := range map[string]int{
		"queueMessages": c.QueueMessages, "heldMiB": c.HeldMiB, "subscriptions": c.Subscriptions, "topics": c.Topics, "failures": c.Failures, "connections": c.Connections,
	} {
		if value < 0 {
			return fmt.Errorf("%s is %d: want a number from 1, or 0 for the default", name, value)
		}
	}
	switch {
	case c.Instance == "":
		return errors.New("instance is empty: want node/app")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return fmt.Errorf("certFile is %q and keyFile %q: want both or none", c.CertFile, c.KeyFile)
	case (c.UsernameFile == "") != (c.PasswordFile == ""):
		return fmt.Errorf("usernameFile is %q and passwordFile %q: want both or none", c.UsernameFile, c.PasswordFile)
	case c.MetricsPort < 0 || c.MetricsPort > 65535:
		return fmt.Errorf("metricsPort is %d: want 0 to 65535", c.MetricsPort)
	}
	return nil
}
