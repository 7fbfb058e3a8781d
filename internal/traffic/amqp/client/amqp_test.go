package client

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/amqp/amqptest"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

func TestSetupsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*transport.Setup){
		"at most 255":  func(s *transport.Setup) { s.LargestTopic = strings.Repeat("x", 256) },
		"up to":        func(s *transport.Setup) { s.LargestBytes = 128<<20 + 1 },
		"topic filter": func(s *transport.Setup) { s.Subscribe = &trafficconfig.Subscribe{Topics: []string{"a#"}} },
		"host:port":    func(s *transport.Setup) { s.Broker = "nor" },
		"0 and 1":      func(s *transport.Setup) { s.Publish = &trafficconfig.Publish{QoS: 2} },
	} {
		s := transport.Setup{Config: trafficconfig.Config{Broker: "nor:5672"}}
		change(&s)
		if _, err := Open(s, transport.Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error with %q", err, want)
		}
	}
}

// TestABrokerThatSpeaksSomethingElseIsTriedAgain: the client reports what it says, and can be closed at any moment.
func TestABrokerThatSpeaksSomethingElseIsTriedAgain(t *testing.T) {
	l := testport.Listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail.example.org ESMTP\r\n"))
			_ = c.Close()
		}
	}()
	var mu sync.Mutex
	var told []string
	c, err := Open(transport.Setup{Config: trafficconfig.Config{Broker: l.Addr().String(), Publish: &trafficconfig.Publish{}}}, transport.Events{
		Connection: func(up bool, reason string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, reason)
			if up {
				t.Error("connected")
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		enough := len(told) >= 2
		mu.Unlock()
		if enough {
			break
		}
	}
	begun := time.Now()
	c.Close(t.Context())
	mu.Lock()
	defer mu.Unlock()
	if len(told) < 2 || slices.Contains(told, "") || time.Since(begun) > 5*time.Second {
		t.Errorf("told %q, closed after %v", told, time.Since(begun))
	}
}

func TestWhyAConnectionEndsIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string][]byte{
		"channel to publish on: the broker says: shutdown": amqptest.Method(10, 50, "\x01\x40\x08shutdown\x00\x00\x00\x00"),
		"channel to publish on: the connection was closed": nil,
		"channel to publish on: frame could not be parsed": []byte("no frame"),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			l := testport.Listen(t)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					if _, err := amqptest.Login(c, 60); err == nil {
						_, _ = c.Read(make([]byte, 100)) // channel.open
						_, _ = c.Write(answer)
					}
					_ = c.(*net.TCPConn).CloseWrite()
				}
			}()
			told := make(chan string, 100)
			c, err := Open(transport.Setup{Config: trafficconfig.Config{Broker: l.Addr().String(), Publish: &trafficconfig.Publish{}}}, transport.Events{
				Connection: func(_ bool, reason string) {
					select {
					case told <- reason:
					default:
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(t.Context())
			if got := <-told; got != want {
				t.Errorf("told %q; want %q", got, want)
			}
		})
	}
}
