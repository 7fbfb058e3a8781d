package core

import "time"

// queueLimit bounds a queue that a flood of messages to forward fills.
const queueLimit = 1024

// Queue of messages that wait for their jitter. When one is due all go, in as few packets as hold them: RFC 5148 section 5
// lets a message go earlier than its jitter, and a radio takes one packet more readily than several.
type Queue struct {
	messages [][]byte
	due      time.Duration
}

// Add a message; false if the queue is full.
func (q *Queue) Add(due time.Duration, message []byte) bool {
	if len(q.messages) >= queueLimit {
		return false
	}
	if len(q.messages) == 0 || due < q.due {
		q.due = due
	}
	q.messages = append(q.messages, message)
	return true
}

// Due is when the next message is.
func (q *Queue) Due() (time.Duration, bool) { return q.due, len(q.messages) > 0 }

// FlushDue does what Flush does if a message is due.
func (q *Queue) FlushDue(now time.Duration, limit int, packet func(messages [][]byte)) {
	if due, waiting := q.Due(); waiting && due <= now {
		q.Flush(limit, packet)
	}
}

// Flush passes on packets of messages that are together at most limit bytes long; one longer than that goes alone.
func (q *Queue) Flush(limit int, packet func(messages [][]byte)) {
	for start := 0; start < len(q.messages); {
		end, size := start+1, len(q.messages[start])
		for end < len(q.messages) && size+len(q.messages[end]) <= limit {
			size += len(q.messages[end])
			end++
		}
		packet(q.messages[start:end])
		start = end
	}
	q.Clear()
}

// Clear drops all messages and returns their number.
func (q *Queue) Clear() int {
	n := len(q.messages)
	clear(q.messages)
	q.messages = q.messages[:0]
	return n
}
