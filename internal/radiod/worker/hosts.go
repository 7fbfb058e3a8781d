package worker

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/emaned"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Hosts connects the networks' ports on this host with those on other hosts.
type Hosts struct {
	HostsOptions
	peers *peers.Peers

	// wiring protects the connections. The manager's lock may be held when it is taken, but not the other way
	// round.
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

// HostsOptions of Hosts.
type HostsOptions struct {
	// Host is this host's name, Address where the others reach its Conn.
	Host, Address string
	Key           peers.PrivateKey
	Conn          peers.Conn
	Manager       *Manager
	// PeerTime converts a time of CLOCK_MONOTONIC to the one sent to other hosts; nil sends it as it is.
	// Realtime gives the time of the Unix epoch that is sent to them, in nanoseconds; nil for CLOCK_REALTIME.
	// Tests skew both.
	PeerTime func(monotonic int64) int64
	Realtime func() int64
	// MTU of the path to another host; nil asks the kernel.
	MTU func(to netip.AddrPort) int
}

// distributedNetwork is a network with ports on this host and on others.
type distributedNetwork struct {
	id     networkID
	runUID string
	object *v1alpha1.RadioNetwork
	// running carries its frames here, or driver does, which has no ports.
	running *driver.Network
	driver  *emaned.Driver
	clock   *slotClock
	hosts   map[string]*remoteHost
	ports   map[int]*remotePort // by NEM id
}

type remotePort struct {
	host *remoteHost
	port *driver.Port
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

// NewHosts makes the Hosts and registers it with the manager. Run begins to listen.
func NewHosts(o HostsOptions) *Hosts {
	if o.PeerTime == nil {
		o.PeerTime = func(monotonic int64) int64 { return monotonic }
	}
	if o.Realtime == nil {
		o.Realtime = clock.Realtime
	}
	h := &Hosts{HostsOptions: o, networks: map[string]*distributedNetwork{}, byID: map[networkID]*distributedNetwork{}, addresses: map[string]peers.Address{},
		lost: map[string]lostHost{}, counters: map[string]*hostCounters{}, leaving: map[string]time.Time{}}
	h.peers = peers.New(peers.Options{Host: o.Host, Key: o.Key, Conn: o.Conn, MTU: o.MTU, Now: func() int64 { return o.PeerTime(clock.Monotonic()) },
		Realtime: o.Realtime, Receive: h.receive, Changed: h.reachabilityChanged, Log: o.Manager.Log})
	o.Manager.hosts.Store(h)
	return h
}

// connectHosts updates a network's ports on other hosts; the manager's lock is held.
func (m *Manager) connectHosts(uid string, n *network) {
	h := m.hosts.Load()
	if h == nil {
		return
	}
	h.wiring.Lock()
	defer h.wiring.Unlock()
	s := h.networks[uid]
	if n == nil || n.running == nil && n.driver == nil || len(m.keysOf(func(a *attachment) bool { return a.NetworkUID == uid })) == 0 {
		if s != nil {
			delete(h.networks, uid)
			delete(h.byID, s.id)
			for _, p := range s.ports {
				p.port.Detach()
			}
			h.updatePeers()
		}
		return
	}
	if s == nil {
		s = &distributedNetwork{id: networkIDOf(uid), hosts: map[string]*remoteHost{}, ports: map[int]*remotePort{}}
		h.networks[uid], h.byID[s.id] = s, s
	}
	s.object, s.running, s.driver, s.clock, s.runUID = n.object, n.running, n.driver, &n.environment.clock, string(n.object.Spec.Experiment.UID)
	wanted := h.remoteMembers(n.object)
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
	if s.running != nil {
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
			h.Manager.Log.Error("another host's entry in a RadioNetwork's status", "network", object.Name, "host", entry.Host, "error", err)
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
			p.port.Detach()
			delete(s.ports, nem)
		}
	}
	members := s.object.Spec.Members
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
		port, err := s.running.Attach(driver.PortOptions{
			PortOptions: radio.PortOptions{Name: member.Node, Group: member.Group, NEM: int(member.NEM), MAC: mac, Host: far}})
		if err != nil {
			continue // it is local by now, and its host's entry is old
		}
		s.ports[int(member.NEM)] = &remotePort{far, port}
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
			h.Manager.Log.Debug("what EMANE has sent on another host", "host", from, "error", err)
		}
		return
	}
	id, shipment, err := parseShipment(message)
	if err != nil {
		counted.unusable.Add(1)
		h.Manager.Log.Debug("transmission of another host", "host", from, "error", err)
		return
	}
	peer := h.peers.Peer(from)
	h.wiring.RLock()
	s := h.byID[id]
	known := s != nil && s.ports[shipment.Source] != nil && s.ports[shipment.Source].host.name == from
	var running *driver.Network
	var slots *slotClock
	if known {
		running, slots = s.running, s.clock
	}
	h.wiring.RUnlock()
	if !known || peer == nil {
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
	if !slots.agrees(shipment) {
		counted.unusable.Add(1)
		return
	}
	if late := now - shipment.Due; late > 0 {
		counted.late.Add(1)
		for worst := counted.worst.Load(); late > worst && !counted.worst.CompareAndSwap(worst, late); worst = counted.worst.Load() {
			continue
		}
	}
	running.ReceiveShipment(shipment)
}

// shiftTimes shifts a transmission's times to this host's clock.
func shiftTimes(s *radio.Shipment, difference int64) {
	s.Sent, s.Start, s.Due = s.Sent+difference, s.Start+difference, s.Due+difference
	for i := range s.Parts {
		s.Parts[i].Sent += difference
	}
}

// congestionControl returns TCP's congestion control in a network's pods here. It is empty if none is
// attached, or all are guests, which have their own kernels.
func (m *Manager) congestionControl(uid string) (found string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.attachments {
		if a.NetworkUID == uid {
			found = cmp.Or(found, a.Settings[podnet.CongestionControl])
		}
	}
	return found
}

// describeHost adds to this host's entry in a network's status what other hosts need, and trouble with them.
func (m *Manager) describeHost(uid string, status *hostStatus) {
	h := m.hosts.Load()
	if h == nil {
		return
	}
	m.mu.Lock()
	var nems []int
	for _, a := range m.attachments {
		if a.NetworkUID == uid {
			nems = append(nems, int(a.Member.NEM))
		}
	}
	m.mu.Unlock()
	if len(nems) == 0 {
		return
	}
	slices.Sort(nems)
	var text []string
	for _, nem := range nems {
		text = append(text, strconv.Itoa(nem))
	}
	public := h.Key.Public()
	status.nems, status.peer = strings.Join(text, " "), v1alpha1.RadioPeer{Address: h.Address, Key: base64.StdEncoding.EncodeToString(public[:])}
	if trouble := h.trouble(uid); trouble != "" {
		status.message = strings.TrimPrefix(status.message+"; "+trouble, "; ")
	}
}

// trouble describes the lost hosts of a network.
func (h *Hosts) trouble(uid string) string {
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
			runs[s.runUID] = append(runs[s.runUID], s.object.Spec.Network)
			h.Manager.Changed(s.object)
		}
	}
	h.wiring.Unlock()
	h.Manager.Log.Warn("another host of a network", "host", host, "reachable", reachable)
	for uid, networks := range runs {
		slices.Sort(networks)
		gap.Reason = fmt.Sprintf("host %s of network %s was not reachable from %s: nothing went between its nodes and this host's", host, strings.Join(networks, ", "), h.Host)
		if err := h.Manager.Recorder.Record(uid, []runapi.RadioGap{gap}, nil); err != nil {
			h.Manager.Log.Error("record a lost host", "run", uid, "error", err)
		}
	}
}
