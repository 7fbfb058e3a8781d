package emane

import (
	"math"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// adaptive are rates of 1 Mbit/s from 18 dB on and 500 kbit/s from 11 dB on, with 380 kbit/s below.
func adaptive() *v1alpha1.WaveformSpec {
	return &v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{AdaptiveRates: []v1alpha1.TDMARate{{Rate: "1Mbit", SINR: "18dB"}, {Rate: "380kbit", SINR: "9dB"}, {Rate: "500kbit", SINR: "11dB"}}}}
}

// hears makes the statistics of a receiver that has heard others, with the SINR over a noise of -110 dBm.
func hears(nem int, above uint64, sinr map[int]float64) *Statistics {
	s := &Statistics{NEM: nem, PowerDBm: map[int]float64{}, bursts: map[int]*burstCounts{}}
	for from, dB := range sinr {
		s.PowerDBm[from], s.bursts[from] = dB-110, &burstCounts{above: above}
	}
	return s
}

func TestASendersRateIsThatOfItsWorstReceiver(t *testing.T) {
	const second = time.Second
	a := NewAdapter(adaptive())
	rate := func(at time.Duration, want uint64, why string) {
		t.Helper()
		if got := a.Rate(at, 1); got != want {
			t.Errorf("at %v: %d bit/s, want %d: %s", at, got, want, why)
		}
	}
	rate(0, 380e3, "nobody has heard it")
	a.Observe(0, hears(2, 1, map[int]float64{1: 20}), -110)
	rate(0, 380e3, "a higher rate is taken later")
	rate(4*second, 380e3, "a higher rate is taken later")
	rate(5*second, 1e6, "20 dB are enough")
	a.Observe(6*second, hears(3, 1, map[int]float64{1: 12}), -110)
	rate(6*second, 500e3, "the worst receiver has 12 dB, and a lower rate is taken at once")
	a.Observe(7*second, hears(3, 2, map[int]float64{1: 3}), -110)
	rate(7*second, 380e3, "below all thresholds it is the lowest")
	a.Observe(16*second, hears(2, 2, map[int]float64{1: 20}), -110)
	a.Observe(16*second, hears(3, 2, map[int]float64{1: 3}), -110)
	rate(16*second, 380e3, "NEM 3 has heard it 9 s ago")
	rate(18*second, 380e3, "NEM 3 does not count any more")
	rate(23*second, 1e6, "NEM 2 alone counts")
}

func TestReceiversOnOtherHostsCountByWhatIsHeardOfThem(t *testing.T) {
	a := NewAdapter(adaptive())
	a.Observe(0, hears(1, 1, map[int]float64{2: 20, 9: 12}), -110)
	a.Observe(0, hears(2, 1, map[int]float64{1: 20}), -110)
	a.Rate(0, 1)
	if got := a.Rate(5*time.Second, 1); got != 500e3 {
		t.Errorf("%d bit/s, want 500000: NEM 9, which is elsewhere, is heard with 12 dB", got)
	}
}

func TestASenderGoesOnWithTheRateThatItHas(t *testing.T) {
	a := NewAdapter(adaptive())
	for _, resumed := range []uint64{1e6, 999} { // the second is none of the network's
		a.Resume(0, 1, resumed)
	}
	if got := a.Rate(9*time.Second, 1); got != 1e6 {
		t.Errorf("%d bit/s, want 1000000: nobody has been asked for long yet", got)
	}
	a.Observe(9*time.Second, hears(2, 1, map[int]float64{1: 12}), -110)
	if got := a.Rate(9*time.Second, 1); got != 500e3 {
		t.Errorf("%d bit/s, want 500000: a receiver has 12 dB", got)
	}
	a.Resume(0, 3, 1e6)
	if got := a.Rate(10*time.Second, 3); got != 380e3 {
		t.Errorf("%d bit/s, want 380000: nobody has heard it for 10 s", got)
	}
}

func TestThermalNoiseIsThatOfTheSchedulesBandwidth(t *testing.T) {
	spec := slotted()
	schedule, err := tdma.ParseSchedule([]byte(strings.Replace(ownSchedule, `bandwidth="1000000"`, `bandwidth="250000"`, 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	noise := phyOf(spec, &spec.Members[0]).noiseFigureDB - 174
	if got := ThermalNoiseDBm(spec, &spec.Members[0], schedule) - noise; math.Abs(got-53.98) > 0.01 {
		t.Errorf("%.2f dB over a hertz, want 53.98 for 250 kHz", got)
	}
}

func TestNetworksWithoutAdaptiveRatesHaveNoAdapter(t *testing.T) {
	if NewAdapter(&slotted().Waveform) != nil || NewAdapter(&pipe().Waveform) != nil {
		t.Error("want none")
	}
}

func TestAnAdaptiveRateHoldsForAllSlotsToSend(t *testing.T) {
	s, err := Schedule(slotted())
	if err != nil {
		t.Fatal(err)
	}
	for at, slot := range slotsOf(t, ScheduleAt(2, s, 380e3), s) {
		if want := s.Slot(2, at[0], at[1]); slot.Kind != want.Kind || slot.RateBitsPerSecond != 0 && slot.RateBitsPerSecond != 380e3 || slot.PowerDBm != want.PowerDBm {
			t.Errorf("slot %v is %+v, want %+v with 380 kbit/s", at, slot, want)
		}
	}
}
