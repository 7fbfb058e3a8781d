// Package radio carries the frames of emulated radio networks between TAP descriptors. One event
// loop on a locked thread serves whole networks: what a network's frames meet is never shared with
// another network, whatever addresses its members have.
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

// DefaultNice is radiod's Options.Nice, unless it is told otherwise.
const DefaultNice = -10

// Options of an Engine.
type Options struct {
	// Loops is the number of event loops; 0 means 1. A network is served by one of them.
	Loops int
	// Nice is the process's scheduling priority, -20 to 19; 0 leaves it as it is. The loops, which go before its other
	// threads, have one that is loopLead better.
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

// gcPercent is the garbage, by what is in use, at which it is collected. With 243 nodes and their routers 150 MB are in use.
const gcPercent = 200

// Raise gives this process the priority that the options ask for, and so many Ps that a loop's thread finds a free one when it wakes up. It
// gives what the kernel has refused to the process or to the loops. The garbage collector, which stops the loops for a moment each time, comes
// half as often as by Go's default, unless the environment has a GOGC of its own.
func (e *Engine) Raise() (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), runtime.NumCPU()+len(e.loops)+1))
	for _, l := range e.loops {
		l.do(func() { err = errors.Join(err, l.priorityError) })
	}
	makeThreads(spareThreads)
	return errors.Join(err, RaiseProcess(e.options))
}

// spareThreads are made before monitorSlack is set: those that the monitor starts would have it too.
const spareThreads = 8

func makeThreads(count int) {
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

// LateIntervals hands over the times in which each loop did not handle frames when they were due, as far as they have not been handed over.
// Frames that nodes sent meanwhile were read late, and those that were due were released late.
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
	wake     *Frame // in the heap once for each time that WakeAt was given
	wakeDue  int64  // the time that holds, while waking
	waking   bool
	ports    []*Port // never changed in place: frames in flight refer to it
	byMAC    map[MAC]*Port
	// hosts that serve the rest of the ports; elsewhere are those by NEM id.
	hosts     []*hostPorts
	elsewhere map[int]*Port
	strangers atomic.Uint64
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

// Do runs f on the thread of the network's loop, where the model may be asked and told, and returns when it has run.
func (n *Network) Do(f func(n *Network, m Model)) { n.loop.do(func() { f(n, n.model) }) }

// Configure runs change on the thread of the network's loop, where the model may be changed without
// disturbing frames in flight, and sets the MTU and silence. What Schedule was given before is forgotten.
func (n *Network) Configure(mtu int, silent bool, change func(Model)) error {
	var err error
	n.loop.do(func() {
		if err = n.setMTU(mtu); err != nil {
			return
		}
		n.silent = silent
		n.forgetAlarm()
		if change != nil {
			change(n.model)
		}
	})
	return err
}

// Alarm changes a network when a time has come. It runs on the thread of the network's loop with the
// time now, must not block, and returns whether the radios are silent from now on and when it is to
// run again, or 0 for never. Times are nanoseconds of CLOCK_MONOTONIC.
type Alarm func(now int64, m Model) (silent bool, next int64)

// Schedule runs alarm at the time due, or at once if that has passed. Frames released or handed in before due meet
// the network as it was, those after it as alarm left it. It takes the place of what was scheduled before.
func (n *Network) Schedule(due int64, alarm Alarm) {
	n.loop.do(func() {
		n.forgetAlarm()
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

// WakeAt has the model, a Waker, called at the time due, nanoseconds of CLOCK_MONOTONIC, and takes the place of a time given
// before. For models, on the loop's thread.
func (n *Network) WakeAt(due int64) {
	if n.wake == nil {
		n.wake = &Frame{Context: n.wakeUp}
	}
	n.waking, n.wakeDue = true, due
	n.loop.heap.push(due, n.wake)
}

// wakeUp is called at every time that WakeAt was given, also where another has taken its place.
func (n *Network) wakeUp(now int64) {
	if !n.waking || now < n.wakeDue || n.closed {
		return
	}
	n.waking = false
	if w, ok := n.model.(Waker); ok {
		w.Wake(n, now)
	}
}

// forgetAlarm leaves the frame in the heap until its time, but not what hangs on it.
func (n *Network) forgetAlarm() {
	if n.alarm != nil {
		n.alarm.Context, n.alarm = nil, nil
	}
}

// Close drops what is in flight and ends the network. Its ports must have been detached.
func (n *Network) Close() {
	n.loop.do(func() {
		n.closed = true
		n.forgetAlarm()
	})
}

// Pause leaves frames in the interfaces of ports that are attached before Resume.
func (n *Network) Pause() { n.loop.do(func() { n.paused = true }) }

// Resume lets the frames of a paused network flow, those of all its ports from the same moment on.
func (n *Network) Resume() error {
	var err error
	n.loop.do(func() {
		n.paused = false
		for _, p := range n.ports {
			if !p.watched && p.Here() {
				err = errors.Join(err, n.loop.watch(p))
			}
		}
	})
	return err
}

// PortOptions say whose attachment a port is.
type PortOptions struct {
	// Name of the node, Group it belongs to, NEM its emulation module id.
	Name, Group string
	NEM         int
	MAC         MAC
	// Ledger that the port counts in, going on with what it has; nil for one of its own. It must stay in
	// memory as long as anything refers to the Port.
	Ledger *Ledger
	// Gone is called once, on a goroutine of its own, when the kernel has removed the interface.
	Gone func()

	// From here on to Port's counters lies, in one line of the processor's cache, what each frame takes.

	// Host that serves the port where it is not this one; it needs no descriptor then. The ports of a network on one host have
	// the same Host.
	Host Host
	// Descriptor of the TAP, non-blocking. It stays the caller's, who closes it after Detach.
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

	network *Network
	index   int   // in the loop's table
	latest  int64 // time of its newest frame
	// waiting is when no frame of the port waited yet. turn is the loop's in which it last had any.
	waiting int64
	turn    uint64
}

// Direction of a frame at a port, as its node sees it.
type Direction uint8

// The directions: Out is what the node hands to its radio, In is what the radio hands to the node.
const (
	Out Direction = iota
	In
)

// Tap watches the frames of one port.
type Tap interface {
	// Frame is called on the loop's thread for each frame that the port's counters count as sent or received, in the
	// order in which they passed. It must neither block nor allocate, and data is only valid until it returns.
	Frame(direction Direction, data []byte)
}

// SetTap puts a tap on the port, or takes it off with nil. When it returns, the tap before is not called any more.
func (p *Port) SetTap(t Tap) { p.network.loop.do(func() { p.Tap = t }) }

// Attach adds a port; frames flow at once. A second port with the same MAC is refused, but one that another host served takes
// no place from one that is here.
func (n *Network) Attach(options PortOptions) (*Port, error) {
	p := &Port{PortOptions: options, network: n, counters: options.Ledger}
	if p.counters == nil {
		p.counters = &Ledger{}
	}
	var err error
	n.loop.do(func() {
		other := n.byMAC[p.MAC]
		if other != nil && (other.Here() || !p.Here()) {
			err = fmt.Errorf("mac %v of %s: already attached for %s", p.MAC, p.Name, other.Name)
			return
		}
		if !n.paused && p.Here() {
			if err = n.loop.watch(p); err != nil {
				return
			}
		}
		rest := append([]*Port(nil), n.ports...)
		if other != nil {
			other.detached = true
			rest = n.without(other)
		}
		n.byMAC[p.MAC] = p
		n.setPorts(append(rest, p))
	})
	if err == nil && p.Here() {
		n.engine.addLoad(n.loop, 1)
	}
	return p, err
}

// Detach removes the port and returns its last counters. Frames that its node sent go on their
// way, see Last; frames to it are dropped. Detaching again does nothing.
func (p *Port) Detach() (last Counters) {
	n, removed := p.network, false
	n.loop.do(func() {
		n.tally(len(n.ports))
		last = p.counters.Counters
		if p.detached {
			return
		}
		p.detached = true
		removed = p.Here()
		if p.watched {
			n.loop.unwatch(p)
		}
		delete(n.byMAC, p.MAC)
		n.setPorts(n.without(p))
	})
	if removed {
		n.engine.addLoad(n.loop, -1)
	}
	return last
}

// without gives the ports but one, in a new slice.
func (n *Network) without(p *Port) (rest []*Port) {
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

// Last gives the counters of a port, which change after Detach until none of its frames is under way.
func (p *Port) Last() (last Counters) {
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

// talliedAtOnce is of how many senders counters are tallied at a time, so that frames do not wait for it.
const talliedAtOnce = 16

// Snapshot gives the counters of all ports of this host at one instant. With reset, WorstLateness and
// LateReleases start anew.
func (n *Network) Snapshot(reset bool) []Snapshot {
	count := 0
	for tallied := false; !tallied; {
		n.loop.do(func() { count, tallied = len(n.ports), n.tally(talliedAtOnce) })
	}
	// Not on the loop's thread, which would have to help the garbage collector for it. A port that is attached meanwhile may cost that.
	all := make([]Snapshot, 0, count)
	n.loop.do(func() {
		n.tally(len(n.ports)) // what has come since
		for _, p := range n.ports {
			if !p.Here() {
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

// Find gives the attached port with the address, or nil. For models, on the loop's thread.
func (n *Network) Find(m MAC) *Port { return n.byMAC[m] }
