// Package mgen reads and writes scripts of the Multi-Generator of the U.S. Naval Research Laboratory, and computes when their
// flows send.
//
// Source: MGEN User's and Reference Guide Version 5.0, sections 5 and 6 (Debian package mgen-doc). Where Debian's mgen
// 5.02 accepts less than the guide, this package refuses the rest with an error.
package mgen

import (
	"fmt"
	"slices"
	"time"
)

// Protocol is that of a flow's messages.
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

// Limits of a script, to bound its memory and the time of its checks.
const (
	MaxEvents      = 4096
	maxLinePorts   = 256
	maxScriptPorts = 2048
	maxSeconds     = 1e6
	maxRate        = 1e6
	// maxNesting is the deepest nesting of bursts.
	maxNesting = 8
)

// Word is the name of a command or event.
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

// Script is a parsed script.
type Script struct {
	Globals []Global
	// Events in order of time, those of the same time in order of lines.
	Events []Event
}

// Global is a global command (guide, 6): a default for all flows, or the start time.
type Global struct {
	// Line of the script where it begins, from 1.
	Line int
	// Name is START, OFFSET, TOS, LABEL, TTL, TXBUFFER, RXBUFFER, INTERFACE, QUEUE or BROADCAST.
	Name string
	// Value as in the script.
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

// Options of a flow (guide, 5.2); nil or empty if not given.
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

// PatternKind is the kind of intervals between a pattern's messages.
type PatternKind string

// The patterns (guide, 5.2.5).
const (
	Periodic PatternKind = "PERIODIC"
	Poisson  PatternKind = "POISSON"
	Jitter   PatternKind = "JITTER"
	Bursts   PatternKind = "BURST"
	Clone    PatternKind = "CLONE"
)

// Pattern has the times and sizes of messages.
type Pattern struct {
	Kind PatternKind
	// Rate of PERIODIC, POISSON and JITTER, messages per second. 0 is none; below 0 is as fast as possible.
	Rate float64
	// Bytes of a message.
	Bytes int
	// Fraction of JITTER by which an interval is at most shorter or longer.
	Fraction float64
	// Burst of BURST.
	Burst *Burst
	// File and Repeat of CLONE.
	File   string
	Repeat int
}

// Burst has the times, durations and content of bursts.
type Burst struct {
	// Random: intervals are exponentially distributed, not equal.
	Random bool
	// IntervalSeconds from the start of a burst to the start of the next, on average.
	IntervalSeconds float64
	Pattern         Pattern
	// Exponential: durations are exponentially distributed, not equal.
	Exponential     bool
	DurationSeconds float64
}

// Error is an error in a script.
type Error struct {
	// Line from 1.
	Line   int
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Flows returns the ids of all flows, in order.
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

// Sizes returns the smallest and the largest size of messages in bytes; 0 without flows.
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
