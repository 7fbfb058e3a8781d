package mapdata

import (
	"slices"
	"sync"
)

// recent keeps the values that were used last.
type recent[K comparable, V any] struct {
	mu    *sync.Mutex
	limit int
	keys  *[]K
	kept  map[K]V
}

func newRecent[K comparable, V any](limit int) recent[K, V] {
	return recent[K, V]{mu: new(sync.Mutex), limit: limit, keys: new([]K), kept: map[K]V{}}
}

// get returns a value, which counts as a use.
func (r recent[K, V]) get(key K) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, known = r.kept[key]; known {
		r.use(key)
	}
	return value, known
}

// getOrMake returns a value, which is made and kept if there is none yet.
func (r recent[K, V]) getOrMake(key K, made func() V) V {
	value, known := r.get(key)
	if !known {
		value = made()
		r.put(key, value)
	}
	return value
}

// put keeps a value.
func (r recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[key] = value
	r.use(key)
	for len(*r.keys) > r.limit {
		r.dropOldest()
	}
}

// trim forgets values, those used last at the end, until what is left weighs no more than a bound. The last one stays.
func (r recent[K, V]) trim(most int64, weight func(V) int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := int64(0)
	for _, value := range r.kept {
		all += weight(value)
	}
	for all > most && len(*r.keys) > 1 {
		all -= weight(r.kept[(*r.keys)[0]])
		r.dropOldest()
	}
}

func (r recent[K, V]) dropOldest() {
	delete(r.kept, (*r.keys)[0])
	*r.keys = (*r.keys)[1:]
}

// use moves a key to the end.
func (r recent[K, V]) use(key K) {
	*r.keys = append(slices.DeleteFunc(*r.keys, func(k K) bool { return k == key }), key)
}
