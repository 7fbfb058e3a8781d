package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

const (
	// freeResultBytes of a run's results need no room of the team or the volume: they say what is missing.
	freeResultBytes = 16 << 20
	// defaultMaxResults of a run: empty ones need no quota, but inodes of the volume and memory of the server.
	defaultMaxResults = 2000
)

func isResult(p string) bool { return strings.HasPrefix(p, ResultsDir+"/") }

// ReplaceResult is Replace for a file of the analysis. All results of a run may have as much as its logs; beyond
// freeResultBytes they also need room of the team and the volume.
func (r *Run) ReplaceResult(p string, content io.Reader) (int64, error) {
	before, known, err := r.beginResult(p)
	if err != nil {
		return 0, err
	}
	room := &resultReservation{run: r}
	size, err := r.Replace(p, io.TeeReader(content, room))
	r.count(&r.recordBytes, -room.bytes) // Replace has counted the file
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resultBytes -= room.bytes
	if err == nil || r.results[p] != 0 {
		return size, err
	}
	if !known {
		delete(r.results, p)
		return size, err
	}
	r.results[p] = before
	r.resultBytes += before
	return size, err
}

// RemoveResult removes a file of the analysis, if it is there.
func (r *Run) RemoveResult(p string) error {
	r.replacing.Lock()
	defer r.replacing.Unlock()
	size := r.sizeOf(p)
	if err := r.root.Remove(p); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	r.count(&r.recordBytes, -size)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resultBytes -= r.results[p]
	delete(r.results, p)
	return r.syncDir(path.Dir(p))
}

// beginResult makes the room of the file that is replaced available to one request.
func (r *Run) beginResult(p string) (before int64, known bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known = r.results[p]
	if !known && len(r.results) >= r.maxResults {
		return 0, false, fmt.Errorf("%w: it has %d results, the limit", ErrQuota, r.maxResults)
	}
	r.results[p] = 0
	r.resultBytes -= before
	return before, known, nil
}

// noteResult counts a result that was written.
func (r *Run) noteResult(p string, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resultBytes += size - r.results[p]
	r.results[p] = size
}

// resultReservation counts the bytes of a result before they are written.
type resultReservation struct {
	run   *Run
	bytes int64
}

func (w *resultReservation) Write(p []byte) (int, error) {
	n := int64(len(p))
	w.bytes += n // also on an error: ReplaceResult gives all of them back
	w.run.mu.Lock()
	w.run.resultBytes += n
	used := w.run.resultBytes
	w.run.mu.Unlock()
	_, ofTeam := w.run.count(&w.run.recordBytes, n)
	switch {
	case w.run.quota > 0 && used > w.run.quota:
		return 0, fmt.Errorf("%w: %d bytes of results are allowed", ErrQuota, w.run.quota)
	case used <= freeResultBytes:
		return len(p), nil
	case w.run.team.quota > 0 && ofTeam > w.run.team.quota:
		return 0, w.run.teamQuotaError()
	case !w.run.space.reserve(n):
		return 0, errReserved
	}
	return len(p), nil
}
