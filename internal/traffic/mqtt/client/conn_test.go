package client

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	packets311 "github.com/eclipse/paho.mqtt.golang/packets"

	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// wire records writes as the kernel would get them.
type wire struct {
	net.Conn
	fail error
	// most bytes of a write before it fails; 0 for all.
	most int
	// held is called in the first write.
	held func()

	mu     sync.Mutex
	writes [][]byte
}

func (w *wire) Write(p []byte) (int, error) {
	if w.fail != nil {
		return 0, w.fail
	}
	if held := w.held; held != nil {
		w.held = nil
		held()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.most > 0 && len(p) > w.most {
		return w.most, errors.New("connection reset by peer")
	}
	w.writes = append(w.writes, bytes.Clone(p))
	return len(p), nil
}

func TestEachPacketIsOneWriteAndPublishesAreTold(t *testing.T) {
	payload := []byte(strings.Repeat("x", 900))
	for name, version := range map[string]struct {
		form  mqttwire.Form
		write func(*conn) error
	}{
		"MQTT 5": {mqttwire.MQTT5, func(c *conn) error {
			_, err := packets.NewControlPacket(packets.DISCONNECT).WriteTo(c)
			p := packets.Publish{Topic: "a/b", QoS: 1, PacketID: 7, Payload: payload, Properties: &packets.Properties{ContentType: "t"}}
			_, err2 := p.WriteTo(c)
			return errors.Join(err, err2)
		}},
		"MQTT 3.1.1": {mqttwire.MQTT311, func(c *conn) error {
			err := packets311.NewControlPacket(packets311.Disconnect).Write(c)
			p := packets311.NewControlPacket(packets311.Publish).(*packets311.PublishPacket)
			p.TopicName, p.Qos, p.MessageID, p.Payload = "a/b", 2, 7, payload
			return errors.Join(err, p.Write(c))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			w := &wire{}
			c := &conn{Conn: w, form: version.form, sent: func(at time.Time, topic string, content []byte) {
				if at.IsZero() || !bytes.Equal(content, payload) {
					t.Errorf("told of %d bytes at %v", len(content), at)
				}
				told = append(told, topic)
			}}
			if err := version.write(c); err != nil {
				t.Fatal(err)
			}
			if len(w.writes) != 2 || !slices.Equal(told, []string{"a/b"}) {
				t.Errorf("%d writes, told of %v; want 2 writes, one message on a/b", len(w.writes), told)
			}
		})
	}
}

func TestAPacketThatCouldNotBeWrittenIsNotSent(t *testing.T) {
	c := &conn{Conn: &wire{fail: errors.New("broken pipe")}, form: mqttwire.MQTT311, sent: func(time.Time, string, []byte) { t.Error("told of a message that was not written") }}
	if _, err := c.Write([]byte("\x30\x08\x00\x03a/bhey")); err == nil {
		t.Error("want the error of the write")
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	good := transport.Setup{Config: trafficconfig.Config{Broker: "nor:1883", Publish: &trafficconfig.Publish{}, Subscribe: &trafficconfig.Subscribe{}}, ClientID: "x"}
	for want, change := range map[string]func(*transport.Setup){
		"host:port":    func(s *transport.Setup) { s.Failover = []string{"prt"} },
		"QoS 3":        func(s *transport.Setup) { s.Publish = &trafficconfig.Publish{QoS: 3} },
		"client id":    func(s *transport.Setup) { s.ClientID = "" },
		"topic filter": func(s *transport.Setup) { s.Subscribe = &trafficconfig.Subscribe{Topics: []string{"a#"}} },
		"MQTT version": func(s *transport.Setup) { s.Version = "3.1" },
		"session":      func(s *transport.Setup) { s.Session = "Lasting" },
		"268435456":    func(s *transport.Setup) { s.LargestTopic, s.LargestBytes = "t", mqttwire.MaxRemaining },
	} {
		s := good
		change(&s)
		if _, err := Open(s, transport.Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error that names %s", err, want)
		}
	}
}

func TestSessionsOutliveConnectionsAsTheSetupSays(t *testing.T) {
	for name, c := range map[string]struct {
		config trafficconfig.Config
		want   bool
	}{
		"auto, QoS 0":           {trafficconfig.Config{Publish: &trafficconfig.Publish{}, Subscribe: &trafficconfig.Subscribe{Topics: []string{"#"}}}, false},
		"auto, publishes QoS 1": {trafficconfig.Config{Publish: &trafficconfig.Publish{QoS: 1}}, true},
		"auto, receives QoS 2":  {trafficconfig.Config{Subscribe: &trafficconfig.Subscribe{Topics: []string{"#"}, QoS: 2}}, true},
		"clean, QoS 2":          {trafficconfig.Config{Session: trafficconfig.SessionClean, Publish: &trafficconfig.Publish{QoS: 2}}, false},
		"persistent, QoS 0":     {trafficconfig.Config{Session: trafficconfig.SessionPersistent, Publish: &trafficconfig.Publish{}}, true},
	} {
		if got := newSetup(transport.Setup{Config: c.config}).keepsSession; got != c.want {
			t.Errorf("%s: kept %v; want %v", name, got, c.want)
		}
	}
}

func TestARepeatedMessageCountsOnceAndAnotherOneWithItsPacketIDCounts(t *testing.T) {
	var once exactlyOnce
	for i, c := range []struct {
		id       uint16
		repeated bool
		content  string
		want     bool
	}{{1, false, "a", true}, {1, true, "a", false}, {1, true, "b", true}, {2, true, "a", true}, {1, false, "b", true}} {
		if got := once.first(c.id, c.repeated, "t", []byte(c.content)); got != c.want {
			t.Errorf("message %d: first is %v; want %v", i, got, c.want)
		}
	}
}

func TestMessagesThatWaitForTheSocketGoOutInOneWriteAndInOrder(t *testing.T) {
	first, hold := make(chan struct{}), make(chan struct{})
	w := &wire{held: func() { close(first); <-hold }}
	var told []string
	c := &conn{Conn: w}
	o := newOutbox(mqttwire.MQTT5, true, transport.Events{Sent: func(_ time.Time, topic string, _ []byte) { told = append(told, topic) }})
	if err := o.put("t", nil); !errors.Is(err, transport.ErrNotConnected) {
		t.Errorf("without a connection: %v", err)
	}
	o.attach(c)
	for _, topic := range []string{"a", "b", "c"} {
		if err := o.put(topic, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if topic == "a" {
			<-first
		}
	}
	close(hold)
	o.drain(t.Context())
	poll(t.Context(), func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.writes) == 2 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if want := [][]byte{[]byte("\x31\x05\x00\x01a\x00x"), []byte("\x31\x05\x00\x01b\x00x\x31\x05\x00\x01c\x00x")}; !slices.EqualFunc(w.writes, want, bytes.Equal) {
		t.Errorf("writes %q; want %q", w.writes, want)
	}
}

func TestOfAWriteThatIsCutShortWholeMessagesAreSent(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := &conn{Conn: &wire{Conn: near, most: 12}}
	var told, dropped []string
	o := newOutbox(mqttwire.MQTT311, false, transport.Events{
		Sent:   func(_ time.Time, topic string, _ []byte) { told = append(told, topic) },
		Unsent: func(_ string, payload []byte) { dropped = append(dropped, string(payload)) },
	})
	o.conn = c                                      // nothing writes yet
	for _, topic := range []string{"a", "b", "c"} { // 6 bytes each
		if err := o.put(topic, []byte(topic)); err != nil {
			t.Fatal(err)
		}
	}
	c.closed = func(c *conn) {
		_ = o.put("d", []byte("d")) // meanwhile
		o.detach(c)
	}
	o.run(c)
	if want := []string{"a", "b"}; !slices.Equal(told, want) {
		t.Errorf("told that %q were sent; want %q", told, want)
	}
	if want := []string{"c", "d"}; !slices.Equal(dropped, want) {
		t.Errorf("told that %q were dropped; want %q", dropped, want)
	}
}

func TestAPublishNeverWaitsAndAFullQueueRefusesIt(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	c := &conn{Conn: &wire{held: func() { <-hold }}}
	o := newOutbox(mqttwire.MQTT311, false, transport.Events{Sent: func(time.Time, string, []byte) {}})
	o.attach(c)
	ended := make(chan error, 1)
	go func() {
		for {
			if err := o.put("t", make([]byte, 100_000)); err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, transport.ErrNoRoom) {
			t.Errorf("%v; want %v", err, transport.ErrNoRoom)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a publish waits for room")
	}
}

func TestALongQueueGoesOutInSeveralWrites(t *testing.T) {
	c := &conn{Conn: &wire{}}
	o := newOutbox(mqttwire.MQTT311, false, transport.Events{Sent: func(time.Time, string, []byte) {}})
	o.conn = c // nothing writes
	for _, bytes := range []int{40_000, 20_000, 10_000, 1_000_000, 1} {
		if err := o.put("t", make([]byte, bytes)); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{2, 1, 1, 1} {
		if got := len(o.take(c)); got != want {
			t.Errorf("write %d has %d messages; want %d", i, got, want)
		}
	}
	if o.bytes != 0 {
		t.Errorf("%d bytes wait in an empty queue", o.bytes)
	}
}
