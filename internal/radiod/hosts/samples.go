package hosts

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

const sampleInterval = time.Second

// Log takes lines of runs.
type Log interface {
	Append(runUID string, now int64, lines []byte) error
}

// Run communicates with other hosts until ctx ends, and samples their state once a second. A nil log
// takes nothing.
func (h *Hosts) Run(ctx context.Context, log Log) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { clock.Every(ctx, followInterval, h.followClocks) })
	wait.Go(func() {
		clock.Every(ctx, sampleInterval, func() {
			h.wiring.Lock()
			h.updatePeers() // removes hosts that left long enough ago
			h.wiring.Unlock()
			if err := h.sample(log, clock.Realtime()); err != nil {
				h.Log.Error("write samples of other hosts", "error", err)
			}
		})
	})
	return h.peers.Run(ctx)
}

// sample writes a line for each other host of each run.
func (h *Hosts) sample(log Log, now int64) (failed error) {
	lines := map[string]*runapi.RadioPeer{}
	for _, state := range h.States() {
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
		if log == nil || text.Len() == 0 {
			continue
		}
		failed = errors.Join(failed, log.Append(uid, now, text.Bytes()))
	}
	return failed
}

// followClocks makes each network's slots follow the reachable host whose name is first. So all hosts have the same slots
// even if their clocks differ.
func (h *Hosts) followClocks() {
	h.wiring.RLock()
	defer h.wiring.RUnlock()
	now := clock.Monotonic()
	ahead := h.PeerTime(now) - now
	for _, s := range h.networks {
		if s.Ports == nil {
			continue
		}
		first, epoch := h.Host, int64(0)
		for name, far := range s.hosts {
			if _, lost := h.lost[name]; lost || name >= first || far.peer == nil {
				continue
			}
			if there := far.peer.Clock(); there.Known {
				first, epoch = name, there.Epoch+ahead
			}
		}
		s.Ports.FollowClock(epoch)
	}
}

// State of another host.
type State struct {
	peers.State
	// Received transmissions of the host, those among them that came too late, and those that were of no use here.
	Received, Late, Unusable uint64
}

// States of the hosts that share networks with this one.
func (h *Hosts) States() (all []State) {
	for _, state := range h.peers.States() {
		s := State{State: state}
		if c := h.countersOf(state.Host); c != nil {
			s.Received, s.Late, s.Unusable = c.received.Load(), c.late.Load(), c.unusable.Load()
		}
		all = append(all, s)
	}
	return all
}

func (h *Hosts) lineOf(state *State, now int64) *runapi.RadioPeer {
	line := &runapi.RadioPeer{TimeNanoseconds: now, Peer: state.Host, Reachable: state.Reachable, Sent: state.Sent, NotSent: state.Lost,
		MissingDatagrams: state.Missing, Received: state.Received, Late: state.Late, Unusable: state.Unusable}
	if state.Clock.Known {
		offset, uncertainty, trip := state.Clock.RealtimeOffset.Seconds(), state.Clock.Uncertainty.Seconds(), state.Clock.RoundTrip.Seconds()
		line.OffsetSeconds, line.UncertaintySeconds, line.RoundTripSeconds = &offset, &uncertainty, &trip
	}
	if c := h.countersOf(state.Host); c != nil {
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
func (h *Hosts) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(h, to) }

// Collect implements prometheus.Collector.
func (h *Hosts) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(hostRejected, prometheus.CounterValue, float64(h.peers.Rejected()))
	for _, state := range h.States() {
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
