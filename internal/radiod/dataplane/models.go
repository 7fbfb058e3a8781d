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

// waveform makes and changes a network's model. All but newModel is for the thread of the network's loop.
type waveform interface {
	// newModel makes a model in a state.
	newModel(s *State) radio.Model
	// configure changes the model to a state without disturbing frames in flight.
	configure(now int64, m radio.Model, s *State)
	// count adds the model's statistics of a port. With reset, worst values start again.
	count(m radio.Model, p *radio.Port, c *PortCounters, reset bool)
	// medium of the model; nil without a physical layer.
	medium(m radio.Model) *phy.Medium
}

// waveformOf returns a network's waveform, with the environment of its radios.
func waveformOf(n *Network, e *environment) (waveform, error) {
	switch {
	case n.RFPipe != nil:
		curve, err := phy.CurveOf(n.RFPipe.PCR)
		return &pipes{n.RFPipe, curve, e}, err
	case n.TDMA != nil:
		curve, err := phy.CurveOf(n.TDMA.PCR)
		return &slots{n.TDMA, curve, e}, err
	case n.Link != nil:
		return &links{n.Link, e}, nil
	}
	return nil, errors.New("no model: want link, RF pipe or TDMA")
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

type links struct {
	*LinkModel
	environment *environment
}

func (w *links) config(s *State) link.Config {
	c := link.Config{Seed: w.Seed, Default: s.Links.Default, Links: s.Links.Links}
	if w.Effects {
		c.Effects = w.environment
	}
	return c
}

func (w *links) newModel(s *State) radio.Model { return link.New(w.config(s)) }

func (w *links) configure(_ int64, m radio.Model, s *State) { m.(*link.Model).Configure(w.config(s)) }

// count adds nothing: the engine has all counters of links.
func (w *links) count(radio.Model, *radio.Port, *PortCounters, bool) {}

func (w *links) medium(radio.Model) *phy.Medium { return nil }

type pipes struct {
	*RFPipeModel
	curve       *phy.Curve
	environment *environment
}

func (w *pipes) config(s *State) rfpipe.Config {
	return rfpipe.Config{Seed: w.Seed, Radio: s.Radios.radio, RateBitsPerSecond: s.Radios.rate, Environment: w.environment, Delay: s.Delay,
		Jitter: s.Jitter, QueueDepth: w.QueueDepth, Interference: w.Interference, HalfDuplex: w.HalfDuplex, DutyCycle: w.DutyCycle, PCR: w.curve}
}

func (r *Radios) radio(p *radio.Port) phy.Radio { return r.Of(p.NEM).Radio }

func (r *Radios) rate(p *radio.Port) float64 { return r.Of(p.NEM).RateBitsPerSecond }

func (w *pipes) newModel(s *State) radio.Model { return rfpipe.New(w.config(s)) }

func (w *pipes) configure(_ int64, m radio.Model, s *State) {
	m.(*rfpipe.Model).Configure(w.config(s))
}

// count adds nothing: the engine has all counters of nodes.
func (w *pipes) count(radio.Model, *radio.Port, *PortCounters, bool) {}

func (w *pipes) medium(m radio.Model) *phy.Medium { return m.(*rfpipe.Model).Medium() }

type slots struct {
	*TDMAModel
	curve       *phy.Curve
	environment *environment
}

func (w *slots) config(s *State) tdma.Config {
	return tdma.Config{Seed: w.Seed, Radio: s.Radios.radio, Environment: w.environment, Interference: w.Interference, PCR: w.curve,
		Schedule: s.Schedule, AdaptiveRates: w.AdaptiveRates, Queue: w.Queue, EpochOffset: w.environment.clock.offset}
}

func (w *slots) newModel(s *State) radio.Model { return tdma.New(w.config(s)) }

func (w *slots) configure(now int64, m radio.Model, s *State) {
	m.(*tdma.Model).Configure(now, w.config(s))
}

func (w *slots) count(m radio.Model, p *radio.Port, c *PortCounters, reset bool) {
	statistics, _ := m.(*tdma.Model).StatisticsOf(p, reset)
	c.Slots, c.Classes = statistics.Slots, statistics.QueueDepth[:]
}

func (w *slots) medium(m radio.Model) *phy.Medium { return m.(*tdma.Model).Medium() }
