package gateway

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

// phase is the state of a message of QoS 1 or 2 to a client.
type phase int

const (
	// phaseSent: waits for PUBACK or PUBREC of the client.
	phaseSent phase = iota
	// phaseReceived: waits for PUBREL of the broker.
	phaseReceived
	// phaseReleased: waits for PUBCOMP of the client.
	phaseReleased
	// phaseRefused: as phaseReceived, for a message that the client never gets.
	phaseRefused
)

// delivery is a message to a client.
type delivery struct {
	message
	// id is the client's message id, 0 with QoS 0, and brokerID the broker's.
	id, brokerID uint16
	// dup is the broker's; sent: it was sent to the client before.
	dup, sent bool
	// number is the order of arrival.
	number uint64
	phase  phase
	retry
}

// registration is the registration of a topic at a client.
type registration struct {
	topic string
	retry
}

// deliveries are a client's.
type deliveries struct {
	queue    []*delivery
	inflight map[uint16]*delivery
	// waiting has messages whose topic the client does not know yet. held has those whose topic cannot be registered now, in order.
	waiting map[string][]*delivery
	held    []string
	// registering is by message id; unknown has topics whose id the client may not know, and whether it is being registered.
	registering map[uint16]*registration
	unknown     map[string]bool
	// length is the number of messages in queue and waiting.
	length  int
	lastID  uint16
	arrived uint64
}

func newDeliveries() deliveries {
	return deliveries{inflight: map[uint16]*delivery{}, waiting: map[string][]*delivery{}, registering: map[uint16]*registration{}, unknown: map[string]bool{}}
}

// idle reports whether the client has received everything.
func (d *deliveries) idle() bool {
	return d.length == 0 && len(d.inflight) == 0 && len(d.registering) == 0
}

func byArrival(a, b *delivery) int { return cmp.Compare(a.number, b.number) }

// inOrder returns inflight in the order of arrival.
func (d *deliveries) inOrder() []*delivery {
	return slices.SortedFunc(maps.Values(d.inflight), byArrival)
}

func (d *deliveries) nextID() uint16 {
	for {
		d.lastID++
		_, sent := d.inflight[d.lastID]
		_, registering := d.registering[d.lastID]
		if d.lastID != 0 && !sent && !registering {
			return d.lastID
		}
	}
}

// deliver delivers a broker's message. The id is for the client; 0 takes the next free one.
func (s *session) deliver(m message, id, brokerID uint16, dup bool) {
	if s.state == stateAway && m.qos == 0 {
		return // no session keeps these
	}
	d := &delivery{message: m, id: id, brokerID: brokerID, dup: dup, number: s.arrived}
	s.arrived++
	reason := ""
	if len(m.payload) > maxPayload {
		reason = dropTooLarge
	} else if !s.makeRoom(len(m.payload)) {
		reason = dropClientQueue
	}
	if reason != "" {
		s.g.metrics.dropped.WithLabelValues(reason).Inc()
		s.discard(d)
		return
	}
	s.queue = append(s.queue, d)
	s.count(1, d)
	s.pump()
}

// count adds a queued message to the gateway's totals, or with -1 removes it.
func (s *session) count(messages int, d *delivery) {
	s.length += messages
	s.g.queued += messages
	s.g.queuedBytes += messages * len(d.payload)
}

// makeRoom makes room for a message: it drops the oldest of QoS 0, as newer ones say more.
func (s *session) makeRoom(bytes int) bool {
	for s.length >= s.g.config.MaxQueued || s.g.queuedBytes+bytes > s.g.config.MaxQueuedBytes {
		if !s.dropOldest() {
			return false
		}
		s.g.metrics.dropped.WithLabelValues(dropClientQueue).Inc()
	}
	return true
}

// dropOldest drops the oldest queued message of QoS 0.
func (s *session) dropOldest() bool {
	oldest := func(list []*delivery) int {
		return slices.IndexFunc(list, func(d *delivery) bool { return d.qos == 0 })
	}
	from, at := "", oldest(s.queue)
	number := uint64(math.MaxUint64)
	if at >= 0 {
		number = s.queue[at].number
	}
	for topic, list := range s.waiting {
		if i := oldest(list); i >= 0 && list[i].number < number {
			from, at, number = topic, i, list[i].number
		}
	}
	switch {
	case at < 0:
		return false
	case from == "":
		s.count(-1, s.queue[at])
		s.queue = slices.Delete(s.queue, at, at+1)
	default:
		s.count(-1, s.waiting[from][at])
		s.waiting[from] = slices.Delete(s.waiting[from], at, at+1)
	}
	return true
}

// discard acknowledges a message to the broker that the client will never get. Otherwise the broker would stop at its limit of
// unacknowledged messages.
func (s *session) discard(d *delivery) {
	if d.qos == 0 || s.up == nil {
		return
	}
	if d.qos == 2 {
		if d.id == 0 {
			d.id = s.nextID()
		}
		d.phase, d.payload = phaseRefused, nil
		s.inflight[d.id] = d
	}
	s.up.received(d)
}

// pump sends what it can: in order for each topic, while other topics wait for their registration.
func (s *session) pump() {
	if s.state != stateActive && s.state != stateAwake {
		return
	}
	rest, behind := s.queue[:0], map[string]bool(nil)
	for _, d := range s.queue {
		switch {
		case !s.knows(d.topic):
			if _, others := s.waiting[d.topic]; !others {
				s.held = append(s.held, d.topic)
			}
			s.waiting[d.topic] = append(s.waiting[d.topic], d)
		case behind[d.topic],
			d.qos > 0 && len(s.inflight) >= s.g.config.Window,
			d.qos > 0 && d.id != 0 && s.inflight[d.id] != nil: // the broker reused the id before the client completed
			if behind == nil {
				behind = map[string]bool{}
			}
			behind[d.topic] = true
			rest = append(rest, d)
		default:
			s.count(-1, d)
			s.transmit(d)
		}
	}
	clear(s.queue[len(rest):])
	s.queue = rest
	for len(s.held) > 0 && len(s.registering) < s.g.config.Window {
		topic := s.held[0]
		s.held = s.held[1:]
		s.register(topic)
	}
}

// knows reports whether the client has an id of a topic.
func (s *session) knows(topic string) bool {
	_, unknown := s.unknown[topic]
	_, _, known := s.topics.known(topic)
	return known && !unknown
}

// register registers a topic of waiting messages at the client.
func (s *session) register(topic string) {
	id, code := s.topics.add(topic)
	if code != wire.Accepted {
		s.dropTopic(topic)
		return
	}
	s.unknown[topic] = true
	p := &wire.Register{TopicID: id, MsgID: s.nextID(), Topic: topic}
	s.registering[p.MsgID] = &registration{topic: topic, retry: retry{packet: p, at: s.g.now(), tries: 1}}
	s.send(p)
}

// dropTopic drops a topic's messages, as the client refuses its registration.
func (s *session) dropTopic(topic string) {
	list := s.waiting[topic]
	delete(s.waiting, topic)
	for _, d := range list {
		s.g.metrics.dropped.WithLabelValues(dropTopic).Inc()
		s.count(-1, d)
		s.discard(d)
	}
}

func (s *session) transmit(d *delivery) {
	if d.qos > 0 && d.id == 0 {
		d.id = s.nextID()
	}
	if !d.sent {
		s.g.metrics.toClients.Inc()
	}
	d.phase, d.at, d.tries = phaseSent, s.g.now(), d.tries+1
	if d.qos > 0 {
		s.inflight[d.id] = d
	}
	kind, topic, _ := s.topics.known(d.topic)
	s.send(&wire.Publish{DUP: d.dup || d.sent, QoS: d.qos, Retain: d.retain, Kind: kind, TopicID: topic, MsgID: d.id, Data: d.payload})
	d.sent = true
}

// released handles the broker's PUBREL and passes it to the client. A session that does not know the message may follow
// an earlier session that did.
func (s *session) released(id, brokerID uint16) {
	d := s.inflight[id]
	if d == nil {
		d = &delivery{message: message{qos: 2}, id: id, brokerID: brokerID}
		s.inflight[id] = d
	}
	if d.phase == phaseRefused {
		delete(s.inflight, id)
		s.up.done(d)
		return
	}
	d.phase, d.payload, d.tries, d.at = phaseReleased, nil, 1, s.g.now()
	if s.state == stateActive || s.state == stateAwake {
		s.send(&wire.Pubrel{MsgID: id})
	}
}

// answer handles the client's answer to a sent packet.
func (s *session) answer(p wire.Packet) {
	switch p := p.(type) {
	case *wire.Regack:
		s.registered(p)
	case *wire.Puback:
		s.acknowledge(p)
	case *wire.Pubrec:
		switch d := s.inflight[p.MsgID]; {
		case d == nil:
			s.send(&wire.Pubrel{MsgID: p.MsgID}) // it was completed long ago
		case d.phase == phaseReleased:
			s.send(&wire.Pubrel{MsgID: p.MsgID})
		case d.phase == phaseSent && d.qos == 2:
			d.phase = phaseReceived
			s.up.received(d)
		}
	case *wire.Pubcomp:
		if d := s.inflight[p.MsgID]; d != nil && d.phase == phaseReleased {
			delete(s.inflight, p.MsgID)
			s.up.done(d)
		}
	}
	s.pump()
	s.sleepAgain()
}

func (s *session) registered(p *wire.Regack) {
	r := s.registering[p.MsgID]
	if r == nil || p.Code == wire.Congestion {
		return // repeat registers it again later
	}
	delete(s.registering, p.MsgID)
	if p.Code != wire.Accepted {
		s.unknown[r.topic] = false
		s.dropTopic(r.topic)
		return
	}
	delete(s.unknown, r.topic)
	slices.SortFunc(s.waiting[r.topic], byArrival) // a rejected one may have come after newer ones
	s.queue = append(s.waiting[r.topic], s.queue...)
	delete(s.waiting, r.topic)
}

func (s *session) acknowledge(p *wire.Puback) {
	d := s.inflight[p.MsgID]
	switch p.Code {
	case wire.Congestion:
		return // repeat sends it again later
	case wire.InvalidTopicID:
		topic, ok := s.topics.byID[p.TopicID]
		if ok && !s.unknown[topic] {
			s.unknown[topic] = false
		}
		if d == nil || d.phase != phaseSent {
			s.g.metrics.dropped.WithLabelValues(dropTopic).Inc() // for a message of QoS 0
			return
		}
		delete(s.topics.predefined, d.topic)
		delete(s.inflight, p.MsgID)
		s.queue = slices.Insert(s.queue, 0, d)
		s.count(1, d)
		return
	}
	if d == nil || d.phase != phaseSent || d.qos != 1 && p.Code == wire.Accepted {
		return
	}
	if p.Code != wire.Accepted {
		s.g.metrics.dropped.WithLabelValues(dropUnexpected).Inc()
	}
	delete(s.inflight, p.MsgID)
	if d.qos == 2 {
		s.discard(d)
		return
	}
	s.up.received(d)
}

// repeat repeats packets that the client has not answered in time.
func (s *session) repeat(now time.Time) {
	due := func(r *retry) bool {
		if now.Sub(r.at) < s.g.config.Retry() {
			return false
		}
		r.at = now
		r.tries++
		s.g.metrics.retransmissions.Inc()
		return true
	}
	exhausted := false
	for _, r := range s.registering {
		if due(&r.retry) {
			exhausted = exhausted || r.tries > s.g.config.Retries+1
			s.send(r.packet)
		}
	}
	for _, d := range s.inOrder() {
		switch {
		case d.phase == phaseSent && now.Sub(d.at) >= s.g.config.Retry():
			s.g.metrics.retransmissions.Inc()
			exhausted = exhausted || d.tries > s.g.config.Retries
			s.transmit(d)
		case d.phase == phaseReleased && due(&d.retry):
			exhausted = exhausted || d.tries > s.g.config.Retries+1
			s.send(&wire.Pubrel{MsgID: d.id})
		}
	}
	if exhausted {
		s.endLost("does not acknowledge")
		return
	}
	s.pump()
	s.sleepAgain()
}

// resend sends packets again that the client did not acknowledge before it slept or left.
func (s *session) resend() {
	for _, d := range s.inOrder() {
		switch d.phase {
		case phaseSent:
			s.transmit(d)
		case phaseReleased:
			d.at = s.g.now()
			s.send(&wire.Pubrel{MsgID: d.id})
		case phaseReceived, phaseRefused:
		}
	}
}

// restart keeps a persistent session's messages for the client's next connection, also those that it has only to complete.
func (s *session) restart() {
	var again []*delivery
	next := newDeliveries()
	next.lastID, next.arrived = s.lastID, s.arrived
	for _, d := range s.inflight {
		switch d.phase {
		case phaseSent:
			d.tries = 0
			again = append(again, d)
		case phaseReleased:
			d.tries = 1
			next.inflight[d.id] = d
		case phaseReceived, phaseRefused: // an aggregating gateway releases at once
		}
	}
	for _, d := range s.unsent() {
		if d.qos == 0 {
			s.g.metrics.dropped.WithLabelValues(dropClientLost).Inc()
		} else {
			again = append(again, d)
		}
		s.count(-1, d)
	}
	slices.SortFunc(again, byArrival)
	s.deliveries = next
	s.queue = again
	for _, d := range again {
		s.count(1, d)
	}
}

// unsent returns unsent messages, in any order.
func (s *session) unsent() []*delivery {
	list := s.queue
	for _, waiting := range s.waiting {
		list = append(list, waiting...)
	}
	return list
}

// clear drops all messages.
func (s *session) clear() {
	for _, d := range s.unsent() {
		s.g.metrics.dropped.WithLabelValues(dropClientLost).Inc()
		s.count(-1, d)
	}
	s.deliveries = newDeliveries()
}
