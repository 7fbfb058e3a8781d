package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// node is a client of a gateway without a network, in virtual time.
type node struct {
	t *testing.T
	g *Gateway
	peer
}

// nodeOf returns the client at a port, connected.
func nodeOf(t *testing.T, g *Gateway, port uint16, clean bool) *node {
	t.Helper()
	n := &node{t: t, g: g, peer: peer{address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)}}
	n.connect(clean)
	return n
}

func (n *node) connect(clean bool) {
	n.t.Helper()
	if got := n.does(&wire.Connect{CleanSession: clean, ClientID: fmt.Sprint(n.address.Port())}); len(got) == 0 || *got[0].(*wire.Connack) != (wire.Connack{}) {
		n.t.Fatalf("CONNECT is answered by %v", got)
	}
}

// does sends packets and returns what the client got since it last asked.
func (n *node) does(list ...wire.Packet) (got []wire.Packet) {
	n.t.Helper()
	for _, p := range list {
		b, err := wire.Append(nil, p)
		if err != nil {
			n.t.Fatal(err)
		}
		n.g.datagram(n.peer, b)
	}
	for len(n.g.out) > 0 {
		d := <-n.g.out
		if d.to != n.address {
			continue
		}
		p, err := wire.Parse(d.bytes)
		if err != nil {
			n.t.Fatal(err)
		}
		got = append(got, p)
	}
	return got
}

// publish publishes a message to the topic "ab".
func (n *node) publish(qos int, id uint16, text string) []wire.Packet {
	n.t.Helper()
	return n.does(&wire.Publish{QoS: qos, Kind: wire.Short, TopicID: 'a'<<8 | 'b', MsgID: id, Data: []byte(text)})
}

// aggregating returns an aggregating gateway without a network, whose broker is away.
func aggregating(t *testing.T) *Gateway {
	t.Helper()
	g, taken := gatewayWithSilentBroker()
	taken.conn.Close()
	g.config.Window, g.config.MaxQueued = 10, 100
	g.own.conn = nil
	now := time.Now()
	g.now = func() time.Time { return now }
	return g
}

// broker is the far end of an aggregating gateway's connection.
type broker struct {
	t    *testing.T
	g    *Gateway
	conn *brokerConn
	far  net.Conn
}

// connectBroker gives the gateway a connection to a broker that still has its session.
func connectBroker(t *testing.T, g *Gateway) *broker {
	t.Helper()
	near, far := net.Pipe()
	b := &broker{t: t, g: g, far: far, conn: &brokerConn{conn: transport.Watch(near), out: make(chan packets.ControlPacket, brokerBacklog), closed: make(chan struct{}),
		sessionPresent: true, events: g.own.events(make(chan error, 1))}}
	g.own.resume(b.conn)
	return b
}

// answers passes an answer of the broker to the gateway.
func (b *broker) answers(kind byte, id uint16) {
	b.conn.events.answered(kind, id, 0)
}

// end ends the connection after everything is sent. It returns that in words.
func (b *broker) end() (sent []string) {
	b.t.Helper()
	b.conn.disconnect()
	for {
		p, err := packets.ReadPacket(b.far)
		if err != nil {
			b.t.Fatalf("the connection ends by %v; want a DISCONNECT", err)
		}
		switch p := p.(type) {
		case *packets.PublishPacket:
			text := fmt.Sprintf("PUBLISH %d %s", p.Qos, p.Payload)
			if p.Dup {
				text += " again"
			}
			sent = append(sent, text)
		case *packets.PubrelPacket:
			sent = append(sent, fmt.Sprint("PUBREL ", p.MessageID))
		case *packets.DisconnectPacket:
			<-b.conn.closed
			b.g.own.down(b.conn)
			return sent
		default:
			sent = append(sent, fmt.Sprintf("%T", p))
		}
	}
}

func wantSent(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the broker gets\n%q; want\n%q", got, want)
	}
}

func TestAReconnectionSendsMessagesInTheirOrderAndWithDUPOnlyThoseSentBefore(t *testing.T) {
	g := aggregating(t)
	g.own.lastID = 0xFFFA // so that later messages have lower ids
	first := connectBroker(t, g)
	n := nodeOf(t, g, 1000, true)
	var before, again, later []string
	for i := range 10 {
		text := fmt.Sprintf("%d early%d", 1+i%2, i)
		n.publish(1+i%2, uint16(1+i), text[2:])
		before, again = append(before, "PUBLISH "+text), append(again, "PUBLISH "+text+" again")
	}
	wantSent(t, first.end(), before...)
	for i := range 10 {
		text := fmt.Sprintf("%d late%d", 1+i%2, i)
		n.publish(1+i%2, uint16(11+i), text[2:])
		later = append(later, "PUBLISH "+text)
		again = append(again, later[i])
	}
	wantSent(t, connectBroker(t, g).end(), again...)
	for i := range later {
		again[10+i] += " again"
	}
	wantSent(t, connectBroker(t, g).end(), again...)
}

func TestAReconnectionSendsPUBRELInTheOrderOfPUBREC(t *testing.T) {
	g := aggregating(t)
	first := connectBroker(t, g)
	n := nodeOf(t, g, 1000, true)
	for id := range uint16(9) {
		n.publish(2, id+1, "x")
	}
	var want []string
	for id := uint16(9); id > 0; id-- {
		first.answers(packets.Pubrec, id)
		want = append(want, fmt.Sprint("PUBREL ", id))
	}
	first.end()
	for id := range uint16(9) {
		n.does(&wire.Pubrel{MsgID: id + 1})
	}
	wantSent(t, connectBroker(t, g).end(), want...)
}

func TestMessagesOfAClientThatIsGoneAreReleasedByTheNextConnection(t *testing.T) {
	g := aggregating(t)
	first := connectBroker(t, g)
	n := nodeOf(t, g, 1000, true)
	n.publish(2, 1, "x")
	first.answers(packets.Pubrec, 1)
	first.end()
	n.does(&wire.Disconnect{})
	next := connectBroker(t, g)
	next.answers(packets.Pubcomp, 1)
	wantSent(t, next.end(), "PUBREL 1")
	if len(g.own.sent) > 0 {
		t.Errorf("%d messages wait for a client that is gone", len(g.own.sent))
	}
}

func TestMessagesOfAClientThatGoesAreReleasedInTheOrderOfPUBREC(t *testing.T) {
	g := aggregating(t)
	b := connectBroker(t, g)
	n := nodeOf(t, g, 1000, true)
	for id := range uint16(9) {
		n.publish(2, id+1, "x")
	}
	var want []string
	for range 9 {
		want = append(want, "PUBLISH 2 x")
	}
	for id := uint16(9); id > 0; id-- {
		b.answers(packets.Pubrec, id)
		want = append(want, fmt.Sprint("PUBREL ", id))
	}
	n.does(&wire.Disconnect{})
	wantSent(t, b.end(), want...)
}

func TestAClientCanSubscribeAgainAfterTheConnectionTookItsRequestAlong(t *testing.T) {
	g := aggregating(t)
	first := connectBroker(t, g)
	n := nodeOf(t, g, 1000, true)
	request := &wire.Subscribe{QoS: 1, MsgID: 7, Kind: wire.Short, Topic: "ab"}
	n.does(request)
	first.end()
	if got := n.does(request); len(got) != 1 || got[0].(*wire.Suback).Code != wire.Congestion {
		t.Errorf("without a broker SUBSCRIBE is answered by %v; want congestion", got)
	}
	next := connectBroker(t, g)
	n.does(request)
	for id := range g.own.asked {
		next.answers(packets.Suback, id)
	}
	if got := n.does(); len(got) != 1 || got[0].(*wire.Suback).Code != wire.Accepted {
		t.Errorf("SUBSCRIBE is answered by %v; want it accepted", got)
	}
	next.end()
}

func TestAReconnectionEndsNoFilterThatAnotherClientHasTaken(t *testing.T) {
	g := aggregating(t)
	first := connectBroker(t, g)
	one, two := nodeOf(t, g, 1000, true), nodeOf(t, g, 1001, true)
	one.does(&wire.Subscribe{MsgID: 1, Kind: wire.Short, Topic: "ab"}, &wire.Unsubscribe{MsgID: 2, Kind: wire.Short, Topic: "ab"})
	two.does(&wire.Subscribe{MsgID: 1, Kind: wire.Short, Topic: "ab"})
	first.end()
	wantSent(t, connectBroker(t, g).end(), "*packets.SubscribePacket")
}

func TestAConnectionThatCannotTakeAllMessagesLeavesTheRestToTheNext(t *testing.T) {
	g := aggregating(t)
	connected := connectBroker(t, g)
	n := nodeOf(t, g, 1000, true)
	connected.end()
	var want []string
	for id := range uint16(10) {
		text := fmt.Sprint(id, strings.Repeat("x", 10000)) // more than is written at once
		n.publish(1, id+1, text)
		want = append(want, "PUBLISH 1 "+text)
	}
	near, far := net.Pipe() // nobody reads
	defer far.Close()
	lost := make(chan error, 1)
	full := &brokerConn{conn: transport.Watch(near), out: make(chan packets.ControlPacket, 2), closed: make(chan struct{}), events: g.own.events(lost)}
	g.own.resume(full)
	select {
	case <-lost:
	case <-time.After(10 * time.Second):
		t.Fatal("the connection goes on without the messages that it did not take")
	}
	g.own.down(full)
	got := connectBroker(t, g).end()
	if last := got[len(got)-1]; strings.HasSuffix(last, " again") {
		t.Error("a message that was never sent has DUP")
	}
	for i := range got {
		got[i] = strings.TrimSuffix(got[i], " again")
	}
	wantSent(t, got, want...)
}

func TestAnUpdatedWillOfQoS2IsPublishedAndReleasedByAnAggregatingGateway(t *testing.T) {
	g := aggregating(t)
	b := connectBroker(t, g)
	n := nodeOf(t, g, 1000, false)
	n.does(&wire.WillTopicUpd{Topic: "will", QoS: 2}, &wire.WillMsgUpd{Message: []byte("gone")})
	n.does(&wire.Connect{ClientID: "another client at its address"})
	b.answers(packets.Pubrec, 1)
	b.answers(packets.Pubcomp, 1)
	wantSent(t, b.end(), "PUBLISH 2 gone", "PUBREL 1")
}

func TestAnswersForAClientThatIsAwayDoNotReachTheNextOneAtItsAddress(t *testing.T) {
	g := aggregating(t)
	b := connectBroker(t, g)
	n := nodeOf(t, g, 1000, false)
	n.publish(1, 5, "x")
	n.does(&wire.Connect{ClientID: "another client at its address"})
	b.answers(packets.Puback, 1)
	if got := n.does(); len(got) > 0 {
		t.Errorf("another client gets %v", words(got))
	}
	b.end()
}
