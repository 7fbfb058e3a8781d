package gateway

import (
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

// topics are a client's topics and their ids.
type topics struct {
	g      *Gateway
	byName map[string]uint16
	byID   map[uint16]string
	// predefined has those that the client has subscribed to by id, and so knows.
	predefined map[string]uint16
}

func newTopics(g *Gateway) topics { return topics{g: g} }

// add gives a topic an id, or returns its existing one.
func (t *topics) add(topic string) (uint16, wire.ReturnCode) {
	if id, ok := t.byName[topic]; ok {
		return id, wire.Accepted
	}
	if len(t.byName) >= t.g.config.MaxTopics || t.g.topics >= allTopicsFactor*t.g.config.MaxTopics {
		return 0, wire.Congestion
	}
	if t.byName == nil {
		t.byName, t.byID = map[string]uint16{}, map[uint16]string{}
	}
	id := uint16(len(t.byName) + 1) // ids are never reused
	t.byName[topic], t.byID[id] = id, topic
	t.g.topics++
	return id, wire.Accepted
}

// name returns the topic of an id.
func (t *topics) name(kind wire.TopicKind, id uint16) (string, bool) {
	switch kind {
	case wire.Predefined:
		topic, ok := t.g.predefined[id]
		return topic, ok
	case wire.Short:
		return mqttsn.LongName(id), true
	}
	topic, ok := t.byID[id]
	return topic, ok
}

func (t *topics) usePredefined(id uint16, topic string) {
	if t.predefined == nil {
		t.predefined = map[string]uint16{}
	}
	t.predefined[topic] = id
}

// known returns how to name a topic to the client; false if it must be registered first.
func (t *topics) known(topic string) (wire.TopicKind, uint16, bool) {
	if id, ok := t.predefined[topic]; ok {
		return wire.Predefined, id, true
	}
	if id, ok := mqttsn.ShortName(topic); ok {
		return wire.Short, id, true
	}
	id, ok := t.byName[topic]
	return wire.Registered, id, ok
}

func (t *topics) clear() {
	t.g.topics -= len(t.byName)
	t.byName, t.byID, t.predefined = nil, nil, nil
}
