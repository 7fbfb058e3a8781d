package radio

import (
	"slices"
	"testing"
)

// shipmentRecorder keeps the sequence numbers of the parts that are shipped to a host.
type shipmentRecorder struct{ shipped [][]uint64 }

func (s *shipmentRecorder) Ship(shipment *Shipment) {
	sequences := []uint64{}
	for _, p := range shipment.Parts {
		sequences = append(sequences, p.Sequence)
	}
	s.shipped = append(s.shipped, sequences)
}

func TestEachHostGetsThePartsForItsPorts(t *testing.T) {
	const group, unknown MAC = multicastBit | 9, 77
	for _, c := range []struct {
		name    string
		reached []int // ports by NEM id: 2 and 3 are on the first host, 4 on the second
		to      []MAC // of the parts, whose sequence numbers count from 0
		// what the hosts get; nil where nothing is shipped.
		first, second [][]uint64
	}{
		{"a broadcast goes to those whom it reaches", []int{2, 3}, []MAC{group, group}, [][]uint64{{0, 1}}, nil},
		{"others hear of what disturbs them", []int{2, 4}, []MAC{2}, [][]uint64{{0}}, [][]uint64{{}}},
		{"an addressee's host knows what the addressee misses", nil, []MAC{4}, nil, [][]uint64{{0}}},
		{"parts for several hosts", []int{2, 3, 4}, []MAC{3, group, 4, 2}, [][]uint64{{0, 1, 3}}, [][]uint64{{1, 2}}},
		{"a broadcast is not for a host of addressees alone", []int{4}, []MAC{group, 2}, [][]uint64{{1}}, [][]uint64{{0}}},
		{"an address that nobody has", nil, []MAC{unknown}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = engine.Close() }()
			n, err := engine.NewNetwork(NetworkOptions{Model: &delayModel{}, MTU: 1500})
			if err != nil {
				t.Fatal(err)
			}
			newStation(t, n, 1)
			hosts := [2]*shipmentRecorder{{}, {}}
			for nem := 2; nem <= 4; nem++ {
				if _, err := n.Attach(PortOptions{NEM: nem, MAC: MAC(nem), Host: hosts[nem/4]}); err != nil {
					t.Fatal(err)
				}
			}
			n.Do(func(n *Network, _ Model) {
				s := &Shipment{}
				for i, to := range c.to {
					s.Parts = append(s.Parts, Part{Destination: to, Sequence: uint64(i)})
				}
				var reached []*Port
				for _, nem := range c.reached {
					reached = append(reached, n.Find(MAC(nem)))
				}
				n.ShipParts(s, reached)
				if len(s.Parts) != len(c.to) {
					t.Errorf("%d parts are left of %d", len(s.Parts), len(c.to))
				}
			})
			for i, want := range [][][]uint64{c.first, c.second} {
				if got := hosts[i].shipped; !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("host %d gets %v; want %v", i+1, got, want)
				}
			}
		})
	}
}
