package client

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
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
