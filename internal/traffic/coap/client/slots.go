package client

import (
	"context"
	"sync"
)

// slots bound what is under way at a time for each key. For remote endpoints that is NSTART (RFC 7252, section 4.7).
type slots[K comparable] struct {
	limit int

	mu    sync.Mutex
	byKey map[K]*slot
}

type slot struct {
	taken chan struct{}
	users int
}

// acquire waits for a free slot. The returned function gives it back; it may be called again.
func (s *slots[K]) acquire(ctx context.Context, key K) (release func(), err error) {
	s.mu.Lock()
	if s.byKey == nil {
		s.byKey = map[K]*slot{}
	}
	one := s.byKey[key]
	if one == nil {
		one = &slot{taken: make(chan struct{}, s.limit)}
		s.byKey[key] = one
	}
	one.users++
	s.mu.Unlock()
	select {
	case one.taken <- struct{}{}:
		return sync.OnceFunc(func() {
			<-one.taken
			s.leave(key, one)
		}), nil
	case <-ctx.Done():
		s.leave(key, one)
		return nil, ended(ctx)
	}
}

func (s *slots[K]) leave(key K, one *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(s.byKey, key)
	}
}
