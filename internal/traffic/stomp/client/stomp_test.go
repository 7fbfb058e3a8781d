package client

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3/frame"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

func TestDestinationsAreThoseOfRabbitMQ(t *testing.T) {
	for name, c := range map[string]struct{ topic, destination string }{
		"leading slash":     {"/PRT/x", "/topic/.PRT.x"},
		"filter":            {"+/x/#", "/topic/*.x.#"},
		"dot in a level":    {"v1.2/x", "/topic/v1%2F2.x"},
		"empty levels":      {"a//", "/topic/a.."},
		"other characters":  {"é/x y:z\\", "/topic/é.x y:z\\"},
		"percent and alike": {"50%/x", "/topic/50%.x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := destination(c.topic); got != c.destination {
				t.Errorf("destination %s; want %s", got, c.destination)
			}
		})
	}
}

func TestTopicsComeBackFromWhatRabbitMQEscapes(t *testing.T) {
	for destination, want := range map[string]string{
		"/topic/.PRT.x": "/PRT/x", "/topic/%C3%A9.x": "é/x", "/topic/a%252Fb": "a%2Fb", "/topic/v1%2F2.x": "v1.2/x", "/topic/50%.x": "50%/x",
	} {
		if got := topic(destination); got != want {
			t.Errorf("%s is topic %s; want %s", destination, got, want)
		}
	}
}

func TestSetupsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*transport.Setup){
		"at most 255":  func(s *transport.Setup) { s.LargestTopic = strings.Repeat("x", 256) },
		"%2F inside":   func(s *transport.Setup) { s.LargestTopic = "a%2Fb" },
		"up to":        func(s *transport.Setup) { s.LargestBytes = 128<<20 + 1 },
		"topic filter": func(s *transport.Setup) { s.Subscribe = &trafficconfig.Subscribe{Topics: []string{"a#"}} },
		"host:port":    func(s *transport.Setup) { s.Broker = "nor" },
		"0 and 1":      func(s *transport.Setup) { s.Publish = &trafficconfig.Publish{QoS: 2} },
	} {
		s := transport.Setup{Config: trafficconfig.Config{Broker: "nor:61613"}}
		change(&s)
		if _, err := Open(s, transport.Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error with %q", err, want)
		}
	}
}

// FuzzRead: what a broker says, however wrong, ends in a frame or an error.
func FuzzRead(f *testing.F) {
	f.Add([]byte("MESSAGE\ndestination:/topic/.a\nsubscription:0\nmessage-id:1\ncontent-length:1\n\nx\x00\n"))
	f.Add([]byte("\n\nERROR\nmessage:no\n\nwhy\x00"))
	f.Add([]byte("MESSAGE\ncontent-length:999999999999999\n\nx\x00"))
	f.Add([]byte("RECEIPT\nreceipt-id:1\n\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &session{client: client{&transport.Brokered{Outbox: transport.NewOutbox(true, transport.Events{}), Events: transport.Events{Received: func(_ time.Time, _ string, _ []byte) {}}}}, reader: frame.NewReader(bytes.NewReader(data))}
		for {
			f, err := s.read()
			if err != nil {
				return
			}
			if err := s.take(f); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// refuser is a broker that ends its first connection with an ERROR to the subscription.
func refuser(t *testing.T) string {
	t.Helper()
	listener := testport.Listen(t)
	serve := func(conn net.Conn, refuses bool) {
		defer conn.Close()
		reader, writer := frame.NewReader(conn), frame.NewWriter(conn)
		for {
			f, err := reader.Read()
			if err != nil {
				return
			}
			switch {
			case f == nil:
			case f.Command == frame.CONNECT:
				_ = writer.Write(frame.New(frame.CONNECTED, frame.Version, "1.2"))
			case f.Command == frame.SUBSCRIBE && refuses:
				_ = writer.Write(frame.New(frame.ERROR, frame.Message, "access refused"))
				return
			case f.Header.Get(frame.Receipt) != "":
				_ = writer.Write(frame.New(frame.RECEIPT, frame.ReceiptId, f.Header.Get(frame.Receipt)))
			}
		}
	}
	go func() {
		for first := true; ; first = false {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, first)
		}
	}()
	return listener.Addr().String()
}

func TestASubscriptionThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	told := make(chan string, 10)
	setup := transport.Setup{Config: trafficconfig.Config{Broker: refuser(t), Subscribe: &trafficconfig.Subscribe{Topics: []string{"a/#"}}}, Warn: func(string) {}}
	c, err := Open(setup, transport.Events{Connection: func(bool, string) {}, Subscription: func(filter, refusal string) { told <- filter + " " + refusal }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for _, want := range []string{"a/# access refused: ", "a/# "} {
		select {
		case got := <-told:
			if got != want {
				t.Errorf("told %q; want %q", got, want)
			}
		case <-time.After(15 * time.Second):
			t.Fatalf("never received %q", want)
		}
	}
}
