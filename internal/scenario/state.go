package scenario

import "cmp"

// kind is a kind of value of a platform or of an ordered pair. The numbers are part of the file format.
type kind uint8

const (
	position kind = 1 + iota
	velocity
	orientation
	antennaProfile
	pathloss
	commEffect
	fadingSelection
	pathlossAt
	kinds
)

// maxWidth is the greatest number of values of one entry.
const maxWidth = 6

// scales multiply the values of an entry before they are rounded to integers: pathloss has a resolution of
// 0.01 dB, latitude and longitude of 1e-8 degrees (1 mm), altitude of 1 mm, durations of 1 ns.
var scales = [kinds][]float64{
	position:        {1e8, 1e8, 1e3},
	velocity:        {1e6, 1e6, 1e6},
	orientation:     {1e6, 1e6, 1e6},
	antennaProfile:  {1, 1e6, 1e6},
	pathloss:        {100},
	commEffect:      {1, 1, 1e6, 1e6, 1, 1},
	fadingSelection: {1},
	pathlossAt:      {100},
}

func (k kind) valid() bool { return k >= position && k < kinds }

// width returns the number of values of one entry.
func (k kind) width() int { return len(scales[k]) }

// pairs reports whether entries are of ordered pairs of platforms, rather than of platforms.
func (k kind) pairs() bool { return k >= pathloss }

// class is one function of time for each platform or pair: a kind, and for pathlossAt a frequency.
type class struct {
	kind           kind
	frequencyHertz uint64
}

func compareClasses(a, b class) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.frequencyHertz, b.frequencyHertz))
}

// state is a class's state at a moment. An entry's key is a platform's slot, or pairKey of two. Such keys grow with
// the slots, so that a new platform in the file moves no entry.
type state struct {
	class
	values []int64
	known  []bool
}

// entries returns the number of entries for a number of platforms.
func entries(k kind, platforms int) int {
	if k.pairs() {
		return platforms * (platforms - 1)
	}
	return platforms
}

// grow enlarges the state for a number of platforms.
func (s *state) grow(platforms int) {
	if n := entries(s.kind, platforms); n > len(s.known) {
		s.known = append(s.known, make([]bool, n-len(s.known))...)
		s.values = append(s.values, make([]int64, n*s.kind.width()-len(s.values))...)
	}
}

// forget clears the state.
func (s *state) forget() {
	clear(s.known)
	clear(s.values)
}

// pairKey returns the key of an ordered pair of slots: both directions of a pair are neighbours.
func pairKey(from, to int) int {
	if from < to {
		return to*(to-1) + 2*from
	}
	return from*(from-1) + 2*to + 1
}
