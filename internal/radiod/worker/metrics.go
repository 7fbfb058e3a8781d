package worker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/radio"
)

var nodeLabels = []string{"experiment_namespace", "experiment", "network", "node"}

func nodeMetric(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("vignette_radio_"+name, help, append(append([]string(nil), nodeLabels...), more...), nil)
}

var (
	framesSent      = nodeMetric("frames_sent_total", "Frames that the node handed to its radio.")
	bytesSent       = nodeMetric("bytes_sent_total", "Bytes of the frames that the node handed to its radio, Ethernet header included.")
	framesReceived  = nodeMetric("frames_received_total", "Frames that the radio handed to the node.")
	bytesReceived   = nodeMetric("bytes_received_total", "Bytes of the frames that the radio handed to the node, Ethernet header included.")
	drops           = nodeMetric("drops_total", "Frames dropped, by reason.", "reason")
	queueFrames     = nodeMetric("queue_frames", "Frames of the node that wait or are under way.")
	delaySeconds    = nodeMetric("delay_seconds", "Time from a frame being sent to its arrival at its receivers.")
	latenessSeconds = nodeMetric("release_lateness_seconds", "How much later than the model said frames were handed to their receivers.")
	attachSeconds   = prometheus.NewDesc("vignette_radio_attach_seconds", "Time to attach a pod to a radio network.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *Manager) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{framesSent, bytesSent, framesReceived, bytesReceived, drops, queueFrames,
		delaySeconds, latenessSeconds, attachSeconds, changesTotal, changesLate} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Manager) Collect(to chan<- prometheus.Metric) {
	for _, n := range m.Counters(false) {
		for i := range n.Nodes {
			collectNode(to, &n.Nodes[i], n.Experiment.Namespace, n.Experiment.Name, n.Network, n.Nodes[i].Node)
		}
	}
	m.attach.collect(to)
	m.changes.collect(to)
}

func collectNode(to chan<- prometheus.Metric, n *NodeCounters, labels ...string) {
	for desc, value := range map[*prometheus.Desc]uint64{framesSent: n.FramesSent, bytesSent: n.BytesSent,
		framesReceived: n.FramesReceived, bytesReceived: n.BytesReceived} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	n.eachDrop(func(reason string, frames uint64) {
		to <- prometheus.MustNewConstMetric(drops, prometheus.CounterValue, float64(frames), append(labels[:len(labels):len(labels)], reason)...)
	})
	to <- prometheus.MustNewConstMetric(queueFrames, prometheus.GaugeValue, float64(n.InFlight), labels...)
	to <- histogramMetric(delaySeconds, &n.Delay, radio.DelayBounds, labels)
	to <- histogramMetric(latenessSeconds, &n.Lateness, radio.LatenessBounds, labels)
}

func histogramMetric(desc *prometheus.Desc, h *radio.Histogram, bounds []int64, labels []string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(bounds))
	var below uint64
	for i, bound := range bounds {
		below += h.Buckets[i]
		buckets[time.Duration(bound).Seconds()] = below
	}
	return prometheus.MustNewConstHistogram(desc, h.Count, time.Duration(h.Sum).Seconds(), buckets, labels...)
}

func (t *attachTimes) collect(to chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	buckets := map[float64]uint64{}
	var below uint64
	for i, bound := range attachBounds {
		if t.buckets != nil {
			below += t.buckets[i]
		}
		buckets[bound.Seconds()] = below
	}
	to <- prometheus.MustNewConstHistogram(attachSeconds, t.count, t.sum.Seconds(), buckets)
}
