package gateway

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

// mosquitto runs a broker on loopback and returns its port.
func mosquitto(t testing.TB, lines ...string) int {
	return testtool.Mosquitto(t, append(lines, "allow_anonymous true")...).Port
}

var eventually = testtool.Eventually

// gateway runs a gateway on loopback with changes to its configuration.
func gateway(t testing.TB, broker int, change func(*mqttsn.GatewayConfig)) *Gateway {
	t.Helper()
	config := mqttsn.GatewayConfig{Name: "gw", Listen: "127.0.0.1:0", Broker: fmt.Sprintf("127.0.0.1:%d", broker), RetrySeconds: 1}
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithCancel(t.Context())
	g, err := New(ctx, config, func(text string) { t.Log("gateway: " + text) })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Run() }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the gateway ends with %v", err)
		}
	})
	if config.Mode == mqttsn.Aggregating {
		eventually(t, "the gateway is connected", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.own.conn != nil
		})
	}
	return g
}

// device is a client that does nothing by itself.
type device struct {
	t      testing.TB
	socket *net.UDPConn
	// node is the prefix of packets from behind a forwarder.
	node []byte
}

func newDevice(t testing.TB, g *Gateway) *device {
	t.Helper()
	socket, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(g.Address()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return &device{t: t, socket: socket}
}

func (d *device) send(p wire.Packet) {
	d.t.Helper()
	b, err := wire.Append(nil, p)
	if err == nil && d.node != nil {
		b, err = wire.AppendForward(nil, wire.Forward{Node: d.node, Packet: b})
	}
	if err == nil {
		_, err = d.socket.Write(b)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// next returns the next packet within a time; nil for none.
func (d *device) next(timeout time.Duration) wire.Packet {
	d.t.Helper()
	_ = d.socket.SetReadDeadline(time.Now().Add(timeout))
	buffer := make([]byte, 65536)
	n, err := d.socket.Read(buffer)
	if err != nil {
		return nil
	}
	b := buffer[:n]
	if d.node != nil {
		f, err := wire.ParseForward(b)
		if err != nil || string(f.Node) != string(d.node) {
			d.t.Fatalf("% x is no encapsulation for node % x: %v", b, d.node, err)
		}
		b = f.Packet
	}
	p, err := wire.Parse(b)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// want expects the next packet to be of a type.
func want[P wire.Packet](d *device) P {
	d.t.Helper()
	p := d.next(20 * time.Second)
	got, ok := p.(P)
	if !ok {
		var none P
		d.t.Fatalf("got %T %+v; want a %T", p, p, none)
	}
	return got
}

// silent expects no packet for a time.
func (d *device) silent(timeout time.Duration) {
	d.t.Helper()
	if p := d.next(timeout); p != nil {
		d.t.Fatalf("got %T %+v; want nothing", p, p)
	}
}

// take receives a message, and answers by its QoS.
func (d *device) take(text string) (qos int) {
	d.t.Helper()
	p := want[*wire.Publish](d)
	if string(p.Data) != text {
		d.t.Fatalf("got %q; want %q", p.Data, text)
	}
	switch p.QoS {
	case 1:
		d.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID})
	case 2:
		d.send(&wire.Pubrec{MsgID: p.MsgID})
		want[*wire.Pubrel](d)
		d.send(&wire.Pubcomp{MsgID: p.MsgID})
	}
	return p.QoS
}

func (d *device) connect(id string, clean bool) {
	d.t.Helper()
	d.send(&wire.Connect{CleanSession: clean, KeepAliveSeconds: 60, ClientID: id})
	if ack := want[*wire.Connack](d); ack.Code != wire.Accepted {
		d.t.Fatalf("CONNACK: %s", ack.Code)
	}
}

func (d *device) register(topic string) uint16 {
	d.t.Helper()
	d.send(&wire.Register{MsgID: 1000, Topic: topic})
	ack := want[*wire.Regack](d)
	if ack.Code != wire.Accepted || ack.MsgID != 1000 {
		d.t.Fatalf("REGACK: %+v", ack)
	}
	return ack.TopicID
}

func (d *device) subscribe(filter string, qos int) *wire.Suback {
	d.t.Helper()
	d.send(&wire.Subscribe{QoS: qos, MsgID: 2000, Topic: filter})
	ack := want[*wire.Suback](d)
	if ack.Code != wire.Accepted || ack.MsgID != 2000 {
		d.t.Fatalf("SUBACK: %+v", ack)
	}
	return ack
}

// listener is mosquitto_sub: lines of "topic qos retain payload".
type listener struct {
	t     testing.TB
	lines chan string
}

func listen(t testing.TB, port int, filter string, args ...string) *listener {
	t.Helper()
	// By lines, as it reports a subscription to a pipe only then.
	args = append([]string{"-oL", testtool.Need(t, "mosquitto_sub"), "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-t", filter, "-d", "-F", "> %t %q %r %p"}, args...)
	command := exec.Command("stdbuf", args...)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	l := &listener{t: t, lines: make(chan string, 100000)}
	ready := make(chan struct{})
	go func() {
		defer close(l.lines)
		for r := bufio.NewScanner(out); r.Scan(); {
			if strings.HasPrefix(r.Text(), "Subscribed") {
				close(ready)
			}
			if text, ok := strings.CutPrefix(r.Text(), "> "); ok {
				l.lines <- text
			}
		}
	}()
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		t.Fatal("mosquitto_sub is not subscribed after 10 s")
	}
	return l
}

func (l *listener) want(text string) {
	l.t.Helper()
	select {
	case got := <-l.lines:
		if got != text {
			l.t.Fatalf("mosquitto_sub got %q; want %q", got, text)
		}
	case <-time.After(20 * time.Second):
		l.t.Fatalf("mosquitto_sub got nothing; want %q", text)
	}
}

func (l *listener) silent(timeout time.Duration) {
	l.t.Helper()
	select {
	case got := <-l.lines:
		l.t.Fatalf("mosquitto_sub got %q; want nothing", got)
	case <-time.After(timeout):
	}
}

func publish(t testing.TB, port int, args ...string) {
	t.Helper()
	args = append([]string{"-h", "127.0.0.1", "-p", fmt.Sprint(port)}, args...)
	if out, err := exec.Command(testtool.Need(t, "mosquitto_pub"), args...).CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_pub: %v\n%s", err, out)
	}
}
