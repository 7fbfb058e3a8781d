package transport

import (
	"context"
	"fmt"
	"sync"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/protocol"
)

// Brokered is what clients of RabbitMQ have in common: an outbox, and one connection after the other that empties it.
type Brokered struct {
	Setup  Setup
	Events Events
	Dialer *Dialer
	Outbox *Outbox
	// Subscriptions are requested at the start of a connection, which fails if one is refused.
	Subscriptions *Subscriptions

	protocol protocol.Protocol
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// OpenBrokered checks the setup and begins to run connections until Close. connection runs one and returns why it ended.
func OpenBrokered(p protocol.Protocol, setup Setup, events Events, connection func(context.Context, *Brokered) error) (Client, error) {
	if err := checkBrokered(p, setup); err != nil {
		return nil, err
	}
	dialer, err := NewDialer(setup)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Brokered{Setup: setup, Events: events, Dialer: dialer, Outbox: NewOutbox(setup.PublishQoS() > 0, events),
		Subscriptions: NewSubscriptions(setup, events), protocol: p, cancel: cancel}
	b.done.Go(func() {
		for ctx.Err() == nil {
			if err := connection(ctx, b); err != nil && ctx.Err() == nil {
				events.Lost(err)
			}
		}
	})
	return b, nil
}

func checkBrokered(p protocol.Protocol, setup Setup) error {
	for _, filter := range setup.Filters() {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return err
		}
		if err := p.CheckTopic(filter); err != nil {
			return fmt.Errorf("topic filter %s %w", filter, err)
		}
	}
	if most := p.MaxQoS; setup.PublishQoS() > most || setup.SubscribeQoS() > most {
		return fmt.Errorf("QoS %d to publish, %d to subscribe: %s has 0 and 1", setup.PublishQoS(), setup.SubscribeQoS(), p.Name)
	}
	if most := p.MaxPayloadBytes; setup.LargestBytes > most {
		return fmt.Errorf("payload of %d bytes on topic %s: a broker takes up to %d", setup.LargestBytes, setup.LargestTopic, most)
	}
	return checkTopic(p, setup.LargestTopic)
}

func checkTopic(p protocol.Protocol, topic string) error {
	if err := p.CheckTopic(topic); err != nil {
		return fmt.Errorf("topic %s %w", topic, err)
	}
	return nil
}

// Publish never waits: the connection sends the message as soon as it can.
func (b *Brokered) Publish(topic string, payload []byte) error {
	if err := checkTopic(b.protocol, topic); err != nil {
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
