package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/scenario"
)

// movementLimits of what the server does at a time, so that no team's scenarios exhaust its memory.
type movementLimits struct {
	// waiting scenarios, with those that are read; and how many are read at a time.
	waiting, reading int
	// keptBytes of all movements that are kept.
	keptBytes int
	// time that one scenario may take.
	time time.Duration
}

var defaultMovementLimits = movementLimits{waiting: 32, reading: 2, keptBytes: 256 << 20, time: 10 * time.Minute}

var errNoScenario = errors.New("there is no such scenario")

// movements makes the movements of platforms from scenarios, once for all nodes of a run.
type movements struct {
	limits movementLimits
	// read gives the movements of a scenario by platform.
	read func(ctx context.Context, digest string) (map[int][]byte, error)
	// needed are the digests of the runs that go on.
	needed func() map[string]bool
	ctx    context.Context
	close  context.CancelFunc
	// reading has one entry for each scenario that is being read.
	reading chan struct{}

	mu   sync.Mutex
	kept map[string]*keptMovements // by digest
}

// keptMovements of one scenario; the rest is valid once done is closed.
type keptMovements struct {
	namespace string // of the run that asked first
	done      chan struct{}
	// byPlatform, or why there will never be any.
	byPlatform map[int][]byte
	err        error
	size       int
	used       time.Time
}

// isDone reports whether the movements are made.
func (k *keptMovements) isDone() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

func newMovements(scenarios *archive.Scenarios, needed func() map[string]bool) *movements {
	m := &movements{needed: needed, kept: map[string]*keptMovements{}}
	m.read = func(ctx context.Context, digest string) (map[int][]byte, error) {
		return readMovements(ctx, scenarios, digest)
	}
	m.ctx, m.close = context.WithCancel(context.Background())
	m.limit(defaultMovementLimits)
	return m
}

// limit sets limits, before the first use.
func (m *movements) limit(l movementLimits) {
	m.limits, m.reading = l, make(chan struct{}, l.reading)
}

// of returns a scenario's movements, which may still be made. It returns nil if there is no room to make them now.
// Each namespace has one scenario made at a time, so that no team keeps others waiting.
func (m *movements) of(digest, namespace string) *keptMovements {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, known := m.kept[digest]
	if !known {
		m.dropUnneeded()
		if !m.hasRoom(namespace) {
			return nil
		}
		one = &keptMovements{namespace: namespace, done: make(chan struct{})}
		m.kept[digest] = one
		go m.make(digest, one)
	}
	one.used = time.Now()
	return one
}

// hasRoom reports whether one more scenario may wait. The caller has the lock.
func (m *movements) hasRoom(namespace string) bool {
	waiting := 0
	for _, one := range m.kept {
		if one.isDone() {
			continue
		}
		if one.namespace == namespace {
			return false
		}
		waiting++
	}
	return waiting < m.limits.waiting
}

// dropUnneeded forgets movements that no run needs. The caller has the lock.
func (m *movements) dropUnneeded() {
	needed := m.needed()
	for digest, one := range m.kept {
		if one.isDone() && !needed[digest] {
			delete(m.kept, digest)
		}
	}
}

// tidy forgets movements that no run needs.
func (m *movements) tidy() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropUnneeded()
}

// dropOldest forgets movements beyond the limit, those first that are unused for longest. The caller has the lock.
func (m *movements) dropOldest(except *keptMovements) {
	for {
		size, oldest := 0, ""
		for digest, one := range m.kept {
			if !one.isDone() {
				continue
			}
			size += one.size
			if one != except && one.size > 0 && (oldest == "" || one.used.Before(m.kept[oldest].used)) {
				oldest = digest
			}
		}
		if size <= m.limits.keptBytes || oldest == "" {
			return
		}
		delete(m.kept, oldest)
	}
}

// make makes the movements. A failure that may pass is forgotten, so that the next request tries again.
func (m *movements) make(digest string, one *keptMovements) {
	select {
	case m.reading <- struct{}{}:
		one.byPlatform, one.err = m.readInTime(digest)
		<-m.reading
	case <-m.ctx.Done():
		one.err = m.ctx.Err()
	}
	for _, content := range one.byPlatform {
		one.size += len(content)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(one.done)
	if one.err != nil && !isPermanent(one.err) {
		delete(m.kept, digest)
	}
	m.dropOldest(one)
}

// tooSlowError says that the movements of a scenario take too long.
type tooSlowError struct{ limit time.Duration }

func (e *tooSlowError) Error() string {
	return fmt.Sprintf("to read its positions takes more than %s: want fewer platforms or a shorter duration", e.limit)
}

func (m *movements) readInTime(digest string) (map[int][]byte, error) {
	ctx, cancel := context.WithTimeout(m.ctx, m.limits.time)
	defer cancel()
	byPlatform, err := m.read(ctx, digest)
	if errors.Is(err, context.DeadlineExceeded) {
		err = &tooSlowError{m.limits.time}
	}
	return byPlatform, err
}

// isPermanent reports whether a scenario will never have movements.
func isPermanent(err error) bool {
	var corrupt *scenario.CorruptError
	var slow *tooSlowError
	return errors.As(err, &corrupt) || errors.As(err, &slow) || errors.Is(err, scenario.ErrTooManyPositions)
}

func readMovements(ctx context.Context, scenarios *archive.Scenarios, digest string) (map[int][]byte, error) {
	file, err := scenarios.Open(digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoScenario
	}
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
	return compiled.Movements(ctx)
}

// getMovement gives an agent the movement of its node's platform, or of the one that an instance on it reports.
func (s *Server) getMovement(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, node, err := s.agentOf(who)
	if err != nil {
		return err
	}
	instance := r.URL.Query().Get("instance")
	digest, platform := run.platformOf(node, instance)
	switch {
	case digest == "" && instance != "":
		return statusErrorf(http.StatusNotFound, "instance %q on node %s of this run has no platform of its own", instance, node)
	case digest == "":
		return statusErrorf(http.StatusNotFound, "node %s of this run has no platform", node)
	}
	one := s.movements.of(digest, run.files.Key().Namespace)
	if one == nil {
		return statusErrorf(http.StatusServiceUnavailable, "the movements of other scenarios are being made")
	}
	deadline := time.NewTimer(s.config.LongPoll)
	defer deadline.Stop()
	select {
	case <-one.done:
	case <-deadline.C:
		return statusErrorf(http.StatusServiceUnavailable, "the movements of scenario %s are being made", digest)
	case <-r.Context().Done():
		return r.Context().Err()
	}
	switch {
	case errors.Is(one.err, errNoScenario):
		return statusErrorf(http.StatusNotFound, "there is no scenario %s", digest)
	case one.err != nil && isPermanent(one.err):
		return statusErrorf(http.StatusUnprocessableEntity, "scenario %s: %v", digest, one.err)
	case one.err != nil:
		return one.err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	send(w, http.StatusOK, one.byPlatform[platform]) // nothing if it has no position
	return nil
}

// platformOf returns the scenario's digest and the platform of a node, or the one that an instance on it reports; an empty digest without
// a platform.
func (r *run) platformOf(node, instance string) (digest string, platform int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	plan := &r.record.Plan
	if plan.Scenario == nil {
		return "", 0
	}
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		switch {
		case n.Name != node:
		case instance != "":
			platform = reportedBy(n, instance)
		case n.Platform != nil:
			platform = int(*n.Platform)
		}
	}
	if platform == 0 {
		return "", 0
	}
	return plan.Scenario.Digest, platform
}

// reportedBy is the platform whose position an instance on a node reports; 0 for none.
func reportedBy(n *runapi.PlannedNode, instance string) int {
	for _, app := range n.Apps {
		if i := slices.Index(app.Instances, instance); i >= 0 && i < len(app.Platforms) {
			return app.Platforms[i]
		}
	}
	return 0
}

// neededScenarios are the digests of the scenarios of all runs that go on.
func (reg *registry) neededScenarios() map[string]bool {
	return reg.scenariosOf(func(r *run) bool { return !r.sealed })
}

// plannedScenarios are the digests of the scenarios of all runs.
func (reg *registry) plannedScenarios() map[string]bool {
	return reg.scenariosOf(func(*run) bool { return true })
}

// scenariosOf runs. of is called with a run's lock.
func (reg *registry) scenariosOf(of func(*run) bool) map[string]bool {
	found := map[string]bool{}
	for _, r := range reg.all() {
		r.mu.Lock()
		if plan := &r.record.Plan; plan.Scenario != nil && of(r) {
			found[plan.Scenario.Digest] = true
		}
		r.mu.Unlock()
	}
	return found
}
