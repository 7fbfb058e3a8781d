package rabbitmq_test

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
)

// protocols are those with more than QoS 0 whose clients are tested with the broker.
var protocols = []string{"amqp", "stomp"}

// It subscribes with wildcards, of which two match the same message.
func TestFiltersMatchAsInMQTT(t *testing.T) {
	b := startOpen(t)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			s := open(t, b.subscriber(protocol, "nor/filters", 0, protocol+"/PRT/+/location", protocol+"/PRT/x/#", protocol+"/end")).waitConnected(t)
			p := open(t, b.publisher(protocol, "prt/p", 0)).waitConnected(t)
			for _, topic := range []string{"/PRT/x/location", "/PRT/y/location", "/PRT/y/z/location", "/PRT/x", "/PRT/x/1/2", "PRT/x/location", "/end"} {
				if err := p.Publish(protocol+topic, []byte("m")); err != nil {
					t.Fatal(err)
				}
			}
			reached(func() bool { return s.receivedMessages()[protocol+"/end m"] > 0 })
			want := map[string]int{}
			for _, topic := range []string{"/PRT/x/location", "/PRT/y/location", "/PRT/x", "/PRT/x/1/2", "/end"} {
				want[protocol+topic+" m"] = 1
			}
			if got := s.receivedMessages(); !maps.Equal(got, want) {
				t.Errorf("heard %v; want %v", got, want)
			}
		})
	}
}

// It publishes while no subscriber is connected.
func TestMessagesOfQoS1OutliveTheSubscribersConnection(t *testing.T) {
	b := startOpen(t)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			topic := protocol + "/kept"
			first := open(t, b.subscriber(protocol, "nor/kept", 1, topic)).waitConnected(t)
			p := open(t, b.publisher(protocol, "prt/kept", 1)).waitConnected(t)
			_ = p.Publish(topic, []byte("0"))
			if !reached(func() bool { return len(first.receivedMessages()) == 1 }) {
				t.Fatalf("heard %v", first.receivedMessages())
			}
			first.close()
			want := map[string]int{}
			for i := 1; i <= 20; i++ {
				_ = p.Publish(topic, fmt.Append(nil, i))
				want[fmt.Sprintf("%s %d", topic, i)] = 1
			}
			p.close()
			second := open(t, b.subscriber(protocol, "nor/kept", 1, topic))
			reached(func() bool { return len(second.receivedMessages()) == len(want) })
			if got := second.receivedMessages(); !maps.Equal(got, want) {
				t.Errorf("heard %v; want %v: the first had acknowledged its only message", got, want)
			}
		})
	}
}

// proxy is a proxy of the broker whose connections can be cut.
type proxy struct {
	address string
	mu      sync.Mutex
	conns   []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l := testport.Listen(t)
	p := &proxy{address: l.Addr().String()}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			go pump(in, out)
			go pump(out, in)
		}
	}()
	return p
}

// pump copies up to 4 kB each 5 ms, so that data is in transit when the connection is cut.
func pump(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cut resets all connections of the proxy.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	p.conns = nil
}

// Each message arrives at least once.
func TestMessagesOfQoS1SurviveConnectionsThatAreCut(t *testing.T) {
	b := startOpen(t)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			const messages = 600
			topic := protocol + "/cut"
			way := newProxy(t, b.of(protocol))
			subscriber, publisher := b.subscriber(protocol, "nor/cut", 1, topic), b.publisher(protocol, "prt/cut", 1)
			subscriber.Broker, publisher.Broker = way.address, way.address
			s, p := open(t, subscriber).waitConnected(t), open(t, publisher).waitConnected(t)
			want := map[string]bool{}
			for i := range messages {
				payload := fmt.Sprintf("%04d%0500d", i, 0)
				want[topic+" "+payload] = true
				if err := p.Publish(topic, []byte(payload)); err != nil {
					t.Fatal(err)
				}
				if i%150 == 100 {
					time.Sleep(50 * time.Millisecond)
					way.cut()
				}
			}
			reached(func() bool { return len(s.receivedMessages()) == messages })
			heard, wrote := s.receivedMessages(), p.sentMessages()
			for message := range want {
				if heard[message] == 0 || wrote[message] == 0 {
					t.Fatalf("%.20s… came %d times and was sent %d times; %d of %d came", message, heard[message], wrote[message], len(heard), messages)
				}
			}
			if again := len(slices.DeleteFunc(slices.Collect(maps.Values(wrote)), func(n int) bool { return n == 1 })); again == 0 {
				t.Error("no message was sent twice: nothing was in transit when the connection was cut")
			}
		})
	}
}

// They are not sent later.
func TestMessagesOfQoS0WithoutAConnectionAreRefused(t *testing.T) {
	for _, protocol := range protocols {
		p := open(t, (&broker{}).publisher(protocol, "prt/lost", 0))
		if err := p.Publish("a", nil); err == nil {
			t.Errorf("%s: a message was accepted without a connection", protocol)
		}
	}
}

// The first broker cannot be reached.
func TestClientsFailOverToTheNextBroker(t *testing.T) {
	b := startOpen(t)
	for _, protocol := range protocols {
		config := b.subscriber(protocol, "nor/failover", 0, "#")
		config.Broker, config.Failover = "127.0.0.1:9", []string{b.of(protocol)}
		c := open(t, config).waitConnected(t)
		if told := c.stateChanges(); told[len(told)-1] != "up true: "+b.of(protocol) {
			t.Errorf("%s: %v; want a connection to %s at last", protocol, told, b.of(protocol))
		}
	}
}
