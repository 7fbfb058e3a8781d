package mediator

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

const (
	// maxEchoes that a leg waits for; beyond, the oldest is given up.
	maxEchoes = 1 << 16
	// echoTimeout is how long it waits: what has not come back by then was lost on its way.
	echoTimeout = 10 * time.Minute
)

// fingerprint of a topic and a content.
type fingerprint [16]byte

func fingerprintOf(topic string, content []byte) (f fingerprint) {
	h := sha256.New()
	// The length keeps the end of the topic apart from the beginning of the content.
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(topic))))
	h.Write([]byte(topic))
	h.Write(content)
	copy(f[:], h.Sum(nil))
	return f
}

// echoes are the messages that one leg has published and not yet seen again. What comes in and is like one of them is it, once: where
// somebody else publishes the same content to the same topic, as many pass as are not the leg's own, and which of several equal ones
// those are makes no difference.
//
// Two things this cannot know, as protocols have no common place for a mark: an echo that a broker delivers twice (QoS 1 after a lost
// connection, retained messages after one) passes the second time; and for one that gets lost on its way back a later message of
// somebody else with the same topic and content is taken, within echoTimeout.
type echoes struct {
	now func() time.Time

	mu sync.Mutex
	// awaited in the order of their publishing; those that came back are gone from byPrint and leave when they are the oldest.
	awaited []echo
	// byPrint has the numbers of those with the same fingerprint, in order.
	byPrint map[fingerprint][]uint64
	next    uint64
}

type echo struct {
	print  fingerprint
	number uint64
	at     time.Time
}

func newEchoes() *echoes {
	return &echoes{now: time.Now, byPrint: map[fingerprint][]uint64{}}
}

// add a message that is about to be published.
func (e *echoes) add(print fingerprint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expire(maxEchoes - 1)
	e.awaited = append(e.awaited, echo{print, e.next, e.now()})
	e.byPrint[print] = append(e.byPrint[print], e.next)
	e.next++
}

// take tells whether a message that came in is one of the leg's own, and waits for that one no longer.
func (e *echoes) take(print fingerprint) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expire(maxEchoes)
	numbers := e.byPrint[print]
	if len(numbers) == 0 {
		return false
	}
	e.set(print, numbers[1:])
	return true
}

// forget the last message of its kind, which was not published after all.
func (e *echoes) forget(print fingerprint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if numbers := e.byPrint[print]; len(numbers) > 0 {
		e.set(print, numbers[:len(numbers)-1])
	}
}

func (e *echoes) set(print fingerprint, numbers []uint64) {
	if len(numbers) == 0 {
		delete(e.byPrint, print)
		return
	}
	e.byPrint[print] = numbers
}

// expire gives up what is too old, and the oldest until no more than most are left.
func (e *echoes) expire(most int) {
	now := e.now()
	gone := 0
	for _, oldest := range e.awaited {
		_, waits := slices.BinarySearch(e.byPrint[oldest.print], oldest.number)
		if waits && now.Sub(oldest.at) < echoTimeout && len(e.awaited)-gone <= most {
			break
		}
		if waits { // it is the first of its kind, as the oldest
			e.set(oldest.print, e.byPrint[oldest.print][1:])
		}
		gone++
	}
	if e.awaited = e.awaited[gone:]; len(e.awaited) == 0 {
		e.awaited = nil // its memory is not to be held
	}
}
