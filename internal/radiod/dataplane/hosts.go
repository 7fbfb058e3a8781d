package dataplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/peers"
)

// HostOptions are how a data plane reaches those of other hosts.
type HostOptions struct {
	// Host is this host's name.
	Host string
	Key  peers.PrivateKey
	Conn peers.Conn
	Log  *slog.Logger
	// PeerTime converts a time of CLOCK_MONOTONIC to the one sent to other hosts; nil sends it as it is.
	// Realtime gives the time of the Unix epoch that is sent to them, in nanoseconds; nil for CLOCK_REALTIME.
	// Tests skew both.
	PeerTime func(monotonic int64) int64
	Realtime func() int64
	// MTU of the path to another host; nil asks the kernel.
	MTU func(to netip.AddrPort) int
}

// HostState is the state of another host.
type HostState struct {
	peers.State
	// Received transmissions of the host, those among them that came too late, and those that were of no use here.
	Received, Late, Unusable uint64
	// WorstLate since the last reset.
	WorstLate time.Duration
}

// HostStates are the states of other hosts.
type HostStates struct {
	Hosts []HostState
	// Rejected datagrams: not authentic, replayed, or of no known session.
	Rejected uint64
}

// followInterval is how often slot clocks are updated. Clocks that drift by 100 ppm differ by 10 µs after it.
const followInterval = 100 * time.Millisecond

// hosts carry transmissions to other hosts' data planes, and theirs to this one.
type hosts struct {
	HostOptions
	peers *peers.Peers
	told  func(Event)
	end   context.CancelFunc
	ended sync.WaitGroup

	losing sync.Mutex // protects lost
	lost   map[string]lostHost

	mu       sync.RWMutex // protects the rest
	counters map[string]*hostCounters
	networks map[networkID]*network
	// relays are those of networks of EMANE's, channels their processes here.
	relays   map[networkID]relay
	channels map[networkID]*ota.Channel
}

// lostHost is a host from which nothing came since a time of CLOCK_REALTIME. notSent had not gone to it when it was lost.
type lostHost struct {
	since   int64
	notSent uint64
}

// hostCounters count the transmissions of another host.
type hostCounters struct {
	received, late, unusable atomic.Uint64
	worst                    atomic.Int64 // since the last reset
}

// remotePorts are a network's ports at other hosts, by NEM id. The hosts' lock protects them.
type remotePorts map[int]*remoteHost

// remoteHost takes a network's transmissions to another host. It implements radio.Host.
type remoteHost struct {
	id       networkID
	name     string
	peer     *peers.Peer
	peerTime func(int64) int64
}

// Ship implements radio.Host.
func (f *remoteHost) Ship(s *radio.Shipment) {
	f.peer.Send(appendShipment(f.peer.Buffer(), f.id, s, f.peerTime))
}

// OpenHosts begins to listen for other hosts, before anything is asked of the Plane.
func (l *Local) OpenHosts(o HostOptions) {
	if o.PeerTime == nil {
		o.PeerTime = func(monotonic int64) int64 { return monotonic }
	}
	if o.Realtime == nil {
		o.Realtime = clock.Realtime
	}
	ctx, end := context.WithCancel(context.Background())
	h := &hosts{HostOptions: o, told: l.events.add, end: end, lost: map[string]lostHost{}, counters: map[string]*hostCounters{},
		networks: map[networkID]*network{}, relays: map[networkID]relay{}, channels: map[networkID]*ota.Channel{}}
	h.peers = peers.New(peers.Options{Host: o.Host, Key: o.Key, Conn: o.Conn, MTU: o.MTU, Now: func() int64 { return o.PeerTime(clock.Monotonic()) },
		Realtime: o.Realtime, Receive: h.receive, Changed: h.reachabilityChanged, Log: o.Log})
	h.ended.Go(func() { _ = h.peers.Run(ctx) }) // it returns no errors
	h.ended.Go(func() { clock.Every(ctx, followInterval, h.followClocks) })
	l.hosts = h
}

func (h *hosts) close() {
	if h != nil {
		h.end()
		h.closeChannels()
		h.ended.Wait()
	}
}

var errNoHosts = errors.New("other hosts: the data plane does not listen for them")

// SetHosts implements Plane.
func (l *Local) SetHosts(all map[string]peers.Address) error {
	h := l.hosts
	if h == nil {
		return errNoHosts
	}
	h.mu.Lock()
	for name := range all {
		if h.counters[name] == nil {
			h.counters[name] = &hostCounters{}
		}
	}
	h.peers.Set(all)
	h.mu.Unlock()
	h.forgetLost(all)
	return nil
}

// Hosts implements Plane.
func (l *Local) Hosts(reset bool) (s HostStates, err error) {
	h := l.hosts
	if h == nil {
		return s, errNoHosts
	}
	s.Rejected = h.peers.Rejected()
	for _, state := range h.peers.States() {
		of := HostState{State: state}
		if c := h.countersOf(state.Host); c != nil {
			of.Received, of.Late, of.Unusable, of.WorstLate = c.received.Load(), c.late.Load(), c.unusable.Load(), time.Duration(c.worst.Load())
			if reset {
				of.WorstLate = time.Duration(c.worst.Swap(0))
			}
		}
		s.Hosts = append(s.Hosts, of)
	}
	return s, nil
}

// hostOf returns what takes a network's transmissions to another host. The network's setting is locked.
func (h *hosts) hostOf(n *network, name string) (far *remoteHost, err error) {
	if h == nil {
		return nil, errNoHosts
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, known := range n.remote {
		if known.name == name {
			far = known
		}
	}
	if far == nil {
		far = &remoteHost{id: n.id, name: name, peer: h.peers.Peer(name), peerTime: h.PeerTime}
	}
	if far.peer == nil {
		return nil, fmt.Errorf("port at host %s: SetHosts must name the host first", name)
	}
	return far, nil
}

// attach makes a network's port at another host known, by its NEM id.
func (h *hosts) attach(n *network, far *remoteHost, nem int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n.remote[nem] = far
	h.networks[n.id] = n
}

// detach forgets a network's port at another host.
func (h *hosts) detach(n *network, nem int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(n.remote, nem)
}

// forget a network.
func (h *hosts) forget(n *network) {
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.networks, n.id)
	}
}

// receive takes a message of another host.
func (h *hosts) receive(from string, message []byte) {
	counted := h.countersOf(from)
	if counted == nil {
		return // it shares no network any more
	}
	counted.received.Add(1)
	late, err := h.deliver(from, message)
	if err != nil {
		counted.unusable.Add(1)
		h.Log.Debug("transmission of another host", "host", from, "error", err)
	} else if late > 0 {
		counted.addLate(late)
	}
}

var (
	errUnknownSource = errors.New("no network with its id has its source at that host")
	errUnknownClock  = errors.New("the host's clock is not measured yet")
	errOtherSlot     = errors.New("its time slot is another one by this host's clock")
)

// deliver hands a transmission to its network. It returns how late it came.
func (h *hosts) deliver(from string, message []byte) (late int64, err error) {
	if isOTA(message) {
		return 0, h.receiveOTA(from, message)
	}
	id, shipment, err := parseShipment(message)
	if err != nil {
		return 0, err
	}
	n, peer := h.networkFor(id, from, shipment.Source), h.peers.Peer(from)
	if n == nil || peer == nil {
		return 0, errUnknownSource
	}
	there := peer.Clock()
	if !there.Known {
		return 0, errUnknownClock
	}
	now := clock.Monotonic()
	shiftTimes(shipment, now-h.PeerTime(now)-int64(there.Offset))
	if !n.environment.clock.agrees(shipment) {
		return 0, errOtherSlot
	}
	late = now - shipment.Due
	n.ReceiveShipment(shipment)
	return late, nil
}

// networkFor returns the network that takes a transmission of a source on another host, or nil.
func (h *hosts) networkFor(id networkID, from string, source int) *network {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if n := h.networks[id]; n != nil && n.remote[source] != nil && n.remote[source].name == from {
		return n
	}
	return nil
}

// addLate counts a transmission that came too late.
func (c *hostCounters) addLate(late int64) {
	c.late.Add(1)
	for worst := c.worst.Load(); late > worst && !c.worst.CompareAndSwap(worst, late); worst = c.worst.Load() {
		continue
	}
}

func (h *hosts) countersOf(host string) *hostCounters {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.counters[host]
}

// shiftTimes shifts a transmission's times to this host's clock.
func shiftTimes(s *radio.Shipment, difference int64) {
	s.Sent, s.Start, s.Due = s.Sent+difference, s.Start+difference, s.Due+difference
	for i := range s.Parts {
		s.Parts[i].Sent += difference
	}
}

// reachabilityChanged tells of a host that is lost or reachable again.
func (h *hosts) reachabilityChanged(c peers.Change) {
	h.losing.Lock()
	defer h.losing.Unlock()
	e := Event{Host: c.Host, Reachable: c.Reachable, At: clock.Realtime()}
	if before := h.lost[c.Host]; c.Reachable {
		e.Since, e.Lost = before.since, c.Lost-before.notSent
		delete(h.lost, c.Host)
	} else {
		e.Since = cmp.Or(c.Heard, e.At)
		h.lost[c.Host] = lostHost{e.Since, c.Lost}
	}
	h.told(e)
}

// forgetLost forgets the lost hosts that are not to be talked to any more.
func (h *hosts) forgetLost(all map[string]peers.Address) {
	h.losing.Lock()
	defer h.losing.Unlock()
	maps.DeleteFunc(h.lost, func(name string, _ lostHost) bool { _, needed := all[name]; return !needed })
}

// tellLost tells again of the hosts that are lost.
func (h *hosts) tellLost() {
	h.losing.Lock()
	defer h.losing.Unlock()
	for name, l := range h.lost {
		if peer := h.peers.Peer(name); peer != nil && peer.IsLost() {
			h.told(Event{Host: name, Again: true, At: clock.Realtime(), Since: l.since})
		}
	}
}

// followClocks makes each network's slots follow the reachable host whose name is first. So all hosts have the same slots
// even if their clocks differ.
func (h *hosts) followClocks() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	now := clock.Monotonic()
	ahead := h.PeerTime(now) - now
	for _, n := range h.networks {
		first, epoch := h.Host, int64(0)
		for _, far := range n.remote {
			if far.name >= first || far.peer.IsLost() {
				continue
			}
			if there := far.peer.Clock(); there.Known {
				first, epoch = far.name, there.Epoch+ahead
			}
		}
		n.environment.clock.followed.Store(epoch)
	}
}
