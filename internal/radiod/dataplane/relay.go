package dataplane

import (
	"errors"
	"fmt"
)

// An over-the-air datagram of an EMANE process goes to other hosts unchanged. It follows this version, which
// replaces a shipment's, and the network.
const (
	otaVersion = 128
	otaHeader  = 1 + 16
)

func isOTA(message []byte) bool { return len(message) > 0 && message[0] == otaVersion }

// relay of a network that EMANE carries.
type relay struct {
	hosts   map[string]bool
	receive func(datagram []byte) error
}

// SetRelay implements Plane.
func (l *Local) SetRelay(uid string, to []string, receive func(datagram []byte) error) error {
	h := l.hosts
	if h == nil {
		return errNoHosts
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(to) == 0 {
		delete(h.relays, networkIDOf(uid))
		return nil
	}
	r := &relay{map[string]bool{}, receive}
	for _, name := range to {
		r.hosts[name] = true
	}
	h.relays[networkIDOf(uid)] = r
	return nil
}

// Relay implements Plane.
func (l *Local) Relay(uid string, datagram []byte) {
	h, id := l.hosts, networkIDOf(uid)
	if h == nil {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	r := h.relays[id]
	if r == nil {
		return
	}
	for name := range r.hosts {
		if peer := h.peers.Peer(name); peer != nil {
			peer.Send(append(append(append(peer.Buffer(), otaVersion), id[:]...), datagram...))
		}
	}
}

// receiveOTA passes another host's over-the-air datagram to EMANE's processes here.
func (h *hosts) receiveOTA(from string, message []byte) error {
	if len(message) <= otaHeader {
		return fmt.Errorf("%d bytes: want more than %d", len(message), otaHeader)
	}
	h.mu.RLock()
	r := h.relays[networkID(message[1:otaHeader])]
	h.mu.RUnlock()
	if r == nil || !r.hosts[from] {
		return errors.New("no network that EMANE carries on both hosts has its id")
	}
	return r.receive(message[otaHeader:])
}
