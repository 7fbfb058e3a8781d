package client

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// maxInFlight is the most unacknowledged messages of QoS 1 and 2 of MQTT 3.1.1. The standard has no limit, but brokers do:
// Mosquitto disconnects clients with more than 20 of QoS 2. (MQTT 5 has Receive Maximum.)
const maxInFlight = 20

// window queues messages of QoS 1 and 2. It passes one to the library if there is a connection and few enough are in flight.
// It counts in the library's store, as the library's tokens also complete when a connection is lost.
type window struct {
	paho.Store
	mu sync.Mutex
	// changed signals a message, an acknowledgement, or a connection.
	changed  sync.Cond
	inFlight map[string]bool
	// written has the connection on which each message in flight was last written.
	written map[string]*conn
	waiting []held
	ended   bool
}

// held is a published message that waits.
type held struct {
	topic   string
	payload []byte
}

func newWindow() *window {
	w := &window{Store: paho.NewOrderedMemoryStore(), inFlight: map[string]bool{}, written: map[string]*conn{}}
	w.changed.L = &w.mu
	return w
}

// outgoing is the prefix of the library's keys for unacknowledged outgoing messages.
const outgoing = "o."

// Put implements the library's store: a message, or the PUBREL in its place.
func (w *window) Put(key string, packet packets.ControlPacket) {
	w.Store.Put(key, ownCopy(packet))
	if strings.HasPrefix(key, outgoing) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.inFlight[key] = true
	}
}

// Del implements the library's store.
func (w *window) Del(key string) {
	w.Store.Del(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inFlight, key)
	delete(w.written, key)
	w.changed.Broadcast()
}

// Get implements the library's store.
func (w *window) Get(key string) packets.ControlPacket { return ownCopy(w.Store.Get(key)) }

// ownCopy copies a message, as the library changes it while it writes or repeats it.
func ownCopy(packet packets.ControlPacket) packets.ControlPacket {
	if p, ok := packet.(*packets.PublishPacket); ok {
		again := *p
		return &again
	}
	return packet
}

// admit reports whether a message may be written to a connection. A message that waits for the library's writer during a reconnect
// is written twice: as itself and from the store. The broker would take the second for a new message.
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

// released makes the library send PUBREL on the next connection instead of the message, which the broker has.
func (w *window) released(id uint16) {
	packet := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
	packet.MessageID = id
	key := outgoing + strconv.Itoa(int(id))
	if w.Store.Get(key) != nil {
		w.Store.Put(key, packet)
	}
}

// put queues a message.
func (w *window) put(topic string, payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, held{topic, payload})
	w.changed.Broadcast()
}

// wake checks again whether there is a connection.
func (w *window) wake() {
	w.mu.Lock() // run may be between its look and its wait
	defer w.mu.Unlock()
	w.changed.Broadcast()
}

// run passes messages to the library, one after the other, until end.
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

// drain waits until all messages are acknowledged or ctx ends, and stops run.
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
