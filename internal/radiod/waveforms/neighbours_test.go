package waveforms

import (
	"slices"
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
