package worker

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/hosts"
	"vignette.dev/vignette/operators/api/v1alpha1"
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

// connectHosts updates a network's ports on other hosts; the manager's lock is held.
func (m *Manager) connectHosts(uid string, n *network) {
	h := m.hosts.Load()
	switch {
	case h == nil:
	case n == nil || n.running == nil && n.driver == nil || !m.isServed(uid):
		h.Disconnect(uid)
	case n.running != nil:
		h.Connect(uid, hosts.Network{Object: n.object, Ports: enginePorts{n.running, &n.environment.clock}})
	default:
		h.Connect(uid, hosts.Network{Object: n.object, EMANE: n.driver})
	}
}

// isServed reports whether a network has attachments here; the lock is held.
func (m *Manager) isServed(uid string) bool {
	for _, a := range m.attachments {
		if a.NetworkUID == uid {
			return true
		}
	}
	return false
}

// isDistributed reports whether other hosts that can be reached serve some of a network's members.
func (m *Manager) isDistributed(object *v1alpha1.RadioNetwork) bool {
	h := m.hosts.Load()
	return h != nil && h.IsDistributed(object)
}
