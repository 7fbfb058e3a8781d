package broker

import (
	"sync"
	"sync/atomic"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

// message is one NotificationMessage, shared by all its receivers.
type message struct {
	topic    wire.TopicExpression
	names    wire.Topic
	producer soap.EPR
	content  []byte
	// holders is the number of queues and tables with the message. held counts its bytes while holders is above 0.
	holders atomic.Int32
	held    *atomic.Int64
}

// overhead is a message's memory beside its content, in bytes.
const overhead = 512

func (m *message) size() int64 {
	return int64(len(m.content)+len(m.topic.Text)+len(m.producer.Address)) + overhead
}

func (m *message) hold() {
	if m.holders.Add(1) == 1 {
		m.held.Add(m.size())
	}
}

func (m *message) release() {
	if m.holders.Add(-1) == 0 {
		m.held.Add(-m.size())
	}
}

// item is a message for a subscription.
type item struct {
	*message
	subscription soap.EPR
}

func (i item) notification() wire.NotificationMessage {
	return wire.NotificationMessage{Subscription: i.subscription, Topic: i.topic, Producer: i.producer, Message: i.content}
}

// queue is a queue of messages, in order.
type queue struct {
	most int
	// wake gets a value after every push and at the end.
	wake bell.Bell

	mu    sync.Mutex
	items []item
	ended bool
}

func newQueue(most int) *queue { return &queue{most: most, wake: bell.New()} }

// push adds a message, or returns false for a full or ended queue.
func (q *queue) push(i item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || len(q.items) >= q.most {
		return false
	}
	i.hold()
	q.items = append(q.items, i)
	q.wake.Ring()
	return true
}

// first returns the first message, which stays in the queue.
func (q *queue) first() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false
	}
	return q.items[0], true
}

// take removes messages: at most so many, and at most so many bytes unless the first exceeds them alone.
func (q *queue) take(most int, bytes int64) []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < min(most, len(q.items)) {
		if bytes -= q.items[n].size(); bytes < 0 && n > 0 {
			break
		}
		n++
	}
	taken := make([]item, n)
	copy(taken, q.items)
	clear(q.items[:n])
	if q.items = q.items[n:]; len(q.items) == 0 {
		q.items = nil // frees the array
	}
	for _, i := range taken {
		i.release()
	}
	return taken
}

// end drops the queued messages and returns their number.
func (q *queue) end() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.items)
	for _, i := range q.items {
		i.release()
	}
	q.items, q.ended = nil, true
	q.wake.Ring()
	return n
}
