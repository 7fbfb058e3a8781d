package olsr

import (
	"math"
	"time"

	"vignette.dev/vignette/internal/olsr/rfc5444"
)

// Directional airtime (RFC 7779).
const (
	// Constants of section 6: DAT_MAXIMUM_LOSS, DAT_MINIMUM_BITRATE in bit/s.
	datMaximumLoss    = 8
	datMinimumBitrate = 1000
	// Parameters of section 7, as section 7.1 recommends them: DAT_MEMORY_LENGTH, DAT_REFRESH_INTERVAL, DAT_HELLO_TIMEOUT_FACTOR,
	// DAT_SEQNO_RESTART_DETECTION.
	datMemory       = 64
	datRefresh      = time.Second
	datHelloTimeout = 1.2
	datRestart      = 256
	// datConstant is the metric of a link of the least rate without loss (section 10.2).
	datConstant = 1 << 24 / datMaximumLoss
)

// metricExtension is the type extension of LINK_METRIC for the metric that a domain's administrator has
// chosen (RFC 7181 section 24.5). olsrd2 uses it for the metric of its first domain. It is that of Config.Metric.
const metricExtension = 0

// loss of packets from a neighbour over the last minute, by gaps in its packet sequence numbers (RFC 7779 section 8).
type loss struct {
	_ struct{} `cbor:",toarray"` // in snapshots
	// Received and Total are L_DAT_received and L_DAT_total, rings whose last element is at Bucket.
	Received, Total [datMemory]uint16
	At              time.Duration // of the bucket now filled
	Bucket          int
	// Sequence is L_DAT_last_pkt_seqno, where Used.
	Sequence uint16
	Used     bool
	// Interval is L_DAT_hello_interval, 0 for undefined. From when the neighbour was Heard L_DAT_hello_time and
	// L_DAT_lost_packet_intervals follow.
	Interval, Heard time.Duration
}

// advance moves to the bucket of now.
func (d *loss) advance(now time.Duration) {
	steps := int64(now/datRefresh - d.At/datRefresh)
	for range min(steps, datMemory) {
		d.Bucket = (d.Bucket + 1) % datMemory
		d.Received[d.Bucket], d.Total[d.Bucket] = 0, 0
	}
	d.At = now
}

// packet counts a received packet (RFC 7779 section 9.3). A duplicate, which some links make, is ignored.
func (d *loss) packet(sequence uint16, now time.Duration) {
	d.advance(now)
	gap := sequence - d.Sequence
	switch {
	case !d.Used:
		d.Received[d.Bucket], d.Total[d.Bucket] = 1, 1
	case gap > datRestart:
		d.Received[d.Bucket]++
		d.Total[d.Bucket]++
	case gap > 0:
		d.Received[d.Bucket]++
		d.Total[d.Bucket] += gap
	}
	d.Used, d.Sequence, d.Heard = true, sequence, now
}

// hello counts a HELLO. The next one comes within the interval, or else the validity (RFC 7779 section 9.4).
func (d *loss) hello(interval, validity, now time.Duration) {
	d.advance(now)
	d.Interval, d.Heard = interval, now
	if interval <= 0 {
		d.Interval = validity
	}
	if !d.Used {
		d.Received[d.Bucket], d.Total[d.Bucket] = 1, 1
	}
}

// missed intervals since the neighbour was heard (RFC 7779 section 10.1).
func (d *loss) missed(now time.Duration) float64 {
	if d.Interval <= 0 {
		return 0
	}
	late := float64(now-d.Heard) - datHelloTimeout*float64(d.Interval)
	if late < 0 {
		return 0
	}
	return 1 + math.Floor(late/float64(d.Interval))
}

// metric of the direction towards this node (RFC 7779 section 10.2).
func (d *loss) metric(now time.Duration, rateBitsPerSecond float64) uint32 {
	d.advance(now)
	received, total := 0.0, 0.0
	for i := range d.Received {
		received += float64(d.Received[i])
		total += float64(d.Total[i])
	}
	received *= max(0, 1-d.missed(now)*float64(d.Interval)/float64(datMemory*datRefresh))
	if received < 1 {
		return rfc5444.MaximumMetric
	}
	ratio := min(total/received, datMaximumLoss)
	rate := max(rateBitsPerSecond, datMinimumBitrate)
	metric := datConstant * ratio / (rate / datMinimumBitrate)
	return uint32(min(max(metric, rfc5444.MinimumMetric), rfc5444.MaximumMetric))
}

// updateMetric updates a link's incoming metrics.
func (r *router) updateMetric(l *link, now time.Duration) {
	dat := uint32(0)
	if r.measures {
		dat = rfc5444.MetricOf(rfc5444.MetricCode(l.loss.metric(now, l.iface.RateBitsPerSecond)))
	}
	var in metrics
	for t := range r.topologies {
		switch {
		case !l.iface.carries[t]:
		case r.topologies[t].Metric == DAT:
			in[t] = dat
		default:
			in[t] = rfc5444.MinimumMetric
		}
	}
	if in != l.inMetric {
		l.inMetric = in
		r.mprDirty = true
	}
}
