package client

import (
	"encoding/xml"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/transport"
)

// unanswered is a client's stream with filters, whose server answers only when the test says so. It collects the stanzas.
func unanswered(t *testing.T, p *peer, filters ...string) (handler, <-chan request) {
	t.Helper()
	server, own := net.Pipe()
	t.Cleanup(func() { server.Close(); own.Close() })
	c := setup("s", "nor:5222", filters...)
	c.Warn = func(string) {}
	s := &stream{
		client: &client{setup: c, subscriptions: transport.NewSubscriptions(c, p.events())}, conn: transport.Watch(own), out: own, ended: make(chan struct{}),
		asked: map[string]string{}, created: map[string]bool{}, subscribed: map[string]bool{},
	}
	stanzas := make(chan request, 10)
	go func() {
		for d := xml.NewDecoder(server); ; {
			var r request
			if d.Decode(&r) != nil {
				return
			}
			stanzas <- r
		}
	}()
	return handler{s}, stanzas
}

// next returns the next request to subscribe to a node.
func next(t *testing.T, stanzas <-chan request) request {
	t.Helper()
	for {
		select {
		case r := <-stanzas:
			if r.PubSub != nil && r.PubSub.Subscribe != nil {
				return r
			}
		case <-time.After(15 * time.Second):
			t.Fatal("no subscription was requested")
		}
	}
}

func refused(id, condition string) answer {
	f := &failure{}
	text := fmt.Sprintf("<error><%s xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>", condition)
	if err := xml.Unmarshal([]byte(text), f); err != nil {
		panic(err)
	}
	return answer{Type: "error", ID: id, Error: f}
}

func TestAServerWithOtherLoginsIsToldInWords(t *testing.T) {
	t.Parallel()
	l := testport.Listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, `<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='1' from='vignette' version='1.0'>`+
				`<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms></stream:features>`)
		}
	}()
	p := openPeer(t, setup("plain", l.Addr().String()), times{discovery: discoverEvery})
	eventually(t, p.report, func() bool {
		return strings.Contains(p.report(), "login as vignette without TLS: the server offers the logins PLAIN: want SCRAM-SHA-256 or SCRAM-SHA-1")
	})
}

func TestASubscriptionThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	p := &peer{}
	h, stanzas := unanswered(t, p, "PRT/x")
	go h.subscribe("PRT/x")
	h.answered(refused(next(t, stanzas).ID, "forbidden"))
	h.answered(answer{Type: "result", ID: next(t, stanzas).ID})
	if !slices.Equal(p.answers, []string{"PRT/x forbidden", "PRT/x made"}) {
		t.Errorf("told %q; want the refusal, and that it is made then", p.answers)
	}
}

func TestANodeThatIsGoneBeforeItIsSubscribedToIsNoRefusal(t *testing.T) {
	p := &peer{}
	h, stanzas := unanswered(t, p, "PRT/#")
	go h.subscribe("PRT/x")
	gone := refused(next(t, stanzas).ID, "item-not-found")
	h.answered(gone)
	if len(p.answers) != 0 || h.subscribed["PRT/x"] {
		t.Errorf("told %q, subscribed %v; want neither", p.answers, h.subscribed)
	}
}
