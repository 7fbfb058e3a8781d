package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/reference"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

// serveAnalysis listens as the analysis does; a nil handler leaves the socket without one.
func serveAnalysis(t *testing.T, handler http.HandlerFunc) func(*Config) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	if handler != nil {
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		analysis := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
		go func() { _ = analysis.Serve(listener) }()
		t.Cleanup(func() { _ = analysis.Close() })
	}
	return func(c *Config) { c.AnalysisSocket = socket }
}

// analysedRuns has two runs with results, and one without.
func analysedRuns(t *testing.T, change ...func(*Config)) *lab {
	t.Helper()
	l := newLab(t, change...)
	for _, uid := range []string{"run-1", "run-2", "raw"} {
		l.plan(func(p *runapi.Plan) { p.UID = uid })
		if uid == "raw" {
			continue
		}
		if err := l.as("workflow").PutResult(t.Context(), uid, "results.json", strings.NewReader(`{"schemaVersion":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func comparison(ctx context.Context, c *client.Client, form, by string, uids ...string) (string, error) {
	body, err := c.Compare(ctx, uids, client.Comparison{Format: form, By: by})
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return string(text), err
}

func TestRunsAreComparedByTheAnalysisBesideTheServer(t *testing.T) {
	l := analysedRuns(t, serveAnalysis(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Method, " ", r.URL.RequestURI(), " ", r.Header.Get("Content-Type"), " ", string(text))
	}))
	got, err := comparison(t.Context(), l.as("admin"), "html", "link.delay", "run-2", "run-1")
	want := "POST /compare application/x-www-form-urlencoded by=link.delay&format=html&run=team-nor%2Fquickstart%2Frun-2&run=team-nor%2Fquickstart%2Frun-1"
	if err != nil || got != want {
		t.Errorf("asked %s, %v; want %s", got, err, want)
	}
}

func TestReferenceFiguresReachTheAnalysis(t *testing.T) {
	l := analysedRuns(t, serveAnalysis(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		fmt.Fprintf(w, "%q %q", r.PostForm.Get("referenceName"), r.PostForm.Get("reference"))
	}))
	how := client.Comparison{Format: "json", Reference: "run,metric,value,note\na b,sent,3,\"50 % & more; é\"\n", ReferenceName: "my paper.csv"}
	body, err := l.as("admin").Compare(t.Context(), []string{"run-1", "run-2"}, how)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if want := fmt.Sprintf("%q %q", how.ReferenceName, how.Reference); err != nil || string(got) != want {
		t.Errorf("asked %s, %v; want %s", got, err, want)
	}
}

func TestAsManyRunsAreComparedAsARoundOfACampaignHas(t *testing.T) {
	began, planned := time.Now(), atomic.Int64{}
	l := newLab(t, serveAnalysis(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		fmt.Fprint(w, len(r.PostForm["run"]), " ", r.PostForm["run"][runapi.MaxCompared-1])
	}), func(c *Config) {
		// As slow as the server lets a caller be, however fast this machine is.
		c.Now = func() time.Time { return began.Add(time.Duration(planned.Load()) * time.Second / requestsPerSecond) }
	})
	uids := make([]string, runapi.MaxCompared)
	for i := range uids {
		planned.Add(1)
		// As long as a UID in Kubernetes.
		uids[i] = fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		key := l.plan(func(p *runapi.Plan) { p.UID = uids[i] }).Plan
		results := filepath.Join(l.dir, key.Namespace, key.Name, key.UID, "results")
		if err := errors.Join(os.MkdirAll(results, 0o755), os.WriteFile(filepath.Join(results, "results.json"), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// The limits of a header are those of the program.
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	program := NewHTTP(t.Context(), "", l.server, time.Minute, time.Minute)
	go func() { _ = program.Serve(listener) }()
	t.Cleanup(func() { _ = program.Close() })
	c := client.New("http://"+listener.Addr().String(), nil, func() (string, error) { return "admin", nil })
	// Each byte of these figures is three in the address.
	body, err := c.Compare(t.Context(), uids, client.Comparison{Format: "json", Reference: strings.Repeat("\n", reference.MaxBytes), ReferenceName: "paper.csv"})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if want := "1000 team-nor/quickstart/" + uids[runapi.MaxCompared-1]; err != nil || string(got) != want {
		t.Errorf("asked %s, %v; want %s", got, err, want)
	}
}

func TestAComparisonIsDataForABrowser(t *testing.T) {
	l := analysedRuns(t, serveAnalysis(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/evil")
		fmt.Fprint(w, "<script>")
	}))
	for form, want := range comparisonTypes {
		answer, err := l.fetch("/v1/compare?run=run-1&run=run-2&format=" + form)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		header := answer.Header
		if header.Get("Content-Type") != want || header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(header.Get("Content-Security-Policy"), "sandbox; default-src 'none'") {
			t.Errorf("%s: header %v; want type %s, no sniffing, and a sandbox", form, header, want)
		}
	}
}

func TestComparisonsThatCannotBeMadeSayWhy(t *testing.T) {
	answers := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	tooMany := make([]string, runapi.MaxCompared+1)
	for name, c := range map[string]struct {
		beside func(*Config)
		token  string
		form   string
		runs   []string
		status int
		says   string
	}{
		"no analysis in the platform": {func(*Config) {}, "admin", "json", []string{"run-1", "run-2"}, 501, "the chart's value server.analysis.enabled is false"},
		"analysis that is not up":     {serveAnalysis(t, nil), "admin", "json", []string{"run-1", "run-2"}, 503, "see the container analysis of the pod vignette-server"},
		"a reason of the analysis":    {serveAnalysis(t, answers(422, `{"error":"by 'x': no such field"}`)), "admin", "json", []string{"run-1", "run-2"}, 422, "by 'x': no such field"},
		"a queue that is full":        {serveAnalysis(t, answers(429, `{"error":"4 wait"}`)), "admin", "json", []string{"run-1", "run-2"}, 429, "4 wait"},
		"nonsense of the analysis":    {serveAnalysis(t, answers(500, "<html>")), "admin", "json", []string{"run-1", "run-2"}, 500, "answered 500"},
		"one run":                     {func(*Config) {}, "admin", "json", []string{"run-1"}, 400, "1 times run=UID: want 2 to 1000 runs"},
		"too many runs":               {func(*Config) {}, "admin", "json", tooMany, 400, "1001 times run=UID"},
		"an unknown form":             {func(*Config) {}, "admin", "pdf", []string{"run-1", "run-2"}, 400, `format "pdf": want json, csv, text, latex or html`},
		"a run that is not there":     {func(*Config) {}, "admin", "json", []string{"run-1", "nope"}, 404, `no run has uid "nope"`},
		"a run without results":       {func(*Config) {}, "admin", "json", []string{"run-1", "raw"}, 409, "run team-nor/quickstart/raw has no results yet"},
		"somebody without a token":    {func(*Config) {}, "", "json", []string{"run-1", "nope"}, 401, "reading run run-1 needs a token"},
		"somebody of another team":    {func(*Config) {}, "other-workflow", "json", []string{"run-1", "run-2"}, 403, "is not for"},
		"the run's own team":          {func(*Config) {}, "workflow", "json", []string{"run-1", "run-2"}, 501, "server.analysis.enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			l := analysedRuns(t, c.beside)
			_, err := comparison(t.Context(), l.as(c.token), c.form, "", c.runs...)
			if answer, ok := errors.AsType[*client.Error](err); !ok || answer.Status != c.status || !strings.Contains(answer.Message, c.says) {
				t.Errorf("%v; want %d and %q", err, c.status, c.says)
			}
		})
	}
}

func TestATeamsComparisonsWaitForEachOther(t *testing.T) {
	asked, release := make(chan struct{}, 10), make(chan struct{})
	l := analysedRuns(t, serveAnalysis(t, func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	for _, uid := range []string{"prt-1", "prt-2"} {
		l.plan(planOfTeam("team-prt", uid))
		if err := l.as("other-workflow").PutResult(t.Context(), uid, "results.json", strings.NewReader(`{"schemaVersion":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, maxComparisons+1)
	begin := func(uids ...string) {
		_, err := comparison(context.Background(), l.as("admin"), "json", "", uids...)
		ended <- err
	}
	for range maxComparisons + 1 {
		go begin("run-1", "run-2")
	}
	if err := <-ended; status(err) != http.StatusTooManyRequests || !strings.Contains(err.Error(), "8 comparisons of runs of namespace team-nor run or wait: try again when one has ended") {
		t.Errorf("one too many: %v; want 429", err)
	}
	<-asked
	go begin("prt-1", "prt-2")
	<-asked // another team's goes on at once
	if n := len(asked); n != 0 {
		t.Errorf("%d further comparisons were sent to the analysis; want them to wait", n)
	}
	close(release)
	for range maxComparisons + 1 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestAComparisonWhoseClientLeavesGivesUpItsTurn(t *testing.T) {
	c := newComparer("socket", 0)
	runs := []string{"team-a/x/1", "team-b/y/2"}
	end, err := c.begin(t.Context(), runs)
	if err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.begin(left, runs[1:]); err == nil {
		t.Error("a client that has left was served")
	}
	end()
	if len(c.turns) != 0 {
		t.Errorf("%d turns are kept", len(c.turns))
	}
}

func TestAComparisonThatTakesTooLongIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	beside := serveAnalysis(t, func(http.ResponseWriter, *http.Request) { <-release })
	l := analysedRuns(t, beside, func(c *Config) { c.ComparisonTime = 50 * time.Millisecond })
	_, err := comparison(t.Context(), l.as("admin"), "json", "", "run-1", "run-2")
	if answer, ok := errors.AsType[*client.Error](err); !ok || answer.Status != http.StatusGatewayTimeout {
		t.Errorf("%v; want 504", err)
	}
}

func TestAComparisonThatIsTooLargeIsRefused(t *testing.T) {
	l := analysedRuns(t, serveAnalysis(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), maxComparisonBytes+1))
	}))
	_, err := comparison(t.Context(), l.as("admin"), "json", "", "run-1", "run-2")
	if err == nil || !strings.Contains(err.Error(), "the comparison has more than 64 MiB: compare fewer runs") {
		t.Errorf("%v; want it refused", err)
	}
}
