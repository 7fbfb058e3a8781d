package client

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mellium.im/xmlstream"
	"mellium.im/xmpp"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
)

// stream is one connection after login.
type stream struct {
	client  *client
	session *xmpp.Session
	conn    *transport.WatchedConn
	// out is conn, or TLS over it.
	out   net.Conn
	jid   string
	ended chan struct{}
	// stopPublishing ends publishing; published is closed after the last message is written.
	publishing     context.Context
	stopPublishing context.CancelFunc
	published      chan struct{}
	// wildcards: some filters have wildcards, so the stream keeps discovering nodes.
	wildcards bool

	// writing is held to write one stanza at once, and guards the fields below.
	writing sync.Mutex
	ids     uint64

	// mu guards the state of nodes.
	mu sync.Mutex
	// asked has the nodes of unanswered create and subscribe requests, by request id.
	asked map[string]string
	// created and subscribed have the nodes for which the client has sent such a request.
	created, subscribed map[string]bool
	// refused counts refused messages. Only the reading goroutine uses it.
	refused int
}

func newStream(c *client, session *xmpp.Session, conn *transport.WatchedConn) *stream {
	publishing, stop := context.WithCancel(context.Background())
	return &stream{
		publishing: publishing, stopPublishing: stop, published: make(chan struct{}),
		client: c, session: session, conn: conn, out: session.Conn(), jid: session.LocalAddr().String(), ended: make(chan struct{}),
		wildcards: slices.ContainsFunc(c.setup.Filters(), isPattern),
		asked:     map[string]string{}, created: map[string]bool{}, subscribed: map[string]bool{},
	}
}

func isPattern(filter string) bool { return strings.ContainsAny(filter, "#+") }

// serve reads until the stream ends, and returns why it ended.
func (s *stream) serve() error {
	defer s.conn.Close()
	defer close(s.ended)
	defer s.stopPublishing()
	go s.begin()
	go s.keepAlive()
	go s.publishAll()
	err := s.session.Serve(handler{s})
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the server ended the stream")
	}
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok && syntax.Msg == io.ErrUnexpectedEOF.Error() { // it ended inside the stream
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("connection lost: %w", err)
}

// begin creates the nodes of known topics, so that subscribers find them before the first message, and subscribes.
func (s *stream) begin() {
	for _, topic := range s.client.topics() {
		s.make(nodeOf(topic))
	}
	for _, filter := range s.client.setup.Filters() {
		if !isPattern(filter) {
			s.make(nodeOf(filter))
			s.subscribe(nodeOf(filter))
		}
	}
	if !s.wildcards {
		return
	}
	// Announcements before existing nodes, so that no node is missed.
	s.make(announcements)
	s.subscribe(announcements)
	s.discover()
}

func (s *stream) discover() {
	_ = s.send(kindDiscover, "", discoverRequest()) // an error ends the stream, and serve reports it
}

// keepAlive discovers nodes regularly. After a long silence it pings the server.
// Acknowledged bytes of a large message over a slow link count as a sign of life.
func (s *stream) keepAlive() {
	timeout := s.client.times.timeout
	looks := time.NewTicker(s.client.times.discovery)
	defer looks.Stop()
	if !s.wildcards {
		looks.Stop()
	}
	checks := time.NewTicker(timeout / 4)
	defer checks.Stop()
	asked := false
	for {
		select {
		case <-s.ended:
			return
		case <-looks.C:
			go s.discover() // a write may block on the socket
		case now := <-checks.C:
			switch silent := now.Sub(s.conn.LastSign(now)); {
			case silent < timeout:
				asked = false
			case silent > 2*timeout:
				s.conn.Close() // closing the socket ends reading and writing
				return
			case !asked:
				asked = true
				go func() { _ = s.send(kindPing, "", pingRequest()) }()
			}
		}
	}
}

// make creates a node once on this connection.
func (s *stream) make(name string) {
	s.once(s.created, kindCreate, name, createRequest(name))
}

// subscribe subscribes to a node once on this connection, so that a message that matches several filters arrives once.
func (s *stream) subscribe(name string) {
	s.once(s.subscribed, kindSubscribe, name, subscribeRequest(name, s.jid))
}

// once sends a request for a node unless done has it. A message to the node, sent after this returns, follows the request.
func (s *stream) once(done map[string]bool, kind byte, name string, r request) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	known := done[name]
	done[name] = true
	s.mu.Unlock()
	if !known {
		_, _ = s.writeLocked(kind, name, r) // an error ends the stream, and serve reports it
	}
}

// offer subscribes to an existing node if a filter matches its topic.
func (s *stream) offer(name string) {
	topic := topicOf(name)
	if name != announcements && mqtttopic.MatchAny(s.client.setup.Filters(), topic) {
		s.subscribe(name)
	}
}

// publishAll writes the client's messages.
func (s *stream) publishAll() {
	defer close(s.published)
	for {
		m, ok := s.client.outbox.Next(s.publishing)
		if !ok {
			return
		}
		if s.publish(m.Topic, m.Payload) != nil {
			s.client.outbox.NotWritten(m)
			return
		}
	}
}

func (s *stream) publish(topic string, content []byte) error {
	s.make(nodeOf(topic))
	at, err := s.write(kindPublish, "", publishRequest(topic, content))
	if err != nil {
		return err
	}
	s.client.events.Sent(at, topic, content)
	return nil
}

func (s *stream) send(kind byte, name string, r request) error {
	_, err := s.write(kind, name, r)
	return err
}

// write sends a request in one piece, and returns the time just before the write.
func (s *stream) write(kind byte, name string, r request) (time.Time, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.writeLocked(kind, name, r)
}

// writeLocked is write for a caller that holds writing.
func (s *stream) writeLocked(kind byte, name string, r request) (time.Time, error) {
	s.ids++
	r.ID = string(kind) + strconv.FormatUint(s.ids, 36)
	text, err := xml.Marshal(r)
	if err != nil {
		return time.Time{}, err
	}
	if name != "" {
		s.mu.Lock()
		s.asked[r.ID] = name
		s.mu.Unlock()
	}
	// Taken before the write: a wait for the kernel's full buffer is part of the delay.
	at := time.Now()
	if _, err := s.out.Write(text); err != nil {
		s.conn.Close() // a partly written stanza ends the stream
		return at, err
	}
	return at, nil
}

// end closes the stream after the last message.
func (s *stream) end() {
	s.stopPublishing()
	<-s.published
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.session.Close()
}

// handler handles the server's stanzas on the reading goroutine.
type handler struct{ *stream }

// HandleXMPP handles one stanza.
func (h handler) HandleXMPP(t xmlstream.TokenReadEncoder, start *xml.StartElement) error {
	d := xml.NewTokenDecoder(xmlstream.MultiReader(xmlstream.Token(*start), t))
	switch start.Name.Local {
	case "message":
		var n notification
		if err := d.Decode(&n); err != nil {
			return err
		}
		h.notified(n)
	case "iq":
		var a answer
		if err := d.Decode(&a); err != nil {
			return err
		}
		h.answered(a)
	}
	return nil
}

func (h handler) notified(n notification) {
	at := time.Now()
	for _, event := range n.Events {
		for _, items := range event.Items {
			for _, i := range items.Items {
				switch {
				case items.Node == announcements:
					go h.offer(i.announced) // the reading goroutine must not wait for a write
				case i.found:
					h.client.events.Received(at, topicOf(items.Node), i.content)
				}
			}
		}
		for _, deleted := range event.Deleted {
			h.forget(deleted.Node)
		}
	}
}

// answered handles the answer to a request.
func (h handler) answered(a answer) {
	if a.ID == "" || a.Type != "result" && a.Type != "error" {
		return
	}
	h.mu.Lock()
	name := h.asked[a.ID]
	delete(h.asked, a.ID)
	h.mu.Unlock()
	condition := ""
	if a.Type == "error" {
		condition = "without a reason"
		if a.Error != nil {
			condition = strings.TrimSpace(a.Error.condition() + " " + a.Error.Text)
		}
	}
	switch kind := a.ID[0]; {
	case kind == kindCreate && condition == "":
		if name != announcements {
			go h.announce(name)
		}
	case kind == kindCreate && a.Error != nil && a.Error.condition() == "conflict": // the node is there
	case kind == kindDiscover && condition == "" && a.Items != nil:
		go h.offerAll(a.Items)
	case kind == kindPublish && condition != "":
		h.countRefused(condition)
	case kind == kindSubscribe:
		h.subscribeAnswered(name, condition)
	case kind != kindPing && condition != "":
		h.client.setup.Warn(strings.TrimSpace("the server refuses to "+refusable[kind]+" "+name) + ": " + condition)
	}
}

// refusable has what else a client asks for, by kind. The name of a node follows, if there is one.
var refusable = map[byte]string{kindCreate: "make node", kindAnnounce: "announce node", kindDiscover: "list its nodes"}

// subscribeAnswered handles the server's acceptance or refusal of a subscription. After a refusal of a discovered node the
// next discovery tries again.
func (h handler) subscribeAnswered(name, condition string) {
	topic, found := topicOf(name), !slices.Contains(h.client.setup.Filters(), topicOf(name))
	switch {
	case condition == "" && name != announcements:
		h.client.subscriptions.Granted(topic)
	case condition != "" && found && strings.HasPrefix(condition, "item-not-found"):
		h.forget(name)
	case condition != "":
		h.forget(name)
		h.client.subscriptions.Refused(condition, topic)
		if !found || name == announcements {
			time.AfterFunc(h.client.subscriptions.Pause(), func() { h.subscribeAgain(name) })
		}
	}
}

func (h handler) subscribeAgain(name string) {
	select {
	case <-h.ended:
	default:
		h.make(name)
		h.subscribe(name)
	}
}

func (h handler) announce(name string) {
	_ = h.send(kindAnnounce, name, announceRequest(name))
}

func (h handler) offerAll(nodes *discovery) {
	for _, n := range nodes.Items {
		h.offer(n.Node)
	}
}

// countRefused counts messages that the server refused, and logs the 1st, 2nd, 4th, 8th and so on.
func (h handler) countRefused(condition string) {
	h.refused++
	if h.refused&(h.refused-1) == 0 {
		h.client.setup.Warn(fmt.Sprintf("%d messages of this connection were refused by the server, the last one: %s", h.refused, condition))
	}
}

// forget forgets a deleted node, so that it can be created and subscribed to again.
func (h handler) forget(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.created, name)
	delete(h.subscribed, name)
}
