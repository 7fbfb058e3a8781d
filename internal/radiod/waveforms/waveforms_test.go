package waveforms

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// radioOf a member as the waveform's settings have it.
func radioOf(t *testing.T, spec *v1alpha1.RadioNetworkSpec, node int, offset int64) dataplane.Radio {
	t.Helper()
	n, err := Network("run", spec, spec.T0.UnixNano()+offset, false)
	if err != nil {
		t.Fatal(err)
	}
	return n.Now.Radios.Of(node)
}

func TestRadiosDifferByNodeAndGroupAndChangeInTime(t *testing.T) {
	patch := func(at int64, from string, p v1alpha1.RadioPatch) v1alpha1.TimedRadioChange {
		return v1alpha1.TimedRadioChange{AtNanoseconds: at, RadioChange: v1alpha1.RadioChange{From: from, Radio: &p}}
	}
	spec := radiodtest.Physical(v1alpha1.PathlossScenario,
		patch(1, "", v1alpha1.RadioPatch{TransmitPower: ptr.To(v1alpha1.Power("1W")), Rate: ptr.To(v1alpha1.DataRate("2Mbit"))}),
		patch(2, "veh", v1alpha1.RadioPatch{Transmit: ptr.To(false), AntennaGain: ptr.To(v1alpha1.Gain("3dBi"))}),
		patch(3, "node-3", v1alpha1.RadioPatch{Transmit: ptr.To(true), Frequency: ptr.To(v1alpha1.Frequency("310MHz"))}))
	spec.Members[1].Group, spec.Members[2].Group = "veh", "veh"
	spec.Radios = []v1alpha1.Radio{{Nodes: []string{"node-1", "veh"}, TransmitPower: ptr.To(v1alpha1.Power("20dBm"))},
		{Nodes: []string{"node-3"}, NoiseFigure: ptr.To(v1alpha1.Decibel("7dB"))}}
	begin := dataplane.Radio{Radio: radioOf(t, radiodtest.Physical(v1alpha1.PathlossScenario), 1, 0).Radio, RateBitsPerSecond: 1e6}
	begin.TransmitPowerDBm = 20
	for name, c := range map[string]struct {
		node   int
		at     int64
		change func(*dataplane.Radio)
	}{
		"its own power":                {1, 0, func(*dataplane.Radio) {}},
		"its group's power":            {2, 0, func(*dataplane.Radio) {}},
		"its own noise figure as well": {3, 0, func(r *dataplane.Radio) { r.NoiseFigureDB = 7 }},
		"what all change":              {1, 1, func(r *dataplane.Radio) { r.TransmitPowerDBm, r.RateBitsPerSecond = 30, 2e6 }},
		"what its group changes": {2, 2, func(r *dataplane.Radio) {
			r.TransmitPowerDBm, r.RateBitsPerSecond, r.Transmit, r.AntennaGainDBi = 30, 2e6, false, 3
		}},
		"what another's group changes": {1, 3, func(r *dataplane.Radio) { r.TransmitPowerDBm, r.RateBitsPerSecond = 30, 2e6 }},
		"what it changes after its own": {3, 3, func(r *dataplane.Radio) {
			r.TransmitPowerDBm, r.RateBitsPerSecond, r.AntennaGainDBi, r.NoiseFigureDB, r.FrequencyHertz = 30, 2e6, 3, 7, 310e6
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := begin
			c.change(&want)
			if got := radioOf(t, spec, c.node, c.at); got != want {
				t.Errorf("got %+v; want %+v", got, want)
			}
		})
	}
}

// idleInFirstSlot is an update by which node 1 is off in the first slot.
const idleInFirstSlot = `<emane-tdma-schedule><multiframe><frame index="0"><slot index="0" nodes="1"><idle/></slot></frame></multiframe></emane-tdma-schedule>`

func TestWhatAWaveformCannotDoIsNamed(t *testing.T) {
	delay, rate := v1alpha1.Duration("1ms"), v1alpha1.DataRate("2Mbit")
	pipes := radiodtest.Physical(v1alpha1.PathlossScenario, v1alpha1.TimedRadioChange{AtNanoseconds: 1e9,
		RadioChange: v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Delay: &delay}}})
	broken := radiodtest.Physical(v1alpha1.PathlossScenario)
	broken.Waveform.RFPipe.PCR = "<pcr/>"
	slots := radiodtest.Physical(v1alpha1.PathlossScenario, v1alpha1.TimedRadioChange{AtNanoseconds: 1e9,
		RadioChange: v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Rate: &rate}}})
	slots.Waveform = radiodtest.TDMA()
	deaf := radiodtest.Physical(v1alpha1.PathlossScenario, radiodtest.Jam(1e9, v1alpha1.Jammer{Name: "red", Power: ptr.To(v1alpha1.Power("1W"))}))
	retuned := slots.DeepCopy()
	retuned.Changes[0].Radio = &v1alpha1.RadioPatch{Frequency: ptr.To(v1alpha1.Frequency("1GHz"))}
	written := slots.DeepCopy()
	written.Waveform.TDMA.Schedule = radiodtest.Schedule(1, 2, 3)
	updated := slots.DeepCopy()
	updated.Changes = []v1alpha1.TimedRadioChange{{AtNanoseconds: 1e9, RadioChange: v1alpha1.RadioChange{Schedule: idleInFirstSlot}},
		{AtNanoseconds: 2e9, RadioChange: v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: &rate}}}}
	for name, c := range map[string]struct {
		spec *v1alpha1.RadioNetworkSpec
		want string
		off  bool
	}{
		"a delay of one node":                      {pipes, `change at 1s: radio.delay and radio.jitter of "node-1"`, false},
		"a curve that is none":                     {broken, "pcr", true},
		"a jammer without interference":            {deaf, "change at 1s: jammer red", false},
		"a frequency for a schedule":               {retuned, "change at 1s: radio: frequency", false},
		"a generated schedule with two rates":      {slots, `change at 1s: radio.rate of "node-1"`, false},
		"a rate for a schedule with rates its own": {written, "change at 1s: radio.rate: the current schedule is not generated", false},
		"a rate after an update of the schedule":   {updated, "change at 2s: radio.rate: the current schedule is not generated", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newReplay(c.spec)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
			if silent := r.state().Silent; silent != c.off {
				t.Errorf("silent: %v; want %v", silent, c.off)
			}
		})
	}
}
