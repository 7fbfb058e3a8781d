package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

func TestStepsRiseToTheNumberOfExperiments(t *testing.T) {
	for name, c := range map[string]struct {
		steps string
		all   int
		want  []int
	}{
		"as they are by default": {"50,100,200", 500, []int{50, 100, 200, 500}},
		"cut off":                {"50,100,200", 50, []int{50}},
		"falling":                {"100,50", 500, nil},
		"no number":              {"many", 500, nil},
	} {
		got, err := options{steps: c.steps, experiments: c.all}.counts()
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

func TestTheAuditLogIsCountedOnceAndAPartOfALineLater(t *testing.T) {
	const create = `{"verb":"create","objectRef":{"resource":"pods"},"responseStatus":{"code":201}}` + "\n"
	const rest = `{"verb":"patch","objectRef":{"resource":"experiments","subresource":"status"},"responseStatus":{"code":409}}` + "\n" +
		`{"verb":"watch","objectRef":{"resource":"pods"}}` + "\n" + `{"verb":"get","requestURI":"/version","responseStatus":{"code":200}}` + "\n"
	l := &auditLog{path: filepath.Join(t.TempDir(), "audit.log"), calls: calls{}}
	for _, c := range []struct {
		content       string
		total, writes int
	}{{"", 0, 0}, {create + rest[:20], 1, 1}, {create + rest, 3, 2}, {create + rest, 3, 2}} {
		if err := os.WriteFile(l.path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := l.read()
		if err != nil || got.total() != c.total || got.writes() != c.writes {
			t.Errorf("after %d bytes: %v, %v; want %d calls, %d writes", len(c.content), got, err, c.total, c.writes)
		}
	}
	if l.calls["patch experiments/status 409"] != 1 {
		t.Errorf("calls are %v; want a patch of the status that met a conflict", l.calls)
	}
}

func TestAPlayedAgentCarriesOutWhatItHeardOfInTime(t *testing.T) {
	t0 := time.Now().Add(-time.Minute)
	target := runapi.Target{Node: "veh-1", App: "bft"}
	r := run{heard: map[string]time.Time{"past": t0, "late": t0.Add(3 * time.Second), "future": t0}}
	r.state.Plan.T0 = &t0
	for id, at := range map[string]time.Duration{"past": time.Second, "late": 2 * time.Second, "future": time.Hour} {
		r.state.Plan.Armed = append(r.state.Plan.Armed, runapi.Action{ID: id, AtNanoseconds: int64(at), Verb: runapi.VerbStart, Targets: []runapi.Target{target}})
	}
	var report runapi.AgentReport
	r.carryOut(&report, target, time.Now())
	if report.ExecutedActions != 1 || !slices.Equal(report.ArmedTooLate, []string{"late"}) {
		t.Errorf("the agent reports %+v", report)
	}
}

func TestAWriteAtRestIsAnError(t *testing.T) {
	r := report{rests: []step{{name: "running", usage: usage{calls: calls{"get pods": 3}}}}}
	if err := r.silent(); err != nil {
		t.Error(err)
	}
	r.rests[0].usage.archive = calls{"put plan": 1}
	if r.silent() == nil {
		t.Error("a plan that is written at rest passes")
	}
}
