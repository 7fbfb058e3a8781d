package appinstance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ServeMetrics offers metrics at /metrics of a TCP port until ctx ends; port 0 is none.
func ServeMetrics(ctx context.Context, metrics prometheus.Gatherer, port int) error {
	if port == 0 {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("metricsPort %d: another program uses the port: want a free one", port)
		}
		return fmt.Errorf("metricsPort %d: %w", port, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		if err := serve(server, listener); err != nil {
			fmt.Fprintf(os.Stderr, "metricsPort %d: %v: metrics are no longer served\n", port, err)
		}
	}()
	return nil
}

// Metrics of one instance.
type Metrics struct {
	Registry  *prometheus.Registry
	namespace string
	factory   promauto.Factory
}

// NewMetrics begins the metrics of a namespace, which have the instance's name as a label.
func NewMetrics(namespace, label, instance string) Metrics {
	registry := prometheus.NewRegistry()
	return Metrics{registry, namespace, promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{label: instance}, registry))}
}

// Serve as ServeMetrics does. An instance without a port runs on.
func (m Metrics) Serve(ctx context.Context, port int, warn func(text string)) {
	if err := ServeMetrics(ctx, m.Registry, port); err != nil {
		warn(err.Error() + ": no metrics are served")
	}
}

// Counter adds a counter.
func (m Metrics) Counter(name, help string) prometheus.Counter {
	return m.factory.NewCounter(prometheus.CounterOpts{Namespace: m.namespace, Name: name, Help: help})
}

// Counters adds counters by labels.
func (m Metrics) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return m.factory.NewCounterVec(prometheus.CounterOpts{Namespace: m.namespace, Name: name, Help: help}, labels)
}

// Gauge adds a gauge.
func (m Metrics) Gauge(name, help string) prometheus.Gauge {
	return m.factory.NewGauge(prometheus.GaugeOpts{Namespace: m.namespace, Name: name, Help: help})
}

// Gauges adds gauges by labels.
func (m Metrics) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return m.factory.NewGaugeVec(prometheus.GaugeOpts{Namespace: m.namespace, Name: name, Help: help}, labels)
}

// GaugeFunc adds a gauge that is asked for its value.
func (m Metrics) GaugeFunc(name, help string, labels prometheus.Labels, value func() float64) {
	m.factory.NewGaugeFunc(prometheus.GaugeOpts{Namespace: m.namespace, Name: name, Help: help, ConstLabels: labels}, value)
}

// Histogram adds a histogram with buckets up to bounds.
func (m Metrics) Histogram(name, help string, bounds ...float64) prometheus.Histogram {
	return m.factory.NewHistogram(prometheus.HistogramOpts{Namespace: m.namespace, Name: name, Help: help, Buckets: bounds})
}

// Histograms adds histograms by labels.
func (m Metrics) Histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return m.factory.NewHistogramVec(prometheus.HistogramOpts{Namespace: m.namespace, Name: name, Help: help, Buckets: bounds}, labels)
}

// serve until the server is closed. After an error live displays lack this instance, but what it does goes on.
func serve(server *http.Server, listener net.Listener) error {
	defer listener.Close()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
