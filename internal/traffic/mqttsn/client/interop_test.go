package client

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testcapture"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// dissect has tshark read datagrams and tells the names of their packets.
func dissect(t *testing.T, datagrams [][]byte) []string {
	t.Helper()
	var dumps strings.Builder
	for _, d := range datagrams {
		dumps.WriteString(testcapture.HexDump(d))
	}
	read := testcapture.Read(t, testcapture.Of(t, dumps.String(), "-u", "40000,1884"), "-d", "udp.port==1884,mqttsn")
	testcapture.NoneOf(t, read, "alformed", "Unreassembled", "Expert Info", "Unknown")
	var names []string
	for line := range strings.Lines(read) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Message Type: "); ok {
			name, _, _ = strings.Cut(name, " (")
			names = append(names, name)
		}
	}
	return names
}

func TestTsharkDissectsEveryPacket(t *testing.T) {
	all := []wire.Packet{
		&wire.Advertise{GatewayID: 1, DurationSeconds: 900}, &wire.SearchGW{Radius: 1}, &wire.GWInfo{GatewayID: 1}, &wire.GWInfo{GatewayID: 1, Address: []byte{198, 18, 0, 1}},
		&wire.Connect{Will: true, CleanSession: true, KeepAliveSeconds: 60, ClientID: "hq:bft"}, &wire.Connack{}, &wire.WillTopicReq{}, &wire.WillTopic{QoS: 1, Topic: "will"},
		&wire.WillMsgReq{}, &wire.WillMsg{Message: []byte("gone")}, &wire.Register{TopicID: 1, MsgID: 2, Topic: "/PRT/x"}, &wire.Regack{TopicID: 1, MsgID: 2},
		&wire.Publish{TopicID: 1, Data: []byte("x")}, &wire.Publish{QoS: 2, TopicID: 1, MsgID: 3, Data: make([]byte, 900)}, &wire.Publish{QoS: -1, Kind: wire.Predefined, TopicID: 1, Data: []byte("x")},
		&wire.Puback{TopicID: 1, MsgID: 2}, &wire.Pubrec{MsgID: 3}, &wire.Pubrel{MsgID: 3}, &wire.Pubcomp{MsgID: 3}, &wire.Subscribe{QoS: 1, MsgID: 4, Topic: "#"},
		// tshark reads the id as text, and wonders at what is none.
		&wire.Subscribe{Kind: wire.Predefined, MsgID: 4, TopicID: 'a'<<8 | 'b'}, &wire.Suback{QoS: 1, MsgID: 4}, &wire.Unsubscribe{MsgID: 5, Topic: "#"}, &wire.Unsuback{MsgID: 5}, &wire.Pingreq{},
		&wire.Pingreq{ClientID: "hq:bft"}, &wire.Pingresp{}, &wire.Disconnect{}, &wire.Disconnect{Sleep: true, SleepSeconds: 9}, &wire.WillTopicUpd{Topic: "other"},
		&wire.WillTopicResp{}, &wire.WillMsgUpd{Message: []byte("x")}, &wire.WillMsgResp{},
	}
	var datagrams [][]byte
	for _, p := range all {
		b, err := wire.Append(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		datagrams = append(datagrams, b)
	}
	if names := dissect(t, datagrams); len(names) != len(all) {
		t.Errorf("tshark names %d of %d packets: %q", len(names), len(all), names)
	}
}

func TestTsharkDissectsARun(t *testing.T) {
	t.Parallel()
	broker := mosquitto(t)
	gw, _ := gateway(t, mqttsn.GatewayConfig{Broker: broker})
	near, far := newAir(t, gw, 0), newAir(t, gw, 0)
	sub := connect(t, near.address(), "sub", func(s *transport.Setup) {
		subscribing("/PRT/#", 2)(s)
		s.Subscribe.SleepSeconds = 0.1
	})
	pub := connect(t, far.address(), "pub", publishing("/PRT/x", 2))
	eventually(t, "both are connected", func() bool { return sub.isUp() && pub.isUp() })
	for i := range 5 {
		if err := pub.Publish("/PRT/x", bytes.Repeat([]byte{byte('0' + i)}, 200*i)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are received", sub.is(func() bool { return len(sub.received) == 5 }))
	eventually(t, "the last acknowledgements are seen", func() bool { return len(near.seen())+len(far.seen()) >= 40 })
	datagrams := append(near.seen(), far.seen()...)
	names := dissect(t, datagrams)
	if len(names) != len(datagrams) || len(names) < 40 {
		t.Errorf("tshark names %d of %d packets; want all, and 40 at least", len(names), len(datagrams))
	}
	t.Logf("tshark dissects %d packets, none malformed", len(names))
}

// foreign is a program of the PyPI package mqtt-sn-12, which the analysis's development environment has.
func foreign(t *testing.T, gateway, program string, args ...string) *exec.Cmd {
	t.Helper()
	python, err := filepath.Abs("../../../../.venv/bin/python")
	if err == nil {
		err = exec.Command(python, "-c", "import mqttsn12").Run()
	}
	if err != nil {
		t.Skip("the Python package mqtt-sn-12 is not there: hack/python makes the environment that has it")
	}
	host, port, err := net.SplitHostPort(gateway)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-u", "-m", "mqttsn12." + program, "-h", host, "-p", port}, args...)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, python, args...)
	command.Env = append(os.Environ(), "PYTHONUNBUFFERED=1")
	return command
}

func TestAForeignClientSpeaksWithOursThroughTheGateway(t *testing.T) {
	t.Parallel()
	broker := mosquitto(t)
	for _, mode := range []string{mqttsn.Transparent, mqttsn.Aggregating} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			gw, _ := gateway(t, mqttsn.GatewayConfig{Broker: broker, Mode: mode, PredefinedTopics: map[string]string{"7": mode + "/predefined"}})
			sub := connect(t, gw, "sub"+mode, subscribing(mode+"/#", 2))
			eventually(t, "ours is connected", sub.isUp)
			var want []string
			for qos := range 3 {
				text := fmt.Sprintf("theirs %d", qos)
				want = append(want, text)
				if out, err := foreign(t, gw, "mqtt_sn_pub", "-i", mode+fmt.Sprint(qos), "-t", mode+"/long/topic", "-q", fmt.Sprint(qos), "-m", text).CombinedOutput(); err != nil {
					t.Errorf("QoS %d: %v\n%s", qos, err, out)
				}
			}
			want = append(want, "minus one")
			if out, err := foreign(t, gw, "mqtt_sn_pub", "-T", "7", "-q", "-1", "-m", "minus one").CombinedOutput(); err != nil {
				t.Errorf("QoS -1: %v\n%s", err, out)
			}
			eventually(t, "ours has received all of theirs", sub.is(func() bool { return len(sub.received) == len(want) }))
			sub.is(func() bool {
				for _, text := range want {
					if sub.received[text] != 1 {
						t.Errorf("%q came %d times: %v", text, sub.received[text], sub.received)
					}
				}
				return true
			})()
		})
	}
}

// TestAForeignClientHearsOursThroughTheGateway with QoS 0: it never acknowledges messages of QoS 1, though it prints them.
func TestAForeignClientHearsOursThroughTheGateway(t *testing.T) {
	t.Parallel()
	broker := mosquitto(t)
	for _, mode := range []string{mqttsn.Transparent, mqttsn.Aggregating} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			gw, _ := gateway(t, mqttsn.GatewayConfig{Broker: broker, Mode: mode, RetrySeconds: 1}) // it looks for packets ten times a second
			command := foreign(t, gw, "mqtt_sn_sub", "-i", "theirs"+mode, "-t", mode+"/+/x", "-q", "0")
			out := &syncbuffer.Buffer{}
			command.Stdout, command.Stderr = out, out
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
			pub := connect(t, gw, "pub"+mode, publishing(mode+"/a/x", 1))
			eventually(t, "ours is connected", pub.isUp)
			eventually(t, "theirs has subscribed, and hears a message of a topic that it is told", func() bool {
				if err := pub.Publish(mode+"/a/x", []byte("ours")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(300 * time.Millisecond)
				return strings.Contains(out.String(), "ours\n")
			})
		})
	}
}
