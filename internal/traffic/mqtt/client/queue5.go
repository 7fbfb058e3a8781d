package client

import (
	"bytes"
	"container/list"
	"io"
	"sync"

	"github.com/eclipse/paho.golang/autopaho/queue"
)

// queue5 has encoded messages of QoS 1 and 2 that the session does not have. It implements the library's queue.Queue. The
// library's own has no way to put messages before others.
type queue5 struct {
	// dropped reports whether a message is dropped instead of being sent.
	dropped  func(message []byte) bool
	mu       sync.Mutex
	messages list.List
	// arrived closes with the next message; nil if nobody waits.
	arrived chan struct{}
}

// Enqueue implements queue.Queue.
func (q *queue5) Enqueue(r io.Reader) error {
	message, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages.PushBack(message)
	q.wake()
	return nil
}

// putBack puts messages before those that wait, in their order.
func (q *queue5) putBack(messages [][]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := list.New()
	for _, message := range messages {
		before.PushBack(message)
	}
	q.messages.PushFrontList(before)
	q.wake()
}

func (q *queue5) wake() {
	if q.arrived != nil && q.messages.Len() > 0 {
		close(q.arrived)
		q.arrived = nil
	}
}

// Wait implements queue.Queue: the channel closes once there is a message.
func (q *queue5) Wait() chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.arrived == nil {
		q.arrived = make(chan struct{})
	}
	arrived := q.arrived
	q.wake()
	return arrived
}

func (q *queue5) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.messages.Len() == 0
}

// Peek implements queue.Queue.
func (q *queue5) Peek() (queue.Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for first := q.messages.Front(); first != nil; first = q.messages.Front() {
		if !q.dropped(first.Value.([]byte)) {
			return queued{q, first}, nil
		}
		q.messages.Remove(first)
	}
	return nil, queue.ErrEmpty
}

// queued is a message in the queue. Others may be put before it while the library sends it.
type queued struct {
	*queue5
	element *list.Element
}

// Reader implements queue.Entry.
func (m queued) Reader() (io.Reader, error) { return bytes.NewReader(m.element.Value.([]byte)), nil }

// Leave implements queue.Entry.
func (m queued) Leave() error { return nil }

// Remove implements queue.Entry.
func (m queued) Remove() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages.Remove(m.element)
	return nil
}

// Quarantine implements queue.Entry.
func (m queued) Quarantine() error { return m.Remove() }
