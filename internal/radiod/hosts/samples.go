package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/runapi"
)

const sampleInterval = time.Second

// Log takes lines of runs.
type Log interface {
	Append(runUID string, now int64, lines []byte) error
}

// Run samples the state of other hosts once a second, until ctx ends.
func (h *Hosts) Run(ctx context.Context, log Log) error {
	clock.Every(ctx, sampleInterval, func() {
		h.wiring.Lock()
		h.updatePeers() // removes hosts that left long enough ago
		h.wiring.Unlock()
		if err := h.sample(log, clock.Realtime()); err != nil {
			h.Log.Error("write samples of other hosts", "error", err)
		}
	})
	return nil
}

// sample writes a line for each other host of each run.
func (h *Hosts) sample(log Log, now int64) (failed error) {
	lines := map[string]*runapi.RadioPeer{}
	states := h.states(true)
	for i := range states.Hosts {
		lines[states.Hosts[i].Host] = lineOf(&states.Hosts[i], now)
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
		if text.Len() == 0 {
			continue
		}
		failed = errors.Join(failed, log.Append(uid, now, text.Bytes()))
	}
	return failed
}

// States of the hosts that share networks with this one.
func (h *Hosts) States() []dataplane.HostState { return h.states(false).Hosts }

func (h *Hosts) states(reset bool) dataplane.HostStates {
	states, err := h.Plane.Hosts(reset)
	h.note(err)
	return states
}

func lineOf(state *dataplane.HostState, now int64) *runapi.RadioPeer {
	line := &runapi.RadioPeer{TimeNanoseconds: now, Peer: state.Host, Reachable: state.Reachable, Sent: state.Sent, NotSent: state.Lost,
		MissingDatagrams: state.Missing, Received: state.Received, Late: state.Late, Unusable: state.Unusable, WorstLateSeconds: state.WorstLate.Seconds()}
	if state.Clock.Known {
		offset, uncertainty, trip := state.Clock.RealtimeOffset.Seconds(), state.Clock.Uncertainty.Seconds(), state.Clock.RoundTrip.Seconds()
		line.OffsetSeconds, line.UncertaintySeconds, line.RoundTripSeconds = &offset, &uncertainty, &trip
	}
	return line
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
func (h *Hosts) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(h, to) }

// Collect implements prometheus.Collector.
func (h *Hosts) Collect(to chan<- prometheus.Metric) {
	states := h.states(false)
	to <- prometheus.MustNewConstMetric(hostRejected, prometheus.CounterValue, float64(states.Rejected))
	for i := range states.Hosts {
		state := &states.Hosts[i]
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
		for desc, value := range map[*prometheus.Desc]uint64{hostSent: state.Sent, hostNotSent: state.Lost, hostMissing: state.Missing,
			hostReceived: state.Received, hostLate: state.Late, hostUnusable: state.Unusable} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), state.Host)
		}
	}
}
