// Package proxyconfig is the operator's configuration of one proxy of a pair, a JSON file named by `traffic proxy --config FILE`.
package proxyconfig

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// Protocols between the two proxies.
const (
	ProtocolHTTP = "http"
	ProtocolCoAP = "coap"
	ProtocolAMQP = "amqp"
)

// Compressions of what the pair carries.
const (
	CompressionNone = "none"
	CompressionGzip = "gzip"
	CompressionZstd = "zstd"
)

var (
	protocols    = []string{ProtocolHTTP, ProtocolCoAP, ProtocolAMQP}
	compressions = []string{CompressionNone, CompressionGzip, CompressionZstd}
)

// coapBodyBytes is the largest body over CoAP, whose implementation here carries 16 MiB with header and trailer.
const coapBodyBytes = 15 << 20

// Config configures one proxy. It is near its clients, far from them (near the services), or both for clients on both sides of a link.
type Config struct {
	// Instance is node/app. Metrics and the message log have it.
	Instance string `json:"instance,omitempty"`
	// Topic of the proxy's records in the message log. Without one there are none.
	Topic string `json:"topic,omitempty"`
	// Protocol between the proxies: http, coap or amqp.
	Protocol string `json:"protocol"`
	// Compression of each request and response as a whole: none (default), gzip or zstd.
	Compression string `json:"compression,omitempty"`
	// Folder for requests and responses, on a disk that outlives the process. Every proxy has its own.
	Folder string `json:"folder"`

	Near *Near `json:"near,omitempty"`
	Far  *Far  `json:"far,omitempty"`

	CoAP CoAP  `json:"coap,omitzero"`
	AMQP *AMQP `json:"amqp,omitempty"`

	Retry  Retry  `json:"retry,omitzero"`
	Limits Limits `json:"limits,omitzero"`
	// MetricsPort is the port for Prometheus (path /metrics); 0 for none.
	MetricsPort int `json:"metricsPort,omitempty"`
}

// Near is the part of the proxy that HTTP clients use.
type Near struct {
	// Listen is host:port where HTTP clients find their proxy, such as :3128.
	Listen string `json:"listen"`
	// Peer is the far proxy's host:port. AMQP has none.
	Peer string `json:"peer,omitempty"`
	// Queue is the far proxy's queue, for AMQP.
	Queue string `json:"queue,omitempty"`
	// DeadlineSeconds is the longest time from acceptance to the response, 300 by default. A client may shorten it (field Proxy-Timeout).
	DeadlineSeconds float64 `json:"deadlineSeconds,omitempty"`
}

// Far is the part of the proxy that calls services.
type Far struct {
	// Listen is host:port for the near proxy, such as :3129. AMQP has none.
	Listen string `json:"listen,omitempty"`
	// Queue is the name of the queue from which the proxy takes requests, for AMQP.
	Queue string `json:"queue,omitempty"`
}

// CoAP configures CoAP over UDP; zero values are the defaults of RFC 7252 (section 4.8) and RFC 7959.
type CoAP struct {
	// ACKTimeoutSeconds is 2 by default.
	ACKTimeoutSeconds float64 `json:"ackTimeoutSeconds,omitempty"`
	// MaxRetransmit is 4 by default; it is a pointer as 0 means none.
	MaxRetransmit *int `json:"maxRetransmit,omitempty"`
	// BlockBytes is the size of blocks, a power of 2 from 16 to 1024; 1024 by default.
	BlockBytes int `json:"blockBytes,omitempty"`
	// NSTART is the most requests to the far proxy, or blocks, that wait for their acknowledgement, 1 by default. More may overload a
	// narrow link, as the back-off of each message is the only congestion control (RFC 7252, section 4.7).
	NSTART int `json:"nstart,omitempty"`
}

// AMQP configures AMQP 0-9-1 through a broker.
type AMQP struct {
	// Broker is host:port.
	Broker string `json:"broker"`
	// UsernameFile and PasswordFile have the login; guest without them.
	UsernameFile string `json:"usernameFile,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
	// CAFile has the CA certificates, as PEM, that verify the broker's. It turns TLS on.
	CAFile string `json:"caFile,omitempty"`
}

// Retry says when a request that the link did not carry is carried again: exponential back-off with a cap.
type Retry struct {
	// FirstSeconds is the wait after the first failure, 0.5 by default.
	FirstSeconds float64 `json:"firstSeconds,omitempty"`
	// Factor multiplies it with each further failure, 2 by default.
	Factor float64 `json:"factor,omitempty"`
	// MaxSeconds is the longest wait, 10 by default.
	MaxSeconds float64 `json:"maxSeconds,omitempty"`
	// SilenceSeconds is how long a connection over the link may have unacknowledged data before it counts as lost, 60 by default.
	// It has to be longer than what waits in the link's queue takes.
	SilenceSeconds float64 `json:"silenceSeconds,omitempty"`
}

// Limits of one proxy; 0 selects the default.
type Limits struct {
	// Requests is the most accepted requests without a response, 10000 by default. Further ones are refused.
	Requests int `json:"requests,omitempty"`
	// DiskMiB is the most MiB of requests and responses in the folder, 400 by default. Further requests are refused. A pod whose folder
	// exceeds the limit that Kubernetes knows is evicted, so this has to be less: near and far part of a proxy each may take as much.
	DiskMiB int `json:"diskMiB,omitempty"`
	// BodyBytes is the largest body of a request or response, 8 MiB by default.
	BodyBytes int `json:"bodyBytes,omitempty"`
	// Concurrent is the most requests that are under way over the link, or at services, 8 by default.
	Concurrent int `json:"concurrent,omitempty"`
}

// WithDefaults returns the configuration with all defaults filled in.
func (c Config) WithDefaults() Config {
	if c.Compression == "" {
		c.Compression = CompressionNone
	}
	if c.Near != nil {
		near := *c.Near
		preset(&near.DeadlineSeconds, 300)
		c.Near = &near
	}
	preset(&c.CoAP.ACKTimeoutSeconds, 2)
	preset(&c.CoAP.BlockBytes, 1024)
	preset(&c.CoAP.NSTART, 1)
	if c.CoAP.MaxRetransmit == nil {
		c.CoAP.MaxRetransmit = new(int)
		*c.CoAP.MaxRetransmit = 4
	}
	preset(&c.Retry.FirstSeconds, 0.5)
	preset(&c.Retry.Factor, 2)
	preset(&c.Retry.MaxSeconds, 10)
	preset(&c.Retry.SilenceSeconds, 60)
	preset(&c.Limits.Requests, 10_000)
	preset(&c.Limits.DiskMiB, 400)
	preset(&c.Limits.BodyBytes, 8<<20)
	preset(&c.Limits.Concurrent, 8)
	return c
}

func preset[T int | float64](value *T, standard T) {
	if *value == 0 {
		*value = standard
	}
}

// Validate returns what is wrong with a configuration, if anything.
func (c Config) Validate() error {
	switch {
	case !slices.Contains(protocols, c.Protocol):
		return fmt.Errorf("protocol is %q: want one of %s", c.Protocol, strings.Join(protocols, ", "))
	case c.Compression != "" && !slices.Contains(compressions, c.Compression):
		return fmt.Errorf("compression is %q: want one of %s", c.Compression, strings.Join(compressions, ", "))
	case c.Folder == "":
		return fmt.Errorf("folder is empty: want a folder for requests and responses")
	case c.Near == nil && c.Far == nil:
		return fmt.Errorf("neither near nor far is given: want one at least")
	case c.MetricsPort < 0 || c.MetricsPort > 65535:
		return fmt.Errorf("metricsPort is %d: want 0 to 65535", c.MetricsPort)
	}
	for _, check := range []func() error{c.validateEnds, c.validateAMQP, c.validateCoAP, c.validateRetry, c.validateLimits} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) validateEnds() error {
	addresses := map[string]string{}
	queues := map[string]string{}
	if c.Near != nil {
		addresses["near.listen"] = c.Near.Listen
		addresses["near.peer"], queues["near.queue"] = c.Near.Peer, c.Near.Queue
		if !(c.Near.DeadlineSeconds >= 0 && c.Near.DeadlineSeconds <= 1e6) {
			return fmt.Errorf("near.deadlineSeconds is %v: want up to 1000000, or 0 for the default", c.Near.DeadlineSeconds)
		}
	}
	if c.Far != nil {
		addresses["far.listen"], queues["far.queue"] = c.Far.Listen, c.Far.Queue
	}
	for _, field := range slices.Sorted(maps.Keys(queues)) {
		if c.Protocol == ProtocolAMQP && (queues[field] == "" || len(queues[field]) > 200) {
			return fmt.Errorf("%s is %q: protocol amqp wants the name of a queue, of up to 200 bytes", field, queues[field])
		}
	}
	for _, field := range slices.Sorted(maps.Keys(addresses)) {
		if c.Protocol == ProtocolAMQP && field != "near.listen" {
			continue
		}
		if _, _, err := net.SplitHostPort(addresses[field]); err != nil {
			return fmt.Errorf("%s is %q: want host:port", field, addresses[field])
		}
	}
	return nil
}

func (c Config) validateAMQP() error {
	a := c.AMQP
	switch {
	case c.Protocol != ProtocolAMQP:
		return nil
	case a == nil:
		return fmt.Errorf("amqp is missing: protocol amqp wants amqp.broker")
	case (a.UsernameFile == "") != (a.PasswordFile == ""):
		return fmt.Errorf("amqp.usernameFile is %q and amqp.passwordFile %q: want both or none", a.UsernameFile, a.PasswordFile)
	}
	if _, _, err := net.SplitHostPort(a.Broker); err != nil {
		return fmt.Errorf("amqp.broker is %q: want host:port", a.Broker)
	}
	return nil
}

func (c Config) validateCoAP() error {
	switch b := c.CoAP.BlockBytes; {
	case b != 0 && (b < 16 || b > 1024 || b&(b-1) != 0):
		return fmt.Errorf("coap.blockBytes is %d: want a power of 2 from 16 to 1024", b)
	case !(c.CoAP.ACKTimeoutSeconds >= 0 && c.CoAP.ACKTimeoutSeconds <= 1000):
		return fmt.Errorf("coap.ackTimeoutSeconds is %v: want up to 1000, or 0 for the default", c.CoAP.ACKTimeoutSeconds)
	case c.CoAP.MaxRetransmit != nil && (*c.CoAP.MaxRetransmit < 0 || *c.CoAP.MaxRetransmit > 20):
		return fmt.Errorf("coap.maxRetransmit is %d: want 0 to 20", *c.CoAP.MaxRetransmit)
	case c.CoAP.NSTART < 0 || c.CoAP.NSTART > 1000:
		return fmt.Errorf("coap.nstart is %d: want up to 1000, or 0 for the default", c.CoAP.NSTART)
	}
	return nil
}

func (c Config) validateRetry() error {
	r := c.Retry
	for name, value := range map[string]float64{"firstSeconds": r.FirstSeconds, "maxSeconds": r.MaxSeconds, "silenceSeconds": r.SilenceSeconds} {
		if !(value >= 0 && value <= 1e6) {
			return fmt.Errorf("retry.%s is %v: want up to 1000000, or 0 for the default", name, value)
		}
	}
	if r.Factor != 0 && !(r.Factor >= 1 && r.Factor <= 100) {
		return fmt.Errorf("retry.factor is %v: want 1 to 100, or 0 for the default", r.Factor)
	}
	return nil
}

func (c Config) validateLimits() error {
	l := c.Limits
	for _, field := range []struct {
		name        string
		value, most int
	}{{"requests", l.Requests, 1_000_000}, {"diskMiB", l.DiskMiB, 1 << 20}, {"bodyBytes", l.BodyBytes, 64 << 20}, {"concurrent", l.Concurrent, 1000}} {
		if field.value < 0 || field.value > field.most {
			return fmt.Errorf("limits.%s is %d: want 1 to %d, or 0 for the default", field.name, field.value, field.most)
		}
	}
	if c.Protocol == ProtocolCoAP && l.BodyBytes > coapBodyBytes {
		return fmt.Errorf("limits.bodyBytes is %d: protocol coap carries up to %d", l.BodyBytes, coapBodyBytes)
	}
	return nil
}
