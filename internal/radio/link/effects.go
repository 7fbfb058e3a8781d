package link

import (
	"time"

	"vignette.dev/vignette/internal/radio"
)

// Effects are what the links of a network do from moment to moment, each pair of nodes for itself, one direction each.
type Effects interface {
	// Effect on what one port sends to another at a time, nanoseconds of CLOCK_MONOTONIC; not known where the network's own link holds.
	Effect(from, to *radio.Port, now int64) (e Effect, known bool)
}

// Effect of a link, as EMANE's comm effects have it.
type Effect struct {
	// Latency of every frame; Jitter spreads it evenly.
	Latency, Jitter time.Duration
	// Loss and Duplicate are probabilities from 0 to 1.
	Loss, Duplicate float64
	// Unicast and Broadcast frames are serialised at these rates in bit/s; 0 means that it takes no time.
	Unicast, Broadcast float64
}

// over gives the parameters of a link with the effect: the rest stays what the network's own link has.
func (e Effect) over(own Parameters, broadcast bool) Parameters {
	own.Delay, own.Jitter, own.Distribution = e.Latency, e.Jitter, Uniform
	own.Loss, own.GilbertElliott, own.Duplicate = e.Loss, nil, e.Duplicate
	own.RateBitsPerSecond = e.Unicast
	if broadcast {
		own.RateBitsPerSecond = e.Broadcast
	}
	return own
}

// transmitApart sends a frame to each of its receivers over a link of its own.
func (m *Model) transmitApart(n *radio.Network, now int64, f *radio.Frame, s *sender) {
	if !f.Destination.IsMulticast() {
		if to := n.Find(f.Destination); to != nil {
			m.offer(n, now, f, m.pair(now, f.Source, to, s, false), m.senders[to].self)
			return
		}
	}
	var last *radio.Port
	for _, to := range m.ports {
		if to == f.Source || !f.Destination.IsMulticast() {
			continue
		}
		if last != nil {
			m.offer(n, now, n.Copy(f), m.pair(now, f.Source, last, s, true), m.senders[last].self)
		}
		last = to
	}
	if last == nil { // nobody can receive it
		m.offer(n, now, f, s.egress, nil)
		return
	}
	m.offer(n, now, f, m.pair(now, f.Source, last, s, true), m.senders[last].self)
}

// pair is the queue from a sender to a receiver, as it holds now.
func (m *Model) pair(now int64, from, to *radio.Port, s *sender, broadcast bool) *Queue {
	p := m.config.Default
	if e, known := m.config.Effects.Effect(from, to, now); known {
		p = e.over(p, broadcast)
	}
	return s.queue(m.config.Seed, from.NEM, to.Name, p)
}
