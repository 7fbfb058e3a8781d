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
	// length of the frame, and sent of it so far, in bytes; parts it was sent in so far.
	length, sent, parts int
	// sequence number of the frame among those of its class.
	sequence uint64
	// missedBefore is how many slots its node had missed when the frame came.
	missedBefore uint64
	// partAt is when the last part arrived, nanoseconds of CLOCK_MONOTONIC.
	partAt int64
	// incomplete tells that a part was not sent, as its radio kept silence, or did not come from another host.
	incomplete bool
	// fates by receiver: what each made of the parts so far. Empty for a frame that is sent whole.
	fates []fate

	previous, next *entry
}

// part of a frame, or a whole one, that is sent in a slot.
type part struct {
	*entry
	offset, bytes int
	last          bool
}

// line of the entries of one class, in the order they came.
type line struct {
	first, last *entry
	count       int
	sequence    uint64
}

func (l *line) push(e *entry) {
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

func (l *line) remove(e *entry) {
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

// oldest is the entry that makes room for another: the first of which no part has been sent, or else the first.
func (l *line) oldest() *entry {
	for e := l.first; e != nil; e = e.next {
		if e.parts == 0 {
			return e
		}
	}
	return l.first
}

// to is the first entry for a destination, 0 for any.
func (l *line) to(destination int) *entry {
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
	lines [Classes]line
	count int
}

// push takes an entry, and gives back the one that has to go where its queue is full.
func (q *queues) push(e *entry, depth int) (dropped *entry) {
	l := &q.lines[e.class]
	if l.count >= max(depth, 1) {
		dropped = l.oldest()
		q.remove(dropped)
	}
	l.push(e)
	q.count++
	return dropped
}

func (q *queues) remove(e *entry) {
	q.lines[e.class].remove(e)
	q.count--
}

// head is the entry that a slot of a class and destination would send first, or nil.
func (q *queues) head(o *Queue, class, destination int) *entry {
	if e := q.lines[class].to(destination); e != nil || o.StrictDequeue {
		return e
	}
	for other := Classes - 1; other >= 0; other-- {
		if e := q.lines[other].to(destination); e != nil {
			return e
		}
	}
	return nil
}

// filling of a slot.
type filling struct {
	options *Queue
	// room in bytes, for frames to the destination, 0 for any.
	room, destination int
	// may tells whether a frame may go with those before it; nil for all.
	may func(e *entry) bool
	// parts that are sent, of so many bytes in all, and tooLarge, the frames that no slot holds.
	parts    []part
	bytes    int
	tooLarge []*entry
}

// fill takes what a slot of a class sends: of its own class first, and then, unless strict, of the others from the highest
// on until the slot is used to the threshold.
func (q *queues) fill(f *filling, class int) {
	o := f.options
	q.take(f, class, true)
	if o.StrictDequeue {
		return
	}
	threshold := int(float64(f.room) * o.AggregationThreshold)
	for other := Classes - 1; other >= 0; other-- {
		if f.bytes > threshold || f.bytes > 0 && !o.Aggregation {
			return
		}
		if other != class {
			q.take(f, other, false)
		}
	}
}

// take fills a slot from one queue. A frame that does not fit is cut, or else stays, but for the first of the slot's own
// class: that one fits no slot and goes.
func (q *queues) take(f *filling, class int, own bool) {
	for taken := 0; ; {
		e := q.lines[class].to(f.destination)
		if e == nil || f.may != nil && !f.may(e) {
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
		case own && taken == 0:
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

// reset forgets what was filled in, and keeps the memory.
func (f *filling) reset() {
	clear(f.parts)
	clear(f.tooLarge)
	f.parts, f.tooLarge, f.bytes = f.parts[:0], f.tooLarge[:0], 0
}
