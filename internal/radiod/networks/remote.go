package networks

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/hosts"
)

// planePorts are a network's ports in the data plane. They implement hosts.Ports.
type planePorts struct {
	*Networks
	uid string
}

// AttachRemote implements hosts.Ports.
func (p planePorts) AttachRemote(o radio.PortOptions) (detach func(), err error) {
	id, err := p.Plane.Attach(&dataplane.Port{Network: p.uid, Name: o.Name, Group: o.Group, NEM: o.NEM, MAC: o.MAC, Host: o.Host})
	if err != nil {
		return nil, err
	}
	return func() {
		if _, err := p.Plane.Detach(id); err != nil {
			p.Log.Error("detach a radio of another host", "node", o.Name, "error", err)
		}
	}, nil
}

// ReceiveShipment implements hosts.Ports.
func (p planePorts) ReceiveShipment(s *radio.Shipment) (useful bool) {
	return p.Plane.ReceiveShipment(p.uid, s)
}

// FollowClock implements hosts.Ports.
func (p planePorts) FollowClock(ahead int64) {
	if err := p.Plane.FollowClock(p.uid, ahead); err != nil {
		p.Log.Error("clock of a network's slots", "network", p.uid, "error", err)
	}
}

// connect updates a network's ports on other hosts; the lock is held.
func (n *network) connect() {
	h, uid := n.networks.hosts.Load(), string(n.object.UID)
	switch {
	case h == nil || n.ending:
	case n.running == nil && n.driver == nil || len(n.attachments) == 0:
		h.Disconnect(uid)
	case n.running != nil:
		h.Connect(uid, hosts.Network{Object: n.object, Ports: planePorts{n.networks, uid}})
	default:
		h.Connect(uid, hosts.Network{Object: n.object, EMANE: n.driver})
	}
}
