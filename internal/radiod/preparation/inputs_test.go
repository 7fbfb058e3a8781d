package preparation

import (
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// apart has a schedule in which nodes 1 to 3 send at 300 MHz, while phy.frequency is another, and the first two have a distance.
func apart(source v1alpha1.PathlossSource) (spec *v1alpha1.RadioNetworkSpec, ends [2]geo.Position) {
	spec = radiodtest.Physical(source)
	spec.Waveform = radiodtest.TDMA()
	spec.Waveform.TDMA.PHY.Pathloss, spec.Waveform.TDMA.PHY.Frequency = source, "2347MHz"
	spec.Waveform.TDMA.Schedule = radiodtest.Schedule(1, 2, 3)
	for i, latitude := range []v1alpha1.Degrees{"58", "58.01"} {
		spec.Members[i].Platform, spec.Members[i].Position = nil, &v1alpha1.Position{Latitude: latitude, Longitude: "8", Altitude: "3m"}
		ends[i] = geo.Position{Latitude: latitude.Float(), Longitude: 8, Altitude: 3}
	}
	return spec, ends
}

// sendsAt is an update of the first slot, in which node 1 sends at a frequency.
func sendsAt(at time.Duration, frequency string) v1alpha1.TimedRadioChange {
	return v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: v1alpha1.RadioChange{
		Schedule: `<emane-tdma-schedule><multiframe frequency="` + frequency + `" power="0" class="0" datarate="1M"><frame index="0"><slot index="0" nodes="1"/></frame></multiframe></emane-tdma-schedule>`}}
}

func TestPathlossIsComputedAtTheSchedulesFrequency(t *testing.T) {
	spec, ends := apart(v1alpha1.PathlossFreeSpace)
	spec.Changes = []v1alpha1.TimedRadioChange{sendsAt(time.Second, "600M")}
	for at, from1 := range map[time.Duration]float64{0: 300e6, time.Second: 600e6} {
		m := prepared(t, spec, nil, at, true)
		for pair, hertz := range map[[2]int]float64{{0, 1}: from1, {1, 0}: 300e6} {
			want := propagation.FreeSpace{}.Pathloss(ends[0], ends[1], hertz)
			if got := m.between(pair[0], pair[1]); math.Abs(got-want) > 0.01 {
				t.Errorf("at %v: pathloss of %v %.3f dB; want %.3f at %v Hz", at, pair, got, want, hertz)
			}
		}
	}
}

func TestPathlossOfAScenarioIsThatOfTheSchedulesFrequency(t *testing.T) {
	_, content := radiodtest.Compile(t, func(b *scenario.Builder) error { return b.PathlossAt(0, 1, 2, 300e6, 90) })
	spec := radiodtest.Physical(v1alpha1.PathlossScenario)
	spec.Waveform = radiodtest.TDMA()
	spec.Waveform.TDMA.PHY.Frequency, spec.Waveform.TDMA.Schedule = "2347MHz", radiodtest.Schedule(1, 2, 3)
	if got := prepared(t, spec, opened(t, content), 0, false).between(0, 1); got != 90 {
		t.Errorf("pathloss %v dB; want 90 as at 300 MHz", got)
	}
}

func TestAJammerIsHeardAtTheSchedulesFrequency(t *testing.T) {
	spec, ends := apart(v1alpha1.PathlossFreeSpace)
	spec.Changes = []v1alpha1.TimedRadioChange{radiodtest.Jam(0, v1alpha1.Jammer{Name: "red", Power: ptr.To(v1alpha1.Power("0dBm")), Position: spec.Members[1].Position})}
	want := math.Pow(10, -propagation.FreeSpace{}.Pathloss(ends[1], ends[0], 300e6)/10)
	if got := prepared(t, spec, nil, 0, false).Jammers[0].Milliwatts[0]; math.Abs(got/want-1) > 1e-3 {
		t.Errorf("%v mW at node 1; want %v", got, want)
	}
}

func TestANodeThatHopsIsRefusedWherePathlossDiffersByFrequency(t *testing.T) {
	_, content := radiodtest.Compile(t, func(b *scenario.Builder) error { return b.PathlossAt(0, 1, 2, 300e6, 90) })
	hopping := strings.Replace(radiodtest.Schedule(1, 2, 1), `<slot index="2" nodes="1"/>`, `<slot index="2" nodes="1"><tx frequency="310M"/></slot>`, 1)
	for name, c := range map[string]struct {
		source   v1alpha1.PathlossSource
		engine   v1alpha1.Engine
		scenario *scenario.Scenario
		want     string
	}{
		"computed":                {v1alpha1.PathlossFreeSpace, "", nil, "NEM id 1 sends at 300 MHz and at 310 MHz, and pathloss FreeSpace is computed for one frequency"},
		"by frequency":            {v1alpha1.PathlossScenario, "", opened(t, content), "the scenario has pathlosses by frequency"},
		"the same for all":        {v1alpha1.PathlossScenario, "", lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80)), ""},
		"computed by EMANE alone": {v1alpha1.PathlossFreeSpace, v1alpha1.EngineEMANE, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec, _ := apart(c.source)
			spec.Engine, spec.Waveform.TDMA.Schedule = c.engine, hopping
			later, _ := apart(c.source)
			later.Engine, later.Changes = c.engine, []v1alpha1.TimedRadioChange{{AtNanoseconds: 1e9, RadioChange: v1alpha1.RadioChange{Schedule: hopping}}}
			later.T0 = nil // it is refused before the run begins
			for when, spec := range map[string]*v1alpha1.RadioNetworkSpec{"at the beginning": spec, "after a change": later} {
				_, err := New(InputsOf(spec, nil, c.scenario), &StepCounters{})
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: got %v; want %q", when, err, c.want)
				}
			}
		})
	}
}
