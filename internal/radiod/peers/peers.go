package peers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"vignette.dev/vignette/internal/clock"
)

const (
	// exchangeInterval of time stamps with each peer.
	exchangeInterval = 50 * time.Millisecond
	// LostAfter is the time without an authentic datagram after which a peer is lost. A new peer has
	// firstAfter, because it may not know this host yet.
	LostAfter  = time.Second
	firstAfter = 5 * time.Second
	// retryAfter is the time without a datagram after which a new session begins, because the peer may have
	// restarted.
	retryAfter = 300 * time.Millisecond
	// rekeyAfter is the age at which a session is replaced. The old one is kept for datagrams under way.
	rekeyAfter  = 20 * time.Minute
	keepSession = 10 * time.Second
	queueLength = 1024
	minimumMTU  = 576
	// handshakesPerPeer may begin each second: a peer begins one every 300 ms. strangersMax is for all other addresses
	// together, from which a peer with several addresses may come.
	handshakesPerPeer = 10
	strangersMax      = 50
	// ipOverhead of a datagram: UDP's header and IPv6's, the longer one.
	ipOverhead = 8 + 40
	// complainEvery is the time between two complaints of handshakes with one peer in the log.
	complainEvery = 10 * time.Second
)

// The kinds of plaintexts.
const (
	plainPart    = 1
	plainRequest = 2
	plainAnswer  = 3
)

// Conn carries datagrams; a *net.UDPConn is one.
type Conn interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	Close() error
}

// Options of Peers.
type Options struct {
	// Host is this host's name.
	Host string
	Key  PrivateKey
	Conn Conn
	// Now reads the clock that is compared with peers', Realtime CLOCK_REALTIME, in nanoseconds.
	Now, Realtime func() int64
	// MTU of the path to a peer; nil asks the kernel.
	MTU func(to netip.AddrPort) int
	// Receive takes a peer's message on the reader's goroutine. message is only valid until it returns.
	Receive func(from string, message []byte)
	// Changed is called on the ticker's goroutine when a peer is lost or reachable again.
	Changed func(Change)
	Log     *slog.Logger
}

// Change of a peer. Heard is when it was last heard, by CLOCK_REALTIME, 0 for never. Lost are the messages lost since it is a peer.
type Change struct {
	Host      string
	Reachable bool
	Heard     int64
	Lost      uint64
}

// Address of a peer, and the public key that it has. Embedded, AddrPort would make package gob leave out the key.
type Address struct {
	UDP netip.AddrPort
	Key Key
}

// Peers of this host.
type Peers struct {
	Options
	strangers *rate.Limiter
	rejected  atomic.Uint64

	mu       sync.Mutex
	peers    map[string]*Peer
	byKey    map[Key]*Peer
	sessions map[uint32]*session
}

// Peer is another host's radiod.
type Peer struct {
	host      string
	owner     *Peers
	initiator bool // we begin handshakes
	queue     chan []byte
	buffers   chan []byte
	removed   chan struct{}
	sent      atomic.Uint64
	lost      atomic.Uint64
	missed    atomic.Int64
	partRoom  atomic.Int64 // for a part in a datagram

	// The rest is protected by the owner's lock.
	address    netip.AddrPort
	key        Key
	handshakes *rate.Limiter
	current    *session
	handshake  *initiation
	filter     clockFilter
	heard      int64 // by Now
	heardAt    int64 // by Realtime
	since      int64
	isLost     bool
	// complaints of handshakes that cannot begin, which are tried 20 times a second.
	complaints rate.Sometimes
}

// New makes Peers with a connection that Run uses and closes.
func New(options Options) *Peers {
	if options.MTU == nil {
		options.MTU = pathMTU
	}
	return &Peers{Options: options, strangers: rate.NewLimiter(strangersMax, strangersMax), peers: map[string]*Peer{}, byKey: map[Key]*Peer{}, sessions: map[uint32]*session{}}
}

// Listen opens the connection for an address.
func Listen(address string) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			// Without these options bursts may be lost, which is counted, and a wrong MTU causes fragments.
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 8<<20)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
		})
	}}
	conn, err := config.ListenPacket(context.Background(), "udp", address)
	if err != nil {
		return nil, fmt.Errorf("peers at %s: %w", address, err)
	}
	return conn.(*net.UDPConn), nil //nolint:forcetypeassert // of UDP
}

// pathMTU returns the MTU to an address that the kernel knows.
func pathMTU(to netip.AddrPort) int {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	mtu := 0
	_ = raw.Control(func(fd uintptr) {
		level, option := unix.IPPROTO_IP, unix.IP_MTU
		if to.Addr().Is6() && !to.Addr().Is4In6() {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
		}
		mtu, _ = unix.GetsockoptInt(int(fd), level, option)
	})
	return mtu
}

// Set sets all peers, by host. New and changed ones are greeted at once.
func (p *Peers) Set(all map[string]Address) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for host, peer := range p.peers {
		if a, ok := all[host]; !ok || a.Key != peer.key || a.UDP != peer.address {
			p.reset(peer, !ok)
		}
	}
	for host, a := range all {
		peer := p.peers[host]
		if peer == nil {
			peer = &Peer{host: host, owner: p, initiator: p.Host < host, queue: make(chan []byte, queueLength),
				buffers: make(chan []byte, queueLength), removed: make(chan struct{}), handshakes: rate.NewLimiter(handshakesPerPeer, handshakesPerPeer), complaints: rate.Sometimes{Interval: complainEvery}}
			p.peers[host] = peer
			go peer.run()
		}
		if peer.since == 0 {
			peer.address, peer.key, peer.since = a.UDP, a.Key, p.Now()
			p.byKey[a.Key] = peer
			p.measureMTU(peer, peer.address)
			p.maintain(peer, peer.since)
		}
	}
}

// reset forgets a peer's sessions and clock; the lock is held.
func (p *Peers) reset(peer *Peer, entirely bool) {
	maps.DeleteFunc(p.sessions, func(_ uint32, s *session) bool { return s.peer == peer })
	if p.byKey[peer.key] == peer {
		delete(p.byKey, peer.key)
	}
	peer.current, peer.handshake, peer.since, peer.filter = nil, nil, 0, clockFilter{} // after a boot its clock starts again
	if entirely {
		delete(p.peers, peer.host)
		close(peer.removed)
	}
}

// measureMTU updates how much a datagram to a peer at an address may hold.
func (p *Peers) measureMTU(peer *Peer, address netip.AddrPort) {
	mtu := max(p.MTU(address), minimumMTU)
	peer.partRoom.Store(int64(min(mtu, 65535) - ipOverhead - dataHeader - tagLength - 1 - partHeader))
}

// Peer of a host, or nil.
func (p *Peers) Peer(host string) *Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peers[host]
}

// Run receives and sends until ctx ends.
func (p *Peers) Run(ctx context.Context) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	stop := context.AfterFunc(ctx, func() { _ = p.Conn.Close() })
	defer stop()
	wait.Go(func() { clock.Every(ctx, exchangeInterval, p.tick) })
	buffer, plain := make([]byte, 65536), make([]byte, 65536)
	for {
		n, from, err := p.Conn.ReadFromUDPAddrPort(buffer)
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			p.Set(nil)
			return nil
		}
		if err != nil {
			continue // such as an ICMP message that the port is closed: the peer is lost then
		}
		if err := p.handleDatagram(buffer[:n], plain, from, p.Now()); err != nil {
			p.rejected.Add(1)
			p.Log.Debug("datagram rejected", "from", from, "error", err)
		}
	}
}

var errShort = errors.New("datagram: it is too short")

func (p *Peers) handleDatagram(datagram, plain []byte, from netip.AddrPort, now int64) error {
	switch {
	case len(datagram) < 5:
		return errShort
	case datagram[0] == datagramInitiation:
		return p.respond(datagram, from, now)
	case datagram[0] == datagramResponse:
		return p.complete(datagram, now)
	case datagram[0] != datagramData || len(datagram) < dataHeader+tagLength+1:
		return errShort
	}
	p.mu.Lock()
	s := p.sessions[binary.BigEndian.Uint32(datagram[1:])]
	p.mu.Unlock()
	if s == nil {
		return errors.New("datagram: its session is not known")
	}
	plaintext, err := s.open(plain, datagram)
	if err != nil {
		return err
	}
	p.confirm(s, now)
	return p.handlePlaintext(s, plaintext, now)
}

// confirm records that a peer has used a session.
func (p *Peers) confirm(s *session, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.peer.heard, s.peer.heardAt = now, p.Realtime()
	if !s.confirmed {
		s.confirmed, s.peer.current = true, s
	}
}

func (p *Peers) handlePlaintext(s *session, plaintext []byte, now int64) error {
	peer, body := s.peer, plaintext[1:]
	switch plaintext[0] {
	case plainPart:
		if message, ok := s.assembly.add(body); ok {
			p.Receive(peer.host, message)
		}
		return nil
	case plainRequest:
		if len(body) < 8 {
			return errShort
		}
		p.answer(peer, body[:8], now)
		return nil
	case plainAnswer:
		if len(body) < 32 {
			return errShort
		}
		at := func(i int) int64 { return int64(binary.BigEndian.Uint64(body[8*i:])) } //nolint:gosec // as it was written
		p.mu.Lock()
		defer p.mu.Unlock()
		peer.filter.add(exchange{sent: at(0), peerReceived: at(1), peerSent: at(2), received: now, realtime: at(3)})
		return nil
	default:
		return fmt.Errorf("plaintext of kind %d: want %d to %d", plaintext[0], plainPart, plainAnswer)
	}
}

func (p *Peers) request(peer *Peer) {
	p.sendSmall(peer, binary.BigEndian.AppendUint64([]byte{plainRequest}, uint64(p.Now()))) //nolint:gosec // any mapping does
}

func (p *Peers) answer(peer *Peer, sent []byte, received int64) {
	b := append([]byte{plainAnswer}, sent...)
	now := p.Now()
	for _, t := range []int64{received, now, p.Realtime() - now} {
		b = binary.BigEndian.AppendUint64(b, uint64(t)) //nolint:gosec // any mapping does
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sendSmall(peer, b)
}

// sendSmall sends a plaintext in one datagram; the lock is held.
func (p *Peers) sendSmall(peer *Peer, plaintext []byte) {
	if peer.current != nil {
		p.write(peer, peer.current.seal(nil, plaintext))
	}
}

// write sends a datagram. The receiver notices if it does not arrive.
func (p *Peers) write(peer *Peer, datagram []byte) {
	_, _ = p.Conn.WriteToUDPAddrPort(datagram, peer.address)
}

func (p *Peers) tick() {
	for _, change := range p.maintainAll() {
		p.Changed(change)
	}
}

func (p *Peers) maintainAll() (changes []Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	maps.DeleteFunc(p.sessions, func(_ uint32, s *session) bool {
		return s != s.peer.current && now-s.createdAt > int64(keepSession+rekeyAfter) || !s.confirmed && now-s.createdAt > int64(keepSession)
	})
	for _, peer := range p.peers {
		p.maintain(peer, now)
		if lost := peer.isMissing(now); lost != peer.isLost {
			peer.isLost = lost
			changes = append(changes, Change{peer.host, !lost, peer.heardAt, peer.lost.Load()})
		}
	}
	return changes
}

// isMissing reports whether nothing has come for too long.
func (peer *Peer) isMissing(now int64) bool {
	if peer.heard == 0 {
		return now-peer.since > int64(firstAfter)
	}
	return now-peer.heard > int64(LostAfter)
}

// maintain begins a handshake if needed, and requests the time; the lock is held.
func (p *Peers) maintain(peer *Peer, now int64) {
	s := peer.current
	stale := s == nil || now-s.createdAt > int64(rekeyAfter) || now-max(peer.heard, s.createdAt) > int64(retryAfter)
	if peer.initiator && stale && (peer.handshake == nil || now-peer.handshake.begun > int64(retryAfter)) {
		if err := p.initiate(peer, now); err != nil {
			peer.complaints.Do(func() { p.Log.Error("handshake", "host", peer.host, "error", err) })
		}
	}
	p.request(peer)
}

// Buffer returns memory for a message. It does not block, and reuses memory of sent messages.
func (peer *Peer) Buffer() []byte {
	select {
	case b := <-peer.buffers:
		return b[:0]
	default:
		return make([]byte, 0, 2048)
	}
}

// Send queues a message and takes its memory. It does not block. Messages that cannot be sent are counted as
// lost.
func (peer *Peer) Send(message []byte) {
	select {
	case peer.queue <- message:
	default:
		peer.lost.Add(1)
	}
}

// run sends queued messages.
func (peer *Peer) run() {
	var number uint32
	plain, datagram := make([]byte, 0, 65536), make([]byte, 0, 65536)
	for {
		select {
		case <-peer.removed:
			return
		case message := <-peer.queue:
			if peer.transmit(message, number, plain, datagram) {
				peer.sent.Add(1)
			} else {
				peer.lost.Add(1)
			}
			number++
			select {
			case peer.buffers <- message:
			default:
			}
		}
	}
}

// transmit sends a message in as many datagrams as it needs.
func (peer *Peer) transmit(message []byte, number uint32, plain, datagram []byte) bool {
	p := peer.owner
	p.mu.Lock()
	s, address, lost := peer.current, peer.address, peer.isLost
	p.mu.Unlock()
	room := int(peer.partRoom.Load())
	parts := partsOf(len(message), room)
	if s == nil || lost || parts > maxParts {
		return false
	}
	for part := range parts {
		body := message[part*room : min((part+1)*room, len(message))]
		plain = append(putPartHeader(append(plain[:0], plainPart), number, part, parts), body...)
		if _, err := p.Conn.WriteToUDPAddrPort(s.seal(datagram, plain), address); err != nil {
			if errors.Is(err, unix.EMSGSIZE) {
				p.measureMTU(peer, address) // the path has become narrower
			}
			return false
		}
	}
	return true
}

// State of a peer.
type State struct {
	Host string
	// Reachable reports whether an authentic datagram has come lately.
	Reachable bool
	Clock     Clock
	// Sent messages, and Lost ones: no session, a lost peer, a full queue, or a refusal by the kernel.
	Sent, Lost uint64
	// Missing datagrams of the peer.
	Missing uint64
}

// States of all peers.
func (p *Peers) States() (all []State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, realtime := p.Now(), p.Realtime()
	for _, peer := range p.peers {
		all = append(all, State{Host: peer.host, Reachable: peer.heard != 0 && !peer.isLost,
			Clock: peer.filter.at(now, realtime-now), Sent: peer.sent.Load(), Lost: peer.lost.Load(), Missing: uint64(max(peer.missed.Load(), 0))})
	}
	return all
}

// Clock returns the current estimate of a peer's clock.
func (peer *Peer) Clock() Clock {
	p := peer.owner
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	return peer.filter.at(now, p.Realtime()-now)
}

// IsLost reports whether nothing has come from a peer for too long.
func (peer *Peer) IsLost() bool {
	peer.owner.mu.Lock()
	defer peer.owner.mu.Unlock()
	return peer.isLost
}

// Rejected datagrams: not authentic, replayed, or of no known session.
func (p *Peers) Rejected() uint64 { return p.rejected.Load() }
