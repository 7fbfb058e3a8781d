package broker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Reasons for dropped messages.
const (
	dropQueue   = "queue"
	dropEnded   = "ended"
	dropRefused = "refused"
)

// metrics are a broker's metrics.
type metrics struct {
	registry                                 *prometheus.Registry
	received, delivered, pulled, failures    prometheus.Counter
	dropped, rejected, ended                 *prometheus.CounterVec
	subscriptions, pullPoints, registrations prometheus.Gauge
	topics                                   prometheus.Gauge
}

func newMetrics(instance string, held, reading func() float64) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	label := prometheus.Labels{"instance": instance}
	const namespace = "vignette_wsnbroker"
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: label})
		m.registry.MustRegister(c)
		return c
	}
	counters := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: label}, []string{"reason"})
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: label})
		m.registry.MustRegister(g)
		return g
	}
	m.received = counter("messages_received_total", "NotificationMessages that publishers sent.")
	m.delivered = counter("messages_delivered_total", "NotificationMessages that consumers accepted, each time.")
	m.pulled = counter("messages_pulled_total", "NotificationMessages that were fetched from pull points.")
	m.failures = counter("delivery_failures_total", "Failed attempts to deliver; most are repeated.")
	m.dropped = counters("messages_dropped_total", "NotificationMessages that a subscriber did not get: queue full, subscription ended, refused by the consumer.")
	m.rejected = counters("requests_rejected_total", "Requests that were refused: malformed, fault, login, memory.")
	m.ended = counters("subscriptions_ended_total", "Subscriptions that ended: unsubscribed, expired, failed, gone.")
	m.subscriptions = gauge("subscriptions", "Subscriptions now.")
	m.pullPoints = gauge("pull_points", "Pull points now.")
	m.registrations = gauge("publisher_registrations", "Registered publishers now.")
	m.topics = gauge("topics", "Topics whose last message is kept.")
	for name, f := range map[string]func() float64{"held_bytes": held, "reading_bytes": reading} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: name, Help: map[string]string{"held_bytes": "Bytes of messages that wait or are the last of their topic.", "reading_bytes": "Bytes of requests being read."}[name],
			ConstLabels: label}, f))
	}
	return m
}

// serve serves the metrics until ctx ends; not with port 0.
func (m *metrics) serve(ctx context.Context, port int) error {
	if port == 0 {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return fmt.Errorf("metricsPort %d: %w", port, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: quiet}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		if err := server.Serve(listener); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "wsn-broker: metrics:", err)
		}
	}()
	return nil
}
