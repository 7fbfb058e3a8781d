package worker

import (
	"errors"
	"fmt"

	"vignette.dev/vignette/internal/radiod/emaned"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// What one of EMANE's processes sends over the air goes to other hosts as it is, after this version, in the place of a shipment's, and the
// network.
const (
	airVersion = 128
	airHeader  = 1 + 16
)

func isAir(message []byte) bool { return len(message) > 0 && message[0] == airVersion }

// spreads tells that some of a network's members are served by other hosts that can be reached.
func (m *Manager) spreads(object *v1alpha1.RadioNetwork) bool {
	h := m.hosts.Load()
	if h == nil {
		return false
	}
	h.wiring.Lock()
	defer h.wiring.Unlock()
	return len(h.wanted(object)) > 0
}

// shipAir sends what one of EMANE's processes of a network has sent to all other hosts that have members of it: each process decides by itself
// what it receives.
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

// hearAir has EMANE's processes here hear what those of another host have sent.
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
		return errors.New("it is of no network that EMANE carries on both hosts")
	}
	return driver.Hear(message[airHeader:])
}
