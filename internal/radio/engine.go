// Package radio carries the frames of emulated radio networks between their nodes. Its Engine is a state machine: a
// driver gives it frames and the time, and it tells its Output what nodes receive. So nothing in this package knows
// a clock, a descriptor or a thread, and a test sets the time.
package radio

import (
	"math"
)

// Never is the time of what does not happen.
const Never = math.MaxInt64

// FarFuture in nanoseconds bounds times, so that very low rates cannot overflow them.
const FarFuture = 1 << 60

// TimeOnAir of bytes at a rate in bit/s, nanoseconds; 0 without a rate.
func TimeOnAir(bytes int, bitsPerSecond float64) int64 {
	if bitsPerSecond <= 0 {
		return 0
	}
	return int64(math.Round(min(8e9*float64(bytes)/bitsPerSecond, FarFuture)))
}

// trimInterval in nanoseconds, after which unused buffers are freed.
const trimInterval = 5e9

// Engine carries the frames of networks, which share nothing, whatever addresses their members have. Only one
// goroutine at a time may call an engine, its networks and their ports. Times are nanoseconds of a monotonic clock.
type Engine struct {
	output Output
	heap   heap
	pool   pool
	trimAt int64
	frame  Frame // the frame being received
}

// Output is how an engine acts on the world.
type Output interface {
	// Write hands a frame to a port's node, and returns Written or why the node did not get it. The data is only
	// valid until it returns.
	Write(p *Port, data []byte) Reason
	// Late is called for a frame that was released late by IsLate.
	Late(due, now int64)
}

// NewEngine makes an engine without networks.
func NewEngine(output Output) *Engine { return &Engine{output: output} }

// Receive takes a frame that a port's node has handed to its radio. All that is due by then comes before it, at the time
// now. A driver whose clock goes on meanwhile ticks first with the time of each release, so that lateness counts in
// full. The data is only valid during the call.
func (e *Engine) Receive(now int64, p *Port, data []byte) {
	for e.Next() <= now { // alarms may be among them
		e.Tick(now)
	}
	e.frame = Frame{Source: p, Data: data, Sent: now}
	p.network.accept(now, &e.frame)
}

// Next is when Tick has something to do, or Never.
func (e *Engine) Next() int64 {
	if len(e.heap.items) == 0 {
		return Never
	}
	return e.heap.items[0].due
}

// Tick releases the frame, or runs the alarm, that is due first, if any is. It returns Next.
func (e *Engine) Tick(now int64) (next int64) {
	if e.Next() <= now {
		if f := e.heap.pop(); f.Source != nil {
			f.Source.network.continueHeld(now, f)
		} else if alarm, ok := f.Context.(func(int64)); ok {
			alarm(now)
		}
	}
	if now >= e.trimAt {
		e.pool.trim()
		e.trimAt = now + trimInterval
	}
	return e.Next()
}
