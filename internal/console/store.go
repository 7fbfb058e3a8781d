package console

import (
	"slices"
	"sync"
	"time"
)

// store has entries under names that nobody can guess, for a time. Beyond its most entries the oldest ends.
type store[T any] struct {
	mu       sync.Mutex
	most     int
	lifetime time.Duration
	entries  map[string]stored[T]
	// order of the names, the oldest first.
	order []string
	// ended hears of each entry that goes; nil for nobody.
	ended func(T)
}

type stored[T any] struct {
	value T
	until time.Time
}

func newStore[T any](most int, lifetime time.Duration) *store[T] {
	return &store[T]{most: most, lifetime: lifetime, entries: map[string]stored[T]{}}
}

// add an entry and return its name.
func (s *store[T]) add(value T, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := randomText()
	s.entries[name] = stored[T]{value, now.Add(s.lifetime)}
	s.order = append(s.order, name)
	for len(s.order) > s.most || !now.Before(s.entries[s.order[0]].until) {
		s.drop(s.order[0])
	}
	return name
}

func (s *store[T]) get(name string, now time.Time) (value T, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, found := s.entries[name]
	if !found || !now.Before(entry.until) {
		return value, false
	}
	return entry.value, true
}

func (s *store[T]) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(name)
}

// drop an entry, if it is there. The lock is held.
func (s *store[T]) drop(name string) {
	entry, found := s.entries[name]
	if !found {
		return
	}
	delete(s.entries, name)
	s.order = slices.DeleteFunc(s.order, func(one string) bool { return one == name })
	if s.ended != nil {
		s.ended(entry.value)
	}
}
