package core

import "time"

// queueLimit bounds a queue, which a flood of messages to forward could fill.
const queueLimit = 1024

// Queue has messages that wait for their jitter. When one is due all are sent, in as few packets as possible.
// RFC 5148 section 5 allows a message to go earlier than its jitter, and one packet is better for a radio
// than several.
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

// Due returns when the next message is due.
func (q *Queue) Due() (time.Duration, bool) { return q.due, len(q.messages) > 0 }

// FlushDue flushes if a message is due.
func (q *Queue) FlushDue(now time.Duration, limit int, packet func(messages [][]byte)) {
	if due, waiting := q.Due(); waiting && due <= now {
		q.Flush(limit, packet)
	}
}

// Flush passes packets of messages with at most limit bytes; a longer message goes alone.
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
