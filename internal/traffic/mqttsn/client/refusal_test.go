package client

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// fakeGateway answers packets by others.
func fakeGateway(t *testing.T, answer func(wire.Packet) []wire.Packet) (address string) {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		for buffer := make([]byte, wire.MaxDatagram); ; {
			n, from, err := socket.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			p, err := wire.Parse(buffer[:n])
			if err != nil {
				continue
			}
			for _, a := range answer(p) {
				b, _ := wire.Append(nil, a)
				_, _ = socket.WriteToUDP(b, from)
			}
		}
	}()
	return socket.LocalAddr().String()
}

// refuser is a gateway that refuses the first subscriptions, and then grants them.
func refuser(t *testing.T, codes ...wire.ReturnCode) (address string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var filters []string
	address = fakeGateway(t, func(p wire.Packet) []wire.Packet {
		switch p := p.(type) {
		case *wire.Connect:
			return []wire.Packet{&wire.Connack{}}
		case *wire.Pingreq:
			return []wire.Packet{&wire.Pingresp{}}
		case *wire.Subscribe:
			mu.Lock()
			defer mu.Unlock()
			filters = append(filters, p.Topic)
			suback := &wire.Suback{MsgID: p.MsgID}
			if len(filters) <= len(codes) {
				suback.Code = codes[len(filters)-1]
			}
			return []wire.Packet{suback}
		}
		return nil
	})
	return address, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(filters)
	}
}

func TestASubscriptionThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	for name, sleep := range map[string]float64{"awake": 0, "asleep in between": 30} {
		for _, code := range []wire.ReturnCode{wire.NotSupported, wire.Congestion} {
			t.Run(name+" "+code.String(), func(t *testing.T) {
				t.Parallel()
				gateway, asked := refuser(t, wire.Accepted, code)
				c := connect(t, gateway, "sub", func(s *transport.Setup) {
					s.Subscribe = &trafficconfig.Subscribe{Topics: []string{"a/#", "b/#"}, SleepSeconds: sleep}
				})
				want := []string{"a/# made", "b/# " + code.String(), "b/# made"}
				eventually(t, "it is subscribed", c.is(func() bool { return len(c.answers) == len(want) }))
				if c.is(func() bool { return !slices.Equal(c.answers, want) })() {
					t.Errorf("told %q; want %q", c.answers, want)
				}
				if filters := asked(); !slices.Equal(filters, []string{"a/#", "b/#", "b/#"}) || c.is(func() bool { return c.ups != 1 })() {
					t.Errorf("asked for %q in %d connections; want what was refused again, in one", filters, c.ups)
				}
			})
		}
	}
}

func TestAMessageOfAnotherSessionIsNoRepetition(t *testing.T) {
	for name, session := range map[string]string{"at the next gateway": trafficconfig.SessionPersistent, "in a clean session": trafficconfig.SessionClean,
		"at a gateway that has lost the session": trafficconfig.SessionPersistent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int32
			answer := func(p wire.Packet) []wire.Packet { // each connection ends without a PUBREL
				switch p := p.(type) {
				case *wire.Connect:
					connections.Add(1)
					return []wire.Packet{&wire.Connack{}}
				case *wire.Subscribe:
					id, _ := mqttsn.ShortName("ab")
					message := &wire.Publish{QoS: 2, Kind: wire.Short, TopicID: id, MsgID: 1, Data: fmt.Appendf(nil, "of connection %d", connections.Load())}
					return []wire.Packet{&wire.Suback{MsgID: p.MsgID}, message}
				case *wire.Pubrec:
					return []wire.Packet{&wire.Disconnect{}}
				}
				return nil
			}
			one, two := fakeGateway(t, answer), fakeGateway(t, answer)
			c := connect(t, one, "sub", func(s *transport.Setup) {
				subscribing("#", 2)(s)
				if s.Session = session; name == "at the next gateway" {
					s.Failover = []string{two}
				}
			})
			eventually(t, "messages of three connections", c.is(func() bool { return len(c.received) >= 3 }))
		})
	}
}

func TestDigestsDifferWherePayloadsAreTheirTopics(t *testing.T) {
	if digestOf("a", []byte("a")) == digestOf("b", []byte("b")) || digestOf("a", []byte("b")) == digestOf("b", []byte("a")) {
		t.Error("two messages have one digest")
	}
}
