package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/appinstance"
	mqtt "vignette.dev/vignette/internal/traffic/mqtt/client"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// prefix of the topics of the statistics.
const prefix = "$SYS/broker/"

// closeTimeout is how long a DISCONNECT may take.
const closeTimeout = 500 * time.Millisecond

// serve serves until ctx ends, with a configuration file of a subscriber with a metrics port.
func serve(ctx context.Context, path string) error {
	config, err := appinstance.ReadConfig[trafficconfig.Config](path)
	if err != nil {
		return err
	}
	if config.MetricsPort == 0 {
		return fmt.Errorf("%s: metricsPort is 0: want the port to serve at", path)
	}
	c := newCollector(config.Instance)
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	if err := appinstance.ServeMetrics(ctx, registry, config.MetricsPort); err != nil {
		return err
	}
	warn := func(text string) { fmt.Fprintf(os.Stderr, "mosquitto-statistics %s: %s\n", config.Instance, text) }
	client, err := mqtt.Open(transport.Setup{Config: config, ClientID: strings.ReplaceAll(config.Instance, "/", ":"), Warn: warn}, transport.Events{
		Received:   func(_ time.Time, topic string, payload []byte) { c.received(topic, string(payload)) },
		Connection: func(up bool, _ string) { c.connected(up) },
		Sent:       func(time.Time, string, []byte) {},
		Dropped:    func(int) {},
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	client.Close(ending)
	return nil
}

// statistic is one of the broker's.
type statistic struct {
	topic, name, help string
	kind              prometheus.ValueType
}

// statistics by topic below $SYS/broker. Others can be computed from these: averages over minutes, older names.
var statistics = []statistic{
	{"uptime", "uptime_seconds", "Time since the broker's start.", prometheus.GaugeValue},
	{"bytes/received", "bytes_received_total", "Bytes received since the start, of all packets.", prometheus.CounterValue},
	{"bytes/sent", "bytes_sent_total", "Bytes sent since the start, of all packets.", prometheus.CounterValue},
	{"messages/received", "packets_received_total", "Packets of any type received since the start.", prometheus.CounterValue},
	{"messages/sent", "packets_sent_total", "Packets of any type sent since the start.", prometheus.CounterValue},
	{"publish/messages/received", "publish_received_total", "PUBLISH packets received since the start.", prometheus.CounterValue},
	{"publish/messages/sent", "publish_sent_total", "PUBLISH packets sent since the start.", prometheus.CounterValue},
	{"publish/messages/dropped", "publish_dropped_total", "PUBLISH packets dropped since the start, at limits of queues and of messages in flight.", prometheus.CounterValue},
	{"publish/bytes/received", "publish_received_bytes_total", "Bytes of the content of PUBLISH packets received since the start.", prometheus.CounterValue},
	{"publish/bytes/sent", "publish_sent_bytes_total", "Bytes of the content of PUBLISH packets sent since the start.", prometheus.CounterValue},
	{"clients/connected", "clients_connected", "Clients with a connection, the one of these statistics included.", prometheus.GaugeValue},
	{"clients/disconnected", "clients_disconnected", "Clients without a connection whose session is kept.", prometheus.GaugeValue},
	{"clients/maximum", "clients_maximum", "Most clients with a connection at once since the start.", prometheus.GaugeValue},
	{"store/messages/count", "stored_messages", "Messages stored: retained, and waiting for clients.", prometheus.GaugeValue},
	{"store/messages/bytes", "stored_bytes", "Bytes of the content of messages stored.", prometheus.GaugeValue},
	{"retained messages/count", "retained_messages", "Retained messages.", prometheus.GaugeValue},
	{"subscriptions/count", "subscriptions", "Subscriptions.", prometheus.GaugeValue},
	{"heap/current", "heap_bytes", "Memory in use.", prometheus.GaugeValue},
}

// collector has the last value of each statistic.
type collector struct {
	up           *prometheus.Desc
	descriptions map[string]*prometheus.Desc

	mu     sync.Mutex
	isUp   bool
	values map[string]float64
}

func newCollector(instance string) *collector {
	label := prometheus.Labels{"instance": instance}
	name := func(text string) string { return prometheus.BuildFQName("vignette", "mosquitto", text) }
	c := &collector{descriptions: map[string]*prometheus.Desc{}, values: map[string]float64{},
		up: prometheus.NewDesc(name("up"), "1 with a connection to the broker, 0 without; the other figures are then the last that were known.", nil, label)}
	for _, s := range statistics {
		c.descriptions[s.topic] = prometheus.NewDesc(name(s.name), s.help, nil, label)
	}
	return c
}

// received records a statistic. The broker sends changed ones every 10 s.
func (c *collector) received(topic, text string) {
	topic, ours := strings.CutPrefix(topic, prefix)
	if c.descriptions[topic] == nil || !ours {
		return
	}
	value, err := strconv.ParseFloat(strings.TrimSuffix(text, " seconds"), 64)
	if err != nil {
		return // a later version may have another format
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[topic] = value
}

func (c *collector) connected(up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isUp = up
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.up
	for _, d := range c.descriptions {
		to <- d
	}
}

// Collect implements prometheus.Collector. Statistics that have not arrived are left out.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := 0.0
	if c.isUp {
		up = 1
	}
	to <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, up)
	for _, s := range statistics {
		if value, known := c.values[s.topic]; known {
			to <- prometheus.MustNewConstMetric(c.descriptions[s.topic], s.kind, value)
		}
	}
}
