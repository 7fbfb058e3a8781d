package olsr

import (
	"bytes"
	"slices"

	"vignette.dev/vignette/internal/olsr/rfc5444"
)

// metrics are one for each topology, by its number in router.topologies. A metric of 0 is unknown, or the link is not in
// the topology.
type metrics [MaxTopologies]uint32

// carriedBy returns which topologies' routes may lead over an interface.
func (r *router) carriedBy(i *Interface) (carries [MaxTopologies]bool) {
	for n, t := range r.topologies {
		carries[n] = n == 0 || slices.Contains(i.Topologies, t.Type)
	}
	return carries
}

// topologyOf returns the topology of a metric type, or -1.
func (r *router) topologyOf(kind uint8) int {
	return slices.IndexFunc(r.topologies, func(t Topology) bool { return t.Type == kind })
}

// readPositions reads the positions of this node's topologies among those of a message's sender. A topology that the sender
// does not have is at -1. A sender without the TLV MPR_TYPES has the first only (RFC 7722).
func (r *router) readPositions(m *rfc5444.Message) {
	types, several := m.TLV(messageMPRWilling, mprTypesExtension)
	for n, t := range r.topologies {
		switch {
		case several:
			r.positions[n] = bytes.IndexByte(types, t.Type)
		case n == 0:
			r.positions[n] = 0
		default:
			r.positions[n] = -1
		}
	}
}

// appendTypes appends the TLV MPR_TYPES, if there are several topologies (RFC 7722).
func (r *router) appendTypes(tlvs []rfc5444.TLV) []rfc5444.TLV {
	if len(r.topologies) == 1 {
		return tlvs
	}
	var types []byte
	for _, t := range r.topologies {
		types = append(types, t.Type)
	}
	return append(tlvs, rfc5444.TLV{Type: messageMPRWilling, Extension: mprTypesExtension, Value: types})
}

// ownWillingness is the value of MPR_WILLING: four bits for flooding, and four for routing in each topology (RFC 7722).
func (r *router) ownWillingness() []byte {
	value := []byte{uint8(*r.c.FloodingWillingness << 4)}
	for n := range r.topologies {
		place := 1 + n
		if place/2 == len(value) {
			value = append(value, 0)
		}
		value[place/2] |= fourBits(uint8(*r.c.RoutingWillingness), place)
	}
	return value
}

// fourBits puts a willingness at its place in an octet, the higher half for even ones.
func fourBits(willingness uint8, place int) uint8 {
	if place%2 == 0 {
		return willingness << 4
	}
	return willingness
}

// routingWillingness of a neighbour in each topology, by the value of its MPR_WILLING. In a topology that it does not have it
// is never willing; one that the value leaves out is like the first.
func (r *router) routingWillingness(value []byte) (all [MaxTopologies]int) {
	for n := range r.topologies {
		place := 1 + r.positions[n]
		switch {
		case r.positions[n] < 0:
			continue
		case place/2 >= len(value):
			place = 1
		}
		all[n] = int(value[place/2] & 0xf)
		if place%2 == 0 {
			all[n] = int(value[place/2] >> 4)
		}
	}
	return all
}

// hasBit reports whether a bit of a value is set. The first octet has the bits 0 to 7, from the lowest on.
func hasBit(value []byte, bit int) bool {
	return bit/8 < len(value) && value[bit/8]&(1<<(bit%8)) != 0
}

// chosenBy reports in which topologies a neighbour with that value of the TLV MPR has chosen this node.
func (r *router) chosenBy(value []byte) (chosen [MaxTopologies]bool) {
	for n := range r.topologies {
		chosen[n] = r.positions[n] >= 0 && hasBit(value, 1+r.positions[n])
	}
	return chosen
}

// hops of an attached network by the value of its TLV GATEWAY: one octet for all topologies, or one for each (RFC 7722).
func (r *router) hops(value []byte) (all [MaxTopologies]uint8) {
	for n := range r.topologies {
		switch at := r.positions[n]; {
		case len(value) == 1:
			all[n] = value[0]
		case at >= 0 && at < len(value):
			all[n] = value[at]
		}
	}
	return all
}
