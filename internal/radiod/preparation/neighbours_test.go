package preparation

import (
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/radiod/spectrum"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestNeighboursHaveAPathlossFromTheirPlatforms has node-1 and node-2 in uhf too, and a fourth node.
func TestNeighboursHaveAPathlossFromTheirPlatforms(t *testing.T) {
	s := lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(0, 1, 4, 90), radiodtest.LossAt(0, 3, 4, 70))
	vhf := radiodtest.NetworkOf("run", "vhf", "pod-1", "pod-2", "pod-3")
	vhf.Spec = *radiodtest.Physical(v1alpha1.PathlossScenario)
	uhf := radiodtest.NetworkOf("run", "uhf", "pod-1", "pod-2", "pod-4")
	uhf.Spec.Waveform, uhf.Spec.T0 = radiodtest.RFPipe(), vhf.Spec.T0
	uhf.Spec.Members[2].Node = "node-4"
	for i, platform := range []int32{1, 2, 4} {
		uhf.Spec.Members[i].Platform = ptr.To(platform)
	}
	vhf.Spec.Spectrum, uhf.Spec.Spectrum = "low", "low"
	retune := v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Frequency: ptr.To(v1alpha1.Frequency("310MHz"))}}
	uhf.Spec.Changes = []v1alpha1.TimedRadioChange{{AtNanoseconds: int64(time.Second), RadioChange: retune},
		radiodtest.Jam(0, v1alpha1.Jammer{Name: "red", Power: ptr.To(v1alpha1.Power("1W")), Pathloss: ptr.To(v1alpha1.Decibel("60dB"))})}
	inputs := InputsOf(&vhf.Spec, spectrum.Neighbours(vhf, slices.Values([]*v1alpha1.RadioNetwork{vhf, uhf})), s)
	p := newPreparer(inputs)
	m, err := p.moment(int64(2 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	// The members are node-1 to node-3 of vhf, then node-1, node-2 and node-4 of uhf, which is the first of the two by name.
	for pair, want := range map[[2]int]float64{{0, 1}: 80, {0, 4}: 80, {4, 0}: 80, {0, 5}: 90, {5, 2}: 70, {0, 3}: math.NaN(), {1, 4}: math.NaN()} {
		if got := float64(m.Pathloss[6*pair[0]+pair[1]]); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("pathloss from member %d to %d: %v; want %v", pair[0], pair[1], got, want)
		}
	}
	if want := []float64{300e6, 300e6, 300e6, 310e6, 300e6, 300e6}; !slices.Equal(p.frequencies, want) {
		t.Errorf("frequencies %v; want only that of node-1 in uhf to be another", p.frequencies)
	}
	if len(m.Jammers) != 0 {
		t.Error("a jammer of uhf disturbs vhf")
	}
	if nem := inputs.members[5].NEM; nem != 6 || inputs.index(6) != 5 {
		t.Errorf("node-4 has NEM id %d; want 6", nem)
	}
}

func TestEqualInputsAreRecognised(t *testing.T) {
	spec := radiodtest.Physical(v1alpha1.PathlossScenario, radiodtest.Jam(0, v1alpha1.Jammer{Name: "red", Power: ptr.To(v1alpha1.Power("1W")), Pathloss: ptr.To(v1alpha1.Decibel("60dB"))}))
	s := lossesScenario(t, radiodtest.LossAt(0, 1, 2, 80))
	b, err := New(InputsOf(spec, nil, s), &StepCounters{})
	if err != nil {
		t.Fatal(err)
	}
	if !b.IsOf(InputsOf(spec.DeepCopy(), nil, s)) {
		t.Error("equal inputs with a change are taken for others")
	}
	spec.Changes[0].AtNanoseconds++
	if b.IsOf(InputsOf(spec, nil, s)) {
		t.Error("a change at another time is not noticed")
	}
}
