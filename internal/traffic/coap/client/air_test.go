package client

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/traffic/request"
)

// air is a network in memory. In a bubble of synctest its time is virtual.
type air struct {
	mu      sync.Mutex
	sockets map[netip.AddrPort]*airSocket
	// lose decides on each datagram; nil loses none.
	lose func(b []byte, from, to netip.AddrPort) bool
	// noRoute tells when nobody has a route; nil for never.
	noRoute func() bool
	// delay of a datagram after the medium is free, and how long it occupies the medium.
	delay     time.Duration
	perByte   time.Duration
	busyUntil time.Time
	next      uint16
	// sent has every datagram, those that are lost included.
	sent []datagram
}

// datagram without a content is an ICMP message about another one.
type datagram struct {
	from, to       netip.AddrPort
	content, quote []byte
}

func newAir() *air { return &air{sockets: map[netip.AddrPort]*airSocket{}, next: 40000} }

type airSocket struct {
	air     *air
	at      netip.AddrPort
	inbox   chan datagram
	closed  chan struct{}
	closing sync.Once
	// refused is what ICMP messages quoted.
	refused chan []byte
}

func (a *air) socket(at netip.AddrPort) *airSocket {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &airSocket{air: a, at: at, inbox: make(chan datagram, 4096), closed: make(chan struct{}), refused: make(chan []byte, 16)}
	a.sockets[at] = s
	return s
}

func (s *airSocket) read(b []byte) (int, origin, error) {
	select {
	case d := <-s.inbox:
		if d.content == nil {
			s.refused <- d.quote
			return 0, origin{}, syscall.ECONNREFUSED // the kernel got an ICMP message
		}
		return copy(b, d.content), origin{remote: d.from, multicast: d.to.Addr().IsMulticast()}, nil
	case <-s.closed:
		return 0, origin{}, net.ErrClosed
	}
}

func (s *airSocket) refusals(each func(*request.Failure, []byte)) {
	for len(s.refused) > 0 {
		each(request.Failed(request.Refused, ""), <-s.refused)
	}
}

func (s *airSocket) write(b []byte, to origin) error {
	a, d := s.air, datagram{from: s.at, to: to.remote, content: append([]byte(nil), b...)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.noRoute != nil && a.noRoute() {
		return syscall.ENETUNREACH
	}
	a.sent = append(a.sent, d)
	if now := time.Now(); a.busyUntil.Before(now) {
		a.busyUntil = now
	}
	a.busyUntil = a.busyUntil.Add(time.Duration(len(b)) * a.perByte)
	if a.lose != nil && a.lose(b, s.at, to.remote) {
		return nil
	}
	after(time.Until(a.busyUntil.Add(a.delay)), func() { a.deliver(d) })
	return nil
}

// after calls f in a goroutine of its own once d has passed.
// Timers of a bubble that are due at once run side by side in one context of the race detector, which crashes (Go 1.26).
func after(d time.Duration, f func()) {
	if d <= 0 {
		go f()
		return
	}
	time.AfterFunc(d, f)
}

func (a *air) deliver(d datagram) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, s := range a.sockets {
		if at == d.to || d.to.Addr().IsMulticast() && at.Port() == d.to.Port() {
			select {
			case s.inbox <- d:
			default:
			}
		}
	}
}

func (s *airSocket) close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}

// losing decides from now on which datagrams are lost.
func (a *air) losing(lose func(b []byte, from, to netip.AddrPort) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lose = lose
}

// count is how many datagrams were sent.
func (a *air) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sent)
}

// peer opens a peer on the network; without an address it has no server.
func (a *air) peer(t testing.TB, at string, set func(*request.Setup)) *Peer {
	t.Helper()
	setup := request.Setup{Receipt: true, TimeoutSeconds: 1000, Handler: echo, Warn: func(text string) { t.Log(text) }}
	if set != nil {
		set(&setup)
	}
	p, err := open(setup, func(c *core, _ request.Setup) (transport, error) {
		u := &udpTransport{core: c, remotes: map[netip.AddrPort]*remote{}, dial: func(netip.AddrPort) (socket, error) {
			a.mu.Lock()
			a.next++
			own := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), a.next)
			a.mu.Unlock()
			return a.socket(own), nil
		}}
		if at != "" {
			u.server = newEndpoint(c, a.socket(netip.MustParseAddrPort(at)))
		}
		return u, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// echo answers with what it got.
func echo(_ time.Time, r request.Request) request.Response {
	if r.Body == nil {
		return request.Response{Status: 200, Body: []byte("state of " + r.Path), ContentType: "text/plain"}
	}
	return request.Response{Status: 204, Body: r.Body, ContentType: r.ContentType, ContentEncoding: r.ContentEncoding}
}
