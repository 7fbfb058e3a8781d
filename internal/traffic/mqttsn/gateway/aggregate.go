package gateway

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
)

const (
	// maxOwnPending is the most unacknowledged messages of QoS 1 and 2 at the broker, and of QoS 0 before the first connection.
	maxOwnPending = 1000
	// retainedWindow is how long after a subscription a retained message may belong to it.
	retainedWindow = 30 * time.Second
)

// aggregate is the gateway's shared connection to the broker, which it always maintains. The session is persistent, so that
// messages of QoS 1 and 2 wait during an outage.
type aggregate struct {
	g      *Gateway
	once   sync.Once
	cancel context.CancelFunc
	ended  chan struct{}

	// The gateway's lock guards the fields below.
	conn   *brokerConn
	lastID uint16
	// sent has unacknowledged messages, by the ids of this connection.
	sent map[uint16]*ownPublish
	// steps counts what ownPublish.step numbers.
	steps uint64
	// early has messages of QoS 0 from before the first connection; nil after it.
	early []message
	// subscriptions is by filter and session; asked has the requests that the broker has not answered.
	subscriptions map[string]map[*session]*subscription
	asked         map[uint16]request
	// atBroker has the filters that the broker has, no two of which match the same topic, with their QoS. They cover those of subscriptions.
	atBroker map[string]int
	// leaving has filters that the broker may still have, by the ids of the requests to end them.
	leaving map[uint16]string
	// incoming has the ids of QoS 2 that the broker has not released.
	incoming map[uint16]bool
}

type ownPublish struct {
	message
	// s is the client's session and id its message's id; nil for the gateway's own message.
	s  *session
	id uint16
	// step is the order of the first PUBLISH; after PUBREC that of PUBREC.
	step uint64
	// tried: a connection has taken PUBLISH; received: PUBREC arrived; released: the client has requested PUBREL.
	tried, received, released bool
}

type subscription struct {
	qos  int
	made time.Time
	// retained has the delivered retained topics.
	retained map[string]bool
}

type request struct {
	// s is the client's session and id its request's; nil for the gateway's own request.
	s  *session
	id uint16
	// filter is the subscribed filter.
	filter string
}

func newAggregate(g *Gateway) *aggregate {
	return &aggregate{g: g, ended: make(chan struct{}), sent: map[uint16]*ownPublish{}, early: []message{}, subscriptions: map[string]map[*session]*subscription{},
		asked: map[uint16]request{}, atBroker: map[string]int{}, leaving: map[uint16]string{}, incoming: map[uint16]bool{}}
}

// begin connects on its first call.
func (a *aggregate) begin() {
	a.once.Do(func() {
		ctx, cancel := context.WithCancel(a.g.ctx)
		a.cancel = cancel
		go func() {
			defer close(a.ended)
			a.run(ctx)
		}()
	})
}

// end waits until the connection is closed.
func (a *aggregate) end() {
	a.once.Do(func() { close(a.ended) })
	if a.cancel != nil {
		a.cancel()
	}
	<-a.ended
}

// run connects and reconnects until ctx ends.
func (a *aggregate) run(ctx context.Context) {
	dialer, err := a.g.dialer()
	if err != nil {
		a.g.warn(err.Error())
		return
	}
	// A session of an earlier gateway has subscriptions that nobody here wants.
	clean, reported := a.g.config.Mode == mqttsn.Aggregating, ""
	for ctx.Err() == nil {
		lost := make(chan error, 1)
		conn, err := dialBroker(ctx, dialer, login{clientID: a.g.config.Name, clean: clean || a.g.config.Mode != mqttsn.Aggregating}, a.events(lost))
		if err == nil && clean {
			clean = false
			conn.start()
			conn.disconnect()
			<-conn.closed
			continue
		}
		if err == nil {
			reported = ""
			a.resume(conn)
			select {
			case err = <-lost:
			case <-ctx.Done():
				conn.disconnect()
				select {
				case <-conn.closed:
				case <-time.After(time.Second):
					conn.shut()
				}
				return
			}
			a.down(conn)
		}
		if text := transport.Words(err); text != reported && ctx.Err() == nil {
			a.g.warn("no connection to the broker: " + text)
			reported = text
		}
	}
}

func (a *aggregate) events(lost chan error) brokerEvents {
	locked := func(f func()) {
		a.g.mu.Lock()
		defer a.g.mu.Unlock()
		if a.conn != nil {
			f()
		}
	}
	return brokerEvents{
		message:  func(m message, id uint16, _ bool) { locked(func() { a.message(m, id) }) },
		released: func(id uint16) { locked(func() { delete(a.incoming, id); a.conn.complete(id) }) },
		answered: func(kind byte, id uint16, granted byte) { locked(func() { a.answered(kind, id, granted) }) },
		lost:     func(err error) { lost <- err },
	}
}

// resume sends unacknowledged messages again and renews all subscriptions.
func (a *aggregate) resume(conn *brokerConn) {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	a.conn = conn
	conn.start()
	if !conn.sessionPresent { // it counts its ids from the beginning
		clear(a.incoming)
	}
	for id, filter := range a.leaving {
		_ = conn.unsubscribe(filter, id)
	}
	for filter, qos := range a.atBroker {
		a.subscribe(filter, qos)
	}
	a.sendAgain()
	for _, m := range a.early {
		a.publishOwn(m)
	}
	a.early = nil
}

func (a *aggregate) sendAgain() {
	for _, id := range a.inOrder() {
		switch p := a.sent[id]; {
		case p.released:
			a.conn.release(id)
		case !p.received && a.send(p, id) != nil:
			a.conn.conn.Close() // the next connection sends it and those after it
			return
		}
	}
}

// inOrder returns the ids of sent in the order in which they are to be sent again (MQTT 3.1.1, 4.6).
func (a *aggregate) inOrder() []uint16 {
	return slices.SortedFunc(maps.Keys(a.sent), func(x, y uint16) int { return cmp.Compare(a.sent[x].step, a.sent[y].step) })
}

func (a *aggregate) nextStep() uint64 {
	a.steps++
	return a.steps
}

// send sends a message of QoS 1 or 2, with DUP if it was sent before.
func (a *aggregate) send(p *ownPublish, id uint16) error {
	err := a.conn.publish(p.message, id, p.tried)
	if err == nil {
		p.tried = true
	}
	return err
}

// release releases a message of QoS 2, now or on the next connection.
func (a *aggregate) release(p *ownPublish, id uint16) {
	p.released = true
	if a.conn != nil {
		a.conn.release(id)
	}
}

// down forgets requests that will not be answered. Clients repeat theirs.
func (a *aggregate) down(conn *brokerConn) {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	if a.conn != conn {
		return
	}
	a.conn = nil
	for _, q := range a.asked {
		if q.s != nil {
			delete(q.s.pending, q.id)
		}
	}
	clear(a.asked)
}

// maxQoS returns the highest QoS of a filter's subscriptions.
func (a *aggregate) maxQoS(filter string) (qos int) {
	for _, s := range a.subscriptions[filter] {
		qos = max(qos, s.qos)
	}
	return qos
}

// arrange brings the broker's filters for the topics of a filter up to date. New ones come before old ones go, so that nothing is lost;
// a message in between may come by both.
func (a *aggregate) arrange(filter string) {
	around, present := cover(filter, maps.Keys(a.atBroker))
	wanted := map[string]int{}
	for filter := range a.subscriptions {
		if overlap(filter, around) {
			wanted[filter] = a.maxQoS(filter)
		}
	}
	wanted = disjoint(wanted)
	for filter, qos := range wanted {
		if has, ok := a.atBroker[filter]; !ok || has < qos {
			a.subscribe(filter, qos)
		}
	}
	for _, filter := range present {
		if _, ok := wanted[filter]; !ok {
			a.unsubscribe(filter)
		}
	}
}

// keep notes that the broker is to have a filter, also if it was to end it.
func (a *aggregate) keep(filter string, qos int) {
	a.atBroker[filter] = qos
	maps.DeleteFunc(a.leaving, func(_ uint16, f string) bool { return f == filter })
}

// subscribe requests a filter for the gateway, now or from the next connection.
func (a *aggregate) subscribe(filter string, qos int) {
	a.keep(filter, qos)
	if a.conn == nil {
		return
	}
	id := a.nextID()
	a.asked[id] = request{filter: filter}
	if a.conn.subscribe(filter, qos, id) != nil {
		a.conn.conn.Close() // the next connection requests it
	}
}

// unsubscribe ends a filter at the broker, now or on the next connection, as the broker keeps the session.
func (a *aggregate) unsubscribe(filter string) {
	delete(a.atBroker, filter)
	id := a.nextID()
	a.leaving[id] = filter
	if a.conn != nil && a.conn.unsubscribe(filter, id) != nil {
		a.conn.conn.Close()
	}
}

func (a *aggregate) nextID() uint16 {
	for {
		a.lastID++
		_, sent := a.sent[a.lastID]
		_, asked := a.asked[a.lastID]
		_, leaving := a.leaving[a.lastID]
		if a.lastID != 0 && !sent && !asked && !leaving {
			return a.lastID
		}
	}
}

// publishOwn sends a message of QoS -1, which is 0 for the broker.
func (a *aggregate) publishOwn(m message) {
	switch {
	case a.conn == nil && a.early != nil && len(a.early) < maxOwnPending:
		a.early = append(a.early, m)
	case a.conn == nil || a.conn.publish(m, 0, false) != nil:
		a.g.metrics.dropped.WithLabelValues(dropBroker).Inc()
	default:
		a.g.metrics.fromClients.Inc()
	}
}

// message delivers a broker's message once to each session with a matching filter.
func (a *aggregate) message(m message, id uint16) {
	if m.qos == 2 && a.incoming[id] {
		a.conn.received(2, id)
		return
	}
	if m.qos == 2 {
		a.incoming[id] = true
	}
	now, to := a.g.now(), map[*session]int{}
	for filter, sessions := range a.subscriptions {
		if !mqtttopic.Match(filter, m.topic) {
			continue
		}
		for s, sub := range sessions {
			if m.retain && !sub.wantsRetained(m.topic, now) {
				continue
			}
			if qos, has := to[s]; !has || sub.qos > qos {
				to[s] = sub.qos
			}
		}
	}
	for s, qos := range to {
		own := m
		own.qos = min(m.qos, qos)
		s.deliver(own, 0, 0, false)
	}
	a.conn.received(m.qos, id)
}

// wantsRetained reports whether a retained message belongs to this subscription. The broker sends retained messages after each
// request, and the gateway requests a filter again for each further client.
func (s *subscription) wantsRetained(topic string, now time.Time) bool {
	if now.Sub(s.made) > retainedWindow {
		s.retained = nil
		return false
	}
	if s.retained[topic] {
		return false
	}
	if s.retained == nil {
		s.retained = map[string]bool{}
	}
	s.retained[topic] = true
	return true
}

func (a *aggregate) answered(kind byte, id uint16, granted byte) {
	switch kind {
	case packets.Puback, packets.Pubrec:
		p := a.sent[id]
		if p == nil {
			if kind == packets.Pubrec {
				a.conn.release(id) // it belongs to an earlier session
			}
			return
		}
		if kind == packets.Puback {
			delete(a.sent, id)
		} else {
			p.received, p.step = true, a.nextStep()
		}
		if p.s != nil {
			p.s.published(p.id)
		} else if kind == packets.Pubrec {
			a.release(p, id)
		}
	case packets.Pubcomp:
		if p := a.sent[id]; p != nil {
			delete(a.sent, id)
			if p.s != nil {
				p.s.completed(p.id)
			}
		}
	case packets.Suback:
		q, ok := a.asked[id]
		delete(a.asked, id)
		if ok && granted > 2 {
			a.refused(q)
		}
		if ok && q.s != nil {
			q.s.subscribed(q.id, min(granted, a.grantedTo(q, granted)))
		}
	case packets.Unsuback:
		delete(a.leaving, id)
	}
}

// refused handles the broker's refusal of a filter.
func (a *aggregate) refused(q request) {
	if q.s == nil {
		a.g.warn("the broker refuses the filter " + q.filter + ", which covers clients' filters: they get no messages by it")
		return
	}
	if a.remove(q.s, q.filter) {
		a.arrange(q.filter)
	}
}

// grantedTo returns at most the requested QoS, as another client may have the filter with a higher one.
func (a *aggregate) grantedTo(q request, granted byte) byte {
	if sub := a.subscriptions[q.filter][q.s]; sub != nil {
		return byte(sub.qos)
	}
	return granted
}

func (a *aggregate) remove(s *session, filter string) (last bool) {
	sessions, ok := a.subscriptions[filter]
	if !ok {
		return false
	}
	delete(sessions, s)
	if len(sessions) > 0 {
		return false
	}
	delete(a.subscriptions, filter)
	return true
}

// open begins a client's session, which only needs the shared connection.
func (a *aggregate) open(s *session) {
	if a.conn == nil && s.up != nil { // its session stays
		s.send(&wire.Connack{Code: wire.Congestion})
		s.suspend()
		return
	}
	if a.conn == nil {
		s.refused(errNoBroker)
		return
	}
	if s.up == nil {
		s.up = &aggregated{a: a, s: s, ids: map[uint16]uint16{}}
	}
	s.opened()
}

// forget removes a session's state here.
func (a *aggregate) forget(s *session) {
	for filter := range a.subscriptions {
		if _, has := a.subscriptions[filter][s]; has && a.remove(s, filter) {
			a.arrange(filter)
		}
	}
	for id, q := range a.asked {
		if q.s == s {
			delete(a.asked, id)
		}
	}
	a.disown(s, 0)
}

// disown completes a session's message with an id, or all of them with 0: nobody else will answer.
func (a *aggregate) disown(s *session, id uint16) {
	for _, own := range a.inOrder() {
		p := a.sent[own]
		if p.s != s || id != 0 && p.id != id {
			continue
		}
		p.s = nil
		if p.received && !p.released {
			a.release(p, own)
		}
	}
}

// aggregated is one client's part of the connection.
type aggregated struct {
	a *aggregate
	s *session
	// The connection's ids of the client's messages of QoS 2.
	ids map[uint16]uint16
}

func (u *aggregated) publish(m message, id uint16, _ bool) error {
	a := u.a
	if m.qos == 0 {
		if a.conn == nil {
			return errNoBroker
		}
		return a.conn.publish(m, 0, false)
	}
	if len(a.sent) >= maxOwnPending {
		return errBrokerBusy
	}
	own := a.nextID()
	p := &ownPublish{message: m, id: id, step: a.nextStep()}
	if id != 0 {
		p.s = u.s
	}
	if a.conn != nil {
		if err := a.send(p, own); err != nil {
			return err
		}
	}
	a.sent[own] = p // without a connection the next one sends it
	if m.qos == 2 && id != 0 {
		u.ids[id] = own
	}
	return nil
}

func (u *aggregated) release(id uint16) error {
	own := u.ids[id]
	p := u.a.sent[own]
	if p == nil || p.s != u.s || p.id != id || !p.received {
		delete(u.ids, id)
		u.s.completed(id) // it was released before
		return errNoBroker
	}
	delete(u.ids, id)
	u.a.release(p, own)
	return nil
}

func (u *aggregated) subscribe(filter string, qos int, id uint16) error {
	a := u.a
	if a.conn == nil {
		return errNoBroker
	}
	if a.subscriptions[filter] == nil {
		a.subscriptions[filter] = map[*session]*subscription{}
	}
	a.subscriptions[filter][u.s] = &subscription{qos: qos, made: a.g.now()}
	own := a.nextID()
	// Also if the broker has the filter already, or one that covers it, as it answers with the retained messages.
	if err := a.conn.subscribe(filter, a.maxQoS(filter), own); err != nil {
		a.remove(u.s, filter)
		return fmt.Errorf("subscription: %w", err)
	}
	a.asked[own] = request{s: u.s, id: id, filter: filter}
	a.keep(filter, a.maxQoS(filter))
	a.arrange(filter)
	return nil
}

func (u *aggregated) unsubscribe(filter string, id uint16) error {
	if _, has := u.a.subscriptions[filter][u.s]; has && u.a.remove(u.s, filter) {
		u.a.arrange(filter)
	}
	u.s.unsubscribed(id)
	return nil
}

// received completes QoS 2. The broker had its answer on arrival, as one slow client would block all others.
func (u *aggregated) received(d *delivery) {
	if d.qos == 2 {
		u.s.released(d.id, 0)
	}
}

func (u *aggregated) done(*delivery) {}

// end publishes the will, which is the gateway's task.
func (u *aggregated) end(normally bool) {
	if w := u.s.will; w != nil && !normally {
		_ = u.publish(*w, 0, false)
	}
	u.s.will = nil
}
