package capture

import (
	"slices"

	"vignette.dev/vignette/internal/radiod/framering"
)

// Tap copies each frame that passes one port.
type Tap struct {
	framering.Tap
	ring *framering.Ring
	// name of the tap among all that ever were.
	name  string
	sinks []sink
}

// Place of the tap for what passes frames into its ring; nil for none.
func (t *Tap) Place() *framering.Tap {
	if t == nil {
		return nil
	}
	return &t.Tap
}

// state of the tap in its ring.
func (t *Tap) state() *framering.TapState { return &t.ring.Taps[t.ID] }

// FrameAt takes a frame of a time, in nanoseconds of the monotonic clock; out reports whether the node sent it. One
// thread at a time may call it. It neither blocks nor allocates.
func (t *Tap) FrameAt(monotonicNanoseconds int64, out bool, data []byte) {
	t.ring.Pass(t.Tap, out, monotonicNanoseconds, data)
}

// Miss counts frames of the port that nobody could pass here, as those without room in the ring.
func (t *Tap) Miss(frames uint64) { t.state().Full.Add(frames) }

// countDropped counts the frames without room in the ring as dropped. A filter might not have kept them.
func (t *Tap) countDropped() {
	full := t.state().Full.Load()
	for i := range t.sinks {
		t.sinks[i].stream.countRingFull(t.name, full)
	}
}

// forget removes what the records of captures have of a tap whose file is removed.
func (t *Tap) forget() {
	for i := range t.sinks {
		t.sinks[i].stream.forgetTap(t.name)
	}
}

// flush writes what captures have taken of the tap, up to a position.
func (t *Tap) flush(position uint64) {
	for i := range t.sinks {
		s := t.sinks[i].stream
		s.mu.Lock()
		s.flush()
		s.mu.Unlock()
	}
	t.state().Written.Store(position)
}

func (t *Tap) feeds(s *stream) bool {
	return t != nil && slices.ContainsFunc(t.sinks, func(x sink) bool { return x.stream == s })
}
