package gateway

import (
	"context"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// transparent is a client's own connection to the broker. Message ids pass unchanged in both directions, so that a persistent
// session is between client and broker. QoS 2 holds even if the gateway is replaced meanwhile.
type transparent struct {
	g      *Gateway
	s      *session
	conn   *brokerConn
	cancel context.CancelFunc
	ended  bool
}

func (g *Gateway) dialer() (*transport.Dialer, error) {
	return transport.NewDialer(transport.Setup{Config: trafficconfig.Config{Broker: g.config.Broker, Security: g.config.Security, Seed: g.config.Seed}})
}

// openTransparent connects in the background.
func openTransparent(s *session) {
	ctx, cancel := context.WithCancel(s.g.ctx)
	t := &transparent{g: s.g, s: s, cancel: cancel}
	s.up = t
	with := login{clientID: s.clientID, clean: s.clean}
	if s.will != nil {
		will := *s.will
		with.will = &will
	}
	go t.dial(ctx, with)
}

func (t *transparent) dial(ctx context.Context, with login) {
	dialer, err := t.g.dialer()
	var conn *brokerConn
	if err == nil {
		conn, err = dialBroker(ctx, dialer, with, brokerEvents{message: t.message, released: t.released, answered: t.answered, lost: t.lost})
	}
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	switch {
	case err != nil && !t.ended:
		t.ended = true
		t.s.refused(err)
	case err == nil && t.ended:
		conn.start()
		conn.disconnect() // the client has left meanwhile
	case err == nil:
		t.conn = conn
		t.s.opened()
		conn.start()
	}
}

// locked calls f unless the session has ended.
func (t *transparent) locked(f func()) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if !t.ended {
		f()
	}
}

func (t *transparent) message(m message, id uint16, dup bool) {
	t.locked(func() { t.s.deliver(m, id, id, dup) })
}

func (t *transparent) released(id uint16) { t.locked(func() { t.s.released(id, id) }) }

func (t *transparent) answered(kind byte, id uint16, granted byte) {
	t.locked(func() {
		switch kind {
		case packets.Puback, packets.Pubrec:
			t.s.published(id)
		case packets.Pubcomp:
			t.s.completed(id)
		case packets.Suback:
			t.s.subscribed(id, granted)
		case packets.Unsuback:
			t.s.unsubscribed(id)
		}
	})
}

func (t *transparent) lost(err error) {
	t.locked(func() { t.s.endLost("its connection to the broker: " + transport.Words(err)) })
}

func (t *transparent) publish(m message, id uint16, dup bool) error {
	return t.conn.publish(m, id, dup)
}

func (t *transparent) release(id uint16) error {
	t.conn.release(id)
	return nil
}

func (t *transparent) subscribe(filter string, qos int, id uint16) error {
	return t.conn.subscribe(filter, qos, id)
}

func (t *transparent) unsubscribe(filter string, id uint16) error {
	return t.conn.unsubscribe(filter, id)
}

func (t *transparent) received(d *delivery) { t.conn.received(d.qos, d.brokerID) }

func (t *transparent) done(d *delivery) { t.conn.complete(d.brokerID) }

func (t *transparent) end(normally bool) {
	if t.ended {
		return
	}
	t.ended = true
	switch {
	case t.conn == nil:
		t.cancel()
	case normally:
		t.conn.disconnect()
	default:
		t.conn.shut()
	}
}
