package xmpp

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

	"vignette.dev/vignette/internal/traffic/mqttwire"
)

// stream is one connection after its login.
type stream struct {
	client  *client
	session *xmpp.Session
	conn    *watchedConn
	// out is what to write to: conn, or TLS over it.
	out   net.Conn
	jid   string
	ended chan struct{}
	// publishing ends with stopPublishing; published is closed when the last message is written.
	publishing     context.Context
	stopPublishing context.CancelFunc
	published      chan struct{}
	// looks for nodes go on only where filters have wildcards.
	wildcards bool

	// writing is held for a stanza, so that each is one write, and guards what follows.
	writing sync.Mutex
	ids     uint64

	// mu guards what is known of nodes.
	mu sync.Mutex
	// asked are the nodes of the create and subscribe requests without an answer, by their ids.
	asked map[string]string
	// made and subscribed are the nodes for which the client has sent such a request.
	made, subscribed map[string]bool
	// refused messages; for the goroutine that reads.
	refused int
}

func newStream(c *client, session *xmpp.Session, conn *watchedConn) *stream {
	publishing, stop := context.WithCancel(context.Background())
	return &stream{
		publishing: publishing, stopPublishing: stop, published: make(chan struct{}),
		client: c, session: session, conn: conn, out: session.Conn(), jid: session.LocalAddr().String(), ended: make(chan struct{}),
		wildcards: slices.ContainsFunc(c.setup.Filters(), isPattern),
		asked:     map[string]string{}, made: map[string]bool{}, subscribed: map[string]bool{},
	}
}

func isPattern(filter string) bool { return strings.ContainsAny(filter, "#+") }

// serve reads until the end of the stream, and says why it ended.
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
	return fmt.Errorf("connection lost: %w", err)
}

// begin makes the nodes of the topics that are known, so that subscribers know of them before the first message, and subscribes.
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
	// First the announcements, then what there is: so no node is missed.
	s.make(announcements)
	s.subscribe(announcements)
	s.look()
}

func (s *stream) look() {
	_ = s.send(kindDiscover, "", discoverRequest()) // errors end the stream, which is told where it is read
}

// keepAlive looks for nodes in a while and, where nothing was heard for long, asks whether the server is still there. What its host
// acknowledges of a large message that a slow link still carries is a sign of life too.
func (s *stream) keepAlive() {
	timeout := s.client.times.timeout
	looks := time.NewTicker(s.client.times.look)
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
			go s.look() // writing may wait for the socket
		case now := <-checks.C:
			switch silent := now.Sub(s.conn.lastLife(now)); {
			case silent < timeout:
				asked = false
			case silent > 2*timeout:
				s.conn.Close() // reading and writing end with it
				return
			case !asked:
				asked = true
				go func() { _ = s.send(kindPing, "", pingRequest()) }()
			}
		}
	}
}

// make asks for a node once on this connection.
func (s *stream) make(name string) {
	s.mu.Lock()
	known := s.made[name]
	s.made[name] = true
	s.mu.Unlock()
	if !known {
		_ = s.send(kindCreate, name, createRequest(name))
	}
}

// subscribe to a node once on this connection, so that a message that several filters match comes once.
func (s *stream) subscribe(name string) {
	s.mu.Lock()
	known := s.subscribed[name]
	s.subscribed[name] = true
	s.mu.Unlock()
	if !known {
		_ = s.send(kindSubscribe, name, subscribeRequest(name, s.jid))
	}
}

// offer subscribes to a node that is there, if a filter matches its topic.
func (s *stream) offer(name string) {
	topic := topicOf(name)
	if name != announcements && slices.ContainsFunc(s.client.setup.Filters(), func(f string) bool { return mqttwire.Match(f, topic) }) {
		s.subscribe(name)
	}
}

// publishAll writes what the client publishes.
func (s *stream) publishAll() {
	defer close(s.published)
	for {
		m, ok := s.client.outbox.Next(s.publishing)
		if !ok || s.publish(m.Topic, m.Payload) != nil {
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

// write sends a request in one piece, and says when it was about to.
func (s *stream) write(kind byte, name string, r request) (time.Time, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
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
	// Before the write: where the kernel's buffer is full the wait for it belongs to the delay.
	at := time.Now()
	if _, err := s.out.Write(text); err != nil {
		s.conn.Close() // a stanza in part is the end of a stream
		return at, err
	}
	return at, nil
}

// end says good-bye behind the last message.
func (s *stream) end() {
	s.stopPublishing()
	<-s.published
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.session.Close()
}

// handler takes what the server sends, on the goroutine that reads.
type handler struct{ *stream }

// HandleXMPP is one stanza.
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
					go h.offer(i.announced) // whoever reads does not wait for room to write
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

// answered tells what became of a request.
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
		h.refuse(condition)
	case kind == kindSubscribe:
		h.subscribeAnswered(name, condition)
	case kind != kindPing && condition != "":
		h.client.setup.Warn(fmt.Sprintf("request %c %s was refused by the server: %s", kind, name, condition))
	}
}

// subscribeAnswered: the server has a subscription, or refuses it for a condition. What the client found by itself the next look tries again, if it is
// still there.
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

// refuse counts messages that the server did not take, and tells of the 1st, 2nd, 4th, 8th and so on.
func (h handler) refuse(condition string) {
	h.refused++
	if h.refused&(h.refused-1) == 0 {
		h.client.setup.Warn(fmt.Sprintf("%d messages of this connection were refused by the server, the last one: %s", h.refused, condition))
	}
}

// forget a node that is gone, for it to be made and subscribed to anew.
func (h handler) forget(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.made, name)
	delete(h.subscribed, name)
}
