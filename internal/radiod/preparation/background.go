package preparation

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
)

// Background prepares a network's environment while the network runs.
type Background struct {
	preparer *preparer
	steps    *StepCounters
	stop     context.CancelFunc
	first    *moment

	handing sync.Mutex // held while set is called; protects stopped
	stopped bool

	mu sync.Mutex // protects the rest
	t0 int64      // by CLOCK_MONOTONIC
	// moments from the one that holds now.
	moments []*moment
}

// New prepares the current moment. It counts steps in counters.
func New(s *Inputs, counters *StepCounters) (*Background, error) {
	if len(s.members) > maxMembers {
		return nil, fmt.Errorf("members: %d: networks with a physical layer have up to %d", len(s.members), maxMembers)
	}
	if err := s.checkHops(); err != nil {
		return nil, err
	}
	b := &Background{preparer: newPreparer(s), steps: counters, stop: func() {}, t0: math.MaxInt64 / 2}
	var now int64 = math.MinInt64 / 2
	if s.t0 != 0 {
		b.t0 = s.t0 - clock.EpochOffset()
		now = clock.Monotonic() - b.t0
	}
	var err error
	b.first, err = b.preparer.moment(now)
	b.moments = []*moment{b.first}
	return b, err
}

// TakeOver counts as late what fell due after the last step of an earlier worker, because it holds from now on. It comes
// before Begin.
func (b *Background) TakeOver(last int64) error {
	p := newPreparer(b.preparer.Inputs)
	if err := p.seek(last); err != nil {
		return err
	}
	if due, more := p.nextChange(last); more && due <= b.first.AtNanoseconds {
		b.steps.Add(time.Duration(clock.Monotonic() - b.t0 - due))
	}
	return nil
}

// Begin hands the network's environment to set, and later moments ahead of their times, in the background until Stop.
// failed is called when a moment cannot be prepared, and with nil when it can again. It must return at once. A second call
// does nothing.
func (b *Background) Begin(network string, set func(*dataplane.Environment) error, failed func(error)) error {
	if b.first == nil {
		return nil
	}
	e := &dataplane.Environment{Network: network, Begins: true, T0: b.t0, Steps: []dataplane.Step{b.first.Step}}
	for i := range b.preparer.members {
		e.NEMs = append(e.NEMs, int(b.preparer.members[i].NEM))
	}
	if err := set(e); err != nil {
		return err
	}
	if _, more := b.preparer.nextChange(b.first.AtNanoseconds); more && b.preparer.t0 != 0 {
		ctx, cancel := context.WithCancel(context.Background())
		b.stop = cancel
		go b.run(ctx, network, b.first, set, failed)
	}
	b.first = nil
	return nil
}

// Stop ends the preparation. Prepared values continue to hold. Nothing is handed over after it returns, because the
// network may then have the environment of other inputs.
func (b *Background) Stop() {
	b.stop()
	b.handing.Lock()
	defer b.handing.Unlock()
	b.stopped = true
}

// hand gives an environment to set, unless the preparation was stopped.
func (b *Background) hand(set func(*dataplane.Environment) error, e *dataplane.Environment) error {
	b.handing.Lock()
	defer b.handing.Unlock()
	if b.stopped {
		return context.Canceled
	}
	return set(e)
}

// IsOf reports whether the environment has these inputs.
func (b *Background) IsOf(s *Inputs) bool { return b.preparer.equal(s) }

// run prepares moments ahead of their time, until nothing changes any more.
func (b *Background) run(ctx context.Context, network string, last *moment, set func(*dataplane.Environment) error, failed func(error)) {
	var trouble error
	var sent int64 // T0 as last handed over
	var due int64  // when the next moment should hold
	for ctx.Err() == nil {
		now, coming, t0 := b.pass()
		if moved := t0 - sent; max(moved, -moved) > clockTolerance && b.hand(set, &dataplane.Environment{Network: network, T0: t0}) == nil {
			sent = t0
		}
		at, more := b.preparer.nextChange(last.AtNanoseconds)
		if trouble != nil {
			at = due // that moment failed, and is tried again
		}
		due = at
		switch {
		case trouble == nil && !more:
			return
		case trouble == nil && (coming >= b.preparer.maxPrepared() || at > now+int64(lookAhead)):
			clock.Pause(ctx, min(max(time.Duration(at-now)-lookAhead, 50*time.Millisecond), time.Second))
			continue
		case at < now-int64(lookAhead):
			at = now // the host stalled
		}
		next, err := b.preparer.moment(at)
		if err == nil {
			err = b.add(network, t0, due, set, last, next)
		}
		if ctx.Err() == nil && (err != nil || trouble != nil) {
			failed(err)
		}
		if trouble = err; err != nil {
			clock.Pause(ctx, time.Second)
			continue
		}
		last = next
	}
}

// clockTolerance in nanoseconds by which T0 may differ before a step corrects it.
const clockTolerance = 50e3

// pass forgets past moments. It returns the time after T0, the number of moments that are to come, and T0 by
// CLOCK_MONOTONIC.
func (b *Background) pass() (now int64, coming int, t0 int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.t0 = b.preparer.t0 - clock.EpochOffset() // CLOCK_REALTIME may have been set
	now = clock.Monotonic() - b.t0
	b.momentAt(now)
	return now, len(b.moments) - 1, b.t0
}

// momentAt returns the moment that holds at a time after T0, and forgets those before; the lock is held.
func (b *Background) momentAt(now int64) *moment {
	past := 0
	for past+1 < len(b.moments) && b.moments[past+1].AtNanoseconds <= now {
		past++
	}
	b.moments = slices.Delete(b.moments, 0, past)
	return b.moments[0]
}

// add hands a moment to set, and keeps it. It should have held at due, which is before its own time after a stall.
func (b *Background) add(network string, t0, due int64, set func(*dataplane.Environment) error, last, next *moment) error {
	step := next.Step
	if step.Version == last.Version {
		step.Pathloss = nil // is known
	}
	if err := b.hand(set, &dataplane.Environment{Network: network, T0: t0, Steps: []dataplane.Step{step}}); err != nil {
		return err
	}
	b.mu.Lock()
	b.moments = append(b.moments, next)
	b.mu.Unlock()
	b.steps.Add(time.Duration(clock.Monotonic() - t0 - due))
	return nil
}

// Now returns the moment that holds at a time of CLOCK_MONOTONIC.
func (b *Background) Now(monotonic int64) Moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Moment{b.preparer.Inputs, b.momentAt(monotonic - b.t0)}
}

// Moment is a network's environment at a time.
type Moment struct {
	inputs *Inputs
	moment *moment
}

// Pathloss from one member's antenna to another's in dB, by NEM ids, without the gains of antenna profiles.
func (m Moment) Pathloss(from, to int) (dB float64, known bool) {
	i, j := m.inputs.index(from), m.inputs.index(to)
	if i < 0 || j < 0 || m.moment.withoutAntennas == nil {
		return 0, false
	}
	loss := m.moment.withoutAntennas[i*len(m.inputs.members)+j]
	return float64(loss), loss == loss //nolint:staticcheck // unknown is NaN, which differs from itself
}

// Positions calls give with the position of each node that has one.
func (m Moment) Positions(give func(node string, p geo.Position)) {
	for i := range m.inputs.members {
		if m.moment.placed[i] {
			give(m.inputs.members[i].Node, m.moment.positions[i])
		}
	}
}

// StepCounters count the steps of a network's environment, and their lateness.
type StepCounters struct {
	mu   sync.Mutex
	sums StepSums
}

// StepSums are the steps of an environment so far.
type StepSums struct {
	Steps, Late uint64
	// Worst lateness since the last snapshot that reset it.
	Worst time.Duration
}

// Add counts a step that came so much after its time.
func (c *StepCounters) Add(late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sums.Steps++
	c.sums.Worst = max(c.sums.Worst, late)
	if late > radio.LateThreshold {
		c.sums.Late++
	}
}

// Snapshot returns the sums so far. With reset, the worst lateness starts again at 0.
func (c *StepCounters) Snapshot(reset bool) StepSums {
	c.mu.Lock()
	defer c.mu.Unlock()
	sums := c.sums
	if reset {
		c.sums.Worst = 0
	}
	return sums
}
