package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

// reference refers to a subscription or pull point at a broker.
type reference struct {
	soap.EPR
	path string
}

func newReference(epr soap.EPR) (reference, error) {
	endpoint, err := wire.ParseEndpoint(epr.Address)
	return reference{epr, endpoint.Path}, err
}

// session is the client's state at one broker. It outlives connections.
type session struct {
	*client
	broker             string
	conn               *wire.Conn
	since              time.Time // of the connection
	username, password string
	subscriptions      []reference
	pullPoint          reference
}

// run serves one broker after the other until ctx ends.
func (c *client) run(ctx context.Context) {
	defer close(c.done)
	s := &session{client: c}
	for ctx.Err() == nil {
		err := s.atBroker(ctx)
		c.setConnected(false)
		if errors.Is(err, errEnding) {
			return
		}
		if ctx.Err() == nil {
			c.events.Lost(err)
		}
		select {
		case <-c.ending:
			return
		default:
		}
	}
}

// errEnding is the error of a session whose client closes.
var errEnding = errors.New("the client is closed")

// atBroker connects to the next broker, subscribes, and serves until an error.
func (s *session) atBroker(ctx context.Context) error {
	dialing, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.ending:
			cancel()
		case <-dialing.Done():
		}
	}()
	plain, broker, err := s.dialer.DialPlain(dialing)
	if err != nil {
		return err
	}
	conn, err := s.dialer.Secure(dialing, plain, broker)
	if err != nil {
		return err
	}
	if broker != s.broker {
		s.broker, s.subscriptions, s.pullPoint = broker, nil, reference{}
	}
	s.use(conn)
	defer func() { s.conn.Close() }()
	if s.username, s.password, err = s.dialer.Login(); err != nil {
		return err
	}
	if err := s.ensureSubscribed(ctx); err != nil {
		return fmt.Errorf("%s: %w", broker, err)
	}
	s.dialer.Connected()
	s.setConnected(true)
	s.events.Connection(true, broker)
	ending, stopPulling := context.WithCancel(ctx)
	defer stopPulling()
	failed := make(chan error, 1)
	if s.pull && len(s.subscriptions) > 0 {
		from, ended := s.pullPoint, make(chan struct{})
		go func() {
			defer close(ended)
			failed <- s.pullFrom(ending, from)
		}()
		defer func() { // it reads fields that the next connection changes
			stopPulling()
			<-ended
		}()
	}
	return s.serve(ctx, failed)
}

func (s *session) use(conn net.Conn) {
	s.conn, s.since = wire.NewConn(conn, s.dialer.Timeout()), time.Now()
}

// serve sends messages and renews subscriptions.
func (s *session) serve(ctx context.Context, failed <-chan error) error {
	renew := time.NewTicker(s.renewal)
	defer renew.Stop()
	always := make(chan struct{})
	close(always)
	for {
		var waiting <-chan struct{}
		m, more := s.first()
		if more {
			waiting = always
		}
		select { // at random, so that a backlog leaves all others their turn
		case <-waiting:
			if err := s.publish(ctx, m); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ending:
			s.unsubscribe(ctx)
			return errEnding
		case err := <-failed:
			return err
		case <-s.wake:
		case <-renew.C:
			if err := s.ensureSubscribed(ctx); err != nil {
				return err
			}
		case <-s.conn.Closed():
			if err := s.rejoin(ctx); err != nil {
				return err
			}
		}
	}
}

// shortest is how long a connection lasts at least at a working broker.
const shortest = time.Second

// rejoin follows a connection that was probably idle for too long. A broker that was restarted does not know the subscription.
func (s *session) rejoin(ctx context.Context) error {
	if err := s.reconnect(ctx); err != nil {
		return err
	}
	return s.ensureSubscribed(ctx)
}

// reconnect to the same broker, without a pause.
func (s *session) reconnect(ctx context.Context) error {
	if lasted := time.Since(s.since); lasted < shortest {
		return fmt.Errorf("%s: closed the connection after %v", s.broker, lasted.Round(time.Millisecond))
	}
	conn, err := s.dialSame(ctx)
	if err == nil {
		s.use(conn)
	}
	return err
}

func (s *session) dialSame(ctx context.Context) (net.Conn, error) {
	plain, err := s.dialer.Connect(ctx, s.broker)
	if err != nil {
		return nil, err
	}
	return s.dialer.Secure(ctx, plain, s.broker)
}

// address returns that of a service of the broker.
func (s *session) address(path string) soap.EPR {
	if s.setup.Security != nil && s.setup.Security.CAFile != "" {
		return soap.EPR{Address: "https://" + s.broker + path}
	}
	return soap.EPR{Address: "http://" + s.broker + path}
}

func (s *session) request(to reference, action, body string) wire.Request {
	envelope := wire.Envelope(soap.SOAP11, soap.Header{Action: action, MessageID: soap.NewMessageID(), To: to.EPR}, body)
	return wire.Request{Host: s.broker, Path: to.path, SOAP: soap.SOAP11, Action: action, Message: envelope, Username: s.username, Password: s.password}
}

// publish sends a message, once with QoS 0, and until the broker accepts it with QoS 1. Its error concerns the connection.
func (s *session) publish(ctx context.Context, m outgoing) error {
	n := wire.NotificationMessage{Topic: s.topic(m.topic), Producer: soap.EPR{Address: producer + s.setup.Instance}, Message: soap.Embed(m.content)}
	request := s.request(reference{s.address(wire.BrokerPath), wire.BrokerPath}, wire.ActionNotify, wire.NotifyBody(n))
	sent := false
	request.Sent = func(at time.Time) {
		sent = true
		s.events.Sent(at, m.topic, m.content)
	}
	select {
	case <-s.conn.Closed():
		return s.rejoin(ctx) // the message still waits
	default:
	}
	response, err := s.conn.Post(ctx, request)
	again := s.setup.PublishQoS() > 0
	if err != nil {
		if !again {
			s.drop()
		}
		if !again && !sent {
			s.events.DropUnsent(m.topic, m.content)
		}
		return fmt.Errorf("%s: %w", s.broker, err)
	}
	if !response.Accepted() {
		_, reason := response.Message()
		fault, isFault := errors.AsType[*wire.Fault](reason)
		if isFault && fault.Kind != wire.ServerBusy || response.Status == http.StatusRequestEntityTooLarge {
			again = false // it would never accept it
		}
		if again {
			s.setup.Warn(fmt.Sprintf("%s did not accept a message to %s, which is repeated: %v", s.broker, m.topic, reason))
			return s.sleep(ctx, refusedPause)
		}
		s.setup.Warn(fmt.Sprintf("%s did not accept a message to %s, which is lost: %v", s.broker, m.topic, reason))
		if !sent {
			s.events.DropUnsent(m.topic, m.content)
		}
	}
	s.drop()
	return nil
}

// producer is the prefix of a publisher's name in its messages (RFC 4151). A publisher has no address, as nobody sends to it.
const producer = "tag:vignette.dev,2026:"

func (s *session) sleep(ctx context.Context, d time.Duration) error {
	if !clock.Pause(ctx, d) {
		return ctx.Err()
	}
	return nil
}

// refusal is the broker's refusal of a request: a fault, or an HTTP status.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// call sends a request and reads the response.
func (s *session) call(ctx context.Context, to reference, action, body string) (*soap.Element, error) {
	response, err := s.conn.Post(ctx, s.request(to, action, body))
	if err != nil {
		return nil, err
	}
	m, err := response.Message()
	if err != nil {
		return nil, refusal{err}
	}
	if m == nil {
		return nil, nil
	}
	return m.Body, nil
}

// ensureSubscribed renews the subscriptions, or makes them if the broker does not know them.
func (s *session) ensureSubscribed(ctx context.Context) error {
	if len(s.setup.Filters()) == 0 {
		return nil
	}
	if len(s.subscriptions) > 0 {
		err := s.renew(ctx)
		if _, unknown := errors.AsType[*wire.Fault](err); !unknown {
			return err
		}
		s.setup.Warn(fmt.Sprintf("%s does not renew the subscription (%v): subscribes again", s.broker, err))
		s.subscriptions = nil
		if s.pull {
			return err // the pull point cannot be used any more
		}
	}
	err := s.subscribe(ctx)
	if r, refused := errors.AsType[refusal](err); refused {
		s.subscribing.Refused(r.Error(), s.setup.Filters()...)
	} else if err == nil {
		s.subscribing.Granted(s.setup.Filters()...)
	}
	return err
}

func (s *session) renew(ctx context.Context) error {
	for _, r := range s.subscriptions {
		if _, err := s.call(ctx, r, wire.ActionRenew, wire.RenewBody(wire.Duration(lifetime))); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) subscribe(ctx context.Context) error {
	consumer, err := s.consumerReference(ctx)
	if err != nil {
		return err
	}
	var made []reference
	for _, filter := range s.filters() {
		request := wire.Subscribe{Consumer: consumer, Topics: []wire.TopicExpression{filter}, Termination: wire.Duration(lifetime)}
		body, err := s.call(ctx, reference{s.address(wire.BrokerPath), wire.BrokerPath}, wire.ActionSubscribe, request.Body())
		if err != nil {
			return fmt.Errorf("subscription to %s: %w", filter.Text, err)
		}
		subscription, err := wire.ParseSubscribed(body)
		if err != nil {
			return err
		}
		r, err := newReference(subscription)
		if err != nil {
			return err
		}
		made = append(made, r)
	}
	s.subscriptions = made
	return nil
}

// consumerReference returns the client's own endpoint, or a new pull point.
func (s *session) consumerReference(ctx context.Context) (soap.EPR, error) {
	if !s.pull {
		return s.client.consumer.next(s.conn.LocalAddr())
	}
	body, err := s.call(ctx, reference{s.address(wire.PullPointPath), wire.PullPointPath}, wire.ActionCreatePullPoint, wire.EmptyBody("CreatePullPoint"))
	if err != nil {
		return soap.EPR{}, fmt.Errorf("pull point: %w", err)
	}
	epr, err := wire.ParsePullPoint(body)
	if err != nil {
		return soap.EPR{}, err
	}
	s.pullPoint, err = newReference(epr)
	return epr, err
}

// pullFrom fetches messages from a pull point, over a connection of its own, until an error.
func (s *session) pullFrom(ctx context.Context, from reference) error {
	plain, err := s.dialSame(ctx)
	if err != nil {
		return err
	}
	conn := wire.NewConn(plain, s.dialer.Timeout())
	defer func() { conn.Close() }()
	for {
		request := s.request(from, wire.ActionGetMessages, wire.GetMessagesBody(1000))
		request.WaitSeconds = pullWaitSeconds
		asked := time.Now()
		response, err := conn.Post(ctx, request)
		if err != nil {
			return err
		}
		at := time.Now()
		m, err := response.Message()
		if err != nil {
			return fmt.Errorf("pull point: %w", err)
		}
		if m == nil {
			return errors.New("pull point: an empty answer")
		}
		messages, err := wire.ParseMessages(m.Body)
		if err != nil {
			return err
		}
		if err := s.received(at, messages); err != nil {
			s.setup.Warn("refused messages of the pull point: " + err.Error())
		}
		if len(messages) == 0 && time.Since(asked) < pullPause {
			if err := s.sleep(ctx, pullPause); err != nil {
				return err
			}
		}
	}
}

// unsubscribe ends the subscriptions at the broker. Without an answer they expire.
func (s *session) unsubscribe(ctx context.Context) {
	for _, r := range s.subscriptions {
		if _, err := s.call(ctx, r, wire.ActionUnsubscribe, wire.EmptyBody("Unsubscribe")); err != nil {
			return
		}
	}
	if s.pull && s.pullPoint.path != "" {
		_, _ = s.call(ctx, s.pullPoint, wire.ActionDestroyPullPoint, wire.EmptyBody("DestroyPullPoint"))
	}
}
