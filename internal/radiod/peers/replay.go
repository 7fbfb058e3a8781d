package peers

// windowSize is the number of datagrams by which they may overtake each other.
const windowSize = 2048

// window accepts each counter once, and none older than its size: the sliding window of RFC 6479.
type window struct {
	// next is above the highest counter so far.
	next uint64
	seen [windowSize / 64]uint64
}

// accept reports whether a counter is new, and records it.
func (w *window) accept(counter uint64) bool {
	if counter+windowSize < w.next || counter == ^uint64(0) {
		return false
	}
	for w.next <= counter {
		if counter-w.next >= windowSize {
			w.seen = [windowSize / 64]uint64{}
			w.next = counter
		}
		w.seen[w.next/64%uint64(len(w.seen))] &^= 1 << (w.next % 64)
		w.next++
	}
	word, bit := &w.seen[counter/64%uint64(len(w.seen))], uint64(1)<<(counter%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
