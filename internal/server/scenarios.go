package server

import (
	"net/http"
	"time"

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
	body := &deadlineBody{body: http.MaxBytesReader(w, r.Body, maxScenarioBytes), control: http.NewResponseController(w)}
	size, err := s.scenarios.Put(digest, body, s.scenarioQuota(who))
	if err != nil {
		return err
	}
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
	f, err := s.scenarios.Open(digest)
	info, err := statOpened(f, err, "there is no scenario %s", digest)
	if err != nil {
		return err
	}
	defer f.Close()
	serveFile(w, r, digest, info, time.Time{}, f)
	return nil
}

// expireScenarios deletes scenarios that were not used for the retention.
func (s *Server) expireScenarios() {
	if s.config.Retention <= 0 {
		return
	}
	deleted, err := s.scenarios.Expire(s.config.Now().Add(-s.config.Retention))
	for _, digest := range deleted {
		s.config.Log.Info("deleted a scenario that was not used for longer than the retention", "scenario", digest, "retention", s.config.Retention)
	}
	if err != nil {
		s.config.Log.Error("old scenarios could not be deleted", "error", err)
	}
}
