package transport

import (
	"context"
	"fmt"
	"sync"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
)

// Limits of RabbitMQ, which stores STOMP messages as AMQP's.
const (
	// MaxKey is the longest routing key in bytes (short string, AMQP 0-9-1, 4.2.5.3).
	MaxKey = 255
	// MaxBytes is the largest message: RabbitMQ's max_message_size.
	MaxBytes = 128 << 20
)

// Brokered is what clients of RabbitMQ have in common: an outbox, and one connection after the other that empties it.
type Brokered struct {
	Setup  Setup
	Events Events
	Dialer *Dialer
	Outbox *Outbox
	// Subscriptions are requested at the start of a connection, which fails if one is refused.
	Subscriptions *Subscriptions

	check  CheckTopic
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// CheckTopic returns an error for a topic or filter that the protocol cannot carry; what names which of them it is.
type CheckTopic func(what, topic string) error

// OpenBrokered checks the setup and begins to run connections until Close. connection runs one and returns why it ended.
func OpenBrokered(protocol string, setup Setup, events Events, check CheckTopic, connection func(context.Context, *Brokered) error) (Client, error) {
	if err := checkBrokered(protocol, setup, check); err != nil {
		return nil, err
	}
	dialer, err := NewDialer(setup)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Brokered{Setup: setup, Events: events, Dialer: dialer, Outbox: NewOutbox(setup.PublishQoS() > 0, events),
		Subscriptions: NewSubscriptions(setup, events), check: check, cancel: cancel}
	b.done.Go(func() {
		for ctx.Err() == nil {
			if err := connection(ctx, b); err != nil && ctx.Err() == nil {
				events.Connection(false, err.Error())
			}
		}
	})
	return b, nil
}

func checkBrokered(protocol string, setup Setup, check CheckTopic) error {
	for _, filter := range setup.Filters() {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return err
		}
		if err := check("topic filter", filter); err != nil {
			return err
		}
	}
	if setup.PublishQoS() > 1 || setup.SubscribeQoS() > 1 {
		return fmt.Errorf("QoS %d to publish, %d to subscribe: %s has 0 and 1", setup.PublishQoS(), setup.SubscribeQoS(), protocol)
	}
	if setup.LargestBytes > MaxBytes {
		return fmt.Errorf("payload of %d bytes on topic %s: a broker takes up to %d", setup.LargestBytes, setup.LargestTopic, MaxBytes)
	}
	return check("topic", setup.LargestTopic)
}

// Publish never waits: the connection sends the message as soon as it can.
func (b *Brokered) Publish(topic string, payload []byte) error {
	if err := b.check("topic", topic); err != nil {
		return err
	}
	return b.Outbox.Put(topic, payload)
}

// Close waits until all messages are written and, with QoS 1, acknowledged.
func (b *Brokered) Close(ctx context.Context) {
	b.Outbox.WaitEmpty(ctx)
	b.cancel()
	b.done.Wait()
}
