// Package live counts messages and deliveries while a run goes on. It reads message logs as they reach the archive, in any
// order, by the plan's table of streams and the rules of the analysis (arrivals.py in analysis/vignette_analysis/data).
// With all logs its shares equal those of the analysis; quantiles of delays differ by at most 0.25 %.
package live

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
)

// Bounds of what is kept of a run.
const (
	// maxMessages of one generation. With the generation before it, at least so many of the newest messages are known.
	// Arrivals of older ones are not counted.
	maxMessages = 250_000
	// maxWaiting arrivals of unknown messages, and triggered messages that are not sent yet, in each generation.
	maxWaiting = 100_000
	// maxRecent deliveries that may be corrected when the end of the drain or a late time becomes known.
	maxRecent = 1 << 16
	// maxStreams of one run; Figures.LeftOut counts messages on further topics.
	maxStreams = 20_000
)

// stream is what one instance sends to one topic.
type stream struct {
	publisher   int
	topic       string
	subscribers []subscriber
	// slot is an instance's place among the subscribers.
	slot map[int]int
	// expecting counts messages that each subscriber should get; unsent ones were only triggered. Received and duplicates by subscriber.
	expecting, unsent    int64
	received, duplicates []int64
}

type message struct {
	sent   int64
	stream int32
	// next message with the same id in the same generation; -1 if none.
	next int32
	// seen is where the bits of its subscribers begin.
	seen int32
	// uncounted: another instance sent the same id to the same topic, or it was sent after the end of the drain. Its deliveries do not count.
	uncounted bool
}

// arrival of a message that is not known yet.
type arrival struct {
	ts       int64
	instance int
	topic    string
}

// generation of messages, by their ids' hashes.
type generation struct {
	byID     map[uint64]int32
	messages []message
	seen     []uint64
	waiting  map[uint64][]arrival
	waits    int
	// unsent has the streams of messages that were only triggered.
	unsent map[unsentKey]int32
}

// unsentKey is an instance and the hash of one of its ids.
type unsentKey struct {
	publisher int
	id        uint64
}

func newGeneration() *generation {
	return &generation{byID: map[uint64]int32{}, waiting: map[uint64][]arrival{}, unsent: map[unsentKey]int32{}}
}

// delivery is a recently counted one: when it was sent and received, and how long it was held up, nanoseconds.
type delivery struct {
	sent, ts, late int64
	stream         int32
	slot           int32
}

func (d *delivery) delaySeconds() float64 { return time.Duration(d.ts - d.sent).Seconds() }

func (d *delivery) leastDelay() float64 { return time.Duration(d.ts - d.sent - d.late).Seconds() }

type streamKey struct {
	publisher int
	topic     string
}

// Tally of one run.
type Tally struct {
	mu   sync.Mutex
	plan runapi.Plan
	// instances of the plan when the first record arrived; nil before.
	instances []instance
	byName    map[string]int
	// The table of streams of the same plan: its rows by publisher, and its audiences.
	rows      [][]*runapi.PlannedStream
	audiences [][]string
	sent      []int64 // by instance
	bytes     []int64
	streams   []stream
	byStream  map[streamKey]int32
	// current generation of messages, and the one before it.
	current, before *generation
	all             *delays
	groups          map[string]*delays
	recent          []delivery
	oldest          int
	// late times of the radio by node; those that affect all deliveries under "".
	late map[string]lateTimes
	// lateNodes are its nodes in the order of their first late time.
	lateNodes []string
	// ways over nodes that were late.
	ways    map[string]*ways
	end     int64 // of the drain, Unix nanoseconds; 0 while not known
	leftOut int64
	// The limits of these names; tests have smaller ones.
	maxMessages, maxWaiting int
	seed                    maphash.Seed
}

// New makes an empty tally.
func New() *Tally {
	return &Tally{byStream: map[streamKey]int32{}, current: newGeneration(), before: newGeneration(), late: map[string]lateTimes{}, ways: map[string]*ways{},
		all: &delays{}, groups: map[string]*delays{}, maxMessages: maxMessages, maxWaiting: maxWaiting, seed: maphash.MakeSeed()}
}

// Plan sets the newest plan. The plan at the first message, or at the first figures after T0, decides who should receive what.
func (t *Tally) Plan(plan runapi.Plan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan = plan
	if t.end != 0 || plan.T0 == nil || plan.MeasureEndNanoseconds == nil {
		return
	}
	t.end = plan.T0.UnixNano() + *plan.MeasureEndNanoseconds
	kept := t.recent[:0]
	for _, d := range t.recent {
		if d.ts <= t.end {
			kept = append(kept, d)
			continue
		}
		s := &t.streams[d.stream]
		s.received[d.slot]--
		t.eachDelays(s, int(d.slot), func(l *delays) { l.remove(d.delaySeconds(), d.leastDelay()) })
	}
	t.recent, t.oldest = kept, 0
	t.takeBackSent()
}

// takeBackSent takes back the expected deliveries of messages that were sent after the end of the drain.
func (t *Tally) takeBackSent() {
	for _, g := range []*generation{t.current, t.before} {
		for i := range g.messages {
			if m := &g.messages[i]; m.sent > t.end && !m.uncounted {
				m.uncounted = true
				t.streams[m.stream].expecting--
			}
		}
	}
}

// Add counts a record of a message log; log is its path below the run.
func (t *Tally) Add(log string, r *messagelog.Record) {
	if r.Status != messagelog.Triggered && r.Status != messagelog.Sent && r.Status != messagelog.Received {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resolveInstances()
	index, known := t.byName[r.Instance]
	if !known || !sameApp(&t.instances[index], log) {
		return // the analysis names such records
	}
	if t.end != 0 && r.TimeNanoseconds > t.end {
		return
	}
	id := maphash.String(t.seed, r.ID)
	switch r.Status {
	case messagelog.Triggered:
		t.addTriggered(index, id, r)
	case messagelog.Sent:
		t.addSent(index, id, r)
	default:
		t.addReceived(id, arrival{ts: r.TimeNanoseconds, instance: index, topic: r.Topic})
	}
}

// sameApp reports whether a log belongs to the instance's app.
func sameApp(i *instance, log string) bool {
	cut := len(i.log) - len(lastName(i.log))
	return len(log) > cut && log[:cut] == i.log[:cut]
}

func lastName(log string) string { return log[1+strings.LastIndexByte(log, '/'):] }

func (t *Tally) resolveInstances() {
	if t.instances != nil || len(t.plan.Nodes) == 0 {
		return
	}
	t.instances = instancesOf(&t.plan)
	t.byName = make(map[string]int, len(t.instances))
	for i := range t.instances {
		t.byName[t.instances[i].name] = i
	}
	t.sent, t.bytes = make([]int64, len(t.instances)), make([]int64, len(t.instances))
	t.indexRows()
	// A publisher's only topic has a stream from the beginning: perhaps nothing is ever sent. More topics are too many to have in advance.
	for i := range t.instances {
		if topic := t.instances[i].topic; topic != "" {
			t.streamOf(i, topic)
		}
	}
}

// streamOf returns the number of a stream, and makes it if necessary; -1 if there are too many.
func (t *Tally) streamOf(publisher int, topic string) int32 {
	key := streamKey{publisher, topic}
	if number, known := t.byStream[key]; known {
		return number
	}
	if len(t.streams) >= maxStreams {
		return -1
	}
	s := stream{publisher: publisher, topic: topic, subscribers: t.subscribersOf(publisher, topic), slot: map[int]int{}}
	for slot, one := range s.subscribers {
		s.slot[one.instance] = slot
	}
	s.received, s.duplicates = make([]int64, len(s.subscribers)), make([]int64, len(s.subscribers))
	t.streams = append(t.streams, s)
	t.byStream[key] = int32(len(t.streams) - 1)
	return t.byStream[key]
}

// addTriggered counts a message as unsent until it is sent.
func (t *Tally) addTriggered(index int, id uint64, r *messagelog.Record) {
	number := t.streamOf(index, cmp.Or(r.Topic, t.instances[index].topic))
	if number < 0 {
		return // counted when it is sent
	}
	known := false
	for _, g := range []*generation{t.current, t.before} {
		_, unsent := g.unsent[unsentKey{index, id}]
		known = known || unsent
	}
	t.eachWithID(id, func(_ *generation, m *message) bool {
		known = known || t.streams[m.stream].publisher == index
		return known
	})
	if known {
		return
	}
	t.rotate()
	t.current.unsent[unsentKey{index, id}] = number
	t.streams[number].unsent++
}

func (t *Tally) addSent(index int, id uint64, r *messagelog.Record) {
	topic := cmp.Or(r.Topic, t.instances[index].topic)
	number := t.streamOf(index, topic)
	if number < 0 {
		t.leftOut++
		return
	}
	for _, g := range []*generation{t.current, t.before} {
		if triggered, unsent := g.unsent[unsentKey{index, id}]; unsent {
			t.streams[triggered].unsent--
			delete(g.unsent, unsentKey{index, id})
		}
	}
	ambiguous, repeated := t.resolveSameID(id, index, topic)
	if repeated {
		return
	}
	t.sent[index]++
	t.bytes[index] += int64(r.Bytes)
	s := &t.streams[number]
	if !ambiguous {
		s.expecting++
	}
	t.rotate()
	g := t.current
	m := message{sent: r.TimeNanoseconds, stream: number, next: -1, seen: int32(len(g.seen)), uncounted: ambiguous}
	if other, known := g.byID[id]; known {
		m.next = other
	}
	g.seen = append(g.seen, make([]uint64, (len(s.subscribers)+63)/64)...)
	g.messages = append(g.messages, m)
	g.byID[id] = int32(len(g.messages) - 1)
	t.countWaiting(id)
}

// resolveSameID reports whether the instance sent the id before, and whether another one sent it to the same topic.
// Nobody can distinguish deliveries of the latter, so that both messages no longer count.
func (t *Tally) resolveSameID(id uint64, index int, topic string) (ambiguous, repeated bool) {
	t.eachWithID(id, func(g *generation, m *message) bool {
		s := &t.streams[m.stream]
		repeated = repeated || s.publisher == index
		if s.publisher == index || s.topic != topic {
			return false
		}
		ambiguous = true
		if m.uncounted {
			return false
		}
		m.uncounted = true
		s.expecting--
		for slot := range s.subscribers {
			if g.seen[int(m.seen)+slot/64]&(1<<(slot%64)) != 0 {
				s.received[slot]--
			}
		}
		return false
	})
	return ambiguous, repeated
}

// eachWithID calls do for every message of an id, newest generation first, until it returns true.
func (t *Tally) eachWithID(id uint64, do func(g *generation, m *message) (done bool)) {
	for _, g := range []*generation{t.current, t.before} {
		number, known := g.byID[id]
		if !known {
			continue
		}
		for ; number >= 0; number = g.messages[number].next {
			if do(g, &g.messages[number]) {
				return
			}
		}
	}
}

// rotate drops the older generation when the current one is full.
func (t *Tally) rotate() {
	if len(t.current.messages) >= t.maxMessages || t.current.waits >= t.maxWaiting || len(t.current.unsent) >= t.maxWaiting {
		t.before, t.current = t.current, newGeneration()
	}
}

// countWaiting counts the arrivals that waited for a message.
func (t *Tally) countWaiting(id uint64) {
	for _, g := range []*generation{t.current, t.before} {
		waited := g.waiting[id]
		if waited == nil {
			continue
		}
		delete(g.waiting, id)
		g.waits -= len(waited)
		for _, a := range waited {
			t.addReceived(id, a)
		}
	}
}

func (t *Tally) addReceived(id uint64, a arrival) {
	if t.end != 0 && a.ts > t.end {
		return
	}
	matched := false
	t.eachWithID(id, func(g *generation, m *message) bool {
		s := &t.streams[m.stream]
		slot, expected := s.slot[a.instance]
		if a.topic != "" && a.topic != s.topic && !(expected && a.topic == s.subscribers[slot].receivedTopic) {
			return false
		}
		if matched = true; expected && !m.uncounted {
			t.countArrival(g, m, slot, a.ts)
		}
		return true
	})
	if matched {
		return
	}
	t.rotate()
	t.current.waiting[id] = append(t.current.waiting[id], a)
	t.current.waits++
}

func (t *Tally) countArrival(g *generation, m *message, slot int, ts int64) {
	s := &t.streams[m.stream]
	word, bit := &g.seen[int(m.seen)+slot/64], uint64(1)<<(slot%64)
	if *word&bit != 0 {
		s.duplicates[slot]++
		return
	}
	*word |= bit
	s.received[slot]++
	d := delivery{sent: m.sent, ts: ts, stream: m.stream, slot: int32(slot)}
	t.eachDelays(s, slot, func(l *delays) { l.add(d.delaySeconds()) })
	t.applyLateTimes(&d)
	t.addRecent(d)
}

func (t *Tally) addRecent(d delivery) {
	if len(t.recent) < maxRecent {
		t.recent = append(t.recent, d)
		return
	}
	t.recent[t.oldest] = d
	t.oldest = (t.oldest + 1) % maxRecent
}

// kinds of deliveries are groups too.
var kinds = []string{"radio", "local", "cross"}

// groupsOf a delivery, besides all.
func (t *Tally) groupsOf(s *stream, slot int) []string {
	names := make([]string, 0, 4)
	to := &s.subscribers[slot]
	for i, is := range []bool{to.radio, to.local, to.cross} {
		if is {
			names = append(names, kinds[i])
		}
	}
	group := t.instances[s.publisher].group
	if group == "all" || slices.Contains(kinds, group) {
		group = "group/" + group // as in the results
	}
	return append(names, group)
}

func (t *Tally) eachDelays(s *stream, slot int, do func(*delays)) {
	do(t.all)
	for _, name := range t.groupsOf(s, slot) {
		if t.groups[name] == nil {
			t.groups[name] = &delays{}
		}
		do(t.groups[name])
	}
}
