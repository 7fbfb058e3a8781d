package server

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/scenario"
)

const (
	// maxKeptMovements is how many scenarios' movements are kept, the last used ones.
	maxKeptMovements = 4
	// movementTime is how long the movements of a scenario may take.
	movementTime = 10 * time.Minute
)

// movements makes the movements of platforms from scenarios, once for all nodes of a run.
type movements struct {
	scenarios *archive.Scenarios
	ctx       context.Context
	close     context.CancelFunc
	// making limits the work to one scenario at a time.
	making sync.Mutex

	mu   sync.Mutex
	kept map[string]*keptMovements // by digest
}

// keptMovements of one scenario; the rest is valid once done is closed.
type keptMovements struct {
	done       chan struct{}
	byPlatform map[int][]byte
	err        error
	used       time.Time
}

func newMovements(scenarios *archive.Scenarios) *movements {
	m := &movements{scenarios: scenarios, kept: map[string]*keptMovements{}}
	m.ctx, m.close = context.WithCancel(context.Background())
	return m
}

// of returns a scenario's movements, which may still be made.
func (m *movements) of(digest string) *keptMovements {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, known := m.kept[digest]
	if !known {
		one = &keptMovements{done: make(chan struct{})}
		m.kept[digest] = one
		go m.make(digest, one)
	}
	one.used = time.Now()
	m.dropOldest()
	return one
}

// dropOldest forgets the least used scenario beyond the limit. The caller has the lock.
func (m *movements) dropOldest() {
	if len(m.kept) <= maxKeptMovements {
		return
	}
	oldest := ""
	for digest, one := range m.kept {
		if oldest == "" || one.used.Before(m.kept[oldest].used) {
			oldest = digest
		}
	}
	delete(m.kept, oldest)
}

// make makes the movements. A failure is forgotten, so that the next request tries again.
func (m *movements) make(digest string, one *keptMovements) {
	m.making.Lock()
	one.byPlatform, one.err = m.read(digest)
	m.making.Unlock()
	close(one.done)
	m.mu.Lock()
	defer m.mu.Unlock()
	if one.err != nil && m.kept[digest] == one {
		delete(m.kept, digest)
	}
}

func (m *movements) read(digest string) (map[int][]byte, error) {
	file, err := m.scenarios.Open(digest)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	compiled, err := scenario.Open(file, info.Size())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(m.ctx, movementTime)
	defer cancel()
	return compiled.Movements(ctx)
}

// getMovement gives an agent the movement of its node's platform.
func (s *Server) getMovement(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, node, err := s.agentOf(who)
	if err != nil {
		return err
	}
	digest, platform := run.platformOf(node)
	if digest == "" {
		return statusErrorf(http.StatusNotFound, "node %s of this run has no platform", node)
	}
	one := s.movements.of(digest)
	deadline := time.NewTimer(s.config.LongPoll)
	defer deadline.Stop()
	select {
	case <-one.done:
	case <-deadline.C:
		return statusErrorf(http.StatusServiceUnavailable, "the movements of scenario %s are being made", digest)
	case <-r.Context().Done():
		return r.Context().Err()
	}
	var corrupt *scenario.CorruptError
	content := one.byPlatform[platform] // none if it has no position
	switch {
	case errors.Is(one.err, fs.ErrNotExist):
		return statusErrorf(http.StatusNotFound, "there is no scenario %s", digest)
	case errors.As(one.err, &corrupt):
		return statusErrorf(http.StatusUnprocessableEntity, "scenario %s: %v", digest, one.err)
	case one.err != nil:
		return one.err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err = w.Write(content)
	return err
}

// platformOf returns the scenario's digest and the platform of a node; an empty digest without a platform.
func (r *run) platformOf(node string) (digest string, platform int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	plan := &r.record.Plan
	if plan.Scenario == nil {
		return "", 0
	}
	for i := range plan.Nodes {
		if n := &plan.Nodes[i]; n.Name == node && n.Platform != nil {
			return plan.Scenario.Digest, int(*n.Platform)
		}
	}
	return "", 0
}
