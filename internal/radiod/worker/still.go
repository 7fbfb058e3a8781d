package worker

import (
	"bytes"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/runapi"
)

// leastStill in nanoseconds is the shortest time in which a processor, or the host, is said to have stood still: longer than timers and interrupts
// are late by, and short beside what a verdict calls late.
const leastStill = int64(3 * time.Millisecond)

// span of time by CLOCK_MONOTONIC, in nanoseconds.
type span struct{ from, to int64 }

func (s span) seconds() float64 { return time.Duration(s.to - s.from).Seconds() }

// stillWatch finds the times in which the host stood still: those in which every processor that this process may use did. While a hypervisor stops
// the whole machine nothing in it can be punctual, and steal time hardly tells, as it counts for a processor that has work. The zero value
// watches nothing. All methods are for one goroutine.
type stillWatch struct {
	processors []*stillProcessor
	ended      *atomic.Bool
	threads    sync.WaitGroup
	// refused: the kernel does not tell what it takes; stop has it asked again.
	refused bool
}

// start watches, unless it does so already or was refused. Its threads have what the engine's loops have.
func (w *stillWatch) start(loops radio.Options) (err error) {
	if len(w.processors) > 0 || w.refused {
		return nil
	}
	if w.processors, err = watchedProcessors(); err != nil {
		w.refused = true
		return err
	}
	// Threads that sleep in the kernel keep their Ps: what else this process does has as many as before.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + len(w.processors))
	w.ended = &atomic.Bool{}
	for _, p := range w.processors {
		w.threads.Go(func() { p.stay(loops, w.ended) })
	}
	return nil
}

// stop watching.
func (w *stillWatch) stop() {
	w.refused = false
	if len(w.processors) == 0 {
		return
	}
	w.ended.Store(true)
	w.threads.Wait()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - len(w.processors))
	for _, p := range w.processors {
		_ = p.close() // never fails
	}
	w.processors = nil
}

// processorStop is a time in which one processor stood still.
type processorStop struct {
	processor int
	span
}

// stops of the host, and of each processor, since the last call. One that not every processor has come back from is told by a later call.
func (w *stillWatch) stops() (host []span, each []processorStop) {
	known := int64(math.MaxInt64)
	var still [][]span
	for _, p := range w.processors {
		p.collect()
		known = min(known, p.known())
		still = append(still, p.still)
	}
	host = hostStops(still, known)
	for _, p := range w.processors {
		p.still = slices.DeleteFunc(p.still, func(s span) bool {
			told := s.to <= known
			if told {
				each = append(each, processorStop{p.number, s})
			}
			return told
		})
	}
	return host, each
}

// hostStops are the times in which all processors stood still, each for leastStill or longer, that ended by the time known: up to then every
// processor has told its own. Those are in order, and do not overlap.
func hostStops(still [][]span, known int64) []span {
	if len(still) == 0 {
		return nil
	}
	common := still[0]
	for _, of := range still[1:] {
		common = overlaps(common, of)
	}
	var stops []span
	for _, s := range common {
		if s.to <= known && s.to-s.from >= leastStill {
			stops = append(stops, s)
		}
	}
	return stops
}

// overlaps of spans with others; both are in order, and so is what it gives.
func overlaps(some, others []span) (both []span) {
	for len(some) > 0 && len(others) > 0 {
		a, b := some[0], others[0]
		if from, to := max(a.from, b.from), min(a.to, b.to); from < to {
			both = append(both, span{from, to})
		}
		if a.to < b.to {
			some = some[1:]
		} else {
			others = others[1:]
		}
	}
	return both
}

// sampleStill writes a line for each time in which the host, or a processor, stood still into every active run's log. Without one, nobody watches.
func (s *Sampler) sampleStill(now int64) error {
	if len(s.active()) == 0 {
		s.still.stop()
		return nil
	}
	if err := s.still.start(s.Manager.Engine.Options()); err != nil {
		s.Log.Info("whether the host stands still now and then is not known", "error", err)
	}
	toRealtime := now - clock.Monotonic()
	host, each := s.still.stops()
	if len(each) == 0 {
		return nil
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines) // which such lines never have fail
	for _, stop := range host {
		_ = encoder.Encode(runapi.RadioStill{TimeNanoseconds: toRealtime + stop.to, StillSeconds: stop.seconds()})
	}
	for _, stop := range each {
		_ = encoder.Encode(runapi.RadioProcessorStill{TimeNanoseconds: toRealtime + stop.to, Processor: stop.processor, StillSeconds: stop.seconds()})
	}
	return s.appendToActive(now, lines.Bytes())
}
