package proxyconfig

import (
	"strings"
	"testing"
)

func good() Config {
	return Config{Protocol: ProtocolHTTP, Folder: "/queue", Near: &Near{Listen: ":3128", Peer: "far:3129"}, Far: &Far{Listen: ":3129"}}
}

func TestAWrongConfigurationNamesTheField(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"protocol is":               func(c *Config) { c.Protocol = "smtp" },
		"compression is":            func(c *Config) { c.Compression = "lzma" },
		"folder is empty":           func(c *Config) { c.Folder = "" },
		"neither near nor far":      func(c *Config) { c.Near, c.Far = nil, nil },
		"near.listen is":            func(c *Config) { c.Near.Listen = "3128" },
		"near.peer is":              func(c *Config) { c.Near.Peer = "" },
		"far.listen is":             func(c *Config) { c.Far.Listen = "" },
		"near.deadlineSeconds is":   func(c *Config) { c.Near.DeadlineSeconds = -1 },
		"far.queue is":              func(c *Config) { c.Protocol = ProtocolAMQP },
		"amqp is missing":           func(c *Config) { c.Protocol, c.Near.Queue, c.Far.Queue = ProtocolAMQP, "a", "b" },
		"coap.blockBytes is":        func(c *Config) { c.CoAP.BlockBytes = 100 },
		"coap.nstart is":            func(c *Config) { c.CoAP.NSTART = -1 },
		"coap.ackTimeoutSeconds is": func(c *Config) { c.CoAP.ACKTimeoutSeconds = -2 },
		"retry.factor is":           func(c *Config) { c.Retry.Factor = 0.5 },
		"retry.maxSeconds is":       func(c *Config) { c.Retry.MaxSeconds = -1 },
		"limits.bodyBytes is":       func(c *Config) { c.Limits.BodyBytes = 1 << 40 },
		"limits.bodyBytes is 1677":  func(c *Config) { c.Protocol, c.Limits.BodyBytes = ProtocolCoAP, 16<<20 },
		"metricsPort is":            func(c *Config) { c.MetricsPort = 70_000 },
	} {
		c := good()
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v; want an error that begins with %q", err, want)
		}
	}
}

func TestARightConfigurationIsAcceptedWithItsDefaults(t *testing.T) {
	c := good()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c = c.WithDefaults()
	if err := c.Validate(); err != nil || c.Near.DeadlineSeconds != 300 || c.Compression != CompressionNone || *c.CoAP.MaxRetransmit != 4 {
		t.Errorf("%v, %+v", err, c)
	}
}
