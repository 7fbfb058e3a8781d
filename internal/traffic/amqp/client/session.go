package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"vignette.dev/vignette/internal/traffic/transport"
)

// session is the client's state on one connection. It has a channel each to publish and to receive, as one can block the other.
type session struct {
	client     client
	connection *amqp.Connection

	publishing *amqp.Channel
	confirmed  chan amqp.Confirmation
	receiving  *amqp.Channel
	deliveries <-chan amqp.Delivery

	// failed has the first reason why the connection is unusable.
	failed  chan error
	workers sync.WaitGroup
}

// begin opens the channels and subscribes.
func (s *session) begin() error {
	s.failed = make(chan error, 1)
	setup := s.client.Setup
	if setup.Publish != nil {
		if err := s.beginPublishing(setup.PublishQoS() > 0); err != nil {
			return fmt.Errorf("channel to publish on: %w", err)
		}
	}
	if len(setup.Filters()) > 0 {
		if err := s.beginReceiving(setup.Filters(), setup.SubscribeQoS() > 0); err != nil {
			if refusal, ok := errors.AsType[*amqp.Error](err); ok && refusal.Server {
				s.client.Subscriptions.Refused(refusal.Reason, setup.Filters()...)
			}
			return fmt.Errorf("subscription: %w", err)
		}
		s.client.Subscriptions.Granted(setup.Filters()...)
	}
	return nil
}

func (s *session) beginPublishing(confirms bool) (err error) {
	if s.publishing, err = s.connection.Channel(); err != nil {
		return err
	}
	s.watch(s.publishing)
	if !confirms {
		return nil
	}
	s.confirmed = s.publishing.NotifyPublish(make(chan amqp.Confirmation, prefetch))
	return s.publishing.Confirm(false)
}

// beginReceiving binds a queue to each filter. A message that matches several filters arrives once.
func (s *session) beginReceiving(filters []string, acknowledges bool) (err error) {
	if s.receiving, err = s.connection.Channel(); err != nil {
		return err
	}
	s.watch(s.receiving)
	queue, err := s.queue(acknowledges)
	if err != nil {
		return err
	}
	for _, filter := range filters {
		if err := s.receiving.QueueBind(queue, transport.RoutingKey(filter), exchange, false, nil); err != nil {
			return fmt.Errorf("%s: %w", filter, err)
		}
	}
	// Not exclusive with QoS 1: a lost connection keeps its consumer until the broker notices the loss.
	s.deliveries, err = s.receiving.Consume(queue, s.client.Setup.ClientID, !acknowledges, !acknowledges, false, false, nil)
	return err
}

// queue is named after the client and outlives its connections with QoS 1. With QoS 0 it ends with the connection.
func (s *session) queue(outlives bool) (string, error) {
	if !outlives {
		queue, err := s.receiving.QueueDeclare("", false, true, true, false, nil)
		return queue.Name, err
	}
	if err := s.receiving.Qos(prefetch, 0, false); err != nil {
		return "", err
	}
	queue, err := s.receiving.QueueDeclare("amqp-subscription-"+s.client.Setup.ClientID, true, false, false, false, nil)
	return queue.Name, err
}

// watch makes the session fail with any of its channels.
func (s *session) watch(channel *amqp.Channel) {
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	s.workers.Go(func() {
		if reason := <-closed; reason != nil {
			s.fail(reason)
		}
	})
}

func (s *session) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// use serves the connection until it or ctx ends.
func (s *session) use(ctx context.Context) {
	if s.publishing != nil {
		s.workers.Go(func() { s.publish(ctx) })
	}
	if s.confirmed != nil {
		s.workers.Go(s.confirm)
	}
	if s.deliveries != nil {
		s.workers.Go(s.receive)
	}
}

// wait waits for the session's goroutines, after its connection is closed and the context of use has ended.
func (s *session) wait() { s.workers.Wait() }

// publish writes messages, numbered from 1 like the broker's delivery tags of confirms.
func (s *session) publish(ctx context.Context) {
	mode := amqp.Transient
	if s.confirmed != nil {
		mode = amqp.Persistent
	}
	for {
		m, ok := s.client.Outbox.Next(ctx)
		if !ok {
			return
		}
		// Taken before the write: a wait for the kernel's full buffer is part of the delay.
		at := time.Now()
		err := s.publishing.PublishWithContext(ctx, exchange, transport.RoutingKey(m.Topic), false, false, amqp.Publishing{DeliveryMode: mode, Body: m.Payload})
		if err != nil {
			s.client.Outbox.NotWritten(m)
			s.fail(fmt.Errorf("publish: %w", err))
			return
		}
		s.client.Events.Sent(at, m.Topic, m.Payload)
	}
}

func (s *session) confirm() {
	for c := range s.confirmed {
		if c.Ack {
			s.client.Outbox.Acknowledge(c.DeliveryTag)
		} else {
			s.client.Outbox.Reject(c.DeliveryTag)
		}
	}
}

func (s *session) receive() {
	acknowledges := s.client.Setup.SubscribeQoS() > 0
	for d := range s.deliveries {
		at := time.Now()
		s.client.Events.Received(at, transport.Topic(d.RoutingKey), d.Body)
		if !acknowledges {
			continue
		}
		if err := d.Ack(false); err != nil {
			s.fail(fmt.Errorf("acknowledgement: %w", err))
			return
		}
	}
	// The broker ends a subscription when its queue is deleted.
	s.fail(errors.New("the broker ended the subscription"))
}
