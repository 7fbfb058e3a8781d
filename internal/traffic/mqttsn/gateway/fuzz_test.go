package gateway

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// gatewayWithSilentBroker returns an aggregating gateway without a network, whose broker accepts everything and answers nothing.
func gatewayWithSilentBroker() (g *Gateway, taken *brokerConn) {
	config := mqttsn.GatewayConfig{Name: "gw", Broker: "127.0.0.1:9", Mode: mqttsn.Aggregating, MaxClients: 3, MaxTopics: 5, MaxQueued: 4, Window: 2, Retries: 1,
		PredefinedTopics: map[string]string{"1": "one"}}.WithDefaults()
	predefined, _ := config.TopicsByID()
	g = &Gateway{config: config, predefined: predefined, metrics: newMetrics("gw"), warn: func(string) {}, out: make(chan datagram, sendBacklog), ctx: context.Background(),
		now: time.Now, peers: map[peer]*session{}, clients: map[string]*session{}}
	g.own = newAggregate(g)
	g.own.once.Do(func() { close(g.own.ended) })
	near, _ := net.Pipe()
	taken = &brokerConn{conn: transport.Watch(near), out: make(chan packets.ControlPacket, 8), closed: make(chan struct{})}
	g.own.conn, g.own.early = taken, nil
	return g, taken
}

// FuzzSessions gives the gateway datagrams of two clients and a forwarder's node, answers of the broker, and passing time.
func FuzzSessions(f *testing.F) {
	script := func(packets ...wire.Packet) (all []byte) {
		for _, p := range packets {
			b, err := wire.Append(nil, p)
			if err != nil {
				f.Fatal(err)
			}
			all = append(append(all, 0, byte(len(b))), b...)
		}
		return all
	}
	connect := &wire.Connect{KeepAliveSeconds: 1, ClientID: "a"}
	f.Add(script(connect, &wire.Register{MsgID: 1, Topic: "a/b"}, &wire.Publish{QoS: 2, TopicID: 1, MsgID: 2}, &wire.Pubrel{MsgID: 2}))
	f.Add(append(script(connect, &wire.Subscribe{QoS: 2, MsgID: 1, Topic: "#"}, &wire.Disconnect{Sleep: true, SleepSeconds: 1}, &wire.Pingreq{ClientID: "a"}), 4, 1, 5, 2, 6, 3))
	f.Add(script(&wire.Connect{Will: true, ClientID: "a"}, &wire.WillTopic{Topic: "w"}, &wire.WillMsg{}, &wire.WillMsgUpd{}, &wire.Disconnect{}, connect))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, taken := gatewayWithSilentBroker()
		defer taken.conn.Close()
		now := time.Now()
		g.now = func() time.Time { return now }
		for len(b) >= 2 {
			what, n := b[0], int(b[1])
			b = b[2:]
			switch {
			case what < 4:
				n = min(n, len(b))
				g.datagram(peer{address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 1000+uint16(what))}, b[:n:n])
				b = b[n:]
			case what < 8:
				g.mu.Lock()
				if g.own.message(message{topic: "a/b", payload: []byte("x"), qos: n % 3, retain: n > 128}, uint16(n)); n%2 == 0 {
					delete(g.own.incoming, uint16(n))
				}
				g.mu.Unlock()
			case what < 16:
				g.mu.Lock()
				g.own.answered(what, uint16(n), what&2)
				g.mu.Unlock()
			default:
				now = now.Add(time.Duration(n) * time.Second)
				g.mu.Lock()
				g.check(now)
				g.mu.Unlock()
			}
			for len(taken.out) > 0 && n%3 > 0 { // at times the broker accepts nothing
				<-taken.out
			}
			for len(g.out) > 0 {
				<-g.out
			}
		}
		topics, queued, bytes := 0, 0, 0
		for _, s := range g.clients {
			topics += len(s.topics.byName)
			for _, d := range s.unsent() {
				queued, bytes = queued+1, bytes+len(d.payload)
			}
			if s.length != len(s.unsent()) || s.length > g.config.MaxQueued+g.config.Window {
				t.Errorf("%d messages wait, %d are counted", len(s.unsent()), s.length)
			}
		}
		if len(g.clients) > g.config.MaxClients || len(g.peers) > len(g.clients) || topics != g.topics || queued != g.queued || bytes != g.queuedBytes {
			t.Errorf("%d clients, %d addresses, %d topics of %d, %d messages of %d, %d bytes of %d", len(g.clients), len(g.peers), g.topics, topics, g.queued, queued, g.queuedBytes, bytes)
		}
	})
}
