package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// planOfTeam is the plan of another run of a namespace.
func planOfTeam(namespace, uid string) func(*runapi.Plan) {
	return func(p *runapi.Plan) { p.Namespace, p.UID = namespace, uid }
}

func TestATeamThatHasFilledItsPartOfTheArchiveBeginsNoRunAndHindersNobody(t *testing.T) {
	const quota = 64 << 10
	l := newLab(t, func(c *Config) { c.TeamQuotas = map[string]int64{"team-nor": quota} })
	l.plan()
	l.log("nor", "bft", "stdout-1.log", strings.Repeat("x", quota/2))
	_, err := appendLog(context.Background(), l.as("nor"), "bft", "stdout-2.log", 0, strings.Repeat("x", quota/2))
	if err == nil || !strings.Contains(err.Error(), "the team's room in the archive is used up: 64.00 KiB are allowed for all runs of namespace team-nor") {
		t.Errorf("%v; want the log refused by the team's quota", err)
	}
	used, err := l.as("viewer").Usage(context.Background(), "team-nor")
	if err != nil || used.Runs != 1 || used.QuotaBytes != quota || used.Bytes <= quota/2 || used.Bytes > quota {
		t.Errorf("%+v, %v; want half of the quota and the records", used, err)
	}
	l.log("nor", "bft", "stdout-2.log", strings.Repeat("x", int(quota-used.Bytes-1000)))
	for l.server.store.CheckTeam("team-nor") == nil { // records, which are always taken, fill the rest
		if err := l.as("operator").Incident(context.Background(), runUID, runapi.Incident{What: "Test", FromSeconds: float64(time.Now().UnixNano()), Reason: strings.Repeat("r", 500)}); err != nil {
			t.Fatal(err)
		}
	}
	plan := examplePlan()
	planOfTeam("team-nor", "run-2")(&plan)
	_, err = l.as("operator").PutPlan(context.Background(), plan)
	if status(err) != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "delete some, or ask the administrator") {
		t.Errorf("another run of the team: %v; want it refused, with what helps", err)
	}
	l.plan(planOfTeam("team-prt", "run-3"))
	l.plan() // what the run that goes on is to do is taken
	if err := l.as("admin").Delete(context.Background(), runUID); err != nil {
		t.Fatal(err)
	}
	l.plan(planOfTeam("team-nor", "run-2"))
}

func TestWhatATeamHasInTheArchiveIsTheSameAfterARestart(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	before, err := l.as("viewer").Usage(context.Background(), "team-nor")
	if err != nil || before.Bytes == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	runs, err := l.as("viewer").Runs(context.Background(), "team-nor", "")
	if err != nil || len(runs) != 1 || runs[0].Bytes != before.Bytes {
		t.Errorf("%+v, %v; want one run with the team's %d bytes", runs, err, before.Bytes)
	}
	l.stop()
	l.start()
	after, err := l.as("viewer").Usage(context.Background(), "team-nor")
	if before.FreeBytes == nil || *before.FreeBytes <= 0 {
		t.Errorf("free bytes of the volume: %v; want some", before.FreeBytes)
	}
	before.FreeBytes, after.FreeBytes = nil, nil // others use the volume, too
	if err != nil || after != before {
		t.Errorf("%+v before the restart, %+v after it, %v", before, after, err)
	}
	if _, err := l.as("prt-admin").Usage(context.Background(), "team-nor"); status(err) != http.StatusForbidden {
		t.Errorf("another team reads it: %v", err)
	}
}

func TestATeamsRetentionTakesThePlaceOfTheArchives(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(c *Config) {
		c.Now = func() time.Time { return now }
		c.Retention, c.TeamRetentions = time.Hour, map[string]time.Duration{"team-prt": 0, "team-usa": time.Minute}
	})
	for namespace, uid := range map[string]string{"team-nor": "run-nor", "team-prt": "run-prt", "team-usa": "run-usa"} {
		l.plan(planOfTeam(namespace, uid), ended)
	}
	gone := func() (names []string) {
		t.Helper()
		deleted, err := l.server.runs.expire(l.server.config.retention)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range deleted {
			names = append(names, key.UID)
		}
		return names
	}
	now = now.Add(30 * time.Minute)
	if got := gone(); len(got) != 1 || got[0] != "run-usa" {
		t.Errorf("after half an hour %v are deleted; want run-usa", got)
	}
	now = now.Add(time.Hour)
	if got := gone(); len(got) != 1 || got[0] != "run-nor" {
		t.Errorf("after an hour and a half %v are deleted; want run-nor, and run-prt to stay for ever", got)
	}
}
