package worker

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/hosts"
)

// enginePorts are a network's ports in the engine. They implement hosts.Ports.
type enginePorts struct {
	running *driver.Network
	clock   *slotClock
}

// AttachRemote implements hosts.Ports.
func (p enginePorts) AttachRemote(o radio.PortOptions) (detach func(), err error) {
	port, err := p.running.Attach(driver.PortOptions{PortOptions: o})
	if err != nil {
		return nil, err
	}
	return func() { port.Detach() }, nil
}

// ReceiveShipment implements hosts.Ports.
func (p enginePorts) ReceiveShipment(s *radio.Shipment) (useful bool) {
	if !p.clock.agrees(s) {
		return false
	}
	p.running.ReceiveShipment(s)
	return true
}

// FollowClock implements hosts.Ports.
func (p enginePorts) FollowClock(ahead int64) { p.clock.followed.Store(ahead) }

// connect updates a network's ports on other hosts; the lock is held.
func (n *network) connect() {
	h, uid := n.room.hosts.Load(), string(n.object.UID)
	switch {
	case h == nil:
	case n.running == nil && n.driver == nil || len(n.attachments) == 0:
		h.Disconnect(uid)
	case n.running != nil:
		h.Connect(uid, hosts.Network{Object: n.object, Ports: enginePorts{n.running, &n.environment.clock}})
	default:
		h.Connect(uid, hosts.Network{Object: n.object, EMANE: n.driver})
	}
}
