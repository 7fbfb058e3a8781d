// Package client is CoAP over UDP (RFC 7252) and over TCP (RFC 8323), client and server in one. It has transfer in blocks
// (RFC 7959), multicast (RFC 7390) and requests without a response (RFC 7967).
package client

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	limits "vignette.dev/vignette/internal/traffic/coap"
	"vignette.dev/vignette/internal/traffic/request"
)

// maxHandlers is how many requests are answered at a time.
const maxHandlers = 256

// options are those of request.CoAPOptions with their defaults.
type options struct {
	nonConfirmable  bool
	ackTimeout      time.Duration
	ackRandomFactor float64
	maxRetransmit   int
	nstart          int
	leisure         time.Duration
	// room is that of messages over UDP.
	room room
}

func optionsOf(o request.CoAPOptions) (options, error) {
	o = o.WithDefaults()
	duration := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	r := options{nonConfirmable: o.NonConfirmable, ackTimeout: duration(o.ACKTimeoutSeconds), ackRandomFactor: o.ACKRandomFactor,
		maxRetransmit: *o.MaxRetransmit, nstart: o.NSTART, leisure: duration(o.LeisureSeconds)}
	blockBytes := o.BlockBytes
	r.room = room{whole: blockBytes, bytes: blockBytes, exponent: uint8(max(bits.TrailingZeros(uint(blockBytes))-4, 0))}
	switch {
	case r.ackTimeout < time.Millisecond || r.ackTimeout > time.Hour:
		return r, fmt.Errorf("coap.ackTimeout %v: want 1ms to 1h", r.ackTimeout)
	case !(r.ackRandomFactor >= 1 && r.ackRandomFactor <= 10):
		return r, fmt.Errorf("coap.ackRandomFactor %v: want 1 to 10", r.ackRandomFactor)
	case r.maxRetransmit < 0 || r.maxRetransmit > 20:
		return r, fmt.Errorf("coap.maxRetransmit %d: want 0 to 20", r.maxRetransmit)
	case r.nstart < 1 || r.nstart > 1000:
		return r, fmt.Errorf("coap.nstart %d: want 1 to 1000", r.nstart)
	case blockBytes < 16 || blockBytes > 1024 || bits.OnesCount(uint(blockBytes)) != 1:
		return r, fmt.Errorf("coap.blockBytes %d: want a power of 2 from 16 to 1024", blockBytes)
	case r.leisure < 0 || r.leisure > time.Hour:
		return r, fmt.Errorf("coap.leisure %v: want 0 to 1h", r.leisure)
	}
	return r, nil
}

const (
	// maxLatency is MAX_LATENCY of RFC 7252, section 4.8.2.
	maxLatency = 100 * time.Second
	// maxLifetime bounds the lifetime of messages for parameters far above the defaults.
	maxLifetime = time.Hour
)

// lifetime is EXCHANGE_LIFETIME (RFC 7252, section 4.8.2): how long a message may be repeated. It is 247 s by default.
func (o options) lifetime() time.Duration {
	span := o.ackTimeout.Seconds() * float64(uint(1)<<o.maxRetransmit-1) * o.ackRandomFactor
	seconds := span + 2*maxLatency.Seconds() + o.ackTimeout.Seconds()
	return time.Duration(min(seconds, maxLifetime.Seconds()) * float64(time.Second))
}

// random draws from the setup's seed.
type random struct {
	mu     sync.Mutex
	source *rand.Rand
}

func newRandom(seed int64) *random {
	return &random{source: rand.New(rand.NewPCG(uint64(seed), 0x636f6170))}
}

func (r *random) integer() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Uint32()
}

func (r *random) fraction() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Float64()
}

func (r *random) token() message.Token {
	n := r.integer()
	token := make(message.Token, tokenBytes)
	for i := range token {
		token[i] = byte(n >> (8 * i))
	}
	return token
}

// core is what all sockets and connections of a peer share.
type core struct {
	options  options
	random   *random
	service  *service
	handlers chan struct{}
	running  *request.Running
	// ctx ends with the peer.
	ctx context.Context

	warnText func(string)
	warnMu   sync.Mutex
	warned   map[string]time.Time
}

// warn logs a problem, each kind at most every ten seconds.
func (c *core) warn(format string, values ...any) {
	c.warnMu.Lock()
	again := time.Since(c.warned[format]) < 10*time.Second
	if !again {
		c.warned[format] = time.Now()
	}
	c.warnMu.Unlock()
	if !again && c.warnText != nil {
		c.warnText(fmt.Sprintf(format, values...))
	}
}

// transport opens sessions.
type transport interface {
	// session to host:port; multicast reports whether that is a group.
	session(ctx context.Context, to string) (s session, multicast bool, err error)
	// close ends the server and all connections.
	close()
}

// Peer is a client and a server. It is a request.Peer.
type Peer struct {
	*core
	setup     request.Setup
	transport transport
	uploads   slots[string]
	tags      tags
}

// Open returns a peer over UDP.
func Open(s request.Setup) (request.Peer, error) { return open(s, openUDP) }

// OpenTCP returns a peer over TCP. It ignores the options of the message layer of UDP, and has no multicast.
func OpenTCP(s request.Setup) (request.Peer, error) { return open(s, openTCP) }

func open(s request.Setup, openTransport func(*core, request.Setup) (transport, error)) (*Peer, error) {
	o, err := optionsOf(s.CoAP)
	if err != nil {
		return nil, err
	}
	if s.TimeoutSeconds <= 0 {
		return nil, fmt.Errorf("timeout %v s: want more than 0", s.TimeoutSeconds)
	}
	running := request.NewRunning()
	c := &core{
		options: o, random: newRandom(s.Seed), service: newService(s.Handler, o.lifetime()), handlers: make(chan struct{}, maxHandlers),
		running: running, ctx: running.Context(), warnText: s.Warn, warned: map[string]time.Time{},
	}
	t, err := openTransport(c, s)
	if err != nil {
		running.Stop()
		return nil, err
	}
	return &Peer{core: c, setup: s, transport: t, uploads: slots[string]{limit: 1}}, nil
}

// Close implements request.Peer.
func (p *Peer) Close(ctx context.Context) {
	p.running.Stop()
	p.transport.close()
	p.running.Wait(ctx)
}

// timeout is the longest time for one request.
func (p *Peer) timeout() time.Duration {
	return time.Duration(p.setup.TimeoutSeconds * float64(time.Second))
}

// Do implements request.Peer.
func (p *Peer) Do(ctx context.Context, to string, r request.Request, e request.Events) (request.Response, time.Time, error) {
	ctx, end, err := p.running.Request(ctx, p.timeout())
	if err != nil {
		return request.Response{}, time.Time{}, err
	}
	defer end()
	m, err := messageOf(r)
	if err != nil {
		return request.Response{}, time.Time{}, err
	}
	s, multicast, err := p.transport.session(ctx, to)
	if err != nil {
		return request.Response{}, time.Time{}, failedIn(ctx, err)
	}
	t := &transfer{session: s, progress: &progress{events: e}, request: m, body: r.Body, receipt: p.setup.Receipt}
	if multicast {
		if len(r.Body) > limits.MaxMulticastBytes {
			return request.Response{}, time.Time{}, invalid("the body has %d bytes: multicast carries up to %d", len(r.Body), limits.MaxMulticastBytes)
		}
		m.Payload = r.Body
		return request.Response{}, time.Time{}, t.tell(ctx, m)
	}
	tag, free := p.tags.take(to + r.Path)
	defer free()
	if tag != 0 {
		add(&t.request, optionRequestTag, []byte{tag})
	}
	t.together = func(ctx context.Context) (func(), error) { return p.uploads.acquire(ctx, to+r.Path) }
	response, at, err := t.run(ctx)
	if err != nil {
		return request.Response{}, time.Time{}, failedIn(ctx, err)
	}
	if !p.setup.Receipt {
		if class(response.Code) > 2 { // to a block before the last
			return responseOf(response), at, rejected(response)
		}
		return request.Response{}, time.Time{}, nil
	}
	answer := responseOf(response)
	if class(response.Code) != 2 {
		return answer, at, rejected(response)
	}
	return answer, at, nil
}

// failedIn is the failure of an error. The end of the context is often the cause of an error of a socket.
func failedIn(ctx context.Context, err error) error {
	var failure *request.Failure
	switch {
	case errors.As(err, &failure):
		return failure
	case ctx.Err() != nil:
		return ended(ctx)
	}
	return failureOf(err)
}

func rejected(m message.Message) *request.Failure {
	detail := dotted(m.Code)
	if name := m.Code.String(); !strings.HasPrefix(name, "Code(") {
		detail += " " + name
	}
	return &request.Failure{Reason: request.Rejected, Detail: detail}
}

// messageOf is a request as a message, without its body.
func messageOf(r request.Request) (message.Message, error) {
	m := message.Message{Code: codes.GET}
	if r.Body != nil {
		m.Code = codes.POST
	}
	if len(r.Body) > limits.MaxBytes {
		return m, invalid("the body has %d bytes: CoAP carries up to %d", len(r.Body), limits.MaxBytes)
	}
	if err := addTarget(&m, r.Path); err != nil {
		return m, invalid("%v", err)
	}
	if !addFormat(&m, r.ContentType, r.ContentEncoding) {
		return m, invalid("content type %q, content encoding %q: CoAP has no Content-Format for them", r.ContentType, r.ContentEncoding)
	}
	return m, nil
}

// tags tell requests to one resource at a time apart (RFC 9175, section 3). The first has none.
type tags struct {
	mu    sync.Mutex
	inUse map[string]map[byte]bool
}

// take returns the lowest tag that is not in use.
func (t *tags) take(target string) (tag byte, free func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inUse == nil {
		t.inUse = map[string]map[byte]bool{}
	}
	if t.inUse[target] == nil {
		t.inUse[target] = map[byte]bool{}
	}
	for tag < 255 && t.inUse[target][tag] {
		tag++
	}
	t.inUse[target][tag] = true
	return tag, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.inUse[target], tag)
		if len(t.inUse[target]) == 0 {
			delete(t.inUse, target)
		}
	}
}
