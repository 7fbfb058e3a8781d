package networks

import (
	"fmt"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/podradio"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Join implements attach.Networks.
func (m *Networks) Join(r *podradio.Radio) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[r.NetworkUID]
	if n == nil || n.ending {
		return fmt.Errorf("pod %s on %s: its network was removed meanwhile", r.PodUID, r.Interface)
	}
	a := &attachment{Radio: r}
	if r.Engine != v1alpha1.EngineEMANE {
		if err := n.attachPort(a); err != nil {
			return err
		}
	}
	n.attachments[r.Key()], n.latest[a.Member.Node] = a, a
	n.updateDriver()
	n.connect()
	if r.Engine == v1alpha1.EngineEMANE {
		n.noteCaptures(a, n.captureVeth(a))
	}
	return nil
}

// noteCaptures notes why an attachment's captures could not begin. A run does not begin without its captures.
func (n *network) noteCaptures(a *attachment, err error) {
	if err == nil {
		return
	}
	n.message = err.Error()
	if t0 := n.object.Spec.T0; !n.networks.restoring && (t0 == nil || t0.UnixNano() > clock.Realtime()) {
		a.captureError = refusal.Of(err)
	}
}

// attachPort adds an attachment's port to its network in the engine; the lock is held.
func (n *network) attachPort(a *attachment) error {
	mac, err := radio.ParseMAC(a.Member.MAC)
	if err != nil {
		return err
	}
	if n.running == nil {
		if err = n.start(); err != nil {
			return err
		}
	}
	port := dataplane.Port{Network: a.NetworkUID, Name: a.Member.Node, Group: a.Member.Group, NEM: int(a.Member.NEM), MAC: mac,
		Descriptor: a.Descriptor(), CounterFile: a.Counters.Path}
	n.noteCaptures(a, n.setCaptures(a, func(t *capture.Tap) error {
		port.Tap = t.Place()
		return nil
	}))
	if a.port, err = n.networks.Plane.Attach(&port); err != nil {
		n.endCaptures(a) // nothing else knows of them
	}
	return err
}

// detachPort removes an attachment's port, and keeps what it last counted.
func (n *network) detachPort(a *attachment) {
	last, err := n.networks.Plane.Detach(a.port)
	if err != nil {
		n.networks.Log.Error("detach a radio", "pod", a.PodUID, "interface", a.Interface, "error", err)
		return
	}
	a.last, a.slots = last.Counters, last.Slots
}

// Leave implements attach.Networks. The last counters are written to a file, for which other networks must not wait.
func (m *Networks) Leave(r *podradio.Radio) error {
	a, last := m.leave(r)
	if r.Counters == nil || r.RunUID == "" {
		return nil
	}
	return m.Recorder.Record(r.RunUID, nil, a.lastCounters(last))
}

// leave removes a radio from its network, if it has joined, and returns its last counters.
func (m *Networks) leave(r *podradio.Radio) (*attachment, radio.Counters) {
	n, a := m.remove(r)
	if n == nil {
		return a, a.lastCounted()
	}
	defer n.leaving.Done()
	if a.port != 0 { // not locked: the loop may be busy, and other networks must not wait for it
		n.detachPort(a)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(n.departing, a.port)
	n.endCaptures(a)
	a.endWatch()
	last := a.lastCounted()
	if a.port != 0 && a.RunUID != "" && last.InFlight > 0 {
		n.detached = append(n.detached, a) // the network keeps it while it has frames under way
	}
	return a, last
}

// remove removes a radio from its network, which then waits for n.leaving. It returns no network if it has not joined.
func (m *Networks) remove(r *podradio.Radio) (*network, *attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[r.NetworkUID]
	if n == nil {
		return nil, &attachment{Radio: r}
	}
	a := n.attachments[r.Key()]
	if a == nil || a.Radio != r {
		return nil, &attachment{Radio: r}
	}
	n.leaving.Add(1)
	n.departing[a.port] = a
	delete(n.attachments, r.Key())
	if a.port == 0 && n.driver != nil {
		n.readEMANE(a)
		n.abandon(a)
	}
	n.updateDriver()
	n.connect()
	return n, a
}

// Release implements attach.Networks.
func (m *Networks) Release(r *podradio.Radio) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.networks[r.NetworkUID]; n != nil {
		if a := n.attachments[r.Key()]; a != nil {
			a.endWatch()
		}
		delete(n.attachments, r.Key())
	}
}

// Pause implements attach.Networks.
func (m *Networks) Pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restoring = true
}

// Resume implements attach.Networks. All networks' frames flow once all nodes are restored, so that the first ones find
// their receivers.
func (m *Networks) Resume() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restoring = false
	return m.Plane.Resume()
}

// Left implements attach.Networks.
func (m *Networks) Left() (left dataplane.Left, err error) {
	left, err = m.Plane.Left()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = left
	return left, err
}

// Restored implements attach.Networks.
func (m *Networks) Restored() error { return m.Plane.Restored() }
