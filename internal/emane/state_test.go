package emane

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func at(seconds int64, change v1alpha1.RadioChange) v1alpha1.TimedRadioChange {
	return v1alpha1.TimedRadioChange{AtNanoseconds: seconds * int64(time.Second), RadioChange: change}
}

func TestTheStateOfANetworkIsThatOfItsChangesSoFar(t *testing.T) {
	spec := pipe()
	power, rate, yes, no := v1alpha1.Power("10dBm"), v1alpha1.DataRate("500kbit"), true, false
	spec.Changes = []v1alpha1.TimedRadioChange{
		at(30, v1alpha1.RadioChange{Silent: &yes}),
		at(10, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: &power}}),
		at(20, v1alpha1.RadioChange{From: "veh-2", Radio: &v1alpha1.RadioPatch{Rate: &rate, Transmit: &no}}),
		at(40, v1alpha1.RadioChange{Silent: &no}),
	}
	t0 := metav1.NewMicroTime(time.Unix(1, 0))
	// Of the first two members: power, rate, and whether they are silent.
	type radios [2]Radio
	want := func(power, rate [2]float64, silent [2]bool) (all radios) {
		for i := range all {
			all[i] = Radio{Silent: silent[i], PowerDBm: power[i], GainDBi: 2, RateBitsPerSecond: uint64(rate[i]), Delay: 100 * time.Millisecond, Jitter: 2500 * time.Microsecond}
		}
		return all
	}
	own := v1alpha1.Power("5W").DBm()
	for name, c := range map[string]struct {
		after time.Duration
		t0    *metav1.MicroTime
		want  radios
	}{
		"at the beginning":                  {0, &t0, want([2]float64{own, 37}, [2]float64{9800, 9800}, [2]bool{})},
		"where T0 is not set":               {time.Hour, nil, want([2]float64{own, 37}, [2]float64{9800, 9800}, [2]bool{})},
		"after a change for all":            {10 * time.Second, &t0, want([2]float64{10, 10}, [2]float64{9800, 9800}, [2]bool{})},
		"after a change for one":            {20 * time.Second, &t0, want([2]float64{10, 10}, [2]float64{9800, 5e5}, [2]bool{false, true})},
		"in radio silence":                  {35 * time.Second, &t0, want([2]float64{10, 10}, [2]float64{9800, 5e5}, [2]bool{true, true})},
		"after it, one is silent as before": {40 * time.Second, &t0, want([2]float64{10, 10}, [2]float64{9800, 5e5}, [2]bool{false, true})},
	} {
		t.Run(name, func(t *testing.T) {
			spec.T0 = c.t0
			s, err := StateAt(spec, c.after)
			if err != nil {
				t.Fatal(err)
			}
			if got := (radios{s.Radios[0], s.Radios[1]}); got != c.want {
				t.Errorf("%+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestAChangeOfRateMakesAScheduleWithIt(t *testing.T) {
	spec, rate := slotted(), v1alpha1.DataRate("500kbit")
	t0 := metav1.NewMicroTime(time.Unix(1, 0))
	spec.T0, spec.Changes = &t0, []v1alpha1.TimedRadioChange{at(10, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: &rate}})}
	for after, want := range map[time.Duration]uint64{9 * time.Second: 1e6, 10 * time.Second: 5e5} {
		s, err := StateAt(spec, after)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Schedule.Slot(1, 0, 0).RateBitsPerSecond; got != want {
			t.Errorf("after %v: %d bit/s, want %d", after, got, want)
		}
	}
	if next, more := NextChange(spec, 9*time.Second); !more || next != 10*time.Second {
		t.Errorf("next change at %v, %v; want 10 s", next, more)
	}
	if _, more := NextChange(spec, 10*time.Second); more {
		t.Error("there is another change after the last")
	}
}

func TestAChangeOfPowerLeavesAnUpdatedScheduleAsItIs(t *testing.T) {
	spec, power := slotted(), v1alpha1.Power("20dBm")
	t0 := metav1.NewMicroTime(time.Unix(1, 0))
	spec.T0, spec.Changes = &t0, []v1alpha1.TimedRadioChange{
		at(5, v1alpha1.RadioChange{Schedule: `<emane-tdma-schedule><multiframe><frame index="0"><slot index="0" nodes="1"><idle/></slot></frame></multiframe></emane-tdma-schedule>`}),
		at(10, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: &power}}),
	}
	before, err := StateAt(spec, 9*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	path, change := field.NewPath("change"), &spec.Changes[1].RadioChange
	if errs := CheckChange(&spec.Waveform, before.Schedule, change, path); len(errs) != 1 || errs[0].Field != "change.radio.transmitPower" {
		t.Errorf("found %v; want the power refused, as the schedule has it", errs)
	}
	after, err := StateAt(spec, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Schedule.Slot(1, 0, 0); got != (tdma.Slot{}) {
		t.Errorf("slot 0 of veh-1 is %+v; want idle as in the update", got)
	}
}

func TestChangesOfPowerAndGainReachTheirRadios(t *testing.T) {
	spec, power, gain := slotted(), v1alpha1.Power("20dBm"), v1alpha1.Gain("6dBi")
	rate := v1alpha1.DataRate("500kbit")
	t0 := metav1.NewMicroTime(time.Unix(1, 0))
	spec.T0, spec.Changes = &t0, []v1alpha1.TimedRadioChange{
		at(5, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: &rate}}),
		at(10, v1alpha1.RadioChange{From: "veh-2", Radio: &v1alpha1.RadioPatch{TransmitPower: &power, AntennaGain: &gain}}),
	}
	s, err := StateAt(spec, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if slot := s.Schedule.Slot(2, 0, 1); slot.PowerDBm != 20 || slot.RateBitsPerSecond != 5e5 {
		t.Errorf("slot of veh-2 %+v; want its new power, and the rate of the change before", slot)
	}
	if power := s.Schedule.Slot(3, 0, 2).PowerDBm; power != 30 {
		t.Errorf("power of veh-3 is %v, want 30 as before", power)
	}
	if got := s.Radios[1].Parameters(&spec.Waveform)[PHY]["fixedantennagain"]; got != 6.0 {
		t.Errorf("gain of veh-2 is %v, want 6", got)
	}
	if got := s.Radios[0].Parameters(&spec.Waveform)[PHY]["fixedantennagain"]; got != 0.0 {
		t.Errorf("gain of veh-1 is %v, want 0 as before", got)
	}
}
