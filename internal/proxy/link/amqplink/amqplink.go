// Package amqplink carries the frames of a proxy pair by AMQP 0-9-1 through a broker. Requests go through a durable queue as persistent messages,
// which the broker confirms. Responses come through a queue of the near proxy's connection. It is not durable: the far proxy
// keeps a response until its deadline, and the near proxy asks for it again after it has lost its connection.
package amqplink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"vignette.dev/vignette/internal/proxy/link"
	trafficamqp "vignette.dev/vignette/internal/traffic/amqp/client"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// Protocol is this one.
var Protocol = link.Protocol{Dial: Dial, Listen: Listen}

// contentType of frames.
const contentType = "application/octet-stream"

// connections opens connections to the broker, one after the other, and waits between attempts.
type connections struct {
	setup  link.Setup
	dialer *transport.Dialer
}

func newConnections(setup link.Setup) (*connections, error) {
	a := setup.Config.AMQP
	dialer, err := transport.NewDialer(transport.Setup{Config: trafficconfig.Config{Broker: a.Broker, Seed: time.Now().UnixNano(),
		Security: &protocol.Security{CAFile: a.CAFile, UsernameFile: a.UsernameFile, PasswordFile: a.PasswordFile}}})
	if err != nil {
		return nil, err
	}
	// Files that are not there would keep every attempt from connecting.
	if _, err := dialer.TLS(a.Broker); err != nil {
		return nil, fmt.Errorf("amqp.caFile is %q: want a file with the broker's CA certificate, as PEM", a.CAFile)
	}
	if _, _, err := dialer.Login(); err != nil {
		return nil, fmt.Errorf("amqp.usernameFile is %q and amqp.passwordFile %q: want files with the login", a.UsernameFile, a.PasswordFile)
	}
	return &connections{setup: setup, dialer: dialer}, nil
}

// run has use called with a channel of each connection, until ctx ends.
func (c *connections) run(ctx context.Context, use func(context.Context, *amqp.Channel) error) {
	for ctx.Err() == nil {
		if err := c.once(ctx, use); err != nil && ctx.Err() == nil {
			c.setup.Warn("the connection to the broker: " + describe(err))
		}
	}
}

// describe returns an error of a connection for people.
func describe(err error) string {
	if refusal, ok := errors.AsType[*amqp.Error](err); ok && refusal.Server {
		return "the broker refuses: " + refusal.Reason
	}
	return link.Failure(err).Error()
}

func (c *connections) once(ctx context.Context, use func(context.Context, *amqp.Channel) error) error {
	socket, err := trafficamqp.Dial(ctx, c.dialer)
	if err != nil {
		return err
	}
	defer socket.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	// The library takes the silence of one and a half heartbeats for the loss of the connection.
	heartbeat := max(c.setup.Silence()*2/3, time.Second)
	connection, err := trafficamqp.Login(socket, c.dialer, heartbeat, nil)
	if err != nil {
		return err
	}
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	if err := channel.Confirm(false); err != nil {
		return err
	}
	c.dialer.Connected()
	// Ends what uses the connection with it.
	for _, closed := range []chan *amqp.Error{connection.NotifyClose(make(chan *amqp.Error, 1)), channel.NotifyClose(make(chan *amqp.Error, 1))} {
		go func() {
			<-closed
			cancel()
		}()
	}
	return use(ctx, channel)
}

// declare makes a durable queue, which both proxies do, as either may be there first.
func declare(channel *amqp.Channel, queue string) error {
	_, err := channel.QueueDeclare(queue, true, false, false, false, nil)
	return err
}

// publish sends a message, calls sent, and waits until the broker has it. Without the confirmation the broker may have it all the same.
func publish(ctx context.Context, channel *amqp.Channel, queue string, m amqp.Publishing, sent func()) error {
	m.ContentType, m.DeliveryMode = contentType, amqp.Persistent
	confirmation, err := channel.PublishWithDeferredConfirmWithContext(ctx, "", queue, false, false, m)
	if err != nil {
		return err
	}
	sent()
	taken, err := confirmation.WaitContext(ctx)
	switch {
	case err != nil:
		return err
	case !taken:
		return &request.Failure{Reason: request.Rejected, Detail: "the broker did not take the request"}
	}
	return nil
}

// sender is the near proxy's end.
type sender struct {
	queue string
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu sync.Mutex
	// current is the connection; nil without one. changed is closed and replaced with it.
	current *current
	changed chan struct{}
	next    uint64
	// waiting has where answers go, by number.
	waiting map[string]chan<- []byte
}

// current is a usable connection.
type current struct {
	ctx     context.Context
	channel *amqp.Channel
	answers string
}

// Dial is part of a link.Protocol.
func Dial(setup link.Setup) (link.Sender, error) {
	c, err := newConnections(setup)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &sender{queue: setup.Config.Near.Queue, stop: cancel, changed: make(chan struct{}), waiting: map[string]chan<- []byte{}}
	s.done.Go(func() { c.run(ctx, s.use) })
	return s, nil
}

// use takes answers until the connection ends.
func (s *sender) use(ctx context.Context, channel *amqp.Channel) error {
	if err := declare(channel, s.queue); err != nil {
		return err
	}
	answers, err := channel.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return err
	}
	deliveries, err := channel.Consume(answers.Name, "", true, true, false, false, nil)
	if err != nil {
		return err
	}
	s.set(&current{ctx: ctx, channel: channel, answers: answers.Name})
	defer s.set(nil)
	for d := range deliveries {
		s.mu.Lock()
		to := s.waiting[d.CorrelationId]
		delete(s.waiting, d.CorrelationId)
		s.mu.Unlock()
		if to != nil {
			to <- d.Body
		}
	}
	return errors.New("lost")
}

func (s *sender) set(c *current) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = c
	close(s.changed)
	s.changed = make(chan struct{})
}

// connected waits for a connection.
func (s *sender) connected(ctx context.Context) (*current, error) {
	for {
		s.mu.Lock()
		c, changed := s.current, s.changed
		s.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Carry implements link.Sender.
func (s *sender) Carry(ctx context.Context, frame []byte, sent func(at time.Time)) ([]byte, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return nil, link.Failure(err)
	}
	answer := make(chan []byte, 1)
	s.mu.Lock()
	s.next++
	number := strconv.FormatUint(s.next, 36)
	s.waiting[number] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, number)
		s.mu.Unlock()
	}()
	m := amqp.Publishing{Body: frame, CorrelationId: number, ReplyTo: c.answers}
	if deadline, ok := ctx.Deadline(); ok { // the broker need not keep it longer
		m.Expiration = strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 1), 10)
	}
	at := time.Now()
	using, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	if err := publish(using, c.channel, s.queue, m, func() { sent(at) }); err != nil {
		return nil, s.failure(ctx, err)
	}
	select {
	case b := <-answer:
		return b, nil
	case <-using.Done():
		return nil, s.failure(ctx, using.Err())
	}
}

// failure returns why an exchange failed: with the connection, unless its own context ended.
func (s *sender) failure(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return &request.Failure{Reason: request.Reset, Detail: "the connection to the broker was lost"}
	}
	return link.Failure(err)
}

// Close implements link.Sender.
func (s *sender) Close() {
	s.stop()
	s.done.Wait()
}

// Listen is part of a link.Protocol.
func Listen(ctx context.Context, setup link.Setup, handle link.Handler) error {
	c, err := newConnections(setup)
	if err != nil {
		return err
	}
	go c.run(ctx, func(ctx context.Context, channel *amqp.Channel) error { return consume(ctx, setup, channel, handle) })
	return nil
}

// consume answers requests until the connection ends. A request is acknowledged after its answer: if the proxy is stopped before, the broker
// delivers it again.
func consume(ctx context.Context, setup link.Setup, channel *amqp.Channel, handle link.Handler) error {
	queue := setup.Config.Far.Queue
	if err := declare(channel, queue); err != nil {
		return err
	}
	if err := channel.Qos(setup.Config.Limits.Concurrent, 0, false); err != nil {
		return err
	}
	deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	var answering sync.WaitGroup
	defer answering.Wait()
	for d := range deliveries {
		answering.Go(func() {
			answer := handle(ctx, d.Body)
			if ctx.Err() != nil {
				return
			}
			if answer != nil {
				if err := publish(ctx, channel, d.ReplyTo, amqp.Publishing{Body: answer, CorrelationId: d.CorrelationId}, func() {}); err != nil {
					return // the connection is lost
				}
			}
			_ = d.Ack(false) // as above
		})
	}
	return errors.New("lost")
}
