package gateway

import (
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

func TestAClientThatStartsAgainUsesTheIDOfAnUnansweredMessageForAnother(t *testing.T) {
	for _, qos := range []int{1, 2} {
		g := aggregating(t)
		first := connectBroker(t, g)
		n := nodeOf(t, g, 1000, false)
		first.end()
		n.publish(qos, 5, "before")
		b := connectBroker(t, g)
		n.connect(false)
		n.publish(qos, 5, "after")
		kind := byte(packets.Puback)
		if qos == 2 {
			kind = packets.Pubrec
		}
		b.answers(kind, 1)
		wantWords(t, "once the broker has the message before", n.does())
		b.answers(kind, 2)
		sent := b.end()
		if qos == 1 {
			wantSent(t, sent, "PUBLISH 1 before", "PUBLISH 1 after")
			wantWords(t, "once the broker has both", n.does(), "PUBACK")
			continue
		}
		wantSent(t, sent, "PUBLISH 2 before", "PUBLISH 2 after", "PUBREL 1")
		wantWords(t, "once the broker has both", n.does(), "PUBREC")
	}
}

func TestAClientThatStartsAgainUsesTheIDOfAnUnreleasedMessageForAnother(t *testing.T) {
	g := aggregating(t)
	b := connectBroker(t, g)
	n := nodeOf(t, g, 1000, false)
	n.publish(2, 5, "before")
	b.answers(packets.Pubrec, 1)
	n.does()
	n.connect(false)
	n.publish(2, 5, "after")
	b.answers(packets.Pubcomp, 1)
	b.answers(packets.Pubrec, 2)
	wantWords(t, "once the broker has the other message", n.does(&wire.Pubrel{MsgID: 5}), "PUBREC")
	b.answers(packets.Pubcomp, 2)
	wantWords(t, "at the end", n.does(), "PUBCOMP")
	wantSent(t, b.end(), "PUBLISH 2 before", "PUBREL 1", "PUBLISH 2 after", "PUBREL 2")
}

func TestAClientThatReconnectsRepeatsAMessageByAnotherTopicID(t *testing.T) {
	g := aggregating(t)
	b := connectBroker(t, g)
	n := nodeOf(t, g, 1000, false)
	publish := func(topic uint16) []wire.Packet {
		return n.does(&wire.Publish{QoS: 2, TopicID: topic, MsgID: 5, Data: []byte("x")})
	}
	n.does(&wire.Register{MsgID: 1, Topic: "one"})
	publish(1)
	n.connect(false)
	n.does(&wire.Register{MsgID: 1, Topic: "two"}, &wire.Register{MsgID: 2, Topic: "one"})
	publish(2)
	b.answers(packets.Pubrec, 1)
	n.does()
	wantWords(t, "at the repetition", publish(2), "PUBREC")
	wantSent(t, b.end(), "PUBLISH 2 x")
}
