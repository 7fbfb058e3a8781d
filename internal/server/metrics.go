package server

import (
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics of the server.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	refused  *prometheus.CounterVec
}

// Reasons for which appends are refused.
const (
	refusedQuota   = "quota"
	refusedFull    = "full"
	refusedDamaged = "damaged"
)

func newMetrics(dir string, runs func() int, scenarios func() int64) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vignette_server_requests_total", Help: "Requests answered, by route and status."}, []string{"route", "status"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vignette_server_archived_bytes_total", Help: "Bytes archived since the start, by kind: log, radio, capture, event, result or scenario."}, []string{"kind"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vignette_server_refused_appends_total", Help: "Appends that the archive did not take, by reason: quota, full or damaged."}, []string{"reason"}),
	}
	for _, reason := range []string{refusedQuota, refusedFull, refusedDamaged} {
		m.refused.WithLabelValues(reason) // a series that begins with its first refusal shows no increase to an alert
	}
	m.registry.MustRegister(m.requests, m.bytes, m.refused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "vignette_server_runs", Help: "Runs in the archive."}, func() float64 { return float64(runs()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "vignette_server_scenario_bytes", Help: "Bytes of all compiled scenarios."}, func() float64 { return float64(scenarios()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "vignette_server_volume_free_bytes", Help: "Free bytes of the archive's volume; -1 where that is not known."},
			func() float64 { return volumeBytes(dir, func(s syscall.Statfs_t) uint64 { return s.Bavail }) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "vignette_server_volume_bytes", Help: "Size of the archive's volume; -1 where that is not known."},
			func() float64 { return volumeBytes(dir, func(s syscall.Statfs_t) uint64 { return s.Blocks }) }))
	return m
}

func volumeBytes(dir string, blocks func(syscall.Statfs_t) uint64) float64 {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return -1
	}
	return float64(blocks(stat)) * float64(stat.Bsize)
}
