package client

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
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
	for id := range byte(4) {
		store(w, id+1)
	}
	for _, c := range []*conn{{early: map[string]publishPacket{}}, {early: map[string]publishPacket{}}} {
		var written []byte
		for _, id := range []byte{3, 1, 1, 4, 2, 3} {
			for _, packet := range w.admit(c, uint16(id), packetOf(id)) {
				written = append(written, packet.bytes...)
			}
		}
		if string(written) != "\x01\x02\x03\x04" {
			t.Errorf("written: %v", written)
		}
	}
	w.released(1) // the broker has the message
	c, p := &conn{early: map[string]publishPacket{}}, byte(2)
	if ready := w.admit(c, uint16(p), packetOf(p)); len(ready) != 1 {
		t.Errorf("%d packets after one that the broker has", len(ready))
	}
}

// packetOf is a stand-in for the PUBLISH with a message.
func packetOf(id byte) publishPacket {
	return publishPacket{mqttwire.Publish{Payload: []byte{id}}, []byte{id}}
}

// store stores a message as the library does.
func store(w *window, id byte) {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.MessageID, p.Qos, p.Payload = uint16(id), 1, []byte{id}
	w.Put(outgoing+strconv.Itoa(int(id)), p)
}

// Others would wait for it for ever.
func TestTheFirstMessageOfACleanSessionIsWritten(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.Open()
	store(w, 1)
	w.Reset() // by the library, once it is connected
	if ready := w.admit(&conn{early: map[string]publishPacket{}}, 1, packetOf(1)); len(ready) != 1 {
		t.Errorf("%d packets are written; want the message", len(ready))
	}
}
