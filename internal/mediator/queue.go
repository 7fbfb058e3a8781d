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
	// at is when it was received.
	at time.Time
}

// queue has the messages for one leg, bounded in messages and in bytes of content. Any number of goroutines may put, and one may
// take.
type queue struct {
	maxMessages, maxBytes int

	mu      sync.Mutex
	changed sync.Cond
	waiting []message
	bytes   int
	closed  bool
}

func newQueue(messages, bytes int) *queue {
	q := &queue{maxMessages: messages, maxBytes: bytes}
	q.changed.L = &q.mu
	return q
}

// put appends a message; false if there is no room. An empty queue takes a message of any size.
func (q *queue) put(m message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) >= q.maxMessages || len(q.waiting) > 0 && q.bytes+len(m.content) > q.maxBytes {
		return false
	}
	q.waiting = append(q.waiting, m)
	q.bytes += len(m.content)
	q.changed.Signal()
	return true
}

// first returns the first message, which stays until drop; false once the queue is closed and empty.
func (q *queue) first() (message, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 {
		if q.closed {
			return message{}, false
		}
		q.changed.Wait()
	}
	return q.waiting[0], true
}

// drop removes the first message.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= len(q.waiting[0].content)
	q.waiting[0] = message{} // release its content
	q.waiting = q.waiting[1:]
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// close refuses further messages.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
