package spectrum_test

import (
	"slices"
	"testing"

	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/radiod/spectrum"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func networkIn(run, name, band string, pods ...string) *v1alpha1.RadioNetwork {
	n := radiodtest.NetworkOf(run, name, pods...)
	n.Spec.Spectrum = band
	return n
}

func TestNeighboursAreTheNetworksOfTheSameRunAndSpectrum(t *testing.T) {
	vhf, uhf, hf := networkIn("run", "vhf", "low", "1", "2"), networkIn("run", "uhf", "low", "3", "4", "5"), networkIn("run", "hf", "low", "6")
	all := slices.Values([]*v1alpha1.RadioNetwork{vhf, networkIn("run", "sat", "high", "7"), uhf, networkIn("run", "lan", "", "8"), networkIn("other", "shf", "low", "9"), hf})
	var names []string
	for _, n := range spectrum.Neighbours(vhf, all) {
		names = append(names, n.Spec.Network)
	}
	if want := []string{"hf", "uhf"}; !slices.Equal(names, want) {
		t.Errorf("neighbours of vhf %v; want %v", names, want)
	}
	if alone := spectrum.Neighbours(networkIn("run", "lan", "", "8"), all); alone != nil {
		t.Errorf("a network without a spectrum has neighbours %v", alone)
	}
}

func TestEachRadioHasOneIDInEachNetwork(t *testing.T) {
	group := []*v1alpha1.RadioNetwork{networkIn("run", "hf", "low", "1"), networkIn("run", "uhf", "low", "2", "3", "4"), networkIn("run", "vhf", "low", "5", "6")}
	for _, n := range group {
		taken := map[int]bool{}
		for i := range n.Spec.Members {
			taken[int(n.Spec.Members[i].NEM)] = true
		}
		for _, other := range spectrum.Neighbours(n, slices.Values(group)) {
			for i := range other.Spec.Members {
				p := other.Port(string(n.UID), &other.Spec.Members[i])
				if taken[p.NEM] {
					t.Errorf("network %s: two radios have NEM id %d", n.Spec.Network, p.NEM)
				}
				taken[p.NEM] = true
			}
			for _, back := range spectrum.Neighbours(other.RadioNetwork, slices.Values(group)) {
				if back.UID == n.UID && back.Offset != other.OwnOffset {
					t.Errorf("%s numbers its radios in %s from %d, which takes them to be from %d", n.Spec.Network, other.Spec.Network, other.OwnOffset, back.Offset)
				}
			}
		}
	}
}
