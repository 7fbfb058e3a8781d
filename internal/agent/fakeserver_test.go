package agent

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testtool"
)

// fakeServer is the agent's side of the server, over real HTTP.
type fakeServer struct {
	*httptest.Server
	t       *testing.T
	mu      sync.Mutex
	plan    runapi.AgentPlan
	reports []runapi.AgentReport
	logs    map[string][]byte
	tokens  map[string]bool
	// refuse answers 503 to everything; tear breaks the connection in the middle of an append, once.
	refuse, tear, sealed bool
	// damage spoils a byte of every part on its way; hang answers no logs at all.
	damage, hang bool
	// damaged parts that were refused.
	damaged int
	// full is a log for which there is no space.
	full string
	// requests with logs that were answered.
	requests int
	// movement of the node's platform; movementStatus, if set, is answered instead.
	movement       []byte
	movementStatus int
	// movements that instances report, by their names.
	movements map[string][]byte
	// asked: an agent has asked for the plan.
	asked atomic.Bool
	// slowPhase is the phase whose reports are taken late; late is how many of them have arrived.
	slowPhase runapi.AgentPhase
	late      atomic.Int64
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{t: t, logs: map[string][]byte{}, tokens: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/agent/plan", s.servePlan)
	mux.HandleFunc("POST /v1/agent/report", s.serveReport)
	mux.HandleFunc("POST /v1/agent/logs/{app}", s.serveLogs)
	mux.HandleFunc("GET /v1/agent/movement", s.serveMovement)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		refuse := s.refuse
		s.tokens[r.Header.Get("Authorization")] = true
		s.mu.Unlock()
		if refuse {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *fakeServer) serveMovement(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.movementStatus != 0 {
		http.Error(w, `{"error":"no movement"}`, s.movementStatus)
		return
	}
	if instance := r.URL.Query().Get("instance"); instance != "" {
		_, _ = w.Write(s.movements[instance])
		return
	}
	_, _ = w.Write(s.movement)
}

func (s *fakeServer) servePlan(w http.ResponseWriter, r *http.Request) {
	revision, _ := strconv.ParseInt(r.URL.Query().Get("revision"), 10, 64)
	s.asked.Store(true)
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline) && r.Context().Err() == nil; time.Sleep(5 * time.Millisecond) {
		if s.currentPlan().Revision > revision {
			break
		}
	}
	_ = json.NewEncoder(w).Encode(s.currentPlan())
}

func (s *fakeServer) currentPlan() runapi.AgentPlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan
}

func (s *fakeServer) serveReport(w http.ResponseWriter, r *http.Request) {
	var report runapi.AgentReport
	if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if report.Phase == s.slowPhase {
		s.late.Add(1)
		time.Sleep(300 * time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, report)
}

func (s *fakeServer) serveLogs(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return
	}
	body := bufio.NewReader(r.Body)
	answers := []runapi.LogAnswer{}
	for {
		header, err := body.ReadBytes('\n')
		if err != nil {
			break
		}
		var part runapi.LogPart
		if err := json.Unmarshal(header, &part); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		content := make([]byte, part.Bytes)
		if _, err := io.ReadFull(body, content); err != nil {
			return
		}
		answers = append(answers, s.appendLog(part, content))
	}
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(answers)
}

func (s *fakeServer) appendLog(part runapi.LogPart, content []byte) runapi.LogAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage && len(content) > 0 {
		content[0] ^= 1
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != part.SHA256 {
		s.damaged++
		return runapi.LogAnswer{Status: http.StatusUnprocessableEntity, Error: "it was damaged"}
	}
	size := int64(len(s.logs[part.File]))
	switch {
	case s.sealed:
		return runapi.LogAnswer{Status: http.StatusGone, Error: "the run is sealed"}
	case strings.ContainsAny(part.File, ": "):
		return runapi.LogAnswer{Status: http.StatusBadRequest, Error: "file name: want letters, digits, dots, hyphens and underscores"}
	case s.full == part.File:
		return runapi.LogAnswer{Status: http.StatusInsufficientStorage}
	case part.Offset != size:
		return runapi.LogAnswer{Status: http.StatusConflict, Error: "offset is not the size", Size: &size}
	case s.tear:
		s.tear = false
		s.logs[part.File] = append(s.logs[part.File], content[:len(content)/2]...) // half arrives, without an answer
		panic(http.ErrAbortHandler)
	}
	s.logs[part.File] = append(s.logs[part.File], content...)
	size += part.Bytes
	return runapi.LogAnswer{Status: http.StatusOK, Size: &size}
}

// set changes the server's state under its lock. The plan gets a new revision.
func (s *fakeServer) set(f func(s *fakeServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
	s.plan.Revision++
}

func (s *fakeServer) log(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.logs[name])
}

// answered returns the number of answered requests with logs.
func (s *fakeServer) answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *fakeServer) lastReport() runapi.AgentReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.reports) == 0 {
		return runapi.AgentReport{}
	}
	return s.reports[len(s.reports)-1]
}

func (s *fakeServer) events(t *testing.T) []runapi.AgentEvent {
	t.Helper()
	var events []runapi.AgentEvent
	for line := range strings.Lines(s.log(eventsFile)) {
		var e runapi.AgentEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("archived event %q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

func (s *fakeServer) event(t *testing.T, name string) (found []runapi.AgentEvent) {
	t.Helper()
	for _, e := range s.events(t) {
		if e.Event == name {
			found = append(found, e)
		}
	}
	return found
}

// node is one agent under test with its folders.
type node struct {
	t       *testing.T
	server  *fakeServer
	config  agentconfig.Config
	options Options
	signals chan os.Signal
	exit    chan int
}

// newNode makes an agent's configuration whose instances run the given shell scripts.
func newNode(t *testing.T, s *fakeServer, scripts ...string) *node {
	dir := t.TempDir()
	n := &node{t: t, server: s, signals: make(chan os.Signal, 4), exit: make(chan int, 1),
		config: agentconfig.Config{Server: s.URL, RunUID: "uid", Node: "nor", App: "bft", StopGraceSeconds: 1},
		options: Options{LogDir: filepath.Join(dir, "log"), RunDir: filepath.Join(dir, "run"), GPSAddress: "127.0.0.1:0", TokenFile: filepath.Join(dir, "token"), CgroupDir: filepath.Join(dir, "cgroup"),
			Stdout: io.Discard, Stderr: testWriter{t}}}
	for i, script := range scripts {
		// Not sh: Debian's starts programs with vfork, in which signals to it can get lost.
		n.config.Instances = append(n.config.Instances, agentconfig.Instance{Name: "nor/bft/" + strconv.Itoa(i+1), Command: []string{"bash", "-c", script}})
	}
	if err := os.WriteFile(n.options.TokenFile, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// run starts the agent. If it still runs at the test's end, it gets a signal.
func (n *node) run() {
	n.t.Helper()
	a, err := New(n.config, n.options)
	if err != nil {
		n.t.Fatal(err)
	}
	exit := make(chan int, 1)
	n.exit = exit
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		exit <- a.Run(n.t.Context(), n.signals)
	}()
	n.t.Cleanup(func() { <-ended })
}

func (n *node) waitExit() int {
	n.t.Helper()
	select {
	case code := <-n.exit:
		return code
	case <-time.After(time.Minute):
		n.t.Fatal("the agent did not end within a minute")
		return -1
	}
}

func (n *node) waitPhase(p runapi.AgentPhase) {
	n.t.Helper()
	waitFor(n.t, "agent phase "+string(p), func() bool { return n.server.lastReport().Phase == p })
}

// waitAsked waits until an agent has asked for the plan: a busy machine takes a while to start one.
func (s *fakeServer) waitAsked() {
	s.t.Helper()
	waitFor(s.t, "an agent's request for its plan", s.asked.Load)
}

// arm sets an action's time, the given duration from now, and returns it. The first one sets T0. The agent must run.
func (s *fakeServer) arm(id string, verb runapi.Verb, in time.Duration) time.Time {
	s.t.Helper()
	s.waitAsked()
	due := time.Now().Add(in)
	s.set(func(s *fakeServer) {
		if s.plan.T0 == nil {
			t0 := time.Now().Round(0)
			s.plan.T0 = &t0
		}
		s.plan.ArmedVersion++
		s.plan.Actions = append(s.plan.Actions, runapi.Action{ID: id, Verb: verb, AtNanoseconds: max(0, due.Sub(*s.plan.T0).Nanoseconds())})
		due = s.plan.T0.Add(time.Duration(s.plan.Actions[len(s.plan.Actions)-1].AtNanoseconds))
	})
	return due
}

func (s *fakeServer) finish() { s.set(func(s *fakeServer) { s.plan.Finish = true }) }

var waitFor = testtool.Eventually

// testWriter shows the agent's messages when a test fails.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// newHostileServer gives the configured answer, and returns its address.
func newHostileServer(t *testing.T, planStatus uint16, plan []byte, logStatus uint16, log []byte) string {
	answer := func(status uint16, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if status < 200 || status > 599 {
				status = 200 + status%400 // Go's server refuses an invalid status.
			}
			w.WriteHeader(int(status))
			_, _ = w.Write(body)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/agent/plan", answer(planStatus, plan))
	mux.HandleFunc("POST /v1/agent/report", answer(planStatus, plan))
	mux.HandleFunc("POST /v1/agent/logs/{app}", answer(logStatus, log))
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}
