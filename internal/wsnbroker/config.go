// Package wsnbroker is a broker of WS-Notification 1.3: publishers send Notify to it, consumers subscribe and are sent what matches, or
// fetch it from pull points. It keeps the last message of each topic for GetCurrentMessage, and nothing over its own end.
package wsnbroker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"vignette.dev/vignette/internal/appinstance"
)

// Config of a broker, as a JSON file.
type Config struct {
	// Instance is node/app; it goes into the metrics.
	Instance string `json:"instance"`
	// Listen is the address of the service, such as :8080.
	Listen string `json:"listen"`
	// CertFile and KeyFile, as PEM, make the service HTTPS; both or none.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// CAFile has the certificates that those of consumers with https addresses are checked against; without it such consumers are refused.
	CAFile string `json:"caFile,omitempty"`
	// UsernameFile and PasswordFile have what clients log in with (HTTP basic authentication); both or none.
	UsernameFile string `json:"usernameFile,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
	// MetricsPort for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
	Limits
}

// Limits of a broker; 0 is the default of each.
type Limits struct {
	// QueueMessages that wait for one subscriber or in one pull point, 1000; what comes then is dropped.
	QueueMessages int `json:"queueMessages,omitempty"`
	// HeldMiB are those of messages that wait or are the last of their topic, 256; what comes then is refused.
	HeldMiB int `json:"heldMiB,omitempty"`
	// Subscriptions, pull points and registered publishers, 20000 each.
	Subscriptions int `json:"subscriptions,omitempty"`
	// Topics whose last message is kept, 10000; the one that was heard of longest ago goes.
	Topics int `json:"topics,omitempty"`
	// Failures in a row to deliver to a consumer that end its subscription, 20.
	Failures int `json:"failures,omitempty"`
	// Connections at once, 12000; those beyond wait.
	Connections int `json:"connections,omitempty"`
}

func (l Limits) withDefaults() Limits {
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

// Validate says what is wrong with a configuration, if anything.
func (c Config) Validate() error {
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

// login that clients must have; empty for none.
func (c Config) login() (username, password string, err error) {
	if c.UsernameFile == "" {
		return "", "", nil
	}
	name, err1 := os.ReadFile(c.UsernameFile)
	word, err2 := os.ReadFile(c.PasswordFile)
	if err := errors.Join(err1, err2); err != nil {
		return "", "", fmt.Errorf("login: %w", err)
	}
	return strings.TrimRight(string(name), "\r\n"), strings.TrimRight(string(word), "\r\n"), nil
}

// Serve runs the broker of a configuration file until ctx ends.
func Serve(ctx context.Context, path string) error {
	config, err := appinstance.ReadConfig[Config](path)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.Listen)
	if err != nil {
		return err
	}
	b, err := New(config)
	if err != nil {
		return err
	}
	if err := b.metrics.serve(ctx, config.MetricsPort); err != nil {
		fmt.Fprintf(os.Stderr, "wsn-broker %s: %v: no metrics are served\n", config.Instance, err)
	}
	fmt.Fprintf(os.Stderr, "wsn-broker %s: listens on %s\n", config.Instance, listener.Addr())
	return b.Run(ctx, listener)
}

// Times of connections. A message of 2 kB over a link of 9.8 kbit/s with a full queue takes most of the minute.
const (
	headerTimeout = time.Minute
	readTimeout   = 2 * time.Minute
	writeTimeout  = 3 * time.Minute
	idleTimeout   = 10 * time.Minute
	maxHeader     = 16 << 10
)

// Run serves connections until ctx ends.
func (b *Broker) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: b, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: quiet}
	defer context.AfterFunc(ctx, func() {
		b.stop()
		server.Close()
	})()
	go b.expire(ctx)
	listener = limited(listener, b.limits.Connections)
	err := error(nil)
	if b.config.CertFile != "" {
		err = server.ServeTLS(listener, b.config.CertFile, b.config.KeyFile)
	} else {
		err = server.Serve(listener)
	}
	b.stop()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
