package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"vignette.dev/vignette/internal/safetext"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/request"
)

const (
	// MaxDatagram is the largest content of an IPv4 datagram: 65535 bytes less the headers of IP and UDP.
	MaxDatagram = 65507
	// scheme of addresses in envelopes (SOAP-over-UDP 1.1).
	scheme = "soap.udp://"
	// maxAddressees of a client, each of which has a socket.
	maxAddressees = 4096
	// maxHandled at once by a server. Further datagrams wait in the kernel.
	maxHandled = 256
	// pauseAfterError of a socket, as it may be there for good.
	pauseAfterError = 10 * time.Millisecond
)

// repetition is the rule by which a message is sent again: after a random time of the shortest to the longest, then after twice that, up to the upper.
type repetition struct {
	unicast, multicast       int
	shortest, longest, upper time.Duration
}

// standard has the values of SOAP-over-UDP 1.1: UNICAST_UDP_REPEAT, MULTICAST_UDP_REPEAT, UDP_MIN_DELAY, UDP_MAX_DELAY and UDP_UPPER_DELAY.
var standard = repetition{unicast: 1, multicast: 2, shortest: 50 * time.Millisecond, longest: 250 * time.Millisecond, upper: 500 * time.Millisecond}

const maxRepeat = 20

func repetitionOf(o request.SOAPOptions) (repetition, error) {
	r := standard
	for name, option := range map[string]struct{ from, to *int }{"unicastRepeat": {o.UnicastRepeat, &r.unicast}, "multicastRepeat": {o.MulticastRepeat, &r.multicast}} {
		if option.from == nil {
			continue
		}
		if *option.to = *option.from; *option.to < 0 || *option.to > maxRepeat {
			return r, fmt.Errorf("%s %d: want 0 to %d", name, *option.to, maxRepeat)
		}
	}
	return r, nil
}

// overUDP implements request.Peer.
type overUDP struct {
	setup    request.Setup
	warnOnce sync.Once
	repeat   repetition
	timeout  time.Duration
	seen     *seen
	slots    chan struct{}
	running  *request.Running

	mu      sync.Mutex
	random  *rand.Rand
	links   map[string]*link
	sockets []*net.UDPConn
}

// OpenUDP is a request.Open for SOAP-over-UDP.
func OpenUDP(s request.Setup) (request.Peer, error) {
	repeat, err := repetitionOf(s.SOAP)
	if err != nil {
		return nil, err
	}
	if err := checkEncoding(s.SOAP.Envelope); err != nil {
		return nil, err
	}
	if s.TimeoutSeconds <= 0 {
		return nil, fmt.Errorf("timeout %v s: want more than 0", s.TimeoutSeconds)
	}
	if s.Warn == nil {
		s.Warn = func(string) {}
	}
	p := &overUDP{
		setup: s, repeat: repeat, timeout: time.Duration(s.TimeoutSeconds * float64(time.Second)), seen: newSeen(), slots: make(chan struct{}, maxHandled),
		running: request.NewRunning(),
		random:  rand.New(rand.NewPCG(uint64(s.Seed), 0x736f6170)), links: map[string]*link{}, //nolint:gosec // any number is a seed
	}
	if s.Listen != "" {
		if err := p.listen(); err != nil {
			p.Close(context.Background())
			return nil, err
		}
	}
	return p, nil
}

// delays returns the times between a message's transmissions.
func (p *overUDP) delays(count int) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	delays := make([]time.Duration, count)
	delay := p.repeat.shortest + time.Duration(p.random.Int64N(int64(p.repeat.longest-p.repeat.shortest)+1))
	for i := range delays {
		delays[i] = delay
		delay = min(2*delay, p.repeat.upper)
	}
	return delays
}

// Close implements request.Peer.
func (p *overUDP) Close(ctx context.Context) {
	p.running.Stop()
	p.mu.Lock()
	for _, socket := range p.sockets {
		socket.Close()
	}
	for _, l := range p.links {
		l.socket.Close()
	}
	p.mu.Unlock()
	p.running.Wait(ctx)
}

// Do implements request.Peer.
func (p *overUDP) Do(ctx context.Context, to string, r request.Request, e request.Events) (request.Response, time.Time, error) {
	ctx, end, err := p.running.Request(ctx, p.timeout)
	if err != nil {
		return request.Response{}, time.Time{}, err
	}
	defer end()
	response, at, failure := p.exchange(ctx, to, r, e)
	if failure != nil {
		return response, at, failure
	}
	return response, at, nil
}

func (p *overUDP) exchange(ctx context.Context, to string, r request.Request, e request.Events) (response request.Response, at time.Time, failure *request.Failure) {
	l, failure := p.link(ctx, to)
	if failure != nil {
		return response, at, failure
	}
	receipt, repeats := p.setup.Receipt, p.repeat.unicast
	if l.multicast {
		receipt, repeats = false, p.repeat.multicast
	}
	datagram, id, err := p.datagram(to, r, receipt)
	if err != nil {
		return response, at, request.Failed(request.Invalid, err.Error())
	}
	if l.multicast {
		// The group's members include this peer, so that it receives its own message.
		p.seen.add(id)
	}
	arrived := l.expect(id, datagram)
	defer l.forget(id)
	sent, failure := l.send(datagram, id)
	if failure != nil {
		return response, at, failure
	}
	report(e.Sent, sent)
	a := p.await(ctx, l, datagram, arrived, receipt, repeats, e)
	if a.failure != nil || a.message == nil {
		return response, at, a.failure
	}
	response, failure = responseOf(a.message, nil, id)
	return response, a.at, failure
}

// await sends a datagram again by the rule until a reply arrives, and waits for it if there is to be one.
func (p *overUDP) await(ctx context.Context, l *link, datagram []byte, arrived <-chan arrival, receipt bool, repeats int, e request.Events) arrival {
	delays := p.delays(repeats)
	for receipt || len(delays) > 0 {
		var again <-chan time.Time
		if len(delays) > 0 {
			again = time.After(delays[0])
		}
		select {
		case a := <-arrived:
			return a
		case <-again:
			delays = delays[1:]
			if at, failure := l.send(datagram, ""); failure == nil {
				report(e.Retransmitted, at)
			}
		case <-ctx.Done():
			if !receipt {
				return arrival{} // it is sent
			}
			return arrival{failure: request.ContextFailure(ctx)}
		}
	}
	return arrival{}
}

func report(event func(time.Time), at time.Time) {
	if event != nil {
		event(at)
	}
}

// datagram makes a request's datagram.
func (p *overUDP) datagram(to string, r request.Request, receipt bool) (datagram []byte, id string, err error) {
	envelope, id, err := newRequest(scheme+to+r.Path, r, receipt)
	if err != nil {
		return nil, "", err
	}
	datagram, err = encode(p.setup.SOAP.Envelope, envelope)
	if err == nil && len(datagram) > MaxDatagram {
		err = fmt.Errorf("an envelope of %d bytes: want at most %d, as it is one datagram", len(datagram), MaxDatagram)
	}
	return datagram, id, err
}

// link is a client's socket to one addressee or group. The kernel tells on it that nobody serves there.
type link struct {
	socket    *net.UDPConn
	multicast bool

	mu      sync.Mutex
	waiting map[string]waiting
}

// waiting is a request that waits for its reply.
type waiting struct {
	arrived  chan arrival
	datagram []byte
}

// arrival is what came of a request.
type arrival struct {
	at      time.Time
	message *soap.Message
	failure *request.Failure
}

// link returns that to an addressee.
func (p *overUDP) link(ctx context.Context, to string) (*link, *request.Failure) {
	p.mu.Lock()
	l, known := p.links[to]
	count := len(p.links)
	p.mu.Unlock()
	switch host, port, err := net.SplitHostPort(to); {
	case known:
		return l, nil
	case err != nil || host == "" || port == "":
		return nil, request.Failed(request.Invalid, fmt.Sprintf("addressee %q: want host:port", safetext.Truncate(to)))
	case count >= maxAddressees:
		return nil, request.Failed(request.Invalid, fmt.Sprintf("more than %d addressees", maxAddressees))
	}
	dialer := net.Dialer{Control: control(p.setup.Interface, false)}
	socket, err := dialer.DialContext(ctx, "udp4", to)
	if err != nil {
		for _, failure := range []*request.Failure{request.ContextFailure(ctx), request.NetworkFailure(err)} {
			if failure != nil {
				return nil, failure
			}
		}
		return nil, request.Failed(request.Invalid, fmt.Sprintf("addressee %q: want host:port of IPv4", safetext.Truncate(to)))
	}
	l = &link{socket: socket.(*net.UDPConn), waiting: map[string]waiting{}}
	l.multicast = l.socket.RemoteAddr().(*net.UDPAddr).AddrPort().Addr().IsMulticast()
	return p.keep(to, l)
}

// keep keeps a link, unless another request made one meanwhile.
func (p *overUDP) keep(to string, l *link) (*link, *request.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, known := p.links[to]; known {
		l.socket.Close()
		return other, nil
	}
	if p.running.Context().Err() != nil {
		l.socket.Close()
		return nil, request.Failed(request.Cancelled, "")
	}
	p.links[to] = l
	p.running.Go(func() { l.receive(p) })
	return l, nil
}

func (l *link) expect(id string, datagram []byte) <-chan arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Room for one, and only one is ever put in.
	arrived := make(chan arrival, 1)
	l.waiting[id] = waiting{arrived, datagram}
	return arrived
}

func (l *link) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// send sends a datagram, and returns the time before. It is the first of a new request, or, without one, a copy.
func (l *link) send(datagram []byte, newRequest string) (time.Time, *request.Failure) {
	for attempt := 0; ; attempt++ {
		at := time.Now()
		_, err := l.socket.Write(datagram)
		switch {
		case err == nil:
			return at, nil
		case errors.Is(err, net.ErrClosed):
			return at, request.Failed(request.Cancelled, "")
		case attempt < 3:
			// The kernel may tell this of an earlier datagram, and has not sent this one.
			l.readRefusals(newRequest)
		default:
			if failure := request.NetworkFailure(err); failure != nil {
				return at, failure
			}
			return at, request.Failed(request.Unreachable, "the datagram cannot be sent")
		}
	}
}

// receive gives replies to the requests that wait for them, until the socket is closed. Copies of a reply wait for nobody any more.
func (l *link) receive(p *overUDP) {
	type reply struct {
		at       time.Time
		datagram []byte
	}
	// Reading an envelope takes longer than a datagram may take to come.
	replies := make(chan reply, maxHandled)
	var reader sync.WaitGroup
	reader.Go(func() {
		for r := range replies {
			if m, err := parse(encodingOf(r.datagram), r.datagram); err == nil {
				l.arrive(r.at, m)
			}
		}
	})
	p.read(l.socket, func() { l.readRefusals("") }, func(at time.Time, datagram []byte, _ correspondents) { replies <- reply{at, datagram} })
	close(replies)
	reader.Wait()
}

// readRefusals fails the requests whose datagrams were refused, by what ICMP quotes of them. Several may begin with a short quote;
// one that is not sent yet is none of them.
func (l *link) readRefusals(unsent string) {
	request.ReadRefusals(l.socket, func(failure *request.Failure, quote []byte) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for id, w := range l.waiting {
			if id != unsent && bytes.HasPrefix(w.datagram, quote) {
				w.arrived <- arrival{failure: failure}
				delete(l.waiting, id)
			}
		}
	})
}

func (l *link) arrive(at time.Time, m *soap.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w, ok := l.waiting[m.RelatesTo]; ok {
		w.arrived <- arrival{at: at, message: m}
		delete(l.waiting, m.RelatesTo)
	}
}

// isGroup reports whether an address is that of a multicast group of IPv4.
func isGroup(address string) bool {
	group, err := netip.ParseAddr(address)
	return err == nil && group.Is4() && group.IsMulticast()
}
