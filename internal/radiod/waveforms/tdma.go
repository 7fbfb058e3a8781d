package waveforms

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/linkbudget"
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
	if err := checkPCR(w.PCR); err != nil {
		return nil, err
	}
	first, err := firstSchedule(spec)
	if err != nil {
		return nil, fmt.Errorf("waveform: %w", err)
	}
	s := &slots{radios: newRadios(spec, w.Rate), schedule: first, fixed: dataplane.TDMAModel{Seed: spec.Seed,
		Interference: interferenceOf(cmp.Or(w.Interference, v1alpha1.InterferenceAll)), PCR: w.PCR, Queue: queueOf(&w.Queue)}}
	for _, r := range w.AdaptiveRates {
		s.fixed.AdaptiveRates = append(s.fixed.AdaptiveRates, tdma.Rate{BitsPerSecond: uint64(r.Rate.BitsPerSecond()), SINRDB: r.SINR.DB()})
	}
	if err := tdma.CheckRates(s.fixed.AdaptiveRates, first.Structure()); err != nil {
		return nil, fmt.Errorf("waveform: %w", err)
	}
	s.schedules, err = laterSchedules(spec, changes, first)
	return s, errors.Join(err, checkJammers(changes, s.fixed.Interference))
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

func firstSchedule(spec *v1alpha1.RadioNetworkSpec) (*tdma.Schedule, error) {
	w := spec.Waveform.TDMA
	if w.Schedule == "" {
		return generateSchedule(spec, w.Rate)
	}
	return parseSchedule(w.Schedule, nil)
}

func parseSchedule(text string, base *tdma.Schedule) (*tdma.Schedule, error) {
	schedule, err := tdma.ParseSchedule([]byte(text), base)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	return schedule, nil
}

func generateSchedule(spec *v1alpha1.RadioNetworkSpec, rate v1alpha1.DataRate) (*tdma.Schedule, error) {
	nems := make([]int, len(spec.Members))
	for i := range spec.Members {
		nems[i] = int(spec.Members[i].NEM)
	}
	schedule, err := linkbudget.Schedule(spec.Waveform.TDMA, nems, rate, nil)
	if err != nil {
		return nil, fmt.Errorf("structure: %w", err)
	}
	return schedule, nil
}

// Schedules of a TDMA network: that of its beginning, and those that begin with changes, which are in order of time. Wrong
// ones are left out, as by Network, which names them.
func Schedules(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange) (first *tdma.Schedule, later map[*v1alpha1.RadioChange]*tdma.Schedule) {
	first, err := firstSchedule(spec)
	if err != nil {
		return nil, nil
	}
	later, _ = laterSchedules(spec, changes, first)
	return first, later
}

// laterSchedules makes the schedules that begin with changes. An error names those that are invalid; the
// schedules before them continue.
func laterSchedules(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange, now *tdma.Schedule) (map[*v1alpha1.RadioChange]*tdma.Schedule, error) {
	later := map[*v1alpha1.RadioChange]*tdma.Schedule{}
	var failed error
	for i := range changes {
		change := &changes[i].RadioChange
		next, err := laterSchedule(spec, change, now)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("change at %v: %w", time.Duration(changes[i].AtNanoseconds), err))
		} else if next != nil {
			now, later[change] = next, next
		}
	}
	return later, failed
}

// laterSchedule returns the schedule that begins with a change, or nil.
func laterSchedule(spec *v1alpha1.RadioNetworkSpec, change *v1alpha1.RadioChange, now *tdma.Schedule) (*tdma.Schedule, error) {
	if change.Schedule != "" {
		return parseSchedule(change.Schedule, now)
	}
	if change.Radio == nil {
		return nil, nil
	}
	if change.Radio.Frequency != nil || change.Radio.Delay != nil || change.Radio.Jitter != nil {
		return nil, errors.New("radio: frequency, delay and jitter are for rfpipe: change the schedule")
	}
	if change.Radio.Rate == nil {
		return nil, nil
	}
	if !now.Generated() {
		return nil, errors.New("radio.rate: the current schedule is not generated and has its own rates: change the schedule")
	}
	if !isEverybody(change.From) {
		return nil, fmt.Errorf("radio.rate of %q: a generated schedule has one rate: leave out from", change.From)
	}
	return generateSchedule(spec, *change.Radio.Rate)
}
