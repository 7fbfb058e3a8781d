package networks

import (
	"iter"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/spectrum"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// connect updates a network's ports on other hosts, and those between it and the other networks of its spectrum; the lock
// is held.
func (n *network) connect() {
	n.connectAlone()
	for _, other := range n.neighbours() {
		n.networks.networks[string(other.UID)].connectAlone()
	}
}

func (n *network) connectAlone() {
	neighbours := n.neighbours()
	n.connectNeighbours(neighbours)
	h, uid := n.networks.hosts.Load(), string(n.object.UID)
	switch {
	case h == nil || n.ending:
	case n.running == nil && n.driver == nil || len(n.attachments) == 0:
		h.Disconnect(uid)
	default:
		h.Connect(uid, n.object, neighbours)
	}
}

// neighbours returns the other networks of the network's spectrum; the lock is held.
func (n *network) neighbours() []spectrum.Neighbour {
	return spectrum.Neighbours(n.object, n.networks.objects())
}

// objects are the known networks but those that are being removed.
func (m *Networks) objects() iter.Seq[*v1alpha1.RadioNetwork] {
	return func(yield func(*v1alpha1.RadioNetwork) bool) {
		for _, n := range m.networks {
			if !n.ending && !yield(n.object) {
				return
			}
		}
	}
}

// connectNeighbours updates the network's ports of its neighbours' radios on this host; the lock is held.
func (n *network) connectNeighbours(neighbours []spectrum.Neighbour) {
	wanted := map[int]dataplane.Port{}
	for i := range neighbours {
		other := &neighbours[i]
		here := n.networks.networks[string(other.UID)]
		if n.running == nil || n.ending || here.running == nil {
			continue
		}
		for _, a := range here.attachments {
			p := other.Port(string(n.object.UID), &a.Member)
			wanted[p.NEM] = p
		}
	}
	if err := n.disturbed.Set(n.networks.Plane, wanted); err != nil {
		n.networks.Log.Error("radios of other networks of a spectrum", "network", n.object.Name, "error", err)
	}
}

// changeNeighbours updates the other networks of the network's spectrum to its radios; the lock is held.
func (n *network) changeNeighbours() {
	for _, other := range n.neighbours() {
		neighbour := n.networks.networks[string(other.UID)]
		if neighbour.running == nil {
			neighbour.updateDriver()
			continue
		}
		if err := neighbour.change(&neighbour.object.Spec); err != nil {
			neighbour.message = err.Error()
		}
		n.networks.Changed(string(other.UID))
	}
}
