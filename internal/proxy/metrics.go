package proxy

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Outcomes of requests.
const (
	// Of the near proxy.
	outcomeAnswered  = "answered"
	outcomeFailed    = "failed"
	outcomeExpired   = "expired"
	outcomeAbandoned = "abandoned"
	outcomeMalformed = "malformed"
	outcomeFull      = "full"
	outcomeDisk      = "disk"
	// Of the far proxy.
	outcomeRun         = "run"
	outcomeRepeated    = "repeated"
	outcomeUnavailable = "unavailable"
	outcomeUnknown     = "unknown"
)

// Directions of what the pair carries.
const (
	toFar  = "request"
	toNear = "response"
)

// metrics are one proxy's.
type metrics struct {
	registry      *prometheus.Registry
	register      promauto.Factory
	requests      *prometheus.CounterVec
	before, after *prometheus.CounterVec
	link          *prometheus.CounterVec
	retries       prometheus.Counter
}

const namespace = "vignette_proxy"

func newMetrics(instance string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.register = promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"instance": instance}, m.registry))
	counter := func(name, help, label string) *prometheus.CounterVec {
		return m.register.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
	}
	m.requests = counter("requests_total", "Requests by outcome. Of a near proxy: answered, failed (the far proxy answered itself), expired, abandoned (by the client), "+
		"malformed, full (queue), disk. Of a far proxy: run, repeated (answered from its records), unavailable (service), expired, unknown (outcome).", "outcome")
	m.before = counter("bytes_before_total", "Bytes of carried requests and responses before compression, each once.", "direction")
	m.after = counter("bytes_after_total", "Bytes of carried requests and responses after compression, each once.", "direction")
	m.link = counter("link_bytes_total", "Bytes handed to the link's protocol, repetitions and queries included.", "direction")
	m.retries = m.register.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "retries_total", Help: "Requests that were carried again, each time."})
	return m
}

// watch adds gauges of the near proxy's queue.
func (m *metrics) watch(n *near) {
	gauge := func(name, help string, value func() float64) {
		m.register.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, value)
	}
	gauge("queue_requests", "Accepted requests without a response.", func() float64 { return float64(n.length()) })
	gauge("queue_oldest_seconds", "Age of the oldest of them.", n.oldest)
	gauge("disk_bytes", "Bytes of requests and responses in the folder.", func() float64 { return float64(n.store.Used()) })
}

// carried counts content and the frame that carries it.
func (m *metrics) carried(direction string, before, after int) {
	m.before.WithLabelValues(direction).Add(float64(before))
	m.after.WithLabelValues(direction).Add(float64(after))
}
