package olsr

import (
	"net/netip"
	"slices"

	"vignette.dev/vignette/internal/olsr/internal/core"
)

// links of an interface, by address for lookups by packets, and in order for iteration, which is far more
// frequent than changes. The zero value is empty.
type links struct {
	order  []*link // by address; never changed in place
	index  core.Index
	number []*link // by the numbers of index
}

// of returns the link of an address, or nil.
func (s *links) of(a netip.Addr) *link {
	if n, known := s.index.Known(a); known {
		return s.number[n]
	}
	return nil
}

// add a link whose address has none.
func (s *links) add(l *link) {
	place, _ := slices.BinarySearchFunc(s.order, l.address, func(other *link, a netip.Addr) int { return other.address.Compare(a) })
	s.order = slices.Insert(slices.Clone(s.order), place, l)
	s.index.Of(l.address)
	s.number = append(s.number, l)
}

// remove removes a link. The index cannot forget an address, so it is made again.
func (s *links) remove(l *link) {
	s.order = slices.DeleteFunc(slices.Clone(s.order), func(other *link) bool { return other == l })
	s.index, s.number = core.Index{}, slices.Clone(s.order)
	for _, other := range s.order {
		s.index.Of(other.address)
	}
}
