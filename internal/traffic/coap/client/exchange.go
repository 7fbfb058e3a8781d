package client

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"

	"vignette.dev/vignette/internal/traffic/request"
)

// tokenBytes of our requests: RFC 7252 wants 32 random bits against forged responses.
const tokenBytes = 4

// exchange waits for what comes back for a token.
type exchange struct {
	token  message.Token
	to     origin
	events chan event
}

type eventKind int

const (
	acknowledged eventKind = iota
	responded
	failed
)

// event is something that came back for an exchange.
type event struct {
	kind    eventKind
	message message.Message
	at      time.Time
	err     *request.Failure
}

// result is the event as the outcome of a message.
func (e event) result() (message.Message, time.Time, error) {
	if e.err != nil {
		return message.Message{}, time.Time{}, e.err
	}
	return e.message, e.at, nil
}

// deliver hands an event to the exchange. A full queue belongs to an exchange that is over, or to a flood.
func (x *exchange) deliver(e event) {
	select {
	case x.events <- e:
	default:
	}
}

// exchanges are those under way, by token.
type exchanges struct {
	mu      sync.Mutex
	byToken map[string]*exchange
	// broken is why no more can be opened.
	broken *request.Failure
}

func (s *exchanges) open(random *random, to origin) (*exchange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	if s.byToken == nil {
		s.byToken = map[string]*exchange{}
	}
	x := &exchange{to: to, events: make(chan event, 16)}
	for x.token = random.token(); s.byToken[string(x.token)] != nil; x.token = random.token() {
	}
	s.byToken[string(x.token)] = x
	return x, nil
}

func (s *exchanges) close(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byToken, string(x.token))
}

func (s *exchanges) find(token message.Token) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byToken[string(token)]
}

// fail ends all exchanges, and no more can be opened.
func (s *exchanges) fail(f *request.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.byToken {
		x.deliver(event{kind: failed, err: f})
	}
	s.broken = cmp.Or(s.broken, f)
}

// progress tells a request's events.
type progress struct {
	events request.Events
	sent   bool
}

// wrote is called after each write, with the time before it. Only again says that the same message was written before.
func (p *progress) wrote(at time.Time, again bool) {
	if p == nil {
		return
	}
	if !p.sent {
		p.sent = true
		if p.events.Sent != nil {
			p.events.Sent(at)
		}
	}
	if !again && p.events.Progress != nil {
		p.events.Progress()
	}
	if again && p.events.Retransmitted != nil {
		p.events.Retransmitted(at)
	}
}

// begun reports whether something was written, as always of a response.
func (p *progress) begun() bool { return p == nil || p.sent }

// ended is the failure of a request whose context has ended.
func ended(ctx context.Context) *request.Failure { return request.ContextFailure(ctx) }

// failureOf is the failure for an error of a socket or connection.
func failureOf(err error) *request.Failure {
	if failure, ok := errors.AsType[*request.Failure](err); ok {
		return failure
	}
	if failure := request.NetworkFailure(err); failure != nil {
		return failure
	}
	return request.Failed(request.Reset, "the connection ended")
}

// idle reports whether no exchange is under way.
func (s *exchanges) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byToken) == 0
}
