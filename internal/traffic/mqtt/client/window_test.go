package client

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

func TestAMessageGoesOutWhenTheConnectionComesWhileTheWindowLooksForIt(t *testing.T) {
	t.Parallel()
	w := newWindow()
	over, end := context.WithCancel(context.Background())
	end()
	defer w.drain(over)
	connected, published := false, make(chan held, 1)
	open := func() bool {
		if connected {
			return true
		}
		connected = true
		go w.wake()
		time.Sleep(50 * time.Millisecond) // wake comes before the window begins to wait
		return false
	}
	w.put("a", nil)
	go w.run(open, func(m held) { published <- m })
	select {
	case <-published:
	case <-time.After(2 * time.Second):
		t.Error("the message waits although there is a connection")
	}
}

func TestAConnectionCarriesMessagesInTheOrderInWhichTheyWerePublished(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.Open()
	for id := range uint16(4) {
		p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
		p.MessageID, p.Qos, p.Payload = id+1, 1, []byte{byte(id + 1)}
		w.Put(outgoing+strconv.Itoa(int(id+1)), p)
	}
	for _, c := range []*conn{{early: map[string][]byte{}}, {early: map[string][]byte{}}} {
		var written []byte
		for _, id := range []byte{3, 1, 1, 4, 2, 3} {
			for _, packet := range w.admit(c, uint16(id), []byte{id}, []byte{id}) {
				written = append(written, packet...)
			}
		}
		if string(written) != "\x01\x02\x03\x04" {
			t.Errorf("written: %v", written)
		}
	}
	w.released(1) // the broker has the message
	c, p := &conn{early: map[string][]byte{}}, byte(2)
	if ready := w.admit(c, uint16(p), []byte{p}, []byte{p}); len(ready) != 1 {
		t.Errorf("%d packets after one that the broker has", len(ready))
	}
}
