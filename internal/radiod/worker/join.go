package worker

import (
	"errors"
	"fmt"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/attach"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Join implements attach.Networks.
func (m *Manager) Join(r *attach.Radio) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[r.NetworkUID]
	if n == nil {
		return fmt.Errorf("pod %s on %s: its network was removed meanwhile", r.PodUID, r.Interface)
	}
	a := &attachment{Radio: r}
	if r.Engine != v1alpha1.EngineEMANE {
		if err := m.attachPort(n, a); err != nil {
			return err
		}
	}
	m.attachments[r.Key()] = a
	m.updateDriver(r.NetworkUID, n)
	m.connectHosts(r.NetworkUID, n)
	return nil
}

// attachPort adds an attachment's port to its network in the engine; the lock is held.
func (m *Manager) attachPort(n *network, a *attachment) error {
	mac, err := radio.ParseMAC(a.Member.MAC)
	if err != nil {
		return err
	}
	if n.running == nil {
		if err = m.startNetwork(n); err != nil {
			return err
		}
		if m.restoring {
			n.running.Pause()
		}
	}
	options := driver.PortOptions{Descriptor: a.Descriptor(), Gone: a.Gone,
		PortOptions: radio.PortOptions{Name: a.Member.Node, Group: a.Member.Group, NEM: int(a.Member.NEM), MAC: mac, Ledger: &a.Counters.Ledger}}
	if err := m.setCaptures(n, a, func(t *capture.Tap) { options.Tap = tapOf(t) }); err != nil {
		n.message = err.Error()
		if !m.restoring && !n.hasBegun() { // a run does not begin without its captures
			a.captureError = refusal.Of(err)
		}
	}
	port, err := n.running.Attach(options)
	if err != nil {
		return err
	}
	a.port = port
	a.Counters.KeepMappedFor(a.port.Port)
	return nil
}

// Leave implements attach.Networks.
func (m *Manager) Leave(r *attach.Radio) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, n := m.attachments[r.Key()], m.networks[r.NetworkUID]
	if a == nil || a.Radio != r {
		a = &attachment{Radio: r} // it has never joined
	} else {
		delete(m.attachments, r.Key())
	}
	switch {
	case a.port != nil:
		n.readSlots(a)
		a.port.Detach()
	case n != nil && n.driver != nil:
		n.readEMANE(a)
	}
	if n != nil {
		m.updateDriver(r.NetworkUID, n)
	}
	m.connectHosts(r.NetworkUID, n)
	m.endCaptures(a)
	return m.recordEnd(a)
}

// Release implements attach.Networks.
func (m *Manager) Release(r *attach.Radio) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.attachments[r.Key()]; a != nil && a.port != nil {
		a.port.Detach()
	}
	delete(m.attachments, r.Key())
}

// Pause implements attach.Networks.
func (m *Manager) Pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restoring = true
}

// Resume implements attach.Networks. All networks' frames flow once all nodes are restored, so that the first ones find
// their receivers.
func (m *Manager) Resume() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restoring = false
	for _, n := range m.networks {
		if n.running != nil {
			err = errors.Join(err, n.running.Resume())
		}
	}
	return err
}

// AttachedChanged implements attach.Networks.
func (m *Manager) AttachedChanged(uid string) {
	if n := m.members.Network(uid); n != nil {
		m.Changed(n)
	}
}
