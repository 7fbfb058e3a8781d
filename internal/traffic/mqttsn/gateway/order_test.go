package gateway

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

// message gives the gateway a message of the broker.
func (b *broker) message(topic string, qos int, text string) {
	b.conn.events.message(message{topic: topic, payload: []byte(text), qos: qos}, 0, false)
}

// subscribe subscribes the client at the broker, with QoS 2.
func (n *node) subscribe(b *broker, filter string) {
	n.t.Helper()
	n.does(&wire.Subscribe{QoS: 2, MsgID: 1, Topic: filter})
	for id := range n.g.own.asked {
		b.conn.events.answered(packets.Suback, id, 2)
	}
	n.does()
}

// passes lets time pass.
func (n *node) passes(d time.Duration) {
	now := n.g.now().Add(d)
	n.g.now = func() time.Time { return now }
	n.g.checkNow()
}

// words are packets to a client in words.
func words(list []wire.Packet) (text []string) {
	for _, p := range list {
		switch p := p.(type) {
		case *wire.Publish:
			word := fmt.Sprintf("PUBLISH %s", p.Data)
			if p.DUP {
				word += " again"
			}
			text = append(text, word)
		default:
			text = append(text, wire.TypeOf(p).String())
		}
	}
	return text
}

func wantWords(t *testing.T, when string, got []wire.Packet, want ...string) {
	t.Helper()
	if !slices.Equal(words(got), want) {
		t.Fatalf("%s the client gets\n%q; want\n%q", when, words(got), want)
	}
}

// subscriber is a client of an aggregating gateway that has subscribed to all topics of two characters.
func subscriber(t *testing.T, clean bool) (*node, *broker) {
	t.Helper()
	g := aggregating(t)
	b := connectBroker(t, g)
	n := nodeOf(t, g, 1000, clean)
	n.subscribe(b, "#")
	t.Cleanup(func() { b.conn.shut() })
	return n, b
}

func TestAClientGetsMessagesAgainInTheirOrder(t *testing.T) {
	n, b := subscriber(t, true)
	var want, again []string
	for i := range 9 {
		text := fmt.Sprint("m", i)
		b.message("ab", 1, text)
		want, again = append(want, "PUBLISH "+text), append(again, "PUBLISH "+text+" again")
	}
	wantWords(t, "at first", n.does(), want...)
	n.passes(n.g.config.Retry())
	wantWords(t, "after the time of a repetition", n.does(), again...)
	n.does(&wire.Disconnect{Sleep: true, SleepSeconds: 60})
	wantWords(t, "after its sleep", n.does(&wire.Pingreq{ClientID: "1000"}), again...)
}

func TestAClientThatForgotATopicGetsItsMessagesInTheirOrder(t *testing.T) {
	n, b := subscriber(t, true)
	n.g.config.Window = 2
	b.message("a/b", 1, "m0")
	register := n.does()[0].(*wire.Register)
	known := &wire.Regack{TopicID: register.TopicID, MsgID: register.MsgID}
	sent := n.does(known)
	for i := range 3 {
		b.message("a/b", 1, fmt.Sprint("m", 1+i))
	}
	sent = append(sent, n.does()...)
	wantWords(t, "at first", sent, "PUBLISH m0", "PUBLISH m1")
	for _, p := range sent {
		p := p.(*wire.Publish)
		for _, p := range n.does(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID, Code: wire.InvalidTopicID}) {
			known.MsgID = p.(*wire.Register).MsgID
		}
	}
	got := n.does(known)
	wantWords(t, "after its registration", got, "PUBLISH m0 again", "PUBLISH m1 again")
	for _, p := range got {
		p := p.(*wire.Publish)
		got = append(got, n.does(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID})...)
	}
	wantWords(t, "in all", got, "PUBLISH m0 again", "PUBLISH m1 again", "PUBLISH m2", "PUBLISH m3")
}

func TestAClientThatComesBackCompletesItsMessagesOfQoS2(t *testing.T) {
	n, b := subscriber(t, false)
	b.message("ab", 2, "x")
	id := n.does()[0].(*wire.Publish).MsgID
	n.does(&wire.Pubrec{MsgID: id}) // the PUBREL is lost
	n.does(&wire.Disconnect{})
	got := n.does(&wire.Connect{ClientID: "1000"})
	wantWords(t, "on its return", got, "CONNACK", "PUBREL")
	if rel := got[len(got)-1].(*wire.Pubrel); rel.MsgID != id {
		t.Errorf("PUBREL has the id %d; want %d", rel.MsgID, id)
	}
	wantWords(t, "after PUBCOMP", n.does(&wire.Pubcomp{MsgID: id}))
	n.passes(n.g.config.Retry())
	wantWords(t, "later", n.does())
}

func TestAClientThatComesBackGetsAllRepetitionsAnew(t *testing.T) {
	n, b := subscriber(t, false)
	b.message("ab", 1, "one")
	b.message("ab", 2, "two")
	wantWords(t, "at first", n.does(), "PUBLISH one", "PUBLISH two")
	n.does(&wire.Pubrec{MsgID: 2})
	for _, when := range []string{"the first time", "on its return"} {
		for try := range n.g.config.Retries {
			n.passes(n.g.config.Retry())
			wantWords(t, fmt.Sprintf("%s, try %d,", when, try), n.does(), "PUBLISH one again", "PUBREL")
		}
		n.passes(n.g.config.Retry())
		got := words(n.does())
		if len(got) == 0 || got[len(got)-1] != "DISCONNECT" {
			t.Fatalf("%s the client gets %q; want a DISCONNECT after %d tries", when, got, n.g.config.Retries)
		}
		wantWords(t, "on its return", n.does(&wire.Connect{ClientID: "1000"}), "CONNACK", "PUBREL", "PUBLISH one again")
	}
}

func TestALateDoubleOfPUBRELDoesNotCompleteTheNextMessageWithItsID(t *testing.T) {
	g := aggregating(t)
	b := connectBroker(t, g)
	n := nodeOf(t, g, 1000, true)
	for own := range uint16(2) {
		n.publish(2, 5, fmt.Sprint("m", own))
		if own > 0 {
			wantWords(t, "after a double of PUBREL", n.does(&wire.Pubrel{MsgID: 5}))
		}
		b.answers(packets.Pubrec, own+1)
		wantWords(t, "after the broker's PUBREC", n.does(), "PUBREC")
		wantWords(t, "before the broker's PUBCOMP", n.does(&wire.Pubrel{MsgID: 5}))
		b.answers(packets.Pubcomp, own+1)
		wantWords(t, "after the broker's PUBCOMP", n.does(), "PUBCOMP")
	}
	wantSent(t, b.end(), "PUBLISH 2 m0", "PUBREL 1", "PUBLISH 2 m1", "PUBREL 2")
}

func TestANewMessageWithTheIDOfTheLastOneIsForwardedAlsoIfItsFirstDatagramIsLost(t *testing.T) {
	g := aggregating(t)
	b := connectBroker(t, g)
	n := nodeOf(t, g, 1000, true)
	p := &wire.Publish{QoS: 1, Kind: wire.Short, TopicID: 'a'<<8 | 'b', MsgID: 5, Data: []byte("m0")}
	n.does(p)
	b.answers(packets.Puback, 1)
	wantWords(t, "at first", n.does(), "PUBACK")
	p.DUP = true
	wantWords(t, "for a repetition", n.does(p), "PUBACK")
	p.Data = []byte("m1")
	wantWords(t, "before the broker's PUBACK", n.does(p))
	b.answers(packets.Puback, 2)
	wantWords(t, "after the broker's PUBACK", n.does(), "PUBACK")
	wantSent(t, b.end(), "PUBLISH 1 m0", "PUBLISH 1 m1")
}
