package worker

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// lateChangeThreshold is the lateness above which a change counts as late.
	lateChangeThreshold = 2 * time.Millisecond
	// clockCheckInterval bounds how long a step of CLOCK_REALTIME stays unnoticed while a change is waited for.
	clockCheckInterval = time.Second
)

// replayUntil applies a network's changes up to a moment, Unix epoch in nanoseconds.
func replayUntil(spec *v1alpha1.RadioNetworkSpec, air *environment, now int64) (*replay, error) {
	r, err := newReplay(spec, air)
	r.advance(now - r.t0)
	return r, err
}

// replay applies a network's changes one after the other.
type replay struct {
	waveform waveform
	// silencedByAdministrator is the administrator's silence, which no change ends; silent is set by changes.
	silencedByAdministrator, silent bool
	t0                              int64 // nanoseconds of the Unix epoch
	changes                         []v1alpha1.TimedRadioChange
	next                            int // of the changes
}

// newReplay begins before the first change. An error names what is wrong; wrong changes are left out, and
// without a usable waveform the radios are silent.
func newReplay(spec *v1alpha1.RadioNetworkSpec, air *environment) (*replay, error) {
	r := &replay{silencedByAdministrator: spec.Silent}
	if spec.T0 != nil { // without T0 no change happens
		r.t0 = spec.T0.UnixNano()
		r.changes = slices.SortedStableFunc(slices.Values(spec.Changes), func(a, b v1alpha1.TimedRadioChange) int {
			return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds)
		})
	}
	w, err := newWaveform(spec, r.changes, air)
	if w == nil {
		w, r.silencedByAdministrator = newLinks(spec, air), true
	}
	r.waveform = w
	return r, err
}

// advance applies the changes up to an offset from T0 in nanoseconds, and returns their number.
func (r *replay) advance(offset int64) (carriedOut int) {
	for r.next < len(r.changes) && r.changes[r.next].AtNanoseconds <= offset {
		change := &r.changes[r.next].RadioChange
		if change.Silent != nil {
			r.silent = *change.Silent
		}
		r.waveform.apply(change)
		r.next++
		carriedOut++
	}
	return carriedOut
}

// snapshot returns the current settings; later changes do not affect them.
func (r *replay) snapshot() (s settings, silent bool) {
	return r.waveform.snapshot(), r.silent || r.silencedByAdministrator
}

// wait returns the time until the next change, in nanoseconds from the given time of the Unix epoch. It is
// bounded so that steps of the clock are noticed.
func (r *replay) wait(now int64) (wait int64, more bool) {
	if r.next == len(r.changes) {
		return 0, false
	}
	return min(r.t0+r.changes[r.next].AtNanoseconds-now, int64(clockCheckInterval)), true
}

// newlyOverdue returns the changes before the given time, Unix epoch in nanoseconds, that were not known by
// then.
func newlyOverdue(before, spec *v1alpha1.RadioNetworkSpec, now int64) (overdue []v1alpha1.TimedRadioChange) {
	if spec.T0 == nil {
		return nil
	}
	known := map[int64][]v1alpha1.RadioChange{}
	if before.T0.Equal(spec.T0) {
		for _, c := range before.Changes {
			known[c.AtNanoseconds] = append(known[c.AtNanoseconds], c.RadioChange)
		}
	}
	for _, c := range spec.Changes {
		if spec.T0.UnixNano()+c.AtNanoseconds > now {
			continue
		}
		if !slices.ContainsFunc(known[c.AtNanoseconds], func(k v1alpha1.RadioChange) bool { return equality.Semantic.DeepEqual(k, c.RadioChange) }) {
			overdue = append(overdue, c)
		}
	}
	return overdue
}

// start makes the network in its current state, and schedules its remaining changes. Its trouble says
// why radios do not work; nodes can attach nevertheless.
func (n *network) start() error {
	spec := &n.object.Spec
	n.environment = &environment{}
	r := n.replay(clock.Realtime())
	s, silent := r.snapshot()
	running, err := n.room.Radio.NewNetwork(radio.NetworkOptions{Model: s.model(), MTU: int(spec.MTU), Silent: silent})
	if err != nil {
		return err
	}
	n.running, n.initialSettings = running, s
	n.publishSilence(s, silent)
	n.schedule(r)
	return nil
}

// replay returns the current state of a network's object. Its radios are silent while something is missing.
func (n *network) replay(now int64) *replay {
	missing := n.updateEnvironment()
	r, err := replayUntil(&n.object.Spec, n.environment, now)
	r.silencedByAdministrator = r.silencedByAdministrator || missing != nil
	n.trouble = errors.Join(missing, refusal.Of(err))
	return r
}

// change updates a running network to its object's current state. Frames in flight are not disturbed.
func (n *network) change(before *v1alpha1.RadioNetworkSpec) error {
	now, spec := clock.Realtime(), &n.object.Spec
	r := n.replay(now)
	if s, _ := r.snapshot(); reflect.TypeOf(s) != reflect.TypeOf(n.initialSettings) {
		err := n.running.Configure(int(spec.MTU), true, nil)
		return errors.Join(err, fmt.Errorf("waveform of %s: it changed to another model while the network ran: its radios are silent", spec.Network))
	}
	s, silent := r.snapshot()
	if err := n.running.Configure(int(spec.MTU), silent, s.configure); err != nil {
		return err
	}
	n.publishSilence(s, silent)
	for _, c := range newlyOverdue(before, spec, now) {
		n.room.countChange(spec.Network, time.Duration(clock.Realtime()-spec.T0.UnixNano()-c.AtNanoseconds))
	}
	n.schedule(r)
	return nil
}

// schedule hands the remaining changes to the network's loop, which owns the replay from now on.
func (n *network) schedule(r *replay) {
	monotonic := clock.Monotonic() // read first: a delay here makes the alarm early, which only costs another one
	wait, more := r.wait(clock.Realtime())
	if !more {
		return
	}
	name := n.object.Spec.Network
	n.running.Schedule(monotonic+wait, func(now int64, model radio.Model) (silent bool, next int64) {
		first, realtime := r.next, clock.Realtime()
		carriedOut := r.advance(realtime - r.t0)
		s, silent := r.snapshot()
		if carriedOut > 0 {
			s.configure(now, model)
			n.publishSilence(s, silent)
			for _, c := range r.changes[first:r.next] {
				n.room.countChange(name, time.Duration(realtime-r.t0-c.AtNanoseconds))
			}
		}
		if wait, more := r.wait(realtime); more {
			next = now + max(wait, 1)
		}
		return silent, next
	})
}

// silentRadios has the radios of a network that may not transmit.
type silentRadios struct {
	all   bool
	radio func(*radio.Port) phy.Radio // nil for models without radio silence of single nodes
}

func (q *silentRadios) includes(nem int32) bool {
	if q == nil {
		return false
	}
	return q.all || q.radio != nil && !q.radio(&radio.Port{PortOptions: radio.PortOptions{NEM: int(nem)}}).Transmit
}

// publishSilence stores which radios are silent, for the routers. It must not block, because the network's loop
// calls it.
func (n *network) publishSilence(s settings, silent bool) {
	q := &silentRadios{all: silent}
	switch s := s.(type) {
	case pipeSettings:
		q.radio = s.Radio
	case slotSettings:
		q.radio = s.Radio
	}
	n.silentRadios.Store(q)
	n.room.Silenced()
}

// changeCounters count the changes of running networks.
type changeCounters struct{ applied, late atomic.Uint64 }

// countChange counts a change. It must not block, because the network's loop calls it.
func (m *Networks) countChange(network string, late time.Duration) {
	m.changes.applied.Add(1)
	if late > lateChangeThreshold {
		m.changes.late.Add(1)
		go m.Log.Warn("a change of a network was applied late", "network", network, "lateness", late)
	}
}

func (c *changeCounters) collectors() []prometheus.Collector {
	counter := func(name, help string, value *atomic.Uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "vignette_radio_changes_" + name, Help: help}, func() float64 { return float64(value.Load()) })
	}
	return []prometheus.Collector{counter("total", "Changes of running networks carried out.", &c.applied),
		counter("late_total", "Changes of running networks carried out more than 2 ms late.", &c.late)}
}
