// Package driver runs the radio's engine with Linux: TAP descriptors, timers, threads and their priority. One event loop
// on a locked thread serves complete networks, each loop with an engine of its own.
package driver

import (
	"errors"
	"slices"
	"sync"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
)

// DefaultNice is radiod's default for Options.Nice.
const DefaultNice = -10

// Options of a Driver.
type Options struct {
	// Loops is the number of event loops; 0 means 1. A network is served by one of them.
	Loops int
	// Nice is the process's scheduling priority, -20 to 19; 0 leaves it as it is. The loops have a priority
	// that is niceAdvantage better.
	Nice int
	// Realtime is the loops' priority 1 to 99 under SCHED_FIFO; 0 leaves them under the normal scheduler.
	Realtime int
}

// Driver owns the event loops.
type Driver struct {
	options Options
	loops   []*loop // never changed
	wait    sync.WaitGroup
}

// New starts the event loops.
func New(options Options) (*Driver, error) {
	d := &Driver{options: options}
	for range max(options.Loops, 1) {
		l, err := newLoop()
		if err != nil {
			for _, l := range d.loops {
				l.close()
			}
			return nil, err
		}
		d.loops = append(d.loops, l)
	}
	for _, l := range d.loops {
		d.wait.Go(func() { l.run(options) })
	}
	return d, nil
}

// Close ends the event loops. Descriptors of ports stay open: they are the callers'.
func (d *Driver) Close() error {
	for _, l := range d.loops {
		l.do(func() { l.ended = true })
	}
	d.wait.Wait()
	return nil
}

// AwaitLoops returns after every event loop has finished an iteration. It never returns if a loop is stuck.
func (d *Driver) AwaitLoops() {
	for _, l := range d.loops {
		l.do(func() {})
	}
}

// LateIntervals returns the times in which each loop handled frames late, and forgets them. Frames that nodes
// sent in these times were read late, and held frames were released late.
func (d *Driver) LateIntervals() (byLoop [][]radio.Interval) {
	byLoop = make([][]radio.Interval, len(d.loops))
	for i, l := range d.loops {
		l.do(func() { byLoop[i] = l.late.Take() })
	}
	return byLoop
}

// Network is a network that a loop serves. Its methods may be called on any goroutine.
type Network struct {
	driver *Driver
	loop   *loop
	radio  *radio.Network
	// The rest belongs to the loop's thread. unwatched are the ports whose frames wait for Resume.
	paused    bool
	unwatched []*Port
}

// NewNetwork adds an empty network to the loop with the fewest ports.
func (d *Driver) NewNetwork(options radio.NetworkOptions) (*Network, error) {
	n := &Network{driver: d, loop: slices.MinFunc(d.loops, func(a, b *loop) int { return int(a.load.Load() - b.load.Load()) })}
	var err error
	n.loop.do(func() { n.radio, err = n.loop.engine.NewNetwork(options) })
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Loop is the place of the network's loop in LateIntervals.
func (n *Network) Loop() int { return slices.Index(n.driver.loops, n.loop) }

// Do runs f on the thread of the network's loop, where the network and its model may be used, and returns when f has run.
func (n *Network) Do(f func(n *radio.Network, m radio.Model)) {
	n.loop.do(func() { f(n.radio, n.radio.Model()) })
}

// Configure is radio.Network.Configure, followed by change on the thread of the network's loop, where the model may be
// changed without disturbing frames in flight.
func (n *Network) Configure(mtu int, silent bool, change func(now int64, m radio.Model)) (err error) {
	n.Do(func(r *radio.Network, m radio.Model) {
		if err = r.Configure(mtu, silent); err == nil && change != nil {
			change(clock.Monotonic(), m)
		}
	})
	return err
}

// Schedule is radio.Network.Schedule. The alarm runs on the thread of the network's loop. Times are nanoseconds of
// CLOCK_MONOTONIC.
func (n *Network) Schedule(due int64, alarm radio.Alarm) {
	n.Do(func(r *radio.Network, _ radio.Model) { r.Schedule(due, alarm) })
}

// Close drops what is in flight and ends the network. Its ports must have been detached.
func (n *Network) Close() { n.Do(func(r *radio.Network, _ radio.Model) { r.Close() }) }

// Pause leaves frames in the interfaces of ports that are attached before Resume.
func (n *Network) Pause() { n.loop.do(func() { n.paused = true }) }

// Resume lets the frames of a paused network flow again, at all its ports from the same moment on. The next call tries
// again the ports that it could not watch.
func (n *Network) Resume() (err error) {
	n.loop.do(func() {
		n.paused = false
		var failed []*Port
		for _, p := range n.unwatched {
			if p.detached {
				continue
			}
			if trouble := n.loop.watch(p, p.Handle); trouble != nil {
				failed, err = append(failed, p), errors.Join(err, trouble)
			}
		}
		n.unwatched = failed
	})
	return err
}

// ReceiveShipment is radio.Network.ReceiveShipment with the times of CLOCK_MONOTONIC. It does not wait.
func (n *Network) ReceiveShipment(s *radio.Shipment) {
	n.loop.post(func() { n.radio.ReceiveShipment(clock.Monotonic(), s) })
}

// sendersPerTally bounds how many senders are tallied at a time, so that frames do not wait for it.
const sendersPerTally = 16

// Snapshot returns the counters of all local ports at one instant. With reset, WorstLateness and LateReleases
// start again at 0.
func (n *Network) Snapshot(reset bool) (all []radio.Snapshot) {
	count := 0
	for tallied := false; !tallied; {
		n.loop.do(func() { count, tallied = n.radio.Ports(), n.radio.Tally(sendersPerTally) })
	}
	// Allocated outside the loop's thread, which would otherwise have to help the garbage collector. It
	// allocates if a port is attached meanwhile.
	all = make([]radio.Snapshot, 0, count)
	n.loop.do(func() { all = n.radio.Snapshot(all, reset) })
	return all
}

// PortOptions describe an attachment.
type PortOptions struct {
	radio.PortOptions
	// Descriptor of the TAP, non-blocking; none for a port on another host. The caller owns it, and closes it after
	// Detach.
	Descriptor int
	// Gone is called once, on a goroutine of its own, when the kernel has removed the interface.
	Gone func()
}

// Port is one node's attachment to a network. Its methods may be called on any goroutine.
type Port struct {
	*radio.Port
	network *Network
	gone    func()
	// The rest belongs to the loop's thread.
	index             int // in the loop's table
	watched, detached bool
	bursts            bool  // hands in several frames at a time
	lastFrameAt       int64 // time of its newest frame
	// waitingSince is the last time at which no frame of the port waited. lastIteration is the loop's in
	// which it last had any.
	waitingSince  int64
	lastIteration uint64
}

// Attach is radio.Network.Attach. Frames flow at once, unless the network is paused.
func (n *Network) Attach(options PortOptions) (*Port, error) {
	p := &Port{network: n, gone: options.Gone}
	options.Handle = options.Descriptor
	var err error
	n.loop.do(func() { err = n.attach(p, options.PortOptions) })
	if err != nil {
		return nil, err
	}
	return p, nil
}

// attach first watches the descriptor, because a port that cannot be watched must not replace one on another host.
func (n *Network) attach(p *Port, options radio.PortOptions) (err error) {
	local := options.Host == nil
	if local && !n.paused {
		if err = n.loop.watch(p, options.Handle); err != nil {
			return err
		}
	}
	if p.Port, err = n.radio.Attach(clock.Monotonic(), options); err != nil {
		if p.watched {
			n.loop.unwatch(p, options.Handle)
		}
		return err
	}
	if !local {
		return nil
	}
	n.loop.load.Add(1)
	if n.paused {
		n.unwatched = append(n.unwatched, p)
	}
	return nil
}

// Detach is radio.Port.Detach.
func (p *Port) Detach() (last radio.Counters) {
	l := p.network.loop
	l.do(func() {
		last = p.Port.Detach(clock.Monotonic())
		if p.detached || !p.IsLocal() {
			return
		}
		p.detached = true
		l.load.Add(-1)
		if p.watched {
			l.unwatch(p, p.Handle)
		}
	})
	return last
}

// CurrentCounters is radio.Port.CurrentCounters.
func (p *Port) CurrentCounters() (last radio.Counters) {
	p.network.loop.do(func() { last = p.Port.CurrentCounters() })
	return last
}

// SetTap sets the port's tap, nil for none. The previous tap is not called any more when it returns.
func (p *Port) SetTap(t radio.Tap) { p.network.loop.do(func() { p.Tap = t }) }
