package client

import (
	"net"
	"slices"
	"sync"
	"testing"

	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// refuser is a gateway that refuses the first subscriptions, and then grants them.
func refuser(t *testing.T, codes ...wire.ReturnCode) (address string, asked func() []string) {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	var mu sync.Mutex
	var filters []string
	answer := func(p wire.Packet) wire.Packet {
		switch p := p.(type) {
		case *wire.Connect:
			return &wire.Connack{}
		case *wire.Pingreq:
			return &wire.Pingresp{}
		case *wire.Subscribe:
			mu.Lock()
			defer mu.Unlock()
			filters = append(filters, p.Topic)
			suback := &wire.Suback{MsgID: p.MsgID}
			if len(filters) <= len(codes) {
				suback.Code = codes[len(filters)-1]
			}
			return suback
		}
		return nil
	}
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
			if a := answer(p); a != nil {
				b, _ := wire.Append(nil, a)
				_, _ = socket.WriteToUDP(b, from)
			}
		}
	}()
	return socket.LocalAddr().String(), func() []string {
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
