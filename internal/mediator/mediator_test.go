package mediator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// world has brokers by their addresses, each of which gives a message to all who subscribe to it, its publisher among them.
type world struct {
	mu      sync.Mutex
	brokers map[string]*fakeBroker
}

type fakeBroker struct {
	mu      sync.Mutex
	down    bool
	refuses string
	// keeps: clients take messages and do not send them yet.
	keeps   bool
	kept    []func()
	clients []*fakeClient
	seen    []string // "topic content" of all that was published
}

type fakeClient struct {
	broker  *fakeBroker
	filters []string
	events  transport.Events
}

func newWorld() *world { return &world{brokers: map[string]*fakeBroker{}} }

func (w *world) broker(address string) *fakeBroker {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.brokers[address] == nil {
		w.brokers[address] = &fakeBroker{}
	}
	return w.brokers[address]
}

// open is a transport.Open.
func (w *world) open(s transport.Setup, events transport.Events) (transport.Client, error) {
	c := &fakeClient{w.broker(s.Broker), s.Filters(), events}
	c.broker.mu.Lock()
	c.broker.clients = append(c.broker.clients, c)
	c.broker.mu.Unlock()
	events.Connection(true, "")
	return c, nil
}

func (c *fakeClient) Publish(topic string, content []byte) error {
	c.broker.mu.Lock()
	down, refused, keeps := c.broker.down, c.broker.refuses != "" && strings.Contains(string(content), c.broker.refuses), c.broker.keeps
	if keeps {
		c.broker.kept = append(c.broker.kept, func() { c.send(topic, content) })
	}
	c.broker.mu.Unlock()
	switch {
	case down:
		return transport.ErrNotConnected
	case refused:
		return errors.New("not to my taste")
	case !keeps:
		c.send(topic, content)
	}
	return nil
}

func (c *fakeClient) send(topic string, content []byte) {
	c.events.Sent(time.Now(), topic, content)
	c.broker.publish(topic, content)
}

func (c *fakeClient) Close(context.Context) {}

func (b *fakeBroker) publish(topic string, content []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, topic+" "+string(content))
	for _, c := range b.clients {
		if slices.ContainsFunc(c.filters, func(f string) bool { return mqtttopic.Match(f, topic) }) {
			buffer := []byte(string(content))
			c.events.Received(time.Now(), topic, buffer)
			clear(buffer) // a client may use its buffer again
		}
	}
}

func (b *fakeBroker) messages() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

func (b *fakeBroker) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// running is a mediator between brokers named by the legs' names.
type running struct {
	*world
	t        *testing.T
	port     int
	stop     func()
	warnings syncbuffer.Buffer
}

func start(t *testing.T, change func(*trafficconfig.Mediator), legs ...trafficconfig.Leg) *running {
	t.Helper()
	r := &running{world: newWorld(), t: t, port: testport.Free(t)}
	config := trafficconfig.Mediator{Instance: "hub/mediator", MetricsPort: r.port, Legs: legs}
	for i := range config.Legs {
		l := &config.Legs[i]
		l.Protocol, l.Broker = "mqtt", l.Name
		if len(l.Topics) == 0 {
			l.Topics = []string{"#"}
		}
	}
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, config, map[string]transport.Open{"mqtt": r.open}, func(text string) { fmt.Fprintln(&r.warnings, text) })
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	r.until("all legs", func() bool {
		for _, l := range legs {
			b := r.broker(l.Name)
			b.mu.Lock()
			connected := len(b.clients)
			b.mu.Unlock()
			if connected == 0 {
				return false
			}
		}
		return true
	})
	return r
}

func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	eventually(r.t, what, ok)
}

// sees waits until a broker has had so many messages, gives it time for more, and compares.
func (r *running) sees(broker string, want ...string) {
	r.t.Helper()
	b := r.broker(broker)
	r.until(fmt.Sprintf("%d messages at %s", len(want), broker), func() bool { return len(b.messages()) >= len(want) })
	time.Sleep(20 * time.Millisecond)
	if got := b.messages(); !slices.Equal(got, want) {
		r.t.Errorf("broker %s had %q; want %q", broker, got, want)
	}
}

// metric as it is served.
func (r *running) metric(name string, labels ...string) float64 {
	r.t.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", r.port))
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "vignette_mediator_"+name+"{") && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(line, l) }) {
			var value float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &value); err != nil {
				r.t.Fatal(err)
			}
			return value
		}
	}
	r.t.Fatalf("no metric %s %q in\n%s", name, labels, text)
	return 0
}

func TestAMessageGoesToAllOtherLegsAndNeverBack(t *testing.T) {
	r := start(t, nil, trafficconfig.Leg{Name: "a"}, trafficconfig.Leg{Name: "b"}, trafficconfig.Leg{Name: "c"})
	content := "\x00\xff bytes\n as they are"
	r.broker("a").publish("/PRT/location", []byte(content))
	r.sees("b", "/PRT/location "+content)
	r.sees("c", "/PRT/location "+content)
	r.sees("a", "/PRT/location "+content)
	for _, leg := range []string{"b", "c"} {
		if got := r.metric("messages_own_total", `leg="`+leg+`"`); got != 1 {
			t.Errorf("leg %s knew %v of its own messages; want 1", leg, got)
		}
	}
	if got := r.metric("messages_received_total", `leg="a"`); got != 1 {
		t.Errorf("leg a received %v; want 1", got)
	}
}

func TestTheSameWordsOfSomebodyElseAreNoEcho(t *testing.T) {
	r := start(t, nil, trafficconfig.Leg{Name: "a"}, trafficconfig.Leg{Name: "b"})
	r.broker("a").publish("t", []byte("on"))
	r.sees("b", "t on")
	r.broker("b").publish("t", []byte("on"))
	r.sees("a", "t on", "t on")
	r.sees("b", "t on", "t on")
}

func TestPrefixesAreTakenAwayAndPutBefore(t *testing.T) {
	r := start(t, nil, trafficconfig.Leg{Name: "a", Prefix: "e7/a/"}, trafficconfig.Leg{Name: "b", Prefix: "b/"}, trafficconfig.Leg{Name: "c", Topics: []string{"+/bft", "x"}})
	r.broker("a").publish("e7/a/nor/bft", []byte("1"))
	r.broker("a").publish("elsewhere", []byte("2"))
	r.broker("a").publish("e7/a", []byte("3")) // e7/a/# covers it
	r.sees("b", "b/nor/bft 1")
	r.sees("c", "nor/bft 1")
	r.broker("c").publish("prt/bft", []byte("4"))
	r.broker("c").publish("prt/other", []byte("5"))
	r.sees("b", "b/nor/bft 1", "b/prt/bft 4")
	r.sees("c", "nor/bft 1", "prt/bft 4", "prt/other 5")
	if got := r.metric("messages_dropped_total", `leg="a"`, droppedOutside); got != 1 {
		t.Errorf("%v messages outside of the prefix; want 1", got)
	}
}

func TestOrderIsKeptAndMessagesWaitForALostConnection(t *testing.T) {
	r := start(t, nil, trafficconfig.Leg{Name: "a"}, trafficconfig.Leg{Name: "b"})
	var want []string
	for i := range 300 {
		if i == 100 {
			r.broker("b").setDown(true)
		}
		r.broker("a").publish("t", fmt.Appendf(nil, "%d", i))
		want = append(want, fmt.Sprintf("t %d", i))
	}
	r.until("a message that waits", func() bool { return r.metric("queue_messages", `leg="b"`) > 0 })
	r.broker("b").setDown(false)
	r.sees("b", want...)
	r.sees("a", want...)
}

func TestAFullQueueDropsTheNewestAndCountsIt(t *testing.T) {
	for name, bound := range map[string]func(*trafficconfig.Mediator){
		"in messages": func(m *trafficconfig.Mediator) { m.QueueMessages = 5 },
		"in bytes":    func(m *trafficconfig.Mediator) { m.QueueBytes = 5 },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, bound, trafficconfig.Leg{Name: "a"}, trafficconfig.Leg{Name: "b"})
			r.broker("b").setDown(true)
			for i := range 9 {
				r.broker("a").publish("t", fmt.Appendf(nil, "%d", i))
			}
			if got := r.metric("messages_dropped_total", `leg="b"`, droppedQueueFull); got != 4 {
				t.Errorf("%v messages dropped; want 4", got)
			}
			r.broker("b").setDown(false)
			r.sees("b", "t 0", "t 1", "t 2", "t 3", "t 4")
		})
	}
}

func TestWhatAClientKeepsIsBoundedWithTheQueue(t *testing.T) {
	r := start(t, func(m *trafficconfig.Mediator) { m.QueueMessages = 5 }, trafficconfig.Leg{Name: "a", QoS: 1}, trafficconfig.Leg{Name: "b", QoS: 1})
	b := r.broker("b")
	b.keeps = true
	for i := range 9 {
		r.broker("a").publish("t", fmt.Appendf(nil, "%d", i))
	}
	if got := r.metric("messages_dropped_total", `leg="b"`, droppedQueueFull); got != 4 {
		t.Errorf("%v messages dropped; want 4", got)
	}
	r.until("the client to have them", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.kept) == 5 })
	b.mu.Lock()
	b.keeps = false
	kept := b.kept
	b.mu.Unlock()
	for _, send := range kept {
		send()
	}
	r.broker("a").publish("t", []byte("9"))
	r.sees("b", "t 0", "t 1", "t 2", "t 3", "t 4", "t 9")
}

func TestWhatAProtocolRefusesIsCountedAndTheRestGoesOn(t *testing.T) {
	r := start(t, nil, trafficconfig.Leg{Name: "a"}, trafficconfig.Leg{Name: "b"})
	r.broker("b").refuses = "bad"
	for _, content := range []string{"1", "bad", "worse than bad", "2"} {
		r.broker("a").publish("t", []byte(content))
	}
	r.sees("b", "t 1", "t 2")
	if got := r.metric("messages_dropped_total", `leg="b"`, droppedRefused); got != 2 {
		t.Errorf("%v messages refused; want 2", got)
	}
	if got := strings.Count(r.warnings.String(), "not to my taste"); got != 1 {
		t.Errorf("the reason is told %d times; want once", got)
	}
	r.broker("b").publish("t", []byte("bad")) // is nobody's echo: it never went out
	r.sees("a", "t 1", "t bad", "t worse than bad", "t 2", "t bad")
}

func TestWhatWaitsGoesOutAtTheEnd(t *testing.T) {
	r := start(t, nil, trafficconfig.Leg{Name: "a"}, trafficconfig.Leg{Name: "b"})
	r.broker("b").setDown(true)
	r.broker("a").publish("t", []byte("1"))
	time.AfterFunc(200*time.Millisecond, func() { r.broker("b").setDown(false) })
	r.stop()
	r.sees("b", "t 1")
}

func TestALegThatIsAwayAtTheEndDoesNotHoldItUp(t *testing.T) {
	r := start(t, nil, trafficconfig.Leg{Name: "a"}, trafficconfig.Leg{Name: "b"})
	r.broker("b").setDown(true)
	r.broker("a").publish("t", []byte("1"))
	begin := time.Now()
	r.stop()
	if took := time.Since(begin); took > 5*closeTimeout { // it would never end by itself
		t.Errorf("the end took %v; want about %v", took, closeTimeout)
	}
}

func TestConfigurationsThatMakeNoSenseAreRefused(t *testing.T) {
	good := func() trafficconfig.Mediator {
		leg := trafficconfig.Leg{Name: "a", Protocol: "mqtt", Broker: "b:1", Topics: []string{"#"}}
		other := leg
		other.Name = "b"
		return trafficconfig.Mediator{Instance: "i", Legs: []trafficconfig.Leg{leg, other}}
	}
	for name, c := range map[string]struct {
		change func(*trafficconfig.Mediator)
		want   string
	}{
		"no instance":              {func(m *trafficconfig.Mediator) { m.Instance = "" }, "instance"},
		"one leg":                  {func(m *trafficconfig.Mediator) { m.Legs = m.Legs[:1] }, "legs are 1"},
		"an unknown protocol":      {func(m *trafficconfig.Mediator) { m.Legs[1].Protocol = "x" }, `legs[1]: protocol is "x"`},
		"a protocol of no broker":  {func(m *trafficconfig.Mediator) { m.Legs[0].Protocol = "mqtt-udp" }, `protocol is "mqtt-udp"`},
		"one that is not in here":  {func(m *trafficconfig.Mediator) { m.Legs[1].Protocol = "zeromq" }, "this program speaks mqtt"},
		"two legs of a name":       {func(m *trafficconfig.Mediator) { m.Legs[1].Name = "a" }, "another leg"},
		"a broker without address": {func(m *trafficconfig.Mediator) { m.Legs[1].Broker = "" }, "broker is empty"},
		"a QoS too high":           {func(m *trafficconfig.Mediator) { m.Legs[1].QoS = 3 }, "qos is 3"},
		"no topics":                {func(m *trafficconfig.Mediator) { m.Legs[1].Topics = nil }, "topics is empty"},
		"a prefix of half a level": {func(m *trafficconfig.Mediator) { m.Legs[1].Prefix = "e7" }, `prefix is "e7"`},
		"a prefix with a wildcard": {func(m *trafficconfig.Mediator) { m.Legs[1].Prefix = "+/" }, `prefix is "+/"`},
	} {
		t.Run(name, func(t *testing.T) {
			config := good()
			c.change(&config)
			err := Run(t.Context(), config, map[string]transport.Open{"mqtt": newWorld().open}, func(string) {})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want an error with %q", err, c.want)
			}
		})
	}
}

func TestAllMetricsAreThereFromTheStart(t *testing.T) {
	m := newMetrics("hub/mediator")
	m.leg("a", newQueue(1, 1))
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, f := range families {
		lines[strings.TrimPrefix(f.GetName(), "vignette_mediator_")] = len(f.GetMetric())
		for _, metric := range f.GetMetric() {
			if !slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "leg" && l.GetValue() == "a" }) {
				t.Errorf("%s lacks the leg's name: %v", f.GetName(), metric)
			}
		}
	}
	want := map[string]int{"messages_received_total": 1, "messages_own_total": 1, "messages_published_total": 1, "messages_sent_total": 1, "connections_total": 1,
		"messages_dropped_total": 6, "connected": 1, "queue_messages": 1, "transit_seconds": 1}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("metrics %v; want %v", lines, want)
	}
}
