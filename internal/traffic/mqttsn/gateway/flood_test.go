package gateway

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

func TestAFloodOfBadPacketsNeitherStopsTheGatewayNorFillsItsMemory(t *testing.T) {
	broker := mosquitto(t)
	g := gateway(t, broker, nil)
	l, d := listen(t, broker, "a/b"), newDevice(t, g)
	d.connect("one", true)
	topic := d.register("a/b")
	flooder, before := newDevice(t, g), testtool.Heap()
	r := rand.New(rand.NewPCG(1, 2))
	const flood, served = 20000, 20
	for i := range flood {
		b := make([]byte, r.IntN(40))
		for j := range b {
			b[j] = byte(r.UintN(256))
		}
		if len(b) > 1 && i%2 == 0 { // half of them have a valid length and type
			b[0], b[1] = byte(len(b)), byte(r.UintN(0x1e))
		}
		_, _ = flooder.socket.Write(b)
		if i%(flood/served) == 0 {
			d.send(&wire.Publish{QoS: 1, TopicID: topic, MsgID: uint16(i + 1), Data: fmt.Appendf(nil, "%d", i)})
			want[*wire.Puback](d)
			l.want(fmt.Sprintf("a/b 0 0 %d", i))
		}
	}
	if grown := testtool.Heap() - before; grown > 32<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	g.mu.Lock()
	down := g.own.early == nil && g.own.conn == nil
	g.mu.Unlock()
	if down {
		t.Error("the broker has ended the connection for what the flood has published")
	}
	if testutil.ToFloat64(g.metrics.dropped.WithLabelValues(dropMalformed)) < flood/10 {
		t.Error("few packets of the flood were counted as malformed")
	}
}

func TestHalfOpenClientsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	g := gateway(t, mosquitto(t), func(c *mqttsn.GatewayConfig) { c.MaxClients = 20 })
	served := newDevice(t, g)
	served.connect("served", true)
	for i := range 300 { // the gateway asks each for its will, and gets no answer
		newDevice(t, g).send(&wire.Connect{Will: true, ClientID: fmt.Sprint("half", i)})
	}
	d := newDevice(t, g)
	d.connect("whole", true)
	served.send(&wire.Pingreq{})
	want[*wire.Pingresp](served)
	g.mu.Lock()
	clients := len(g.clients)
	g.mu.Unlock()
	if clients > 20 {
		t.Errorf("%d clients; want at most 20", clients)
	}
	eventually(t, "those that do not answer are given up", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.clients) == 2 && len(g.peers) == 2
	})
}

func TestTenThousandTopicsReachASubscriberToAllOfThem(t *testing.T) {
	const topics = 10000
	many := func(c *mqttsn.GatewayConfig) { c.MaxQueued, c.Window = 2*topics, 50 }
	// All at once: the broker must not drop what the gateway accepts.
	broker := mosquitto(t, "max_queued_messages 0", "max_inflight_messages 0")
	g := gateway(t, broker, many)
	sub, before := newDevice(t, g), testtool.Heap()
	sub.connect("sub", true)
	sub.subscribe("t/#", 0)
	received, done := map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		names := map[uint16]string{}
		for len(received) < topics {
			switch p := sub.next(5 * time.Second).(type) {
			case *wire.Register:
				names[p.TopicID] = p.Topic
				sub.send(&wire.Regack{TopicID: p.TopicID, MsgID: p.MsgID})
			case *wire.Publish:
				if names[p.TopicID] != string(p.Data) {
					t.Errorf("message %s has the topic %s", p.Data, names[p.TopicID])
				}
				received[string(p.Data)] = true
			case nil:
				return
			}
		}
	}()
	dialer, err := g.dialer()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := dialBroker(t.Context(), dialer, login{clientID: "pub", clean: true}, brokerEvents{lost: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	pub.start()
	defer pub.shut()
	for i := range topics {
		topic := fmt.Sprintf("t/%d", i)
		for pub.publish(message{topic: topic, payload: []byte(topic)}, 0, false) != nil {
			time.Sleep(time.Millisecond)
		}
	}
	<-done
	if len(received) != topics {
		t.Errorf("%d of %d topics were received", len(received), topics)
	}
	if grown := testtool.Heap() - before; grown > 32<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	} else {
		t.Logf("%d bytes of heap for %d topics of a client", grown, topics)
	}
}

func TestMoreTopicsThanTheLimitAreCongestion(t *testing.T) {
	t.Parallel()
	g := gateway(t, mosquitto(t), func(c *mqttsn.GatewayConfig) { c.MaxTopics = 3 })
	d := newDevice(t, g)
	d.connect("one", true)
	for i := range 3 {
		d.register(fmt.Sprint("t/", i))
	}
	d.send(&wire.Register{MsgID: 1, Topic: "one/more"})
	if ack := want[*wire.Regack](d); ack.Code != wire.Congestion {
		t.Errorf("REGACK %s", ack.Code)
	}
	d.send(&wire.Subscribe{MsgID: 2, Topic: "one/more"})
	if ack := want[*wire.Suback](d); ack.Code != wire.Congestion {
		t.Errorf("SUBACK %s", ack.Code)
	}
	d.register("t/1")
}

func TestQueuesOfClientsThatSleepAreBoundedTogether(t *testing.T) {
	t.Parallel()
	const limit = 100 << 10
	broker := mosquitto(t)
	g := gateway(t, broker, func(c *mqttsn.GatewayConfig) { c.MaxQueuedBytes, c.Mode = limit, mqttsn.Aggregating })
	for i := range 5 {
		d := newDevice(t, g)
		d.connect(fmt.Sprint("sleeper", i), true)
		d.subscribe("big", 1)
		d.send(&wire.Disconnect{Sleep: true, SleepSeconds: 600})
		want[*wire.Disconnect](d)
	}
	large := strings.Repeat("x", 10<<10)
	for qos := range 2 {
		for range 5 {
			publish(t, broker, "-t", "big", "-m", large, "-q", fmt.Sprint(qos))
		}
	}
	eventually(t, "what is too much was dropped", func() bool {
		return testutil.ToFloat64(g.metrics.dropped.WithLabelValues(dropClientQueue)) >= 40
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queuedBytes > limit || g.queuedBytes < limit/2 || g.queued != g.queuedBytes/len(large) {
		t.Errorf("%d messages of %d bytes wait; want at most %d bytes", g.queued, g.queuedBytes, limit)
	}
}

func TestCountsOfWhatWaitsComeBackToNothing(t *testing.T) {
	t.Parallel()
	broker := mosquitto(t)
	g := gateway(t, broker, func(c *mqttsn.GatewayConfig) { c.Mode, c.RetrySeconds = mqttsn.Aggregating, 60 })
	for _, clean := range []bool{true, false} {
		d := newDevice(t, g)
		d.connect(fmt.Sprint("one", clean), clean)
		d.subscribe("a/#", 1)
		publish(t, broker, "-t", "a/b", "-m", "x", "-q", "1")
		want[*wire.Register](d)
		d.send(&wire.Disconnect{})
		want[*wire.Disconnect](d)
		again := newDevice(t, g)
		again.connect(fmt.Sprint("one", clean), true)
		again.send(&wire.Disconnect{})
		want[*wire.Disconnect](again)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queued != 0 || g.queuedBytes != 0 || g.topics != 0 || len(g.peers) != 0 || len(g.clients) != 0 || len(g.own.subscriptions) != 0 {
		t.Errorf("%d messages of %d bytes, %d topics, %d addresses, %d clients, %d filters are left", g.queued, g.queuedBytes, g.topics, len(g.peers), len(g.clients),
			len(g.own.subscriptions))
	}
}

// TestABrokerThatGoesAndComes: during an outage a transparent gateway ends its clients' connections. An aggregating one keeps them and their messages.
func TestABrokerThatGoesAndComes(t *testing.T) {
	t.Parallel()
	front := newProxy(t, mosquitto(t))
	g := gateway(t, front.port(), func(c *mqttsn.GatewayConfig) { c.Mode = mqttsn.Aggregating })
	d, sub := newDevice(t, g), newDevice(t, g)
	d.connect("one", true)
	sub.connect("two", true)
	topic := d.register("a/b")
	sub.subscribe("a/b", 1)
	front.cut()
	eventually(t, "the gateway sees it", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.own.conn == nil
	})
	d.send(&wire.Publish{QoS: 1, TopicID: topic, MsgID: 1, Data: []byte("later")})
	d.silent(200 * time.Millisecond)
	front.mend()
	if ack := want[*wire.Puback](d); ack.MsgID != 1 || ack.Code != wire.Accepted {
		t.Errorf("PUBACK %+v", ack)
	}
	if p := want[*wire.Publish](sub); string(p.Data) != "later" {
		t.Errorf("PUBLISH %+v", p)
	}

	transparent := gateway(t, front.port(), nil)
	d = newDevice(t, transparent)
	d.connect("three", true)
	front.cut()
	want[*wire.Disconnect](d)
}

func TestClientsWithOverlappingFiltersGetAMessageOnceEach(t *testing.T) {
	t.Parallel()
	broker := mosquitto(t, "allow_duplicate_messages true") // once for each filter of a connection
	front := newProxy(t, broker)
	g := gateway(t, front.port(), func(c *mqttsn.GatewayConfig) { c.Mode = mqttsn.Aggregating })
	devices, levels := map[string]*device{}, map[string]int{"#": 0, "/#": 2, "+/a": 1, "/a": 2}
	for filter, qos := range levels {
		d := newDevice(t, g)
		d.connect("client of "+filter, true)
		d.subscribe(filter, qos)
		devices[filter] = d
	}
	settled := func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.own.conn != nil && len(g.own.asked)+len(g.own.leaving) == 0
	}
	check := func(when string) {
		t.Helper()
		eventually(t, "the broker has the filters", settled)
		for qos := range 3 {
			text := fmt.Sprint(when, " with QoS ", qos)
			publish(t, broker, "-t", "/a", "-m", text, "-q", fmt.Sprint(qos))
			for filter, d := range devices {
				if got := d.take(text); got != min(qos, levels[filter]) {
					t.Errorf("%s: a subscription to %s with QoS %d gets QoS %d", text, filter, levels[filter], got)
				}
			}
			for _, d := range devices {
				d.silent(50 * time.Millisecond)
			}
		}
	}
	check("all")
	front.cut()
	eventually(t, "the gateway sees it", func() bool { return !settled() })
	front.mend()
	check("after a reconnection")
	widest := devices["#"]
	widest.send(&wire.Unsubscribe{MsgID: 1, Topic: "#"})
	want[*wire.Unsuback](widest)
	delete(devices, "#")
	check("without the widest")
	widest.silent(50 * time.Millisecond)
}

func TestABrokerWithoutTheSessionCountsItsIDsAnew(t *testing.T) {
	t.Parallel()
	restarted := mosquitto(t)
	publish(t, restarted, "-t", "a/b", "-m", "kept", "-q", "2", "-r")
	front := newProxy(t, mosquitto(t))
	g := gateway(t, front.port(), func(c *mqttsn.GatewayConfig) { c.Mode = mqttsn.Aggregating })
	d := newDevice(t, g)
	d.connect("one", true)
	d.subscribe("a/b", 2)
	front.cut()
	g.mu.Lock()
	g.own.incoming[1] = true // the broker ended before its PUBREL
	g.mu.Unlock()
	front.mendTo(restarted)
	if p := want[*wire.Publish](d); string(p.Data) != "kept" {
		t.Errorf("PUBLISH %+v; want the message with the same id", p)
	}
}

// proxy passes TCP connections on, and can cut them.
type proxy struct {
	t        *testing.T
	listener net.Listener
	to       int

	mu    sync.Mutex
	conns []net.Conn
	down  bool
}

func newProxy(t *testing.T, to int) *proxy {
	t.Helper()
	l := testport.Listen(t)
	p := &proxy{t: t, listener: l, to: to}
	t.Cleanup(func() { l.Close(); p.cut() })
	go p.run()
	return p
}

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *proxy) run() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		to := p.to
		p.mu.Unlock()
		out, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", to))
		p.mu.Lock()
		if err != nil || p.down {
			in.Close()
			if out != nil {
				out.Close()
			}
			p.mu.Unlock()
			continue
		}
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		pipe := func(to, from net.Conn) {
			buffer := make([]byte, 4096)
			for {
				n, err := from.Read(buffer)
				if err != nil {
					to.Close()
					return
				}
				_, _ = to.Write(buffer[:n])
			}
		}
		go pipe(in, out)
		go pipe(out, in)
	}
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) mend() { p.mendTo(p.to) }

// mendTo mends it with another broker.
func (p *proxy) mendTo(broker int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down, p.to = false, broker
}
