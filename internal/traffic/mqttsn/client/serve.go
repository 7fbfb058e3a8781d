package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

// errRegisterAgain reports that the gateway does not know the topic's id.
var errRegisterAgain = errors.New("the gateway does not know the topic's id")

// keepAlive is the announced interval. Packets are sent within three quarters of it, to leave time for repetitions.
func (c *Client) keepAlive() time.Duration { return c.dialer.Timeout() }

// begin connects, registers topics and subscribes.
func (c *Client) begin(l *link) error {
	if err := c.connect(l, c.clean); err != nil {
		return err
	}
	if c.qos != mqttsn.QoSMinusOne {
		for _, topic := range topics(c.setup) {
			if err := c.register(l, topic); err != nil {
				return err
			}
		}
	}
	c.subscriptions.Forget()
	if err := c.subscribeMissing(l); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = true
	return nil
}

func (c *Client) connect(l *link, clean bool) error {
	answer, err := c.request(l, func(bool) error {
		return l.send(&wire.Connect{CleanSession: clean, KeepAliveSeconds: uint16(c.keepAlive() / time.Second), ClientID: c.id})
	}, func(p wire.Packet) bool { return wire.TypeOf(p) == wire.TypeConnack })
	if err != nil {
		return err
	}
	if code := answer.(*wire.Connack).Code; code != wire.Accepted {
		return fmt.Errorf("CONNECT: %s", code)
	}
	return nil
}

// register registers a topic, unless it needs no registration.
func (c *Client) register(l *link, topic string) error {
	c.mu.Lock()
	_, known := c.known(topic)
	c.mu.Unlock()
	if known {
		return nil
	}
	id := c.nextID()
	answer, err := c.request(l, func(bool) error { return l.send(&wire.Register{MsgID: id, Topic: topic}) },
		func(p wire.Packet) bool { a, ok := p.(*wire.Regack); return ok && a.MsgID == id })
	if err != nil {
		return err
	}
	a := answer.(*wire.Regack)
	if a.Code != wire.Accepted {
		return fmt.Errorf("REGISTER %s: %s", topic, a.Code)
	}
	c.mu.Lock()
	c.ids[topic], c.names[a.TopicID] = a.TopicID, topic
	c.mu.Unlock()
	return nil
}

// subscribeMissing requests filters that the gateway has not granted, and sets the time of the next attempt.
func (c *Client) subscribeMissing(l *link) error {
	for _, filter := range c.subscriptions.Missing() {
		if err := c.subscribe(l, filter); err != nil {
			return err
		}
	}
	if c.missing() {
		c.subscribeAt = time.Now().Add(c.subscriptions.Pause())
	}
	return nil
}

func (c *Client) missing() bool { return len(c.subscriptions.Missing()) > 0 }

func (c *Client) subscribe(l *link, filter string) error {
	p := &wire.Subscribe{QoS: c.setup.SubscribeQoS(), MsgID: c.nextID(), Topic: filter}
	if _, short := mqttsn.ShortName(filter); short {
		p.Kind = wire.Short
	}
	answer, err := c.request(l, func(again bool) error {
		p.DUP = again
		return l.send(p)
	}, func(a wire.Packet) bool { s, ok := a.(*wire.Suback); return ok && s.MsgID == p.MsgID })
	if err != nil {
		return err
	}
	a := answer.(*wire.Suback)
	if a.Code != wire.Accepted {
		c.subscriptions.Refused(a.Code.String(), filter)
		return nil
	}
	if a.TopicID != 0 && p.Kind == wire.Registered {
		c.mu.Lock()
		c.names[a.TopicID], c.ids[filter] = filter, a.TopicID
		c.mu.Unlock()
	}
	c.subscriptions.Granted(filter)
	return nil
}

// serve keeps the connection alive, sends waiting messages, and sleeps in between if configured.
func (c *Client) serve(l *link) error {
	for {
		for o := c.first(); o != nil; o = c.first() {
			if err := c.transact(l, o); err != nil {
				return err
			}
		}
		if c.isClosing() {
			_ = l.send(&wire.Disconnect{})
			c.cancel()
			return c.ctx.Err()
		}
		var err error
		switch missing := c.missing(); {
		case missing && !time.Now().Before(c.subscribeAt):
			err = c.subscribeMissing(l)
		case c.sleeps() && !missing:
			err = c.sleep(l)
		default:
			err = c.wait(l)
		}
		if err != nil {
			return err
		}
	}
}

func (c *Client) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// wait waits for work, and pings a gateway that was silent for long.
func (c *Client) wait(l *link) error {
	sent, received := l.last()
	if received.Before(sent) {
		sent = received
	}
	until := sent.Add(c.keepAlive() * 3 / 4)
	if c.missing() && c.subscribeAt.Before(until) {
		until = c.subscribeAt
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case err := <-l.broken:
		return err
	case p := <-l.answers:
		if wire.TypeOf(p) == wire.TypeDisconnect {
			return errEnded
		}
		c.invalid(p)
	case <-c.wake:
	case <-timer.C:
		sent, received := l.last()
		if since := time.Since(sent); since >= c.keepAlive()*3/4 || time.Since(received) >= c.keepAlive()*3/4 {
			_, err := c.request(l, func(bool) error { return l.send(&wire.Pingreq{}) }, isPingresp)
			return err
		}
	}
	return nil
}

func isPingresp(p wire.Packet) bool { return wire.TypeOf(p) == wire.TypePingresp }

// invalid handles the refusal of a QoS 0 message's topic id: the next message registers it again.
func (c *Client) invalid(p wire.Packet) {
	a, ok := p.(*wire.Puback)
	if !ok || a.Code != wire.InvalidTopicID {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if topic, known := c.names[a.TopicID]; known {
		delete(c.ids, topic)
	}
}

// transact sends the queue's first message and waits until the gateway has it.
func (c *Client) transact(l *link, o *outgoing) error {
	if err := c.register(l, o.topic); err != nil {
		return err
	}
	var err error
	switch c.qos {
	case 0:
		err = c.write(l, o.topic, c.packetOf(o, false))
	case 1:
		err = c.promise(l, o, wire.TypePuback)
	case 2:
		if !o.received {
			err = c.promise(l, o, wire.TypePubrec)
		}
		if err == nil && o.received {
			_, err = c.request(l, func(bool) error { return l.send(&wire.Pubrel{MsgID: o.id}) },
				func(p wire.Packet) bool { a, ok := p.(*wire.Pubcomp); return ok && a.MsgID == o.id })
		}
	}
	if errors.Is(err, errRegisterAgain) {
		return nil
	}
	if err == nil {
		c.pop()
	}
	return err
}

func (c *Client) packetOf(o *outgoing, dup bool) *wire.Publish {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, _ := c.known(o.topic)
	return &wire.Publish{DUP: dup, QoS: c.qos, Retain: c.setup.Publish.Retain, Kind: id.kind, TopicID: id.id, MsgID: o.id, Data: o.payload}
}

// promise sends a message of QoS 1 or 2 until it is acknowledged.
func (c *Client) promise(l *link, o *outgoing, by wire.Type) error {
	dup := o.id != 0 // it was sent on an earlier connection
	if o.id == 0 {
		o.id = c.nextID()
	}
	answer, err := c.request(l, func(again bool) error { return c.write(l, o.topic, c.packetOf(o, dup || again)) }, func(p wire.Packet) bool {
		switch p := p.(type) {
		case *wire.Puback:
			return p.MsgID == o.id && (by == wire.TypePuback || p.Code != wire.Accepted)
		case *wire.Pubrec:
			return p.MsgID == o.id && by == wire.TypePubrec
		}
		return false
	})
	if err != nil {
		return err
	}
	a, ok := answer.(*wire.Puback)
	if !ok {
		o.received = true
		return nil
	}
	switch a.Code {
	case wire.Accepted:
		return nil
	case wire.InvalidTopicID:
		c.mu.Lock()
		delete(c.ids, o.topic)
		c.mu.Unlock()
		return errRegisterAgain
	case wire.Congestion:
		if err := c.pause(congestionWait); err != nil {
			return err
		}
		return errRegisterAgain
	}
	c.setup.Warn(fmt.Sprintf("the gateway refuses a message to %s: %s", o.topic, a.Code))
	return nil
}

func (c *Client) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (c *Client) sleeps() bool { return c.setup.Subscribe != nil && c.setup.Subscribe.SleepSeconds > 0 }

// sleep sleeps until there is a message to publish. The client polls for its messages in between (6.14).
func (c *Client) sleep(l *link) error {
	pause := time.Duration(c.setup.Subscribe.SleepSeconds * float64(time.Second))
	// The announced duration leaves time for repetitions: the gateway drops a client that exceeds it by half.
	sleepDuration := pause + time.Duration(c.retries)*c.retryAfter
	seconds := min(math.Ceil(sleepDuration.Seconds()), 65535)
	_, err := c.request(l, func(bool) error { return l.send(&wire.Disconnect{Sleep: true, SleepSeconds: uint16(seconds)}) },
		func(p wire.Packet) bool { return wire.TypeOf(p) == wire.TypeDisconnect })
	if err != nil {
		return err
	}
	c.setAsleep(l, true)
	defer c.setAsleep(l, false)
	for {
		err := c.doze(l, pause)
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			_, failed := c.request(l, func(bool) error { return l.send(&wire.Pingreq{ClientID: c.id}) }, isPingresp)
			if failed != nil {
				return failed
			}
		}
		switch {
		case err == nil: // there is work; subscriptions and registrations remain valid
			return c.connect(l, false)
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// doze waits for work or the timeout (context.DeadlineExceeded).
func (c *Client) doze(l *link, d time.Duration) error {
	if c.first() != nil || c.isClosing() {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return c.ctx.Err()
		case err := <-l.broken:
			return err
		case p := <-l.answers:
			if wire.TypeOf(p) == wire.TypeDisconnect {
				return errEnded
			}
		case <-timer.C:
			return context.DeadlineExceeded
		case <-c.wake:
			if c.first() != nil || c.isClosing() {
				return nil
			}
		}
	}
}

func (c *Client) setAsleep(l *link, asleep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.asleep = asleep
}
