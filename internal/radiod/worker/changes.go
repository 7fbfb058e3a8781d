package worker

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// lateChange is how late a change may be carried out without being noted.
	lateChange = 2 * time.Millisecond
	// followClock bounds how long a step of CLOCK_REALTIME stays unnoticed while a change is waited for.
	followClock = time.Second
)

// replayUntil folds a network's waveform, links and changes into what holds at a moment, Unix epoch in nanoseconds.
func replayUntil(spec *v1alpha1.RadioNetworkSpec, now int64) *replay {
	r := newReplay(spec)
	r.advance(now - r.t0)
	return r
}

// replay carries out a network's changes one after the other.
type replay struct {
	config link.Config
	// switchedOff is the administrator's silence, which no change ends; silent is that of the changes.
	switchedOff, silent bool
	t0                  int64 // nanoseconds of the Unix epoch
	changes             []v1alpha1.TimedRadioChange
	next                int // of the changes
}

// newReplay begins before the first change.
func newReplay(spec *v1alpha1.RadioNetworkSpec) *replay {
	r := &replay{config: link.Config{Seed: spec.Seed}, switchedOff: spec.Silent}
	if spec.Waveform.Link != nil {
		r.config.Default = linkParameters(spec.Waveform.Link)
	}
	for i := range spec.Links {
		l := &spec.Links[i]
		r.config.Links = append(r.config.Links, link.Link{From: l.From, To: l.To, Parameters: linkParameters(&l.LinkModel)})
	}
	if spec.T0 != nil { // else none has happened, and none will
		r.t0 = spec.T0.UnixNano()
		r.changes = slices.SortedStableFunc(slices.Values(spec.Changes), func(a, b v1alpha1.TimedRadioChange) int {
			return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds)
		})
	}
	return r
}

// advance carries out the changes up to an offset from T0 in nanoseconds, and gives their number.
func (r *replay) advance(offset int64) (carriedOut int) {
	for r.next < len(r.changes) && r.changes[r.next].AtNanoseconds <= offset {
		r.apply(&r.changes[r.next].RadioChange)
		r.next++
		carriedOut++
	}
	return carriedOut
}

func (r *replay) apply(change *v1alpha1.RadioChange) {
	if change.Silent != nil {
		r.silent = *change.Silent
	}
	if change.Link != nil {
		patch(r.link(cmp.Or(change.From, link.Everybody), cmp.Or(change.To, link.Everybody)), change.Link)
	}
}

// link that a change is for. One that is not there yet begins as the network's own.
func (r *replay) link(from, to string) *link.Parameters {
	i := slices.IndexFunc(r.config.Links, func(l link.Link) bool { return l.From == from && l.To == to })
	switch {
	case i >= 0:
	case from == link.Everybody && to == link.Everybody:
		return &r.config.Default
	default:
		i = len(r.config.Links)
		r.config.Links = append(r.config.Links, link.Link{From: from, To: to, Parameters: r.config.Default})
	}
	return &r.config.Links[i].Parameters
}

// snapshot is what holds now; later changes do not reach it.
func (r *replay) snapshot() (config link.Config, silent bool) {
	config = r.config
	config.Links = slices.Clone(config.Links)
	return config, r.silent || r.switchedOff
}

// wait is the time until the next change, in nanoseconds from the given time of the Unix epoch, bounded so that
// steps of the clock are noticed.
func (r *replay) wait(now int64) (wait int64, more bool) {
	if r.next == len(r.changes) {
		return 0, false
	}
	return min(r.t0+r.changes[r.next].AtNanoseconds-now, int64(followClock)), true
}

// linkParameters of a link as the API has it.
func linkParameters(l *v1alpha1.LinkModel) link.Parameters {
	p := link.Parameters{Delay: l.Delay.Std(), Jitter: l.Jitter.Std(), NormalJitter: l.JitterDistribution == v1alpha1.JitterNormal,
		Reorder: l.Reorder, Loss: l.Loss.Fraction(), Duplicate: l.Duplicate.Fraction(), Limit: int(l.Limit)}
	if l.Rate != nil {
		p.RateBitsPerSecond = l.Rate.BitsPerSecond()
	}
	if l.GilbertElliott != nil {
		p.GilbertElliott = gilbertElliott(l.GilbertElliott)
	}
	if l.LimitBytes != nil {
		p.LimitBytes = *l.LimitBytes
	}
	return p
}

func gilbertElliott(g *v1alpha1.GilbertElliott) *link.GilbertElliott {
	return &link.GilbertElliott{GoodToBad: g.GoodToBad.Fraction(), BadToGood: g.BadToGood.Fraction(),
		LossInGood: g.LossInGood.Fraction(), LossInBad: cmp.Or(g.LossInBad, "100%").Fraction()}
}

// patch replaces what the patch gives.
func patch(p *link.Parameters, l *v1alpha1.LinkPatch) {
	if l.Rate != nil {
		p.RateBitsPerSecond = l.Rate.BitsPerSecond()
	}
	if l.Delay != nil {
		p.Delay = l.Delay.Std()
	}
	if l.Jitter != nil {
		p.Jitter = l.Jitter.Std()
	}
	if l.JitterDistribution != nil {
		p.NormalJitter = *l.JitterDistribution == v1alpha1.JitterNormal
	}
	if l.Reorder != nil {
		p.Reorder = *l.Reorder
	}
	if l.Loss != nil {
		p.Loss, p.GilbertElliott = l.Loss.Fraction(), nil
	}
	if l.GilbertElliott != nil {
		p.Loss, p.GilbertElliott = 0, gilbertElliott(l.GilbertElliott)
	}
	if l.Duplicate != nil {
		p.Duplicate = l.Duplicate.Fraction()
	}
	if l.Limit != nil {
		p.Limit = int(*l.Limit)
	}
	if l.LimitBytes != nil {
		p.LimitBytes = *l.LimitBytes
	}
}

// newlyOverdue are the changes that should have been carried out before the given time, Unix epoch in nanoseconds, but
// were not known by then.
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

// startNetwork makes the network as it is by now, which will carry out the rest of its changes by itself.
func (m *Manager) startNetwork(spec *v1alpha1.RadioNetworkSpec) (*radio.Network, error) {
	r := replayUntil(spec, clock.Realtime())
	config, silent := r.snapshot()
	running, err := m.Engine.NewNetwork(radio.NetworkOptions{Model: link.New(config), MTU: int(spec.MTU), Silent: silent})
	if err == nil {
		m.schedule(running, spec.Network, r)
	}
	return running, err
}

// changeNetwork makes a running network what its object says by now. Frames in flight are not disturbed.
func (m *Manager) changeNetwork(running *radio.Network, before, spec *v1alpha1.RadioNetworkSpec) error {
	now := clock.Realtime()
	r := replayUntil(spec, now)
	config, silent := r.snapshot()
	err := running.Configure(int(spec.MTU), silent, func(model radio.Model) { model.(*link.Model).Configure(config) })
	if err != nil {
		return err
	}
	for _, c := range newlyOverdue(before, spec, now) {
		m.noteChange(spec.Network, time.Duration(clock.Realtime()-spec.T0.UnixNano()-c.AtNanoseconds))
	}
	m.schedule(running, spec.Network, r)
	return nil
}

// schedule leaves the changes that are to come to the network's loop, to which the replay belongs from now on.
func (m *Manager) schedule(running *radio.Network, network string, r *replay) {
	monotonic := clock.Monotonic() // read first: whoever holds us up here makes the alarm early, which costs another one
	wait, more := r.wait(clock.Realtime())
	if !more {
		return
	}
	running.Schedule(monotonic+wait, func(now int64, model radio.Model) (silent bool, next int64) {
		first, realtime := r.next, clock.Realtime()
		carriedOut := r.advance(realtime - r.t0)
		config, silent := r.snapshot()
		if carriedOut > 0 {
			model.(*link.Model).Configure(config)
			for _, c := range r.changes[first:r.next] {
				m.noteChange(network, time.Duration(realtime-r.t0-c.AtNanoseconds))
			}
		}
		if wait, more := r.wait(realtime); more {
			next = now + max(wait, 1)
		}
		return silent, next
	})
}

// changeCounters count the changes that networks have been through while they ran.
type changeCounters struct{ carriedOut, late atomic.Uint64 }

var (
	changesTotal = prometheus.NewDesc("vignette_radio_changes_total", "Changes of running networks carried out.", nil, nil)
	changesLate  = prometheus.NewDesc("vignette_radio_changes_late_total", "Changes of running networks carried out more than 2 ms late.", nil, nil)
)

// noteChange counts a change. It must not block: the network's loop calls it.
func (m *Manager) noteChange(network string, late time.Duration) {
	m.changes.carriedOut.Add(1)
	if late > lateChange {
		m.changes.late.Add(1)
		go m.Log.Warn("a change of a network was carried out late", "network", network, "lateness", late)
	}
}

func (c *changeCounters) collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(changesTotal, prometheus.CounterValue, float64(c.carriedOut.Load()))
	to <- prometheus.MustNewConstMetric(changesLate, prometheus.CounterValue, float64(c.late.Load()))
}
