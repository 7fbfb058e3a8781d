package mqtt

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// maxInFlight are the messages of QoS 1 and 2 of MQTT 3.1.1 that are not acknowledged, at most. The standard has no limit, but brokers have:
// Mosquitto disconnects clients with more than 20 of QoS 2. (MQTT 5 has Receive Maximum.)
const maxInFlight = 20

// window holds messages of QoS 1 and 2 back, and lets one go to the library when there is a connection and few enough are not acknowledged.
// It counts by watching the library's store, as its tokens also complete when a connection is lost.
type window struct {
	paho.Store
	mu sync.Mutex
	// changed: a message came, was acknowledged, or there is a connection.
	changed  sync.Cond
	inFlight map[string]bool
	// written are the connections on which messages that are in flight were written last.
	written map[string]*conn
	waiting []held
	ended   bool
}

// held is a message that was published.
type held struct {
	topic   string
	payload []byte
}

func newWindow() *window {
	w := &window{Store: paho.NewOrderedMemoryStore(), inFlight: map[string]bool{}, written: map[string]*conn{}}
	w.changed.L = &w.mu
	return w
}

// outgoing begins the library's keys of messages to be sent and not acknowledged.
const outgoing = "o."

// Put is the library's: a message, or the PUBREL in its place.
func (w *window) Put(key string, packet packets.ControlPacket) {
	w.Store.Put(key, ownCopy(packet))
	if strings.HasPrefix(key, outgoing) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.inFlight[key] = true
	}
}

// Del is the library's.
func (w *window) Del(key string) {
	w.Store.Del(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inFlight, key)
	delete(w.written, key)
	w.changed.Broadcast()
}

// Get is the library's.
func (w *window) Get(key string) packets.ControlPacket { return ownCopy(w.Store.Get(key)) }

// ownCopy of a message: the library changes it as it is written, and marks it as a repetition as it is sent again, which may be at once.
func ownCopy(packet packets.ControlPacket) packets.ControlPacket {
	if p, ok := packet.(*packets.PublishPacket); ok {
		again := *p
		return &again
	}
	return packet
}

// admit tells whether a message may be written to a connection. A message that waits for the library's writer while the connection is made anew
// comes twice: as itself and from the store, where it may be done with by then. The broker would take the second for a new one.
func (w *window) admit(c *conn, id uint16, payload []byte) bool {
	key := outgoing + strconv.Itoa(int(id))
	p, ok := w.Store.Get(key).(*packets.PublishPacket)
	if !ok || !bytes.Equal(p.Payload, payload) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written[key] == c {
		return false
	}
	w.written[key] = c
	return true
}

// released has the library send PUBREL on the next connection, not the message again: the broker has it, and forgets its id with PUBREL.
func (w *window) released(id uint16) {
	packet := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
	packet.MessageID = id
	key := outgoing + strconv.Itoa(int(id))
	if w.Store.Get(key) != nil {
		w.Store.Put(key, packet)
	}
}

// put holds a message until it may go.
func (w *window) put(topic string, payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, held{topic, payload})
	w.changed.Broadcast()
}

// wake looks again whether there is a connection.
func (w *window) wake() { w.changed.Broadcast() }

// run hands messages over, one after the other, until end.
func (w *window) run(open func() bool, publish func(held)) {
	for {
		w.mu.Lock()
		for !w.ended && (len(w.waiting) == 0 || len(w.inFlight) >= maxInFlight || !open()) {
			w.changed.Wait()
		}
		if w.ended {
			w.mu.Unlock()
			return
		}
		next := w.waiting[0]
		w.waiting[0] = held{}
		w.waiting = w.waiting[1:]
		w.mu.Unlock()
		publish(next)
	}
}

// drain waits until everything is acknowledged, as long as ctx lasts, and ends.
func (w *window) drain(ctx context.Context) {
	poll(ctx, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.waiting)+len(w.inFlight) == 0
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.changed.Broadcast()
}
