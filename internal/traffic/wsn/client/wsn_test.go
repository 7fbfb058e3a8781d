package client

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/wsn"
	wsnbroker "vignette.dev/vignette/internal/traffic/wsn/broker"
	"vignette.dev/vignette/internal/trafficconfig"
)

// startBroker on an address of loopback, until the test ends or stop is called.
func startBroker(t *testing.T, address string, config wsn.BrokerConfig) (stop func()) {
	t.Helper()
	config.Instance, config.Listen = "nor/broker", address
	b, err := wsnbroker.New(config)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Run(ctx, listener); err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func address(t *testing.T) string { return fmt.Sprintf("127.0.0.1:%d", testport.Free(t)) }

// journal of a client's events.
type journal struct {
	mu       sync.Mutex
	received []string
	sent     []string
	up       bool
	broker   string
	answers  []string // to subscriptions
}

func (l *journal) events() transport.Events {
	return transport.Events{
		Sent:     func(_ time.Time, topic string, content []byte) { l.add(&l.sent, topic, content) },
		Received: func(_ time.Time, topic string, content []byte) { l.add(&l.received, topic, content) },
		Connection: func(up bool, reason string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.up = up; up {
				l.broker = reason
			}
		},
		Subscription: func(filter, refusal string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.answers = append(l.answers, filter+" "+cmp.Or(refusal, "made"))
		},
		Dropped: func(int) {},
	}
}

func (l *journal) add(to *[]string, topic string, content []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*to = append(*to, topic+" "+string(content))
}

func (l *journal) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// told of subscriptions.
func (l *journal) told() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.answers)
}

func (l *journal) got() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.received)
}

// count of messages that were sent.
func (l *journal) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sent)
}

var eventually = testtool.Eventually

func startClient(t *testing.T, config trafficconfig.Config) (*client, *journal) {
	t.Helper()
	config.Protocol = "ws-notification"
	if config.Instance == "" {
		config.Instance = "prt/bft"
	}
	l := &journal{}
	c, err := open(transport.Setup{Config: config, ClientID: "x", Warn: func(text string) { t.Log(text) }}, l.events(), 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c.Close(ctx)
	})
	eventually(t, "connection", l.isUp)
	return c, l
}

func subscriber(broker string, topics ...string) trafficconfig.Config {
	return trafficconfig.Config{Broker: broker, Subscribe: &trafficconfig.Subscribe{Topics: topics}}
}

func publisher(broker string, qos int) trafficconfig.Config {
	return trafficconfig.Config{Broker: broker, Publish: &trafficconfig.Publish{QoS: qos}}
}

func publish(t *testing.T, c *client, topic, content string) {
	t.Helper()
	if err := c.Publish(topic, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

var contents = []string{`<NFFIMessage xmlns="urn:n"><track>1</track></NFFIMessage>`, `{"a": "<b>"}`, "\x00\xff\x01", "", "line\r\nline"}

func TestMessagesReachSubscribersAsTheyWere(t *testing.T) {
	for name, pull := range map[string]bool{"consumer": false, "pull point": true} {
		t.Run(name, func(t *testing.T) {
			at := address(t)
			startBroker(t, at, wsn.BrokerConfig{})
			config := subscriber(at, "/PRT/+/location", "a b/#", "$SYS/x")
			config.WSN = &wsn.Options{PullPoint: pull}
			_, got := startClient(t, config)
			p, sent := startClient(t, publisher(at, 0))
			var want []string
			for _, topic := range []string{"/PRT/x.1/location", "a b", "a b/1/2", "$SYS/x"} {
				for _, content := range contents {
					publish(t, p, topic, content)
					want = append(want, topic+" "+content)
				}
			}
			publish(t, p, "PRT/x/location", "no")
			publish(t, p, "a b/end", "end")
			want = append(want, "a b/end end")
			eventually(t, "the last message", func() bool { return len(got.got()) >= len(want) })
			if received := got.got(); !slices.Equal(received, want) {
				t.Errorf("received %q\nwant %q", received, want)
			}
			eventually(t, "all to be logged as sent", func() bool { return sent.count() == len(want)+1 })
		})
	}
}

func TestIdleConnectionsLoadNoNetwork(t *testing.T) {
	t.Parallel()
	port := testport.Free(t)
	broker, file := fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(t.TempDir(), "broker.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"instance": "nor/broker", "listen": %q}`, broker), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- wsnbroker.Serve(ctx, file) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s, got := startClient(t, subscriber(broker, "#"))
	p, _ := startClient(t, publisher(broker, 1))
	publish(t, p, "/PRT/x", "text")
	eventually(t, "the message", func() bool { return len(got.got()) == 1 })
	consumer := s.consumer.listener.Addr().(*net.TCPAddr).Port
	for name, ports := range map[string][2]int{"clients to the broker": {0, port}, "the broker from clients": {port, 0}, "the broker to a consumer": {0, consumer}, "a consumer from the broker": {consumer, 0}} {
		if due := testport.KeepAlive(t, ports[0], ports[1]); due != 0 {
			t.Errorf("%s: TCP's keep-alive is due in %v; want it off", name, due)
		}
	}
}

func TestAClientSubscribesAgainAtABrokerThatWasRestarted(t *testing.T) {
	for name, pull := range map[string]bool{"consumer": false, "pull point": true} {
		t.Run(name, func(t *testing.T) {
			at := address(t)
			stop := startBroker(t, at, wsn.BrokerConfig{})
			config := subscriber(at, "#")
			config.WSN = &wsn.Options{PullPoint: pull}
			_, got := startClient(t, config)
			p, _ := startClient(t, publisher(at, 1))
			publish(t, p, "t", "before")
			eventually(t, "message before", func() bool { return slices.Contains(got.got(), "t before") })
			stop()
			publish(t, p, "t", "meanwhile") // waits for the broker
			startBroker(t, at, wsn.BrokerConfig{})
			eventually(t, "a message after the restart", func() bool {
				publish(t, p, "t", "after")
				time.Sleep(50 * time.Millisecond)
				return slices.Contains(got.got(), "t after")
			})
		})
	}
}

func TestWithoutAConnectionQoS0IsRefusedAndQoS1Waits(t *testing.T) {
	at := address(t)
	stop := startBroker(t, at, wsn.BrokerConfig{})
	zero, downZero := startClient(t, publisher(at, 0))
	one, _ := startClient(t, publisher(at, 1))
	stop()
	eventually(t, "loss of the connection", func() bool { return !downZero.isUp() })
	if err := zero.Publish("t", []byte("0")); err == nil {
		t.Error("QoS 0 without a connection: want an error")
	}
	for i := range 5 {
		publish(t, one, "t", fmt.Sprint(i))
	}
	startBroker(t, at, wsn.BrokerConfig{})
	eventually(t, "what waited is sent", func() bool { _, more := one.first(); return !more })
}

func TestWhatWaitsAtQoS0IsDroppedWithTheConnection(t *testing.T) {
	var dropped []string
	c := &client{connected: true, wake: make(chan struct{}, 1), events: transport.Events{Unsent: func(_ string, content []byte) { dropped = append(dropped, string(content)) }}}
	publish(t, c, "t", "one")
	c.setConnected(false)
	if !slices.Equal(dropped, []string{"one"}) {
		t.Errorf("told that %q were dropped", dropped)
	}
}

func TestAFullQueueHasNoRoom(t *testing.T) {
	c := &client{connected: true, waiting: make([]outgoing, maxWaiting)}
	if err := c.Publish("t", nil); !errors.Is(err, transport.ErrNoRoom) {
		t.Errorf("%v; want %v", err, transport.ErrNoRoom)
	}
}

func TestAClientFailsOverToTheNextBroker(t *testing.T) {
	first, second := address(t), address(t)
	stop := startBroker(t, first, wsn.BrokerConfig{})
	startBroker(t, second, wsn.BrokerConfig{})
	config := subscriber(first, "#")
	config.Failover = []string{second}
	_, got := startClient(t, config)
	stop()
	eventually(t, "the other broker", func() bool { got.mu.Lock(); defer got.mu.Unlock(); return got.up && got.broker == second })
	p, _ := startClient(t, publisher(second, 1))
	publish(t, p, "t", "x")
	eventually(t, "a message by the other broker", func() bool { return slices.Contains(got.got(), "t x") })
}

func TestAClosedClientIsUnsubscribed(t *testing.T) {
	at := address(t)
	startBroker(t, at, wsn.BrokerConfig{})
	l := &journal{}
	config := subscriber(at, "#")
	config.Protocol = "ws-notification"
	c, err := open(transport.Setup{Config: config, Warn: func(text string) { t.Log(text) }}, l.events(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "connection", l.isUp)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c.Close(ctx)
	if ctx.Err() != nil {
		t.Error("closing took more than 5 s")
	}
	if conn, err := net.Dial("tcp", c.consumer.listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("the consumer still listens")
	}
}

// files of a security: certificate, key, user name and password.
func files(t *testing.T) map[string]string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for name, text := range map[string][]byte{
		"crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), "key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"username": []byte("vignette\n"), "password": []byte("secret\n"),
	} {
		paths[name] = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(paths[name], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

func TestWithSecurityMessagesAreSentAndFetchedByTLS(t *testing.T) {
	f, at := files(t), address(t)
	startBroker(t, at, wsn.BrokerConfig{CertFile: f["crt"], KeyFile: f["key"], CAFile: f["crt"], UsernameFile: f["username"], PasswordFile: f["password"]})
	security := &protocol.Security{CAFile: f["crt"], UsernameFile: f["username"], PasswordFile: f["password"]}
	config := subscriber(at, "#")
	config.Security = security
	c, got := startClient(t, config)
	if c.consumer != nil {
		t.Error("the client listens for messages in clear text")
	}
	config = publisher(at, 1)
	config.Security = security
	p, _ := startClient(t, config)
	publish(t, p, "t", "x")
	eventually(t, "message", func() bool { return len(got.got()) == 1 })
}

func TestClientsLogIn(t *testing.T) {
	f, at := files(t), address(t)
	startBroker(t, at, wsn.BrokerConfig{UsernameFile: f["username"], PasswordFile: f["password"]})
	config := subscriber(at, "#")
	config.Security = &protocol.Security{UsernameFile: f["username"], PasswordFile: f["password"]}
	_, got := startClient(t, config)
	config = publisher(at, 1)
	config.Security = &protocol.Security{UsernameFile: f["username"], PasswordFile: f["password"]}
	p, _ := startClient(t, config)
	publish(t, p, "t", "x")
	eventually(t, "message", func() bool { return len(got.got()) == 1 })

	var warned []string
	config = subscriber(at, "#")
	config.Protocol = "ws-notification"
	l := &journal{}
	var mu sync.Mutex
	events := l.events()
	events.Connection = func(_ bool, reason string) { mu.Lock(); defer mu.Unlock(); warned = append(warned, reason) }
	c, err := open(transport.Setup{Config: config, Warn: func(string) {}}, events, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "refusal", func() bool { mu.Lock(); defer mu.Unlock(); return len(warned) > 0 })
	mu.Lock()
	if !strings.Contains(warned[0], "401") {
		t.Errorf("told of %q; want status 401", warned[0])
	}
	mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c.Close(ctx)
}
