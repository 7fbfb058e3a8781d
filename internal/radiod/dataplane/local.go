package dataplane

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/framering"
)

// Local is the Plane of this process.
type Local struct {
	sign
	driver *driver.Driver
	events *events
	hosts  *hosts // nil for none

	mu       sync.Mutex // protects the rest
	networks map[string]*network
	ports    map[PortID]*port
	lastID   PortID
	rings    map[string]weak.Pointer[framering.Ring] // by path
	late     []radio.Intervals                       // by loop, that are not known to be logged
}

// network is a network that the driver carries.
type network struct {
	*driver.Network
	id          networkID // among hosts
	remote      remotePorts
	kind        modelKind
	environment environment
	// setting serialises the requests that change the network.
	setting sync.Mutex
}

// port is an attachment. It is kept after Detach as long as its counters may change.
type port struct {
	*driver.Port
	id       PortID
	network  *network
	detached bool
	gone     atomic.Bool // the kernel has removed its interface
}

// modelKind tells models apart.
type modelKind struct{ link, pipe, slots bool }

func (n *Network) kind() modelKind { return modelKind{n.Link != nil, n.RFPipe != nil, n.TDMA != nil} }

// New makes the Plane of a driver, which Close closes.
func New(d *driver.Driver) *Local {
	return &Local{driver: d, events: newEvents(), networks: map[string]*network{}, ports: map[PortID]*port{}, rings: map[string]weak.Pointer[framering.Ring]{}}
}

// Close ends the event loops, Events, and what goes to other hosts. Descriptors of ports stay open: they are the callers'.
func (l *Local) Close() error {
	l.end()
	l.hosts.close()
	l.events.close()
	return l.driver.Close()
}

// SetNetwork implements Plane.
func (l *Local) SetNetwork(r *Network) error {
	if err := r.check(&r.Now); err != nil {
		return err
	}
	n, made, err := l.networkFor(r)
	if err != nil {
		return err
	}
	n.setting.Lock()
	defer n.setting.Unlock()
	if n.kind != r.kind() {
		err := n.Configure(r.MTU, true, nil)
		if err == nil {
			err = errors.New("it changed to another model while the network ran: its radios are silent")
		}
		return err
	}
	w, err := waveformOf(r, &n.environment)
	if err != nil {
		return fmt.Errorf("network %s: %w", r.UID, err)
	}
	if !made {
		if err := n.Configure(r.MTU, r.Now.Silent, func(now int64, m radio.Model) { w.configure(now, m, &r.Now) }); err != nil {
			return err
		}
	}
	l.schedule(n, w, r)
	return nil
}

// networkFor returns the network that a request is about, which it makes the first time.
func (l *Local) networkFor(r *Network) (n *network, made bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.networks[r.UID]; n != nil {
		return n, false, nil
	}
	n = &network{id: networkIDOf(r.UID), remote: remotePorts{}, kind: r.kind()}
	w, err := waveformOf(r, &n.environment)
	if err != nil {
		return nil, false, fmt.Errorf("network %s: %w", r.UID, err)
	}
	if n.Network, err = l.driver.NewNetwork(radio.NetworkOptions{Model: w.newModel(&r.Now), MTU: r.MTU, Silent: r.Now.Silent}); err != nil {
		return nil, false, err
	}
	if r.Paused {
		n.Pause()
	}
	l.networks[r.UID] = n
	return n, true, nil
}

// clockCheckInterval bounds how long a step of CLOCK_REALTIME stays unnoticed while a change is waited for, nanoseconds.
const clockCheckInterval = 1e9

// schedule hands the later changes to the network's loop.
func (l *Local) schedule(n *network, w *waveform, r *Network) {
	monotonic := clock.Monotonic() // read first: a delay here makes the alarm early, which only costs another one
	state, next := r.Now, 0
	wait, more := r.wait(next, clock.Realtime())
	if !more {
		return
	}
	n.Schedule(monotonic+wait, func(now int64, m radio.Model) (silent bool, due int64) {
		first, realtime := next, clock.Realtime()
		for ; next < len(r.Later) && r.T0+r.Later[next].AtNanoseconds <= realtime; next++ {
			state = state.FollowedBy(&r.Later[next].State)
		}
		if next > first {
			w.configure(now, m, &state)
		}
		for i := first; i < next; i++ {
			l.events.add(Event{Network: r.UID, Version: r.Version, Change: i, Neighbour: r.Later[i].Neighbour, Late: time.Duration(realtime - r.T0 - r.Later[i].AtNanoseconds)})
		}
		if wait, more := r.wait(next, realtime); more {
			due = now + max(wait, 1)
		}
		return state.Silent, due
	})
}

// wait returns the time until a change, in nanoseconds from the given time of CLOCK_REALTIME. It is bounded so that steps
// of the clock are noticed.
func (n *Network) wait(next int, realtime int64) (wait int64, more bool) {
	if next == len(n.Later) {
		return 0, false
	}
	return min(n.T0+n.Later[next].AtNanoseconds-realtime, clockCheckInterval), true
}

// find returns a network by its UID.
func (l *Local) find(uid string) (*network, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.networks[uid]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("network %s: the data plane has none", uid)
}

// findPort returns a port by its ID.
func (l *Local) findPort(id PortID) (*port, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.ports[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("port %d: the data plane has none", id)
}

// EndNetwork implements Plane.
func (l *Local) EndNetwork(uid string) (last map[PortID]radio.Counters, err error) {
	n, ports := l.forgetNetwork(uid)
	if n == nil {
		return nil, nil
	}
	l.hosts.forget(n)
	n.Close()
	last = make(map[PortID]radio.Counters, len(ports))
	for _, p := range ports {
		last[p.id] = p.CurrentCounters()
	}
	return last, nil
}

// forgetNetwork forgets a network and its ports, and returns them; nil for no network.
func (l *Local) forgetNetwork(uid string) (n *network, ports []*port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n = l.networks[uid]; n == nil {
		return nil, nil
	}
	delete(l.networks, uid)
	for id, p := range l.ports {
		if p.network == n {
			delete(l.ports, id)
			ports = append(ports, p)
		}
	}
	return n, ports
}

// Resume implements Plane.
func (l *Local) Resume() (failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, n := range l.networks {
		if err := n.Resume(); err != nil {
			failed = fmt.Errorf("network %s: %w", uid, err)
		}
	}
	l.resumedNow()
	return failed
}

// SetEnvironment implements Plane.
func (l *Local) SetEnvironment(e *Environment) error {
	n, err := l.find(e.Network)
	if err != nil {
		return err
	}
	n.setting.Lock()
	defer n.setting.Unlock()
	return n.environment.apply(e)
}

// Attach implements Plane.
func (l *Local) Attach(r *Port) (PortID, error) {
	n, err := l.find(r.Network)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	l.lastID++
	p := &port{id: l.lastID, network: n}
	l.mu.Unlock()
	opened, err := l.tapOf(r.Tap)
	if err != nil {
		return 0, err
	}
	options := driver.PortOptions{Descriptor: r.Descriptor, Gone: func() { p.gone.Store(true); l.events.add(Event{Gone: p.id}) },
		PortOptions: radio.PortOptions{Name: r.Name, Group: r.Group, NEM: r.NEM, MAC: r.MAC, Tap: opened}}
	var far *remoteHost
	if r.Host != "" {
		n.setting.Lock() // two ports at a host share what takes transmissions there
		defer n.setting.Unlock()
		if far, err = l.hosts.hostOf(n, r.Host); err != nil {
			return 0, err
		}
		options.Host = far
	}
	if r.Neighbour != "" {
		if err := l.addNeighbour(&options.PortOptions, r, far); err != nil {
			return 0, err
		}
	}
	var counters *CounterFile
	if r.CounterFile != "" {
		if counters, _, err = OpenCounters(r.CounterFile); err != nil {
			return 0, err
		}
		options.Ledger = &counters.Ledger
	}
	if p.Port, err = n.Attach(options); err != nil {
		return 0, err
	}
	if far != nil { // only now the network takes what comes from there
		l.hosts.attach(n, far, r.NEM)
	}
	if counters != nil {
		counters.keepFor(p.Port.Port)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ports[p.id] = p
	return p.id, nil
}

// Detach implements Plane.
func (l *Local) Detach(id PortID) (PortCounters, error) {
	p, err := l.findPort(id)
	if err != nil {
		return PortCounters{}, err
	}
	last := PortCounters{ID: id, Name: p.Name, NEM: p.NEM}
	if p.IsLocal() {
		p.network.Do(func(_ *radio.Network, m radio.Model) { last.countSlots(m, p.Port.Port, true) })
	}
	if !p.IsLocal() && l.hosts != nil { // first, because then the network takes no more from there
		l.hosts.detach(p.network, p.NEM)
	}
	last.Counters = p.Port.Detach()
	l.mu.Lock()
	defer l.mu.Unlock()
	p.detached = true
	if !p.IsLocal() {
		delete(l.ports, id)
	}
	l.forgetIfDone(p, &last.Counters)
	return last, nil
}

// forgetIfDone forgets a detached port whose counters do not change any more; the lock is held.
func (l *Local) forgetIfDone(p *port, last *radio.Counters) {
	if p.detached && last.InFlight == 0 {
		delete(l.ports, p.id)
	}
}

// Counters implements Plane.
func (l *Local) Counters(id PortID) (last radio.Counters, err error) {
	p, err := l.findPort(id)
	if err != nil {
		return last, err
	}
	last = p.CurrentCounters()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetIfDone(p, &last)
	return last, nil
}

// Snapshot implements Plane.
func (l *Local) Snapshot(uid string, reset bool) (*Snapshot, error) {
	n, err := l.find(uid)
	if err != nil {
		return nil, err
	}
	ids := l.idsOf(n)
	s := &Snapshot{Loop: n.Loop()}
	all := n.Network.Snapshot(reset)
	s.Ports = make([]PortCounters, len(all))
	for i := range all {
		s.Ports[i] = PortCounters{ID: ids[all[i].Port], Name: all[i].Port.Name, NEM: all[i].Port.NEM, Counters: all[i].Counters}
	}
	if n.kind.link {
		return s, nil
	}
	n.Do(func(_ *radio.Network, m radio.Model) {
		for i := range all {
			s.Ports[i].countSlots(m, all[i].Port, reset)
		}
		if medium := mediumOf(m); medium != nil {
			s.LinksHeard = medium.LinksHeard()
		}
	})
	return s, nil
}

// idsOf returns the IDs of a network's attached ports.
func (l *Local) idsOf(n *network) map[*radio.Port]PortID {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := map[*radio.Port]PortID{}
	for id, p := range l.ports {
		if p.network == n && !p.detached {
			ids[p.Port.Port] = id
		}
	}
	return ids
}

// Links implements Plane.
func (l *Local) Links(uid string, receivers []PortID) ([][]phy.LinkStatistics, error) {
	n, err := l.find(uid)
	if err != nil || n.kind.link {
		return nil, err
	}
	ports := make([]*radio.Port, 0, len(receivers))
	for _, id := range receivers {
		p, err := l.findPort(id)
		if err != nil {
			return nil, err
		}
		ports = append(ports, p.Port.Port)
	}
	total := 0
	n.Do(func(r *radio.Network, _ radio.Model) { total = r.Ports() })
	// Allocated outside the loop's thread, which would otherwise have to help the garbage collector.
	all, ends := make([]phy.LinkStatistics, 0, total*len(ports)), make([]int, 0, len(ports))
	n.Do(func(_ *radio.Network, m radio.Model) {
		medium := mediumOf(m)
		for _, p := range ports {
			if medium != nil {
				all = medium.AppendLinks(all, p)
			}
			ends = append(ends, len(all))
		}
	})
	result, begin := make([][]phy.LinkStatistics, 0, len(ports)), 0
	for _, end := range ends {
		result = append(result, all[begin:end])
		begin = end
	}
	return result, nil
}

// LateIntervals implements Plane.
func (l *Local) LateIntervals() (all [][]radio.Interval, err error) {
	taken := l.driver.LateIntervals()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late == nil {
		l.late = make([]radio.Intervals, len(taken))
	}
	for loop := range taken {
		for _, n := range taken[loop] {
			l.late[loop].Add(n)
		}
		all = append(all, l.late[loop].All())
	}
	return all, nil
}

// ForgetLateIntervals implements Plane.
func (l *Local) ForgetLateIntervals() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = nil
	return nil
}

// AwaitLoops implements Plane.
func (l *Local) AwaitLoops() error {
	l.driver.AwaitLoops()
	return nil
}

// Events implements Plane.
func (l *Local) Events() []Event { return l.events.next(nil) }
