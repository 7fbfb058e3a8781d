package worker

import (
	"errors"
	"fmt"

	"vignette.dev/vignette/internal/radiod/emaned"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// An over-the-air datagram of an EMANE process goes to other hosts unchanged, after this version, which
// replaces a shipment's, and the network.
const (
	airVersion = 128
	airHeader  = 1 + 16
)

func isAir(message []byte) bool { return len(message) > 0 && message[0] == airVersion }

// spreads reports whether other hosts that can be reached serve some of a network's members.
func (m *Manager) spreads(object *v1alpha1.RadioNetwork) bool {
	h := m.hosts.Load()
	if h == nil {
		return false
	}
	h.wiring.Lock()
	defer h.wiring.Unlock()
	return len(h.wanted(object)) > 0
}

// shipAir sends an over-the-air datagram to all other hosts with members of the network. Each process there
// decides whether it receives it.
func (m *Manager) shipAir(uid string, datagram []byte) {
	h := m.hosts.Load()
	h.wiring.RLock()
	defer h.wiring.RUnlock()
	s := h.spreads[uid]
	if s == nil {
		return
	}
	for _, far := range s.hosts {
		far.peer.Send(append(append(append(far.peer.Buffer(), airVersion), s.id[:]...), datagram...))
	}
}

// hearAir passes another host's over-the-air datagram to EMANE's processes here.
func (h *Hosts) hearAir(from string, message []byte) error {
	if len(message) <= airHeader {
		return fmt.Errorf("%d bytes: want more than %d", len(message), airHeader)
	}
	h.wiring.RLock()
	s := h.byID[networkID(message[1:airHeader])]
	var driver *emaned.Driver
	if s != nil && s.hosts[from] != nil {
		driver = s.driver
	}
	h.wiring.RUnlock()
	if driver == nil {
		return errors.New("no network that EMANE carries on both hosts has its id")
	}
	return driver.Hear(message[airHeader:])
}
