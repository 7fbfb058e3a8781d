package networks

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/radiod/waveforms"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// start makes the network in its current state, with its remaining changes. Its trouble says why radios do not work; nodes
// can attach nevertheless.
func (n *network) start() error {
	r := n.request(clock.Realtime())
	r.Paused = n.networks.restoring
	if err := n.networks.Plane.SetNetwork(r); err != nil {
		return err
	}
	n.requested(r)
	if last, has := n.networks.left.Steps[r.UID]; has && n.networks.restoring && n.preparer != nil {
		if err := n.preparer.TakeOver(last); err != nil {
			n.networks.Log.Error("steps that fell due without a worker", "network", n.object.Name, "error", err)
		}
	}
	return n.beginPreparation()
}

// request returns the request for a network as its object has it now. Its radios are silent while something is missing.
func (n *network) request(now int64) *dataplane.Network {
	missing := n.updateEnvironment()
	r, err := waveforms.Network(string(n.object.UID), &n.object.Spec, now, missing != nil)
	waveforms.AddNeighbours(r, n.neighbours(), now)
	n.trouble = errors.Join(missing, refusal.Of(err))
	n.requests++
	r.Version = n.requests
	return r
}

// requested notes what the data plane has been asked for.
func (n *network) requested(r *dataplane.Network) {
	n.running, n.state = r, r.Now
	n.networks.Silenced()
}

// change updates a running network to its object's current state. Frames in flight are not disturbed.
func (n *network) change(before *v1alpha1.RadioNetworkSpec) error {
	now, spec := clock.Realtime(), &n.object.Spec
	r := n.request(now)
	if err := n.beginPreparation(); err != nil {
		return err
	}
	if err := n.networks.Plane.SetNetwork(r); err != nil {
		return fmt.Errorf("waveform of %s: %w", spec.Network, err)
	}
	n.requested(r)
	for _, c := range waveforms.NewlyOverdue(before, spec, now) {
		done := clock.Realtime()
		n.countChange(spec.Network, done, time.Duration(done-spec.T0.UnixNano()-c.AtNanoseconds))
	}
	return nil
}

// follow handles what the data plane reports, until it is closed.
func (m *Networks) follow(plane dataplane.Plane) {
	for {
		events := plane.Events()
		if len(events) == 0 {
			return
		}
		for i := range events {
			switch e := &events[i]; {
			case e.Gone != 0:
				m.portGone(e.Gone)
			case e.Host != "":
				if h := m.hosts.Load(); h != nil {
					h.ReachabilityChanged(e)
				}
			case e.Forgotten != 0:
				m.changes.applied.Add(e.Forgotten)
				m.Log.Error("changes of networks were carried out faster than they were noted", "changes", e.Forgotten)
			default:
				m.changeCarriedOut(e)
			}
		}
	}
}

// portGone cleans up after a port whose interface the kernel has removed.
func (m *Networks) portGone(port dataplane.PortID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.networks {
		for _, a := range n.attachments {
			if a.port == port {
				go a.Gone()
			}
		}
	}
}

// changeCarriedOut notes a change that the data plane has carried out.
func (m *Networks) changeCarriedOut(e *dataplane.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[e.Network]
	if n == nil || n.running == nil {
		return
	}
	done := clock.Realtime()
	if n.running.Version == e.Version { // else the newer request has it
		done = n.running.T0 + n.running.Later[e.Change].AtNanoseconds + int64(e.Late)
		n.state = n.state.FollowedBy(&n.running.Later[e.Change].State)
		m.Silenced()
	}
	if !e.Neighbour {
		n.countChange(n.object.Spec.Network, done, e.Late)
	}
}

// changeCounters count the changes of running networks.
type changeCounters struct{ applied, late atomic.Uint64 }

// countChange counts a change that was done at a time of CLOCK_REALTIME, so much after its own.
func (n *network) countChange(name string, done int64, late time.Duration) {
	m := n.networks
	m.changes.applied.Add(1)
	if late > radio.LateThreshold {
		m.changes.late.Add(1)
		n.lateChanges.add(radio.Interval{From: done - int64(late), To: done, Worst: int64(late)})
		go m.Log.Warn("a change of a network was applied late", "network", name, "lateness", late)
	}
}

// lateChanges are the times in which changes of a network were due and not carried out. EMANE's driver adds to them without the lock of
// the networks.
type lateChanges struct {
	mu    sync.Mutex
	times radio.Intervals
}

func (l *lateChanges) add(one radio.Interval) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times.Add(one)
}

// take returns them with reset, and forgets them.
func (l *lateChanges) take(reset bool) []radio.Interval {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !reset {
		return nil
	}
	return l.times.Take()
}

func (c *changeCounters) collectors() []prometheus.Collector {
	counter := func(name, help string, value *atomic.Uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "vignette_radio_changes_" + name, Help: help}, func() float64 { return float64(value.Load()) })
	}
	return []prometheus.Collector{counter("total", "Changes of running networks carried out.", &c.applied),
		counter("late_total", "Changes of running networks carried out more than 2 ms late.", &c.late)}
}
