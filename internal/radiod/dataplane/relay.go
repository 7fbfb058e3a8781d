package dataplane

import (
	"errors"
	"fmt"
	"net"

	"vignette.dev/vignette/internal/emane/ota"
)

// An over-the-air datagram of an EMANE process goes to other hosts unchanged. It follows this version, which
// replaces a shipment's, and the network.
const (
	otaVersion = 128
	otaHeader  = 1 + 16
	// maxDatagram of UDP over IPv4.
	maxDatagram = 65507
)

func isOTA(message []byte) bool { return len(message) > 0 && message[0] == otaVersion }

// SetRelay implements Plane.
func (l *Local) SetRelay(uid string, to []string) error {
	h := l.hosts
	if h == nil {
		return errNoHosts
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id := networkIDOf(uid)
	delete(h.relays, id)
	if len(to) > 0 {
		h.relays[id] = map[string]bool{}
	}
	for _, name := range to {
		h.relays[id][name] = true
	}
	return nil
}

// SetChannel implements Plane.
func (l *Local) SetChannel(uid string, of *ota.Sockets) error {
	var channel *ota.Channel
	if of != nil {
		var err error
		if channel, err = of.Channel(); err != nil {
			return err
		}
	}
	h, id := l.hosts, networkIDOf(uid)
	if h == nil {
		if channel != nil {
			return errors.Join(errNoHosts, channel.Close())
		}
		return errNoHosts
	}
	h.mu.Lock()
	before := h.channels[id]
	delete(h.channels, id)
	if channel != nil {
		h.channels[id] = channel
		h.ended.Go(func() { h.relay(uid, channel) })
	}
	h.mu.Unlock()
	if before != nil {
		return before.Close()
	}
	return nil
}

// relay carries what EMANE's processes send to other hosts, until the channel is closed.
func (h *hosts) relay(uid string, from *ota.Channel) {
	id, buffer := networkIDOf(uid), make([]byte, maxDatagram)
	for {
		n, err := from.Receive(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			h.Log.Error("what EMANE sends does not reach other hosts any more", "network", uid, "error", err)
			return
		}
		h.relayDatagram(id, buffer[:n])
	}
}

func (h *hosts) relayDatagram(id networkID, datagram []byte) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for name := range h.relays[id] {
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
	id := networkID(message[1:otaHeader])
	h.mu.RLock()
	relayed, channel := h.relays[id][from], h.channels[id]
	h.mu.RUnlock()
	switch {
	case !relayed:
		return errors.New("no network that EMANE carries on both hosts has its id")
	case channel == nil:
		return errors.New("EMANE's processes are not running")
	}
	return channel.Send(message[otaHeader:])
}

// closeChannels ends what relay does.
func (h *hosts) closeChannels() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, channel := range h.channels {
		_ = channel.Close()
	}
}
