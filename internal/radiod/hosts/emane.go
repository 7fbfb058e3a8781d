package hosts

import (
	"errors"
	"fmt"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// An over-the-air datagram of an EMANE process goes to other hosts unchanged. It follows this version, which
// replaces a shipment's, and the network.
const (
	otaVersion = 128
	otaHeader  = 1 + 16
)

func isOTA(message []byte) bool { return len(message) > 0 && message[0] == otaVersion }

// IsDistributed reports whether other hosts that can be reached serve some of a network's members.
func (h *Hosts) IsDistributed(object *v1alpha1.RadioNetwork) bool {
	h.wiring.Lock()
	defer h.wiring.Unlock()
	return len(h.remoteMembers(object)) > 0
}

// ShipOTA sends an over-the-air datagram to all other hosts with members of the network. Each process there
// decides whether it receives it.
func (h *Hosts) ShipOTA(uid string, datagram []byte) {
	h.wiring.RLock()
	defer h.wiring.RUnlock()
	s := h.networks[uid]
	if s == nil {
		return
	}
	for _, far := range s.hosts {
		far.peer.Send(append(append(append(far.peer.Buffer(), otaVersion), s.id[:]...), datagram...))
	}
}

// receiveOTA passes another host's over-the-air datagram to EMANE's processes here.
func (h *Hosts) receiveOTA(from string, message []byte) error {
	if len(message) <= otaHeader {
		return fmt.Errorf("%d bytes: want more than %d", len(message), otaHeader)
	}
	h.wiring.RLock()
	s := h.byID[networkID(message[1:otaHeader])]
	var carrier EMANE
	if s != nil && s.hosts[from] != nil {
		carrier = s.EMANE
	}
	h.wiring.RUnlock()
	if carrier == nil {
		return errors.New("no network that EMANE carries on both hosts has its id")
	}
	return carrier.Receive(message[otaHeader:])
}
