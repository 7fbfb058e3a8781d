package client

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

const (
	// storeBytes bounds the bodies of all transfers in blocks under way, and what is read of long messages over TCP.
	storeBytes = 64 << 20
	// maxSeen and maxSeenBytes bound what is kept to recognize repeated messages.
	maxSeen      = 16384
	maxSeenBytes = 16 << 20
)

// transferred is a body in blocks: what came of a request so far, or a response of which the client fetches the rest.
type transferred struct {
	key  string
	body []byte
	// reply has code and options of a response.
	reply reply
	used  time.Time
}

// store keeps bodies of transfers in blocks until they are complete, are not used for a lifetime, or others need their room.
type store struct {
	lifetime time.Duration

	mu    sync.Mutex
	byKey map[string]*list.Element
	// order has the least recently used one first.
	order *list.List
	bytes int
}

func newStore(lifetime time.Duration) *store {
	return &store{lifetime: lifetime, byKey: map[string]*list.Element{}, order: list.New()}
}

// get returns the body of a key. It must not be changed.
func (s *store) get(key string) (transferred, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(time.Now())
	element, ok := s.byKey[key]
	if !ok {
		return transferred{}, false
	}
	s.order.MoveToBack(element)
	t := element.Value.(*transferred)
	t.used = time.Now()
	return *t, true
}

// put replaces the body of a key.
func (s *store) put(key string, body []byte, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
	s.byKey[key] = s.order.PushBack(&transferred{key: key, body: body, reply: r, used: time.Now()})
	s.bytes += cost(body)
	s.expire(time.Now())
}

// extend appends a block to a request's body, if it continues there.
func (s *store) extend(key string, offset int, part []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	element, ok := s.byKey[key]
	if !ok {
		return false
	}
	t := element.Value.(*transferred)
	if len(t.body) != offset {
		return false
	}
	s.order.MoveToBack(element)
	before := cost(t.body)
	t.body, t.used = append(t.body, part...), time.Now()
	s.bytes += cost(t.body) - before
	s.expire(time.Now())
	return true
}

// take removes and returns a body.
func (s *store) take(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	element, ok := s.byKey[key]
	if !ok {
		return nil, false
	}
	body := element.Value.(*transferred).body
	s.drop(key)
	return body, true
}

func (s *store) drop(key string) {
	if element, ok := s.byKey[key]; ok {
		s.bytes -= cost(element.Value.(*transferred).body)
		s.order.Remove(element)
		delete(s.byKey, key)
	}
}

func (s *store) expire(now time.Time) {
	for s.order.Len() > 0 {
		oldest := s.order.Front().Value.(*transferred)
		if s.bytes <= storeBytes && now.Sub(oldest.used) <= s.lifetime {
			return
		}
		s.drop(oldest.key)
	}
}

// cost is the memory of a body and its entry.
func cost(body []byte) int { return cap(body) + 1024 }

// budget bounds the bytes of messages that are read from connections.
type budget struct {
	mu   sync.Mutex
	left int
}

func (b *budget) take(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < n {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// messageKey identifies a message of a remote endpoint for its lifetime.
type messageKey struct {
	remote netip.AddrPort
	id     int32
}

// seen is a received message and what was sent back.
type seen struct {
	key    messageKey
	digest uint64
	at     time.Time
	// acknowledged: an empty acknowledgement was sent, as the response takes time.
	acknowledged bool
	// answer is the datagram to repeat for a repeated confirmable message.
	answer []byte
	// finished: no more will be sent at once; answer is empty if nothing is to be.
	finished bool
}

// history recognizes repeated messages (RFC 7252, section 4.5). Its user locks it.
type history struct {
	lifetime time.Duration
	hash     maphash.Seed
	byKey    map[messageKey]*list.Element
	order    *list.List
	bytes    int
}

func newHistory(lifetime time.Duration) *history {
	return &history{lifetime: lifetime, hash: maphash.MakeSeed(), byKey: map[messageKey]*list.Element{}, order: list.New()}
}

// find returns the earlier message that this one repeats. Otherwise it keeps the message and returns its new entry. A message with
// other content is new although its id is in use: its sender counts ids up faster than the standard allows.
func (h *history) find(key messageKey, datagram []byte, at time.Time) (entry *seen, repeated bool) {
	digest := maphash.Bytes(h.hash, datagram)
	h.expire(at)
	if element, ok := h.byKey[key]; ok {
		if old := element.Value.(*seen); old.digest == digest {
			return old, true
		}
		h.remove(element)
	}
	entry = &seen{key: key, digest: digest, at: at}
	h.byKey[key] = h.order.PushBack(entry)
	return entry, false
}

func (h *history) finish(entry *seen, answer []byte) {
	entry.answer, entry.finished = answer, true
	if element, ok := h.byKey[entry.key]; ok && element.Value == entry {
		h.bytes += len(answer)
	}
}

// forget lets a repetition count as new.
func (h *history) forget(entry *seen) {
	if element, ok := h.byKey[entry.key]; ok && element.Value == entry {
		h.remove(element)
	}
}

func (h *history) expire(now time.Time) {
	for h.order.Len() > 0 {
		oldest := h.order.Front()
		if h.order.Len() <= maxSeen && h.bytes <= maxSeenBytes && now.Sub(oldest.Value.(*seen).at) <= h.lifetime {
			return
		}
		h.remove(oldest)
	}
}

func (h *history) remove(element *list.Element) {
	entry := element.Value.(*seen)
	if entry.finished {
		h.bytes -= len(entry.answer)
	}
	h.order.Remove(element)
	delete(h.byKey, entry.key)
}
