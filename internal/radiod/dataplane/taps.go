package dataplane

import (
	"maps"
	"weak"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/framering"
)

// tap passes the frames of a port into a ring.
type tap struct {
	framering.Tap
	ring *framering.Ring
}

// Frame implements radio.Tap.
func (t *tap) Frame(direction radio.Direction, data []byte) {
	t.ring.Pass(t.Tap, direction == radio.Out, clock.Monotonic(), data)
}

// tapOf opens a tap; nil is none. A ring is mapped once, as long as a port has it.
func (l *Local) tapOf(t *framering.Tap) (radio.Tap, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // no tap
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.rings, func(_ string, r weak.Pointer[framering.Ring]) bool { return r.Value() == nil })
	ring := l.rings[t.Path].Value()
	if ring == nil {
		var err error
		if ring, err = framering.Open(t.Path); err != nil {
			return nil, err
		}
		l.rings[t.Path] = weak.Make(ring)
	}
	return &tap{*t, ring}, nil
}

// SetTap implements Plane.
func (l *Local) SetTap(id PortID, t *framering.Tap) error {
	p, err := l.findPort(id)
	if err != nil {
		return err
	}
	opened, err := l.tapOf(t)
	if err == nil {
		p.SetTap(opened)
	}
	return err
}
