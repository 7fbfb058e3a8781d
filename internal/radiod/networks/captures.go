package networks

import (
	"cmp"
	"math"

	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// setCaptures sets an attachment's captures to those of its network; the lock is held.
func (n *network) setCaptures(a *attachment, install func(*capture.Tap) error) error {
	if n.networks.Captures == nil {
		return nil
	}
	spec := &n.object.Spec
	place := capture.Place{RunUID: string(spec.Experiment.UID), NetworkUID: a.NetworkUID, Network: spec.Network, Node: a.Member.Node}
	var err error
	a.tap, err = n.networks.Captures.SetCaptures(a.tap, place, spec.Captures, capture.EndStopped, install)
	if err == nil {
		a.captureError = nil
	}
	return err
}

// captureError returns that of the first attachment that has one; the lock is held.
func (n *network) captureError() (first error) {
	nem := int32(math.MaxInt32)
	for _, a := range n.attachments {
		if a.captureError != nil && a.Member.NEM < nem {
			nem, first = a.Member.NEM, a.captureError
		}
	}
	return first
}

// setAllCaptures sets the captures of all of a network's attachments; the lock is held. It returns one error for all, which
// mostly fail the same way.
func (n *network) setAllCaptures() (failed error) {
	for _, a := range n.attachments {
		failed = cmp.Or(n.setOwnCaptures(a), failed)
	}
	return failed
}

// setOwnCaptures sets an attachment's captures at its port, or at the node's end of EMANE's pair; the lock is held.
func (n *network) setOwnCaptures(a *attachment) error {
	if a.Engine == v1alpha1.EngineEMANE {
		return n.captureVeth(a)
	}
	if a.port == 0 {
		return nil
	}
	return n.setCaptures(a, func(t *capture.Tap) error { return n.networks.Plane.SetTap(a.port, t.Place()) })
}

// endCaptures ends the captures of an attachment that has been detached.
func (n *network) endCaptures(a *attachment) {
	if a.tap != nil {
		// It cannot fail, because it begins no captures.
		a.tap, _ = n.networks.Captures.SetCaptures(a.tap, capture.Place{NetworkUID: a.NetworkUID}, nil, capture.EndDetached, a.installAtVeth)
	}
}
