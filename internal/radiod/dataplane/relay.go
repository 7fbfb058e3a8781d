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

// relay is a Relay, for lookups.
type relay struct {
	hosts      map[string]bool
	neighbours map[networkID]bool
}

// takes reports whether the processes of the network with an id get a datagram of a network of this host, or of another.
func (r *relay) takes(own, of networkID, from string) bool {
	return (from == "" || r.hosts[from]) && (own == of && from != "" || r.neighbours[of])
}

func isOTA(message []byte) bool { return len(message) > 0 && message[0] == otaVersion }

// SetRelay implements Plane.
func (l *Local) SetRelay(uid string, to Relay) error {
	h := l.hosts
	if h == nil {
		return errNoHosts
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id := networkIDOf(uid)
	delete(h.relays, id)
	if len(to.Hosts)+len(to.Neighbours) == 0 {
		return nil
	}
	r := relay{map[string]bool{}, map[networkID]bool{}}
	for _, name := range to.Hosts {
		r.hosts[name] = true
	}
	for _, neighbour := range to.Neighbours {
		r.neighbours[networkIDOf(neighbour)] = true
	}
	h.relays[id] = r
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

// relay carries what EMANE's processes send to other hosts and neighbours, until the channel is closed.
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
	for name := range h.relays[id].hosts {
		if peer := h.peers.Peer(name); peer != nil {
			peer.Send(append(append(append(peer.Buffer(), otaVersion), id[:]...), datagram...))
		}
	}
	if _, err := h.sendToProcesses(id, "", datagram); err != nil {
		h.Log.Debug("what EMANE sends does not reach another network", "error", err)
	}
}

// sendToProcesses sends a datagram of a network to the processes of the networks that take it, and returns their number. It
// is from another host, or from this one if from is empty. The lock is held.
func (h *hosts) sendToProcesses(of networkID, from string, datagram []byte) (networks int, err error) {
	for own, channel := range h.channels {
		if r := h.relays[own]; r.takes(own, of, from) {
			networks++
			err = errors.Join(err, channel.Send(datagram))
		}
	}
	return networks, err
}

// receiveOTA passes another host's over-the-air datagram to EMANE's processes here.
func (h *hosts) receiveOTA(from string, message []byte) error {
	if len(message) <= otaHeader {
		return fmt.Errorf("%d bytes: want more than %d", len(message), otaHeader)
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	networks, err := h.sendToProcesses(networkID(message[1:otaHeader]), from, message[otaHeader:])
	if networks == 0 {
		return errors.New("no processes that EMANE runs here are in its network or spectrum")
	}
	return err
}

// closeChannels ends what relay does.
func (h *hosts) closeChannels() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, channel := range h.channels {
		_ = channel.Close()
	}
}
