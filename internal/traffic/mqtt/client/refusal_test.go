package client

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"vignette.dev/vignette/internal/testport"
	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// refuser is a broker that answers to CONNECT and SUBSCRIBE alone, and refuses each filter for a number of times.
type refuser struct {
	net.Listener
	version  string
	mu       sync.Mutex
	refusals map[string]int
	asked    []string
	// keepsSession: it has the session of each connection but the first.
	keepsSession bool
	conns        []net.Conn
}

func startRefuser(t *testing.T, version string, refusals map[string]int) *refuser {
	t.Helper()
	listener := testport.Listen(t)
	r := &refuser{Listener: listener, version: version, refusals: refusals}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(conn)
		}
	}()
	return r
}

func (r *refuser) serve(conn net.Conn) {
	defer conn.Close()
	for reader := bufio.NewReader(conn); ; {
		kind, body, err := readPacket(reader)
		if err != nil {
			return
		}
		none := []byte{} // properties
		if r.version == Version5 {
			none = []byte{0}
		}
		switch kind {
		case 1: // CONNECT
			_, _ = conn.Write(append([]byte{0x20, byte(2 + len(none)), r.sessionPresent(conn), 0}, none...))
		case 8: // SUBSCRIBE
			codes := r.answer(body[2+len(none):])
			_, _ = conn.Write(slices.Concat([]byte{0x90, byte(2 + len(none) + len(codes))}, body[:2], none, codes))
		}
	}
}

// sessionPresent is the flag in the answer to a connection.
func (r *refuser) sessionPresent(conn net.Conn) (flag byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keepsSession && len(r.conns) > 0 {
		flag = 1
	}
	r.conns = append(r.conns, conn)
	return flag
}

func readPacket(reader *bufio.Reader) (kind byte, body []byte, err error) {
	head := make([]byte, 0, 5)
	for {
		b, err := reader.ReadByte()
		if err != nil {
			return 0, nil, err
		}
		head = append(head, b)
		if size, err := mqttwire.PacketSize(head); err == nil {
			body = make([]byte, size-len(head))
			_, err = io.ReadFull(reader, body)
			return head[0] >> 4, body, err
		}
	}
}

// answer to the filters of a SUBSCRIBE.
func (r *refuser) answer(filters []byte) (codes []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(filters) > 0 {
		end := 2 + int(binary.BigEndian.Uint16(filters))
		filter := string(filters[2:end])
		filters = filters[end+1:]
		r.asked = append(r.asked, filter)
		code := byte(0)
		if r.refusals[filter] > 0 {
			r.refusals[filter]--
			code = map[string]byte{Version311: 0x80, Version5: 0x87}[r.version]
		}
		codes = append(codes, code)
	}
	return codes
}

func TestASubscriptionThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	for _, version := range versions {
		for name, filters := range map[string][]string{"one filter": {"/PRT/#"}, "two filters": {"/PRT/#", "/NOR/#"}} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				broker := startRefuser(t, version, map[string]int{"/PRT/#": 1})
				c := open(t, transport.Setup{Config: trafficconfig.Config{Version: version, Broker: broker.Addr().String(), Subscribe: &trafficconfig.Subscribe{Topics: filters}}})
				waitFor(t, "the subscription", func() bool { return slices.Contains(c.told(), "/PRT/# made") })
				refusal := map[string]string{Version311: "/PRT/# return code 0x80", Version5: "/PRT/# Not authorized"}[version]
				if told := slices.DeleteFunc(c.told(), func(s string) bool { return strings.HasPrefix(s, "/NOR/#") }); !slices.Equal(told, []string{refusal, "/PRT/# made"}) {
					t.Errorf("told %q; want %q and that it is made then", told, refusal)
				}
				broker.mu.Lock()
				defer broker.mu.Unlock()
				if asked := slices.Sorted(slices.Values(broker.asked)); !slices.Equal(asked, slices.Sorted(slices.Values(append(filters, "/PRT/#")))) {
					t.Errorf("asked for %q; want what was refused again, and nothing else", asked)
				}
			})
		}
	}
}

func TestABrokerThatHasTheSessionIsNotAskedForItsSubscriptionsAgain(t *testing.T) {
	for _, version := range versions {
		for kept, want := range map[bool]int{true: 1, false: 2} {
			t.Run(fmt.Sprintf("%s kept %t", version, kept), func(t *testing.T) {
				t.Parallel()
				broker := startRefuser(t, version, nil)
				broker.keepsSession = kept
				c := open(t, transport.Setup{Config: trafficconfig.Config{Version: version, Broker: broker.Addr().String(), Session: trafficconfig.SessionPersistent,
					Subscribe: &trafficconfig.Subscribe{Topics: []string{"/PRT/#"}, QoS: 1}}})
				waitFor(t, "the subscription", func() bool { return slices.Contains(c.told(), "/PRT/# made") })
				count := func() (connections, asked int) {
					broker.mu.Lock()
					defer broker.mu.Unlock()
					return len(broker.conns), len(broker.asked)
				}
				broker.mu.Lock()
				broker.conns[0].Close()
				broker.mu.Unlock()
				waitFor(t, "the next connection", func() bool {
					connections, asked := count()
					return connections == 2 && asked >= want
				})
				time.Sleep(200 * time.Millisecond) // for a request that should not come
				if _, asked := count(); asked != want {
					t.Errorf("subscribes %d times; want %d", asked, want)
				}
			})
		}
	}
}

// silentBroker is connected and answers nothing.
type silentBroker struct{ paho.Client }

func (silentBroker) IsConnectionOpen() bool { return true }
func (silentBroker) SubscribeMultiple(map[string]byte, paho.MessageHandler) paho.Token {
	return &paho.SubscribeToken{}
}

func TestASubscriptionThatIsNotAnsweredIsARefusal(t *testing.T) {
	var told []string
	events := transport.Events{Subscription: func(filter, refusal string) { told = append(told, filter+" "+refusal) }}
	set := transport.Setup{Warn: func(string) {}, Config: trafficconfig.Config{Subscribe: &trafficconfig.Subscribe{Topics: []string{"/PRT/#"}}}}
	c := &client311{setup: setup{Setup: set}, client: silentBroker{}, patience: 10 * time.Millisecond, subscriptions: transport.NewSubscriptions(set, events)}
	done := make(chan bool, 1)
	go func() { done <- c.subscribe(0, []string{"/PRT/#"}) }()
	select {
	case connected := <-done:
		if !connected || !slices.Equal(told, []string{"/PRT/# no answer within 10ms"}) {
			t.Errorf("connected %t, told %q; want a refusal, and to be asked again", connected, told)
		}
	case <-time.After(10 * time.Second):
		t.Error("the client waits on")
	}
}
