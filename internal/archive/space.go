package archive

import (
	"math"
	"sync"
	"syscall"
	"time"
)

// A fiftieth of the volume, within these bounds, is reserved: on a full volume the run's records, its manifest and its
// results must still be written, or nothing would say what is missing.
const (
	reserveShare = 50
	minReserve   = 1 << 20
	maxReserve   = 256 << 20
	// spaceLifetime is how long a reading of the volume is used: on a network file system it is a request.
	spaceLifetime = time.Second
)

// volumeSpace is what logs may still use of the archive's volume.
type volumeSpace struct {
	dir string

	mu        sync.Mutex
	checkedAt time.Time
	bytesLeft int64
}

// reserve reports whether there is space for n more bytes, and counts them.
func (r *volumeSpace) reserve(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.left() {
		return false
	}
	r.bytesLeft -= n
	return true
}

// free counts n bytes that are used no more.
func (r *volumeSpace) free(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytesLeft += n
}

// has reports whether there is space for n more bytes.
func (r *volumeSpace) has(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return n <= r.left()
}

// FreeBytes of the volume that logs of all namespaces may still use; known is false if the volume does not say.
func (s *Store) FreeBytes() (n int64, known bool) {
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	n = s.space.left()
	return max(n, 0), n < math.MaxInt64/2
}

// left is bytesLeft, read again if it is old. The caller has the lock.
func (r *volumeSpace) left() int64 {
	if now := time.Now(); now.Sub(r.checkedAt) > spaceLifetime {
		r.checkedAt, r.bytesLeft = now, logBytesLeft(r.dir)
	}
	return r.bytesLeft
}

// logBytesLeft is how many bytes of a folder's volume logs may still use; without limit if the volume does not say.
func logBytesLeft(dir string) int64 {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil || stat.Blocks == 0 {
		return math.MaxInt64
	}
	size := float64(stat.Blocks) * float64(stat.Bsize)
	free := float64(stat.Bavail) * float64(stat.Bsize)
	return int64(free - min(max(size/reserveShare, minReserve), maxReserve))
}
