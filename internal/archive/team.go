package archive

import (
	"fmt"
	"sync/atomic"

	"vignette.dev/vignette/internal/wording"
)

// team counts the bytes of a namespace's runs: logs, records and results.
type team struct {
	used atomic.Int64
	// quota for further logs and large results; 0 means no limit. Records are always accepted, as they say what is missing.
	quota int64
}

// team of a namespace; the caller has the lock.
func (s *Store) team(namespace string) *team {
	t := s.teams[namespace]
	if t == nil {
		t = &team{}
		if s.TeamQuota != nil {
			t.quota = s.TeamQuota(namespace)
		}
		s.teams[namespace] = t
	}
	return t
}

// TeamUsed returns the bytes of a namespace's runs and their quota; 0 means no limit.
func (s *Store) TeamUsed(namespace string) (used, quota int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(namespace)
	return t.used.Load(), t.quota
}

// CheckTeam returns ErrTeamQuota if a namespace has no space for another run.
func (s *Store) CheckTeam(namespace string) error {
	if used, quota := s.TeamUsed(namespace); quota > 0 && used >= quota {
		return fmt.Errorf("%w: the runs of namespace %s have %s of %s: delete some, or ask the administrator for more", ErrTeamQuota, namespace, wording.Bytes(used), wording.Bytes(quota))
	}
	return nil
}

// reserve counts bytes by which a log is to grow, if quotas and volume have space for them.
func (r *Run) reserve(p string, n int64) error {
	quota := r.quota
	if IsCapture(p) {
		quota = int64(capturesShare * float64(quota))
	}
	used, ofTeam := r.count(&r.logBytes, n)
	switch {
	case quota > 0 && used > quota:
		r.release(n)
		return fmt.Errorf("%w: %d bytes of logs are allowed, %d are archived", ErrQuota, quota, r.Used())
	case r.team.quota > 0 && ofTeam > r.team.quota:
		r.release(n)
		return r.teamQuotaError()
	case !r.space.reserve(n):
		r.release(n)
		return errReserved
	}
	return nil
}

var errReserved = fmt.Errorf("%w: the rest is reserved for records and results", ErrFull)

func (r *Run) teamQuotaError() error {
	return fmt.Errorf("%w: %s are allowed for all runs of namespace %s", ErrTeamQuota, wording.Bytes(r.team.quota), r.key.Namespace)
}

func (r *Run) release(n int64) { r.count(&r.logBytes, -n) }

// count changes a counter of the run, and that of its team unless the run is closed: then the team has let go of all that the run had.
func (r *Run) count(counter *atomic.Int64, n int64) (ofRun, ofTeam int64) {
	r.counting.Lock()
	defer r.counting.Unlock()
	if r.closed.Load() {
		return counter.Add(n), r.team.used.Load()
	}
	return counter.Add(n), r.team.used.Add(n)
}

// leaveTeam takes all that the run has from its team, once.
func (r *Run) leaveTeam() {
	r.counting.Lock()
	defer r.counting.Unlock()
	if !r.closed.Swap(true) {
		r.team.used.Add(-r.Size())
	}
}
