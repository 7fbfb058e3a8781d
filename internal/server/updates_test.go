package server

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

func TestTheOperatorIsNotNotifiedOfHeartbeats(t *testing.T) {
	l := newLab(t, func(c *Config) { c.LongPoll = 200 * time.Millisecond })
	l.plan()
	ctx := context.Background()
	ready := runapi.AgentReport{App: "bft", Phase: runapi.AgentReady}
	must(t, l.as("nor").Report(ctx, ready))
	first, err := l.as("operator").Updates(ctx, "", 0)
	must(t, err)
	if !slices.Equal(first.Runs, []string{runUID}) {
		t.Fatalf("after a first report the runs with news are %v; want %s", first.Runs, runUID)
	}

	ready.ArchivedUntilNanoseconds = 5 // grows all the time
	must(t, l.as("nor").Report(ctx, ready))
	begin := time.Now()
	none, err := l.as("operator").Updates(ctx, first.Epoch, first.Sequence)
	must(t, err)
	if len(none.Runs) > 0 || time.Since(begin) < l.config.LongPoll {
		t.Errorf("a heartbeat is news of %v, after %s", none.Runs, time.Since(begin))
	}
}

func TestTheOperatorIsNotifiedOfChanges(t *testing.T) {
	l := newLab(t)
	l.plan()
	ctx := context.Background()
	must(t, l.as("nor").Report(ctx, runapi.AgentReport{App: "bft", Phase: runapi.AgentReady}))
	for name, say := range map[string]func() error{
		"a report that differs": func() error {
			return l.as("nor").Report(ctx, runapi.AgentReport{App: "bft", Phase: runapi.AgentRunning, ArmedVersion: 1})
		},
		"an incident": func() error {
			return l.as("operator").Incident(ctx, runUID, runapi.Incident{What: "NodeFailed", Node: "nor", Reason: "its pod is gone"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			known, err := l.as("operator").Updates(ctx, "", 0)
			must(t, err)
			heard := make(chan runapi.Updates, 1)
			go func() {
				news, _ := l.as("operator").Updates(ctx, known.Epoch, known.Sequence)
				heard <- news
			}()
			must(t, say())
			if news := <-heard; !slices.Equal(news.Runs, []string{runUID}) || news.Sequence <= known.Sequence {
				t.Errorf("got %+v after %+v", news, known)
			}
		})
	}
}

func TestUpdatesOfAnotherEpochAreAnsweredAtOnce(t *testing.T) {
	l := newLab(t)
	news, err := l.as("operator").Updates(context.Background(), "another", 17)
	if err != nil || news.Epoch == "another" || news.Epoch == "" {
		t.Errorf("got %+v, %v; want this life's epoch", news, err)
	}
}

func TestOnlyTheOperatorFollowsTheNewsOfAllRuns(t *testing.T) {
	l := newLab(t)
	for _, who := range []string{"nor", "viewer", "admin", "workflow", "radiod", "nobody"} {
		if _, err := l.as(who).Updates(context.Background(), "", 0); !client.HasStatus(err, http.StatusForbidden) {
			t.Errorf("%s got %v; want 403", who, err)
		}
	}
	if _, err := l.as("").Updates(context.Background(), "", 0); !client.HasStatus(err, http.StatusUnauthorized) {
		t.Errorf("without a token: %v; want 401", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
