package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/capacity"
)

// answerCapacity stands in for a cluster in which the user may list objects of team-nor only.
func answerCapacity(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/v1/usage"):
		writeText(w, "application/json", `{"namespace":"team-nor","runs":2,"bytes":3}`)
	case strings.HasPrefix(path, "/apis/vignette.dev/v1alpha1/namespaces/team-nor/experiments"):
		writeText(w, "application/json", `{"apiVersion":"vignette.dev/v1alpha1","kind":"ExperimentList","items":[
			{"metadata":{"namespace":"team-nor","name":"waits"},"status":{"phase":"Queued","queue":{"position":2}}}]}`)
	case strings.HasPrefix(path, "/api/v1/namespaces/team-nor/resourcequotas"):
		writeText(w, "application/json", `{"apiVersion":"v1","kind":"ResourceQuotaList","items":[]}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)) // the test fails without it
	}
}

func TestCapacityIsWhatTheUserMayRead(t *testing.T) {
	s := startLocal(t, answerCapacity).logIn()
	answer := s.get("/console/v1/capacity?namespace=team-nor")
	var report capacity.Report
	if err := json.Unmarshal([]byte(answer.body), &report); err != nil || answer.status != http.StatusOK {
		t.Fatalf("status %d: %s", answer.status, answer.body)
	}
	if len(report.Queue) != 1 || report.Queue[0].Name != "waits" || report.Queue[0].Position != 2 {
		t.Errorf("queue %+v; want waits at place 2", report.Queue)
	}
	if len(report.Hosts) != 0 || !strings.Contains(strings.Join(report.NotShown, "; "), "nodes; pods; resource quotas of namespaces other than team-nor") {
		t.Errorf("hosts %v, not shown %q; want no host, and what is not shown", report.Hosts, report.NotShown)
	}
	if report.Archive == nil || report.Archive.Runs != 2 {
		t.Errorf("archive %+v, problem %q; want 2 runs", report.Archive, report.ArchiveProblem)
	}
}

func TestCapacityTellsWhatTheArchiveAnswersInWords(t *testing.T) {
	s := startLocal(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/v1/usage") {
			http.Error(w, "secret words of a proxy", http.StatusServiceUnavailable)
			return
		}
		answerCapacity(w, r)
	}).logIn()
	if answer := s.get("/console/v1/capacity?namespace=team-nor"); !strings.Contains(answer.body, "the archive answers 503 Service Unavailable") || strings.Contains(answer.body, "secret") {
		t.Errorf("it says %s", answer.body)
	}
}

func TestCapacityNeedsASession(t *testing.T) {
	if answer := startLocal(t, answerCapacity).get("/console/v1/capacity"); answer.status != http.StatusUnauthorized {
		t.Errorf("status %d; want 401", answer.status)
	}
}
