package gateway

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"vignette.dev/vignette/internal/traffic/transport"
)

// startedConn returns a connection to a broker, the broker's end of it, and what the gateway is told, all in virtual time.
func startedConn(t *testing.T) (b *brokerConn, far net.Conn, got chan message, lost chan error) {
	t.Helper()
	near, far := net.Pipe()
	got, lost = make(chan message, 1), make(chan error, 1)
	b = &brokerConn{conn: transport.Watch(near), out: make(chan packets.ControlPacket, brokerBacklog), closed: make(chan struct{}),
		events: brokerEvents{message: func(m message, _ uint16, _ bool) { got <- m }, lost: func(err error) { lost <- err }}}
	b.start()
	return b, far, got, lost
}

func TestAMessageThatTakesMinutesArrivesAndSilenceEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, far, got, lost := startedConn(t)
		pings := make(chan int)
		go func() {
			n, _ := io.Copy(io.Discard, far)
			pings <- int(n) / 2
		}()
		p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
		p.TopicName, p.Payload = "a/b", []byte("over a slow link")
		var text bytes.Buffer
		if err := p.Write(&text); err != nil {
			t.Fatal(err)
		}
		for _, b := range text.Bytes() {
			time.Sleep(40 * time.Second)
			if _, err := far.Write([]byte{b}); err != nil {
				t.Fatalf("the connection ended within the message: %v", err)
			}
		}
		if m := <-got; string(m.payload) != "over a slow link" {
			t.Errorf("received %q", m.payload)
		}
		last := time.Now()
		<-lost
		if after := time.Since(last); after < 2*brokerKeepAlive || after > 3*brokerKeepAlive {
			t.Errorf("it ended after %v of silence; want between %v and %v", after, 2*brokerKeepAlive, 3*brokerKeepAlive)
		}
		if n := <-pings; n < 10 {
			t.Errorf("%d pings came; want one each %v", n, brokerKeepAlive/2)
		}
	})
}

func TestAWriteToABrokerThatTakesNothingEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, far, _, lost := startedConn(t)
		defer far.Close()
		if err := b.publish(message{topic: "a/b", payload: []byte("stuck")}, 0, false); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		<-lost
		if after := time.Since(begin); after < 2*brokerKeepAlive || after > 3*brokerKeepAlive {
			t.Errorf("it ended after %v; want between %v and %v", after, 2*brokerKeepAlive, 3*brokerKeepAlive)
		}
	})
}
