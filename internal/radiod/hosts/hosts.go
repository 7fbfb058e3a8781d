// Package hosts connects a host's radio networks with their parts on other hosts: it ships transmissions, follows the clocks
// of time slots, and records which hosts were lost.
package hosts

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Hosts connects the networks' ports on this host with those on other hosts.
type Hosts struct {
	Options
	peers *peers.Peers

	// wiring protects the connections.
	wiring    sync.RWMutex
	networks  map[string]*distributedNetwork // by the network's UID
	byID      map[networkID]*distributedNetwork
	addresses map[string]peers.Address // by host
	lost      map[string]lostHost
	counters  map[string]*hostCounters
	// leaving are hosts that share no network with this one any more, with the time since.
	leaving map[string]time.Time
}

// leaveGracePeriod is how long a host that shares no network any more is still answered. It may learn of that later,
// and must not report this host as lost.
const leaveGracePeriod = 10 * time.Second

// Recorder records gaps of a run for its results.
type Recorder interface {
	Record(runUID string, gaps []runapi.RadioGap, last []figures.Network) error
}

// Options of Hosts.
type Options struct {
	// Host is this host's name, Address where the others reach its Conn.
	Host, Address string
	Key           peers.PrivateKey
	Conn          peers.Conn
	Log           *slog.Logger
	Recorder      Recorder
	// Changed is called when the trouble of a network may have changed.
	Changed func(*v1alpha1.RadioNetwork)
	// PeerTime converts a time of CLOCK_MONOTONIC to the one sent to other hosts; nil sends it as it is.
	// Realtime gives the time of the Unix epoch that is sent to them, in nanoseconds; nil for CLOCK_REALTIME.
	// Tests skew both.
	PeerTime func(monotonic int64) int64
	Realtime func() int64
	// MTU of the path to another host; nil asks the kernel.
	MTU func(to netip.AddrPort) int
}

// Network is one with attachments here.
type Network struct {
	Object *v1alpha1.RadioNetwork
	// Ports carry its frames here, or EMANE does, which has none.
	Ports Ports
	EMANE EMANE
}

// Ports are a network's in radiod's own engine.
type Ports interface {
	// AttachRemote adds a port for a member on another host.
	AttachRemote(radio.PortOptions) (detach func(), err error)
	// ReceiveShipment takes a transmission with the times of this host. It reports whether it is of use.
	ReceiveShipment(*radio.Shipment) (useful bool)
	// FollowClock makes time slots follow another host's CLOCK_REALTIME, which is that much ahead of this host's
	// CLOCK_MONOTONIC in nanoseconds; 0 ends that.
	FollowClock(ahead int64)
}

// EMANE takes over-the-air datagrams for its processes here.
type EMANE interface{ Receive(datagram []byte) error }

// distributedNetwork is a network with ports on this host and on others.
type distributedNetwork struct {
	Network
	id     networkID
	runUID string
	hosts  map[string]*remoteHost
	ports  map[int]*remotePort // by NEM id
}

type remotePort struct {
	host   *remoteHost
	detach func()
}

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

// lostHost is a host from which nothing comes.
type lostHost struct {
	since   int64 // Unix epoch in nanoseconds
	notSent uint64
}

// hostCounters count the transmissions of another host.
type hostCounters struct {
	received, late, unusable atomic.Uint64
	worst                    atomic.Int64 // since the last sample
}

// New makes Hosts. Run begins to listen.
func New(o Options) *Hosts {
	if o.PeerTime == nil {
		o.PeerTime = func(monotonic int64) int64 { return monotonic }
	}
	if o.Realtime == nil {
		o.Realtime = clock.Realtime
	}
	h := &Hosts{Options: o, networks: map[string]*distributedNetwork{}, byID: map[networkID]*distributedNetwork{}, addresses: map[string]peers.Address{},
		lost: map[string]lostHost{}, counters: map[string]*hostCounters{}, leaving: map[string]time.Time{}}
	h.peers = peers.New(peers.Options{Host: o.Host, Key: o.Key, Conn: o.Conn, MTU: o.MTU, Now: func() int64 { return o.PeerTime(clock.Monotonic()) },
		Realtime: o.Realtime, Receive: h.receive, Changed: h.reachabilityChanged, Log: o.Log})
	return h
}

// Disconnect removes a network's ports on other hosts.
func (h *Hosts) Disconnect(uid string) {
	h.wiring.Lock()
	defer h.wiring.Unlock()
	s := h.networks[uid]
	if s == nil {
		return
	}
	delete(h.networks, uid)
	delete(h.byID, s.id)
	for _, p := range s.ports {
		p.detach()
	}
	h.updatePeers()
}

// Connect updates a network's ports on other hosts.
func (h *Hosts) Connect(uid string, n Network) {
	h.wiring.Lock()
	defer h.wiring.Unlock()
	s := h.networks[uid]
	if s == nil {
		s = &distributedNetwork{id: networkIDOf(uid), hosts: map[string]*remoteHost{}, ports: map[int]*remotePort{}}
		h.networks[uid], h.byID[s.id] = s, s
	}
	s.Network, s.runUID = n, string(n.Object.Spec.Experiment.UID)
	wanted := h.remoteMembers(n.Object)
	for name := range s.hosts {
		if !slices.Contains(slices.Collect(maps.Values(wanted)), name) {
			delete(s.hosts, name)
		}
	}
	for _, name := range wanted {
		if s.hosts[name] == nil {
			s.hosts[name] = &remoteHost{id: s.id, name: name, peerTime: h.PeerTime}
		}
	}
	h.updatePeers()
	if s.Ports != nil {
		h.updatePorts(s, wanted)
	}
}

// remoteMembers returns a network's members on other hosts that can be reached, by NEM id.
func (h *Hosts) remoteMembers(object *v1alpha1.RadioNetwork) map[int]string {
	wanted := map[int]string{}
	for i := range object.Status.Hosts {
		entry := &object.Status.Hosts[i]
		if entry.Host == h.Host || len(entry.NEMs) == 0 || entry.Peer == nil {
			continue
		}
		address, err := parsePeer(entry.Peer)
		if err != nil {
			h.Log.Error("another host's entry in a RadioNetwork's status", "network", object.Name, "host", entry.Host, "error", err)
			continue
		}
		h.addresses[entry.Host] = address
		for _, nem := range entry.NEMs {
			wanted[int(nem)] = entry.Host
		}
	}
	return wanted
}

func parsePeer(p *v1alpha1.RadioPeer) (a peers.Address, err error) {
	key, err := base64.StdEncoding.DecodeString(p.Key)
	if err != nil || len(key) != peers.KeyLength {
		return a, fmt.Errorf("peer.key %q: want %d bytes in base64", p.Key, peers.KeyLength)
	}
	if a.AddrPort, err = netip.ParseAddrPort(p.Address); err != nil {
		return a, fmt.Errorf("peer.address %q: want an address and a port such as 192.0.2.7:9601: %w", p.Address, err)
	}
	a.Key = peers.Key(key)
	return a, nil
}

// updatePeers sets the hosts to talk to: those that share a network with this one. The lock is held.
func (h *Hosts) updatePeers() {
	all := map[string]peers.Address{}
	for _, s := range h.networks {
		for name := range s.hosts {
			all[name] = h.addresses[name]
			if h.counters[name] == nil {
				h.counters[name] = &hostCounters{}
			}
		}
	}
	h.addLeaving(all)
	h.peers.Set(all)
	for name := range h.lost {
		if _, ok := all[name]; !ok {
			delete(h.lost, name)
		}
	}
	for _, s := range h.networks {
		for name, far := range s.hosts {
			if far.peer == nil {
				far.peer = h.peers.Peer(name)
			}
		}
	}
}

// addLeaving adds the hosts that left lately; the lock is held.
func (h *Hosts) addLeaving(all map[string]peers.Address) {
	now := time.Now()
	for name := range h.addresses {
		if _, needed := all[name]; needed {
			delete(h.leaving, name)
			continue
		}
		if h.leaving[name].IsZero() {
			h.leaving[name] = now
		}
		if now.Sub(h.leaving[name]) < leaveGracePeriod {
			all[name] = h.addresses[name]
		} else {
			delete(h.addresses, name)
			delete(h.leaving, name)
		}
	}
}

// updatePorts attaches and detaches ports on other hosts as wanted; the lock is held.
func (h *Hosts) updatePorts(s *distributedNetwork, wanted map[int]string) {
	for nem, p := range s.ports {
		if far := s.hosts[wanted[nem]]; far == nil || far != p.host {
			p.detach()
			delete(s.ports, nem)
		}
	}
	members := s.Object.Spec.Members
	for i := range members {
		member := &members[i]
		far := s.hosts[wanted[int(member.NEM)]]
		if far == nil || s.ports[int(member.NEM)] != nil {
			continue
		}
		mac, err := radio.ParseMAC(member.MAC)
		if err != nil {
			continue // its own host reports that
		}
		detach, err := s.Ports.AttachRemote(radio.PortOptions{Name: member.Node, Group: member.Group, NEM: int(member.NEM), MAC: mac, Host: far})
		if err != nil {
			continue // it is local by now, and its host's entry is old
		}
		s.ports[int(member.NEM)] = &remotePort{far, detach}
	}
}

// receive takes a transmission from another host.
func (h *Hosts) receive(from string, message []byte) {
	h.wiring.RLock()
	counted := h.counters[from]
	h.wiring.RUnlock()
	if counted == nil {
		return // it shares no network any more
	}
	counted.received.Add(1)
	if isOTA(message) {
		if err := h.receiveOTA(from, message); err != nil {
			counted.unusable.Add(1)
			h.Log.Debug("what EMANE has sent on another host", "host", from, "error", err)
		}
		return
	}
	id, shipment, err := parseShipment(message)
	if err != nil {
		counted.unusable.Add(1)
		h.Log.Debug("transmission of another host", "host", from, "error", err)
		return
	}
	peer := h.peers.Peer(from)
	ports := h.portsFor(id, from, shipment.Source)
	if ports == nil || peer == nil {
		counted.unusable.Add(1)
		return
	}
	there := peer.Clock()
	if !there.Known {
		counted.unusable.Add(1)
		return
	}
	now := clock.Monotonic()
	shiftTimes(shipment, now-h.PeerTime(now)-int64(there.Offset))
	late := now - shipment.Due
	if !ports.ReceiveShipment(shipment) {
		counted.unusable.Add(1)
	} else if late > 0 {
		counted.addLate(late)
	}
}

// addLate counts a transmission that came too late.
func (c *hostCounters) addLate(late int64) {
	c.late.Add(1)
	for worst := c.worst.Load(); late > worst && !c.worst.CompareAndSwap(worst, late); worst = c.worst.Load() {
		continue
	}
}

// portsFor returns the ports that take a transmission of a source on another host, or nil.
func (h *Hosts) portsFor(id networkID, from string, source int) Ports {
	h.wiring.RLock()
	defer h.wiring.RUnlock()
	if s := h.byID[id]; s != nil && s.ports[source] != nil && s.ports[source].host.name == from {
		return s.Ports
	}
	return nil
}

// shiftTimes shifts a transmission's times to this host's clock.
func shiftTimes(s *radio.Shipment, difference int64) {
	s.Sent, s.Start, s.Due = s.Sent+difference, s.Start+difference, s.Due+difference
	for i := range s.Parts {
		s.Parts[i].Sent += difference
	}
}

// Peer is how other hosts reach this one.
func (h *Hosts) Peer() v1alpha1.RadioPeer {
	public := h.Key.Public()
	return v1alpha1.RadioPeer{Address: h.Address, Key: base64.StdEncoding.EncodeToString(public[:])}
}

// Trouble describes the lost hosts of a network.
func (h *Hosts) Trouble(uid string) string {
	h.wiring.RLock()
	defer h.wiring.RUnlock()
	s := h.networks[uid]
	if s == nil {
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.hosts)) {
		if l, ok := h.lost[name]; ok {
			all = append(all, fmt.Sprintf("host %s: not reachable since %s", name, time.Unix(0, l.since).UTC().Format(time.RFC3339Nano)))
		}
	}
	return strings.Join(all, "; ")
}

// gapUnreachable is the kind of the RadioGap of a lost host.
const gapUnreachable = "hostUnreachable"

// reachabilityChanged reports a host that is lost or reachable again.
func (h *Hosts) reachabilityChanged(host string, reachable bool, heard int64) {
	now := clock.Realtime()
	var notSent uint64
	for _, state := range h.peers.States() {
		if state.Host == host {
			notSent = state.Lost
		}
	}
	h.wiring.Lock()
	gap := runapi.RadioGap{TimeNanoseconds: now, Gap: gapUnreachable}
	if reachable {
		gap.FromNanoseconds, gap.ToNanoseconds, gap.FramesLost = h.lost[host].since, now, notSent-h.lost[host].notSent
		delete(h.lost, host)
	} else {
		if heard == 0 {
			heard = now
		}
		h.lost[host] = lostHost{heard, notSent}
		gap.FromNanoseconds = heard
	}
	runs := map[string][]string{} // names of networks by run
	for _, s := range h.networks {
		if s.hosts[host] != nil {
			runs[s.runUID] = append(runs[s.runUID], s.Object.Spec.Network)
			h.Changed(s.Object)
		}
	}
	h.wiring.Unlock()
	h.Log.Warn("another host of a network", "host", host, "reachable", reachable)
	for uid, networks := range runs {
		slices.Sort(networks)
		gap.Reason = fmt.Sprintf("host %s of network %s was not reachable from %s: nothing went between its nodes and this host's", host, strings.Join(networks, ", "), h.Host)
		if err := h.Recorder.Record(uid, []runapi.RadioGap{gap}, nil); err != nil {
			h.Log.Error("record a lost host", "run", uid, "error", err)
		}
	}
}
