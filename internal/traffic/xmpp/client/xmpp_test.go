package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/xmpp"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// peer is a client and the events that it reported.
type peer struct {
	*client
	mu       sync.Mutex
	received map[string]int // times by topic and content
	sent     int
	ups      int
	up       bool
	words    []string
	answers  []string // to subscriptions
}

func (p *peer) lock(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *peer) events() transport.Events {
	return transport.Events{
		Sent: func(time.Time, string, []byte) { p.lock(func() { p.sent++ }) },
		Received: func(_ time.Time, topic string, content []byte) {
			p.lock(func() { p.received[topic+" "+string(content)]++ })
		},
		Connection: func(up bool, reason string) {
			p.lock(func() {
				p.up, p.words = up, append(p.words, reason)
				if up {
					p.ups++
				}
			})
		},
		Subscription: func(topic, refusal string) {
			p.lock(func() { p.answers = append(p.answers, topic+" "+cmp.Or(refusal, "made")) })
		},
	}
}

func (p *peer) sentMessages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

func (p *peer) report() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.words, "; ")
}

// setup returns a client's setup with subscriptions to the filters.
func setup(name, broker string, filters ...string) transport.Setup {
	s := transport.Setup{ClientID: name, Config: trafficconfig.Config{Instance: name, Broker: broker, Seed: 1}}
	if len(filters) > 0 {
		s.Subscribe = &trafficconfig.Subscribe{Topics: filters}
	}
	return s
}

func openPeer(t *testing.T, s transport.Setup, every times) *peer {
	t.Helper()
	p := &peer{received: map[string]int{}}
	s.Warn = func(text string) { p.lock(func() { p.words = append(p.words, text) }) }
	var err error
	if p.client, err = open(s, p.events(), every); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		p.Close(ctx)
	})
	return p
}

func connect(t *testing.T, s transport.Setup) *peer {
	t.Helper()
	p := openPeer(t, s, times{discovery: discoverEvery})
	p.waitUp(t)
	return p
}

func eventually(t *testing.T, what func() string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal(what())
}

func (p *peer) waitUp(t *testing.T) {
	t.Helper()
	eventually(t, func() string { return "not connected: " + p.report() }, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.up
	})
}

// waitSubscribed waits until the server has accepted all subscriptions, including those to the given nodes.
func (p *peer) waitSubscribed(t *testing.T, nodes ...string) {
	t.Helper()
	eventually(t, func() string { return fmt.Sprintf("not subscribed to %q: %s", nodes, p.report()) }, func() bool {
		s := p.current()
		if s == nil {
			return false
		}
		s.writing.Lock() // a request that is being written is in asked after it
		defer s.writing.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, n := range nodes {
			if !s.subscribed[n] {
				return false
			}
		}
		return len(s.asked) == 0
	})
}

func (p *peer) got() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.received)
}

// wantOnce waits for the messages, each exactly once, and fails on any other.
func (p *peer) wantOnce(t *testing.T, messages ...string) {
	t.Helper()
	want := map[string]int{}
	for _, m := range messages {
		want[m] = 1
	}
	eventually(t, func() string {
		return fmt.Sprintf("received %.300q, want %.300q once each; %s", fmt.Sprint(p.got()), fmt.Sprint(want), p.report())
	}, func() bool {
		return len(p.got()) >= len(want)
	})
	time.Sleep(50 * time.Millisecond) // a duplicate would arrive soon
	if !maps.Equal(p.got(), want) {
		t.Errorf("received %.300q, want %.300q once each", fmt.Sprint(p.got()), fmt.Sprint(want))
	}
}

func (p *peer) send(t *testing.T, topic, content string) {
	t.Helper()
	if err := p.Publish(topic, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

// The publisher announces its topic when it connects.
func publisher(name, broker, topic string) transport.Setup {
	s := setup(name, broker)
	s.Publish = &trafficconfig.Publish{Topic: topic}
	return s
}

func TestSubscribersGetEachMessageThatAFilterMatchesOnce(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	everything, again := connect(t, setup("e1", s.address, "one/#")), connect(t, setup("e2", s.address, "one/#"))
	overlapping := connect(t, setup("o", s.address, "one/#", "one/+/x", "one/a/x"))
	level, exact := connect(t, setup("l", s.address, "one/+/x")), connect(t, setup("x", s.address, "one/b/y"))
	exact.waitSubscribed(t, "one/b/y")
	a, b := connect(t, publisher("pa", s.address, "one/a/x")), connect(t, publisher("pb", s.address, "one/b/y"))
	for _, p := range []*peer{everything, again, overlapping} {
		p.waitSubscribed(t, "one/a/x", "one/b/y")
	}
	level.waitSubscribed(t, "one/a/x")
	a.send(t, "one/a/x", "1")
	a.send(t, "one/a/x", "2")
	b.send(t, "one/b/y", "3")
	for _, p := range []*peer{everything, again, overlapping} {
		p.wantOnce(t, "one/a/x 1", "one/a/x 2", "one/b/y 3")
	}
	level.wantOnce(t, "one/a/x 1", "one/a/x 2")
	exact.wantOnce(t, "one/b/y 3")
	eventually(t, func() string { return "not all that was received is told to be sent" }, func() bool { return a.sentMessages() == 2 && b.sentMessages() == 1 })
}

func TestOneWhoComesLateFindsTheNodesThatAreThere(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	p := connect(t, publisher("late-p", s.address, "late/a"))
	p.send(t, "late/b", "nobody hears it")
	late := connect(t, setup("late-s", s.address, "late/+"))
	late.waitSubscribed(t, "late/a", "late/b")
	p.send(t, "late/b", "heard")
	late.wantOnce(t, "late/b heard")
}

func TestTopicsAndContentsPassTheServerByteForByte(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	topics := []string{"/PRT/PRT-UNIT001/PRT-S003/location", "bytes/ä €/<&\"'>/100%", "bytes/tab\there"}
	subscriber := setup("bytes-s", s.address, topics...)
	hears, says := connect(t, subscriber), connect(t, setup("bytes-p", s.address))
	hears.waitSubscribed(t, nodeOf(topics[0]), nodeOf(topics[1]), nodeOf(topics[2]))
	var want []string
	for _, content := range contents() {
		want = append(want, topics[len(want)%3]+" "+string(content))
		says.send(t, topics[(len(want)-1)%3], string(content))
	}
	hears.wantOnce(t, want...)
}

func TestWhatWasPublishedBeforeTheEndArrives(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	hears, says := connect(t, setup("end-s", s.address, "end")), connect(t, setup("end-p", s.address))
	hears.waitSubscribed(t, "end")
	var want []string
	for i := range 300 {
		says.send(t, "end", fmt.Sprint(i))
		want = append(want, fmt.Sprintf("end %d", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	says.Close(ctx)
	if sent := says.sentMessages(); sent != len(want) {
		t.Errorf("%d messages are told to be sent; want %d", sent, len(want))
	}
	hears.wantOnce(t, want...)
	if err := says.Publish("end", nil); !errors.Is(err, transport.ErrNotConnected) {
		t.Errorf("after the end: %v; want %v", err, transport.ErrNotConnected)
	}
}

func TestNoStanzaIsLargerThanAServerTakes(t *testing.T) {
	t.Parallel()
	if most := xmpp.Protocol.MaxPayloadBytes; most > MaxBytes {
		t.Errorf("experiments may have payloads of %d bytes; the client takes %d", most, MaxBytes)
	}
	for name, content := range map[string][]byte{"bytes": make([]byte, MaxBytes), "text": bytes.Repeat([]byte("<a  "), MaxBytes/4)} {
		stanza, err := xml.Marshal(publishRequest(strings.Repeat("&", 256), content))
		if err != nil || len(stanza) > xmpp.StanzaBytes {
			t.Errorf("%s: stanza of %d bytes, %v; want %d at most", name, len(stanza), err, xmpp.StanzaBytes)
		}
	}
}

func TestAnImagePasses(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	hears, says := connect(t, setup("large-s", s.address, "large")), connect(t, setup("large-p", s.address))
	hears.waitSubscribed(t, "large")
	image := strings.Repeat("\xff\xd8", 1<<19)
	says.send(t, "large", image)
	hears.wantOnce(t, "large "+image)
}

func TestWhatIsWrongWithASetupIsSaid(t *testing.T) {
	t.Parallel()
	large := setup("a", "nor:5222")
	large.LargestBytes, large.LargestTopic = MaxBytes+1, "big/one"
	for name, c := range map[string]struct {
		setup transport.Setup
		want  string
	}{
		"broker": {setup("a", "nor"), "host:port"},
		"filter": {setup("a", "nor:5222", "a/#/b"), "a/#/b"},
		"name":   {setup("", "nor:5222"), "client id is empty"},
		"size":   {large, "16777217 bytes to topic big/one"},
	} {
		if _, err := Open(c.setup, transport.Events{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

func TestWithoutAConnectionMessagesAreRefused(t *testing.T) {
	t.Parallel()
	p := openPeer(t, setup("a", "127.0.0.1:1"), times{discovery: discoverEvery})
	if err := p.Publish("a", nil); !errors.Is(err, transport.ErrNotConnected) {
		t.Errorf("%v; want %v", err, transport.ErrNotConnected)
	}
	eventually(t, p.report, func() bool { return strings.Contains(p.report(), "nobody serves there") })
}

func TestAfterARestartOfTheServerClientsAreBackAndSubscribed(t *testing.T) {
	t.Parallel()
	s := ownServer(t, nil)
	hears, says := connect(t, setup("back-s", s.address, "#")), connect(t, publisher("back-p", s.address, "back/x"))
	hears.waitSubscribed(t, "back/x")
	s.stop()
	eventually(t, hears.report, func() bool { return hears.current() == nil && says.current() == nil })
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	eventually(t, says.report, func() bool { return hears.current() != nil && says.current() != nil })
	hears.waitSubscribed(t, "back/x")
	says.send(t, "back/x", "again")
	hears.wantOnce(t, "back/x again")
	if !strings.Contains(hears.report(), "connection lost") {
		t.Errorf("told %q; want the loss of the connection", hears.report())
	}
}

func TestTheNextServerIsTakenWhereOneIsDown(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	failover := publisher("failover", "127.0.0.1:1", "failover")
	failover.Failover = []string{s.address}
	if p := connect(t, failover); !strings.HasSuffix(p.report(), s.address) {
		t.Errorf("told %q; want it to end with %s", p.report(), s.address)
	}
}

func TestAClientEndsAtOnceThoughTheServerSaysNothing(t *testing.T) {
	t.Parallel()
	listener := testport.Listen(t)
	p := openPeer(t, setup("silent", listener.Addr().String()), times{discovery: discoverEvery, timeout: time.Minute})
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	p.Close(ctx) // in the middle of the login
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("closed after %v; want no wait for the login, which a minute is left for", took)
	}
}

func TestAServerThatFallsSilentIsLeft(t *testing.T) {
	t.Parallel()
	s := ownServer(t, nil)
	p := openPeer(t, setup("silent", s.address, "#"), times{discovery: discoverEvery, timeout: time.Second})
	p.waitUp(t)
	time.Sleep(2500 * time.Millisecond) // longer than the allowed silence: a live server answers the ping
	if told := p.report(); told != s.address {
		t.Errorf("told %q; want no more than the connection to %s", told, s.address)
	}
	if err := s.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, p.report, func() bool { return strings.Contains(p.report(), "connection lost") })
	if err := s.command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, p.report, func() bool { return p.current() != nil })
}

func TestSecurityIsTLSAndALogin(t *testing.T) {
	t.Parallel()
	s := ownServer(t, &v1alpha1.Security{TLS: true, Password: true})
	full := protocol.Security{CAFile: filepath.Join(s.dir, "ca.crt"), UsernameFile: filepath.Join(s.dir, "username"), PasswordFile: filepath.Join(s.dir, "password")}
	secured := func(name string, change func(*protocol.Security)) transport.Setup {
		security := full
		change(&security)
		c := publisher(name, s.address, "secret/x")
		c.Subscribe, c.Security = &trafficconfig.Subscribe{Topics: []string{"secret/#"}}, &security
		return c
	}
	one, two := connect(t, secured("one", func(*protocol.Security) {})), connect(t, secured("two", func(*protocol.Security) {}))
	two.waitSubscribed(t, "secret/x")
	one.send(t, "secret/x", "hello")
	two.wantOnce(t, "secret/x hello")
	for name, c := range map[string]struct {
		change func(*protocol.Security)
		want   string
	}{
		"another password":  {func(s *protocol.Security) { s.PasswordFile = s.UsernameFile }, "login as 0123456789abcdef with TLS"},
		"without TLS":       {func(s *protocol.Security) { s.CAFile = "" }, "login as 0123456789abcdef without TLS: the server offers no login without TLS"},
		"without a login":   {func(s *protocol.Security) { s.UsernameFile, s.PasswordFile = "", "" }, "login as vignette with TLS"},
		"without the files": {func(s *protocol.Security) { s.PasswordFile += "-missing" }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPeer(t, secured("bad", c.change), times{discovery: discoverEvery})
			eventually(t, p.report, func() bool { return strings.Contains(p.report(), c.want) })
			if p.current() != nil {
				t.Error("is connected")
			}
		})
	}
}

func TestTheLossOfAServerIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	s := ownServer(t, nil)
	p := connect(t, setup("s", s.address))
	p.waitSubscribed(t) // what the server has not read would make the end a reset
	if err := s.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, p.report, func() bool { return strings.Contains(p.report(), "connection lost: the connection was closed;") })
}

func TestTLSIsNotLeftOut(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c := setup("plain", s.address)
	c.Security = &protocol.Security{CAFile: filepath.Join(s.dir, "ca.crt")}
	p := openPeer(t, c, times{discovery: discoverEvery})
	eventually(t, p.report, func() bool {
		return strings.Contains(p.report(), "login as vignette with TLS: the server offers no TLS: want STARTTLS")
	})
}

func TestAnswersThatAreErrorsAreCountedAndTold(t *testing.T) {
	t.Parallel()
	var words []string
	told := transport.Setup{Warn: func(text string) { words = append(words, text) }}
	s := &stream{client: &client{setup: told, subscriptions: transport.NewSubscriptions(told, transport.Events{})}, asked: map[string]string{"s1": "a", "c1": "b"}, subscribed: map[string]bool{"a": true}}
	h := handler{s}
	refusal := func(id string) answer { return answer{Type: "error", ID: id, Error: &failure{Text: "no"}} }
	for range 5 {
		h.answered(refusal("p9"))
	}
	h.answered(refusal("s1"))
	h.answered(refusal("c1"))
	h.answered(refusal("d1"))
	h.answered(answer{Type: "result", ID: "p9"})
	h.answered(answer{Type: "get", ID: "p9"})
	want := []string{"1 messages", "2 messages", "4 messages", "subscription to a", "the server refuses to make node b: error no", "the server refuses to list its nodes: error no"}
	if len(words) != len(want) || !slices.EqualFunc(words, want, strings.Contains) || s.subscribed["a"] {
		t.Errorf("told %q; want %q", words, want)
	}
}
