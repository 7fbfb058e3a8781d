package tdma

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Whatever the sizes, classes and options, every byte of a frame is sent once and in order. Slots are never
// overfilled, and the frames of a class leave in the order in which they came.
func TestSlotsConserveBytesAndKeepTheOrderOfEachClass(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		options := Queue{Depth: 1 << 20, Aggregation: random.IntN(3) > 0, AggregationThreshold: random.Float64(), Fragmentation: random.IntN(4) > 0,
			StrictDequeue: random.IntN(4) == 0}
		t.Run(fmt.Sprintf("seed %d %+v", seed, options), func(t *testing.T) { checkQueue(t, random, &options) })
	}
}

func checkQueue(t *testing.T, random *rand.Rand, options *Queue) {
	q, f := queues{}, filling{options: options}
	var next [Classes]int // identity of the next frame to come and to leave of each class
	var leaves [Classes]int
	sent := map[*entry]int{}
	for range 400 {
		for range random.IntN(4) {
			e := &entry{class: random.IntN(4), length: 1 + random.IntN(2000), nem: 1}
			e.missedBefore = uint64(next[e.class])
			next[e.class]++
			q.push(e, options.Depth)
		}
		f.reset()
		f.room = 1 + random.IntN(1500)
		q.fill(&f, random.IntN(4))
		for _, e := range f.tooLarge {
			if options.Fragmentation || e.length <= f.room || uint64(leaves[e.class]) != e.missedBefore {
				t.Fatalf("frame of %d bytes dropped as too large for %d", e.length, f.room)
			}
			leaves[e.class]++
		}
		total := 0
		for i, p := range f.parts {
			total += p.bytes
			if p.bytes < 1 || p.offset != sent[p.entry] || uint64(leaves[p.class]) != p.missedBefore {
				t.Fatalf("part %d of class %d: %d bytes from %d on; want more than none from %d on, of the oldest frame", i, p.class, p.bytes, p.offset, sent[p.entry])
			}
			sent[p.entry] += p.bytes
			if p.last != (sent[p.entry] == p.length) || !p.last && !options.Fragmentation {
				t.Fatalf("last %v after %d of %d bytes", p.last, sent[p.entry], p.length)
			}
			if p.last {
				leaves[p.class]++
			}
		}
		if total != f.bytes || total > f.room || !options.Aggregation && len(f.parts) > 1 {
			t.Fatalf("%d parts of %d bytes, %d said, in a room of %d", len(f.parts), total, f.bytes, f.room)
		}
	}
	waiting := 0
	for class := range q.classes {
		waiting += q.classes[class].count
		if q.classes[class].count != next[class]-leaves[class] {
			t.Errorf("class %d: %d wait of %d that came and %d that left", class, q.classes[class].count, next[class], leaves[class])
		}
	}
	if waiting != q.count {
		t.Errorf("%d frames wait, %d are counted", waiting, q.count)
	}
}

func TestWhatASlotTakes(t *testing.T) {
	type frame struct{ class, nem, length int }
	for _, c := range []struct {
		name        string
		change      func(o *Queue)
		frames      []frame
		class       int
		destination int
		room        int
		want        string // class:bytes, with + where more follows, ! for too large
	}{
		{"its own class first, then from the highest on", nil, []frame{{0, 1, 10}, {1, 1, 10}, {2, 1, 10}, {3, 1, 10}}, 1, 0, 1000, "1:10 3:10 2:10 0:10"},
		{"nothing of other classes beyond the threshold", nil, []frame{{0, 1, 91}, {3, 1, 5}}, 0, 0, 100, "0:91"},
		{"other classes at the threshold", nil, []frame{{0, 1, 90}, {3, 1, 5}}, 0, 0, 100, "0:90 3:5"},
		{"more of its own class beyond the threshold", nil, []frame{{0, 1, 95}, {0, 1, 20}}, 0, 0, 100, "0:95 0:5+"},
		{"only its own class where strict", func(o *Queue) { o.StrictDequeue = true }, []frame{{3, 1, 10}}, 0, 0, 100, ""},
		{"one frame without aggregation", func(o *Queue) { o.Aggregation = false }, []frame{{0, 1, 10}, {0, 1, 10}, {3, 1, 10}}, 0, 0, 100, "0:10"},
		{"a frame cut to the room", nil, []frame{{0, 1, 150}}, 0, 0, 100, "0:100+"},
		{"no empty part where the slot is full", nil, []frame{{0, 1, 100}, {0, 1, 10}}, 0, 0, 100, "0:100"},
		{"without fragmentation what fits no slot goes", func(o *Queue) { o.Fragmentation = false }, []frame{{0, 1, 150}, {0, 1, 10}}, 0, 0, 100, "0! 0:10"},
		{"without fragmentation what does not fit behind others stays", func(o *Queue) { o.Fragmentation = false }, []frame{{0, 1, 60}, {0, 1, 50}}, 0, 0, 100, "0:60"},
		{"without fragmentation what fits no slot of another class stays", func(o *Queue) { o.Fragmentation = false }, []frame{{1, 1, 150}}, 0, 0, 100, ""},
		{"only frames to the slot's destination", nil, []frame{{0, 1, 10}, {0, 2, 11}, {0, BroadcastNEM, 12}, {3, 2, 13}}, 0, 2, 100, "0:11 3:13"},
		{"only broadcasts", nil, []frame{{0, 1, 10}, {0, BroadcastNEM, 12}}, 0, BroadcastNEM, 100, "0:12"},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := DefaultQueue()
			if c.change != nil {
				c.change(&options)
			}
			q, f := queues{}, filling{options: &options, room: c.room, destination: c.destination}
			for _, frame := range c.frames {
				q.push(&entry{class: frame.class, nem: frame.nem, length: frame.length}, options.Depth)
			}
			q.fill(&f, c.class)
			got := ""
			for _, e := range f.tooLarge {
				got += fmt.Sprintf(" %d!", e.class)
			}
			for _, p := range f.parts {
				got += fmt.Sprintf(" %d:%d", p.class, p.bytes)
				if !p.last {
					got += "+"
				}
			}
			if got != "" {
				got = got[1:]
			}
			if got != c.want {
				t.Errorf("slot takes %q; want %q", got, c.want)
			}
		})
	}
}

// As in EMANE the oldest frame makes room, unless a part of it is under way already.
func TestAFullQueueDropsTheOldestFrameNotBegun(t *testing.T) {
	options := DefaultQueue()
	q, f := queues{}, filling{options: &options, room: 50}
	first, second, third := &entry{length: 100, nem: 1}, &entry{length: 100, nem: 1}, &entry{length: 100, nem: 1}
	q.push(first, 2)
	q.push(second, 2)
	q.fill(&f, 0)
	if dropped := q.push(third, 2); dropped != second {
		t.Error("the frame not begun was not the one to go")
	}
	if dropped := q.push(second, 2); dropped != third || q.count != 2 {
		t.Error("the oldest frame not begun was not the one to go")
	}
	third.parts, second.parts = 1, 1
	if dropped := q.push(third, 2); dropped != first {
		t.Error("where all have begun the oldest was not the one to go")
	}
}

func TestClassesFollowTheDSCP(t *testing.T) {
	for dscp := range uint8(64) {
		want := 0
		switch {
		case dscp >= 8 && dscp <= 23:
			want = 1
		case dscp >= 32 && dscp <= 47:
			want = 2
		case dscp >= 48:
			want = 3
		}
		v4 := append(make([]byte, 12), 0x08, 0, 0x45, dscp<<2|3)
		v6 := append(make([]byte, 12), 0x86, 0xdd, 0x60|dscp>>2, dscp<<6|0x3f)
		for _, frame := range [][]byte{v4, v6} {
			if got := dscpOf(frame); got != dscp || classOf(got) != want {
				t.Errorf("frame % x: DSCP %d of class %d; want %d of class %d", frame[12:], got, classOf(got), dscp, want)
			}
		}
	}
	arp := append(make([]byte, 12), 0x08, 0x06, 0xff, 0xff)
	for _, frame := range [][]byte{arp, nil, arp[:13], append(make([]byte, 12), 0x08, 0)} {
		if got := dscpOf(frame); got != 0 {
			t.Errorf("frame % x: DSCP %d; want 0", frame, got)
		}
	}
}

// The sizes were counted by hand from the encoding of Protocol Buffers.
func TestMessagesHaveTheSizeOfEMANEs(t *testing.T) {
	whole := part{&entry{nem: 2, parts: 1}, 0, 100, true}
	cut := part{&entry{nem: BroadcastNEM, parts: 3, sequence: 200}, 300, 200, false}
	for _, c := range []struct {
		name  string
		parts []part
		want  int
	}{
		{"one whole frame", []part{whole}, 1 + 6 + 1 + 3 + 1 + 1 + (2 + 2 + 2 + 2 + 100)},
		{"a fragment as well", []part{whole, cut}, 1 + 6 + 1 + 3 + 1 + 1 + (2 + 2 + 2 + 2 + 100) +
			1 + 2 + (2 + 4 + 2 + 3 + 200 + 2 + (2 + 2 + 3 + 3))},
	} {
		if got := messageBytes(170e9, 1e6, c.parts); got != c.want {
			t.Errorf("%s: %d bytes; want %d", c.name, got, c.want)
		}
	}
}
