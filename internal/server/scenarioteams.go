package server

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"vignette.dev/vignette/internal/archive"
)

// scenarioTeam is the namespace for which a scenario is asked for or stored; empty if it is for none in particular.
func (s *Server) scenarioTeam(r *http.Request, who Identity) string {
	if s.config.Policy.operator(who) {
		return r.URL.Query().Get("namespace")
	}
	return who.Scope
}

// noteTeam notes that a namespace has a scenario: the operator asks for those of its Scenarios every 10 minutes.
func (u *scenarioUses) noteTeam(namespace, digest string, now time.Time) {
	if namespace == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.teams == nil {
		u.teams = map[string]map[string]time.Time{}
	}
	if u.teams[namespace] == nil {
		u.teams[namespace] = map[string]time.Time{}
	}
	u.teams[namespace][digest] = now
}

// ofTeam returns the scenarios that a namespace had lately, and forgets the others.
func (u *scenarioUses) ofTeam(namespace string, now time.Time) (digests []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for digest, at := range u.teams[namespace] {
		if now.Sub(at) > scenarioUnusedFor {
			delete(u.teams[namespace], digest)
			continue
		}
		digests = append(digests, digest)
	}
	return digests
}

// write counts bytes that are being stored for a namespace, and returns how many there are.
func (u *scenarioUses) write(namespace string, n int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.writing == nil {
		u.writing = map[string]int64{}
	}
	u.writing[namespace] += n
	if now := u.writing[namespace]; now > 0 {
		return now
	}
	delete(u.writing, namespace)
	return 0
}

// scenarioRoomOf is how many bytes of scenarios a namespace may still store: those of its Scenarios and its runs may have half of the
// store, so that no team occupies it.
func (s *Server) scenarioRoomOf(namespace string) int64 {
	if namespace == "" || s.config.ScenarioQuotaBytes <= 0 {
		return math.MaxInt64
	}
	has := s.runs.scenariosOf(func(r *run) bool { return r.files.Key().Namespace == namespace })
	for _, digest := range s.scenarioUses.ofTeam(namespace, s.config.Now()) {
		has[digest] = true
	}
	room := s.config.ScenarioQuotaBytes / 2
	for digest := range has {
		room -= s.scenarios.Size(digest)
	}
	return room
}

func scenarioTeamError(namespace string, quota int64) error {
	return fmt.Errorf("%w: the Scenarios and runs of namespace %s may have %d bytes, half of all", archive.ErrScenarioQuota, namespace, quota/2)
}

// teamScenario is the body of a scenario that is stored for a namespace, which may have room bytes more.
type teamScenario struct {
	body      io.Reader
	server    *Server
	namespace string
	room      int64
	read      int64
}

func (b *teamScenario) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.read += int64(n)
	if b.server.scenarioUses.write(b.namespace, int64(n)) > b.room {
		return 0, scenarioTeamError(b.namespace, b.server.config.ScenarioQuotaBytes)
	}
	return n, err
}

// end of the body: the stored bytes count by their digest.
func (b *teamScenario) end() { b.server.scenarioUses.write(b.namespace, -b.read) }
