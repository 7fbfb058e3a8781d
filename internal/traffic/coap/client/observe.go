package client

import (
	"context"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	"vignette.dev/vignette/internal/traffic/request"
)

const (
	// defaultMaxAge of a response (RFC 7252, section 5.10.5).
	defaultMaxAge = 60 * time.Second
	// reordered is how long notifications may overtake each other (RFC 7641, section 3.4).
	reordered = 128 * time.Second
)

// Changed tells those who observe a path of a peer's server its new state, which the peer's handler gives.
func Changed(peer request.Peer, path string) {
	p := peer.(*Peer)
	if p.ctx.Err() == nil {
		p.service.changed(p.ctx, p.running.Go, path)
	}
}

// Observe asks a server for a path's state and its changes. It calls each with the state at first and after changes,
// one call at a time. It returns nil when ctx ends. Without a change it asks anew after the response's Max-Age.
func Observe(ctx context.Context, peer request.Peer, to, path string, each func(at time.Time, r request.Response)) error {
	p := peer.(*Peer)
	inside, done := p.whilePeer(ctx)
	defer done()
	m, err := messageOf(request.Request{Path: path})
	if err != nil {
		return err
	}
	s, multicast, err := p.transport.session(inside, to)
	if err != nil {
		return failedIn(inside, err)
	}
	if multicast {
		return invalid("address %q: a multicast group cannot be observed", to)
	}
	x, err := s.open()
	if err != nil {
		return failedIn(inside, err)
	}
	defer s.close(x)
	o := &observation{peer: p, session: s, exchange: x, request: m, each: each}
	if err := o.run(inside); err != nil && ctx.Err() == nil {
		return failedIn(inside, err)
	}
	o.end()
	return nil
}

// observation is the client's side of observing one path.
type observation struct {
	peer     *Peer
	session  session
	exchange *exchange
	request  message.Message
	each     func(time.Time, request.Response)
	// last and lastAt are of the newest notification.
	last   uint32
	lastAt time.Time
}

func (o *observation) message(register uint32) message.Message {
	m := o.request
	m.Options = append(message.Options(nil), m.Options...)
	addUint(&m, message.Observe, register)
	m.Token = o.exchange.token
	return m
}

// run registers, and handles notifications, until an error or the end of the context.
func (o *observation) run(ctx context.Context) error {
	for {
		limited, cancel := context.WithTimeout(ctx, o.peer.timeout())
		m, at, err := o.session.ask(limited, o.exchange, o.message(0), nil)
		cancel()
		if err != nil {
			return err
		}
		o.lastAt = time.Time{}
		maxAge, err := o.notified(ctx, m, at)
		for err == nil && maxAge > 0 {
			maxAge, err = o.next(ctx, maxAge)
		}
		if err != nil {
			return err
		}
	}
}

// next waits for a notification. Without one for maxAge it returns 0.
func (o *observation) next(ctx context.Context, maxAge time.Duration) (time.Duration, error) {
	// The standard's extra time of 5 to 15 s, so that clients do not ask together.
	timer := time.NewTimer(maxAge + time.Duration((5+10*o.peer.random.fraction())*float64(time.Second)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-timer.C:
			return 0, nil
		case e := <-o.exchange.events:
			switch e.kind {
			case failed:
				return 0, e.err
			case responded:
				return o.notified(ctx, e.message, e.at)
			}
		}
	}
}

// notified handles a response or notification, and returns how long its state may be kept.
func (o *observation) notified(ctx context.Context, m message.Message, at time.Time) (time.Duration, error) {
	sequence, observed := uintOption(m, message.Observe)
	maxAge := defaultMaxAge
	if seconds, ok := uintOption(m, message.MaxAge); ok {
		maxAge = max(time.Duration(seconds)*time.Second, time.Second)
	}
	if class(m.Code) != 2 {
		return 0, rejected(m)
	}
	if observed && !o.newer(sequence, at) {
		return maxAge, nil
	}
	o.last, o.lastAt = sequence, at
	limited, cancel := context.WithTimeout(ctx, o.peer.timeout())
	defer cancel()
	t := &transfer{session: o.session, request: o.request}
	whole, at, err := t.download(limited, m, at)
	switch {
	case err != nil && ctx.Err() == nil:
		o.peer.warn("CoAP: the blocks of a notification were not all received: %v", err)
		return maxAge, nil
	case err != nil:
		return 0, err
	case class(whole.Code) != 2:
		return 0, rejected(whole)
	}
	o.each(at, responseOf(whole))
	if !observed {
		return 0, request.Failed(request.Rejected, "the server has no observation of the path")
	}
	return maxAge, nil
}

// newer reports whether a notification is newer than the last one (RFC 7641, section 3.4). TCP keeps their order.
func (o *observation) newer(sequence uint32, at time.Time) bool {
	if _, udp := o.session.(udpSession); !udp || o.lastAt.IsZero() || at.Sub(o.lastAt) > reordered {
		return true
	}
	return o.last < sequence && sequence-o.last < 1<<23 || o.last > sequence && o.last-sequence > 1<<23
}

// end tells the server that no more notifications are wanted.
func (o *observation) end() {
	ctx, done := context.WithTimeout(o.peer.ctx, min(o.peer.timeout(), 2*o.peer.options.ackTimeout))
	defer done()
	_, _, _ = o.session.ask(ctx, o.exchange, o.message(1), nil) // without it the next notification is reset
}

// Gather sends a request to a multicast group and calls each with every response, one call at a time, until ctx ends.
func Gather(ctx context.Context, peer request.Peer, to string, r request.Request, each func(at time.Time, r request.Response)) error {
	p := peer.(*Peer)
	ctx, done := p.whilePeer(ctx)
	defer done()
	m, err := messageOf(r)
	if err != nil {
		return err
	}
	s, multicast, err := p.transport.session(ctx, to)
	if err != nil {
		return failedIn(ctx, err)
	}
	group, udp := s.(udpSession)
	if !multicast || !udp {
		return invalid("address %q: want a multicast group", to)
	}
	x, err := group.open()
	if err != nil {
		return failedIn(ctx, err)
	}
	defer group.close(x)
	m.Type, m.Token, m.Payload = message.NonConfirmable, x.token, r.Body
	if _, _, err := group.transmit(ctx, m, group.to, nil); err != nil {
		return failedIn(ctx, err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-x.events:
			if e.kind == responded && e.message.Code != codes.Empty {
				each(e.at, responseOf(e.message))
			}
		}
	}
}
