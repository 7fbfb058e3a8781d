package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// tokenUsers maps tokens to identities, in place of an API server.
type tokenUsers map[string]Identity

func (p tokenUsers) Authenticate(_ context.Context, token string) (Identity, error) {
	if token == "outage" {
		return Identity{}, errors.New("the API server is away")
	}
	if who, known := p[token]; known {
		return who, nil
	}
	return Identity{}, ErrBadToken
}

const (
	operatorUser = "system:serviceaccount:vignette-system:vignette-operator"
	radiodUser   = "system:serviceaccount:vignette-system:vignette-radiod"
	runUID       = "run-1"
)

var everybody = tokenUsers{
	"operator":       {Username: operatorUser},
	"radiod":         {Username: radiodUser},
	"admin":          {Username: "anna"},
	"workflow":       {Username: "system:serviceaccount:team-nor:vignette-workflow"},
	"other-workflow": {Username: "system:serviceaccount:team-prt:vignette-workflow"},
	"nor":            {Username: "system:serviceaccount:team-nor:default", PodUID: "pod-nor"},
	"prt":            {Username: "system:serviceaccount:team-nor:default", PodUID: "pod-prt"},
	"hq":             {Username: "system:serviceaccount:team-nor:default", PodUID: "pod-hq"},
	"thief":          {Username: "system:serviceaccount:team-usa:default", PodUID: "pod-nor"},
	"stranger":       {Username: "system:serviceaccount:team-nor:default", PodUID: "pod-other"},
	"viewer":         {Username: "vera", Groups: []string{"nor-viewers"}},
	"experimenter":   {Username: "emil"},
	"prt-admin":      {Username: "paula"},
	"nobody":         {Username: "nick"},
}

// rights are what Kubernetes lets users do, as "WHO VERB NAMESPACE", where WHO is a name or a group.
type rights []string

func (r rights) Authorize(_ context.Context, who Identity, verb, namespace string) (bool, error) {
	if who.Username == "outage" {
		return false, errors.New("the API server is away")
	}
	for _, name := range append([]string{who.Username}, who.Groups...) {
		if slices.Contains(r, name+" "+verb+" "+namespace) {
			return true, nil
		}
	}
	return false, nil
}

// granted: Emil stores scenarios for all, as a request that is confined to no namespace asks for that.
var granted = rights{"nor-viewers get team-nor", "emil get team-nor", "emil update team-nor", "emil update ",
	"paula get team-prt", "paula update team-prt", "paula delete team-prt"}

// lab is a server with its clients.
type lab struct {
	t      *testing.T
	dir    string
	config Config
	server *Server
	http   *httptest.Server
}

func newLab(t *testing.T, change ...func(*Config)) *lab {
	l := &lab{t: t, dir: t.TempDir()}
	l.config = Config{
		Dir: l.dir, Authenticator: everybody, Authorizer: granted, LongPoll: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Policy: Policy{OperatorUser: operatorUser, RadiodUser: radiodUser, AdminUsers: []string{"anna"}},
	}
	for _, c := range change {
		c(&l.config)
	}
	l.start()
	t.Cleanup(l.stop)
	return l
}

func (l *lab) start() {
	l.t.Helper()
	var err error
	if l.server, err = New(l.config); err != nil {
		l.t.Fatal(err)
	}
	l.http = httptest.NewServer(checkAnswers(l.t, l.server))
}

func (l *lab) stop() {
	l.http.Close()
	_ = l.server.Close()
}

func (l *lab) as(token string) *client.Client {
	return client.New(l.http.URL, l.http.Client(), func() (string, error) { return token, nil })
}

// fetch a path as an administrator.
func (l *lab) fetch(path string) (*http.Response, error) {
	request, err := http.NewRequest(http.MethodGet, l.http.URL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer admin")
	return l.http.Client().Do(request)
}

func (l *lab) plan(change ...func(*runapi.Plan)) runapi.State {
	l.t.Helper()
	plan := examplePlan()
	for _, c := range change {
		c(&plan)
	}
	state, err := l.as("operator").PutPlan(context.Background(), plan)
	if err != nil {
		l.t.Fatal(err)
	}
	return state
}

func (l *lab) log(token, app, file, text string) {
	l.t.Helper()
	if _, err := appendLog(context.Background(), l.as(token), app, file, 0, text); err != nil {
		l.t.Fatal(err)
	}
}

// appendLog ships one part of one log.
func appendLog[T string | []byte](ctx context.Context, c *client.Client, app, file string, offset int64, content T) (int64, error) {
	appended, err := c.AppendLogs(ctx, app, []client.LogPart{{File: file, Offset: offset, Content: []byte(content)}})
	if err != nil {
		return 0, err
	}
	return appended[0].Size, appended[0].Err
}

func (l *lab) report(token, app string, phase runapi.AgentPhase) {
	l.t.Helper()
	if err := l.as(token).Report(context.Background(), runapi.AgentReport{App: app, Phase: phase}); err != nil {
		l.t.Fatal(err)
	}
}

// examplePlan has a publisher on nor, a subscriber on prt, and hq without apps.
func examplePlan() runapi.Plan {
	return runapi.Plan{
		Namespace: "team-nor", Name: "quickstart", UID: runUID, Phase: v1alpha1.PhaseProvisioning,
		Nodes: []runapi.PlannedNode{
			{Name: "nor", Group: "nor", NEM: 1, PodUID: "pod-nor", Apps: []runapi.PlannedApp{
				{Name: "bft", Kind: "traffic", Instances: []string{"nor/bft"}, Publishes: true}}},
			{Name: "prt", Group: "prt", NEM: 2, PodUID: "pod-prt", Apps: []runapi.PlannedApp{
				{Name: "picture", Kind: "traffic", Instances: []string{"prt/picture"}, Subscribes: true}}},
			{Name: "hq", Group: "hq", NEM: 3, PodUID: "pod-hq"},
		},
		Streams: &runapi.Streams{Rows: []runapi.PlannedStream{{Publishers: []string{"nor/bft"}, Topic: "/NOR", Heard: []runapi.Heard{{}}}}, Audiences: [][]string{{"prt/picture"}}},
	}
}

func withT0(p *runapi.Plan) {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p.T0, p.Phase = &t0, v1alpha1.PhaseRunning
}

func ended(p *runapi.Plan) { p.Phase = v1alpha1.PhaseFailed }

func armed(id string, node, app string, at time.Duration) func(*runapi.Plan) {
	return func(p *runapi.Plan) {
		p.ArmedVersion++
		p.Armed = append(p.Armed, runapi.Action{ID: id, AtNanoseconds: int64(at), Verb: runapi.VerbStart, Targets: []runapi.Target{{Node: node, App: app}}})
	}
}

func status(err error) int {
	if answer, ok := errors.AsType[*client.Error](err); ok {
		return answer.Status
	}
	return 0
}

func TestWhoMayDoWhat(t *testing.T) {
	l := newLab(t)
	l.plan(captures(0))
	ctx := context.Background()
	deeds := []struct {
		name string
		do   func(c *client.Client) error
		may  string
	}{
		{"write a plan", func(c *client.Client) error {
			plan := examplePlan()
			captures(0)(&plan)
			_, err := c.PutPlan(ctx, plan)
			return err
		}, "operator"},
		{"write an incident", func(c *client.Client) error { return c.Incident(ctx, runUID, runapi.Incident{What: "X", Reason: "y"}) }, "operator"},
		{"read the state", func(c *client.Client) error { _, err := c.State(ctx, runUID); return err }, "operator admin workflow viewer experimenter"},
		{"list files", func(c *client.Client) error { _, err := c.Files(ctx, runUID); return err }, "operator admin workflow viewer experimenter"},
		{"read a file", func(c *client.Client) error { return readAll(c.File(ctx, runUID, "run.json")) }, "operator admin workflow viewer experimenter"},
		{"list all runs and find it", func(c *client.Client) error {
			runs, err := c.Runs(ctx, "", "")
			if err == nil && len(runs) == 0 {
				err = &client.Error{Status: http.StatusForbidden} // nothing is told of what is not theirs
			}
			return err
		}, "operator admin workflow viewer experimenter"},
		{"list a namespace's runs", func(c *client.Client) error { _, err := c.Runs(ctx, "team-nor", ""); return err }, "operator admin workflow viewer experimenter"},
		{"write a result", func(c *client.Client) error { return c.PutResult(ctx, runUID, "a.csv", strings.NewReader("x")) }, "workflow"},
		{"write radio samples", func(c *client.Client) error {
			_, err := c.AppendRadio(ctx, "host-a", runUID, 0, strings.NewReader(""))
			return err
		}, "radiod"},
		{"write a capture", func(c *client.Client) error {
			_, err := c.AppendCapture(ctx, "host-a", runUID, norCapture, 0, strings.NewReader(""))
			return err
		}, "radiod"},
		{"follow a file", func(c *client.Client) error {
			body, err := c.Follow(ctx, runUID, "logs/nor/bft/agent.jsonl", 0)
			if err == nil {
				_ = body.Close()
			}
			return err
		}, "operator admin workflow viewer experimenter"},
		{"ask for nor's plan", func(c *client.Client) error { _, err := c.AgentPlan(ctx, "bft", 0); return err }, "nor"},
		{"report for nor", func(c *client.Client) error {
			return c.Report(ctx, runapi.AgentReport{App: "bft", Phase: runapi.AgentReady})
		}, "nor"},
		{"read the clock", func(c *client.Client) error { _, err := c.Clock(ctx); return err }, "nor prt hq"},
		{"write nor's log", func(c *client.Client) error {
			_, err := appendLog(ctx, c, "bft", "agent.jsonl", 0, "")
			return err
		}, "nor"},
		{"seal", func(c *client.Client) error { _, err := c.Seal(ctx, runUID, runapi.SealRequest{}); return err }, "operator workflow"},
		{"delete a run", func(c *client.Client) error {
			l.plan(func(p *runapi.Plan) { p.UID, p.Nodes = "run-2", nil })
			return c.Delete(ctx, "run-2")
		}, "operator admin"},
		{"delete a run of team-prt", func(c *client.Client) error {
			l.plan(func(p *runapi.Plan) { p.UID, p.Namespace, p.Nodes = "run-3", "team-prt", nil }, ended)
			return c.Delete(ctx, "run-3")
		}, "operator admin prt-admin"},
	}
	callers := []string{"", "nonsense"}
	for token := range everybody {
		callers = append(callers, token)
	}
	for _, deed := range deeds {
		for _, token := range callers {
			err := deed.do(l.as(token))
			may := false
			for _, name := range strings.Fields(deed.may) {
				may = may || name == token
			}
			want := http.StatusForbidden
			if token == "" || token == "nonsense" {
				want = http.StatusUnauthorized
			}
			if may && err != nil || !may && status(err) != want {
				t.Errorf("%q tries to %s: %v; may %v", token, deed.name, err, may)
			}
		}
	}
}

func readAll(f io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

func TestWithoutATokenOneMayDoNothing(t *testing.T) {
	l := newLab(t)
	l.plan()
	anybody := l.as("")
	if _, err := anybody.State(context.Background(), runUID); status(err) != http.StatusUnauthorized || !strings.Contains(err.Error(), "reading this run needs a token") {
		t.Errorf("a state without a token: %v", err)
	}
	if _, err := anybody.State(context.Background(), "unknown"); status(err) != http.StatusUnauthorized {
		t.Errorf("whether there is a run: %v", err)
	}
	if runs, err := anybody.Runs(context.Background(), "", ""); status(err) != http.StatusUnauthorized {
		t.Errorf("runs %v, %v", runs, err)
	}
	if _, err := anybody.PutPlan(context.Background(), examplePlan()); status(err) != http.StatusUnauthorized {
		t.Errorf("a plan without a token: %v", err)
	}
}

func TestAnOutageOfTheAPIServerIsNotARefusal(t *testing.T) {
	l := newLab(t)
	if err := l.as("outage").Delete(context.Background(), runUID); status(err) != http.StatusInternalServerError {
		t.Fatalf("%v: want 500, so that the caller tries again", err)
	}
}

func TestAgentsLearnOnlyTheirOwnActionsInOrder(t *testing.T) {
	l := newLab(t)
	l.plan(withT0, armed("b", "nor", "bft", 2*time.Second), armed("a", "nor", "bft", time.Second), armed("c", "prt", "picture", 0))
	plan, err := l.as("nor").AgentPlan(context.Background(), "bft", 0)
	if err != nil || len(plan.Actions) != 2 || plan.Actions[0].ID != "a" || plan.Actions[1].ID != "b" || plan.T0 == nil || plan.Finish {
		t.Fatalf("plan %+v, %v; want a, then b", plan, err)
	}
	if idle, err := l.as("hq").AgentPlan(context.Background(), IdleApp, 0); err != nil || len(idle.Actions) != 0 {
		t.Fatalf("the idle agent's plan %+v, %v", idle, err)
	}
	if _, err := l.as("nor").AgentPlan(context.Background(), "picture", 0); status(err) != http.StatusForbidden {
		t.Fatalf("nor asked for an app of prt: %v", err)
	}
}

func TestALongPollEndsWithAChangeForAgentsOnly(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	first, err := l.as("nor").AgentPlan(context.Background(), "bft", 0)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		time.Sleep(100 * time.Millisecond)
		l.plan(withT0, func(p *runapi.Plan) { p.Message = "no news for an agent" })
		time.Sleep(100 * time.Millisecond)
		l.plan(withT0, armed("p", "prt", "picture", time.Second), armed("n", "nor", "bft", time.Second))
	})
	next, err := l.as("nor").AgentPlan(context.Background(), "bft", first.Revision)
	waiting.Wait()
	if err != nil || len(next.Actions) != 1 || next.Revision <= first.Revision {
		t.Fatalf("plan %+v, %v; want action n at a newer revision than %d", next, err, first.Revision)
	}
	if took := time.Since(began); took > l.config.LongPoll/2 {
		t.Errorf("the news took %s", took)
	}
}

func TestALongPollWithoutAChangeAnswersWithTheSameRevision(t *testing.T) {
	l := newLab(t, func(c *Config) { c.LongPoll = 50 * time.Millisecond })
	l.plan()
	first, err := l.as("nor").AgentPlan(context.Background(), "bft", 0)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.as("nor").AgentPlan(context.Background(), "bft", first.Revision); err != nil || again.Revision != first.Revision {
		t.Fatalf("%+v, %v; want revision %d", again, err, first.Revision)
	}
}

// The requests of a server that ends are cancelled, too.
func TestARequestThatIsGivenUpIsNoFailureOfTheServer(t *testing.T) {
	var logged bytes.Buffer
	l := newLab(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	l.plan()
	for token, path := range map[string]string{"nor": "/v1/agent/plan?app=bft&revision=1", "operator": "/v1/news?since=0&epoch=" + l.server.runs.updates.epoch} {
		ctx, cancel := context.WithCancel(t.Context())
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		request.Header.Set("Authorization", "Bearer "+token)
		cancel()
		answer := httptest.NewRecorder()
		l.server.ServeHTTP(answer, request)
		if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "given up") || logged.Len() > 0 {
			t.Errorf("%s: %d %s, logged %q; want 503, nothing logged", path, answer.Code, answer.Body, &logged)
		}
	}
}

func TestTrueAndFalseAreReadAlikeInEveryQuery(t *testing.T) {
	l := newLab(t)
	l.plan()
	for path, want := range map[string]string{
		"?live=1":                    `"live":{`,
		"?live=yes":                  `want true or false`,
		"/files?digests=yes":         `want true or false`,
		"/files/run.json?follow=yes": `want true or false`,
	} {
		answer, err := l.fetch("/v1/runs/" + runUID + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if refused := strings.HasPrefix(want, "want"); err != nil || !strings.Contains(string(text), want) || refused != (answer.StatusCode == http.StatusBadRequest) {
			t.Errorf("%s: %d %s, %v; want %s", path, answer.StatusCode, text, err, want)
		}
	}
}

func TestAPathBelowAFileIsNoFile(t *testing.T) {
	l := newLab(t)
	l.plan()
	answer, err := l.fetch("/v1/runs/" + runUID + "/files/run.json/x")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusNotFound || !strings.Contains(string(text), "has no file run.json/x") {
		t.Errorf("got %d %s, %v; want 404 with the path", answer.StatusCode, text, err)
	}
}

func TestRevisionsGrowAcrossRestarts(t *testing.T) {
	l := newLab(t)
	last, actions := int64(0), []func(*runapi.Plan){withT0}
	for i := range 3 {
		actions = append(actions, armed(fmt.Sprint("a", i), "nor", "bft", time.Second))
		l.plan(actions...)
		plan, err := l.as("nor").AgentPlan(context.Background(), "bft", last)
		if err != nil || plan.Revision <= last || len(plan.Actions) != i+1 {
			t.Fatalf("plan %+v, %v; want a revision after %d with %d actions", plan, err, last, i+1)
		}
		last = plan.Revision
		l.stop()
		l.start()
	}
}

func TestANewerVersionOfTheActionsTakesThePlaceOfAnOlder(t *testing.T) {
	l := newLab(t)
	l.plan(withT0, armed("a", "nor", "bft", time.Second), armed("b", "nor", "bft", 2*time.Second))
	l.plan(withT0, armed("a", "nor", "bft", time.Second), func(p *runapi.Plan) { p.ArmedVersion = 3 })
	l.plan(withT0) // says nothing of actions
	plan, err := l.as("nor").AgentPlan(context.Background(), "bft", 0)
	if err != nil || len(plan.Actions) != 1 || plan.Actions[0].ID != "a" || plan.ArmedVersion != 3 {
		t.Errorf("plan %+v, %v; want version 3 with action a alone", plan, err)
	}
}

func TestWhatAgentsActedOnCannotChange(t *testing.T) {
	l := newLab(t)
	l.plan(withT0, armed("a", "nor", "bft", time.Second))
	for name, change := range map[string]func(*runapi.Plan){
		"another t0":                func(p *runapi.Plan) { withT0(p); t0 := p.T0.Add(time.Second); p.T0 = &t0 },
		"another time of an action": func(p *runapi.Plan) { armed("a", "nor", "bft", time.Minute)(p); p.ArmedVersion = 2 },
		"another list of a version": armed("b", "nor", "bft", time.Second),
		"an older list":             func(p *runapi.Plan) { armed("a", "nor", "bft", time.Second)(p); p.ArmedVersion = -1 },
		"the run of another name":   func(p *runapi.Plan) { p.Name = "other" },
	} {
		plan := examplePlan()
		change(&plan)
		if _, err := l.as("operator").PutPlan(context.Background(), plan); status(err) != http.StatusConflict {
			t.Errorf("%s: %v, want 409", name, err)
		}
	}
}

func TestAgentsFinishFromThePhaseCollectingOn(t *testing.T) {
	for _, tc := range []struct {
		change func(*runapi.Plan)
		want   bool
	}{
		{func(p *runapi.Plan) { p.Phase = v1alpha1.PhaseRunning }, false},
		{func(p *runapi.Plan) { p.Phase = v1alpha1.PhaseRunning; p.Finish = true }, true},
		{func(p *runapi.Plan) { p.Phase = v1alpha1.PhaseCollecting }, true},
		{func(p *runapi.Plan) { p.Phase = v1alpha1.PhaseFailed }, true},
	} {
		l := newLab(t)
		l.plan(tc.change)
		for token, app := range map[string]string{"nor": "bft", "hq": IdleApp} {
			if plan, err := l.as(token).AgentPlan(context.Background(), app, 0); err != nil || plan.Finish != tc.want {
				t.Errorf("%s: %+v, %v; want finish %v", token, plan, err, tc.want)
			}
		}
	}
}

func TestReportsSurviveARestart(t *testing.T) {
	l := newLab(t)
	l.plan()
	report := runapi.AgentReport{App: "bft", Phase: runapi.AgentRunning, ArmedVersion: 2, ExecutedActions: 1}
	if err := l.as("nor").Report(context.Background(), report); err != nil {
		t.Fatal(err)
	}
	l.stop()
	l.start()
	state, err := l.as("admin").State(context.Background(), runUID)
	if err != nil || len(state.Agents) != 1 || state.Agents[0].Node != "nor" || state.Agents[0].ArmedVersion != 2 || state.Agents[0].ExecutedActions != 1 {
		t.Fatalf("agents %+v, %v", state.Agents, err)
	}
}

// eventsBegin is the Unix time of the first events, nanoseconds.
const eventsBegin = 1_700_000_000_000_000_000

// event of a message, so many nanoseconds after the first.
func event(status string, after int) string {
	return fmt.Sprintf(`{"ts":%d,"instance":"nor/bft","status":%q,"id":"x"}`+"\n", eventsBegin+after, status)
}

func TestCountersFollowTheLogsLineByLineAndSurviveARestart(t *testing.T) {
	l := newLab(t)
	l.plan()
	const inSeconds = `{"ts":1700000000,"instance":"nor/bft","status":"sent","id":"y"}` + "\n" // neither does the analysis count it
	text := event("triggered", 1) + event("sent", 2) + "nonsense\n" + inSeconds + event("received", 9) + event("received", 7) + event("processed", 8)
	torn := len(text) - 10
	ctx := context.Background()
	if _, err := appendLog(ctx, l.as("nor"), "bft", "messages-1.jsonl", 0, text[:torn]); err != nil {
		t.Fatal(err)
	}
	want := runapi.Counters{Triggered: 1, Sent: 1, Received: 2, LastReceivedNanoseconds: eventsBegin + 9}
	l.wantCounters("a torn last line", want)
	l.stop()
	l.start()
	l.wantCounters("a restart", want)
	if _, err := appendLog(ctx, l.as("nor"), "bft", "messages-1.jsonl", int64(torn), text[torn:]); err != nil {
		t.Fatal(err)
	}
	want.Processed = 1
	l.wantCounters("the rest of the line", want)
	l.log("nor", "bft", "stdout-1.log", event("sent", 3))
	l.log("nor", "bft", "messages-1.jsonl", text)
	l.wantCounters("other files and repeated bytes", want)
}

func (l *lab) wantCounters(after string, want runapi.Counters) {
	l.t.Helper()
	if state, err := l.as("admin").State(context.Background(), runUID); err != nil || state.Counters != want {
		l.t.Fatalf("after %s: counters %+v, %v; want %+v", after, state.Counters, err, want)
	}
}

func TestAnAppendAtTheWrongOffsetLearnsTheSize(t *testing.T) {
	l := newLab(t)
	l.plan()
	l.log("nor", "bft", "stdout-1.log", "abc")
	_, err := appendLog(context.Background(), l.as("nor"), "bft", "stdout-1.log", 7, "x")
	if answer, ok := errors.AsType[*client.Error](err); !ok || answer.Status != http.StatusConflict || answer.Size == nil || *answer.Size != 3 {
		t.Fatalf("%v: want 409 with size 3", err)
	}
}

func TestALongAppendIsCompleteAfterManyPieces(t *testing.T) {
	l := newLab(t)
	l.plan()
	text := bytes.Repeat([]byte("0123456789abcde\n"), 100_000)
	// Without a digest; a part that has one is shorter.
	body := fmt.Sprintf(`{"file":"stdout-1.log","bytes":%d}`+"\n%s", len(text), text)
	if got := l.postRaw(body, int64(len(body))); got != http.StatusOK {
		t.Fatalf("answer %d; want 200", got)
	}
	f, err := l.as("admin").File(context.Background(), runUID, "logs/nor/bft/stdout-1.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("read %d bytes, %v; want the same %d", len(got), err, len(text))
	}
}

func TestAFullQuotaIsReportedAndBecomesAGap(t *testing.T) {
	l := newLab(t, func(c *Config) { c.QuotaBytes = 4 })
	l.plan()
	_, err := appendLog(context.Background(), l.as("nor"), "bft", "stdout-1.log", 0, "12345")
	if status(err) != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "quota") {
		t.Fatalf("%v: want 507 that speaks of the quota", err)
	}
	manifest := l.seal()
	l.wantGap(manifest, "log logs/nor/bft/stdout-1.log", "nor", "quota")
}

func TestRefusedLogsAreNamedUpToABound(t *testing.T) {
	l := newLab(t)
	l.plan()
	r := l.server.runs.get(runUID)
	for i := range maxRefused {
		r.refused[fmt.Sprint("logs/nor/bft/", i)] = "full"
	}
	for i := range 3 {
		if err := r.recordRefused(fmt.Sprint("logs/nor/bft/more-", i), "full"); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.refused) != maxRefused+1 || r.refused[otherRefused] != "full" {
		t.Errorf("%d logs named; want %d and one line for the others", len(r.refused), maxRefused)
	}
}

func TestALogThatWasRefusedForSeveralReasonsNamesEachOnce(t *testing.T) {
	l := newLab(t)
	l.plan()
	const log = "logs/nor/bft/stdout-1.log"
	for _, reason := range []error{archive.ErrQuota, archive.ErrFull, archive.ErrQuota, archive.ErrFull} {
		for used := range 2 {
			if err := l.server.runs.get(runUID).recordRefused(log, fmt.Sprintf("%v: %d bytes", reason, used)); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := "the run's quota is used up: 0 bytes; then the archive's volume is full: 0 bytes"
	var state runapi.StateRecord
	if err := l.server.runs.get(runUID).files.ReadJSON(stateFile, &state); err != nil || state.Refused[log] != want {
		t.Errorf("the record says %q, %v; want %q", state.Refused[log], err, want)
	}
}

func TestAResultWithoutRoomLeavesNoneOfAnEarlierAnalysis(t *testing.T) {
	l := newLab(t, func(c *Config) { c.QuotaBytes = 4 })
	l.plan()
	put := func(text string) error {
		return l.as("workflow").PutResult(t.Context(), runUID, "messages.csv", strings.NewReader(text))
	}
	if err := put("old"); err != nil {
		t.Fatal(err)
	}
	if err := put("newer"); status(err) != http.StatusInsufficientStorage {
		t.Fatalf("%v: want 507", err)
	}
	if _, err := l.as("admin").File(t.Context(), runUID, "results/messages.csv"); status(err) != http.StatusNotFound {
		t.Errorf("the table is there still (%v); want 404", err)
	}
	if err := put("next"); err != nil || l.file("results/messages.csv") != "next" {
		t.Errorf("a table in all of the quota: %v; want it taken", err)
	}
}

func TestResultsHaveAQuotaOfTheirOwn(t *testing.T) {
	l := newLab(t, func(c *Config) { c.QuotaBytes = 10 })
	l.plan()
	put := func(name, text string) error {
		return l.as("workflow").PutResult(context.Background(), runUID, name, strings.NewReader(text))
	}
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"a.csv", "123456", 0}, {"a.csv", "12345678", 0}, {"b.csv", "123", http.StatusInsufficientStorage}, {"b.csv", "12", 0},
	} {
		if err := put(c.name, c.text); status(err) != c.want {
			t.Errorf("%d bytes of %s: %v; want status %d", len(c.text), c.name, err, c.want)
		}
	}
}

func (l *lab) seal() runapi.Manifest {
	l.t.Helper()
	manifest, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{WaitSeconds: 0.01})
	if err != nil {
		l.t.Fatal(err)
	}
	return manifest
}

func (l *lab) wantGap(manifest runapi.Manifest, what, node, reason string) {
	l.t.Helper()
	for _, gap := range manifest.Gaps {
		if gap.What == what && gap.Node == node && strings.Contains(gap.Reason, reason) {
			return
		}
	}
	l.t.Errorf("no gap %q of node %q with reason %q in %+v", what, node, reason, manifest.Gaps)
}

func (l *lab) completeRun() {
	l.plan(withT0)
	l.log("nor", "bft", "agent.jsonl", "{}\n")
	l.log("nor", "bft", "messages-1.jsonl", event("sent", 1))
	l.log("prt", "picture", "agent.jsonl", "{}\n")
	l.log("prt", "picture", "messages-1.jsonl", "")
	l.events(podEvent("e0", "Scheduled", 1, 0))
}

func TestTheSealWaitsForEveryAgent(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	l.report("nor", "bft", runapi.AgentDone)
	var late sync.WaitGroup
	late.Go(func() {
		plan, err := l.as("prt").AgentPlan(context.Background(), "picture", 0)
		for err == nil && !plan.Finish {
			plan, err = l.as("prt").AgentPlan(context.Background(), "picture", plan.Revision)
		}
		if err != nil {
			t.Error(err)
		}
		l.report("prt", "picture", runapi.AgentDone)
	})
	began := time.Now()
	manifest, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{WaitSeconds: 30})
	late.Wait()
	if err != nil || time.Since(began) > 10*time.Second || len(manifest.Gaps) != 0 {
		t.Fatalf("sealed after %s with %+v, %v; want no gap", time.Since(began), manifest.Gaps, err)
	}
	sums := 0
	for _, file := range manifest.Files {
		if len(file.SHA256) == 64 {
			sums++
		}
	}
	if sums != 5 {
		t.Errorf("%d files with a checksum in %+v; want the 4 logs and the events", sums, manifest.Files)
	}
	again, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{WaitSeconds: 30})
	if err != nil || len(again.Files) < 5 {
		t.Fatalf("sealed again: %+v, %v", again, err)
	}
	if _, err := appendLog(context.Background(), l.as("nor"), "bft", "new.log", 0, "x"); status(err) != http.StatusGone {
		t.Errorf("append after the seal: %v, want 410", err)
	}
}

func TestTheSealWaitsForAnAgentThatHasGivenItsAppUp(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	l.report("nor", "bft", runapi.AgentDone)
	l.report("prt", "picture", runapi.AgentFailed)
	var late sync.WaitGroup
	late.Go(func() {
		time.Sleep(300 * time.Millisecond) // its other instances are stopped and shipped
		l.log("prt", "picture", "stdout-1.log", "last words\n")
		l.report("prt", "picture", runapi.AgentDone)
	})
	manifest, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{WaitSeconds: 30})
	late.Wait()
	if err != nil || len(manifest.Gaps) != 0 {
		t.Fatalf("sealed with %+v, %v; want no gap", manifest.Gaps, err)
	}
	if !slices.ContainsFunc(manifest.Files, func(f runapi.ManifestFile) bool { return f.Path == "logs/prt/picture/stdout-1.log" }) {
		t.Errorf("files %+v; want the last words among them", manifest.Files)
	}
}

func TestAFailedAgentThatDidNotShipToItsEndIsAGap(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	l.report("nor", "bft", runapi.AgentDone)
	l.report("prt", "picture", runapi.AgentFailed)
	l.wantGap(l.seal(), "logs of prt/picture", "prt", "whose last report had phase failed")
}

func TestFinishingDoesNotUndoWhatTheOperatorPutsMeanwhile(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	r := l.server.runs.get(runUID)
	for i := range int64(50) {
		end := i + 1
		var both sync.WaitGroup
		both.Go(func() { l.plan(withT0, func(p *runapi.Plan) { p.MeasureEndNanoseconds = &end }) })
		both.Go(func() {
			if err := r.finish(); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		state, err := r.snapshot()
		if err != nil || state.Plan.MeasureEndNanoseconds == nil || *state.Plan.MeasureEndNanoseconds != end || !state.Plan.Finish {
			t.Fatalf("round %d: plan %+v, %v; want the operator's end of the measurement, and finish", i, state.Plan, err)
		}
	}
}

func TestTheSealNamesWhatIsMissing(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	l.log("nor", "bft", "agent.jsonl", `{"ts":`)
	l.report("nor", "bft", runapi.AgentRunning)
	manifest := l.seal()
	l.wantGap(manifest, "logs of nor/bft", "nor", "whose last report had phase running")
	l.wantGap(manifest, "log logs/nor/bft/messages-1.jsonl", "nor", "shipped no such file")
	l.wantGap(manifest, "log logs/nor/bft/agent.jsonl", "nor", "incomplete")
	l.wantGap(manifest, "logs of prt/picture", "prt", "never reported")
}

func TestTheSealNamesTheMissingMessageLogsOfAppsThatMustHaveOne(t *testing.T) {
	l := newLab(t)
	l.plan(withT0, func(p *runapi.Plan) {
		p.Nodes[0].Apps = append(p.Nodes[0].Apps, runapi.PlannedApp{Name: "voice", Kind: "mgen", Instances: []string{"nor/voice"}},
			runapi.PlannedApp{Name: "speaker", Kind: "image", Instances: []string{"nor/speaker"}, Publishes: true},
			runapi.PlannedApp{Name: "listener", Kind: "image", Instances: []string{"nor/listener"}, Subscribes: true})
	})
	for _, app := range []string{"voice", "speaker", "listener"} {
		l.log("nor", app, "agent.jsonl", "{}\n")
		l.report("nor", app, runapi.AgentDone)
	}
	manifest := l.seal()
	l.wantGap(manifest, "log logs/nor/voice/messages-1.jsonl", "nor", "shipped no such file")
	l.wantGap(manifest, "log logs/nor/listener/messages-1.jsonl", "nor", "shipped no such file")
	for _, gap := range manifest.Gaps {
		if strings.Contains(gap.What, "speaker") {
			t.Errorf("%+v; want none of an own app that receives nothing", gap)
		}
	}
}

func TestTheSealDoesNotWaitForALostNode(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	l.report("nor", "bft", runapi.AgentDone)
	if err := l.as("operator").Incident(context.Background(), runUID, runapi.Incident{What: "NodeFailed", Node: "prt", FromSeconds: 3, Reason: "pod evicted"}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	manifest, err := l.as("operator").Seal(context.Background(), runUID, runapi.SealRequest{WaitSeconds: 60})
	if err != nil || time.Since(began) > 10*time.Second {
		t.Fatalf("sealed after %s, %v", time.Since(began), err)
	}
	l.wantGap(manifest, "logs of prt/picture", "prt", "pod evicted")
}

func TestRadioSamplesThatEndTooEarlyAreAGap(t *testing.T) {
	l := newLab(t)
	end := int64(10 * time.Second)
	l.plan(withT0, func(p *runapi.Plan) {
		p.MeasureEndNanoseconds = &end
		p.Spec.Networks = []v1alpha1.Network{{Name: "wan"}}
	})
	sample := fmt.Sprintf(`{"ts":%d,"network":"wan","node":"nor"}`+"\n", time.Date(2026, 1, 2, 3, 4, 8, 0, time.UTC).UnixNano())
	if _, err := l.as("radiod").AppendRadio(context.Background(), "host-a", runUID, 0, strings.NewReader(sample)); err != nil {
		t.Fatal(err)
	}
	manifest := l.seal()
	l.wantGap(manifest, "radio/host-a.jsonl", "", "up to the end")
}

func TestRadioLogsWithoutASampleAreAGap(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 20, 0, time.UTC).UnixNano()
	for lines, named := range map[string]bool{
		"": true,
		`{"ts":%d,"host":"host-a","kernel":"6.1"}`:                                                           true,
		`{"ts":%d,"capture":"run","network":"wan","node":"nor"}`:                                             true,
		`{"ts":%d,"network":"wan","node":"nor","framesSent":0,"bytesSent":0}`:                                false,
		`{"ts":%d,"network":"wan","node":"nor","slotsMissedFrom":1767323050000000000,"slots":1,"seconds":1}`: true,
	} {
		l := newLab(t)
		end := int64(10 * time.Second)
		l.plan(withT0, func(p *runapi.Plan) {
			p.MeasureEndNanoseconds = &end
			p.Spec.Networks = []v1alpha1.Network{{Name: "wan"}}
		})
		if lines != "" {
			if _, err := l.as("radiod").AppendRadio(t.Context(), "host-a", runUID, 0, strings.NewReader(fmt.Sprintf(lines+"\n", at))); err != nil {
				t.Fatal(err)
			}
		}
		gaps := l.seal().Gaps
		if slices.ContainsFunc(gaps, func(g runapi.Gap) bool { return g.What == "radio samples" }) != named {
			t.Errorf("log %q: gaps %+v; want radio samples among them: %v", lines, gaps, named)
		}
	}
}

func TestResultsTakeTheLastPhase(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	if err := l.as("workflow").PutResult(context.Background(), runUID, "results.json", strings.NewReader(`{"schemaVersion":1,"phase":"Analysing"}`)); err != nil {
		t.Fatal(err)
	}
	state := l.plan(withT0, func(p *runapi.Plan) { p.Phase = v1alpha1.PhaseSucceeded })
	if state.Results == nil || state.Results.Phase != "Succeeded" {
		t.Fatalf("results %+v, want phase Succeeded", state.Results)
	}
}

func TestTheListOfRunsHasTheVerdictOfTheNewestResults(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	listed := func() string {
		runs, err := l.as("admin").Runs(t.Context(), "", "")
		switch {
		case err != nil || len(runs) != 1:
			return fmt.Sprintf("%+v, %v", runs, err)
		case runs[0].KeptUp == nil:
			return "none"
		}
		return strconv.FormatBool(*runs[0].KeptUp)
	}
	steps := []struct{ results, want string }{{"", "none"}, {`{"schemaVersion":2}`, "none"}, {`{"schemaVersion":2,"verdict":{"keptUp":false}}`, "false"}, {`{"schemaVersion":2,"verdict":{"keptUp":true},"gaps":[{"what":"verdict"}]}`, "true"}}
	for _, step := range steps {
		if step.results != "" {
			if err := l.as("workflow").PutResult(t.Context(), runUID, "results.json", strings.NewReader(step.results)); err != nil {
				t.Fatal(err)
			}
		}
		if got := listed(); got != step.want {
			t.Errorf("with results %s the list says %s; want %s", step.results, got, step.want)
		}
	}
	l.stop()
	l.start()
	if got := listed(); got != "true" {
		t.Errorf("after a restart the list says %s; want true", got)
	}
}

// blocked keeps a record of the run from being written, until the returned function is called.
func (l *lab) blocked(record string) (unblock func()) {
	l.t.Helper()
	file := filepath.Join(l.dir, "team-nor", "quickstart", runUID, record)
	if err := errors.Join(os.RemoveAll(file), os.MkdirAll(filepath.Join(file, "in the way"), 0o750)); err != nil {
		l.t.Fatal(err)
	}
	return func() {
		l.t.Helper()
		if err := os.RemoveAll(file); err != nil {
			l.t.Fatal(err)
		}
	}
}

func TestResultsHaveTheLastPhaseBeforeTheRecordTellsTheOperatorSo(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	if err := l.as("workflow").PutResult(t.Context(), runUID, "results.json", strings.NewReader(`{"schemaVersion":1,"phase":"Analysing"}`)); err != nil {
		t.Fatal(err)
	}
	l.blocked("run.json")
	plan := examplePlan()
	withT0(&plan)
	plan.Phase = v1alpha1.PhaseSucceeded
	if _, err := l.as("operator").PutPlan(t.Context(), plan); err == nil {
		t.Fatal("a plan was taken that could not be written")
	}
	state, err := l.as("operator").State(t.Context(), runUID)
	if err != nil || state.Plan.Phase == v1alpha1.PhaseSucceeded || state.Results.Phase != "Succeeded" {
		t.Errorf("plan in phase %s, results in %+v, %v; want the results first, as nobody repeats a plan that is there", state.Plan.Phase, state.Results, err)
	}
}

func TestWhatCouldNotBeWrittenIsWrittenWhenItIsSentAgain(t *testing.T) {
	for what, send := range map[string]func(l *lab) error{
		"report": func(l *lab) error {
			return l.as("nor").Report(t.Context(), runapi.AgentReport{App: "bft", Phase: runapi.AgentRunning})
		},
		"incident": func(l *lab) error {
			return l.as("operator").Incident(t.Context(), runUID, runapi.Incident{What: "NodeFailed", Node: "nor", Reason: "gone"})
		},
		"seal": func(l *lab) error {
			_, err := l.as("workflow").Seal(t.Context(), runUID, runapi.SealRequest{})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLab(t)
			l.plan()
			unblock := l.blocked("state.json")
			if err := send(l); err == nil {
				t.Fatal("it was taken, and could not be written")
			}
			unblock()
			if err := send(l); err != nil {
				t.Fatal(err)
			}
			l.stop()
			l.start()
			state, err := l.as("admin").State(t.Context(), runUID)
			if err != nil || len(state.Agents)+len(state.Incidents) == 0 && !state.Sealed {
				t.Errorf("after a restart: %+v, %v; want what was sent twice", state, err)
			}
		})
	}
}

func TestADeletedRunIsGone(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	if err := l.as("admin").Delete(context.Background(), runUID); err != nil {
		t.Fatal(err)
	}
	if _, err := l.as("admin").State(context.Background(), runUID); !client.IsNotFound(err) {
		t.Errorf("state of a deleted run: %v", err)
	}
	if _, err := l.as("nor").AgentPlan(context.Background(), "bft", 0); status(err) != http.StatusForbidden {
		t.Errorf("an agent of a deleted run: %v", err)
	}
}

func TestAUserDeletesARunOnceItHasEnded(t *testing.T) {
	l := newLab(t)
	ofPRT := planOfTeam("team-prt", runUID)
	for _, phase := range []v1alpha1.ExperimentPhase{v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning, v1alpha1.PhaseCollecting} {
		l.plan(ofPRT, func(p *runapi.Plan) { p.Phase = phase })
		err := l.as("prt-admin").Delete(t.Context(), runUID)
		if status(err) != http.StatusConflict || !strings.Contains(err.Error(), "goes on: stop experiment quickstart first") {
			t.Errorf("in phase %s: %v; want 409 and what to do", phase, err)
		}
	}
	if err := l.as("operator").Delete(t.Context(), runUID); err != nil {
		t.Errorf("the operator takes a start back: %v", err)
	}
	l.plan(ofPRT, ended)
	if err := l.as("prt-admin").Delete(t.Context(), runUID); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

func TestADeletionKeepsNobodyWaiting(t *testing.T) {
	l := newLab(t)
	l.plan()
	begun, finish, deleted := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	l.server.runs.erase = func(discarded string) error {
		close(begun)
		<-finish
		return l.server.store.Erase(discarded)
	}
	go func() { deleted <- l.as("admin").Delete(context.Background(), runUID) }()
	<-begun
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := l.as("admin").State(within, runUID); !client.IsNotFound(err) {
		t.Errorf("state of the run while its files are deleted: %v", err)
	}
	if _, err := l.as("operator").PutPlan(within, examplePlan()); err != nil {
		t.Errorf("the same run begins again: %v", err)
	}
	if err := l.as("nor").Report(within, runapi.AgentReport{App: "bft", Phase: runapi.AgentReady}); err != nil {
		t.Errorf("its agent reports: %v", err)
	}
	close(finish)
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if state, err := l.as("admin").State(within, runUID); err != nil || len(state.Agents) != 1 {
		t.Errorf("the new run after the deletion: %+v, %v", state.Agents, err)
	}
}

func TestRetentionDeletesOldRunsOnly(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(c *Config) { c.Now = func() time.Time { return now } })
	l.plan(ended)
	now = now.Add(time.Hour)
	l.plan(ended, func(p *runapi.Plan) { p.UID = "run-2" })
	deleted, err := l.server.runs.expire(func(string) time.Duration { return 30 * time.Minute })
	if err != nil || len(deleted) != 1 || deleted[0].UID != runUID {
		t.Fatalf("deleted %v, %v; want only %s", deleted, err, runUID)
	}
}

// expired are the UIDs of the runs that a retention deletes now.
func (l *lab) expired(keeps time.Duration) (uids []string) {
	l.t.Helper()
	deleted, err := l.server.runs.expire(func(string) time.Duration { return keeps })
	if err != nil {
		l.t.Fatal(err)
	}
	for _, key := range deleted {
		uids = append(uids, key.UID)
	}
	return uids
}

func TestTheRetentionOfALiveRunBeginsWithItsEnd(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(c *Config) { c.Now = func() time.Time { return now } })
	l.plan(withT0)
	now = now.Add(96 * time.Hour)
	l.stop()
	l.start()
	if gone := l.expired(72 * time.Hour); gone != nil {
		t.Fatalf("deleted %v after a restart; the run goes on", gone)
	}
	l.plan(withT0, ended)
	now = now.Add(71 * time.Hour)
	if gone := l.expired(72 * time.Hour); gone != nil {
		t.Fatalf("deleted %v; the run ended 71 hours ago", gone)
	}
	now = now.Add(2 * time.Hour)
	if gone := l.expired(72 * time.Hour); len(gone) != 1 {
		t.Errorf("deleted %v; the run ended 73 hours ago", gone)
	}
}

func TestARunWithoutAPlanExpiresALongTimeAfterTheServersStart(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(c *Config) { c.Now = func() time.Time { return now } })
	if _, err := l.server.runs.ensure(keyOf(examplePlan())); err != nil {
		t.Fatal(err)
	}
	now = now.Add(96 * time.Hour)
	l.stop()
	l.start()
	if gone := l.expired(72 * time.Hour); gone != nil {
		t.Fatalf("deleted %v at the start; the operator had no time to give it a plan", gone)
	}
	now = now.Add(73 * time.Hour)
	if gone := l.expired(72 * time.Hour); len(gone) != 1 {
		t.Errorf("deleted %v; nobody has written to it for 73 hours", gone)
	}
}

func TestACallerIsKeptWithinItsRate(t *testing.T) {
	now := time.Now()
	l := newLab(t, func(c *Config) { c.Now = func() time.Time { return now } })
	l.plan()
	refused := 0
	for range requestBurst + 5 {
		if _, err := l.as("admin").Runs(context.Background(), "none", ""); status(err) == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 5 {
		t.Errorf("%d requests refused, want the 5 beyond the burst", refused)
	}
	if _, err := l.as("operator").Runs(context.Background(), "none", ""); err != nil {
		t.Errorf("another caller was refused too: %v", err)
	}
}

func TestMadeUpTokensDoNotKeepTheAPIServerBusy(t *testing.T) {
	at := time.Now()
	l := newLab(t, func(c *Config) { c.Now = func() time.Time { return at } })
	l.plan()
	refused := 0
	for i := range reviewBurst + 5 {
		if _, err := l.as(fmt.Sprint("made up ", i)).Runs(context.Background(), "", ""); status(err) == http.StatusTooManyRequests {
			refused++
		}
	}
	if want := 5 + 1; refused != want { // the operator's token was new as well
		t.Errorf("%d requests refused; want the %d beyond the burst", refused, want)
	}
	if _, err := l.as("operator").State(context.Background(), runUID); err != nil {
		t.Errorf("a token that is known: %v; want it to pass all the same", err)
	}
}

func TestTokensAreRememberedForAMinuteAtMost(t *testing.T) {
	now := time.Now()
	asked := 0
	cache := NewTokenCache(authenticatorFunc(func() (Identity, error) { asked++; return Identity{Username: "u"}, nil }), func() time.Time { return now })
	for _, step := range []struct {
		later time.Duration
		asked int
	}{{0, 1}, {59 * time.Second, 1}, {2 * time.Second, 2}} {
		now = now.Add(step.later)
		if _, err := cache.Authenticate(context.Background(), "t"); err != nil || asked != step.asked {
			t.Fatalf("asked %d times, %v; want %d", asked, err, step.asked)
		}
	}
}

type authenticatorFunc func() (Identity, error)

func (f authenticatorFunc) Authenticate(context.Context, string) (Identity, error) { return f() }

func TestMetricsCountRequestsAndSpace(t *testing.T) {
	l := newLab(t)
	l.plan()
	answer := httptest.NewRecorder()
	l.server.Metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	text := answer.Body.Bytes()
	for _, want := range []string{`vignette_server_requests_total{route="PUT /v1/runs/{uid}",status="200"} 1`, "vignette_server_runs 1", "vignette_server_volume_free_bytes ",
		// From the start, or the first refusals are no increase.
		`vignette_server_refused_appends_total{reason="quota"} 0`, `vignette_server_refused_appends_total{reason="full"} 0`, `vignette_server_refused_appends_total{reason="damaged"} 0`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestUnfinishedLinesOfARunHaveABound(t *testing.T) {
	tally, plan := newTally(), examplePlan()
	app := &plan.Nodes[0].Apps[0]
	app.Instances = make([]string, 40)
	tally.plan(plan)
	kept := func() (bytes int) {
		for _, line := range tally.partial {
			bytes += len(line)
		}
		return bytes
	}
	line := bytes.Repeat([]byte("x"), maxLine)
	tally.add("logs/nor/bft/messages-41.jsonl", line)
	tally.add("logs/nor/bft/messages-x.jsonl", line)
	if got := kept(); got != 0 {
		t.Errorf("%d bytes are kept of logs that the plan does not have", got)
	}
	logs := messageLogs("nor", *app)
	for _, p := range logs {
		tally.add(p, line)
	}
	if got := kept(); got == 0 || got > maxPartialBytes {
		t.Errorf("%d bytes are kept, want at most %d", got, maxPartialBytes)
	}
	tally.add(logs[0], []byte("\n"))
	tally.add(logs[39], []byte(event("sent", 1)[:20]))
	tally.add(logs[39], []byte(event("sent", 1)[20:]))
	if got := tally.snapshot().Sent; got != 1 {
		t.Errorf("%d messages are counted after a line has ended, want 1", got)
	}
	tally.forgetPartial()
	if kept() != 0 || tally.partialBytes != 0 {
		t.Errorf("a sealed run keeps %d bytes, and counts %d", kept(), tally.partialBytes)
	}
}

// FuzzTally: however a log is cut into pieces, its counters are the same.
func FuzzTally(f *testing.F) {
	f.Add([]byte(event("sent", 1)+"x\n"+event("received", 2)), uint8(3))
	f.Fuzz(func(t *testing.T, log []byte, size uint8) {
		whole, pieces := newTally(), newTally()
		whole.plan(examplePlan())
		pieces.plan(examplePlan())
		const p = "logs/nor/bft/messages-1.jsonl"
		whole.add(p, log)
		for rest := log; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			pieces.add(p, rest[:n])
			rest = rest[n:]
		}
		if whole.snapshot() != pieces.snapshot() {
			t.Fatalf("whole %+v, in pieces %+v", whole.snapshot(), pieces.snapshot())
		}
	})
}

// FuzzRequests: no path, method, body or token makes the server panic or answer 500.
func FuzzRequests(f *testing.F) {
	f.Add("GET", "/v1/runs/run-1/files/../../x", "", "")
	f.Add("PUT", "/v1/runs/run-1", `{"uid":"run-1","namespace":"a","name":"b"}`, "operator")
	f.Add("POST", "/v1/agent/logs/bft", `{"file":"a.log","offset":0,"bytes":2}`+"\nx\n"+`{"file":"..","offset":-1,"bytes":1}`+"\nx", "nor")
	f.Add("POST", "/v1/agent/logs/bft", `{"file":"messages-1.jsonl"}`+"\n"+`{"file":"b","bytes":9}`+"\nx", "nor")
	f.Add("POST", "/v1/agent/report", `{"app":"bft","phase":"done"}`, "nor")
	f.Add("POST", "/v1/radio/h/run-1?offset=0", "{}", "radiod")
	f.Add("POST", "/v1/runs/run-1/seal", `{"waitSeconds":0}`, "workflow")
	f.Add("PUT", "/v1/runs/run-1/files/results/results.json", `{}`, "workflow")
	server, err := New(Config{Dir: f.TempDir(), Authenticator: everybody, LongPoll: time.Millisecond, QuotaBytes: 1 << 20,
		Policy: Policy{OperatorUser: operatorUser, RadiodUser: radiodUser}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		f.Fatal(err)
	}
	run, err := server.runs.ensure(keyOf(examplePlan()))
	if err == nil {
		err = run.putPlan(examplePlan())
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, target, body, token string) {
		request, err := http.NewRequest(method, "http://server"+target, strings.NewReader(body))
		if err != nil || strings.Contains(token, "\n") {
			return
		}
		if method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/seal") && len(body) > 17 {
			return // waits as long as it is told
		}
		if strings.Contains(request.URL.RawQuery, "follow") {
			return // goes on until the run is sealed
		}
		request.RemoteAddr = "192.0.2.1:1"
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer := httptest.NewRecorder()
		server.limit, server.reviews = limiter{perSecond: rate.Inf}, limiter{perSecond: rate.Inf}
		server.ServeHTTP(answer, request)
		if answer.Code >= 500 && answer.Code != http.StatusInsufficientStorage && token != "outage" {
			t.Fatalf("%s %s as %q: %d %s", method, target, token, answer.Code, answer.Body)
		}
		if strings.Contains(answer.Body.String(), `"status":500`) {
			t.Fatalf("%s %s as %q: a part of %s", method, target, token, answer.Body)
		}
	})
}

func TestResultsMayBeInFoldersButNotOutsideOfResults(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	workflow := l.as("workflow")
	if err := workflow.PutResult(context.Background(), runUID, "plots/delays-over-time.png", strings.NewReader("\x89PNG\r\n\x1a\n\x00")); err != nil {
		t.Fatal(err)
	}
	var drawn bool
	for _, file := range l.seal().Files {
		drawn = drawn || file.Path == "results/plots/delays-over-time.png" && file.Bytes == 9
	}
	if !drawn {
		t.Error("results/plots/delays-over-time.png with its 9 bytes is not in the manifest")
	}
	for _, path := range []string{"", "plots/.hidden", "plots//x", "a/b/c/d/e/f/g/h"} {
		if err := workflow.PutResult(context.Background(), runUID, path, strings.NewReader("x")); err == nil {
			t.Errorf("results/%s was taken; want it refused", path)
		}
	}
}

func TestAPlanOfAnEarlierOperatorKeepsTheStreams(t *testing.T) {
	known, without := examplePlan(), examplePlan()
	without.Streams = nil
	merged, err := mergePlan(known, without)
	if err != nil || merged.Streams == nil {
		t.Errorf("streams %v, %v; want those of before", merged.Streams, err)
	}
}
