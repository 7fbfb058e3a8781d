// Package hosts connects a host's radio networks with their parts on other hosts, which the data plane talks to, and records
// which hosts were lost.
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
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/radiod/spectrum"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Hosts connects the networks' ports on this host with those on other hosts.
type Hosts struct {
	Options

	// wiring protects the connections.
	wiring    sync.RWMutex
	networks  map[string]*distributedNetwork // by the network's UID
	addresses map[string]peers.Address       // by host
	lost      map[string]int64               // since when, by CLOCK_REALTIME
	// leaving are hosts that share no network with this one any more, with the time since.
	leaving map[string]time.Time
}

// leaveGracePeriod is how long a host that shares no network any more is still answered. It may learn of that later,
// and must not report this host as lost.
const leaveGracePeriod = 10 * time.Second

// Recorder records gaps and last counters of a run, which its results need besides the samples. When it
// returns they are stored where they outlive the worker. A *samples.Sampler is one.
type Recorder interface {
	Record(runUID string, gaps []runapi.RadioGap, last []figures.Network) error
}

// Options of Hosts.
type Options struct {
	// Host is this host's name, Address and Key are how the others reach its data plane.
	Host, Address string
	Key           peers.Key
	Plane         dataplane.Plane
	Log           *slog.Logger
	Recorder      Recorder
	// Changed is called when the trouble of a network may have changed.
	Changed func(*v1alpha1.RadioNetwork)
}

// distributedNetwork is a network with members on this host and on others.
type distributedNetwork struct {
	object *v1alpha1.RadioNetwork
	runUID string
	hosts  map[string]bool
	ports  dataplane.PortSet // of a network in the data plane
	// relayed reports whether EMANE carries it.
	relayed bool
}

// New connects nothing yet. Run samples.
func New(o Options) *Hosts {
	return &Hosts{Options: o, networks: map[string]*distributedNetwork{}, addresses: map[string]peers.Address{}, lost: map[string]int64{}, leaving: map[string]time.Time{}}
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
	h.note(s.ports.Set(h.Plane, nil))
	if s.relayed {
		h.note(h.Plane.SetRelay(uid, dataplane.Relay{}))
	}
	h.updatePeers()
}

// Connect updates the ports on other hosts of a network in the data plane, its neighbours' included, or which hosts get the
// over-the-air datagrams of one that EMANE carries.
func (h *Hosts) Connect(uid string, object *v1alpha1.RadioNetwork, neighbours []spectrum.Neighbour) {
	h.wiring.Lock()
	defer h.wiring.Unlock()
	s := h.networks[uid]
	if s == nil {
		s = &distributedNetwork{}
		h.networks[uid] = s
	}
	s.object, s.runUID, s.relayed, s.hosts = object, string(object.Spec.Experiment.UID), object.Spec.Engine == v1alpha1.EngineEMANE, map[string]bool{}
	wanted := h.portsOf(uid, object)
	for i := range neighbours {
		maps.Copy(wanted, h.portsOfNeighbour(uid, &neighbours[i]))
	}
	for _, p := range wanted {
		s.hosts[p.Host] = true
	}
	h.updatePeers()
	if s.relayed {
		to := dataplane.Relay{Hosts: slices.Collect(maps.Keys(s.hosts))}
		for i := range neighbours {
			to.Neighbours = append(to.Neighbours, string(neighbours[i].UID))
		}
		h.note(h.Plane.SetRelay(uid, to))
	} else {
		// Perhaps a node is here by now, and its former host's entry is old.
		if err := s.ports.Set(h.Plane, wanted); err != nil {
			h.Log.Warn("ports on other hosts", "network", object.Name, "error", err)
		}
	}
}

// portsOf returns the ports of a network's members on other hosts.
func (h *Hosts) portsOf(uid string, object *v1alpha1.RadioNetwork) map[int]dataplane.Port {
	ports, on := map[int]dataplane.Port{}, h.remoteMembers(object)
	for i := range object.Spec.Members {
		member := &object.Spec.Members[i]
		nem := int(member.NEM)
		mac, err := radio.ParseMAC(member.MAC)
		if on[nem] == "" || err != nil { // its own host reports a wrong MAC
			continue
		}
		ports[nem] = dataplane.Port{Network: uid, Name: member.Node, Group: member.Group, NEM: nem, MAC: mac, Host: on[nem]}
	}
	return ports
}

// portsOfNeighbour returns the ports of a neighbour's members on other hosts.
func (h *Hosts) portsOfNeighbour(uid string, other *spectrum.Neighbour) map[int]dataplane.Port {
	ports, on := map[int]dataplane.Port{}, h.remoteMembers(other.RadioNetwork)
	for i := range other.Spec.Members {
		if member := &other.Spec.Members[i]; on[int(member.NEM)] != "" {
			p := other.Port(uid, member)
			p.Host = on[int(member.NEM)]
			ports[p.NEM] = p
		}
	}
	return ports
}

// IsDistributed reports whether other hosts that can be reached serve some of a network's members.
func (h *Hosts) IsDistributed(object *v1alpha1.RadioNetwork) bool {
	h.wiring.Lock()
	defer h.wiring.Unlock()
	return len(h.remoteMembers(object)) > 0
}

// note logs what the data plane could not do.
func (h *Hosts) note(err error) {
	if err != nil {
		h.Log.Error("ports on other hosts", "error", err)
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
	if a.UDP, err = netip.ParseAddrPort(p.Address); err != nil {
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
		}
	}
	h.addLeaving(all)
	h.note(h.Plane.SetHosts(all))
	maps.DeleteFunc(h.lost, func(name string, _ int64) bool {
		_, needed := all[name]
		return !needed
	})
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

// Peer is how other hosts reach this one.
func (h *Hosts) Peer() v1alpha1.RadioPeer {
	return v1alpha1.RadioPeer{Address: h.Address, Key: base64.StdEncoding.EncodeToString(h.Key[:])}
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
		if since, ok := h.lost[name]; ok {
			all = append(all, fmt.Sprintf("host %s: not reachable since %s", name, time.Unix(0, since).UTC().Format(time.RFC3339Nano)))
		}
	}
	return strings.Join(all, "; ")
}

// gapUnreachable is the kind of the RadioGap of a lost host.
const gapUnreachable = "hostUnreachable"

// ReachabilityChanged handles the event of a host that is lost or reachable again.
func (h *Hosts) ReachabilityChanged(e *dataplane.Event) {
	host := e.Host
	h.wiring.Lock()
	gap := runapi.RadioGap{TimeNanoseconds: e.At, Gap: gapUnreachable, FromNanoseconds: e.Since}
	if e.Reachable {
		gap.ToNanoseconds, gap.FramesLost = e.At, e.Lost
		delete(h.lost, host)
	} else {
		h.lost[host] = e.Since
	}
	runs := map[string][]string{} // names of networks by run
	for _, s := range h.networks {
		if s.hosts[host] {
			runs[s.runUID] = append(runs[s.runUID], s.object.Spec.Network)
			h.Changed(s.object)
		}
	}
	h.wiring.Unlock()
	if e.Again {
		return // an earlier worker has recorded it
	}
	h.Log.Warn("another host of a network", "host", host, "reachable", e.Reachable)
	for uid, networks := range runs {
		slices.Sort(networks)
		gap.Reason = fmt.Sprintf("host %s of network %s was not reachable from %s: nothing went between its nodes and this host's", host, strings.Join(networks, ", "), h.Host)
		if err := h.Recorder.Record(uid, []runapi.RadioGap{gap}, nil); err != nil {
			h.Log.Error("record a lost host", "run", uid, "error", err)
		}
	}
}
