package mediator

import (
	"sync"
	"time"
)

// message on its way to a leg.
type message struct {
	// topic as the leg's broker has it.
	topic   string
	content []byte
	// at is when it came in.
	at time.Time
}

// queue of what waits for one leg, bounded in messages and in bytes of content. It is for any number of goroutines that put, and one that
// takes.
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

// put a message at the end; false where there is no room. One message has room whatever its size.
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

// first message, which stays in its place until drop; false once the queue is closed and empty.
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

// drop the first message.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= len(q.waiting[0].content)
	q.waiting[0] = message{} // its content is not to be held
	q.waiting = q.waiting[1:]
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// close lets nothing more in.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
