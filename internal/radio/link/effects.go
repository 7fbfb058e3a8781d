package link

import (
	"time"

	"vignette.dev/vignette/internal/radio"
)

// Effects give the links' effects at a time, separately for each pair of nodes and direction.
type Effects interface {
	// Effect on frames from one port to another at a time, nanoseconds of the engine's clock. If it is not
	// known, the network's own link holds.
	Effect(from, to *radio.Port, now int64) (e Effect, known bool)
}

// Effect of a link, with the parameters of EMANE's comm effect model.
type Effect struct {
	// Latency of every frame; Jitter spreads it uniformly.
	Latency, Jitter time.Duration
	// Loss and Duplicate are probabilities from 0 to 1.
	Loss, Duplicate float64
	// Unicast and Broadcast are the rates in bit/s at which such frames are serialised; 0 means that it takes
	// no time.
	Unicast, Broadcast float64
}

// applyTo returns the network's own link with the effect; the effect does not change the other parameters.
func (e Effect) applyTo(own Parameters, broadcast bool) Parameters {
	own.Delay, own.Jitter, own.Distribution = e.Latency, e.Jitter, Uniform
	own.Loss, own.GilbertElliott, own.Duplicate = e.Loss, nil, e.Duplicate
	own.RateBitsPerSecond = e.Unicast
	if broadcast {
		own.RateBitsPerSecond = e.Broadcast
	}
	return own
}

// transmitPerReceiver sends a frame to each of its receivers over a separate link.
func (m *Model) transmitPerReceiver(n *radio.Network, now int64, f *radio.Frame, s *sender) {
	if !f.Destination.IsMulticast() {
		if to := n.Find(f.Destination); to != nil {
			m.offer(n, now, f, m.pairQueue(now, f.Source, to, s, false), m.senders[to.Slot].self)
			return
		}
	}
	var last *radio.Port
	for _, to := range m.ports {
		if to == f.Source || !f.Destination.IsMulticast() {
			continue
		}
		if last != nil {
			m.offer(n, now, n.Copy(f), m.pairQueue(now, f.Source, last, s, true), m.senders[last.Slot].self)
		}
		last = to
	}
	if last == nil { // nobody can receive it
		m.offer(n, now, f, s.egress, nil)
		return
	}
	m.offer(n, now, f, m.pairQueue(now, f.Source, last, s, true), m.senders[last.Slot].self)
}

// pairQueue returns the queue from a sender to a receiver, with the effect that holds now.
func (m *Model) pairQueue(now int64, from, to *radio.Port, s *sender, broadcast bool) *Queue {
	p := m.config.Default
	if e, known := m.config.Effects.Effect(from, to, now); known {
		p = e.applyTo(p, broadcast)
	}
	return s.queue(m.config.Seed, from.NEM, to.Name, p)
}
