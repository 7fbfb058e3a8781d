package mgen

import (
	"fmt"
	"slices"
	"time"
)

// Limits of Debian's mgen for an app, see WireFlow.
const (
	MaxFlow  = 1<<16 - 1
	maxLives = 1 << 8
)

// WireFlow is the flow number in a flow's messages. mgen 5.02 does not turn a flow on again, unlike the guide
// says, so each life of a flow has a number of its own: the flow's in the low 16 bits, the life's (from 0)
// above. A life is one ON event in one process of mgen; starts is the number of earlier processes.
func WireFlow(flow uint32, life, starts int) uint32 {
	return flow | uint32(starts%maxLives*maxLives+life)<<16
}

// FlowOf returns the flow of a number in messages, and its life.
func FlowOf(wire uint32) (flow, life uint32) { return wire & MaxFlow, wire >> 16 }

// MessageID returns the id of a flow's message: NODE/FLOW_SEQUENCE, or NODE/FLOW.LIFE_SEQUENCE for lives after the first.
func MessageID(node string, wire, sequence uint32) string {
	flow, life := FlowOf(wire)
	if life == 0 {
		return fmt.Sprintf("%s/%d_%d", node, flow, sequence)
	}
	return fmt.Sprintf("%s/%d.%d_%d", node, flow, life, sequence)
}

// CheckRun returns an error for a flow that mgen cannot run for an app.
func (s *Script) CheckRun() error {
	lives := map[uint32]int{}
	for _, e := range s.Events {
		if e.Type != On {
			continue
		}
		lives[e.Flow]++
		switch {
		case e.Flow > MaxFlow:
			return &Error{e.Line, fmt.Sprintf("ON: flow %d: want a number up to %d", e.Flow, MaxFlow)}
		case lives[e.Flow] > maxLives:
			return &Error{e.Line, fmt.Sprintf("ON: flow %d is turned on more than %d times", e.Flow, maxLives)}
		case e.Options.Protocol == "":
			return &Error{e.Line, fmt.Sprintf("ON: flow %d has no protocol: want UDP or TCP", e.Flow)}
		case e.Options.Protocol == Sink:
			return &Error{e.Line, fmt.Sprintf("ON: flow %d: SINK is not taken, as it writes to a file: want UDP or TCP", e.Flow)}
		case e.Options.Destination == nil:
			return &Error{e.Line, fmt.Sprintf("ON: flow %d has no destination: want DST, such as DST veh-1/5000", e.Flow)}
		case e.Options.Pattern.core().Kind == Clone:
			return &Error{e.Line, fmt.Sprintf("ON: flow %d: CLONE is not taken: there is no capture file to follow", e.Flow)}
		}
	}
	return nil
}

// Run returns the script for an mgen that starts at an offset into this script: times count
// from the offset, flows have the numbers of WireFlow, and flows that are on at the offset start at once. In an mgen that goes on for
// one that failed (again), flows with a COUNT do not start a second time.
func (s *Script) Run(offset time.Duration, starts int, again bool) *Script {
	r := runner{offset: offset, again: again, pending: map[uint32]*Event{}, wire: map[uint32]uint32{}}
	lives := map[uint32]int{}
	for _, e := range s.Events {
		if e.Type == On {
			r.wire[e.Flow] = WireFlow(e.Flow, lives[e.Flow], starts)
			lives[e.Flow]++
		}
		r.event(e)
	}
	r.endCounted()
	for _, flow := range s.Flows() {
		if e := r.pending[flow]; e != nil {
			r.before = append(r.before, *e)
		}
	}
	return &Script{Globals: s.Globals, Events: append(r.before, r.after...)}
}

// Until returns the script without what flows do at a time or later. Flows that are on are turned off then. Reception goes on.
func (s *Script) Until(end time.Duration) *Script {
	cut := &Script{Globals: s.Globals}
	on := map[uint32]bool{}
	var after []Event
	for _, e := range s.Events {
		switch {
		case e.At < end:
			cut.Events = append(cut.Events, e)
			on[e.Flow] = e.Flow != 0 && e.Type != Off
		case e.Flow == 0:
			after = append(after, e)
		}
	}
	for _, flow := range s.Flows() {
		if on[flow] {
			cut.Events = append(cut.Events, Event{At: end, Type: Off, Flow: flow})
		}
	}
	cut.Events = append(cut.Events, after...)
	return cut
}

type runner struct {
	offset time.Duration
	again  bool
	// pending are flows that are on at the offset, by number in the script, with all changes by MOD.
	pending map[uint32]*Event
	// wire has the wire numbers of flows that are on.
	wire map[uint32]uint32
	// Before and after the offset.
	before, after []Event
}

func (r *runner) event(e Event) {
	flow, before := e.Flow, e.At < r.offset
	if !before {
		r.endCounted()
	}
	wire, isOn := r.wire[flow]
	if flow != 0 && !isOn {
		return // of a flow that does not start again
	}
	e.Flow, e.At = wire, max(0, e.At-r.offset)
	switch {
	case e.Type == On && before:
		r.pending[flow] = &e
	case e.Type == Mod && before:
		r.pending[flow].Options.change(e.Options)
	case e.Type == Off && before:
		delete(r.pending, flow)
	case before:
		r.before = append(r.before, e)
	default:
		r.after = append(r.after, e)
	}
}

// endCounted ends the flows that have a COUNT at the offset: after a failure they do not start again.
func (r *runner) endCounted() {
	for flow, on := range r.pending {
		if count := on.Options.Count; r.again && count != nil && *count >= 0 {
			delete(r.pending, flow)
			delete(r.wire, flow)
		}
	}
}

// change applies MOD to a flow's options.
func (o *Options) change(by Options) {
	replace(&o.Destination, by.Destination)
	replace(&o.Pattern, by.Pattern)
	replace(&o.Count, by.Count)
	replace(&o.Sequence, by.Sequence)
	replace(&o.TOS, by.TOS)
	replace(&o.TTL, by.TTL)
	replace(&o.TXBuffer, by.TXBuffer)
	replace(&o.Label, by.Label)
	replace(&o.Queue, by.Queue)
	replace(&o.Broadcast, by.Broadcast)
	o.Connect = o.Connect || by.Connect
	if by.Data != nil {
		o.Data = by.Data
	}
	if by.Interface != "" {
		o.Interface = by.Interface
	}
}

func replace[T any](value **T, by *T) {
	if by != nil {
		*value = by
	}
}

// Resolve replaces every host of the script by a function's result. Errors name the line.
func (s *Script) Resolve(host func(string) (string, error)) (*Script, error) {
	resolved := &Script{Globals: s.Globals, Events: slices.Clone(s.Events)}
	for i := range resolved.Events {
		e := &resolved.Events[i]
		if d := e.Options.Destination; d != nil {
			address, err := host(d.Host)
			if err != nil {
				return nil, &Error{e.Line, fmt.Sprintf("%s: DST %s/%d: %v", e.Type, d.Host, d.Port, err)}
			}
			e.Options.Destination = &Destination{address, d.Port}
		}
		if e.Source != "" {
			address, err := host(e.Source)
			if err != nil {
				return nil, &Error{e.Line, fmt.Sprintf("%s: SRC %s: %v", e.Type, e.Source, err)}
			}
			e.Source = address
		}
	}
	return resolved, nil
}
