package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/runapi"
)

// followInterval is how often slot clocks are updated. Clocks that drift by 100 ppm differ by 10 µs after it.
const followInterval = 100 * time.Millisecond

// Run communicates with other hosts until ctx ends, and samples their state once a second. A nil sampler
// writes nothing.
func (h *Hosts) Run(ctx context.Context, sampler *Sampler) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { every(ctx, followInterval, h.followClocks) })
	wait.Go(func() {
		every(ctx, sampleInterval, func() {
			h.wiring.Lock()
			h.updatePeers() // removes hosts that left long enough ago
			h.wiring.Unlock()
			if err := h.sample(sampler, clock.Realtime()); err != nil {
				h.Manager.Log.Error("write samples of other hosts", "error", err)
			}
		})
	})
	return h.peers.Run(ctx)
}

// every calls f at an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f()
		}
	}
}

// sample writes a line for each other host of each run.
func (h *Hosts) sample(sampler *Sampler, now int64) (failed error) {
	lines := map[string]*runapi.RadioPeer{}
	for _, state := range h.peers.States() {
		lines[state.Host] = h.lineOf(&state, now)
	}
	h.wiring.RLock()
	runs := map[string]map[string]bool{}
	for _, s := range h.networks {
		if runs[s.runUID] == nil {
			runs[s.runUID] = map[string]bool{}
		}
		for name := range s.hosts {
			runs[s.runUID][name] = true
		}
	}
	h.wiring.RUnlock()
	for uid, names := range runs {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		for name := range names {
			if lines[name] != nil {
				failed = errors.Join(failed, encoder.Encode(lines[name]))
			}
		}
		if sampler == nil || text.Len() == 0 {
			continue
		}
		r, err := sampler.openRunLog(uid)
		if err == nil {
			err = r.spool.append(now, text.Bytes())
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (h *Hosts) lineOf(state *peers.State, now int64) *runapi.RadioPeer {
	line := &runapi.RadioPeer{TimeNanoseconds: now, Peer: state.Host, Reachable: state.Reachable, Sent: state.Sent, NotSent: state.Lost,
		MissingDatagrams: state.Missing}
	if state.Clock.Known {
		offset, uncertainty, trip := state.Clock.RealtimeOffset.Seconds(), state.Clock.Uncertainty.Seconds(), state.Clock.RoundTrip.Seconds()
		line.OffsetSeconds, line.UncertaintySeconds, line.RoundTripSeconds = &offset, &uncertainty, &trip
	}
	if c := h.countersOf(state.Host); c != nil {
		line.Received, line.Late, line.Unusable = c.received.Load(), c.late.Load(), c.unusable.Load()
		line.WorstLateSeconds = time.Duration(c.worst.Swap(0)).Seconds()
	}
	return line
}

func (h *Hosts) countersOf(host string) *hostCounters {
	h.wiring.RLock()
	defer h.wiring.RUnlock()
	return h.counters[host]
}

func hostMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("vignette_radio_host_"+name, help, []string{"host"}, nil)
}

var (
	hostReachable   = hostMetric("reachable", "1 if another host was heard within the last second.")
	hostOffset      = hostMetric("clock_offset_seconds", "Another host's real-time clock minus this one's.")
	hostUncertainty = hostMetric("clock_uncertainty_seconds", "Upper bound of the error of clock_offset_seconds.")
	hostTrip        = hostMetric("round_trip_seconds", "Round trip of the exchange that measured the clock's offset.")
	hostSent        = hostMetric("sent_total", "Transmissions sent to another host.")
	hostNotSent     = hostMetric("not_sent_total", "Transmissions that could not be sent to another host.")
	hostReceived    = hostMetric("received_total", "Transmissions received from another host.")
	hostLate        = hostMetric("late_total", "Transmissions of another host that came too late.")
	hostUnusable    = hostMetric("unusable_total", "Transmissions of another host with an unknown network or source, before its clock was measured, or in a time slot that differs by this host's clock.")
	hostMissing     = hostMetric("missing_datagrams_total", "Datagrams of another host that were lost on the way.")
	hostRejected    = prometheus.NewDesc("vignette_radio_host_rejected_total", "Datagrams that were not authentic, or replayed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (h *Hosts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{hostReachable, hostOffset, hostUncertainty, hostTrip, hostSent, hostNotSent, hostReceived, hostLate,
		hostUnusable, hostMissing, hostRejected} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (h *Hosts) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(hostRejected, prometheus.CounterValue, float64(h.peers.Rejected()))
	for _, state := range h.peers.States() {
		reachable := 0.0
		if state.Reachable {
			reachable = 1
		}
		gauges := map[*prometheus.Desc]float64{hostReachable: reachable}
		if state.Clock.Known {
			gauges[hostOffset], gauges[hostUncertainty] = state.Clock.RealtimeOffset.Seconds(), state.Clock.Uncertainty.Seconds()
			gauges[hostTrip] = state.Clock.RoundTrip.Seconds()
		}
		for desc, value := range gauges {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, state.Host)
		}
		counters := map[*prometheus.Desc]uint64{hostSent: state.Sent, hostNotSent: state.Lost, hostMissing: state.Missing}
		if c := h.countersOf(state.Host); c != nil {
			counters[hostReceived], counters[hostLate], counters[hostUnusable] = c.received.Load(), c.late.Load(), c.unusable.Load()
		}
		for desc, value := range counters {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), state.Host)
		}
	}
}
