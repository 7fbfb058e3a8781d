package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/appinstance"
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
	appinstance.Metrics
	requests      *prometheus.CounterVec
	before, after *prometheus.CounterVec
	link          *prometheus.CounterVec
	retries       prometheus.Counter
}

func newMetrics(instance string) *metrics {
	m := &metrics{Metrics: appinstance.NewMetrics("vignette_proxy", "instance", instance)}
	m.requests = m.Counters("requests_total", "Requests by outcome. Of a near proxy: answered, failed (the far proxy answered itself), expired, abandoned (by the client), "+
		"malformed, full (queue), disk. Of a far proxy: run, repeated (answered from its records), unavailable (service), expired, unknown (outcome).", "outcome")
	m.before = m.Counters("bytes_before_total", "Bytes of carried requests and responses before compression, each once.", "direction")
	m.after = m.Counters("bytes_after_total", "Bytes of carried requests and responses after compression, each once.", "direction")
	m.link = m.Counters("link_bytes_total", "Bytes handed to the link's protocol, repetitions and queries included.", "direction")
	m.retries = m.Counter("retries_total", "Requests that were carried again, each time.")
	return m
}

// watch adds gauges of the near proxy's queue.
func (m *metrics) watch(n *near) {
	m.GaugeFunc("queue_requests", "Accepted requests without a response.", nil, func() float64 { return float64(n.length()) })
	m.GaugeFunc("queue_oldest_seconds", "Age of the oldest of them.", nil, n.oldest)
	m.GaugeFunc("disk_bytes", "Bytes of requests and responses in the folder.", nil, func() float64 { return float64(n.store.Used()) })
}

// carried counts content and the frame that carries it.
func (m *metrics) carried(direction string, before, after int) {
	m.before.WithLabelValues(direction).Add(float64(before))
	m.after.WithLabelValues(direction).Add(float64(after))
}
