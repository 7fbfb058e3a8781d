// Package client is an XMPP publish/subscribe client (RFC 6120, XEP-0060) for the traffic generator, on mellium.im/xmpp.
//
// A topic is a node of the server's publish/subscribe service. XEP-0060 has no wildcards. A client with wildcards discovers
// nodes (XEP-0030) when it connects, and then every minute. Publishers of this kind announce new nodes at once.
// Messages are sent once (QoS 0), and refused without a connection.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"mellium.im/sasl"
	"mellium.im/xmpp"
	"mellium.im/xmpp/jid"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
	names "vignette.dev/vignette/internal/traffic/xmpp"
)

// discoverEvery is the time between two discoveries of nodes, less up to a fifth. With 24 nodes one takes 2 kB.
const discoverEvery = time.Minute

// times are a client's intervals: between two discoveries, and how long a server may be silent before a ping.
type times struct{ discovery, timeout time.Duration }

type client struct {
	setup  transport.Setup
	events transport.Events
	dialer *transport.Dialer
	outbox *transport.Outbox
	times  times
	// subscriptions has the topics of filters without wildcards, and the discovered ones.
	subscriptions *transport.Subscriptions
	stop          context.CancelFunc
	done          chan struct{}

	mu     sync.Mutex
	stream *stream // nil without a connection
}

// Open is a transport.Open.
func Open(s transport.Setup, events transport.Events) (transport.Client, error) {
	return open(s, events, times{discovery: discoverEvery})
}

func open(s transport.Setup, events transport.Events, t times) (*client, error) {
	if s.LargestBytes > MaxBytes {
		return nil, fmt.Errorf("messages of %d bytes to topic %s: xmpp takes up to %d", s.LargestBytes, s.LargestTopic, MaxBytes)
	}
	for _, filter := range s.Filters() {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return nil, err
		}
	}
	if s.ClientID == "" {
		return nil, errors.New("client id is empty: want a name unique at the server")
	}
	if _, err := address(names.Account, s.ClientID); err != nil {
		return nil, err
	}
	dialer, err := transport.NewDialer(s)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(uint64(s.Seed), 0x786d7070))
	t.discovery = time.Duration(float64(t.discovery) * (1 - 0.2*random.Float64()))
	if t.timeout == 0 {
		t.timeout = dialer.Timeout()
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &client{setup: s, events: events, dialer: dialer, outbox: transport.NewOutbox(false, events), times: t, subscriptions: transport.NewSubscriptions(s, events), stop: stop, done: make(chan struct{})}
	go c.run(ctx)
	return c, nil
}

// address returns a client's address: a resource of the account.
func address(account, resource string) (jid.JID, error) {
	a, err := jid.New(account, names.Domain, resource)
	if err != nil {
		return a, fmt.Errorf("user name %q, client %q: want what an XMPP address may have: %w", account, resource, err)
	}
	return a, nil
}

// run connects and reconnects until the client is closed.
func (c *client) run(ctx context.Context) {
	defer close(c.done)
	for ctx.Err() == nil {
		if err := c.connection(ctx); ctx.Err() == nil {
			c.events.Lost(err)
		}
	}
}

// connection runs one connection until it ends.
func (c *client) connection(ctx context.Context) error {
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	c.outbox.Connected()
	defer c.outbox.Disconnected()
	c.mu.Lock()
	c.stream = s
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.stream = nil
		c.mu.Unlock()
	}()
	if ctx.Err() != nil { // Close did not see the stream yet
		s.conn.Close()
		return ctx.Err()
	}
	c.events.Connection(true, c.dialer.Connected())
	return s.serve()
}

// connect opens a stream and logs in.
func (c *client) connect(ctx context.Context) (*stream, error) {
	conn, broker, err := c.dialer.DialPlain(ctx)
	if err != nil {
		return nil, err
	}
	// No context for the library: its end soon after the negotiation could still interrupt a read.
	late := time.AfterFunc(c.times.timeout, func() { conn.Close() })
	defer late.Stop()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	watched := transport.Watch(conn)
	session, err := c.negotiate(watched, broker)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", broker, err)
	}
	return newStream(c, session, watched), nil
}

// negotiate runs RFC 6120, 4 to 7: TLS if the security has certificates, login, and the client's name as resource.
func (c *client) negotiate(conn *transport.WatchedConn, broker string) (*xmpp.Session, error) {
	security, err := c.dialer.TLS(broker)
	if err != nil {
		return nil, err
	}
	account, password, err := c.dialer.Login()
	if err != nil {
		return nil, err
	}
	if account == "" {
		account, password = names.Account, names.Account
	}
	self, err := address(account, c.setup.ClientID)
	if err != nil {
		return nil, err
	}
	// The library logs in only on a connection that it believes secure. Without TLS, SCRAM does not show the password.
	state, features := xmpp.Secure, []xmpp.StreamFeature{xmpp.SASL("", password, logins...), xmpp.BindResource()}
	if security != nil {
		state, features = 0, append(features, xmpp.StartTLS(security))
	}
	session, err := xmpp.NewSession(context.Background(), self.Domain(), self, conn, state, xmpp.NewNegotiator(func(*xmpp.Session, *xmpp.StreamConfig) xmpp.StreamConfig {
		return xmpp.StreamConfig{Features: features}
	}))
	if err != nil {
		return nil, fmt.Errorf("login as %s %s: %w", account, map[bool]string{false: "without TLS", true: "with TLS"}[security != nil], explained(session, security != nil, err))
	}
	return session, negotiated(session, security != nil)
}

// logins are the client's, the preferred one first.
var logins = []sasl.Mechanism{sasl.ScramSha256, sasl.ScramSha1}

// explained returns what the server lacks, which the library's error does not say; else that error.
func explained(session *xmpp.Session, secure bool, err error) error {
	_, offersTLS := session.Feature("urn:ietf:params:xml:ns:xmpp-tls")
	offered, offersLogin := session.Feature("urn:ietf:params:xml:ns:xmpp-sasl")
	names, _ := offered.([]string)
	switch {
	case secure && offersLogin && !offersTLS && session.State()&xmpp.Secure == 0:
		return errNoTLS
	case !secure && offersTLS && !offersLogin:
		return errors.New("the server offers no login without TLS: want TLS at this client too, or a server that does")
	case len(names) > 0 && !slices.ContainsFunc(logins, func(m sasl.Mechanism) bool { return slices.Contains(names, m.Name) }):
		return fmt.Errorf("the server offers the logins %s: want %s or %s", strings.Join(names, ", "), logins[0].Name, logins[1].Name)
	}
	return err
}

var errNoTLS = errors.New("the server offers no TLS: want STARTTLS")

// negotiated checks that the server did not skip a feature, as the library then skips it silently.
func negotiated(session *xmpp.Session, secure bool) error {
	if _, ok := session.Conn().(*tls.Conn); secure && !ok {
		return errNoTLS
	}
	if session.State()&xmpp.Authn == 0 {
		return errors.New("the server offers no login: want SASL")
	}
	return nil
}

// Publish queues the message for the socket, or refuses it.
func (c *client) Publish(topic string, content []byte) error {
	return c.outbox.Put(topic, content)
}

func (c *client) current() *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream
}

// Close writes the queue and ends the stream. The server reads all messages before the end. QoS 0 has no acknowledgements.
func (c *client) Close(ctx context.Context) {
	c.outbox.WaitEmpty(ctx)
	c.stop()
	if s := c.current(); s != nil {
		go s.end() // a write may block on the socket
		select {
		case <-ctx.Done():
		case <-c.done:
		}
		s.conn.Close()
	}
	<-c.done
}

// topics returns the topics that the client knows beforehand that it publishes to.
func (c *client) topics() (topics []string) {
	p := c.setup.Publish
	if p == nil {
		return nil
	}
	if p.Topic != "" {
		topics = append(topics, p.Topic)
	}
	for _, m := range p.Messages {
		topics = append(topics, m.Topic)
	}
	return topics
}
