package server

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/live"
	"vignette.dev/vignette/internal/runapi"
)

const (
	// liveMetricsLifetime is how long a run has metrics after its last activity or its seal: its last figures are scraped too.
	liveMetricsLifetime = 5 * time.Minute
	// maxLiveSeries of one kind and run. With more nodes or apps there are no series for each of them.
	maxLiveSeries = 2500
	// maxLiveEvents of a run that displays get: the first ones.
	maxLiveEvents = 200
	// sameEventNanoseconds: repeated events of one name within this time, such as starts spaced over some time, count once.
	sameEventNanoseconds = int64(time.Second)
)

var runLabels = []string{"namespace", "experiment", "uid"}

func runMetric(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("vignette_experiment_"+name, help, append(append([]string(nil), runLabels...), more...), nil)
}

var (
	liveInfo           = runMetric("info", "1 for each run to which something happened in the last 5 minutes.", "phase")
	liveHeadline       = runMetric("headline", "1 for the headline group: radio, or all if no delivery goes to another node.", "group")
	liveTriggered      = runMetric("messages_triggered_total", "Messages that apps wanted to send, each once.")
	liveSent           = runMetric("messages_sent_total", "Messages sent, each once.")
	liveOffered        = runMetric("deliveries_offered", "Deliveries to expect if every message triggered so far had been sent.", "group")
	liveExpected       = runMetric("deliveries_expected", "Deliveries expected of the messages sent so far: each message once per other instance that subscribes to it.", "group")
	liveReceived       = runMetric("deliveries_received", "Expected deliveries that have arrived, without duplicates.", "group")
	liveDuplicates     = runMetric("deliveries_duplicate", "Further copies of deliveries that had arrived before.", "group")
	liveDelay          = runMetric("delay_seconds", "Delays from sent to received of the run so far; quantiles within 0.25 %.", "group")
	liveLeastDelay     = runMetric("delay_least_seconds", "Lower bound of delay_seconds: without the times in which the radio was late, where they affected a delivery.", "group")
	liveDelayHistogram = runMetric("delivery_delay_seconds", "Delays from sent to received of the headline's group, for quantiles over part of a run.")
	liveLeftOut        = runMetric("messages_left_out_total", "Messages that are in no other live figure, because there were too many topics.")
	senderSent         = runMetric("sender_messages_total", "Messages that an app on a node sent.", "node", "app")
	senderBytes        = runMetric("sender_content_bytes_total", "Bytes of the content of the messages that an app on a node sent.", "node", "app")
	senderOffered      = runMetric("sender_deliveries_offered", "Deliveries to expect if everything that an app on a node triggered had been sent.", "node", "app")
	senderExpected     = runMetric("sender_deliveries_expected", "Deliveries expected of the messages of an app on a node.", "node", "app")
	senderReceived     = runMetric("sender_deliveries_received", "Deliveries that arrived of the messages of an app on a node.", "node", "app")
	nodeOffered        = runMetric("receiver_deliveries_offered", "Deliveries to a node to expect if everything triggered had been sent.", "node")
	nodeExpected       = runMetric("receiver_deliveries_expected", "Deliveries expected at a node.", "node")
	nodeReceived       = runMetric("receiver_deliveries_received", "Deliveries that arrived at a node.", "node")
	nodeLatitude       = runMetric("node_latitude_degrees", "Latitude of a node, WGS 84.", "node")
	nodeLongitude      = runMetric("node_longitude_degrees", "Longitude of a node, WGS 84.", "node")
	nodeAltitude       = runMetric("node_altitude_metres", "Altitude of a node, WGS 84.", "node")
	liveEvent          = runMetric("event_time_seconds", "Time of an event of a run, Unix seconds: T0, starts and stops of apps, changes by hand, incidents, the end of the drain.", "event")
)

// liveMetrics are those of runs that are under way or ended recently.
type liveMetrics struct {
	runs func() []*run
	now  func() time.Time
}

// Describe implements prometheus.Collector.
func (m *liveMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{liveInfo, liveHeadline, liveTriggered, liveSent, liveOffered, liveExpected, liveReceived, liveDuplicates, liveDelay, liveLeastDelay, liveDelayHistogram, liveLeftOut, senderSent,
		senderBytes, senderOffered, senderExpected, senderReceived, nodeOffered, nodeExpected, nodeReceived, nodeLatitude, nodeLongitude, nodeAltitude, liveEvent} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *liveMetrics) Collect(to chan<- prometheus.Metric) {
	for _, r := range m.runs() {
		figures := r.tally.liveFigures()
		r.mu.Lock()
		record, sealed := r.record, r.sealed
		incidents := append([]runapi.Incident(nil), r.incidents...)
		r.mu.Unlock()
		recently := m.now().Sub(time.Unix(r.lastActive.Load(), 0)) < liveMetricsLifetime
		if figures == nil || !sealed && !recently || record.UID == "" {
			continue
		}
		series := runSeries{to: to, labels: []string{record.Namespace, record.Name, record.UID}}
		series.gauge(liveInfo, 1, string(record.Phase))
		series.figures(figures.Figures())
		series.positions(r.tally.nodePositions())
		series.events(record.Plan, incidents, m.now())
	}
}

// runSeries sends the metrics of one run.
type runSeries struct {
	to     chan<- prometheus.Metric
	labels []string
}

func (s runSeries) labelValues(more ...string) []string {
	return append(s.labels[:len(s.labels):len(s.labels)], more...)
}

func (s runSeries) gauge(d *prometheus.Desc, value float64, more ...string) {
	s.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.labelValues(more...)...)
}

func (s runSeries) counter(d *prometheus.Desc, value int64, more ...string) {
	s.to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), s.labelValues(more...)...)
}

func (s runSeries) summary(d *prometheus.Desc, of live.Group, values []float64, sum float64) {
	quantiles := map[float64]float64{}
	for i, value := range values {
		quantiles[live.Quantiles[i]] = value
	}
	s.to <- prometheus.MustNewConstSummary(d, uint64(of.Received), sum, quantiles, s.labelValues(of.Name)...)
}

// figures of deliveries are gauges: deliveries after the end of the drain, or of ambiguous messages, are subtracted again.
func (s runSeries) figures(f live.Figures) {
	s.gauge(liveHeadline, 1, f.Headline.Name)
	s.counter(liveTriggered, f.Triggered)
	s.counter(liveSent, f.Sent)
	s.counter(liveLeftOut, f.LeftOut)
	s.to <- prometheus.MustNewConstHistogram(liveDelayHistogram, f.Count, f.SumSeconds, f.Buckets, s.labels...)
	for _, g := range f.Groups {
		s.gauge(liveOffered, float64(g.Offered), g.Name)
		s.gauge(liveExpected, float64(g.Expected), g.Name)
		s.gauge(liveReceived, float64(g.Received), g.Name)
		s.gauge(liveDuplicates, float64(g.Duplicates), g.Name)
		if g.DelaySeconds == nil {
			continue
		}
		s.summary(liveDelay, g, g.DelaySeconds, g.SumSeconds)
		s.summary(liveLeastDelay, g, g.LeastSeconds, g.LeastSumSeconds)
	}
	if len(f.Senders) <= maxLiveSeries {
		for _, one := range f.Senders {
			s.counter(senderSent, one.Sent, one.Node, one.App)
			s.counter(senderBytes, one.Bytes, one.Node, one.App)
			s.gauge(senderOffered, float64(one.Offered), one.Node, one.App)
			s.gauge(senderExpected, float64(one.Expected), one.Node, one.App)
			s.gauge(senderReceived, float64(one.Received), one.Node, one.App)
		}
	}
	if len(f.Receivers) <= maxLiveSeries {
		for _, one := range f.Receivers {
			s.gauge(nodeOffered, float64(one.Offered), one.Node)
			s.gauge(nodeExpected, float64(one.Expected), one.Node)
			s.gauge(nodeReceived, float64(one.Received), one.Node)
		}
	}
}

func (s runSeries) positions(places map[string][3]float64) {
	if len(places) > maxLiveSeries {
		return
	}
	for node, at := range places {
		s.gauge(nodeLatitude, at[0], node)
		s.gauge(nodeLongitude, at[1], node)
		s.gauge(nodeAltitude, at[2], node)
	}
}

// events have names so that one name has one time: repeated names are numbered.
func (s runSeries) events(plan runapi.Plan, incidents []runapi.Incident, now time.Time) {
	if plan.T0 == nil {
		return
	}
	seen, latest := map[string]int{}, map[string]int64{}
	at := func(nanoseconds int64, event string) {
		before, again := latest[event]
		latest[event] = nanoseconds
		when := plan.T0.Add(time.Duration(nanoseconds))
		if len(seen) >= maxLiveEvents || when.After(now) || again && nanoseconds-before < sameEventNanoseconds { // future actions may still be replaced
			return
		}
		if seen[event]++; seen[event] > 1 {
			event = fmt.Sprintf("%s (%d)", event, seen[event])
		}
		s.gauge(liveEvent, float64(when.UnixNano())/1e9, event)
	}
	at(0, "T0")
	for _, action := range plan.Armed {
		at(action.AtNanoseconds, string(action.Verb)+" "+actionApps(action))
	}
	for _, change := range plan.LiveChanges {
		at(change.AtNanoseconds, "change "+change.Name)
	}
	for _, incident := range incidents {
		at(int64(math.Round(incident.FromSeconds*1e9)), incident.What+" "+incident.Node)
	}
	if plan.MeasureEndNanoseconds != nil {
		at(*plan.MeasureEndNanoseconds, "end of the drain")
	}
}

// actionApps names the apps of an action, each once.
func actionApps(action runapi.Action) (names string) {
	seen := map[string]bool{}
	for _, target := range action.Targets {
		if seen[target.App] {
			continue
		}
		if seen[target.App] = true; names != "" {
			names += ", "
		}
		names += target.App
	}
	return names
}
