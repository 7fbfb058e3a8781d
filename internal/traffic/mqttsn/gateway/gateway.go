// Package gateway is a gateway of MQTT-SN 1.2 over UDP to an MQTT 3.1.1 broker: transparent (a connection to the broker for
// each client) or aggregating (one for all).
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/quietio"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

const (
	// tick is the interval of checks for time-outs.
	tick = 100 * time.Millisecond
	// sendBacklog is the most datagrams queued for the socket.
	sendBacklog = 4096
	// receiveBuffer is the requested size, so that bursts wait in the kernel. net.core.rmem_max limits it.
	receiveBuffer = 4 << 20
	// allTopicsFactor is the limit of all clients' topics, as a multiple of one client's.
	allTopicsFactor = 10
	// writeTimeout is the timeout for a socket with a full buffer.
	writeTimeout = 10 * time.Second
	// disconnectTimeout is how long the broker gets to take the last packets.
	disconnectTimeout = 500 * time.Millisecond
)

// peer is a client's address: a UDP endpoint, or a node behind a forwarder at it.
type peer struct {
	address netip.AddrPort
	// local is the gateway's address that the client uses. Answers must come from it, as the gateway may have several.
	local     netip.Addr
	node      string
	forwarded bool
}

func (p peer) String() string {
	if p.forwarded {
		return fmt.Sprintf("%s node %x", p.address, p.node)
	}
	return p.address.String()
}

// encode encodes a packet to the client.
func (p peer) encode(packet wire.Packet) ([]byte, error) {
	b, err := wire.Append(nil, packet)
	if err == nil && p.forwarded {
		return wire.AppendForward(nil, wire.Forward{Node: []byte(p.node), Packet: b})
	}
	return b, err
}

// Gateway serves clients.
type Gateway struct {
	config     mqttsn.GatewayConfig
	predefined map[uint16]string
	metrics    *metrics
	warn       func(text string)
	socket     *net.UDPConn
	out        chan datagram
	ctx        context.Context
	now        func() time.Time

	// mu guards the fields below, and the sessions. Nothing blocks while it is held.
	mu sync.Mutex
	// peers and clients have the same sessions, by address and by client id.
	peers   map[peer]*session
	clients map[string]*session
	// own is the gateway's connection to the broker: for everything if it aggregates, else for QoS -1 only.
	own *aggregate
	// topics, queued and queuedBytes are totals of all sessions.
	topics, queued, queuedBytes int
}

type datagram struct {
	to    netip.AddrPort
	from  netip.Addr
	bytes []byte
}

// Serve runs the gateway of a configuration file until ctx ends.
func Serve(ctx context.Context, path string) error {
	config, err := appinstance.ReadConfig[mqttsn.GatewayConfig](path)
	if err != nil {
		return err
	}
	g, err := New(ctx, config, func(text string) { fmt.Fprintf(os.Stderr, "mqtt-sn-gateway %s: %s\n", config.Name, text) })
	if err != nil {
		return err
	}
	return g.Run()
}

// New makes a gateway and opens its port.
func New(ctx context.Context, config mqttsn.GatewayConfig, warn func(text string)) (*Gateway, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.WithDefaults()
	listen, _ := config.Address()
	predefined, _ := config.TopicsByID()
	socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(listen))
	if err != nil {
		return nil, err
	}
	_ = socket.SetReadBuffer(receiveBuffer) // a smaller buffer works too
	// The kernel then reports which of the host's addresses a datagram was for.
	err = quietio.Control(socket, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1) })
	if err != nil {
		socket.Close()
		return nil, err
	}
	g := &Gateway{config: config, predefined: predefined, metrics: newMetrics(config.Name), warn: warn, socket: socket, out: make(chan datagram, sendBacklog),
		ctx: ctx, now: time.Now, peers: map[peer]*session{}, clients: map[string]*session{}}
	g.own = newAggregate(g)
	g.metrics.Serve(ctx, config.MetricsPort, warn)
	return g, nil
}

// Address returns the address on which the gateway listens.
func (g *Gateway) Address() netip.AddrPort { return g.socket.LocalAddr().(*net.UDPAddr).AddrPort() }

// Run serves until ctx ends.
func (g *Gateway) Run() error {
	var wg sync.WaitGroup
	wg.Go(g.write)
	wg.Go(func() { clock.Every(g.ctx, tick, g.checkNow) })
	if g.config.AdvertiseSeconds > 0 {
		wg.Go(g.advertise)
	}
	if g.config.Mode == mqttsn.Aggregating {
		g.own.begin()
	}
	stop := context.AfterFunc(g.ctx, func() { _ = g.socket.SetReadDeadline(time.Now()) })
	defer stop()
	err := g.read()
	if g.ctx.Err() != nil {
		err = nil
	}
	g.end()
	wg.Wait()
	return errors.Join(err, g.socket.Close())
}

// end disconnects from the broker and the clients, which then search for another gateway at once.
func (g *Gateway) end() {
	var open []*brokerConn
	g.mu.Lock()
	for _, s := range g.clients {
		if s.state != stateAway && s.state != stateAsleep {
			if b, err := s.peer.encode(&wire.Disconnect{}); err == nil {
				_ = g.put(datagram{to: s.peer.address, from: s.peer.local, bytes: b})
			}
		}
		if s.up == nil {
			continue
		}
		s.up.end(true)
		if t, ok := s.up.(*transparent); ok && t.conn != nil {
			open = append(open, t.conn)
		}
	}
	g.mu.Unlock()
	shutAll(open, disconnectTimeout)
	g.own.end()
}

// shutAll waits for connections to end, and closes those that have not ended after a time.
func shutAll(open []*brokerConn, after time.Duration) {
	limit, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	for _, conn := range open {
		select {
		case <-conn.closed:
		case <-limit.Done():
			conn.shut()
		}
	}
}

func (g *Gateway) read() error {
	buffer, control := make([]byte, wire.MaxDatagram+1), make([]byte, 128)
	for {
		n, controlled, _, from, err := g.socket.ReadMsgUDPAddrPort(buffer, control)
		if err != nil {
			if g.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return err
			}
			continue // an ICMP error for an earlier datagram
		}
		// Packets reference parts of the read buffer.
		local, _ := quietio.Destination(control[:controlled])
		g.datagram(peer{address: netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), local: local}, append([]byte(nil), buffer[:n]...))
	}
}

func (g *Gateway) datagram(client peer, b []byte) {
	if wire.IsForward(b) {
		f, err := wire.ParseForward(b)
		if err != nil {
			g.metrics.dropped.WithLabelValues(dropMalformed).Inc()
			return
		}
		client.node, client.forwarded, b = string(f.Node), true, f.Packet
	}
	p, err := wire.Parse(b)
	if err != nil {
		g.metrics.dropped.WithLabelValues(dropMalformed).Inc()
		return
	}
	g.metrics.received.WithLabelValues(wire.TypeOf(p).String()).Inc()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.packet(client, p)
}

// packet passes a packet to its session, if it needs one.
func (g *Gateway) packet(from peer, p wire.Packet) {
	s := g.peers[from]
	if s != nil {
		s.lastReceived = g.now()
	}
	switch p := p.(type) {
	case *wire.SearchGW:
		g.sendTo(from, &wire.GWInfo{GatewayID: g.config.GatewayID})
		return
	case *wire.Advertise, *wire.GWInfo:
		return // from other gateways, and clients that advertise them
	case *wire.Connect:
		g.connect(from, p)
		return
	case *wire.Publish:
		if p.QoS == mqttsn.QoSMinusOne {
			g.publishMinusOne(from, p)
			return
		}
	case *wire.Pingreq:
		if other := g.clients[p.ClientID]; p.ClientID != "" && s == nil && other != nil && other.state == stateAsleep {
			g.move(other, from) // a client may have another port after it slept
			s = other
			s.lastReceived = g.now()
		}
	}
	switch {
	case s != nil:
		s.packet(p)
	case wire.TypeOf(p) == wire.TypeDisconnect:
		g.sendTo(from, &wire.Disconnect{}) // it has left already, and missed the answer
	case requests[wire.TypeOf(p)]:
		// The gateway was restarted, or has dropped the client.
		g.metrics.dropped.WithLabelValues(dropUnexpected).Inc()
		g.sendTo(from, &wire.Disconnect{})
	default:
		g.metrics.dropped.WithLabelValues(dropUnexpected).Inc()
	}
}

// requests are packets that tell a client without a session to connect.
var requests = map[wire.Type]bool{
	wire.TypeRegister: true, wire.TypePublish: true, wire.TypePubrel: true, wire.TypeSubscribe: true, wire.TypeUnsubscribe: true,
	wire.TypePingreq: true, wire.TypeWillTopicUpd: true, wire.TypeWillMsgUpd: true,
}

func (g *Gateway) publishMinusOne(from peer, p *wire.Publish) {
	topic, known := "", true
	switch p.Kind {
	case wire.Predefined:
		topic, known = g.predefined[p.TopicID]
	case wire.Short:
		topic = mqttsn.LongName(p.TopicID)
	default:
		known = false
	}
	if !known || !validTopic(topic) {
		g.metrics.dropped.WithLabelValues(dropTopic).Inc()
		g.sendTo(from, &wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID, Code: wire.InvalidTopicID})
		return
	}
	g.own.begin()
	g.own.publishOwn(message{topic: topic, payload: p.Data, retain: p.Retain})
}

// connect makes or resumes a session.
func (g *Gateway) connect(from peer, p *wire.Connect) {
	if at := g.peers[from]; at != nil && at.clientID != p.ClientID {
		at.endLost("another client has its address")
	}
	old := g.clients[p.ClientID]
	if old != nil && old.resumes(from, p) {
		return
	}
	if old != nil && old.persists() && !p.CleanSession {
		old.up.end(true)
		old.suspend()
		old.resumes(from, p)
		return
	}
	if old != nil {
		old.replace()
	}
	if len(g.clients) >= g.config.MaxClients && !g.evict() {
		g.metrics.refused.Inc()
		g.sendTo(from, &wire.Connack{Code: wire.Congestion})
		return
	}
	s := newSession(g, from, p)
	g.clients[p.ClientID], g.peers[from] = s, s
	s.begin(p)
}

// evict makes room: it drops the client that is away for longest, or the one that has owed its will for longest.
func (g *Gateway) evict() bool {
	for _, state := range []state{stateAway, stateWill} {
		var oldest *session
		for _, s := range g.clients {
			if s.state == state && (oldest == nil || s.lastReceived.Before(oldest.lastReceived)) {
				oldest = s
			}
		}
		if oldest != nil {
			oldest.forget()
			return true
		}
	}
	return false
}

// move gives a session another address.
func (g *Gateway) move(s *session, to peer) {
	if g.peers[s.peer] == s {
		delete(g.peers, s.peer)
	}
	s.peer = to
	g.peers[to] = s
}

// sendTo sends a packet to an address, which may have no session.
func (g *Gateway) sendTo(to peer, p wire.Packet) {
	b, err := to.encode(p)
	if err != nil {
		g.metrics.dropped.WithLabelValues(dropTooLarge).Inc()
		return
	}
	select {
	case g.out <- datagram{to: to.address, from: to.local, bytes: b}:
		g.metrics.sent.WithLabelValues(wire.TypeOf(p).String()).Inc()
	default:
		g.metrics.dropped.WithLabelValues(dropSendQueue).Inc()
	}
}

func (g *Gateway) write() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case d := <-g.out:
			if g.put(d) != nil {
				g.metrics.dropped.WithLabelValues(dropSendQueue).Inc()
			}
		}
	}
}

// put writes a datagram to the socket.
func (g *Gateway) put(d datagram) error {
	var control []byte
	if d.from.IsValid() {
		control = unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: d.from.As4()})
	}
	_ = g.socket.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _, err := g.socket.WriteMsgUDPAddrPort(d.bytes, control, d.to)
	return err
}

func (g *Gateway) checkNow() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.check(g.now())
}

// check checks time-outs.
func (g *Gateway) check(now time.Time) {
	states := map[state]int{}
	for _, s := range g.clients {
		s.check(now)
		states[s.state]++
	}
	for state, name := range stateNames {
		g.metrics.clients.WithLabelValues(name).Set(float64(states[state]))
	}
	g.metrics.topics.Set(float64(g.topics))
	g.metrics.queued.Set(float64(g.queued))
	g.metrics.queuedBytes.Set(float64(g.queuedBytes))
}

// advertise broadcasts on all of the host's networks.
func (g *Gateway) advertise() {
	period := time.Duration(g.config.AdvertiseSeconds) * time.Second
	b, _ := wire.Append(nil, &wire.Advertise{GatewayID: g.config.GatewayID, DurationSeconds: uint16(g.config.AdvertiseSeconds)})
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		for _, to := range broadcasts(g.Address().Port(), g.config.AdvertiseNotOn) {
			select {
			case g.out <- datagram{to: to, bytes: b}:
				g.metrics.sent.WithLabelValues(wire.TypeAdvertise.String()).Inc()
			default:
				g.metrics.dropped.WithLabelValues(dropSendQueue).Inc()
			}
		}
		select {
		case <-g.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// broadcasts returns the broadcast addresses of the host's networks but one.
func broadcasts(port uint16, except string) (to []netip.AddrPort) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagBroadcast == 0 || i.Name == except {
			continue
		}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok {
				if b, ok := broadcastOf(n); ok {
					to = append(to, netip.AddrPortFrom(b, port))
				}
			}
		}
	}
	return to
}

func broadcastOf(n *net.IPNet) (netip.Addr, bool) {
	ip := n.IP.To4()
	if ip == nil || len(n.Mask) != net.IPv4len {
		return netip.Addr{}, false
	}
	if ones, _ := n.Mask.Size(); ones > 30 {
		return netip.Addr{}, false
	}
	var b [4]byte
	for i := range b {
		b[i] = ip[i] | ^n.Mask[i]
	}
	return netip.AddrFrom4(b), true
}

// maxPayload is the largest payload to a client in one datagram.
const maxPayload = wire.MaxDatagram - wire.PublishHeader
