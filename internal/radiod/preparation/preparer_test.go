package preparation

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func opened(t *testing.T, content []byte) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lossesScenario(t *testing.T, all ...radiodtest.Loss) *scenario.Scenario {
	_, content := radiodtest.Losses(t, all...)
	return opened(t, content)
}

// prepared returns the moment at an offset, reached at once or step by step from before T0.
func prepared(t *testing.T, spec *v1alpha1.RadioNetworkSpec, compiled *scenario.Scenario, at time.Duration, steps bool) *moment {
	t.Helper()
	p := newPreparer(InputsOf(spec, nil, compiled))
	next, more := int64(at), false
	if steps {
		next = math.MinInt64 / 2
	}
	for {
		m, err := p.moment(next)
		if err != nil {
			t.Fatal(err)
		}
		if next, more = p.nextChange(m.AtNanoseconds); !more || next > int64(at) {
			return m
		}
	}
}

func (m *moment) between(i, j int) float64 { return float64(m.Pathloss[3*i+j]) }

func TestPathlossIsThatOfTheScenarioAtItsTime(t *testing.T) {
	s := lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(time.Second, 1, 2, 90), radiodtest.LossAt(time.Second, 2, 3, 70), radiodtest.LossAt(2*time.Second, 1, 2, 100))
	spec := radiodtest.Physical(v1alpha1.PathlossScenario)
	for at, want := range map[time.Duration][2]float64{
		-time.Hour: {80, math.NaN()}, 0: {80, math.NaN()}, time.Second - 1: {80, math.NaN()}, time.Second: {90, 70},
		2 * time.Second: {100, 70}, time.Hour: {100, 70},
	} {
		for _, steps := range []bool{false, true} {
			m := prepared(t, spec, s, at, steps)
			got := [2]float64{m.between(0, 1), m.between(2, 1)}
			if got[0] != want[0] || got[1] != want[1] && !(math.IsNaN(got[1]) && math.IsNaN(want[1])) {
				t.Errorf("at %v, steps %v: pathloss %v; want %v", at, steps, got, want)
			}
			if !math.IsNaN(m.between(0, 2)) {
				t.Errorf("at %v: pathloss %v of a pair that the scenario does not know; want none", at, m.between(0, 2))
			}
		}
	}
}

func TestPathlossIsComputedFromPositionsOfPlatformsAndOfFixedNodes(t *testing.T) {
	here, there, later := geo.Position{Latitude: 58, Longitude: 8, Altitude: 3}, geo.Position{Latitude: 58.01, Longitude: 8, Altitude: 3}, geo.Position{Latitude: 58.1, Longitude: 8, Altitude: 3}
	_, content := radiodtest.Compile(t, func(b *scenario.Builder) error {
		return errors.Join(b.Position(0, 1, here), b.Position(time.Second, 1, later))
	})
	for source, model := range map[v1alpha1.PathlossSource]propagation.Model{v1alpha1.PathlossFreeSpace: propagation.FreeSpace{}, v1alpha1.PathlossTwoRay: propagation.TwoRay{}} {
		retune := v1alpha1.TimedRadioChange{AtNanoseconds: int64(2 * time.Second), RadioChange: v1alpha1.RadioChange{From: "node-2",
			Radio: &v1alpha1.RadioPatch{Frequency: ptr.To(v1alpha1.Frequency("600MHz"))}}}
		spec := radiodtest.Physical(source, retune)
		spec.Members[1].Platform, spec.Members[1].Position = nil, &v1alpha1.Position{Latitude: "58.01", Longitude: "8", Altitude: "3m"}
		for at, from := range map[time.Duration]geo.Position{0: here, time.Second: later, 2 * time.Second: later} {
			for _, steps := range []bool{false, true} {
				m := prepared(t, spec, opened(t, content), at, steps)
				back := 300e6
				if at == 2*time.Second {
					back = 600e6
				}
				for pair, want := range map[[2]int]float64{{0, 1}: model.Pathloss(from, there, 300e6), {1, 0}: model.Pathloss(there, from, back)} {
					if got := m.between(pair[0], pair[1]); math.Abs(got-want) > 0.01 {
						t.Errorf("%s at %v, steps %v: pathloss of %v %.3f dB; want %.3f", source, at, steps, pair, got, want)
					}
				}
				if m.placed[2] || !math.IsNaN(m.between(0, 2)) {
					t.Errorf("%s at %v: a node without a position has a pathloss", source, at)
				}
			}
		}
	}
}

// flat is the pathloss of a network of two rays whose first two members are 2 km apart, at altitudes.
func flat(t *testing.T, altitudes [2]v1alpha1.Metres, radios ...v1alpha1.Radio) float64 {
	t.Helper()
	spec := radiodtest.Physical(v1alpha1.PathlossTwoRay)
	spec.Radios = radios
	for i, latitude := range []v1alpha1.Degrees{"58", "58.018"} {
		spec.Members[i].Platform, spec.Members[i].Position = nil, &v1alpha1.Position{Latitude: latitude, Longitude: "8", Altitude: altitudes[i]}
	}
	return prepared(t, spec, nil, 0, false).between(0, 1)
}

func TestTwoRaysHaveTheHeightsOfAntennasAndNotTheirAltitudes(t *testing.T) {
	sea, hill := flat(t, [2]v1alpha1.Metres{"0m", "0m"}), flat(t, [2]v1alpha1.Metres{"200m", "250m"})
	metres := geo.Distance(geo.Position{Latitude: 58, Longitude: 8, Altitude: 3}, geo.Position{Latitude: 58.018, Longitude: 8, Altitude: 3})
	if want := 40*math.Log10(metres) - 20*math.Log10(3*3); math.Abs(sea-want) > 0.001 || sea != hill {
		t.Errorf("%.3f dB at the sea and %.3f on hills; want %.3f for antennas of 3 m", sea, hill, want)
	}
	mast := v1alpha1.Radio{Nodes: []string{"node-2"}, AntennaHeight: ptr.To(v1alpha1.Metres("30m"))}
	if gain := sea - flat(t, [2]v1alpha1.Metres{"0m", "0m"}, mast); math.Abs(gain-20) > 0.01 {
		t.Errorf("an antenna ten times as high gains %.3f dB; want 20", gain)
	}
}

func TestJammersAddUpAndAreReplacedByName(t *testing.T) {
	power := func(p v1alpha1.Power) *v1alpha1.Power { return &p }
	loss := ptr.To(v1alpha1.Decibel("60dB"))
	band, elsewhere := ptr.To(v1alpha1.Frequency("4MHz")), ptr.To(v1alpha1.Frequency("302MHz"))
	spec := radiodtest.Physical(v1alpha1.PathlossScenario,
		radiodtest.Jam(1, v1alpha1.Jammer{Name: "a", Power: power("0dBm"), Pathloss: loss}),
		radiodtest.Jam(2, v1alpha1.Jammer{Name: "b", Power: power("0dBm"), Pathloss: loss, Bandwidth: band}),
		radiodtest.Jam(3, v1alpha1.Jammer{Name: "a", Power: power("-10dBm"), Pathloss: loss}),
		radiodtest.Jam(4, v1alpha1.Jammer{Name: "b", Power: power("0dBm"), Pathloss: loss, Bandwidth: band, Frequency: elsewhere}),
		radiodtest.Jam(5, v1alpha1.Jammer{Name: "b", Off: true}))
	s := lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80))
	// -60 dBm is 1e-6 mW. A quarter of b lies in the receiver's band of 1 MHz, half of that at its edge.
	for at, want := range map[time.Duration]float64{0: 0, 1: 1e-6, 2: 1.25e-6, 3: 0.35e-6, 4: 0.1e-6 + 0.125e-6, 5: 0.1e-6} {
		for _, steps := range []bool{false, true} {
			a := environmentAt(prepared(t, spec, s, at, steps))
			if got := a.Jamming(&radio.Port{PortOptions: radio.PortOptions{NEM: 2}}, 0, 300e6, 1e6); math.Abs(got-want) > 1e-12 {
				t.Errorf("at %d, steps %v: %g mW; want %g", at, steps, got, want)
			}
		}
	}
}

// environmentAt answers as a radio model is answered while the moment holds.
func environmentAt(m *moment) held { return held{m} }

type held struct{ *moment }

func (h held) Pathloss(from, to *radio.Port, _ int64) (dB float64, known bool) {
	dB = h.between(from.NEM-1, to.NEM-1)
	return dB, !math.IsNaN(dB)
}

func (h held) Jamming(at *radio.Port, _ int64, frequencyHertz, bandwidthHertz float64) (milliwatts float64) {
	for i := range h.Jammers {
		milliwatts += h.Jammers[i].Milliwatts[at.NEM-1] * h.Jammers[i].Noise.Share(frequencyHertz, bandwidthHertz)
	}
	return milliwatts
}

func TestAJammerSomewhereIsWeakerFartherAway(t *testing.T) {
	_, content := radiodtest.Compile(t, func(b *scenario.Builder) error {
		return errors.Join(b.Pathloss(0, 1, 2, 80), b.Position(0, 1, geo.Position{Latitude: 58, Longitude: 8}), b.Position(0, 2, geo.Position{Latitude: 58.1, Longitude: 8}))
	})
	spec := radiodtest.Physical(v1alpha1.PathlossScenario, radiodtest.Jam(0, v1alpha1.Jammer{Name: "a", Power: ptr.To(v1alpha1.Power("40dBm")),
		Position: &v1alpha1.Position{Latitude: "58.001", Longitude: "8"}}))
	a := environmentAt(prepared(t, spec, opened(t, content), 0, false))
	at := func(nem int) float64 {
		return a.Jamming(&radio.Port{PortOptions: radio.PortOptions{NEM: nem}}, 0, 300e6, 1e6)
	}
	jammer := geo.Position{Latitude: 58.001, Longitude: 8}
	want := 40 - propagation.FreeSpaceLoss(geo.Distance(jammer, geo.Position{Latitude: 58, Longitude: 8}), 300e6)
	if got := 10 * math.Log10(at(1)); math.Abs(got-want) > 0.01 {
		t.Errorf("%.2f dBm near the jammer; want %.2f", got, want)
	}
	if near, far := at(1), at(2); far <= 0 || near < 1000*far || at(3) != 0 {
		t.Errorf("%g mW near, %g far, %g at a node without a position; want a thousandth and less far away, and none", near, far, at(3))
	}
}

func TestTheRangeOfAJammerEndsWhereItsNoiseNoLongerCounts(t *testing.T) {
	for _, source := range []v1alpha1.PathlossSource{v1alpha1.PathlossTwoRay, v1alpha1.PathlossFreeSpace} {
		noise := v1alpha1.Jammer{Name: "a", Power: ptr.To(v1alpha1.Power("-30dBm")), Bandwidth: ptr.To(v1alpha1.Frequency("4MHz")), Position: &v1alpha1.Position{Latitude: "58", Longitude: "8"}}
		spec := radiodtest.Physical(source, radiodtest.Jam(0, noise))
		spec.Waveform.RFPipe.Interference = v1alpha1.InterferenceAll
		metres, known := linkbudget.JammerMetres(spec, &noise)
		if !known || metres < 100 {
			t.Fatalf("%s: a range of %.0f m, known %v; want one", source, metres, known)
		}
		_, common := linkbudget.Radios(spec, "")
		counts := func(share float64) bool {
			receiver := fmt.Sprintf("%.9f", 58-share*metres/111_359) // a degree of latitude there
			spec.Members[0].Platform, spec.Members[0].Position = nil, &v1alpha1.Position{Latitude: v1alpha1.Degrees(receiver), Longitude: "8"}
			at := &radio.Port{PortOptions: radio.PortOptions{NEM: 1}}
			power := environmentAt(prepared(t, spec, nil, 0, false)).Jamming(at, 0, common.FrequencyHertz, common.BandwidthHertz)
			return power*phy.Milliwatts(common.AntennaGainDBi) >= phy.Milliwatts(common.SensitivityDBm())
		}
		if !counts(0.99) || counts(1.01) {
			t.Errorf("%s: noise counts within the range: %v, beyond it: %v; want true, false", source, counts(0.99), counts(1.01))
		}
	}
}

func TestAJammerThatDisturbsNobodyHasNoRange(t *testing.T) {
	position := &v1alpha1.Position{Latitude: "58", Longitude: "8"}
	far := ptr.To(v1alpha1.Frequency("2GHz"))
	for what, j := range map[string]v1alpha1.Jammer{
		"no position":  {Name: "a", Power: ptr.To(v1alpha1.Power("40dBm"))},
		"another band": {Name: "a", Power: ptr.To(v1alpha1.Power("40dBm")), Position: position, Frequency: far},
		"very weak":    {Name: "a", Power: ptr.To(v1alpha1.Power("-200dBm")), Position: position},
		"no power":     {Name: "a", Position: position},
		"not counted":  {Name: "a", Power: ptr.To(v1alpha1.Power("40dBm")), Position: position},
	} {
		spec := radiodtest.Physical(v1alpha1.PathlossFreeSpace)
		spec.Waveform.RFPipe.Interference = v1alpha1.InterferenceAll
		if what == "not counted" {
			spec.Waveform.RFPipe.Interference = v1alpha1.InterferenceNone
		}
		if metres, known := linkbudget.JammerMetres(spec, &j); known {
			t.Errorf("%s: a range of %.0f m; want none", what, metres)
		}
	}
}

func TestPathlossThatStaysKeepsItsVersion(t *testing.T) {
	s := lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(time.Second, 1, 2, 90))
	p := newPreparer(InputsOf(radiodtest.Physical(v1alpha1.PathlossScenario, radiodtest.Jam(10, v1alpha1.Jammer{Name: "a", Off: true})), nil, s))
	var moments []*moment
	for _, at := range []int64{0, 10, int64(time.Second)} {
		m, err := p.moment(at)
		if err != nil {
			t.Fatal(err)
		}
		moments = append(moments, m)
	}
	if moments[0].Version != moments[1].Version || moments[1].Version == moments[2].Version {
		t.Errorf("versions %d, %d, %d; want a new one only where the pathloss changed", moments[0].Version, moments[1].Version, moments[2].Version)
	}
}

func TestStepsCloserThanTheSpacingAreMerged(t *testing.T) {
	s := lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(time.Second, 1, 2, 90), radiodtest.LossAt(time.Second+3*time.Microsecond, 1, 2, 91), radiodtest.LossAt(time.Second+time.Millisecond, 1, 2, 92))
	p := newPreparer(InputsOf(radiodtest.Physical(v1alpha1.PathlossScenario), nil, s))
	at, got := int64(0), []int64(nil)
	for more := true; more; at, more = p.nextChange(at) {
		if _, err := p.moment(at); err != nil {
			t.Fatal(err)
		}
		got = append(got, at)
	}
	want := []int64{0, 1e9, 1e9 + 9e3, 1e9 + 1e6} // 9 pairs, a microsecond each
	if len(got) != len(want) || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Errorf("steps at %v; want %v", got, want)
	}
}

func TestPastMomentsAreReleasedWithoutQueries(t *testing.T) {
	var all []radiodtest.Loss
	for i := range 400 {
		all = append(all, radiodtest.LossAt(time.Duration(i)*10*time.Millisecond, 1, 2, float64(80+i%7)))
	}
	spec := radiodtest.Physical(v1alpha1.PathlossScenario)
	spec.T0 = &metav1.MicroTime{Time: time.Now()}
	b, err := New(InputsOf(spec, nil, lossesScenario(t, all...)), &StepCounters{})
	if err != nil {
		t.Fatal(err)
	}
	err = b.Begin("run", func(*dataplane.Environment) error { return nil }, func(err error) { t.Errorf("preparation: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	state := func() (at int64, kept int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.moments[0].AtNanoseconds, len(b.moments)
	}
	first, _ := state()
	testtool.Eventually(t, "the preparation moves on by itself", func() bool { at, _ := state(); return at > first+int64(500*time.Millisecond) })
	if _, kept := state(); kept > maxAhead+150 { // what became due while it waited up to a second
		t.Errorf("%d moments are kept; want up to %d", kept, maxAhead+150)
	}
	last := all[len(all)-1]
	testtool.Eventually(t, "the end of the scenario is reached", func() bool {
		dB, _ := b.Now(clock.Monotonic()).Pathloss(1, 2)
		at, _ := state()
		return dB == last.DB && at >= int64(last.At)
	})
}

func lossesAfter10And20Seconds(t *testing.T) *scenario.Scenario {
	return lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(10*time.Second, 1, 2, 90), radiodtest.LossAt(20*time.Second, 1, 2, 100))
}

// stepsOf a scenario that begins now, whose moments are handed to set in virtual time.
func stepsOf(t *testing.T, s *scenario.Scenario, set func(*dataplane.Environment) error) StepSums {
	t.Helper()
	spec := radiodtest.Physical(v1alpha1.PathlossScenario)
	spec.T0 = &metav1.MicroTime{Time: time.Now()}
	var counted StepCounters
	b, err := New(InputsOf(spec, nil, s), &counted)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	if err := b.Begin("run", set, func(error) {}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	return counted.Snapshot(false)
}

func TestStepsThatFellDueDuringAStallAreLate(t *testing.T) {
	s := lossesAfter10And20Seconds(t)
	synctest.Test(t, func(t *testing.T) {
		begun, stalled := time.Now(), 0
		got := stepsOf(t, s, func(e *dataplane.Environment) error {
			if len(e.Steps) > 0 && e.Steps[0].AtNanoseconds == int64(10*time.Second) {
				stalled++
				time.Sleep(time.Until(begun.Add(28 * time.Second)))
			}
			return nil
		})
		if want := (StepSums{Steps: 2, Late: 2, Worst: 18 * time.Second}); got != want || stalled != 1 {
			t.Errorf("%+v after %d stalls; want %+v after one", got, stalled, want)
		}
	})
}

func TestAStepThatFailedAtFirstIsLate(t *testing.T) {
	s := lossesAfter10And20Seconds(t)
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		got := stepsOf(t, s, func(*dataplane.Environment) error {
			if now := time.Since(begun); now > 15*time.Second && now < 28*time.Second {
				return errors.New("the engine does not answer")
			}
			return nil
		})
		if got.Steps != 2 || got.Late != 1 || got.Worst < 8*time.Second || got.Worst > 9*time.Second {
			t.Errorf("%+v; want two steps, of which one is 8 s late", got)
		}
	})
}

func TestAStepThatAnEarlierWorkerDidNotHandOverIsLate(t *testing.T) {
	s := lossesAfter10And20Seconds(t)
	for last, want := range map[time.Duration]StepSums{
		0: {Steps: 1, Late: 1, Worst: 5 * time.Second}, 10 * time.Second: {}, 20 * time.Second: {},
	} {
		synctest.Test(t, func(t *testing.T) {
			spec := radiodtest.Physical(v1alpha1.PathlossScenario)
			spec.T0 = &metav1.MicroTime{Time: time.Now().Add(-15 * time.Second)}
			var counted StepCounters
			b, err := New(InputsOf(spec, nil, s), &counted)
			if err == nil {
				err = b.TakeOver(int64(last))
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := counted.Snapshot(false); got != want {
				t.Errorf("15 s after T0, with the step at %v handed over: %+v; want %+v", last, got, want)
			}
		})
	}
}

func TestEffectsAreThoseOfTheScenarioAtItsTime(t *testing.T) {
	fast, slow := scenario.CommEffect{Latency: time.Millisecond, UnicastBitsPerSecond: 1000}, scenario.CommEffect{Latency: time.Second, Jitter: time.Millisecond, LossPercent: 25, DuplicationPercent: 50}
	_, content := radiodtest.Compile(t, func(b *scenario.Builder) error {
		return errors.Join(b.CommEffect(0, 1, 2, fast), b.CommEffect(time.Second, 1, 2, slow), b.CommEffect(time.Second, 2, 3, fast))
	})
	n := radiodtest.NetworkOf("run", "wan", "pod-1", "pod-2", "pod-3")
	n.Spec.CommEffects, n.Spec.T0 = true, &metav1.MicroTime{Time: time.Unix(1000, 0)}
	for i := range n.Spec.Members {
		n.Spec.Members[i].Platform = ptr.To(int32(i + 1))
	}
	quick := dataplane.Effect{Effect: link.Effect{Latency: time.Millisecond, Unicast: 1000}, Known: true}
	for at, want := range map[time.Duration][2]dataplane.Effect{
		time.Second - 1: {quick, {}}, time.Second: {{Effect: link.Effect{Latency: time.Second, Jitter: time.Millisecond, Loss: 0.25, Duplicate: 0.5}, Known: true}, quick},
	} {
		m := prepared(t, &n.Spec, opened(t, content), at, true)
		if got := [2]dataplane.Effect{m.Effects[1], m.Effects[5]}; got != want || m.Effects[3].Known {
			t.Errorf("at %v: from 1 to 2 and from 2 to 3 %+v; want %+v, and nothing from 2 to 1: %+v", at, got, want, m.Effects[3])
		}
	}
}

func TestAMomentThatIsReadyAfterTheEndIsNotHandedOver(t *testing.T) {
	s := lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(time.Second, 1, 2, 90))
	counters := &StepCounters{}
	b, err := New(InputsOf(radiodtest.Physical(v1alpha1.PathlossScenario), nil, s), counters)
	if err != nil {
		t.Fatal(err)
	}
	handed := 0
	set := func(*dataplane.Environment) error { handed++; return nil }
	first := b.first
	if err := b.Begin("run", set, func(err error) { t.Errorf("preparation: %v", err) }); err != nil {
		t.Fatal(err)
	}
	next, err := b.preparer.moment(int64(time.Second)) // is still computed when the preparation ends
	if err != nil {
		t.Fatal(err)
	}
	b.Stop()
	if err := b.add("run", b.t0, next.AtNanoseconds, set, first, next); err == nil || handed != 1 {
		t.Errorf("%d environments were handed over, error %v; want the first only, and an error", handed, err)
	}
	if n := counters.Snapshot(false).Steps; n != 0 || len(b.moments) != 1 {
		t.Errorf("%d steps are counted and %d moments kept; want 0 and 1", n, len(b.moments))
	}
}
