package gateway

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"
	"unicode"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
)

// state is a client's state (6.14 of the specification).
type state int

const (
	// stateWill: asked for its will.
	stateWill state = iota
	// stateConnecting: waits for the connection to the broker.
	stateConnecting
	stateActive
	stateAsleep
	// stateAwake: fetches its messages between two sleeps.
	stateAwake
	// stateAway: has a persistent session and no connection. Only with an aggregating gateway; else the broker has the session.
	stateAway
)

var stateNames = map[state]string{
	stateWill: "will", stateConnecting: "connecting", stateActive: "active", stateAsleep: "asleep", stateAwake: "awake", stateAway: "away",
}

const (
	// tolerance is the factor by which a keep-alive or sleep may be exceeded.
	tolerance = 1.5
	// maxPending is the most unanswered requests of one client at the broker. The specification allows a client one at a time.
	maxPending = 100
	// willID is the message id of a will that the gateway publishes.
	willID = 0xFFFF
)

// upstream is a session's connection to the broker. Calls in both directions hold the gateway's lock.
type upstream interface {
	// publish publishes a message; with QoS 1 and 2 published follows.
	publish(m message, id uint16, dup bool) error
	// release releases a message of QoS 2; completed follows.
	release(id uint16) error
	// subscribe requests a filter; subscribed follows.
	subscribe(filter string, qos int, id uint16) error
	// unsubscribe removes a filter; unsubscribed follows.
	unsubscribe(filter string, id uint16) error
	// received: the client has a message of QoS 1 or 2. With QoS 2 released follows.
	received(d *delivery)
	// done: the client has answered released.
	done(d *delivery)
	// end ends the connection; normally means without the will.
	end(normally bool)
}

// pending is a client's request that the broker has not answered.
type pending struct {
	kind    wire.Type
	topicID uint16
	qos     int
	// digest is that of a message.
	digest uint64
}

var seed = maphash.MakeSeed()

// digest tells a repetition from another message with the same id. The topic's id may differ by connection.
func digest(m message, id uint16) uint64 {
	return maphash.Comparable(seed, struct {
		topic, payload string
		retain         bool
		id             uint16
	}{m.topic, string(m.payload), m.retain, id})
}

// session is one client's session.
type session struct {
	g        *Gateway
	peer     peer
	clientID string
	state    state
	clean    bool
	// fresh: no packet since CONNACK, which may have been lost.
	fresh bool
	// lastReceived is the time of the last packet; keepAlive and sleep are the longest times to the next, 0 for any.
	lastReceived     time.Time
	keepAlive, sleep time.Duration
	// will is the client's; willChanged: the broker has another one.
	will        *message
	willChanged bool
	up          upstream

	topics topics
	// pending is by message id; unreleased has digests of messages of QoS 2 at the broker, from PUBREC to PUBCOMP.
	pending    map[uint16]pending
	unreleased map[uint16]uint64
	// earlier has those of either that are of an earlier connection: a client that was restarted uses their ids anew.
	earlier map[uint16]bool
	// acknowledged is the digest of the last message of QoS 1. Its repetition is not forwarded.
	acknowledged uint64

	deliveries
	// question is repeated until it is answered: WILLTOPICREQ or WILLMSGREQ.
	question retry
}

// retry counts and times the repetitions of a packet.
type retry struct {
	packet wire.Packet
	at     time.Time
	tries  int
}

func newSession(g *Gateway, from peer, p *wire.Connect) *session {
	return &session{g: g, peer: from, clientID: p.ClientID, clean: p.CleanSession, lastReceived: g.now(), keepAlive: time.Duration(p.KeepAliveSeconds) * time.Second,
		topics: newTopics(g), pending: map[uint16]pending{}, unreleased: map[uint16]uint64{}, deliveries: newDeliveries()}
}

// send sends a packet to the client. One that is away has no address, which another client may have now.
func (s *session) send(p wire.Packet) {
	if s.state != stateAway {
		s.g.sendTo(s.peer, p)
	}
}

// begin asks for the will, if there is one, and connects.
func (s *session) begin(p *wire.Connect) {
	if p.Will {
		s.state = stateWill
		s.ask(&wire.WillTopicReq{})
		return
	}
	s.open()
}

func (s *session) ask(p wire.Packet) {
	s.question = retry{packet: p, at: s.g.now(), tries: 1}
	s.send(p)
}

// open connects to the broker.
func (s *session) open() {
	s.question, s.state = retry{}, stateConnecting
	if s.g.config.Mode == mqttsn.Aggregating {
		s.g.own.open(s)
		return
	}
	openTransparent(s)
}

// opened: the broker has accepted the client.
func (s *session) opened() {
	s.state, s.fresh, s.lastReceived = stateActive, true, s.g.now()
	s.send(&wire.Connack{})
	s.resend()
	s.pump()
}

// refused: the connection to the broker failed.
func (s *session) refused(err error) {
	s.g.metrics.refused.Inc()
	s.g.warn(fmt.Sprintf("client %s is refused: %s", s.clientID, transport.Words(err)))
	s.send(&wire.Connack{Code: wire.Congestion})
	s.forget()
}

// resumes reports whether a CONNECT continues the session unchanged.
func (s *session) resumes(from peer, p *wire.Connect) bool {
	same := s.peer == from && s.clean == p.CleanSession
	switch {
	case same && (s.state == stateConnecting || s.state == stateWill):
		return true // a repetition; its answer follows
	case same && s.state == stateActive && s.fresh:
		s.send(&wire.Connack{})
		return true
	case (s.state == stateAsleep || s.state == stateAwake) && !p.CleanSession && !p.Will:
		s.g.move(s, from)
		s.keepAlive, s.lastReceived, s.state = time.Duration(p.KeepAliveSeconds)*time.Second, s.g.now(), stateActive
		s.send(&wire.Connack{})
		s.pump()
		return true
	case s.state == stateAway && !p.CleanSession:
		s.g.move(s, from)
		s.keepAlive, s.lastReceived, s.clean = time.Duration(p.KeepAliveSeconds)*time.Second, s.g.now(), false
		s.begin(p)
		return true
	}
	return false
}

// replace ends a session whose client connects again.
func (s *session) replace() {
	if s.up != nil {
		s.up.end(true)
	}
	s.forget()
}

// endLost ends a session after its client or its connection to the broker was lost.
func (s *session) endLost(reason string) {
	s.g.metrics.lost.Inc()
	s.g.warn(fmt.Sprintf("client %s at %s is lost: %s", s.clientID, s.peer, reason))
	s.send(&wire.Disconnect{})
	normally := false
	if s.up != nil && s.willChanged && s.g.config.Mode == mqttsn.Transparent { // the broker has another will, or a deleted one
		normally = true
		if will := s.will; will != nil {
			will.qos = min(will.qos, 1) // nobody is left to release one of QoS 2
			_ = s.up.publish(*will, willID, false)
			s.will = nil
		}
	}
	s.leave(normally)
}

// leave ends the connection. An aggregating gateway keeps a persistent session, else the broker does.
func (s *session) leave(normally bool) {
	if s.up != nil {
		s.up.end(normally)
	}
	if s.persists() {
		s.suspend()
		return
	}
	s.forget()
}

// persists reports whether the gateway keeps the session when the client leaves.
func (s *session) persists() bool {
	return s.g.config.Mode == mqttsn.Aggregating && !s.clean && s.up != nil
}

// suspend keeps the subscriptions and the messages of QoS 1 and 2 of a client without a connection.
func (s *session) suspend() {
	s.state, s.lastReceived, s.will, s.question = stateAway, s.g.now(), nil, retry{}
	s.topics.clear()
	s.restart()
	s.earlier = map[uint16]bool{}
	for id := range s.pending {
		s.earlier[id] = true
	}
	for id := range s.unreleased {
		s.earlier[id] = true
	}
	if s.g.peers[s.peer] == s {
		delete(s.g.peers, s.peer)
	}
}

// forget removes all state of a client.
func (s *session) forget() {
	if s.g.peers[s.peer] == s {
		delete(s.g.peers, s.peer)
	}
	if s.g.clients[s.clientID] == s {
		delete(s.g.clients, s.clientID)
	}
	s.topics.clear()
	s.clear()
	if s.g.config.Mode == mqttsn.Aggregating {
		s.g.own.forget(s)
	}
	s.up = nil
}

// packet handles a client's packet.
func (s *session) packet(p wire.Packet) {
	s.fresh = false
	if s.state == stateWill || s.state == stateConnecting {
		s.early(p)
		return
	}
	switch p := p.(type) {
	case *wire.Register:
		id, code := uint16(0), wire.NotSupported
		if validTopic(p.Topic) {
			id, code = s.topics.add(p.Topic)
		}
		s.send(&wire.Regack{TopicID: id, MsgID: p.MsgID, Code: code})
	case *wire.Publish:
		s.publish(p)
	case *wire.Pubrel:
		s.release(p.MsgID)
	case *wire.Subscribe:
		s.subscribe(p)
	case *wire.Unsubscribe:
		s.unsubscribe(p)
	case *wire.Pingreq:
		s.ping(p)
	case *wire.Disconnect:
		s.disconnect(p)
	case *wire.Regack, *wire.Puback, *wire.Pubrec, *wire.Pubcomp:
		s.answer(p)
	case *wire.WillTopicUpd, *wire.WillMsgUpd:
		s.updateWill(p)
	default:
		s.g.metrics.dropped.WithLabelValues(dropUnexpected).Inc()
	}
}

// early handles packets before CONNACK.
func (s *session) early(p wire.Packet) {
	switch p := p.(type) {
	case *wire.WillTopic:
		if s.state == stateWill && s.will == nil {
			if p.Topic == "" || !validTopic(p.Topic) {
				s.open()
				return
			}
			s.will = &message{topic: p.Topic, qos: p.QoS, retain: p.Retain}
			s.ask(&wire.WillMsgReq{})
		}
	case *wire.WillMsg:
		if s.state == stateWill && s.will != nil {
			s.will.payload = p.Message
			s.open()
		}
	case *wire.Disconnect:
		s.send(&wire.Disconnect{})
		s.replace()
	default:
		s.g.metrics.dropped.WithLabelValues(dropUnexpected).Inc()
	}
}

func (s *session) updateWill(p wire.Packet) {
	s.willChanged = true
	switch p := p.(type) {
	case *wire.WillTopicUpd:
		switch {
		case p.Topic == "":
			s.will = nil
		case !validTopic(p.Topic):
			s.send(&wire.WillTopicResp{Code: wire.NotSupported})
			return
		case s.will == nil:
			s.will = &message{topic: p.Topic, qos: p.QoS, retain: p.Retain}
		default:
			s.will.topic, s.will.qos, s.will.retain = p.Topic, p.QoS, p.Retain
		}
		s.send(&wire.WillTopicResp{})
	case *wire.WillMsgUpd:
		if s.will == nil {
			s.send(&wire.WillMsgResp{Code: wire.NotSupported}) // for no will
			return
		}
		s.will.payload = p.Message
		s.send(&wire.WillMsgResp{})
	}
}

func (s *session) publish(p *wire.Publish) {
	topic, ok := s.topics.name(p.Kind, p.TopicID)
	reject := func(code wire.ReturnCode, reason string) {
		s.g.metrics.dropped.WithLabelValues(reason).Inc()
		s.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID, Code: code})
	}
	switch {
	case !ok:
		reject(wire.InvalidTopicID, dropTopic)
		return
	case !validTopic(topic), p.QoS > 0 && p.MsgID == 0:
		reject(wire.NotSupported, dropUnexpected)
		return
	}
	m := message{topic: topic, payload: p.Data, qos: p.QoS, retain: p.Retain}
	if p.QoS == 0 {
		if s.up.publish(m, 0, false) != nil {
			s.g.metrics.dropped.WithLabelValues(dropBroker).Inc()
			return
		}
		s.g.metrics.fromClients.Inc()
		return
	}
	sum := digest(m, p.MsgID)
	s.replaceEarlier(p.MsgID, sum)
	_, under := s.pending[p.MsgID]
	_, unreleased := s.unreleased[p.MsgID]
	switch {
	case under:
		return // the broker has not answered yet
	case p.QoS == 2 && unreleased:
		s.send(&wire.Pubrec{MsgID: p.MsgID})
		return
	case p.QoS == 1 && p.DUP && s.acknowledged == sum:
		s.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID})
		return
	case len(s.pending)+len(s.unreleased) >= maxPending || s.up.publish(m, p.MsgID, p.DUP) != nil:
		reject(wire.Congestion, dropBroker)
		return
	}
	s.pending[p.MsgID] = pending{kind: wire.TypePublish, topicID: p.TopicID, qos: p.QoS, digest: sum}
	s.g.metrics.fromClients.Inc()
}

// replaceEarlier frees an id of an earlier connection for a message with another digest.
func (s *session) replaceEarlier(id uint16, sum uint64) {
	if !s.earlier[id] {
		return
	}
	delete(s.earlier, id)
	had, unreleased := s.unreleased[id]
	if !unreleased {
		had = s.pending[id].digest
	}
	if had == sum {
		return
	}
	delete(s.pending, id)
	delete(s.unreleased, id)
	s.g.own.disown(s, id)
}

// published: the broker has a message of QoS 1 or 2.
func (s *session) published(id uint16) {
	p, ok := s.pending[id]
	if !ok || p.kind != wire.TypePublish {
		return
	}
	delete(s.pending, id)
	if p.qos == 2 {
		s.unreleased[id] = p.digest
		s.send(&wire.Pubrec{MsgID: id})
		return
	}
	s.acknowledged = p.digest
	s.send(&wire.Puback{TopicID: p.topicID, MsgID: id})
}

// release releases a message of QoS 2. It asks the broker even if this session does not know it, as an earlier one may have.
func (s *session) release(id uint16) {
	if _, under := s.pending[id]; under || id == 0 { // under: doubled, or late for an earlier message
		return
	}
	if s.up.release(id) == nil {
		s.pending[id] = pending{kind: wire.TypePubrel}
	}
}

// completed: the broker has released a message.
func (s *session) completed(id uint16) {
	delete(s.unreleased, id)
	if s.pending[id].kind == wire.TypePubrel {
		delete(s.pending, id)
	}
	s.send(&wire.Pubcomp{MsgID: id})
}

// filter returns a subscription's filter, and the topic's id if it is one topic.
func (s *session) filter(kind wire.TopicKind, id uint16, text string) (filter string, topicID uint16, code wire.ReturnCode) {
	switch kind {
	case wire.Predefined:
		topic, ok := s.g.predefined[id]
		if !ok {
			return "", 0, wire.InvalidTopicID
		}
		s.topics.usePredefined(id, topic)
		return topic, id, wire.Accepted
	case wire.Short:
		topicID, _ = mqttsn.ShortName(text)
	}
	if !validFilter(text) {
		return "", 0, wire.NotSupported
	}
	if kind == wire.Registered && !strings.ContainsAny(text, "+#") {
		topicID, code = s.topics.add(text)
	}
	return text, topicID, code
}

func (s *session) subscribe(p *wire.Subscribe) {
	if _, under := s.pending[p.MsgID]; under {
		return
	}
	filter, topicID, code := s.filter(p.Kind, p.TopicID, p.Topic)
	if code == wire.Accepted && p.MsgID == 0 {
		code = wire.NotSupported
	}
	if code == wire.Accepted {
		s.pending[p.MsgID] = pending{kind: wire.TypeSubscribe, topicID: topicID, qos: p.QoS}
		if len(s.pending) <= maxPending && s.up.subscribe(filter, p.QoS, p.MsgID) == nil {
			return
		}
		delete(s.pending, p.MsgID)
		code = wire.Congestion
	}
	s.send(&wire.Suback{TopicID: topicID, MsgID: p.MsgID, Code: code})
}

// subscribed: the broker grants a QoS, or refuses.
func (s *session) subscribed(id uint16, granted byte) {
	p, ok := s.pending[id]
	if !ok || p.kind != wire.TypeSubscribe {
		return
	}
	delete(s.pending, id)
	if granted > 2 {
		s.send(&wire.Suback{TopicID: p.topicID, MsgID: id, Code: wire.NotSupported})
		return
	}
	s.send(&wire.Suback{QoS: int(granted), TopicID: p.topicID, MsgID: id})
}

func (s *session) unsubscribe(p *wire.Unsubscribe) {
	if _, under := s.pending[p.MsgID]; under {
		return
	}
	filter, _, code := s.filter(p.Kind, p.TopicID, p.Topic)
	if code != wire.Accepted || p.MsgID == 0 {
		s.send(&wire.Unsuback{MsgID: p.MsgID}) // there is no code for it, and no such subscription
		return
	}
	s.pending[p.MsgID] = pending{kind: wire.TypeUnsubscribe}
	if s.up.unsubscribe(filter, p.MsgID) != nil {
		delete(s.pending, p.MsgID) // the client asks again
	}
}

func (s *session) unsubscribed(id uint16) {
	if s.pending[id].kind == wire.TypeUnsubscribe {
		delete(s.pending, id)
		s.send(&wire.Unsuback{MsgID: id})
	}
}

func (s *session) ping(p *wire.Pingreq) {
	if p.ClientID != "" && (s.state == stateAsleep || s.state == stateAwake) {
		if s.state == stateAsleep {
			s.state = stateAwake
			s.resend()
		}
		s.pump()
		s.sleepAgain()
		return
	}
	s.send(&wire.Pingresp{})
}

// sleepAgain ends the awake state once the client has all messages.
func (s *session) sleepAgain() {
	if s.state == stateAwake && s.idle() {
		s.state = stateAsleep
		s.send(&wire.Pingresp{})
	}
}

func (s *session) disconnect(p *wire.Disconnect) {
	s.send(&wire.Disconnect{})
	if p.Sleep && p.SleepSeconds > 0 {
		s.state, s.sleep = stateAsleep, time.Duration(p.SleepSeconds)*time.Second
		return
	}
	s.leave(true)
}

// check checks time-outs.
func (s *session) check(now time.Time) {
	if q := &s.question; q.packet != nil && now.Sub(q.at) >= s.g.config.Retry() {
		if q.tries > s.g.config.Retries {
			s.endLost("does not tell its will")
			return
		}
		q.at, q.tries = now, q.tries+1
		s.g.metrics.retransmissions.Inc()
		s.send(q.packet)
	}
	limit := time.Duration(0)
	switch s.state {
	case stateActive:
		limit = s.keepAlive
	case stateAsleep, stateAwake:
		limit = s.sleep
	case stateWill, stateConnecting, stateAway:
	}
	if limit > 0 && now.Sub(s.lastReceived) > time.Duration(tolerance*float64(limit)) {
		s.endLost(fmt.Sprintf("silent for more than %v times its %v", tolerance, limit))
		return
	}
	if s.state == stateActive || s.state == stateAwake {
		s.repeat(now)
	}
}

func validTopic(topic string) bool {
	return mqtttopic.Valid(topic) == nil && !hasForbiddenCharacter(topic)
}

func validFilter(filter string) bool {
	// A shared subscription goes to one client, which would be the gateway for all of its clients.
	return mqtttopic.ValidFilter(filter) == nil && !hasForbiddenCharacter(filter) && !strings.HasPrefix(filter, "$share")
}

// hasForbiddenCharacter reports whether a broker may end the connection for a character (MQTT 3.1.1, 1.5.3), which would affect all clients.
func hasForbiddenCharacter(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF
	})
}
