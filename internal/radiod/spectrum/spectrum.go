// Package spectrum says which networks of an experiment interfere with each other, and by which NEM ids they know each
// other's radios.
package spectrum

import (
	"cmp"
	"iter"
	"slices"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Neighbour is another network of a network's spectrum, as that network sees it.
type Neighbour struct {
	*v1alpha1.RadioNetwork
	// Place of the neighbour among the networks of the spectrum, from 1.
	Place int
	// Offset added to the NEM ids of the neighbour's members gives their ids in the network. OwnOffset added to those of
	// the network's members gives their ids in the neighbour.
	Offset, OwnOffset int
}

// SubID of the neighbour's radios in the network. No waveform has a negative one, so that they are never received.
func (n *Neighbour) SubID() int { return -n.Place }

// Port by which a network disturbs one of the neighbour's members, and is disturbed by it.
func (n *Neighbour) Port(network string, member *v1alpha1.Member) dataplane.Port {
	return dataplane.Port{Network: network, Name: n.Spec.Network + "/" + member.Node, Group: member.Group, NEM: n.Offset + int(member.NEM),
		Neighbour: string(n.UID), NeighbourOffset: n.OwnOffset}
}

// Neighbours returns the other networks of a network's spectrum, sorted by name. All hosts number them alike.
func Neighbours(of *v1alpha1.RadioNetwork, all iter.Seq[*v1alpha1.RadioNetwork]) (neighbours []Neighbour) {
	if of.Spec.Spectrum == "" {
		return nil
	}
	var group []*v1alpha1.RadioNetwork
	highest := 0
	for n := range all {
		if n.Spec.Experiment.UID == of.Spec.Experiment.UID && n.Spec.Spectrum == of.Spec.Spectrum {
			group = append(group, n)
			for i := range n.Spec.Members {
				highest = max(highest, int(n.Spec.Members[i].NEM))
			}
		}
	}
	slices.SortFunc(group, func(a, b *v1alpha1.RadioNetwork) int { return cmp.Compare(a.Spec.Network, b.Spec.Network) })
	own := 1 + slices.IndexFunc(group, func(n *v1alpha1.RadioNetwork) bool { return n.UID == of.UID })
	for i, n := range group {
		if n.UID != of.UID {
			neighbours = append(neighbours, Neighbour{n, i + 1, (i + 1) * highest, own * highest})
		}
	}
	return neighbours
}
