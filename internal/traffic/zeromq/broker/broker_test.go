package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/zeromq"
	zeromqclient "vignette.dev/vignette/internal/traffic/zeromq/client"
	"vignette.dev/vignette/internal/traffic/zeromq/zmq"
	"vignette.dev/vignette/internal/trafficconfig"
)

func needLibrary(t testing.TB) {
	t.Helper()
	if _, err := zmq.Has("pgm"); err != nil {
		t.Skipf("libzmq is not installed (Debian package libzmq5): %v", err)
	}
}

// listener collects a client's events.
type listener struct {
	mu             sync.Mutex
	received, sent []string
	up             bool
	ups            []string
}

func (l *listener) events() transport.Events {
	note := func(to *[]string) func(time.Time, string, []byte) {
		return func(_ time.Time, topic string, payload []byte) {
			l.mu.Lock()
			defer l.mu.Unlock()
			*to = append(*to, topic+"="+string(payload))
		}
	}
	return transport.Events{Sent: note(&l.sent), Received: note(&l.received), Dropped: func(int) {},
		Connection: func(up bool, reason string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.up = up; up {
				l.ups = append(l.ups, reason)
			}
		}}
}

func (l *listener) got() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.received)
}

// connections returns the established connections, by broker.
func (l *listener) connections() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ups)
}

func (l *listener) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

var waitFor = testtool.Eventually

// server is a broker in this process.
type server struct {
	port    int
	metrics *metrics
	stop    func()
}

func (s *server) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// serve starts a broker on a port, or for 0 on any free port whose next is free, too.
func serve(t testing.TB, port int) *server {
	t.Helper()
	if port == 0 {
		port = testport.Free(t)
	}
	s := &server{port: port, metrics: newMetrics("nor/broker")}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, zeromq.BrokerConfig{Transport: zeromq.TransportTCP, Address: "127.0.0.1", Port: port}, s.metrics)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("broker: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// setup returns a client's setup with subscriptions to filters, or a publisher's without filters.
func setup(broker string, filters ...string) transport.Setup {
	c := trafficconfig.Config{Protocol: "zeromq", Broker: broker, Transport: zeromq.TransportTCP, Seed: 7}
	if len(filters) > 0 {
		c.Subscribe = &trafficconfig.Subscribe{Topics: filters}
	} else {
		c.Publish = &trafficconfig.Publish{Topic: "t"}
	}
	return transport.Setup{Config: c, ClientID: "prt:app", LargestTopic: "t", LargestBytes: 300}
}

func client(t testing.TB, s transport.Setup) (transport.Client, *listener) {
	t.Helper()
	l := &listener{}
	s.Warn = func(string) {}
	c, err := zeromqclient.Open(s, l.events())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c, l
}

// subscribed waits for a number of the broker's subscriptions, and until publishers have them too.
func (s *server) subscribed(t testing.TB, n int) {
	t.Helper()
	waitFor(t, "subscriptions", func() bool { return testutil.ToFloat64(s.metrics.subscriptions) == float64(n) })
	time.Sleep(time.Second)
}

func TestSubscribersGetWhatTheirFiltersMatchAndPublishersSendNothingElse(t *testing.T) {
	needLibrary(t)
	s := serve(t, 0)
	_, some := client(t, setup(s.address(), "/PRT/+/location", "/NOR/#", "exact"))
	p, l := client(t, setup(s.address()))
	waitFor(t, "connections", func() bool { return some.isUp() && l.isUp() })
	s.subscribed(t, 3)
	for _, topic := range []string{"/PRT/a/location", "/PRT/a/status", "/NOR", "/NOR/b", "/NORWAY", "/USA/c", "exact", "exactly"} {
		if err := p.Publish(topic, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"/PRT/a/location=x", "/NOR=x", "/NOR/b=x", "exact=x"}
	waitFor(t, "4 messages", func() bool { return len(some.got()) >= len(want) })
	time.Sleep(50 * time.Millisecond)
	if got := some.got(); !slices.Equal(got, want) {
		t.Errorf("received %q; want %q", got, want)
	}
	// /USA/c begins like no wanted topic.
	if n := testutil.ToFloat64(s.metrics.received); n != 7 {
		t.Errorf("the broker received %v messages; want 7", n)
	}
	if len(l.sent) != 8 {
		t.Errorf("told of %d sent messages; want 8", len(l.sent))
	}
}

func TestAClientOfBothDirectionsComesBackToItsBroker(t *testing.T) {
	needLibrary(t)
	s := serve(t, 0)
	both := setup(s.address(), "#")
	both.Publish = &trafficconfig.Publish{Topic: "t"}
	c, l := client(t, both)
	waitFor(t, "a connection", l.isUp)
	s.subscribed(t, 1)
	if err := c.Publish("/a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "its own message", func() bool { return len(l.got()) == 1 })
	s.stop()
	waitFor(t, "the loss", func() bool { return !l.isUp() })
	if err := c.Publish("/a", []byte("2")); err == nil {
		t.Error("a message without a connection was not refused")
	}
	s = serve(t, s.port)
	waitFor(t, "a connection again", l.isUp)
	s.subscribed(t, 1)
	if err := c.Publish("/a", []byte("3")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the message after", func() bool { return len(l.got()) == 2 })
	if got := l.got(); got[1] != "/a=3" {
		t.Errorf("received %q; want /a=1 and /a=3", got)
	}
}

func TestAClientGoesOnToTheNextBroker(t *testing.T) {
	needLibrary(t)
	first, second := serve(t, 0), serve(t, 0)
	config := setup(first.address(), "#")
	config.Failover = []string{second.address()}
	_, l := client(t, config)
	waitFor(t, "a connection", l.isUp)
	first.stop()
	waitFor(t, "a connection to the second", func() bool { return len(l.connections()) == 2 })
	if got := l.connections(); !slices.Equal(got, []string{first.address(), second.address()}) {
		t.Errorf("connected to %q; want the first, then the second", got)
	}
}

func TestAFullQueueRefusesMessagesAndSaysSo(t *testing.T) {
	needLibrary(t)
	s := serve(t, 0)
	// A subscriber that never reads does not block the publisher. A broker that does not read does: a bare XSUB takes its place.
	library, err := zmq.Open()
	if err != nil {
		t.Fatal(err)
	}
	port := testport.Free(t)
	bare, err := library.Socket(zmq.XSUB)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bare.Close(); _ = library.Close() })
	for option, value := range map[zmq.Option]int{zmq.Linger: 0, zmq.ReceiveHighWater: 1} {
		if err := bare.Set(option, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := bare.Bind(fmt.Sprintf("tcp://127.0.0.1:%d", port)); err != nil {
		t.Fatal(err)
	}
	s.stop()
	config := setup(fmt.Sprintf("127.0.0.1:%d", port))
	config.LargestBytes = 1 << 20
	p, l := client(t, config)
	waitFor(t, "a connection", l.isUp)
	if err := bare.Send([]byte("\x01")); err != nil { // to all
		t.Fatal(err)
	}
	refused, sent := 0, 0
	for deadline := time.Now().Add(time.Minute); refused < 10 && time.Now().Before(deadline); { // until it subscribes, all are lost
		if err := p.Publish("t", make([]byte, 1<<20)); err != nil {
			refused++
			if want := "the queue of 16 messages is full: " + transport.ErrNoRoom.Error(); err.Error() != want {
				t.Errorf("refused by %q; want %q", err, want)
			}
		} else {
			sent++
		}
	}
	if len(l.sent) != sent || sent < 16 || refused == 0 {
		t.Errorf("%d messages sent, of which %d were told of, %d refused; want 16 sent at least, some refused", sent, len(l.sent), refused)
	}
}

func TestASlowSubscriberLosesMessagesThatTheBrokerCounts(t *testing.T) {
	needLibrary(t)
	s := serve(t, 0)
	library, err := zmq.Open()
	if err != nil {
		t.Fatal(err)
	}
	slow, err := library.Socket(zmq.SUB)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slow.Close(); _ = library.Close() })
	if err := slow.SetAll(map[zmq.Option]int{zmq.Linger: 0, zmq.ReceiveHighWater: 1}); err != nil {
		t.Fatal(err)
	}
	if err := slow.Connect(fmt.Sprintf("tcp://127.0.0.1:%d", s.port+1)); err != nil {
		t.Fatal(err)
	}
	if err := slow.Subscribe(""); err != nil {
		t.Fatal(err)
	}
	_, fast := client(t, setup(s.address(), "#"))
	p, l := client(t, setup(s.address()))
	waitFor(t, "connections", func() bool { return fast.isUp() && l.isUp() })
	s.subscribed(t, 1)
	payload, sent := make([]byte, 20_000), 0
	for deadline := time.Now().Add(10 * time.Second); testutil.ToFloat64(s.metrics.dropped) == 0 && time.Now().Before(deadline); {
		if p.Publish("t", payload) == nil {
			sent++
		}
		if sent%20 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if testutil.ToFloat64(s.metrics.dropped) == 0 {
		t.Fatalf("%d messages of 20 kB, and none dropped for a subscriber that does not read", sent)
	}
	waitFor(t, "all messages at the other subscriber", func() bool { return len(fast.got()) == sent })
}

// relay passes bytes between a client and a server until it is frozen.
type relay struct {
	net.Listener
	frozen atomic.Bool
}

func startRelay(t *testing.T, to string) *relay {
	t.Helper()
	l := testport.Listen(t)
	r := &relay{Listener: l}
	pass := func(from, to net.Conn) {
		buffer := make([]byte, 4096)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				to.Close()
				return
			}
			if !r.frozen.Load() {
				_, _ = to.Write(buffer[:n])
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			for ; err != nil && t.Context().Err() == nil; far, err = net.Dial("tcp", to) {
				time.Sleep(10 * time.Millisecond) // the server is not up yet
			}
			if err != nil {
				near.Close()
				return
			}
			go pass(near, far)
			go pass(far, near)
		}
	}()
	return r
}

func TestHeartbeatsKeepASilentConnectionAndEndThatToASilentPeer(t *testing.T) {
	needLibrary(t)
	s := serve(t, 0)
	library, err := zmq.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	way := startRelay(t, fmt.Sprintf("127.0.0.1:%d", s.port+1))
	options := map[zmq.Option]int{zmq.Linger: 0, zmq.ReconnectInterval: -1}
	zeromqclient.Heartbeats(options, 200*time.Millisecond)
	silent, err := library.Socket(zmq.SUB)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := errors.Join(silent.SetAll(options), silent.Connect("tcp://"+way.Addr().String())); err != nil {
		t.Fatal(err)
	}
	side := s.metrics.connections.WithLabelValues(subscribers)
	waitFor(t, "the connection", func() bool { return testutil.ToFloat64(side) == 1 })
	for range 100 {
		time.Sleep(10 * time.Millisecond)
		if testutil.ToFloat64(side) != 1 {
			t.Fatal("the connection was ended although both sides live")
		}
	}
	way.frozen.Store(true)
	waitFor(t, "the end of the connection to a peer that says nothing", func() bool { return testutil.ToFloat64(side) == 0 })
}

func TestSetupsThatAreNotForZeroMQAreRefusedByName(t *testing.T) {
	needLibrary(t)
	for want, change := range map[string]func(*transport.Setup){
		"topic filter":  func(s *transport.Setup) { s.Subscribe = &trafficconfig.Subscribe{Topics: []string{"#/a"}} },
		"transport":     func(s *transport.Setup) { s.Transport = "pigeon" },
		"pgm is missin": func(s *transport.Setup) { s.Transport = "pgm" },
		"12 at least":   func(s *transport.Setup) { s.Transport, s.PGM = "pgm", &zeromq.PGM{RateKilobits: 10} },
		"neither TLS":   func(s *transport.Setup) { s.Security = &protocol.Security{CAFile: "ca.crt"} },
		"host:port":     func(s *transport.Setup) { s.Broker = "nor" },
	} {
		s := setup("127.0.0.1:5555")
		change(&s)
		if _, err := zeromqclient.Open(s, transport.Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error with %q", err, want)
		}
	}
}

// python starts a script with pyzmq, an independent implementation.
func python(t *testing.T, script string, args ...string) *syncbuffer.Buffer {
	t.Helper()
	return pythonAt(t, nil, script, args...)
}

// pythonAt runs python behind a command, such as one that enters a namespace.
func pythonAt(t *testing.T, before []string, script string, args ...string) *syncbuffer.Buffer {
	t.Helper()
	const program = "/usr/bin/python3" // Debian's, which has Debian's packages
	if err := exec.Command(program, "-c", "import zmq").Run(); err != nil {
		t.Skipf("pyzmq is not installed (Debian package python3-zmq): %v", err)
	}
	command := append(append(slices.Clone(before), program, "-u", "-c", script), args...)
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	told := &syncbuffer.Buffer{}
	c.Stdout, c.Stderr = told, told
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return told
}

const (
	pySubscribe = `
import sys, zmq
s = zmq.Context().socket(zmq.SUB)
s.setsockopt(zmq.RATE, 1000); s.setsockopt(zmq.RECOVERY_IVL, 60000)
s.connect(sys.argv[1])
s.setsockopt(zmq.SUBSCRIBE, sys.argv[2].encode())
print("ready")
while True:
    print(b"=".join(s.recv_multipart()).decode())
`
	pyPublish = `
import sys, time, zmq
s = zmq.Context().socket(zmq.PUB)
s.setsockopt(zmq.RATE, 1000); s.setsockopt(zmq.RECOVERY_IVL, 60000)
s.connect(sys.argv[1])
for _ in range(20):
    s.send_multipart([b"/first", b""])
    time.sleep(0.05)
for i in range(int(sys.argv[2])):
    s.send_multipart([b"/PY/a" if i % 2 else b"/other", b"%d" % i])
    time.sleep(0.01)
time.sleep(60)
`
)

func TestPyzmqAndOurClientsMeetAtTheBroker(t *testing.T) {
	needLibrary(t)
	s := serve(t, 0)
	_, ours := client(t, setup(s.address(), "/PY/+"))
	p, l := client(t, setup(s.address()))
	waitFor(t, "connections", func() bool { return ours.isUp() && l.isUp() })
	theirs := python(t, pySubscribe, fmt.Sprintf("tcp://127.0.0.1:%d", s.port+1), "/OURS/")
	s.subscribed(t, 2)
	for i := range 20 {
		if err := p.Publish(fmt.Sprintf("/OURS/%d", i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	python(t, pyPublish, "tcp://"+s.address(), "20")
	waitFor(t, "20 messages at pyzmq's subscriber", func() bool { return strings.Count(theirs.String(), "=x\n") == 20 })
	waitFor(t, "10 messages from pyzmq's publisher", func() bool { return len(ours.got()) == 10 })
	if got := ours.got()[9]; got != "/PY/a=19" {
		t.Errorf("last message %q; want /PY/a=19", got)
	}
}
