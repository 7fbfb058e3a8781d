package mediator

import (
	"sync"
	"time"
)

// message is a message for a leg.
type message struct {
	// topic in the form of the leg's broker.
	topic   string
	content []byte
	print   fingerprint
	// at is when it was received.
	at time.Time
}

// queue has the messages for one leg, bounded in messages and in bytes of content. Those that the leg's client has taken and not sent
// yet count, as clients keep them without a bound at QoS 1 and 2. Any number of goroutines may put, and one may take.
type queue struct {
	maxMessages, maxBytes int

	mu      sync.Mutex
	changed sync.Cond
	waiting []message
	// unsent counts messages that were taken and not released.
	unsent map[fingerprint]int
	// messages and bytes that wait or are unsent.
	messages, bytes int
	closed          bool
}

func newQueue(messages, bytes int) *queue {
	q := &queue{maxMessages: messages, maxBytes: bytes, unsent: map[fingerprint]int{}}
	q.changed.L = &q.mu
	return q
}

// put appends a message; false if there is no room. An empty queue takes a message of any size.
func (q *queue) put(m message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.messages >= q.maxMessages || q.messages > 0 && q.bytes+len(m.content) > q.maxBytes {
		return false
	}
	q.waiting = append(q.waiting, m)
	q.messages++
	q.bytes += len(m.content)
	q.changed.Signal()
	return true
}

// take returns the first message, which counts until release; false once the queue is closed and empty.
func (q *queue) take() (message, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 {
		if q.closed {
			return message{}, false
		}
		q.changed.Wait()
	}
	m := q.waiting[0]
	q.waiting[0] = message{} // release its content
	q.waiting = q.waiting[1:]
	q.unsent[m.print]++
	return m, true
}

// release makes room for another message, as one was sent or never will be. A repetition of a sent message makes none.
func (q *queue) release(print fingerprint, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unsent[print] == 0 {
		return
	}
	if q.unsent[print]--; q.unsent[print] == 0 {
		delete(q.unsent, print)
	}
	q.messages--
	q.bytes -= bytes
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.messages
}

// close refuses further messages.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
