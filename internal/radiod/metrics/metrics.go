// Package metrics shows the counters of a host's radios, their links and routers to Prometheus.
package metrics

import (
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/figures"
)

var nodeLabels = []string{"namespace", "experiment", "network", "node"}

func nodeMetric(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("vignette_radio_"+name, help, append(append([]string(nil), nodeLabels...), more...), nil)
}

func networkMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("vignette_radio_"+name, help, nodeLabels[:3], nil)
}

var (
	framesSent             = nodeMetric("frames_sent_total", "Frames that the node handed to its radio.")
	bytesSent              = nodeMetric("bytes_sent_total", "Bytes of the frames that the node handed to its radio, Ethernet header included.")
	framesReceived         = nodeMetric("frames_received_total", "Frames that the radio handed to the node.")
	bytesReceived          = nodeMetric("bytes_received_total", "Bytes of the frames that the radio handed to the node, Ethernet header included.")
	framesCorrupted        = nodeMetric("frames_corrupted_total", "Frames of the node that were sent on with a wrong bit.")
	lateInterference       = nodeMetric("late_interference_total", "Receptions of the node that would have failed had a transmission of another host or network been known in time.")
	drops                  = nodeMetric("drops_total", "Frames dropped, by reason.", "reason")
	queueFrames            = nodeMetric("queue_frames", "Frames of the node that wait or are under way.")
	delaySeconds           = nodeMetric("delay_seconds", "Time from a frame being sent to its arrival at its receivers.")
	latenessSeconds        = nodeMetric("release_lateness_seconds", "Lateness of frames at their receivers against the model's time.")
	queueClass             = nodeMetric("queue_class_frames", "Frames that wait at a TDMA radio, by class of service.", "class")
	slotsUsed              = nodeMetric("slots_used_total", "Time slots in which a TDMA radio sent.")
	slotsMissed            = nodeMetric("slots_missed_total", "Time slots for which the emulation was too late while frames waited for them.")
	slotLateness           = nodeMetric("slot_lateness_seconds", "Lateness of the start of time slots.")
	linkSINR               = nodeMetric("link_sinr_decibels", "SINR of the last transmission above the sensitivity to a node from another.", "from")
	linkPathloss           = nodeMetric("link_pathloss_decibels", "Pathloss to a node from another.", "from")
	linkHeard              = nodeMetric("link_heard_total", "Transmissions that a node received from another.", "from")
	linkMissed             = nodeMetric("link_missed_total", "Transmissions that a node did not receive from another, by reason.", "from", "reason")
	linksHeard             = networkMetric("links", "Links in range on which something was sent; up to 2500 links have their own metrics.")
	routingPacketsSent     = nodeMetric("routing_packets_sent_total", "Packets that the routing protocol sent.")
	routingBytesSent       = nodeMetric("routing_bytes_sent_total", "Bytes of the frames that the routing protocol sent, Ethernet header included.")
	routingPacketsReceived = nodeMetric("routing_packets_received_total", "Packets that the routing protocol received.")
	routingBytesReceived   = nodeMetric("routing_bytes_received_total", "Bytes of the frames that the routing protocol received, Ethernet header included.")
	routingSendErrors      = nodeMetric("routing_send_errors_total", "Packets of the routing protocol that the node's kernel did not accept.")
	routingRoutes          = nodeMetric("routing_routes", "Routes of the node that lead through the network.")
	routingNeighbours      = nodeMetric("routing_neighbours", "Neighbours on the network to which the node has routes.")
	stepsTotal             = networkMetric("scenario_steps_total", "Steps of positions, pathloss and jammers.")
	stepsLate              = networkMetric("scenario_steps_late_total", "Steps of positions, pathloss and jammers that came more than 2 ms late.")
)

// Collector of the counters of a host's networks.
type Collector struct {
	// Counters of all networks with attachments here.
	Counters func() []figures.Network
}

// Describe implements prometheus.Collector.
func (c Collector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect implements prometheus.Collector.
func (c Collector) Collect(to chan<- prometheus.Metric) {
	for _, n := range c.Counters() {
		for i := range n.Nodes {
			collectNode(to, &n.Nodes[i], n.Experiment.Namespace, n.Experiment.Name, n.Network, n.Nodes[i].Node)
		}
		if n.Physical {
			collectRadios(to, &n, n.Experiment.Namespace, n.Experiment.Name, n.Network)
		}
	}
}

func collectNode(to chan<- prometheus.Metric, n *figures.Node, labels ...string) {
	for desc, value := range map[*prometheus.Desc]uint64{framesSent: n.FramesSent, bytesSent: n.BytesSent,
		framesReceived: n.FramesReceived, bytesReceived: n.BytesReceived, framesCorrupted: n.Corrupted,
		lateInterference: n.LateInterference} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	collectDrops(to, n, labels)
	to <- prometheus.MustNewConstMetric(queueFrames, prometheus.GaugeValue, float64(n.InFlight), labels...)
	to <- histogramMetric(delaySeconds, &n.Delay, radio.DelayBounds, labels)
	to <- histogramMetric(latenessSeconds, &n.Lateness, radio.LatenessBounds, labels)
	collectRouting(to, n.Routing, labels)
	if n.Classes == nil {
		return
	}
	for class, frames := range n.Classes {
		to <- prometheus.MustNewConstMetric(queueClass, prometheus.GaugeValue, float64(frames), append(labels[:len(labels):len(labels)], strconv.Itoa(class))...)
	}
	to <- prometheus.MustNewConstMetric(slotsUsed, prometheus.CounterValue, float64(n.Slots.Used), labels...)
	to <- prometheus.MustNewConstMetric(slotsMissed, prometheus.CounterValue, float64(n.Slots.Missed), labels...)
	to <- histogramMetric(slotLateness, &n.Slots.Lateness, radio.LatenessBounds, labels)
}

// collectDrops sends overload also where it is 0: a series that begins with its first frames shows no increase to an alert.
func collectDrops(to chan<- prometheus.Metric, n *figures.Node, labels []string) {
	dropped := map[string]uint64{figures.RingReason: 0}
	if n.Routing != nil {
		dropped[figures.RouterReason] = 0
	}
	if n.Classes != nil {
		dropped[radio.MissedSlot.String()] = 0
	}
	n.EachDrop(func(reason string, frames uint64) { dropped[reason] = frames })
	for reason, frames := range dropped {
		to <- prometheus.MustNewConstMetric(drops, prometheus.CounterValue, float64(frames), append(labels[:len(labels):len(labels)], reason)...)
	}
}

// collectRadios sends the metrics of networks with a physical layer.
func collectRadios(to chan<- prometheus.Metric, n *figures.Network, labels ...string) {
	to <- prometheus.MustNewConstMetric(stepsTotal, prometheus.CounterValue, float64(n.Steps), labels...)
	to <- prometheus.MustNewConstMetric(stepsLate, prometheus.CounterValue, float64(n.LateSteps), labels...)
	to <- prometheus.MustNewConstMetric(linksHeard, prometheus.GaugeValue, float64(n.LinksHeard), labels...)
	for i := range n.Links {
		l := &n.Links[i]
		link := append(labels[:len(labels):len(labels)], l.Receiver, l.From)
		to <- prometheus.MustNewConstMetric(linkHeard, prometheus.CounterValue, float64(l.Heard), link...)
		for desc, value := range map[*prometheus.Desc]float64{linkSINR: l.SINRDB, linkPathloss: l.PathlossDB} {
			if !math.IsNaN(value) {
				to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, link...)
			}
		}
		for reason, transmissions := range l.Missed.ByReason() {
			to <- prometheus.MustNewConstMetric(linkMissed, prometheus.CounterValue, float64(transmissions), append(link[:len(link):len(link)], reason)...)
		}
	}
}

func collectRouting(to chan<- prometheus.Metric, c *figures.Routing, labels []string) {
	if c == nil {
		return
	}
	for desc, value := range map[*prometheus.Desc]uint64{routingPacketsSent: c.PacketsSent, routingBytesSent: c.BytesSent,
		routingPacketsReceived: c.PacketsReceived, routingBytesReceived: c.BytesReceived, routingSendErrors: c.SendErrors} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	to <- prometheus.MustNewConstMetric(routingRoutes, prometheus.GaugeValue, float64(c.Routes), labels...)
	to <- prometheus.MustNewConstMetric(routingNeighbours, prometheus.GaugeValue, float64(c.Neighbours), labels...)
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
