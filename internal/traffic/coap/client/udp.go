package client

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	"vignette.dev/vignette/internal/clock"
	limits "vignette.dev/vignette/internal/traffic/coap"
	"vignette.dev/vignette/internal/traffic/request"
)

const (
	// maxDatagram is that of UDP over IPv4.
	maxDatagram = 65507
	// maxAnswered is how many responses a client remembers, to recognize repetitions.
	maxAnswered = 1024
	// maxSpread is how many responses to multicast wait at a time. Others are not sent, as RFC 7252, section 8.2, allows.
	maxSpread = 1024
	// maxSeparate is how many confirmable responses wait for their acknowledgement at a time.
	maxSeparate = 1024
	// maxSeparateOfPeer is how many of them one address may have, so that a silent client leaves room for others: the largest NSTART.
	maxSeparateOfPeer = 64
)

// The largest body by multicast fits into one datagram, or this does not compile.
const _ = uint(maxDatagram - maxHeaderBytes - limits.MaxMulticastBytes)

// origin is the two ends of a datagram.
type origin struct {
	remote netip.AddrPort
	// local is the address that the datagram came to, and the response has to come from. Invalid: the socket's or the route's.
	local netip.Addr
	// multicast: the datagram came to a group.
	multicast bool
}

// socket carries datagrams.
type socket interface {
	read(b []byte) (n int, from origin, err error)
	write(b []byte, to origin) error
	// refusals calls each for the datagrams that were refused since the last call, with what is known of their beginning.
	refusals(each func(failure *request.Failure, quote []byte))
	close() error
}

// endpoint is the message layer of one socket (RFC 7252, section 4): confirmable messages, acknowledgements, repetitions.
type endpoint struct {
	*core
	socket    socket
	exchanges exchanges
	slots     slots[netip.AddrPort]
	// spreading counts the responses to multicast that wait.
	spreading atomic.Int32

	mu sync.Mutex
	// separate counts the confirmable responses that wait for their acknowledgement, separateOf those of each address.
	separate   int
	separateOf map[netip.Addr]int
	// id is that of the last message.
	id      uint16
	history *history
	// answered has when expected responses came, answeredList the same oldest first.
	answered     map[responseKey]time.Time
	answeredList []responseKey

	// expecting is the lock of outstanding, which write takes. It may be called under mu.
	expecting sync.Mutex
	// outstanding messages, for acknowledgements, resets and refusals.
	outstanding map[messageKey]*exchange
}

// responseKey identifies a response. A server that starts again uses its message ids again, but for other tokens.
type responseKey struct {
	messageKey
	token string
}

func newEndpoint(c *core, s socket) *endpoint {
	e := &endpoint{core: c, socket: s, id: uint16(c.random.integer()), outstanding: map[messageKey]*exchange{}, history: newHistory(c.options.lifetime()), answered: map[responseKey]time.Time{}, separateOf: map[netip.Addr]int{}}
	e.slots.limit = c.options.nstart
	c.running.Go(e.read)
	return e
}

func (e *endpoint) read() {
	buffer := make([]byte, maxDatagram+1)
	for {
		n, from, err := e.socket.read(buffer)
		at := time.Now()
		switch {
		case errors.Is(err, net.ErrClosed):
			e.exchanges.fail(request.Failed(request.Cancelled, ""))
			return
		case err != nil: // an ICMP message, of a connected socket
			e.readRefusals(nil)
			if request.NetworkFailure(err) == nil && !clock.Pause(e.ctx, 10*time.Millisecond) { // not again and again at once
				return
			}
			continue
		}
		e.receive(append([]byte(nil), buffer[:n]...), from, at)
	}
}

// readRefusals fails the requests whose datagrams were refused, by the message ids that ICMP quotes. A quote without one may be of any
// datagram but the unsent one.
func (e *endpoint) readRefusals(unsent []byte) {
	e.socket.refusals(func(failure *request.Failure, quote []byte) {
		e.expecting.Lock()
		defer e.expecting.Unlock()
		for key, x := range e.outstanding {
			if quotes(quote, key.id) || len(quote) < 4 && !quotes(unsent, key.id) {
				x.deliver(event{kind: failed, err: failure})
			}
		}
	})
}

// quotes reports whether a datagram begins a message of ours with an id. Acknowledgements and resets have the peer's ids.
func quotes(datagram []byte, id int32) bool {
	return len(datagram) >= 4 && message.Type(datagram[0]>>4&3) <= message.NonConfirmable && int32(binary.BigEndian.Uint16(datagram[2:])) == id
}

// receive handles a datagram.
func (e *endpoint) receive(datagram []byte, from origin, at time.Time) {
	m, err := parse(datagram)
	switch {
	case err != nil:
		if len(datagram) >= 4 && datagram[0]>>6 == 1 && m.Type == message.Confirmable && !from.multicast {
			e.control(message.Reset, m.MessageID, from)
		}
	case m.Code == codes.Empty:
		e.empty(m, from)
	case isRequest(m.Code) && (m.Type == message.Confirmable && !from.multicast || m.Type == message.NonConfirmable):
		e.request(m, datagram, from, at)
	case isResponse(m.Code) && m.Type != message.Reset && !from.multicast:
		e.response(m, from, at)
	case m.Type == message.Confirmable && !from.multicast: // a reserved code
		e.control(message.Reset, m.MessageID, from)
	}
}

// control sends an empty acknowledgement or a reset.
func (e *endpoint) control(t message.Type, id int32, to origin) {
	b, err := format(message.Message{Type: t, MessageID: id})
	if err == nil {
		_ = e.write(b, to)
	}
}

// empty handles acknowledgements, resets and pings.
func (e *endpoint) empty(m message.Message, from origin) {
	if m.Type == message.Confirmable && !from.multicast {
		e.control(message.Reset, m.MessageID, from) // the answer to a ping
		return
	}
	e.expecting.Lock()
	x := e.outstanding[messageKey{from.remote, m.MessageID}]
	e.expecting.Unlock()
	switch {
	case m.Type == message.Reset && x != nil:
		x.deliver(event{kind: failed, err: request.Failed(request.Reset, "the addressee reset the message")})
	case m.Type == message.Acknowledgement && x != nil:
		x.deliver(event{kind: acknowledged})
	}
}

// response hands a response to its exchange, and acknowledges it.
func (e *endpoint) response(m message.Message, from origin, at time.Time) {
	x := e.exchanges.find(m.Token)
	if x != nil && x.to.remote != from.remote {
		x = nil
	}
	key := messageKey{from.remote, m.MessageID}
	if m.Type == message.Acknowledgement {
		e.expecting.Lock()
		mine := e.outstanding[key] == x
		e.expecting.Unlock()
		if x != nil && mine {
			x.deliver(event{kind: responded, message: m, at: at})
		}
		return
	}
	repeated := e.remember(responseKey{key, string(m.Token)}, x != nil, at)
	switch {
	case m.Type == message.Confirmable && (repeated || x != nil):
		e.control(message.Acknowledgement, m.MessageID, from)
	case m.Type == message.Confirmable:
		e.control(message.Reset, m.MessageID, from)
	}
	if x != nil && !repeated {
		x.deliver(event{kind: responded, message: m, at: at})
	}
}

// remember keeps an expected response for the lifetime of messages, and reports whether it was kept before.
func (e *endpoint) remember(key responseKey, expected bool, at time.Time) (repeated bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.answeredList) > 0 && at.Sub(e.answered[e.answeredList[0]]) > e.options.lifetime() {
		e.dropOldestAnswered()
	}
	if _, repeated = e.answered[key]; repeated || !expected {
		return repeated
	}
	e.answered[key] = at
	e.answeredList = append(e.answeredList, key)
	if len(e.answeredList) > maxAnswered {
		e.dropOldestAnswered()
	}
	return false
}

func (e *endpoint) dropOldestAnswered() {
	delete(e.answered, e.answeredList[0])
	e.answeredList = e.answeredList[1:]
}

// request answers a request once, and repeats the answer to repetitions.
func (e *endpoint) request(m message.Message, datagram []byte, from origin, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	entry, repeated := e.history.find(messageKey{from.remote, m.MessageID}, datagram, at)
	if repeated {
		if m.Type == message.Confirmable {
			e.repeat(entry, m.MessageID, from)
		}
		return
	}
	select {
	case e.handlers <- struct{}{}:
	default: // a repetition may find room
		e.history.forget(entry)
		e.warn("CoAP: more than %d requests at a time: one is dropped", maxHandlers)
		return
	}
	e.running.Go(func() {
		done := sync.OnceFunc(func() { <-e.handlers })
		defer done()
		e.answer(entry, m, from, at, done)
	})
}

// repeat sends again what answered a message.
func (e *endpoint) repeat(entry *seen, id int32, to origin) {
	switch {
	case len(entry.answer) > 0:
		_ = e.write(entry.answer, to)
	case entry.acknowledged:
		e.control(message.Acknowledgement, id, to)
	}
}

// answer calls the service, and sends its response within the acknowledgement or, if that takes long, as a message of its own.
// It calls served when only the leisure or an acknowledgement is left to wait for.
func (e *endpoint) answer(entry *seen, m message.Message, from origin, at time.Time, served func()) {
	if m.Type == message.Confirmable {
		timer := time.AfterFunc(e.options.ackTimeout/4, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if !entry.finished {
				entry.acknowledged = true
				e.control(message.Acknowledgement, m.MessageID, from)
			}
		})
		defer timer.Stop()
	}
	a := arrival{message: m, at: at, from: from.remote.String(), multicast: from.multicast, room: e.options.room}
	if from.multicast {
		a.room.whole = limits.MaxMulticastBytes
	}
	response := e.service.respond(a)
	silent := suppressed(m, response.Code)
	if from.multicast {
		served()
		if !silent && class(response.Code) == 2 {
			e.spread(response, m, from)
		}
		e.finish(entry, message.Message{}, true, m, from)
		return
	}
	if e.finish(entry, response, silent, m, from) {
		served()
		e.sendResponse(response, m, m.Type, from)
	}
}

// spread answers a multicast request at a random time within the leisure, so that the group's members do not answer together.
func (e *endpoint) spread(response, m message.Message, to origin) {
	if e.spreading.Add(1); e.spreading.Load() <= maxSpread && clock.Pause(e.ctx, time.Duration(e.random.fraction()*float64(e.options.leisure))) {
		to.multicast, to.local = false, netip.Addr{}
		e.sendResponse(response, m, message.NonConfirmable, to)
	}
	e.spreading.Add(-1)
}

// finish sends the response to a request within the acknowledgement. It reports whether a message of its own is to carry it instead.
func (e *endpoint) finish(entry *seen, response message.Message, silent bool, m message.Message, to origin) (separate bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.Type == message.NonConfirmable || entry.acknowledged {
		e.history.finish(entry, nil)
		return !silent
	}
	response.Type, response.MessageID, response.Token = message.Acknowledgement, m.MessageID, m.Token
	if silent {
		response = message.Message{Type: message.Acknowledgement, MessageID: m.MessageID}
	}
	b, err := format(response)
	if err != nil {
		e.warn("CoAP: a response cannot be encoded")
		return false
	}
	e.history.finish(entry, b)
	_ = e.write(b, to)
	return false
}

// sendResponse sends a response as a message of its own.
func (e *endpoint) sendResponse(response, request message.Message, t message.Type, to origin) {
	response.Type, response.Token = t, request.Token
	if t == message.NonConfirmable {
		_, _, _ = e.transmit(e.ctx, response, to, nil)
		return
	}
	if !e.beginSeparate(to.remote.Addr()) {
		return
	}
	defer e.endSeparate(to.remote.Addr())
	x := &exchange{to: to, events: make(chan event, 4)}
	_, _, _ = e.confirm(e.ctx, x, response, false, nil) // nobody is left to tell
}

// beginSeparate reports whether there is room for one more response that waits for its acknowledgement.
func (e *endpoint) beginSeparate(peer netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.separateOf[peer] >= maxSeparateOfPeer:
		e.warn("CoAP: more than %d responses wait for the acknowledgement of one peer: one is dropped", maxSeparateOfPeer)
		return false
	case e.separate >= maxSeparate:
		e.warn("CoAP: more than %d responses wait for their acknowledgement: one is dropped", maxSeparate)
		return false
	}
	e.separate++
	e.separateOf[peer]++
	return true
}

func (e *endpoint) endSeparate(peer netip.Addr) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.separate--
	if e.separateOf[peer]--; e.separateOf[peer] == 0 {
		delete(e.separateOf, peer)
	}
}

func (e *endpoint) write(b []byte, to origin) error {
	err := e.socket.write(b, to)
	for attempt := 0; err != nil && attempt < 3 && !errors.Is(err, net.ErrClosed); attempt++ {
		// The kernel may tell this of an earlier datagram, and has not sent this one.
		e.readRefusals(b)
		err = e.socket.write(b, to)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, net.ErrClosed):
		return request.Failed(request.Cancelled, "")
	case request.NetworkFailure(err) == nil: // such as a rule of a packet filter
		return request.Failed(request.Unreachable, "the kernel does not send the datagram")
	}
	return failureOf(err)
}

func (e *endpoint) expect(x *exchange, id int32) {
	e.expecting.Lock()
	defer e.expecting.Unlock()
	e.outstanding[messageKey{x.to.remote, id}] = x
}

func (e *endpoint) forget(x *exchange, id int32) {
	e.expecting.Lock()
	defer e.expecting.Unlock()
	if key := (messageKey{x.to.remote, id}); e.outstanding[key] == x {
		delete(e.outstanding, key)
	}
}

func (e *endpoint) nextID() int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.id++
	return int32(e.id)
}

// transmit sends a message once. With an exchange what comes back for its id goes there; the caller forgets that.
func (e *endpoint) transmit(ctx context.Context, m message.Message, to origin, x *exchange) (id int32, at time.Time, err error) {
	if ctx.Err() != nil {
		return 0, at, ended(ctx)
	}
	m.MessageID = e.nextID()
	b, err := format(m)
	if err != nil {
		return 0, at, request.Failed(request.Invalid, "the message cannot be encoded")
	}
	if x != nil {
		e.expect(x, m.MessageID)
	}
	at = time.Now()
	if err := e.write(b, to); err != nil {
		if x != nil {
			e.forget(x, m.MessageID)
		}
		return 0, at, failureOf(err)
	}
	return m.MessageID, at, nil
}

// confirm sends a confirmable message until it is acknowledged. With response it then waits for the response.
func (e *endpoint) confirm(ctx context.Context, x *exchange, m message.Message, response bool, p *progress) (message.Message, time.Time, error) {
	release, err := e.slots.acquire(ctx, x.to.remote)
	if err != nil {
		return message.Message{}, time.Time{}, err
	}
	defer release()
	m.MessageID = e.nextID()
	datagram, err := format(m)
	if err != nil {
		return message.Message{}, time.Time{}, request.Failed(request.Invalid, "the message cannot be encoded")
	}
	e.expect(x, m.MessageID)
	defer e.forget(x, m.MessageID)
	timeout := e.firstTimeout()
	written, err := e.attempt(datagram, x.to, p, false)
	if err != nil {
		return message.Message{}, time.Time{}, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for retransmissions := 0; ; {
		select {
		case <-ctx.Done():
			return message.Message{}, time.Time{}, ended(ctx)
		case <-timer.C:
			if retransmissions == e.options.maxRetransmit {
				return message.Message{}, time.Time{}, request.Failed(request.Timeout, "no acknowledgement of the last retransmission")
			}
			if written, err = e.attempt(datagram, x.to, p, written); err != nil {
				return message.Message{}, time.Time{}, err
			}
			retransmissions++
			timeout *= 2
			timer.Reset(timeout)
		case ev := <-x.events:
			if ev.kind == acknowledged && response { // the response comes as a message of its own
				timer.Stop()
				release()
				continue
			}
			return ev.result()
		}
	}
}

// attempt writes a message, again if it was written before, and reports whether it was written by now. Routes come and go: once something of
// the request is on its way, one without a route counts as lost.
func (e *endpoint) attempt(datagram []byte, to origin, p *progress, again bool) (written bool, err error) {
	at := time.Now()
	err = e.write(datagram, to)
	switch {
	case err == nil:
		p.wrote(at, again)
		return true, nil
	case p.begun() && request.ReasonOf(err) == request.Unreachable:
		return again, nil
	}
	return again, failureOf(err)
}

// firstTimeout is the random time before the first retransmission (RFC 7252, section 4.2).
func (e *endpoint) firstTimeout() time.Duration {
	return time.Duration(float64(e.options.ackTimeout) * (1 + e.random.fraction()*(e.options.ackRandomFactor-1)))
}

// inquire sends a non-confirmable request, and waits for the response.
func (e *endpoint) inquire(ctx context.Context, x *exchange, m message.Message, p *progress) (message.Message, time.Time, error) {
	release, err := e.slots.acquire(ctx, x.to.remote)
	if err != nil {
		return message.Message{}, time.Time{}, err
	}
	defer release()
	id, at, err := e.transmit(ctx, m, x.to, x)
	if err != nil {
		return message.Message{}, at, err
	}
	defer e.forget(x, id)
	p.wrote(at, false)
	// A lost request must not hold up the next one for longer than a confirmable one would.
	timer := time.AfterFunc(e.firstTimeout(), release)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return message.Message{}, time.Time{}, ended(ctx)
		case ev := <-x.events:
			if ev.kind != acknowledged {
				return ev.result()
			}
		}
	}
}

// udpSession is the way to one remote endpoint, or to a multicast group.
type udpSession struct {
	*endpoint
	to origin
}

func (s udpSession) open() (*exchange, error) {
	return s.exchanges.open(s.random, s.to)
}

func (s udpSession) close(x *exchange) { s.exchanges.close(x) }

func (s udpSession) room(context.Context, int) (room, error) { return s.options.room, nil }

func (s udpSession) ask(ctx context.Context, x *exchange, m message.Message, p *progress) (message.Message, time.Time, error) {
	if s.options.nonConfirmable {
		m.Type = message.NonConfirmable
		return s.inquire(ctx, x, m, p)
	}
	m.Type = message.Confirmable
	return s.confirm(ctx, x, m, true, p)
}

func (s udpSession) tell(ctx context.Context, m message.Message, p *progress) error {
	m.Type, m.Token = message.NonConfirmable, s.random.token()
	_, at, err := s.transmit(ctx, m, s.to, nil)
	if err == nil {
		p.wrote(at, false)
	}
	return err
}
