package mgen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// maxScheduledRate is the most messages per second of a flow.
const maxScheduledRate = 100_000

// Message is the time and size of a message of a flow.
type Message struct {
	// At is its time after the script's beginning.
	At    time.Duration
	Flow  uint32
	Bytes int
}

// Schedule has the messages of all flows of a script in order of time. Equal scripts and seeds have
// equal schedules.
//
// A flow's first message is due at its ON event. MOD does not move the next message: it has the new
// size, and the new pattern's intervals follow it, as measured with Debian's mgen. COUNT counts from its event. Times of PERIODIC are
// exact, without accumulated rounding. Bursts begin every interval, as in the guide, or at the end of the previous burst
// if that is later.
type Schedule struct {
	script *Script
	seed   int64
	flows  []*runningFlow
	// last is the last returned message, and number its number.
	last   Message
	number int64
}

// NewSchedule returns a script's schedule. It fails if a flow's times cannot be computed beforehand.
func NewSchedule(script *Script, seed int64) (*Schedule, error) {
	for _, e := range script.Events {
		if p := e.Options.Pattern; p != nil {
			if err := p.checkScheduled(); err != nil {
				return nil, &Error{e.Line, fmt.Sprintf("%s: %v", e.Type, err)}
			}
		}
	}
	s := &Schedule{script: script, seed: seed}
	s.rewind()
	return s, nil
}

func (p *Pattern) checkScheduled() error {
	core := p.core()
	switch {
	case core.Kind == Clone:
		return fmt.Errorf("CLONE is not taken: there is no capture file to follow; want PERIODIC, POISSON, JITTER or BURST")
	case core.Rate <= 0 || core.Rate > maxScheduledRate:
		return fmt.Errorf("rate %v: want messages per second, above 0 and at most %d", core.Rate, maxScheduledRate)
	}
	return nil
}

// Message returns a message by number, from 1; false if there are fewer. The message after the last returned one costs one
// step; an earlier one costs as many steps as its number.
func (s *Schedule) Message(number int64) (Message, bool) {
	if number < 1 {
		return Message{}, false
	}
	if number < s.number {
		s.rewind()
	}
	for s.number < number {
		if !s.step() {
			return Message{}, false
		}
	}
	return s.last, true
}

func (s *Schedule) rewind() {
	s.flows, s.number = nil, 0
	running := map[uint32]*runningFlow{}
	for i, e := range s.script.Events {
		switch e.Type {
		case On:
			f := &runningFlow{id: e.Flow, end: math.MaxInt64, due: e.At, left: math.MaxInt64,
				random: rand.New(rand.NewPCG(uint64(s.seed), uint64(e.Flow)<<32|uint64(i)))}
			f.apply(e.Options)
			running[e.Flow] = f
			s.flows = append(s.flows, f)
		case Mod:
			running[e.Flow].changes = append(running[e.Flow].changes, e)
		case Off:
			running[e.Flow].end = e.At
		default: // reception sends nothing
		}
	}
}

func (s *Schedule) step() bool {
	var first *runningFlow
	for _, f := range s.flows {
		if f.settle(); !f.over() && (first == nil || f.due < first.due) {
			first = f
		}
	}
	if first == nil {
		return false
	}
	s.last = Message{At: first.due, Flow: first.id, Bytes: first.pattern.core().Bytes}
	s.number++
	first.advance()
	return true
}

// runningFlow is one life of a flow: from an ON event to its OFF.
type runningFlow struct {
	id      uint32
	changes []Event
	end     time.Duration
	// due is when the next message is sent; left is the number of remaining messages.
	due     time.Duration
	left    int64
	pattern *Pattern
	gaps    gaps
	random  *rand.Rand
}

func (f *runningFlow) over() bool { return f.left <= 0 || f.due >= f.end }

// settle applies the changes before the next message.
func (f *runningFlow) settle() {
	for len(f.changes) > 0 && f.changes[0].At <= f.due && !f.over() {
		f.apply(f.changes[0].Options)
		f.changes = f.changes[1:]
	}
}

func (f *runningFlow) apply(o Options) {
	if o.Count != nil {
		if f.left = *o.Count; f.left < 0 {
			f.left = math.MaxInt64
		}
	}
	if o.Pattern != nil {
		f.pattern, f.gaps = o.Pattern, nil
	}
}

func (f *runningFlow) advance() {
	if f.gaps == nil {
		f.gaps = newGaps(f.pattern, f.due.Seconds(), f.random)
	}
	f.left--
	next := f.gaps.next()
	if next >= maxSeconds*1e2 {
		f.left = 0
		return
	}
	f.due = time.Duration(math.Round(next * 1e9))
}

// gaps returns the times of a pattern's messages after the first one, in seconds.
type gaps interface{ next() float64 }

func newGaps(p *Pattern, origin float64, random *rand.Rand) gaps {
	switch p.Kind {
	case Poisson:
		return &spaced{at: origin, interval: func() float64 { return random.ExpFloat64() / p.Rate }}
	case Jitter:
		return &spaced{at: origin, interval: func() float64 { return (1 + p.Fraction*(2*random.Float64()-1)) / p.Rate }}
	case Bursts:
		b := &burstGaps{burst: p.Burst, random: random}
		b.begin(origin)
		return b
	}
	return &regular{origin: origin, rate: p.Rate}
}

type regular struct {
	origin, rate float64
	count        float64
}

func (r *regular) next() float64 {
	r.count++
	return r.origin + r.count/r.rate
}

type spaced struct {
	at       float64
	interval func() float64
}

func (s *spaced) next() float64 {
	s.at += s.interval()
	return s.at
}

type burstGaps struct {
	burst  *Burst
	random *rand.Rand
	inner  gaps
	// End of the present burst, and start of the next one.
	end, following float64
}

func (b *burstGaps) begin(at float64) {
	duration, interval := b.burst.DurationSeconds, b.burst.IntervalSeconds
	if b.burst.Exponential {
		duration *= b.random.ExpFloat64()
	}
	if b.burst.Random {
		interval *= b.random.ExpFloat64()
	}
	b.end = at + duration
	b.following = max(at+interval, b.end)
	b.inner = newGaps(&b.burst.Pattern, at, b.random)
}

// next returns a message of the present burst, or the first one of the next burst.
func (b *burstGaps) next() float64 {
	if at := b.inner.next(); at < b.end {
		return at
	}
	at := b.following
	b.begin(at)
	return at
}
