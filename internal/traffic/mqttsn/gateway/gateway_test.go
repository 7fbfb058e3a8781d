package gateway

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// inBothModes runs a test on a transparent and an aggregating gateway, side by side.
func inBothModes(t *testing.T, change func(*mqttsn.GatewayConfig), test func(t *testing.T, g *Gateway, broker int)) {
	t.Helper()
	t.Parallel()
	for _, mode := range []string{mqttsn.Transparent, mqttsn.Aggregating} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			broker := mosquitto(t)
			test(t, gateway(t, broker, func(c *mqttsn.GatewayConfig) {
				c.Mode = mode
				if change != nil {
					change(c)
				}
			}), broker)
		})
	}
}

func TestMessagesOfEveryLevelReachTheBrokerOnce(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, g *Gateway, broker int) {
		l := listen(t, broker, "a/#", "-q", "2")
		d := newDevice(t, g)
		d.connect("one", true)
		topic := d.register("a/b")
		d.send(&wire.Publish{TopicID: topic, Data: []byte("zero")})
		l.want("a/b 0 0 zero")
		for range 2 { // the second time is as after a lost PUBACK
			d.send(&wire.Publish{DUP: true, QoS: 1, TopicID: topic, MsgID: 5, Data: []byte("one")})
			if ack := want[*wire.Puback](d); *ack != (wire.Puback{TopicID: topic, MsgID: 5}) {
				t.Errorf("PUBACK %+v", ack)
			}
		}
		l.want("a/b 1 0 one")
		for range 2 {
			d.send(&wire.Publish{QoS: 2, TopicID: topic, MsgID: 6, Data: []byte("two")})
			if rec := want[*wire.Pubrec](d); rec.MsgID != 6 {
				t.Errorf("PUBREC %+v", rec)
			}
		}
		for range 2 {
			d.send(&wire.Pubrel{MsgID: 6})
			if comp := want[*wire.Pubcomp](d); comp.MsgID != 6 {
				t.Errorf("PUBCOMP %+v", comp)
			}
		}
		l.want("a/b 2 0 two")
		d.send(&wire.Publish{QoS: 2, TopicID: topic, MsgID: 6, Data: []byte("same id again")})
		want[*wire.Pubrec](d)
		d.send(&wire.Pubrel{MsgID: 6})
		want[*wire.Pubcomp](d)
		l.want("a/b 2 0 same id again")
		l.silent(100 * time.Millisecond)
	})
}

func TestMessagesWithoutAConnectionHavePredefinedTopicsOrShortNames(t *testing.T) {
	predefined := func(c *mqttsn.GatewayConfig) { c.PredefinedTopics = map[string]string{"7": "/PRT/unit/location"} }
	inBothModes(t, predefined, func(t *testing.T, g *Gateway, broker int) {
		l, d := listen(t, broker, "#"), newDevice(t, g)
		d.send(&wire.Publish{QoS: -1, Kind: wire.Predefined, TopicID: 7, Data: []byte("early")})
		l.want("/PRT/unit/location 0 0 early")
		d.send(&wire.Publish{QoS: -1, Kind: wire.Short, TopicID: 'a'<<8 | 'b', Data: []byte("short")})
		l.want("ab 0 0 short")
		for name, p := range map[string]*wire.Publish{
			"unknown id": {QoS: -1, Kind: wire.Predefined, TopicID: 8}, "registered id": {QoS: -1, TopicID: 7},
			"a wildcard":          {QoS: -1, Kind: wire.Short, TopicID: 'a'<<8 | '#'},
			"a control character": {QoS: -1, Kind: wire.Short, TopicID: 'a'<<8 | 1}, "no UTF-8": {QoS: -1, Kind: wire.Short, TopicID: 0xc328},
		} {
			d.send(p)
			if ack := want[*wire.Puback](d); ack.Code != wire.InvalidTopicID {
				t.Errorf("%s: %+v", name, ack)
			}
		}
		l.silent(50 * time.Millisecond)
	})
}

func TestTopicsOfWildcardsAreRegisteredAtTheClientBeforeTheirMessages(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, g *Gateway, broker int) {
		d := newDevice(t, g)
		d.connect("one", true)
		if ack := d.subscribe("a/+/c", 2); ack.TopicID != 0 || ack.QoS != 2 {
			t.Errorf("SUBACK %+v", ack)
		}
		for qos := range 3 {
			publish(t, broker, "-t", "a/b/c", "-m", fmt.Sprint("m", qos), "-q", fmt.Sprint(qos))
		}
		r := want[*wire.Register](d)
		if r.Topic != "a/b/c" || r.TopicID == 0 {
			t.Errorf("REGISTER %+v", r)
		}
		if again := want[*wire.Register](d); *again != *r { // the first is not answered
			t.Errorf("REGISTER %+v, then %+v", r, again)
		}
		d.send(&wire.Regack{TopicID: r.TopicID, MsgID: r.MsgID})
		for qos := range 3 {
			p := want[*wire.Publish](d)
			if p.QoS != qos || p.TopicID != r.TopicID || string(p.Data) != fmt.Sprint("m", qos) || p.DUP {
				t.Errorf("PUBLISH %+v %s; want QoS %d", p, p.Data, qos)
			}
		}
		p := want[*wire.Publish](d) // neither of the two with QoS above 0 was acknowledged
		other := want[*wire.Publish](d)
		if p.QoS != 1 || other.QoS != 2 || !p.DUP || !other.DUP {
			t.Errorf("repeated %+v and %+v", p, other)
		}
		d.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID})
		d.send(&wire.Pubrec{MsgID: other.MsgID})
		if rel := want[*wire.Pubrel](d); rel.MsgID != other.MsgID {
			t.Errorf("PUBREL %+v", rel)
		}
		d.send(&wire.Pubcomp{MsgID: other.MsgID})
		d.silent(1500 * time.Millisecond) // longer than until a repetition
	})
}

func TestAClientThatForgotATopicIsToldItAgain(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, g *Gateway, broker int) {
		d := newDevice(t, g)
		d.connect("one", true)
		id := d.subscribe("a/b", 1).TopicID
		publish(t, broker, "-t", "a/b", "-m", "x", "-q", "1")
		p := want[*wire.Publish](d)
		d.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID, Code: wire.InvalidTopicID})
		r := want[*wire.Register](d)
		if r.TopicID != id || r.Topic != "a/b" {
			t.Errorf("REGISTER %+v; want id %d", r, id)
		}
		d.send(&wire.Regack{TopicID: r.TopicID, MsgID: r.MsgID})
		if p := want[*wire.Publish](d); string(p.Data) != "x" {
			t.Errorf("PUBLISH %+v", p)
		}
	})
}

func TestASleepingClientGetsItsMessagesWhenItAsks(t *testing.T) {
	few := func(c *mqttsn.GatewayConfig) { c.MaxQueued = 3 }
	inBothModes(t, few, func(t *testing.T, g *Gateway, broker int) {
		d := newDevice(t, g)
		d.connect("one", true)
		d.subscribe("a/b", 1)
		d.send(&wire.Disconnect{Sleep: true, SleepSeconds: 60})
		want[*wire.Disconnect](d)
		publish(t, broker, "-t", "a/b", "-m", "0", "-q", "0") // the oldest of QoS 0 goes where there is no room
		for i := 1; i <= 3; i++ {
			publish(t, broker, "-t", "a/b", "-m", fmt.Sprint(i), "-q", "1")
		}
		d.silent(400 * time.Millisecond)
		d.send(&wire.Pingreq{ClientID: "one"})
		for i := 1; i <= 3; i++ {
			p := want[*wire.Publish](d)
			if string(p.Data) != fmt.Sprint(i) {
				t.Errorf("PUBLISH %+v %s; want %d", p, p.Data, i)
			}
			d.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID})
		}
		want[*wire.Pingresp](d)
		publish(t, broker, "-t", "a/b", "-m", "late")
		d.silent(400 * time.Millisecond)
		d.send(&wire.Connect{KeepAliveSeconds: 60, ClientID: "one"}) // wakes up for good
		want[*wire.Connack](d)
		if p := want[*wire.Publish](d); string(p.Data) != "late" {
			t.Errorf("PUBLISH %+v", p)
		}
	})
}

func TestAClientThatFallsSilentIsLostAndItsWillPublished(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, g *Gateway, broker int) {
		l, d := listen(t, broker, "will/#"), newDevice(t, g)
		d.send(&wire.Connect{Will: true, CleanSession: true, KeepAliveSeconds: 1, ClientID: "one"})
		want[*wire.WillTopicReq](d)
		want[*wire.WillTopicReq](d) // again, as there was no answer
		d.send(&wire.WillTopic{Topic: "will/one"})
		want[*wire.WillMsgReq](d)
		d.send(&wire.WillMsg{Message: []byte("gone")})
		if ack := want[*wire.Connack](d); ack.Code != wire.Accepted {
			t.Fatal(ack)
		}
		from := time.Now()
		want[*wire.Disconnect](d)
		if after := time.Since(from); after < 1400*time.Millisecond || after > 2500*time.Millisecond {
			t.Errorf("lost after %v; want 1.5 times the keep-alive of 1 s", after)
		}
		l.want("will/one 0 0 gone")

		d.send(&wire.Connect{Will: true, CleanSession: true, KeepAliveSeconds: 1, ClientID: "one"})
		want[*wire.WillTopicReq](d)
		d.send(&wire.WillTopic{Topic: "will/one"})
		want[*wire.WillMsgReq](d)
		d.send(&wire.WillMsg{Message: []byte("old")})
		want[*wire.Connack](d)
		d.send(&wire.WillTopicUpd{Topic: "will/other", QoS: 1})
		want[*wire.WillTopicResp](d)
		d.send(&wire.WillMsgUpd{Message: []byte("new")})
		want[*wire.WillMsgResp](d)
		want[*wire.Disconnect](d)
		l.want("will/other 0 0 new")
		l.silent(100 * time.Millisecond)
	})
}

func TestAClientThatSaysGoodbyeHasNoWill(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, g *Gateway, broker int) {
		l, d := listen(t, broker, "will/#"), newDevice(t, g)
		d.send(&wire.Connect{Will: true, CleanSession: true, KeepAliveSeconds: 60, ClientID: "one"})
		want[*wire.WillTopicReq](d)
		d.send(&wire.WillTopic{Topic: "will/one"})
		want[*wire.WillMsgReq](d)
		d.send(&wire.WillMsg{Message: []byte("gone")})
		want[*wire.Connack](d)
		d.send(&wire.Disconnect{})
		want[*wire.Disconnect](d)
		l.silent(200 * time.Millisecond)
		d.send(&wire.Pingreq{})
		want[*wire.Disconnect](d) // it has to connect first
	})
}

func TestAPersistentSessionGetsWhatItMissed(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, g *Gateway, broker int) {
		d := newDevice(t, g)
		d.connect("one", false)
		d.subscribe("a/#", 1)
		d.send(&wire.Disconnect{})
		want[*wire.Disconnect](d)
		time.Sleep(100 * time.Millisecond) // the broker receives it
		publish(t, broker, "-t", "a/b", "-m", "missed", "-q", "1")
		again := newDevice(t, g)
		again.connect("one", false)
		r := want[*wire.Register](again)
		again.send(&wire.Regack{TopicID: r.TopicID, MsgID: r.MsgID})
		p := want[*wire.Publish](again)
		if string(p.Data) != "missed" || r.Topic != "a/b" {
			t.Errorf("%s: %+v", r.Topic, p)
		}
		again.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID})
		again.connect("one", true) // a clean one ends it
		publish(t, broker, "-t", "a/b", "-m", "more", "-q", "1")
		again.silent(300 * time.Millisecond)
	})
}

func TestRetainedMessagesReachEveryNewSubscriptionOnce(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, g *Gateway, broker int) {
		publisher := newDevice(t, g)
		publisher.connect("publisher", true)
		publisher.send(&wire.Publish{QoS: 1, Retain: true, TopicID: publisher.register("a/b"), MsgID: 1, Data: []byte("kept")})
		want[*wire.Puback](publisher)
		var devices []*device
		for _, id := range []string{"one", "two"} {
			d := newDevice(t, g)
			d.connect(id, true)
			d.send(&wire.Subscribe{MsgID: 1, Topic: "a/b"})
			for range 2 { // a broker may send the message before its answer
				switch p := d.next(5 * time.Second).(type) {
				case *wire.Suback:
				case *wire.Publish:
					if !p.Retain || string(p.Data) != "kept" {
						t.Errorf("PUBLISH %+v", p)
					}
				default:
					t.Fatalf("%s got %T", id, p)
				}
			}
			devices = append(devices, d)
		}
		for _, d := range devices {
			d.silent(100 * time.Millisecond)
		}
		d := devices[0]
		d.send(&wire.Unsubscribe{MsgID: 9, Topic: "a/b"})
		want[*wire.Unsuback](d)
		publish(t, broker, "-t", "a/b", "-m", "new")
		if p := want[*wire.Publish](devices[1]); string(p.Data) != "new" || p.Retain {
			t.Errorf("PUBLISH %+v", p)
		}
		d.silent(100 * time.Millisecond)
	})
}

func TestClientsBehindAForwarderAreTheirOwn(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, g *Gateway, _ int) {
		one := newDevice(t, g)
		two := &device{t: t, socket: one.socket, node: []byte{2, 2, 2}}
		one.node = []byte{1}
		one.connect("one", true)
		two.connect("two", true)
		two.subscribe("a/b", 0)
		one.send(&wire.Publish{TopicID: one.register("a/b"), Data: []byte("hello")})
		if p := want[*wire.Publish](two); string(p.Data) != "hello" {
			t.Errorf("PUBLISH %+v", p)
		}
	})
}

func TestMoreClientsThanTheLimitAreRefusedAsCongestion(t *testing.T) {
	two := func(c *mqttsn.GatewayConfig) { c.MaxClients = 2 }
	inBothModes(t, two, func(t *testing.T, g *Gateway, _ int) {
		one, two, three := newDevice(t, g), newDevice(t, g), newDevice(t, g)
		one.connect("one", true)
		two.connect("two", true)
		three.send(&wire.Connect{CleanSession: true, ClientID: "three"})
		if ack := want[*wire.Connack](three); ack.Code != wire.Congestion {
			t.Errorf("CONNACK %s", ack.Code)
		}
		one.send(&wire.Disconnect{})
		want[*wire.Disconnect](one)
		three.connect("three", true)
	})
}

func TestAnUnreachableBrokerIsCongestion(t *testing.T) {
	g := gateway(t, 9, nil) // nobody listens on port 9 of loopback
	d := newDevice(t, g)
	d.send(&wire.Connect{CleanSession: true, ClientID: "one"})
	if ack := want[*wire.Connack](d); ack.Code != wire.Congestion {
		t.Errorf("CONNACK %s", ack.Code)
	}
}

func TestAGatewayTellsOfItself(t *testing.T) {
	g := gateway(t, 9, func(c *mqttsn.GatewayConfig) { c.GatewayID = 42 })
	d := newDevice(t, g)
	d.send(&wire.SearchGW{Radius: 1})
	if info := want[*wire.GWInfo](d); info.GatewayID != 42 || len(info.Address) > 0 {
		t.Errorf("GWINFO %+v", info)
	}
}

// TestAnswersComeFromTheAddressThatWasAsked: routes alone would choose 127.0.0.1.
func TestAnswersComeFromTheAddressThatWasAsked(t *testing.T) {
	g := gateway(t, 9, func(c *mqttsn.GatewayConfig) { c.Listen = ":0" })
	socket, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 7), Port: int(g.Address().Port())})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	d := &device{t: t, socket: socket} // the socket accepts nothing from other addresses
	d.send(&wire.SearchGW{})
	want[*wire.GWInfo](d)
}

func TestTheNetworksBroadcastAddressesAreThoseOfTheirMasks(t *testing.T) {
	for _, to := range broadcasts(1884, "") {
		if !to.Addr().Is4() || to.Addr().IsLoopback() || to.Port() != 1884 {
			t.Errorf("ADVERTISE to %s", to)
		}
	}
}

func TestWhatIsWrongWithAConfigurationIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*mqttsn.GatewayConfig)
		want   string
	}{
		"nothing":        {func(*mqttsn.GatewayConfig) {}, ""},
		"no name":        {func(c *mqttsn.GatewayConfig) { c.Name = "" }, "name is empty"},
		"mode":           {func(c *mqttsn.GatewayConfig) { c.Mode = "Both" }, `mode is "Both"`},
		"broker":         {func(c *mqttsn.GatewayConfig) { c.Broker = "nor" }, `broker "nor"`},
		"listen":         {func(c *mqttsn.GatewayConfig) { c.Listen = "nor:1" }, `listen is "nor:1"`},
		"predefined id":  {func(c *mqttsn.GatewayConfig) { c.PredefinedTopics = map[string]string{"0": "a"} }, `the id "0"`},
		"reserved id":    {func(c *mqttsn.GatewayConfig) { c.PredefinedTopics = map[string]string{"65535": "a"} }, `the id "65535"`},
		"a filter":       {func(c *mqttsn.GatewayConfig) { c.PredefinedTopics = map[string]string{"1": "#"} }, "predefinedTopics[1]"},
		"negative limit": {func(c *mqttsn.GatewayConfig) { c.MaxTopics = -1 }, "maxTopics is -1"},
		"advertise":      {func(c *mqttsn.GatewayConfig) { c.AdvertiseSeconds = 70000 }, "advertiseSeconds is 70000"},
		"retry":          {func(c *mqttsn.GatewayConfig) { c.RetrySeconds = -1 }, "retrySeconds is -1"},
		"metrics":        {func(c *mqttsn.GatewayConfig) { c.MetricsPort = 70000 }, "metricsPort is 70000"},
	} {
		t.Run(name, func(t *testing.T) {
			config := mqttsn.GatewayConfig{Name: "gw", Broker: "nor:1883"}
			c.change(&config)
			err := config.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

func TestConnectionsThatDoNotEndAreClosedTogether(t *testing.T) {
	var open []*brokerConn
	for range 3 {
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		open = append(open, &brokerConn{conn: transport.Watch(near), closed: make(chan struct{})})
	}
	ended := make(chan struct{})
	go func() {
		shutAll(open, 10*time.Millisecond)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("waits for connections that do not end")
	}
	for i, conn := range open {
		if conn.shut() {
			t.Errorf("connection %d was left open", i)
		}
	}
}
