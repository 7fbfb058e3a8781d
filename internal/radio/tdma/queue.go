package tdma

import "vignette.dev/vignette/internal/radio"

// entry is a frame that waits in a queue, or of which parts are under way.
type entry struct {
	frame *radio.Frame
	to    radio.MAC
	// nem of the addressee, BroadcastNEM for everybody.
	nem   int
	class int
	dscp  uint8
	// length of the frame and bytes of it sent so far; parts is the number of parts sent.
	length, sent, parts int
	// sequence number of the frame among those of its class.
	sequence uint64
	// missedBefore is the number of slots that its node had missed when the frame came.
	missedBefore uint64
	// partAt is when the last part arrived, nanoseconds of the engine's clock.
	partAt int64
	// incomplete reports whether a part was not sent because of radio silence, or did not come from another
	// host.
	incomplete bool
	// outcomes by receiver, of the parts so far. Empty for a frame that is sent whole.
	outcomes []outcome

	previous, next *entry
}

// part of a frame, or a complete frame, that is sent in a slot.
type part struct {
	*entry
	offset, bytes int
	last          bool
}

// classQueue has the entries of one class, in the order in which they came.
type classQueue struct {
	first, last *entry
	count       int
	sequence    uint64
}

func (l *classQueue) push(e *entry) {
	e.sequence = l.sequence
	l.sequence++
	e.previous, e.next = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.count++
}

func (l *classQueue) remove(e *entry) {
	if e.previous == nil {
		l.first = e.next
	} else {
		e.previous.next = e.next
	}
	if e.next == nil {
		l.last = e.previous
	} else {
		e.next.previous = e.previous
	}
	e.previous, e.next = nil, nil
	l.count--
}

// oldest returns the entry that makes room for another: the first of which no part has been sent, or the
// first.
func (l *classQueue) oldest() *entry {
	for e := l.first; e != nil; e = e.next {
		if e.parts == 0 {
			return e
		}
	}
	return l.first
}

// firstFor returns the first entry for a destination, 0 for any.
func (l *classQueue) firstFor(destination int) *entry {
	if destination == 0 {
		return l.first
	}
	for e := l.first; e != nil; e = e.next {
		if e.nem == destination {
			return e
		}
	}
	return nil
}

// queues of a node, one for each class of service.
type queues struct {
	classes [Classes]classQueue
	count   int
}

// push adds an entry, and returns the one that is dropped if its queue is full.
func (q *queues) push(e *entry, depth int) (dropped *entry) {
	l := &q.classes[e.class]
	if l.count >= max(depth, 1) {
		dropped = l.oldest()
		q.remove(dropped)
	}
	l.push(e)
	q.count++
	return dropped
}

func (q *queues) remove(e *entry) {
	q.classes[e.class].remove(e)
	q.count--
}

// head returns the entry that a slot of a class and destination would send first, or nil.
func (q *queues) head(o *Queue, class, destination int) *entry {
	if e := q.classes[class].firstFor(destination); e != nil || o.StrictDequeue {
		return e
	}
	for other := Classes - 1; other >= 0; other-- {
		if e := q.classes[other].firstFor(destination); e != nil {
			return e
		}
	}
	return nil
}

// filling is the contents of a slot.
type filling struct {
	options *Queue
	// room in bytes for frames to the destination, 0 for any.
	room, destination int
	// slotless are the classes for which the node has no slots: their frames go in those of others. longest in bytes is
	// what the largest slot takes, 0 with adaptive rates.
	slotless [Classes]bool
	longest  int
	// mayJoin reports whether a frame may go with those before it; nil for all.
	mayJoin func(e *entry) bool
	// parts that are sent, their bytes, and tooLarge, the frames that fit into no slot.
	parts    []part
	bytes    int
	tooLarge []*entry
}

// fill takes what a slot of a class sends: first frames of its class. Unless strict, others follow, highest
// class first, until the slot is used to the threshold.
func (q *queues) fill(f *filling, class int) {
	o := f.options
	q.fillFrom(f, class, true)
	if o.StrictDequeue {
		return
	}
	threshold := int(float64(f.room) * o.AggregationThreshold)
	for other := Classes - 1; other >= 0; other-- {
		if f.bytes > threshold || f.bytes > 0 && !o.Aggregation {
			return
		}
		if other != class {
			q.fillFrom(f, other, false)
		}
	}
}

// fillFrom fills a slot from one queue. A frame that does not fit is cut if allowed, and waits otherwise. A frame
// too long for an empty slot of its class, or for all slots if its class has none, would wait for ever. So it is
// dropped as too large. Adaptive rates choose the room by the first frame, so there only that one is.
func (q *queues) fillFrom(f *filling, class int, own bool) {
	for taken := 0; ; {
		e := q.classes[class].firstFor(f.destination)
		if e == nil || f.mayJoin != nil && !f.mayJoin(e) {
			return
		}
		left, room := e.length-e.sent, f.room-f.bytes
		switch {
		case left <= room:
			q.remove(e)
			f.add(e, left)
			taken++
			if !f.options.Aggregation {
				return
			}
		case f.options.Fragmentation:
			if room > 0 {
				f.add(e, room)
			}
			return
		case own && taken == 0, f.slotless[class] && left > max(f.room, f.longest) && (f.mayJoin == nil || f.bytes == 0):
			q.remove(e)
			f.tooLarge = append(f.tooLarge, e)
		default:
			return
		}
	}
}

func (f *filling) add(e *entry, bytes int) {
	f.parts = append(f.parts, part{e, e.sent, bytes, e.sent+bytes == e.length})
	f.bytes += bytes
	e.sent += bytes
	e.parts++
}

// reset empties the filling and keeps the memory.
func (f *filling) reset() {
	clear(f.parts)
	clear(f.tooLarge)
	f.parts, f.tooLarge, f.bytes = f.parts[:0], f.tooLarge[:0], 0
}
