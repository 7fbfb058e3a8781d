package emane

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// CheckChange returns what EMANE cannot do of a change while it runs. schedule is that of a TDMA network before the change.
func CheckChange(w *v1alpha1.WaveformSpec, schedule *tdma.Schedule, change *v1alpha1.RadioChange, path *field.Path) (errs field.ErrorList) {
	forbid := func(wrong bool, why string, parts ...string) {
		if wrong {
			errs = append(errs, field.Forbidden(path.Child(parts[0], parts[1:]...), why))
		}
	}
	forbid(change.Jammer != nil, "EMANE has no sources of noise besides its own radios: leave it out, or take engine native", "jammer")
	if change.Silent != nil && w.PHY() == nil {
		errs = append(errs, field.Forbidden(path.Child("silent"), noSilence(w)))
	}
	p := change.Radio
	if p == nil {
		return errs
	}
	const atStart = "EMANE takes it at its start only: set it in the waveform or in radios, or take engine native"
	forbid(p.Frequency != nil, atStart, "radio", "frequency")
	forbid(p.NoiseFigure != nil, atStart, "radio", "noiseFigure")
	if modelOf(w).transponders {
		const inParameters = "the model's antennas have it in emane.parameters, which EMANE takes at its start only"
		forbid(p.TransmitPower != nil, inParameters, "radio", "transmitPower")
		forbid(p.AntennaGain != nil, inParameters, "radio", "antennaGain")
	}
	given := w.TDMA != nil && (schedule == nil || !schedule.Generated())
	forbid(p.TransmitPower != nil && given, "the power of EMANE's TDMA is its schedule's, which is not a generated one: change the schedule", "radio", "transmitPower")
	if p.Rate != nil {
		rate := p.Rate.BitsPerSecond()
		forbid(rate < 1 || rate != math.Trunc(rate), "EMANE has rates in whole bits per second, from 1 on", "radio", "rate")
	}
	return errs
}

// Radio has the properties of a member's radio that may change while EMANE runs.
type Radio struct {
	// Silent radios send nothing.
	Silent bool
	// PowerDBm of a TDMA radio is in its schedule.
	PowerDBm float64
	// GainDBi is that of a radio without antenna profiles.
	GainDBi float64
	// RateBitsPerSecond, Delay and Jitter are for RF Pipe.
	RateBitsPerSecond uint64
	Delay, Jitter     time.Duration
}

// Parameters of the radio, by layer.
func (r *Radio) Parameters(w *v1alpha1.WaveformSpec) map[Layer]map[string]any {
	if w.PHY() == nil {
		return nil
	}
	all := map[Layer]map[string]any{PHY: {"radiosilenceenable": r.Silent}}
	if modelOf(w).transponders {
		return all
	}
	all[PHY]["fixedantennagain"] = r.GainDBi
	if w.TDMA == nil {
		all[PHY]["txpower"] = r.PowerDBm
	}
	if w.RFPipe != nil {
		all[MAC] = map[string]any{"datarate": r.RateBitsPerSecond, "delay": float32(r.Delay.Seconds()), "jitter": float32(r.Jitter.Seconds())}
	}
	return all
}

// State of a network at a moment.
type State struct {
	// Radios of the members, in their order.
	Radios []Radio
	// Schedule of a TDMA network.
	Schedule *tdma.Schedule
	// rate of the generated schedule.
	rate v1alpha1.DataRate
}

// StateAt returns the state at a time after T0. Before T0, and without it, no change has happened.
func StateAt(spec *v1alpha1.RadioNetworkSpec, at time.Duration) (*State, error) {
	s := &State{Radios: make([]Radio, len(spec.Members))}
	for i := range spec.Members {
		r := &s.Radios[i]
		p := phyOf(spec, &spec.Members[i])
		r.PowerDBm, r.GainDBi, r.Silent = p.powerDBm, p.gainDBi, spec.Silent
		if w := spec.Waveform.RFPipe; w != nil {
			r.RateBitsPerSecond = uint64(cmp.Or(w.Rate, v1alpha1.DefaultRate).BitsPerSecond())
			r.Delay, r.Jitter = w.Delay.Std(), w.Jitter.Std()
		}
	}
	if w := spec.Waveform.TDMA; w != nil {
		s.rate = w.Rate
		var err error
		if s.Schedule, err = Schedule(spec); err != nil {
			return nil, err
		}
	}
	silent := false
	individually := make([]bool, len(spec.Members)) // silenced by radio.transmit
	for _, c := range sorted(spec) {
		if c.AtNanoseconds > int64(at) {
			break
		}
		if c.Silent != nil {
			silent = *c.Silent
		}
		if err := s.applyChange(spec, &c.RadioChange, individually); err != nil {
			return nil, fmt.Errorf("change at %v: %w", time.Duration(c.AtNanoseconds), err)
		}
	}
	for i := range s.Radios {
		s.Radios[i].Silent = spec.Silent || silent || individually[i]
	}
	return s, nil
}

// NextChange after a time, if there is one.
func NextChange(spec *v1alpha1.RadioNetworkSpec, after time.Duration) (at time.Duration, more bool) {
	for _, c := range sorted(spec) {
		if c.AtNanoseconds > int64(after) {
			return time.Duration(c.AtNanoseconds), true
		}
	}
	return 0, false
}

func sorted(spec *v1alpha1.RadioNetworkSpec) []v1alpha1.TimedRadioChange {
	if spec.T0 == nil {
		return nil
	}
	return slices.SortedStableFunc(slices.Values(spec.Changes), func(a, b v1alpha1.TimedRadioChange) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
}

func (s *State) applyChange(spec *v1alpha1.RadioNetworkSpec, change *v1alpha1.RadioChange, off []bool) error {
	if change.Schedule != "" {
		next, err := tdma.ParseSchedule([]byte(change.Schedule), s.Schedule)
		if err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
		s.Schedule = next
	}
	p := change.Radio
	if p == nil {
		return nil
	}
	for i := range spec.Members {
		m := &spec.Members[i]
		if change.From != "" && !m.IsCalled(change.From) {
			continue
		}
		if p.Transmit != nil {
			off[i] = !*p.Transmit
		}
		s.Radios[i].patch(p)
	}
	if p.Rate != nil {
		s.rate = *p.Rate
	}
	if s.Schedule == nil || !s.Schedule.Generated() || p.Rate == nil && p.TransmitPower == nil {
		return nil
	}
	next, err := generate(spec, s.rate, func(i int) float64 { return s.Radios[i].PowerDBm })
	if err == nil {
		s.Schedule = next
	}
	return err
}

func (r *Radio) patch(p *v1alpha1.RadioPatch) {
	if p.TransmitPower != nil {
		r.PowerDBm = p.TransmitPower.DBm()
	}
	if p.AntennaGain != nil {
		r.GainDBi = p.AntennaGain.DBi()
	}
	if p.Rate != nil {
		r.RateBitsPerSecond = uint64(p.Rate.BitsPerSecond())
	}
	if p.Delay != nil {
		r.Delay = p.Delay.Std()
	}
	if p.Jitter != nil {
		r.Jitter = p.Jitter.Std()
	}
}
