package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/transport"
)

const (
	// brokerKeepAlive is the keep-alive of connections to the broker, independent of the clients.
	brokerKeepAlive = 60 * time.Second
	// brokerBacklog is the most packets queued for the broker.
	brokerBacklog = 4096
)

var (
	errBrokerBusy = errors.New("the broker takes no more")
	errNoBroker   = errors.New("no connection to the broker")
)

// message is a message in either direction.
type message struct {
	topic   string
	payload []byte
	qos     int
	retain  bool
}

// login has the parameters of a CONNECT.
type login struct {
	clientID string
	clean    bool
	will     *message
}

// brokerEvents are called without the gateway's lock.
type brokerEvents struct {
	// message: a message arrived. Call received to acknowledge QoS 1 and 2.
	message func(m message, id uint16, dup bool)
	// released: a PUBREL arrived. Call complete to answer it.
	released func(id uint16)
	// answered: PUBACK, PUBREC, PUBCOMP, SUBACK or UNSUBACK arrived; granted is SUBACK's first return code.
	answered func(kind byte, id uint16, granted byte)
	// lost: the connection ended by itself.
	lost func(err error)
}

// brokerConn is one MQTT 3.1.1 connection to the broker. Its user chooses packet ids. No method blocks.
type brokerConn struct {
	conn   *transport.WatchedConn
	events brokerEvents
	out    chan packets.ControlPacket
	closed chan struct{}
	once   sync.Once
	// sessionPresent: the broker still had the session.
	sessionPresent bool
}

// dialBroker connects and logs in. Events begin after start.
func dialBroker(ctx context.Context, dialer *transport.Dialer, with login, events brokerEvents) (b *brokerConn, err error) {
	dialled, err := dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	conn := transport.Watch(dialled)
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion = "MQTT", 4
	connect.ClientIdentifier, connect.CleanSession, connect.Keepalive = with.clientID, with.clean, uint16(brokerKeepAlive/time.Second)
	if w := with.will; w != nil {
		connect.WillFlag, connect.WillTopic, connect.WillMessage, connect.WillQos, connect.WillRetain = true, w.topic, w.payload, byte(w.qos), w.retain
	}
	username, password, err := dialer.Login()
	if err != nil {
		return nil, err
	}
	if username != "" {
		connect.UsernameFlag, connect.Username = true, username
		connect.PasswordFlag, connect.Password = true, []byte(password)
	}
	if err := conn.SetDeadline(time.Now().Add(dialer.Timeout())); err != nil {
		return nil, err
	}
	if err := connect.Write(conn); err != nil {
		return nil, err
	}
	answer, err := packets.ReadPacket(conn)
	if err != nil {
		return nil, err
	}
	ack, ok := answer.(*packets.ConnackPacket)
	if !ok {
		return nil, fmt.Errorf("the broker answers CONNECT by %s", answer)
	}
	if ack.ReturnCode != packets.Accepted {
		return nil, fmt.Errorf("the broker refuses the connection: %s", packets.ConnackReturnCodes[ack.ReturnCode])
	}
	if err := conn.SetDeadline(time.Time{}); err != nil { // from now on keepAlive decides
		return nil, err
	}
	dialer.Connected()
	return &brokerConn{conn: conn, events: events, out: make(chan packets.ControlPacket, brokerBacklog), closed: make(chan struct{}), sessionPresent: ack.SessionPresent}, nil
}

// start begins to read and write.
func (b *brokerConn) start() {
	go b.write()
	go b.keepAlive()
	go func() {
		if err := b.read(); b.shut() {
			b.events.lost(err)
		}
	}()
}

// keepAlive pings the broker, and ends a connection on which nothing moves in either direction. On a slow link a packet may take
// minutes, also that with the answer to a ping.
func (b *brokerConn) keepAlive() {
	ping := time.NewTicker(brokerKeepAlive / 2)
	defer ping.Stop()
	for {
		select {
		case <-b.closed:
			return
		case now := <-ping.C:
			if now.Sub(b.conn.LastSign(now)) > 2*brokerKeepAlive {
				b.conn.Close() // the end of read reports it
				return
			}
			_ = b.send(packets.NewControlPacket(packets.Pingreq)) // a full queue is busy enough
		}
	}
}

// shut closes the connection, and returns false if it was closed before.
func (b *brokerConn) shut() (first bool) {
	b.once.Do(func() {
		first = true
		close(b.closed)
		b.conn.Close()
	})
	return first
}

// disconnect sends queued packets and a DISCONNECT, which deletes the will.
func (b *brokerConn) disconnect() {
	if b.send(packets.NewControlPacket(packets.Disconnect)) != nil {
		b.shut()
	}
}

func (b *brokerConn) send(p packets.ControlPacket) error {
	select {
	case <-b.closed:
		return errNoBroker
	default:
	}
	select {
	case b.out <- p:
		return nil
	default:
		return errBrokerBusy
	}
}

// sendOrClose sends a packet that cannot be left out: a full queue ends the connection.
func (b *brokerConn) sendOrClose(p packets.ControlPacket) {
	if errors.Is(b.send(p), errBrokerBusy) {
		b.conn.Close() // the end of read reports it
	}
}

func (b *brokerConn) write() {
	w := bufio.NewWriter(b.conn)
	for {
		var p packets.ControlPacket
		select {
		case <-b.closed:
			return
		case p = <-b.out:
		}
		err := p.Write(w)
		if _, last := p.(*packets.DisconnectPacket); last {
			_ = w.Flush()
			b.shut()
			return
		}
		if err == nil && len(b.out) == 0 {
			err = w.Flush()
		}
		if err != nil {
			b.conn.Close() // the end of read reports it
			return
		}
	}
}

func (b *brokerConn) read() error {
	r := bufio.NewReader(b.conn)
	for {
		p, err := packets.ReadPacket(r)
		if err != nil {
			return err
		}
		switch p := p.(type) {
		case *packets.PublishPacket:
			b.events.message(message{topic: p.TopicName, payload: p.Payload, qos: int(p.Qos), retain: p.Retain}, p.MessageID, p.Dup)
		case *packets.PubrelPacket:
			b.events.released(p.MessageID)
		case *packets.PubackPacket:
			b.events.answered(packets.Puback, p.MessageID, 0)
		case *packets.PubrecPacket:
			b.events.answered(packets.Pubrec, p.MessageID, 0)
		case *packets.PubcompPacket:
			b.events.answered(packets.Pubcomp, p.MessageID, 0)
		case *packets.SubackPacket:
			if len(p.ReturnCodes) == 0 {
				return errors.New("the broker's SUBACK has no return code")
			}
			b.events.answered(packets.Suback, p.MessageID, p.ReturnCodes[0])
		case *packets.UnsubackPacket:
			b.events.answered(packets.Unsuback, p.MessageID, 0)
		}
	}
}

func (b *brokerConn) publish(m message, id uint16, dup bool) error {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload, p.Qos, p.Retain, p.MessageID, p.Dup = m.topic, m.payload, byte(m.qos), m.retain, id, dup
	return b.send(p)
}

func (b *brokerConn) release(id uint16) {
	p := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
	p.MessageID = id
	b.sendOrClose(p)
}

// received acknowledges a message by PUBACK or PUBREC.
func (b *brokerConn) received(qos int, id uint16) {
	switch qos {
	case 1:
		p := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
		p.MessageID = id
		b.sendOrClose(p)
	case 2:
		p := packets.NewControlPacket(packets.Pubrec).(*packets.PubrecPacket)
		p.MessageID = id
		b.sendOrClose(p)
	}
}

func (b *brokerConn) complete(id uint16) {
	p := packets.NewControlPacket(packets.Pubcomp).(*packets.PubcompPacket)
	p.MessageID = id
	b.sendOrClose(p)
}

func (b *brokerConn) subscribe(filter string, qos int, id uint16) error {
	p := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	p.Topics, p.Qoss, p.MessageID = []string{filter}, []byte{byte(qos)}, id
	return b.send(p)
}

func (b *brokerConn) unsubscribe(filter string, id uint16) error {
	p := packets.NewControlPacket(packets.Unsubscribe).(*packets.UnsubscribePacket)
	p.Topics, p.MessageID = []string{filter}, id
	return b.send(p)
}
