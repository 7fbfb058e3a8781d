package waveforms

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/radiod/spectrum"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestRadiosOfNeighboursChangeBesideTheNetworksOwn(t *testing.T) {
	t0 := metav1.NewMicroTime(time.Unix(1000, 0))
	network := func(name string, at time.Duration, change v1alpha1.RadioChange) *v1alpha1.RadioNetwork {
		n := radiodtest.NetworkOf("run", name, "pod-1", "pod-2")
		n.Spec.Waveform, n.Spec.Spectrum, n.Spec.T0 = radiodtest.RFPipe(), "low", &t0
		n.Spec.Changes = []v1alpha1.TimedRadioChange{{AtNanoseconds: int64(at), RadioChange: change}}
		return n
	}
	vhf := network("vhf", 2*time.Second, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Delay: ptr.To(v1alpha1.Duration("7ms"))}})
	uhf := network("uhf", time.Second, v1alpha1.RadioChange{From: "node-2", Radio: &v1alpha1.RadioPatch{TransmitPower: ptr.To(v1alpha1.Power("30dBm"))}})
	now := t0.UnixNano()
	r, err := Network("vhf", &vhf.Spec, now, false)
	if err != nil {
		t.Fatal(err)
	}
	// uhf is the first of the two by name, so that its radios have the ids 3 and 4 in vhf.
	AddNeighbours(r, spectrum.Neighbours(vhf, slices.Values([]*v1alpha1.RadioNetwork{vhf, uhf})), now)
	if got := r.Now.Radios.ByNEM; len(got) != 4 || got[1].SubID != 1 || got[4].SubID >= 0 || got[4].TransmitPowerDBm != 0 {
		t.Errorf("radios %+v; want the own ones, and those of uhf with a subid of their own", got)
	}
	if len(r.Later) != 2 {
		t.Fatalf("%d changes; want one of each network", len(r.Later))
	}
	if !r.Later[0].Neighbour || r.Later[1].Neighbour {
		t.Error("the first change is to be that of a neighbour, the second the network's own")
	}
	louder, slower := r.Later[0].State, r.Later[1].State
	if got := louder.Radios.ByNEM; len(got) != 4 || got[4].TransmitPowerDBm != 30 || got[3].TransmitPowerDBm != 0 || got[2].TransmitPowerDBm != 0 {
		t.Errorf("after a second: radios %+v; want node-2 of uhf alone at 30 dBm", got)
	}
	if louder.Delay != 0 || slower.Delay != 7*time.Millisecond {
		t.Errorf("delays %v and %v; want the network's own at its own change only", louder.Delay, slower.Delay)
	}
	if after := r.Now.FollowedBy(&louder); after.FollowedBy(&slower).Radios.ByNEM[4].TransmitPowerDBm != 30 {
		t.Error("the network's own change undoes that of its neighbour")
	}
}

func TestChangesOfANeighbourWithAnotherT0AreLeftOut(t *testing.T) {
	t0 := metav1.NewMicroTime(time.Unix(1000, 0))
	vhf, uhf := radiodtest.NetworkOf("run", "vhf", "pod-1"), radiodtest.NetworkOf("run", "uhf", "pod-2")
	for _, n := range []*v1alpha1.RadioNetwork{vhf, uhf} {
		n.Spec.Waveform, n.Spec.Spectrum = radiodtest.RFPipe(), "low"
	}
	uhf.Spec.T0 = &t0 // written before that of vhf
	uhf.Spec.Changes = []v1alpha1.TimedRadioChange{{AtNanoseconds: 1e9, RadioChange: v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: ptr.To(v1alpha1.Power("30dBm"))}}}}
	for _, c := range []struct {
		t0   *metav1.MicroTime
		want int
	}{{nil, 0}, {&t0, 1}} {
		vhf.Spec.T0 = c.t0
		r, err := Network("vhf", &vhf.Spec, t0.UnixNano(), false)
		if err != nil {
			t.Fatal(err)
		}
		AddNeighbours(r, spectrum.Neighbours(vhf, slices.Values([]*v1alpha1.RadioNetwork{vhf, uhf})), t0.UnixNano())
		if len(r.Later) != c.want || len(r.Now.Radios.ByNEM) != 2 {
			t.Errorf("with T0 %v: %d changes and %d radios; want %d and 2", c.t0, len(r.Later), len(r.Now.Radios.ByNEM), c.want)
		}
	}
}

func TestRadiosOfATDMANeighbourHaveItsSchedulesBandwidth(t *testing.T) {
	t0 := metav1.NewMicroTime(time.Unix(1000, 0))
	vhf, slots := radiodtest.NetworkOf("run", "vhf", "pod-1", "pod-2"), radiodtest.NetworkOf("run", "slots", "pod-3", "pod-4")
	vhf.Spec.Waveform, slots.Spec.Waveform = radiodtest.RFPipe(), radiodtest.TDMA()
	for _, n := range []*v1alpha1.RadioNetwork{vhf, slots} {
		n.Spec.Spectrum, n.Spec.T0 = "low", &t0
	}
	narrow := func(bandwidth string) string {
		return strings.Replace(radiodtest.Schedule(1, 2), `bandwidth="1M"`, `bandwidth="`+bandwidth+`"`, 1)
	}
	slots.Spec.Waveform.TDMA.Schedule = narrow("25K")
	slots.Spec.Changes = []v1alpha1.TimedRadioChange{{AtNanoseconds: 1e9, RadioChange: v1alpha1.RadioChange{Schedule: narrow("50K")}}}
	now := t0.UnixNano()
	r, err := Network("vhf", &vhf.Spec, now, false)
	if err != nil {
		t.Fatal(err)
	}
	AddNeighbours(r, spectrum.Neighbours(vhf, slices.Values([]*v1alpha1.RadioNetwork{vhf, slots})), now)
	if len(r.Later) != 1 {
		t.Fatalf("%d changes; want that of the neighbour's schedule", len(r.Later))
	}
	// slots is the first of the two by name, so that its radios have the ids 3 and 4 in vhf.
	before, after := r.Now.Radios.ByNEM, r.Later[0].Radios.ByNEM
	if before[3].BandwidthHertz != 25e3 || after[4].BandwidthHertz != 50e3 || after[1].BandwidthHertz != 1e6 {
		t.Errorf("bandwidths %v and then %v Hz of slots, %v Hz of vhf; want those of the schedules, and 1 MHz of vhf's phy",
			before[3].BandwidthHertz, after[4].BandwidthHertz, after[1].BandwidthHertz)
	}
}
