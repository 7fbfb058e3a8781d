package dataplane

import (
	"errors"
	"fmt"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/rfpipe"
	"vignette.dev/vignette/internal/radio/tdma"
)

// waveform makes and changes a network's model, which is of the one that is set.
type waveform struct {
	link        *LinkModel
	pipe        *RFPipeModel
	slots       *TDMAModel
	curve       *phy.Curve
	environment *environment
}

// waveformOf returns a network's waveform, with the environment of its radios.
func waveformOf(n *Network, e *environment) (w *waveform, err error) {
	w = &waveform{link: n.Link, pipe: n.RFPipe, slots: n.TDMA, environment: e}
	switch {
	case w.pipe != nil:
		w.curve, err = phy.CurveOf(w.pipe.PCR)
	case w.slots != nil:
		w.curve, err = phy.CurveOf(w.slots.PCR)
	case w.link == nil:
		err = errors.New("no model: want link, RF pipe or TDMA")
	}
	return w, err
}

// newModel makes a model in a state.
func (w *waveform) newModel(s *State) radio.Model {
	switch {
	case w.pipe != nil:
		return rfpipe.New(w.pipeConfig(s))
	case w.slots != nil:
		return tdma.New(w.slotConfig(s))
	}
	return link.New(w.linkConfig(s))
}

// configure changes the model to a state without disturbing frames in flight. It is for the thread of the network's loop.
func (w *waveform) configure(now int64, m radio.Model, s *State) {
	switch m := m.(type) {
	case *link.Model:
		m.Configure(w.linkConfig(s))
	case *rfpipe.Model:
		m.Configure(w.pipeConfig(s))
	case *tdma.Model:
		m.Configure(now, w.slotConfig(s))
	}
}

func (w *waveform) linkConfig(s *State) link.Config {
	c := link.Config{Seed: w.link.Seed, Default: s.Links.Default, Links: s.Links.Links}
	if w.link.Effects {
		c.Effects = w.environment
	}
	return c
}

func (w *waveform) pipeConfig(s *State) rfpipe.Config {
	return rfpipe.Config{Seed: w.pipe.Seed, Radio: s.Radios.radio, RateBitsPerSecond: s.Radios.rate, Environment: w.environment, Delay: s.Delay, Jitter: s.Jitter,
		QueueDepth: w.pipe.QueueDepth, Interference: w.pipe.Interference, HalfDuplex: w.pipe.HalfDuplex, DutyCycle: w.pipe.DutyCycle, PCR: w.curve}
}

func (w *waveform) slotConfig(s *State) tdma.Config {
	return tdma.Config{Seed: w.slots.Seed, Radio: s.Radios.radio, Environment: w.environment, Interference: w.slots.Interference, PCR: w.curve,
		Schedule: s.Schedule, AdaptiveRates: w.slots.AdaptiveRates, Queue: w.slots.Queue, EpochOffset: w.environment.clock.offset}
}

func (r *Radios) radio(p *radio.Port) phy.Radio { return r.Of(p.NEM).Radio }

func (r *Radios) rate(p *radio.Port) float64 { return r.Of(p.NEM).RateBitsPerSecond }

// countSlots adds what only a TDMA model counts of a port. With reset, worst values start again.
func (c *PortCounters) countSlots(m radio.Model, p *radio.Port, reset bool) {
	if slots, ok := m.(*tdma.Model); ok {
		statistics := slots.StatisticsOf(p, reset)
		c.Slots, c.Classes = statistics.Slots, statistics.QueueDepth[:]
	}
}

// mediumOf a model; nil without a physical layer.
func mediumOf(m radio.Model) *phy.Medium {
	if physical, ok := m.(interface{ Medium() *phy.Medium }); ok {
		return physical.Medium()
	}
	return nil
}

// check reports what a state lacks for a network's model.
func (n *Network) check(s *State) error {
	switch {
	case n.Link != nil && s.Links == nil:
		return fmt.Errorf("network %s: no links", n.UID)
	case (n.RFPipe != nil || n.TDMA != nil) && s.Radios == nil:
		return fmt.Errorf("network %s: no radios", n.UID)
	case n.TDMA != nil && s.Schedule == nil:
		return fmt.Errorf("network %s: no schedule", n.UID)
	}
	return nil
}

// FollowedBy returns the state that a change leads to.
func (s State) FollowedBy(next *State) State {
	after := *next
	if after.Links == nil {
		after.Links = s.Links
	}
	if after.Radios == nil {
		after.Radios = s.Radios
	}
	if after.Schedule == nil {
		after.Schedule = s.Schedule
	}
	return after
}
