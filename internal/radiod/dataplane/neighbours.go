package dataplane

import (
	"vignette.dev/vignette/internal/radio"
)

// neighbour takes a network's transmissions to another network, which they disturb. It implements radio.Host. Those of one
// neighbour at one host are equal.
type neighbour struct {
	id networkID
	// network of this host; nil for one at the host far.
	network *network
	far     *remoteHost
	// offset gives the members of the sending network their NEM ids in the other one.
	offset int
}

// Ship implements radio.Host. The other network decides without the contents.
func (a neighbour) Ship(s *radio.Shipment) {
	noise := radio.Shipment{Source: s.Source + a.offset, Index: s.Index, Sent: s.Sent, Start: s.Start, Due: s.Due,
		FrequencyHertz: s.FrequencyHertz, PowerDBm: s.PowerDBm, RateBitsPerSecond: s.RateBitsPerSecond, Bytes: s.Bytes}
	if s.OnAir > 0 {
		noise.Due = s.Start + s.OnAir // the rest of the slot is silent
	}
	if a.far != nil {
		a.far.peer.Send(appendShipment(a.far.peer.Buffer(), a.id, &noise, a.far.peerTime))
		return
	}
	a.network.ReceiveShipment(&noise)
}

// addNeighbour makes a port one of a neighbour, which serves it on this host or on another.
func (l *Local) addNeighbour(options *radio.PortOptions, r *Port, far *remoteHost) error {
	to := neighbour{id: networkIDOf(r.Neighbour), far: far, offset: r.NeighbourOffset}
	if far == nil {
		n, err := l.find(r.Neighbour)
		if err != nil {
			return err
		}
		to.network = n
	}
	options.Host, options.Neighbour = to, true
	return nil
}
