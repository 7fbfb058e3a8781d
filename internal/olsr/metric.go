package olsr

import (
	"math"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
	"vignette.dev/vignette/internal/olsr/rfc5444"
)

// Parameters of directional airtime (RFC 7779 section 7).
const (
	datMemory          = 64
	datRefresh         = time.Second
	datHelloTimeout    = 1.2
	datMinimumBitrate  = 1000 // bit/s
	datMaximumLoss     = 8
	datRestart         = 256
	datConstant        = 1 << 24 / datMaximumLoss
	datTypeExtension   = 1 // LINK_METRIC of type DAT
	hopMetricExtension = 0
)

// loss of packets from a neighbour over the last minute, by gaps in its packet sequence numbers (RFC 7779 section 6).
type loss struct {
	Received, Total [datMemory]uint16
	At              time.Duration // of the bucket now filled
	Bucket          int
	Sequence        uint16
	Used            bool
}

// advance to the bucket of now.
func (d *loss) advance(now time.Duration) {
	steps := int64(now/datRefresh - d.At/datRefresh)
	for range min(steps, datMemory) {
		d.Bucket = (d.Bucket + 1) % datMemory
		d.Received[d.Bucket], d.Total[d.Bucket] = 0, 0
	}
	d.At = now
}

// packet with that sequence number has come.
func (d *loss) packet(sequence uint16, now time.Duration) {
	d.advance(now)
	gap := sequence - d.Sequence
	if !d.Used || gap == 0 || gap > datRestart {
		gap = 1
	}
	d.Used, d.Sequence = true, sequence
	d.Received[d.Bucket]++
	d.Total[d.Bucket] += gap
}

// metric of the direction towards this node. Missed HELLOs, of which no sequence number tells yet, count as lost.
func (d *loss) metric(now time.Duration, q *core.Quality, rateBitsPerSecond float64) uint32 {
	d.advance(now)
	received, total := 0.0, 0.0
	for i := range d.Received {
		received += float64(d.Received[i])
		total += float64(d.Total[i])
	}
	if q.Interval > 0 {
		last := q.Due - q.Interval*3/2
		if silent := float64(now - last); silent > datHelloTimeout*float64(q.Interval) {
			total += math.Floor(silent / float64(q.Interval))
		}
	}
	ratio := float64(datMaximumLoss)
	if received > 0 {
		ratio = min(total/received, datMaximumLoss)
	}
	rate := max(rateBitsPerSecond, datMinimumBitrate)
	metric := datConstant * ratio / (rate / datMinimumBitrate)
	return uint32(min(max(metric, rfc5444.MinimumMetric), rfc5444.MaximumMetric))
}

func (r *router) metricExtension() uint8 {
	if r.c.Metric == DAT {
		return datTypeExtension
	}
	return hopMetricExtension
}

// measure a link's incoming metric anew.
func (r *router) measure(l *link, now time.Duration) {
	in := uint32(rfc5444.MinimumMetric)
	if r.c.Metric == DAT {
		in = rfc5444.MetricOf(rfc5444.MetricCode(l.loss.metric(now, &l.quality, l.iface.RateBitsPerSecond)))
	}
	if in != l.inMetric {
		l.inMetric = in
		r.mprDirty = true
	}
}
