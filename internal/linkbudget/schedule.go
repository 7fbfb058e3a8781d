package linkbudget

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Schedule generates the schedule of a tdma network by its structure, for NEM ids that send at one rate. Without powers they
// send at their own.
func Schedule(w *v1alpha1.TDMAModel, nems []int, rate v1alpha1.DataRate, powerDBm func(nem int) float64) (*tdma.Schedule, error) {
	rate, frequency, bandwidth := cmp.Or(rate, v1alpha1.DefaultRate), cmp.Or(w.PHY.Frequency, v1alpha1.DefaultFrequency), cmp.Or(w.PHY.Bandwidth, v1alpha1.DefaultBandwidth)
	for _, q := range []struct {
		given       string
		value, most float64
		unit        string
	}{
		{"rate " + string(rate), rate.BitsPerSecond(), tdma.MaxRate, "bit"},
		{"frequency " + string(frequency), frequency.Hertz(), tdma.MaxFrequency, "Hz"},
		{"bandwidth " + string(bandwidth), bandwidth.Hertz(), tdma.MaxFrequency, "Hz"},
	} {
		if q.value < 1 || q.value > q.most {
			return nil, fmt.Errorf("%s: want 1%s to %gG%[2]s", q.given, q.unit, q.most/1e9)
		}
	}
	s := tdma.Structure{Frames: max(int(w.Structure.Frames), 1), Slots: len(nems), SlotDuration: cmp.Or(w.Structure.SlotDuration, "5ms").Std(),
		SlotOverhead: w.Structure.SlotOverhead.Std(), BandwidthHertz: uint64(bandwidth.Hertz())}
	if w.Structure.Slots != nil {
		s.Slots = int(*w.Structure.Slots)
	}
	return tdma.Generate(s, nems, uint64(rate.BitsPerSecond()), uint64(frequency.Hertz()), powerDBm)
}

// Schedules of a tdma network: that of its beginning, nil if it is invalid, and those that begin with changes, which are in
// order of time. An error names the invalid ones, which are left out; the schedules before them continue.
func Schedules(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange) (first *tdma.Schedule, later map[*v1alpha1.RadioChange]*tdma.Schedule, failed error) {
	first, err := firstSchedule(spec)
	if err != nil {
		return nil, nil, err
	}
	later = map[*v1alpha1.RadioChange]*tdma.Schedule{}
	now := first
	for i := range changes {
		change := &changes[i].RadioChange
		next, err := laterSchedule(spec, change, now)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("change at %v: %w", time.Duration(changes[i].AtNanoseconds), err))
		} else if next != nil {
			now, later[change] = next, next
		}
	}
	return first, later, failed
}

func firstSchedule(spec *v1alpha1.RadioNetworkSpec) (*tdma.Schedule, error) {
	w := spec.Waveform.TDMA
	if w.Schedule == "" {
		return generatedSchedule(spec, w.Rate)
	}
	return parsedSchedule(w.Schedule, nil)
}

// laterSchedule returns the schedule that begins with a change, or nil.
func laterSchedule(spec *v1alpha1.RadioNetworkSpec, change *v1alpha1.RadioChange, now *tdma.Schedule) (*tdma.Schedule, error) {
	if change.Schedule != "" {
		return parsedSchedule(change.Schedule, now)
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
	if !v1alpha1.IsEveryNode(change.From) {
		return nil, fmt.Errorf("radio.rate of %q: a generated schedule has one rate: leave out from", change.From)
	}
	return generatedSchedule(spec, *change.Radio.Rate)
}

func parsedSchedule(text string, base *tdma.Schedule) (*tdma.Schedule, error) {
	schedule, err := tdma.ParseSchedule([]byte(text), base)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	return schedule, nil
}

func generatedSchedule(spec *v1alpha1.RadioNetworkSpec, rate v1alpha1.DataRate) (*tdma.Schedule, error) {
	nems := make([]int, len(spec.Members))
	for i := range spec.Members {
		nems[i] = int(spec.Members[i].NEM)
	}
	schedule, err := Schedule(spec.Waveform.TDMA, nems, rate, nil)
	if err != nil {
		return nil, fmt.Errorf("structure: %w", err)
	}
	return schedule, nil
}

// Frequencies in Hz of a tdma network's members by a schedule that is not generated: that at which a member sends, else that
// at which it listens, else the network's.
func Frequencies(spec *v1alpha1.RadioNetworkSpec, schedule *tdma.Schedule) []float64 {
	hertz := make([]float64, len(spec.Members))
	for i := range spec.Members {
		nem := int(spec.Members[i].NEM)
		hertz[i] = spec.Waveform.PHY().Frequency.Hertz()
		if all := slices.Concat(schedule.Frequencies(nem, tdma.Transmit), schedule.Frequencies(nem, tdma.Receive)); len(all) > 0 {
			hertz[i] = float64(all[0])
		}
	}
	return hertz
}
