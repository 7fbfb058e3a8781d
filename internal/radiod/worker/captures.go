package worker

import (
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/capture"
)

// portTap makes a capture's tap a radio.Tap.
type portTap struct{ *capture.Tap }

func (t portTap) Frame(direction radio.Direction, data []byte) {
	t.Tap.Frame(direction == radio.Out, data)
}

func install(port *driver.Port) func(*capture.Tap) {
	return func(t *capture.Tap) { port.SetTap(tapOf(t)) }
}

func tapOf(t *capture.Tap) radio.Tap {
	if t == nil {
		return nil
	}
	return portTap{t}
}

// setCaptures sets an attachment's captures to those of its network; the lock is held.
func (m *Manager) setCaptures(n *network, a *attachment, install func(*capture.Tap)) error {
	if m.Captures == nil {
		return nil
	}
	spec := &n.object.Spec
	place := capture.Place{RunUID: string(spec.Experiment.UID), NetworkUID: a.NetworkUID, Network: spec.Network, Node: a.Member.Node}
	var err error
	a.tap, err = m.Captures.SetCaptures(a.tap, place, spec.Captures, capture.EndStopped, install)
	if err == nil {
		a.captureError = nil
	}
	return err
}

// captureErrorOf returns the captureError of a network's first attachment that has one; the lock is held.
func (m *Manager) captureErrorOf(uid string) error {
	var first *attachment
	for _, a := range m.attachments {
		if a.NetworkUID == uid && a.captureError != nil && (first == nil || a.Member.NEM < first.Member.NEM) {
			first = a
		}
	}
	if first == nil {
		return nil
	}
	return first.captureError
}

// hasBegun reports whether T0 of the network's run has passed.
func (n *network) hasBegun() bool {
	t0 := n.object.Spec.T0
	return t0 != nil && t0.UnixNano() <= clock.Realtime()
}

// setAllCaptures sets the captures of all of a network's attachments; the lock is held.
func (m *Manager) setAllCaptures(uid string, n *network) error {
	for _, a := range m.attachments {
		if a.NetworkUID == uid && a.port != nil {
			if err := m.setCaptures(n, a, install(a.port)); err != nil {
				return err // the others would fail the same way
			}
		}
	}
	return nil
}

// endCaptures ends the captures of an attachment that has been detached; the lock is held.
func (m *Manager) endCaptures(a *attachment) {
	if a.tap == nil {
		return
	}
	// It cannot fail, because it begins no captures.
	a.tap, _ = m.Captures.SetCaptures(a.tap, capture.Place{NetworkUID: a.NetworkUID}, nil, capture.EndDetached, install(a.port))
}
