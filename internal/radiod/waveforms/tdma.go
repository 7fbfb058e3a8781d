package waveforms

import (
	"cmp"
	"errors"
	"fmt"

	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// slots is the waveform tdma.
type slots struct {
	fixed    dataplane.TDMAModel
	radios   *radios
	schedule *tdma.Schedule
	// schedules that begin with changes.
	schedules map[*v1alpha1.RadioChange]*tdma.Schedule
}

func newTDMA(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange) (waveform, error) {
	w := spec.Waveform.TDMA
	if _, err := phy.CurveOf(w.PCR); err != nil {
		return nil, fmt.Errorf("waveform: pcr: %w", err)
	}
	first, later, changesErr := linkbudget.Schedules(spec, changes)
	if first == nil {
		return nil, fmt.Errorf("waveform: %w", changesErr)
	}
	s := &slots{radios: newRadios(spec, w.Rate), schedule: first, schedules: later, fixed: dataplane.TDMAModel{Seed: spec.Seed,
		Interference: interferences[cmp.Or(w.Interference, v1alpha1.InterferenceAll)], PCR: w.PCR, Queue: queueOf(&w.Queue)}}
	for _, r := range w.AdaptiveRates {
		s.fixed.AdaptiveRates = append(s.fixed.AdaptiveRates, tdma.Rate{BitsPerSecond: uint64(r.Rate.BitsPerSecond()), SINRDB: r.SINR.DB()})
	}
	if err := tdma.CheckRates(s.fixed.AdaptiveRates, first.Structure()); err != nil {
		return nil, fmt.Errorf("waveform: %w", err)
	}
	return s, errors.Join(changesErr, checkJammers(changes, s.fixed.Interference))
}

func (w *slots) model(n *dataplane.Network) { n.TDMA = &w.fixed }

func (w *slots) apply(change *v1alpha1.RadioChange) {
	if change.Radio != nil {
		w.radios.patch(change.From, change.Radio)
	}
	if schedule := w.schedules[change]; schedule != nil {
		w.schedule = schedule
	}
}

// state gives the radios the schedule's bandwidth, by which the other networks of the spectrum know them.
func (w *slots) state(s *dataplane.State) {
	s.Radios, s.Schedule = w.radios.state(), w.schedule
	for nem, r := range s.Radios.ByNEM {
		r.BandwidthHertz = float64(w.schedule.Structure().BandwidthHertz)
		s.Radios.ByNEM[nem] = r
	}
}

func queueOf(q *v1alpha1.TDMAQueue) tdma.Queue {
	queue := tdma.DefaultQueue()
	queue.Depth = cmp.Or(int(q.Depth), queue.Depth)
	if q.Aggregation != nil {
		queue.Aggregation = *q.Aggregation
	}
	if q.AggregationThreshold != "" {
		queue.AggregationThreshold = q.AggregationThreshold.Fraction()
	}
	if q.Fragmentation != nil {
		queue.Fragmentation = *q.Fragmentation
	}
	queue.StrictDequeue = q.StrictDequeue
	return queue
}
