// Package mgen reads and writes scripts of the Multi-Generator of the U.S. Naval Research Laboratory, and knows when their
// flows send.
//
// Source: MGEN User's and Reference Guide Version 5.0, sections 5 and 6 (Debian package mgen-doc). Where Debian's mgen
// 5.02 takes less than the guide says, so does this package, and names it.
package mgen

import (
	"fmt"
	"slices"
	"time"
)

// Protocol that carries a flow's messages.
type Protocol string

// The protocols of flows.
const (
	UDP  Protocol = "UDP"
	TCP  Protocol = "TCP"
	Sink Protocol = "SINK"
)

// Limits of a message's size in bytes. A UDP message is one datagram, which MGEN limits (guide, 5.2.5.1).
const (
	MinBytes    = 28
	MaxUDPBytes = 8192
	MaxTCPBytes = 1 << 30
)

// Limits of a script, so that none takes much memory.
const (
	MaxEvents  = 4096
	maxPorts   = 256
	maxSeconds = 1e6
	maxRate    = 1e6
	// maxNesting of bursts within bursts.
	maxNesting = 8
)

// Word names a command or event.
type Word string

// The scheduled events: transmission (guide, 5.1) and reception (5.3).
const (
	On     Word = "ON"
	Mod    Word = "MOD"
	Off    Word = "OFF"
	Listen Word = "LISTEN"
	Ignore Word = "IGNORE"
	Join   Word = "JOIN"
	Leave  Word = "LEAVE"
)

// Script is a whole script.
type Script struct {
	Globals []Global
	// Events in the order of their times; those of one time in the order of their lines.
	Events []Event
}

// Global is a global command (guide, 6): a default for all flows, or when the script begins.
type Global struct {
	// Line of the script that it begins in, from 1.
	Line int
	// Name is START, OFFSET, TOS, LABEL, TTL, TXBUFFER, RXBUFFER, INTERFACE, QUEUE or BROADCAST.
	Name string
	// Value as the script has it.
	Value string
}

// Event is one scheduled event.
type Event struct {
	Line int
	// At is its time after the script's beginning.
	At   time.Duration
	Type Word
	// Flow of ON, MOD and OFF.
	Flow uint32
	// Options of ON and MOD.
	Options Options
	// Protocol and Ports of LISTEN and IGNORE; Ports of JOIN and LEAVE too.
	Protocol Protocol
	Ports    []PortRange
	// Group of JOIN and LEAVE, Source of a source-specific one, and Interface; empty where they are not given.
	Group, Source, Interface string
}

// PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last uint16 }

// Destination of a flow.
type Destination struct {
	// Host is an IPv4 address or a name.
	Host string
	Port uint16
}

// Options of a flow (guide, 5.2); nil or empty is what is not given.
type Options struct {
	Protocol    Protocol
	Destination *Destination
	SourcePort  *uint16
	Pattern     *Pattern
	// Count of messages after which the flow ends; -1 is no end.
	Count    *int64
	Sequence *uint32
	Data     []byte
	TOS, TTL *uint8
	TXBuffer *uint32
	Label    *uint32
	Queue    *int64
	// Interface for multicast.
	Interface string
	Broadcast *bool
	Connect   bool
}

// PatternKind is how a pattern's messages follow each other.
type PatternKind string

// The patterns (guide, 5.2.5).
const (
	Periodic PatternKind = "PERIODIC"
	Poisson  PatternKind = "POISSON"
	Jitter   PatternKind = "JITTER"
	Bursts   PatternKind = "BURST"
	Clone    PatternKind = "CLONE"
)

// Pattern says when messages are sent and how large they are.
type Pattern struct {
	Kind PatternKind
	// Rate of PERIODIC, POISSON and JITTER, messages per second. 0 is none; below 0 is as fast as it goes.
	Rate float64
	// Bytes of a message.
	Bytes int
	// Fraction of JITTER by which an interval is shorter or longer at most.
	Fraction float64
	// Burst of BURST.
	Burst *Burst
	// File and Repeat of CLONE.
	File   string
	Repeat int
}

// Burst says when bursts come, how long they last, and what is sent in them.
type Burst struct {
	// Random tells that intervals are exponentially distributed, not all equal.
	Random bool
	// IntervalSeconds from the start of a burst to the start of the next, on average.
	IntervalSeconds float64
	Pattern         Pattern
	// Exponential tells that durations are exponentially distributed, not all equal.
	Exponential     bool
	DurationSeconds float64
}

// Error is what is wrong with a script.
type Error struct {
	// Line from 1.
	Line   int
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Flows are the ids of all flows, in order.
func (s *Script) Flows() []uint32 {
	var flows []uint32
	for _, e := range s.Events {
		if e.Type == On && !slices.Contains(flows, e.Flow) {
			flows = append(flows, e.Flow)
		}
	}
	slices.Sort(flows)
	return flows
}

// Sizes of all messages that flows may send, in bytes: the smallest and the largest; 0 without flows.
func (s *Script) Sizes() (least, most int) {
	for _, e := range s.Events {
		if p := e.Options.Pattern; p != nil {
			bytes := p.core().Bytes
			if least == 0 || bytes < least {
				least = bytes
			}
			most = max(most, bytes)
		}
	}
	return least, most
}

// core is the pattern within all bursts.
func (p *Pattern) core() *Pattern {
	for p.Kind == Bursts {
		p = &p.Burst.Pattern
	}
	return p
}
