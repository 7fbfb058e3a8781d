// Package radio carries the frames of emulated radio networks between TAP descriptors. One event loop on a
// locked thread serves complete networks. Networks share nothing, whatever addresses their members have.
package radio

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// DefaultNice is radiod's default for Options.Nice.
const DefaultNice = -10

// Options of an Engine.
type Options struct {
	// Loops is the number of event loops; 0 means 1. A network is served by one of them.
	Loops int
	// Nice is the process's scheduling priority, -20 to 19; 0 leaves it as it is. The loops have a priority
	// that is niceAdvantage better.
	Nice int
	// Realtime is the loops' priority 1 to 99 under SCHED_FIFO; 0 leaves them under the normal scheduler.
	Realtime int
}

// Engine owns the event loops.
type Engine struct {
	options Options
	loops   []*loop // never changed
	mu      sync.Mutex
	load    []int // ports per loop
	wait    sync.WaitGroup
}

// New starts the event loops.
func New(options Options) (*Engine, error) {
	e := &Engine{options: options, load: make([]int, max(options.Loops, 1))}
	for range e.load {
		l, err := newLoop()
		if err != nil {
			for _, l := range e.loops {
				l.close()
			}
			return nil, err
		}
		e.loops = append(e.loops, l)
	}
	for _, l := range e.loops {
		e.wait.Go(func() { l.run(options) })
	}
	return e, nil
}

// gcPercent is the garbage collector's GOGC. With 243 nodes and their routers 150 MB are in use.
const gcPercent = 200

// RaisePriority gives this process the priority that the options ask for, and returns what the kernel refused. A
// loop's thread needs a free P as soon as it wakes up, so there are more Ps than processors. The garbage
// collector stops the loops for a moment each time. It runs half as often as by Go's default, unless the
// environment sets GOGC.
func (e *Engine) RaisePriority() (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), runtime.NumCPU()+len(e.loops)+1))
	for _, l := range e.loops {
		l.do(func() { err = errors.Join(err, l.priorityError) })
	}
	startThreads(spareThreads)
	return errors.Join(err, RaiseProcessPriority(e.options))
}

// spareThreads are started before monitorSlack is set, because threads that the monitor starts would inherit
// it.
const spareThreads = 8

func startThreads(count int) {
	release := make(chan struct{})
	var made sync.WaitGroup
	made.Add(count)
	for range count {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-release
		}()
	}
	made.Wait()
	close(release)
}

// Close ends the event loops. Descriptors of ports stay open: they are the callers'.
func (e *Engine) Close() error {
	for _, l := range e.loops {
		l.do(func() { l.ended = true })
	}
	e.wait.Wait()
	return nil
}

// LateIntervals returns the times in which each loop handled frames late, and forgets them. Frames that nodes
// sent in these times were read late, and held frames were released late.
func (e *Engine) LateIntervals() (byLoop [][]Interval) {
	byLoop = make([][]Interval, len(e.loops))
	for i, l := range e.loops {
		l.do(func() { byLoop[i] = l.late.Take() })
	}
	return byLoop
}

// Options that the engine was made with.
func (e *Engine) Options() Options { return e.options }

// NetworkOptions of a new network.
type NetworkOptions struct {
	// Model that the network's frames pass through; it belongs to the network from now on.
	Model Model
	// MTU of the members' interfaces, bytes.
	MTU int
	// Silent radios send and receive nothing.
	Silent bool
}

// Network is one radio network: frames reach only ports of the same Network.
type Network struct {
	engine *Engine
	loop   *loop
	// The rest belongs to the loop's thread.
	model    Model
	maxFrame int
	silent   bool
	closed   bool
	paused   bool
	alarm    *Frame // in the heap, with Schedule's function
	wake     *Frame // in the heap once for each call of WakeAt
	wakeDue  int64  // the time of the last WakeAt, while waking
	waking   bool
	ports    []*Port // never changed in place: frames in flight refer to it
	byMAC    map[MAC]*Port
	// hosts serve the ports that are not local; remotePorts are these ports by NEM id.
	hosts          []*hostPorts
	remotePorts    map[int]*Port
	unknownSources atomic.Uint64
}

// NewNetwork adds an empty network.
func (e *Engine) NewNetwork(options NetworkOptions) (*Network, error) {
	n := &Network{engine: e, model: options.Model, byMAC: map[MAC]*Port{}}
	if err := n.setMTU(options.MTU); err != nil {
		return nil, err
	}
	n.silent = options.Silent
	e.mu.Lock()
	defer e.mu.Unlock()
	n.loop = e.loops[e.leastLoaded()]
	return n, nil
}

// Loop is the place of the network's loop in LateIntervals.
func (n *Network) Loop() int { return slices.Index(n.engine.loops, n.loop) }

func (n *Network) setMTU(mtu int) error {
	if most := maxFrameLength - HeaderLength; mtu < 68 || mtu > most {
		return fmt.Errorf("mtu %d: want 68 to %d bytes", mtu, most)
	}
	n.maxFrame = mtu + HeaderLength
	return nil
}

func (e *Engine) leastLoaded() int {
	least := 0
	for i, ports := range e.load {
		if ports < e.load[least] {
			least = i
		}
	}
	return least
}

func (e *Engine) addLoad(l *loop, ports int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.loops {
		if e.loops[i] == l {
			e.load[i] += ports
		}
	}
}

// Do runs f on the thread of the network's loop, where the model may be used, and returns when f has run.
func (n *Network) Do(f func(n *Network, m Model)) { n.loop.do(func() { f(n, n.model) }) }

// Configure sets the MTU and silence and cancels what was scheduled. It runs change on the thread of the
// network's loop, where the model may be changed without disturbing frames in flight.
func (n *Network) Configure(mtu int, silent bool, change func(Model)) error {
	var err error
	n.loop.do(func() {
		if err = n.setMTU(mtu); err != nil {
			return
		}
		n.silent = silent
		n.cancelAlarm()
		if change != nil {
			change(n.model)
		}
	})
	return err
}

// Alarm changes a network at a time. It runs on the thread of the network's loop with the time now, and must
// not block. It returns whether the radios are silent from now on, and when it is to run again, or 0 for
// never. Times are nanoseconds of CLOCK_MONOTONIC.
type Alarm func(now int64, m Model) (silent bool, next int64)

// Schedule runs alarm at the time due, or at once if that has passed, and replaces what was scheduled before.
// Frames released or handed in before due meet the network as it was, later frames as alarm left it.
func (n *Network) Schedule(due int64, alarm Alarm) {
	n.loop.do(func() {
		n.cancelAlarm()
		n.setAlarm(due, alarm)
	})
}

func (n *Network) setAlarm(due int64, alarm Alarm) {
	n.alarm = &Frame{Context: func(now int64) {
		var next int64
		if n.silent, next = alarm(now, n.model); next != 0 {
			n.setAlarm(next, alarm)
		}
	}}
	n.loop.heap.push(due, n.alarm)
}

// WakeAt has the model, a Waker, called at the time due, nanoseconds of CLOCK_MONOTONIC. It replaces a time
// given before. It is for models, on the loop's thread.
func (n *Network) WakeAt(due int64) {
	if n.wake == nil {
		n.wake = &Frame{Context: n.wakeUp}
	}
	n.waking, n.wakeDue = true, due
	n.loop.heap.push(due, n.wake)
}

// wakeUp is called for every call of WakeAt, also for those that a later one has replaced.
func (n *Network) wakeUp(now int64) {
	if !n.waking || now < n.wakeDue || n.closed {
		return
	}
	n.waking = false
	if w, ok := n.model.(Waker); ok {
		w.Wake(n, now)
	}
}

// cancelAlarm empties the alarm's frame, which stays in the heap until its time.
func (n *Network) cancelAlarm() {
	if n.alarm != nil {
		n.alarm.Context, n.alarm = nil, nil
	}
}

// Close drops what is in flight and ends the network. Its ports must have been detached.
func (n *Network) Close() {
	n.loop.do(func() {
		n.closed = true
		n.cancelAlarm()
	})
}

// Pause leaves frames in the interfaces of ports that are attached before Resume.
func (n *Network) Pause() { n.loop.do(func() { n.paused = true }) }

// Resume lets the frames of a paused network flow again, at all its ports from the same moment on.
func (n *Network) Resume() error {
	var err error
	n.loop.do(func() {
		n.paused = false
		for _, p := range n.ports {
			if !p.watched && p.IsLocal() {
				err = errors.Join(err, n.loop.watch(p))
			}
		}
	})
	return err
}

// PortOptions describe an attachment.
type PortOptions struct {
	// Name and Group of the node, and its NEM id.
	Name, Group string
	NEM         int
	MAC         MAC
	// Ledger in which the port counts, starting from its values; nil for a new one. It must stay in memory as
	// long as anything refers to the Port.
	Ledger *Ledger
	// Gone is called once, on a goroutine of its own, when the kernel has removed the interface.
	Gone func()

	// The fields from here to Port.counters share a cache line, because each frame uses them.

	// Host that serves the port; nil for this one. A port on another host needs no descriptor. All ports of a
	// network on one host have the same Host.
	Host Host
	// Descriptor of the TAP, non-blocking. The caller owns it, and closes it after Detach.
	Descriptor int
	// Tap that watches the port from its first frame on; nil for none. See SetTap.
	Tap Tap
}

// Port is one node's attachment to a network.
type Port struct {
	PortOptions

	detached bool
	watched  bool
	bursts   bool // hands in several frames at a time
	counters *Ledger

	// Slot is the port's place in the model, for the model's use.
	Slot int

	network     *Network
	index       int   // in the loop's table
	lastFrameAt int64 // time of its newest frame
	// waitingSince is the last time at which no frame of the port waited. lastIteration is the loop's in
	// which it last had any.
	waitingSince  int64
	lastIteration uint64
}

// Direction of a frame at a port, as its node sees it.
type Direction uint8

// The directions: Out is from the node to its radio, In from the radio to the node.
const (
	Out Direction = iota
	In
)

// Tap watches the frames of one port.
type Tap interface {
	// Frame is called on the loop's thread for each frame that the port counts as sent or received, in order.
	// It must neither block nor allocate, and data is only valid until it returns.
	Frame(direction Direction, data []byte)
}

// SetTap sets the port's tap, nil for none. The previous tap is not called any more when it returns.
func (p *Port) SetTap(t Tap) { p.network.loop.do(func() { p.Tap = t }) }

// Attach adds a port; frames flow at once. A second local port with the same MAC is refused. A port on
// another host does not replace a local one, but is replaced by it.
func (n *Network) Attach(options PortOptions) (*Port, error) {
	p := &Port{PortOptions: options, network: n, counters: options.Ledger}
	if p.counters == nil {
		p.counters = &Ledger{}
	}
	var err error
	n.loop.do(func() {
		other := n.byMAC[p.MAC]
		if other != nil && (other.IsLocal() || !p.IsLocal()) {
			err = fmt.Errorf("mac %v of %s: already attached for %s", p.MAC, p.Name, other.Name)
			return
		}
		if !n.paused && p.IsLocal() {
			if err = n.loop.watch(p); err != nil {
				return
			}
		}
		rest := append([]*Port(nil), n.ports...)
		if other != nil {
			other.detached = true
			rest = n.portsExcept(other)
		}
		n.byMAC[p.MAC] = p
		n.setPorts(append(rest, p))
	})
	if err == nil && p.IsLocal() {
		n.engine.addLoad(n.loop, 1)
	}
	return p, err
}

// Detach removes the port and returns its counters. Frames that its node sent continue, see CurrentCounters;
// frames to it are dropped. Detaching again does nothing.
func (p *Port) Detach() (last Counters) {
	n, removed := p.network, false
	n.loop.do(func() {
		n.tally(len(n.ports))
		last = p.counters.Counters
		if p.detached {
			return
		}
		p.detached = true
		removed = p.IsLocal()
		if p.watched {
			n.loop.unwatch(p)
		}
		delete(n.byMAC, p.MAC)
		n.setPorts(n.portsExcept(p))
	})
	if removed {
		n.engine.addLoad(n.loop, -1)
	}
	return last
}

// portsExcept returns a new slice of the ports except p.
func (n *Network) portsExcept(p *Port) (rest []*Port) {
	for _, other := range n.ports {
		if other != p {
			rest = append(rest, other)
		}
	}
	return rest
}

func (n *Network) setPorts(ports []*Port) {
	n.ports = ports
	n.countHosts()
	n.model.Members(ports)
}

// CurrentCounters returns the port's counters. They change after Detach until none of its frames is under way.
func (p *Port) CurrentCounters() (last Counters) {
	p.network.loop.do(func() {
		p.network.tally(len(p.network.ports))
		last = p.counters.Counters
	})
	return last
}

// Snapshot is the counters of one port at one instant.
type Snapshot struct {
	Port *Port
	Counters
}

// sendersPerTally bounds how many senders are tallied at a time, so that frames do not wait for it.
const sendersPerTally = 16

// Snapshot returns the counters of all local ports at one instant. With reset, WorstLateness and LateReleases
// start again at 0.
func (n *Network) Snapshot(reset bool) []Snapshot {
	count := 0
	for tallied := false; !tallied; {
		n.loop.do(func() { count, tallied = len(n.ports), n.tally(sendersPerTally) })
	}
	// Allocated outside the loop's thread, which would otherwise have to help the garbage collector. It
	// allocates if a port is attached meanwhile.
	all := make([]Snapshot, 0, count)
	n.loop.do(func() {
		n.tally(len(n.ports)) // counts since then
		for _, p := range n.ports {
			if !p.IsLocal() {
				continue
			}
			all = append(all, Snapshot{p, p.counters.Counters})
			if reset {
				p.counters.WorstLateness, p.counters.LateReleases = 0, 0
			}
		}
	})
	return all
}

// Find returns the attached port with the address, or nil. It is for models, on the loop's thread.
func (n *Network) Find(m MAC) *Port { return n.byMAC[m] }
