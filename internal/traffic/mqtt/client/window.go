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
	inFlight map[string]*flight
	// passed counts packets that the library stored.
	passed  uint64
	waiting []held
	ended   bool
}

// flight is a packet that the broker has not acknowledged.
type flight struct {
	// place is the packet's place in the order of publishing.
	place uint64
	// publish reports whether it is a PUBLISH, which the broker may not have.
	publish bool
	// written is the connection on which it was last written.
	written *conn
}

// held is a published message that waits.
type held struct {
	topic   string
	payload []byte
}

func newWindow() *window {
	w := &window{Store: paho.NewOrderedMemoryStore(), inFlight: map[string]*flight{}}
	w.changed.L = &w.mu
	return w
}

// outgoing is the prefix of the library's keys for unacknowledged outgoing messages.
const outgoing = "o."

// Put implements the library's store: a message, or the PUBREL in its place.
func (w *window) Put(key string, packet packets.ControlPacket) {
	w.Store.Put(key, ownCopy(packet))
	if !strings.HasPrefix(key, outgoing) {
		return
	}
	_, publish := packet.(*packets.PublishPacket)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight[key] == nil {
		w.passed++
		w.inFlight[key] = &flight{place: w.passed}
	}
	w.inFlight[key].publish = publish
}

// Del implements the library's store.
func (w *window) Del(key string) {
	w.Store.Del(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inFlight, key)
	w.changed.Broadcast()
}

// Reset implements the library's store. The library calls it beside the first messages of a clean session. The store has no others.
func (w *window) Reset() {}

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

// admit returns the packets to write to a connection when the library hands it a PUBLISH: none, this one, or also later ones that
// waited for it. Brokers keep the order in which messages come (MQTT 3.1.1, 4.6). On a new connection the library repeats its store
// beside new messages, in any order. A message that waited for its writer comes twice, and a broker would take the second for a new one.
func (w *window) admit(c *conn, id uint16, p publishPacket) []publishPacket {
	key := outgoing + strconv.Itoa(int(id))
	stored, ok := w.Store.Get(key).(*packets.PublishPacket)
	if !ok || !bytes.Equal(stored.Payload, p.Payload) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.inFlight[key]; f == nil || f.written == c {
		return nil
	}
	c.early[key] = p
	var ready []publishPacket
	for next := w.next(c); ; next = w.next(c) {
		early, ok := c.early[next]
		if !ok {
			break
		}
		ready = append(ready, early)
		delete(c.early, next)
		w.inFlight[next].written = c
	}
	if _, waits := c.early[key]; waits {
		c.early[key] = p.clone()
	}
	return ready
}

// next returns the key of the first message that was not written to a connection.
func (w *window) next(c *conn) string {
	var first string
	for key, f := range w.inFlight {
		if f.publish && f.written != c && (first == "" || f.place < w.inFlight[first].place) {
			first = key
		}
	}
	return first
}

// released makes the library send PUBREL on the next connection instead of the message, which the broker has.
func (w *window) released(id uint16) {
	packet := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
	packet.MessageID = id
	key := outgoing + strconv.Itoa(int(id))
	if w.Store.Get(key) != nil {
		w.Put(key, packet)
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
