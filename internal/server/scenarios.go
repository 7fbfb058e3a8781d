package server

import (
	"errors"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/digests"
)

// scenarioOf returns the digest that a request names.
func scenarioOf(r *http.Request) (string, error) {
	digest := r.PathValue("digest")
	if err := digests.Check(digest); err != nil {
		return "", statusErrorf(http.StatusBadRequest, "%v", err)
	}
	return digest, nil
}

func (s *Server) putScenario(w http.ResponseWriter, r *http.Request, who Identity) error {
	if err := requirePermission(r.Context(), who, who.Scope, "storing scenarios", s.mayStoreScenarios); err != nil {
		return err
	}
	digest, err := scenarioOf(r)
	if err != nil {
		return err
	}
	team := s.scenarioTeam(r, who)
	body := &teamScenario{server: s, namespace: team, room: math.MaxInt64,
		body: &deadlineBody{body: http.MaxBytesReader(w, r.Body, maxScenarioBytes), control: http.NewResponseController(w)}}
	defer body.end()
	if !s.scenarios.Has(digest) {
		body.room = s.scenarioRoomOf(team)
	}
	s.noteScenarioUse(who)
	size, err := s.scenarios.Put(digest, body, s.scenarioQuota(who), s.spareScenarios())
	if err != nil {
		return err
	}
	s.scenarioUses.noteTeam(team, digest, s.config.Now())
	s.metrics.bytes.WithLabelValues("scenario").Add(float64(size))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// scenarioQuota reserves half of the quota for the operator.
func (s *Server) scenarioQuota(who Identity) int64 {
	if s.config.Policy.administrator(who) {
		return s.config.ScenarioQuotaBytes
	}
	return s.config.ScenarioQuotaBytes / 2
}

func (s *Server) getScenario(w http.ResponseWriter, r *http.Request, who Identity) error {
	if err := requirePermission(r.Context(), who, who.Scope, "reading scenarios", s.mayReadScenarios); err != nil {
		return err
	}
	digest, err := scenarioOf(r)
	if err != nil {
		return err
	}
	s.noteScenarioUse(who)
	f, err := s.scenarios.Open(digest)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.checkScenarioRoom(r, who); err != nil {
			return err
		}
	}
	info, err := statOpened(f, err, "there is no scenario %s", digest)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.config.Policy.operator(who) {
		s.scenarioUses.noteTeam(s.scenarioTeam(r, who), digest, s.config.Now())
	}
	serveFile(w, r, digest, info, time.Time{}, f)
	return nil
}

// checkScenarioRoom returns an error if a request asks for room that the caller does not have.
func (s *Server) checkScenarioRoom(r *http.Request, who Identity) error {
	text := r.URL.Query().Get("bytes")
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxScenarioBytes {
		return statusErrorf(http.StatusBadRequest, "bytes %q: want the size of a scenario, 0 to %d", text, int64(maxScenarioBytes))
	}
	if team := s.scenarioTeam(r, who); n > s.scenarioRoomOf(team) {
		return scenarioTeamError(team, s.config.ScenarioQuotaBytes)
	}
	return s.scenarios.CheckRoom(n, s.scenarioQuota(who), s.spareScenarios())
}

const (
	// scenarioUnusedFor is how long a scenario that is deleted for another was not used. The operator asks for those that Scenarios have
	// every 10 minutes. A pushed one has this time to get a Scenario.
	scenarioUnusedFor = time.Hour
	// longestScenarioSilence of the operator. After a longer one, it needs as long again to ask for all scenarios in use.
	longestScenarioSilence = 30 * time.Minute
)

// scenarioUses knows since when the operator has asked for the scenarios in use, without a long silence.
type scenarioUses struct {
	mu          sync.Mutex
	since, last time.Time
	// teams has when each namespace's scenarios were last asked for, and writing the bytes that are being stored for it.
	teams   map[string]map[string]time.Time
	writing map[string]int64
}

func (u *scenarioUses) note(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.last) > longestScenarioSilence {
		u.since = now
	}
	u.last = now
}

// complete reports whether every scenario in use was asked for lately.
func (u *scenarioUses) complete(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Sub(u.last) <= longestScenarioSilence && now.Sub(u.since) >= longestScenarioSilence
}

func (s *Server) noteScenarioUse(who Identity) {
	if s.config.Policy.operator(who) {
		s.scenarioUses.note(s.config.Now())
	}
}

// spareScenarios are those that no Scenario has and no run's plan names. There are none while the operator may not have asked for all in use.
func (s *Server) spareScenarios() archive.Spare {
	now := s.config.Now()
	if !s.scenarioUses.complete(now) {
		return archive.Spare{}
	}
	return archive.Spare{Before: now.Add(-scenarioUnusedFor), Needed: s.runs.plannedScenarios()}
}

func (s *Server) logSpareScenario(digest string) {
	s.config.Log.Info("deleted a scenario that nothing uses, to make room for another", "scenario", digest)
}

// expireScenarios deletes scenarios that were not used for the retention, and that no run has: a team may keep runs longer.
func (s *Server) expireScenarios() {
	if s.config.Retention <= 0 {
		return
	}
	deleted, err := s.scenarios.Expire(archive.Spare{Before: s.config.Now().Add(-s.config.Retention), Needed: s.runs.plannedScenarios()})
	for _, digest := range deleted {
		s.config.Log.Info("deleted a scenario that was not used for longer than the retention", "scenario", digest, "retention", s.config.Retention)
	}
	if err != nil {
		s.config.Log.Error("old scenarios could not be deleted", "error", err)
	}
}
