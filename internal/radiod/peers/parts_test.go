package peers

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestTheWindowTakesEachCounterOnce(t *testing.T) {
	for name, c := range map[string]struct {
		counters []uint64
		want     []bool
	}{
		"in order":         {[]uint64{0, 1, 2}, []bool{true, true, true}},
		"twice":            {[]uint64{0, 0, 1, 0, 1}, []bool{true, false, true, false, false}},
		"overtaken":        {[]uint64{5, 3, 4, 3}, []bool{true, true, true, false}},
		"after a gap":      {[]uint64{0, 100000, 99999, 100000, 0}, []bool{true, true, true, false, false}},
		"at the far end":   {[]uint64{windowSize, 1, 0}, []bool{true, true, false}},
		"a word again":     {[]uint64{0, windowSize, windowSize + 64, windowSize}, []bool{true, true, true, false}},
		"the highest ever": {[]uint64{^uint64(0)}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			var w window
			for i, counter := range c.counters {
				if got := w.accept(counter); got != c.want[i] {
					t.Errorf("counter %d, the %dth: accepted %v; want %v", counter, i, got, c.want[i])
				}
			}
		})
	}
}

func TestTheWindowAgreesWithASetWhateverTheOrder(t *testing.T) {
	var w window
	seen := map[uint64]bool{}
	highest := uint64(0)
	for range 100000 {
		counter := highest + uint64(rand.IntN(3000))
		counter -= min(counter, 2000)
		old := counter+windowSize <= highest
		want := !seen[counter] && !old
		if got := w.accept(counter); got != want {
			t.Fatalf("counter %d after %d: accepted %v; want %v", counter, highest, got, want)
		}
		seen[counter] = true
		highest = max(highest, counter)
	}
}

func TestPartsMakeTheMessageInAnyOrder(t *testing.T) {
	message := make([]byte, 5000)
	for i := range message {
		message[i] = byte(i * 7)
	}
	const room = 900
	n := partsOf(len(message), room)
	for range 50 {
		var a assembler
		done := 0
		for _, part := range rand.Perm(n) {
			b := append(putPartHeader(nil, 7, part, n), message[part*room:min((part+1)*room, len(message))]...)
			if got, ok := a.add(b); ok {
				done++
				if !bytes.Equal(got, message) {
					t.Fatal("the parts made another message")
				}
			}
		}
		if done != 1 {
			t.Fatalf("the message was whole %d times", done)
		}
	}
}

func TestTheOldestMessagesThatLackAPartAreGivenUp(t *testing.T) {
	var a assembler
	part := func(number uint32, part int) bool {
		_, whole := a.add(append(putPartHeader(nil, number, part, 2), 1))
		return whole
	}
	const more = 10
	for number := range uint32(assemblies + more) {
		if part(number, 0) {
			t.Fatal("half a message is whole")
		}
	}
	for number := uint32(assemblies + more); number > 0; number-- {
		if whole, want := part(number-1, 1), number > more; whole != want {
			t.Errorf("message %d: whole %v; want %v", number-1, whole, want)
		}
	}
}

func TestTheClockPrefersShortRoundTripsAsLongAsTheyAreYoung(t *testing.T) {
	const skew = 5_000_000
	var f clockFilter
	ask := func(at, there, back int64) {
		f.add(exchange{sent: at, peerReceived: at + there + skew, peerSent: at + there + skew + 10, received: at + there + 10 + back})
	}
	ask(0, 900_000, 100_000) // a way there that waits: wrong by 400 µs, within its bound
	if c := f.at(1_000_010, 0); c.Offset != skew+400_000 || c.Uncertainty < 400_000 {
		t.Errorf("one exchange: %+v", c)
	}
	ask(2_000_000, 50_000, 50_000)
	ask(3_000_000, 700_000, 100_000)
	if c := f.at(4_000_000, 0); c.Offset != skew || c.RoundTrip != 100_000 {
		t.Errorf("the short one is not preferred: %+v", c)
	}
	ask(2_000_000_000, 200_000, 200_000)
	if c := f.at(2_000_400_010, 0); c.RoundTrip != 400_000 {
		t.Errorf("one that is two seconds old is preferred: %+v", c)
	}
}
