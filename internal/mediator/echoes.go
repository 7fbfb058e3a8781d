package mediator

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"
	"sync"
	"time"
)

const (
	// maxEchoes is the most echoes that a leg waits for. Beyond, the oldest is dropped.
	maxEchoes = 1 << 16
	// echoTimeout is how long it waits for the echo of a message that was sent, which was lost after that.
	echoTimeout = 10 * time.Minute
)

// fingerprint identifies a topic and a content.
type fingerprint [16]byte

func fingerprintOf(topic string, content []byte) (f fingerprint) {
	h := sha256.New()
	// The length separates the topic from the content.
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(topic))))
	h.Write([]byte(topic))
	h.Write(content)
	copy(f[:], h.Sum(nil))
	return f
}

// echoes has the messages that a leg has published and not yet received back. A received message that equals one is taken for it, once. If
// others publish the same content to the same topic, as many pass as others sent, and which of several equal ones
// pass makes no difference.
//
// Two cases cannot be recognised, as protocols have no common field for a mark. An echo that a broker delivers twice (QoS 1 after a lost
// connection, retained messages after one) passes the second time. And if an echo is lost, a later message of
// somebody else with the same topic and content is dropped, within echoTimeout.
type echoes struct {
	now func() time.Time

	mu sync.Mutex
	// awaited, in the order of publishing. Received ones are removed from byPrint at once, and from here when they are the oldest.
	awaited []echo
	// byPrint has the numbers of awaited messages by fingerprint, in order.
	byPrint map[fingerprint][]uint64
	next    uint64
}

type echo struct {
	print  fingerprint
	number uint64
	// sent is when it was last sent; zero while it waits for that, as over an outage.
	sent time.Time
}

func newEchoes() *echoes {
	return &echoes{now: time.Now, byPrint: map[fingerprint][]uint64{}}
}

// add adds a message that is about to be published.
func (e *echoes) add(print fingerprint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expire(maxEchoes - 1)
	e.awaited = append(e.awaited, echo{print: print, number: e.next})
	e.byPrint[print] = append(e.byPrint[print], e.next)
	e.next++
}

// sent begins the time of the oldest equal message that was not sent yet. Without one it is a repetition, which renews the newest's.
func (e *echoes) sent(print fingerprint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	numbers := e.byPrint[print]
	if len(numbers) == 0 {
		return
	}
	of := func(i int) *echo { return &e.awaited[numbers[i]-e.awaited[0].number] } // their numbers have no gaps
	unsent := sort.Search(len(numbers), func(i int) bool { return of(i).sent.IsZero() })
	of(min(unsent, len(numbers)-1)).sent = e.now()
}

// take reports whether a received message is one of the leg's own, and stops waiting for it.
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

// forget removes the last equal message, which was not published.
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

// expire drops too old echoes, and the oldest until at most most are left.
func (e *echoes) expire(most int) {
	now := e.now()
	gone := 0
	for _, oldest := range e.awaited {
		_, waits := slices.BinarySearch(e.byPrint[oldest.print], oldest.number)
		young := oldest.sent.IsZero() || now.Sub(oldest.sent) < echoTimeout
		if waits && young && len(e.awaited)-gone <= most {
			break
		}
		if waits { // the oldest is the first with its fingerprint
			e.set(oldest.print, e.byPrint[oldest.print][1:])
		}
		gone++
	}
	if e.awaited = e.awaited[gone:]; len(e.awaited) == 0 {
		e.awaited = nil // release its memory
	}
}
