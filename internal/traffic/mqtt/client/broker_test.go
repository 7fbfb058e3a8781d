package client

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/request/requesttest"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// startBroker with further lines of mosquitto.conf.
func startBroker(t *testing.T, lines ...string) *testtool.Broker {
	t.Helper()
	if len(lines) == 0 {
		lines = []string{"allow_anonymous true"}
	}
	return testtool.Mosquitto(t, append([]string{"persistence_location " + t.TempDir() + "/", "max_queued_messages 0", "set_tcp_nodelay true"}, lines...)...)
}

var waitFor = testtool.Eventually

// client under test, and what it has told.
type client struct {
	transport.Client
	mu          sync.Mutex
	sent        map[string]int
	received    map[string]int
	order       []string // of first receptions
	connections []string
	warnings    []string
	answers     []string // to subscriptions
}

func open(t *testing.T, setup transport.Setup) *client {
	t.Helper()
	c := &client{sent: map[string]int{}, received: map[string]int{}}
	setup.Warn = func(text string) { c.note(func() { c.warnings = append(c.warnings, text) }) }
	if setup.ClientID == "" {
		setup.ClientID = fmt.Sprintf("test-%d", rand.Uint32())
	}
	inner, err := Open(setup, transport.Events{
		Sent: func(_ time.Time, _ string, payload []byte) { c.note(func() { c.sent[string(payload)]++ }) },
		Received: func(_ time.Time, _ string, payload []byte) {
			c.note(func() {
				if c.received[string(payload)]++; c.received[string(payload)] == 1 {
					c.order = append(c.order, string(payload))
				}
			})
		},
		Connection: func(up bool, reason string) {
			c.note(func() {
				if up {
					c.connections = append(c.connections, reason)
				} else {
					c.warnings = append(c.warnings, reason)
				}
			})
		},
		Subscription: func(filter, refusal string) {
			c.note(func() { c.answers = append(c.answers, filter+" "+cmp.Or(refusal, "made")) })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Client = inner
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		inner.Close(ctx)
		if t.Failed() {
			t.Logf("connections %q, warnings %q", c.connections, c.warnings)
		}
	})
	return c
}

func (c *client) note(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// told of subscriptions.
func (c *client) told() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.answers)
}

// subscribed waits until the broker has granted the subscriptions in the present session.
func (c *client) subscribed(t *testing.T) {
	t.Helper()
	var subscriptions *transport.Subscriptions
	switch inner := c.Client.(type) {
	case *client311:
		subscriptions = inner.subscriptions
	case *client5:
		subscriptions = inner.subscriptions
	}
	waitFor(t, "the subscription", func() bool { return len(subscriptions.Missing()) == 0 })
}

// count of messages and of connections.
func (c *client) count() (received, connections int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.received), len(c.connections)
}

func publisher(version, broker string, qos int) transport.Setup {
	return transport.Setup{Config: trafficconfig.Config{Version: version, Broker: broker, Publish: &trafficconfig.Publish{Topic: "/PRT/x", QoS: qos}}}
}

func subscriber(version, broker string, qos int) transport.Setup {
	return transport.Setup{Config: trafficconfig.Config{Version: version, Broker: broker, Subscribe: &trafficconfig.Subscribe{Topics: []string{"/PRT/#"}, QoS: qos}}}
}

var versions = []string{Version311, Version5}

// cutter passes bytes on to a broker and cuts each connection after some of them, in the middle of whatever they are.
type cutter struct {
	net.Listener
	mu     sync.Mutex
	random *rand.Rand
	cuts   int
	// most connections that are cut.
	most int
}

func cutConnections(t *testing.T, broker string, seed uint64) *cutter {
	t.Helper()
	listener := testport.Listen(t)
	c := &cutter{Listener: listener, random: rand.New(rand.NewPCG(seed, 0)), most: 4}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go c.pass(near, broker)
		}
	}()
	return c
}

func (c *cutter) pass(near net.Conn, broker string) {
	defer near.Close()
	far, err := net.Dial("tcp", broker)
	if err != nil {
		return
	}
	defer far.Close()
	c.mu.Lock()
	cut := c.cuts < c.most
	c.cuts++
	there, back := int64(2000+c.random.IntN(20000)), int64(1000+c.random.IntN(10000))
	c.mu.Unlock()
	done := make(chan struct{}, 2)
	through := func(to io.Writer, from io.Reader, bytes int64) {
		if cut {
			from = io.LimitReader(from, bytes)
		}
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go through(far, near, there)
	go through(near, far, back)
	<-done
}

func (c *cutter) finished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts > c.most
}

func TestASessionLosesNothingOverLostConnectionsAndQoS2RepeatsNothing(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	for _, version := range versions {
		for _, qos := range []int{1, 2} {
			t.Run(fmt.Sprintf("MQTT %s QoS %d", version, qos), func(t *testing.T) {
				t.Parallel()
				before, after := cutConnections(t, b.Address(), uint64(qos)), cutConnections(t, b.Address(), uint64(10+qos))
				to, from := publisher(version, before.Addr().String(), qos), subscriber(version, after.Addr().String(), qos)
				to.Publish.Topic = fmt.Sprintf("/PRT/%s/%d", version, qos)
				from.Subscribe.Topics = []string{to.Publish.Topic}
				s := open(t, from)
				s.subscribed(t)
				p := open(t, to)
				messages := 0
				for ; messages < 2000 && !(messages > 400 && before.finished() && after.finished()); messages++ {
					if err := p.Publish(to.Publish.Topic, []byte(fmt.Sprintf("%d %s", messages, strings.Repeat("x", 100)))); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Millisecond)
				}
				waitFor(t, "all messages", func() bool { n, _ := s.count(); return n == messages })
				time.Sleep(100 * time.Millisecond) // for repetitions
				s.mu.Lock()
				defer s.mu.Unlock()
				repeated := 0
				for _, n := range s.received {
					repeated += n - 1
				}
				if qos == 2 && repeated > 0 {
					t.Errorf("%d messages of QoS 2 came again", repeated)
				}
				if len(s.connections) < 4 {
					t.Errorf("%d connections; want several", len(s.connections))
				}
				t.Logf("%d messages over %d connections of the subscriber, %d repeated", messages, len(s.connections), repeated)
			})
		}
	}
}

func TestARetainedMessageIsThereForThoseWhoComeLater(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	for _, version := range versions {
		for qos := range 3 {
			setup := publisher(version, b.Address(), qos)
			setup.Publish.Retain = true
			p := open(t, setup)
			waitFor(t, "a connection", func() bool { _, n := p.count(); return n > 0 })
			topic := fmt.Sprintf("/PRT/%s/%d", version, qos)
			for _, text := range []string{"old", "new"} {
				if err := p.Publish(topic, []byte(text+topic)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	time.Sleep(200 * time.Millisecond)
	for _, version := range versions {
		s := open(t, subscriber(version, b.Address(), 2))
		waitFor(t, "all that was retained", func() bool { n, _ := s.count(); return n == 6 })
		s.note(func() {
			for text, n := range s.received {
				if !strings.HasPrefix(text, "new") || n != 1 {
					t.Errorf("MQTT %s: %q came %d times; want the newest of each topic once", version, text, n)
				}
			}
		})
	}
	out, err := exec.Command(testtool.Need(t, "mosquitto_sub"), "-p", fmt.Sprint(b.Port), "-t", "/PRT/#", "-C", "6", "-W", "10", "--retained-only").Output()
	if err != nil || strings.Count(string(out), "new") != 6 {
		t.Errorf("mosquitto_sub: %v, %q; want the 6 newest", err, out)
	}
}

func TestAPersistentSessionGetsWhatCameWhileItWasAwayAndACleanOneDoesNot(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	for _, version := range versions {
		for session, want := range map[string]int{trafficconfig.SessionPersistent: 1, trafficconfig.SessionClean: 0} {
			t.Run("MQTT "+version+" "+session, func(t *testing.T) {
				t.Parallel()
				setup := subscriber(version, b.Address(), 1)
				setup.Session, setup.ClientID = session, "client-"+version+session
				setup.Subscribe.Topics = []string{"/PRT/" + setup.ClientID}
				first := open(t, setup)
				first.subscribed(t)
				first.Close(t.Context())
				publishWith(t, b, setup.Subscribe.Topics[0], "meanwhile")
				second := open(t, setup)
				second.subscribed(t)
				waitFor(t, "what came meanwhile", func() bool { got, _ := second.count(); return got >= want })
				time.Sleep(200 * time.Millisecond)
				if got, _ := second.count(); got != want {
					t.Errorf("%d messages; want %d", got, want)
				}
			})
		}
	}
}

// publishWith a program of others.
func publishWith(t *testing.T, b *testtool.Broker, topic, text string, more ...string) {
	t.Helper()
	args := append([]string{"-p", fmt.Sprint(b.Port), "-t", topic, "-m", text, "-q", "1"}, more...)
	if out, err := exec.Command(testtool.Need(t, "mosquitto_pub"), args...).CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_pub: %v, %s", err, out)
	}
}

func TestClientsGoOnToTheNextBrokerAndFromTheLastToTheFirst(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run("MQTT "+version, func(t *testing.T) {
			t.Parallel()
			one, two := startBroker(t), startBroker(t)
			with := func(s transport.Setup) transport.Setup {
				s.Failover = []string{two.Address()}
				return s
			}
			s, p := open(t, with(subscriber(version, one.Address(), 1))), open(t, with(publisher(version, one.Address(), 1)))
			say := func(text string) {
				t.Helper()
				if err := p.Publish("/PRT/x", []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			arrives := func(text string) {
				t.Helper()
				waitFor(t, text, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.received[text] > 0 })
			}
			subscribed := func(n int) {
				t.Helper()
				waitFor(t, "a connection", func() bool { _, have := s.count(); return have == n })
				s.subscribed(t)
			}
			subscribed(1)
			say("through the first")
			arrives("through the first")
			one.Stop()
			subscribed(2)
			say("through the second")
			arrives("through the second")
			one.Start()
			two.Stop()
			subscribed(3)
			say("through the first again")
			arrives("through the first again")
			for _, c := range []*client{s, p} {
				c.note(func() {
					if want := []string{one.Address(), two.Address(), one.Address()}; strings.Join(c.connections, " ") != strings.Join(want, " ") {
						t.Errorf("connections %q; want %q", c.connections, want)
					}
				})
			}
		})
	}
}

func TestMessagesThatNoBrokerHasAcknowledgedGoToTheNextOneInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run("MQTT "+version, func(t *testing.T) {
			t.Parallel()
			silent := testport.Listen(t)
			accepted := map[string]string{Version311: "\x20\x02\x00\x00", Version5: "\x20\x06\x00\x00\x03\x21\x00\x03"}[version]
			go func() { // a broker that accepts the client, takes some messages (three, with MQTT 5) and dies before it acknowledges them
				c, err := silent.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1000))
				_, _ = c.Write([]byte(accepted))
				_, _ = io.CopyN(io.Discard, c, 60)
				c.Close()
			}()
			good := startBroker(t)
			s := open(t, subscriber(version, good.Address(), 1))
			s.subscribed(t)
			setup := publisher(version, silent.Addr().String(), 1)
			setup.Failover = []string{good.Address()}
			p := open(t, setup)
			var want []string
			for i := range 20 {
				want = append(want, fmt.Sprintf("message %d", i))
				if err := p.Publish("/PRT/x", []byte(want[i])); err != nil {
					t.Fatal(err)
				}
			}
			waitFor(t, "all messages", func() bool { n, _ := s.count(); return n == 20 })
			s.note(func() {
				if !slices.Equal(s.order, want) {
					t.Errorf("the messages come as %q", s.order)
				}
			})
		})
	}
}

func TestSessionsOutliveABrokerThatIsRestarted(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run("MQTT "+version, func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, "allow_anonymous true", "persistence true")
			s, p := open(t, subscriber(version, b.Address(), 2)), open(t, publisher(version, b.Address(), 2))
			waitFor(t, "a connection", func() bool { _, n := p.count(); return n > 0 })
			s.subscribed(t)
			for i := range 200 {
				if i == 50 {
					b.Stop()
				}
				if i == 150 {
					b.Start()
				}
				if err := p.Publish("/PRT/x", []byte(fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			waitFor(t, "all messages", func() bool { n, _ := s.count(); return n == 200 })
			s.note(func() {
				for text, n := range s.received {
					if n != 1 {
						t.Errorf("message %s came %d times; want once", text, n)
					}
				}
			})
		})
	}
}

// secure lines of mosquitto.conf: TLS with a certificate of its own, and a login. It returns what a client needs.
func secure(t *testing.T) (lines []string, security protocol.Security) {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"tls.crt":  string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		"tls.key":  string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
		"username": "vignette\n", "password": "secret\n", "wrong": "guessed\n",
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(testtool.Need(t, "mosquitto_passwd"), "-b", "-c", path("passwords"), "vignette", "secret").CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_passwd: %v, %s", err, out)
	}
	lines = []string{"certfile " + path("tls.crt"), "keyfile " + path("tls.key"), "password_file " + path("passwords")}
	return lines, protocol.Security{CAFile: path("tls.crt"), UsernameFile: path("username"), PasswordFile: path("password")}
}

func TestABrokerWithTLSAndPasswordsLetsInWhoHasBoth(t *testing.T) {
	t.Parallel()
	lines, security := secure(t)
	b := startBroker(t, lines...)
	for _, version := range versions {
		t.Run("MQTT "+version, func(t *testing.T) {
			t.Parallel()
			with := func(s transport.Setup, change func(*protocol.Security)) transport.Setup {
				own := security
				change(&own)
				s.Security = &own
				return s
			}
			none := func(*protocol.Security) {}
			s := open(t, with(subscriber(version, b.Address(), 0), none))
			s.subscribed(t)
			p := open(t, with(publisher(version, b.Address(), 0), none))
			waitFor(t, "a connection", func() bool { _, n := p.count(); return n > 0 })
			for i := range 100 {
				if err := p.Publish("/PRT/x", []byte(fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			waitFor(t, "the messages", func() bool { n, _ := s.count(); return n == 100 })
			for what, change := range map[string]func(*protocol.Security){
				"wrong password": func(s *protocol.Security) {
					s.PasswordFile = strings.Replace(s.PasswordFile, "password", "wrong", 1)
				},
				"no login":     func(s *protocol.Security) { s.UsernameFile, s.PasswordFile = "", "" },
				"no such file": func(s *protocol.Security) { s.PasswordFile += "-missing" },
				"no TLS":       func(s *protocol.Security) { s.CAFile = "" },
			} {
				c := open(t, with(publisher(version, b.Address(), 0), change))
				waitFor(t, what+" to be told", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.warnings) > 0 })
				if _, n := c.count(); n > 0 {
					t.Errorf("%s: was let in", what)
				}
			}
		})
	}
}

// another MQTT library: Eclipse Paho for Python publishes a retained message of each QoS, and prints what it gets of ours.
const pahoProgram = `
import sys, paho.mqtt.client as mqtt
arguments = dict(client_id="python", protocol=mqtt.MQTTv5 if sys.argv[2] == "5" else mqtt.MQTTv311)
if hasattr(mqtt, "CallbackAPIVersion"):
    arguments["callback_api_version"] = mqtt.CallbackAPIVersion.VERSION1
client, seen = mqtt.Client(**arguments), set()
def on_connect(client, *_):
    client.subscribe("ours/#", 2)
    for qos in range(3):
        client.publish("/PRT/%d" % qos, "python %d" % qos, qos, retain=True)
def on_message(client, _, message):
    seen.add((message.topic, message.payload, message.qos))
    if len(seen) == 3:
        for topic, payload, qos in sorted(seen):
            print(topic, payload.decode(), qos)
        client.disconnect()
client.on_connect, client.on_message = on_connect, on_message
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_forever()
`

func TestAnotherLibraryUnderstandsUsAndWeIt(t *testing.T) {
	t.Parallel()
	if exec.Command("/usr/bin/python3", "-c", "import paho.mqtt.client").Run() != nil {
		t.Skip("needs python3-paho-mqtt: hack/test-packages installs it")
	}
	b := startBroker(t)
	for _, version := range versions {
		for qos := range 3 {
			setup := publisher(version, b.Address(), qos)
			setup.Publish.Retain = true
			p := open(t, setup)
			waitFor(t, "a connection", func() bool { _, n := p.count(); return n > 0 })
			if err := p.Publish(fmt.Sprintf("ours/%d", qos), []byte(fmt.Sprintf("Go %d", qos))); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, subscriber(version, b.Address(), 2))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, "/usr/bin/python3", "-c", pahoProgram, fmt.Sprint(b.Port), version).CombinedOutput()
		if want := "ours/0 Go 0 0\nours/1 Go 1 1\nours/2 Go 2 2\n"; err != nil || string(out) != want {
			t.Errorf("MQTT %s: Python got %q, %v; want %q", version, out, err, want)
		}
		waitFor(t, "Python's messages", func() bool { n, _ := s.count(); return n >= 3 })
	}
}

func TestTsharkFindsNothingMalformed(t *testing.T) {
	t.Parallel()
	tshark := testtool.Need(t, "tshark")
	if os.Geteuid() != 0 {
		t.Skip("needs root to capture")
	}
	b := startBroker(t)
	path := filepath.Join(t.TempDir(), "mqtt.pcap")
	capture := exec.Command(testtool.Need(t, "tcpdump"), "-i", "lo", "-U", "--immediate-mode", "-B", "8192", "-w", path, fmt.Sprintf("tcp port %d", b.Port))
	told := &syncbuffer.Buffer{}
	capture.Stderr = told
	if err := capture.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "tcpdump to capture", func() bool { return strings.Contains(told.String(), "listening") })
	for _, version := range versions {
		s := open(t, subscriber(version, b.Address(), 2))
		s.subscribed(t)
		for qos := range 3 {
			setup := publisher(version, b.Address(), qos)
			setup.Publish.Retain = qos == 1
			p := open(t, setup)
			waitFor(t, "a connection", func() bool { _, n := p.count(); return n > 0 })
			for i := range 50 { // without a pause: several of QoS 0 in one segment
				if err := p.Publish("/PRT/x", []byte(fmt.Sprintf("%s %d %d %s", version, qos, i, strings.Repeat("y", 10*i)))); err != nil {
					t.Fatal(err)
				}
			}
			waitFor(t, "the messages", func() bool { n, _ := s.count(); return n >= 50*(qos+1) })
			p.Close(t.Context())
		}
		s.Close(t.Context())
	}
	time.Sleep(300 * time.Millisecond)
	_ = capture.Process.Signal(os.Interrupt)
	_ = capture.Wait()
	out, err := exec.Command(tshark, "-n", "-r", path, "-d", fmt.Sprintf("tcp.port==%d,mqtt", b.Port), "-T", "fields", "-e", "mqtt.msgtype", "-e", "_ws.malformed", "-e", "_ws.expert.severity",
		"-Y", "mqtt").Output()
	if err != nil {
		t.Fatal(err)
	}
	publishes := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		for kind := range strings.SplitSeq(fields[0], ",") {
			if kind == "3" {
				publishes++
			}
		}
		if len(fields) > 1 && fields[1] != "" {
			t.Errorf("malformed: %s", line)
		}
	}
	// 600, each to the broker and on to the subscriber, and one that was retained; a capture on a busy host may miss some.
	if publishes < 500 || publishes > 601 {
		t.Errorf("tshark finds %d PUBLISH packets; want 601", publishes)
	}
}

func TestClosingWaitsForMessagesThatWereNotSentYet(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	for _, version := range versions {
		t.Run("MQTT "+version, func(t *testing.T) {
			t.Parallel()
			s := open(t, subscriber(version, b.Address(), 1))
			s.subscribed(t)
			p := open(t, publisher(version, b.Address(), 1))
			for i := range 5 {
				if err := p.Publish("/PRT/x", []byte(fmt.Sprintf("%s %d", version, i))); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			p.Close(ctx) // it may not even be connected yet
			waitFor(t, "all messages", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.received[version+" 4"] > 0
			})
		})
	}
}

func TestAClientTellsInWordsWhyItIsNotConnected(t *testing.T) {
	t.Parallel()
	listener := testport.Listen(t)
	go func() { // it accepts nobody
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			c.Close()
		}
	}()
	nobody := requesttest.Address(t)
	for _, version := range versions {
		for broker, want := range map[string]string{nobody: nobody + ": nobody serves there", listener.Addr().String(): "the connection was closed"} {
			c := open(t, subscriber(version, broker, 0))
			told := func() string {
				c.mu.Lock()
				defer c.mu.Unlock()
				return strings.Join(c.warnings, "\n")
			}
			waitFor(t, "a reason", func() bool { return told() != "" })
			if got := told(); !strings.Contains(got, want) || strings.Contains(got, "EOF") || strings.Contains(got, "dial tcp") {
				t.Errorf("MQTT %s: %q; want %q", version, got, want)
			}
		}
	}
}

func TestAClientTellsWhyTheBrokerEndsTheConnection(t *testing.T) {
	t.Parallel()
	const accepted = "\x20\x03\x00\x00\x00"
	for want, answer := range map[string]string{
		"the broker refuses the connection: Bad User Name or Password":    "\x20\x03\x00\x86\x00",
		"the broker refuses the connection: Server unavailable: tomorrow": "\x20\x0e\x00\x88\x0b\x1f\x00\x08tomorrow",
		"the broker says: Session taken over":                             accepted + "\xe0\x02\x8e\x00",
		"the broker says: Quota exceeded: too much":                       accepted + "\xe0\x0d\x97\x0b\x1f\x00\x08too much",
		"the broker says: reason 0xff":                                    accepted + "\xe0\x02\xff\x00",
	} {
		listener := testport.Listen(t)
		c := open(t, subscriber(Version5, listener.Addr().String(), 0))
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1000)) // CONNECT
		_, _ = conn.Write([]byte(answer))
		waitFor(t, want, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return slices.Contains(c.warnings, want)
		})
	}
}

func TestAConnectionThatEndsAsMessagesAreRepeatedIsNotARefusal(t *testing.T) {
	t.Parallel()
	listener := testport.Listen(t)
	p := open(t, publisher(Version5, listener.Addr().String(), 1))
	if err := p.Publish("t", make([]byte, 16<<20)); err != nil { // more than the kernel takes at once
		t.Fatal(err)
	}
	for _, answer := range []string{"\x20\x03\x00\x00\x00", "\x20\x03\x01\x00\x00"} { // a new session, and the same
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Read(make([]byte, 1000)) // CONNECT
		_, _ = conn.Write([]byte(answer))
		_, _ = io.ReadFull(conn, make([]byte, 1000)) // of the message
		_ = conn.Close()
	}
	waitFor(t, "two reasons", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.warnings) >= 2 })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.warnings {
		if strings.Contains(text, "refuses") {
			t.Errorf("told %q; want why the connection ended", text)
		}
	}
}

func TestMessagesThatTheBrokerSaysItDoesNotTakeAreRefusedAndOthersGoOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line, want string
		qos, bytes int
		retain     bool
	}{
		"packet":      {line: "max_packet_size 1000", qos: 0, bytes: 989, want: "the broker takes packets of up to 1000 bytes"},
		"packet, QoS": {line: "max_packet_size 1000", qos: 1, bytes: 987, want: "the broker takes packets of up to 1000 bytes"},
		"QoS":         {line: "max_qos 1", qos: 2, bytes: 1, want: "QoS 2: the broker takes up to 1"},
		"retain":      {line: "retain_available false", qos: 1, bytes: 1, retain: true, want: "retain: the broker keeps no messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, "allow_anonymous true", c.line)
			setup := publisher(Version5, b.Address(), c.qos)
			setup.Publish.Retain = c.retain
			p := open(t, setup)
			waitFor(t, "a connection", func() bool { _, connections := p.count(); return connections == 1 })
			err := p.Publish("/PRT/x", make([]byte, c.bytes))
			waitFor(t, c.want, func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return slices.ContainsFunc(append([]string{fmt.Sprint(err)}, p.warnings...), func(text string) bool { return strings.HasSuffix(text, c.want) })
			})
			if c.bytes == 1 {
				return
			}
			if again := p.Publish("/PRT/x", make([]byte, c.bytes+1)); fmt.Sprint(again) != fmt.Sprint(err) {
				t.Errorf("the next too large message: %v; want the same reason, so that it is told once", again)
			}
			largest := make([]byte, c.bytes-1)
			if err := p.Publish("/PRT/x", largest); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the largest message", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.sent[string(largest)] == 1 })
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.connections) != 1 || len(p.warnings) > 1 {
				t.Errorf("%d connections, told %q; want one connection, and one reason", len(p.connections), p.warnings)
			}
		})
	}
}
