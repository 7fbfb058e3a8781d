// Package server is the results archive with its HTTP API. It stores plans of the operator, logs and reports of agents,
// samples of radiod and results of the analysis, and serves them.
// Package runapi defines the requests, package archive the files.
package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

// Config of a server.
type Config struct {
	// Dir is the archive's folder.
	Dir string
	// Authenticator identifies callers.
	Authenticator Authenticator
	// Authorizer decides what users may read; without one they may read nothing.
	Authorizer Authorizer
	Policy     Policy
	// QuotaBytes bounds the logs of each run; 0 means no limit.
	QuotaBytes int64
	// ScenarioQuotaBytes bounds all compiled scenarios together; 0 means no limit.
	ScenarioQuotaBytes int64
	// TeamQuotaBytes bounds all runs of a namespace together; TeamQuotas overrides it for some. 0 means no limit.
	TeamQuotaBytes int64
	TeamQuotas     map[string]int64
	// TeamRetentions overrides Retention for some namespaces.
	TeamRetentions map[string]time.Duration
	// Retention after which ended runs and unused scenarios are deleted; 0 means never.
	Retention time.Duration
	// AnalysisSocket is the Unix socket of the analysis that compares runs; empty for none.
	AnalysisSocket string
	// ComparisonTime is how long a comparison may take; 330 s if 0.
	ComparisonTime time.Duration
	// LongPoll is how long a request for a newer plan waits; 30 s if 0.
	LongPoll time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Log for operators of the platform; slog.Default if nil.
	Log *slog.Logger
}

// Server serves one archive.
type Server struct {
	config    Config
	store     *archive.Store
	scenarios *archive.Scenarios
	movements *movements
	runs      *registry
	auth      *TokenCache
	access    *accessCache
	// limit is for all requests, reviews for those with unknown tokens.
	limit, reviews limiter
	metrics        *metrics
	mux            *http.ServeMux
	followers      followers
	comparer       *comparer // nil if runs cannot be compared
	scenarioUses   scenarioUses
}

// defaultLongPoll is what the API promises agents.
const defaultLongPoll = 30 * time.Second

// New opens the archive and loads its runs.
func New(config Config) (*Server, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	config.LongPoll = cmp.Or(config.LongPoll, defaultLongPoll)
	store, err := archive.Open(config.Dir)
	if err != nil {
		return nil, err
	}
	store.TeamQuota = config.teamQuota
	scenarios, err := store.Scenarios()
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	runs, err := openRegistry(store, config.QuotaBytes, config.Now)
	if err != nil {
		return nil, errors.Join(err, scenarios.Close(), store.Close())
	}
	s := &Server{config: config, store: store, scenarios: scenarios, runs: runs, auth: NewTokenCache(config.Authenticator, config.Now),
		access: newAccessCache(config.Authorizer, config.Now), mux: http.NewServeMux(), followers: followers{byUser: map[string]int{}},
		limit: limiter{perSecond: requestsPerSecond, burst: requestBurst}, reviews: limiter{perSecond: reviewsPerSecond, burst: reviewBurst}}
	s.metrics = newMetrics(config.Dir, func() int { return len(runs.all()) }, scenarios.Used)
	s.metrics.registry.MustRegister(&liveMetrics{runs: runs.all, now: config.Now}, &usageMetrics{runs: runs.all, store: store})
	scenarios.OnDelete = s.logSpareScenario
	s.movements = newMovements(scenarios, runs.neededScenarios)
	s.comparer = newComparer(config.AnalysisSocket, config.ComparisonTime)
	s.logProblems()
	s.routes()
	return s, nil
}

// logProblems logs what could not be read of the archive. The list of runs has it too.
func (s *Server) logProblems() {
	for _, err := range s.runs.problems {
		s.config.Log.Error("a run cannot be served", "error", err)
	}
	for _, r := range s.runs.all() {
		for _, damage := range r.damaged {
			s.config.Log.Error("a damaged record of a run was renamed", "run", r.files.Key().String(), "record", damage)
		}
	}
}

// Close releases the archive. Nothing may be served afterwards.
func (s *Server) Close() error {
	s.movements.close()
	for _, r := range s.runs.all() {
		if err := r.files.Close(); err != nil {
			return err
		}
	}
	return errors.Join(s.scenarios.Close(), s.store.Close())
}

// expireEvery is how often expired runs are deleted.
const expireEvery = 10 * time.Minute

// Expire deletes old runs and scenarios until the context ends; it returns at once if none expire.
func (s *Server) Expire(ctx context.Context) {
	if s.config.Retention <= 0 && len(s.config.TeamRetentions) == 0 {
		return
	}
	for {
		deleted, err := s.runs.expire(s.config.retention)
		for _, key := range deleted {
			s.config.Log.Info("deleted a run that is older than the retention", "run", key.String(), "retention", s.config.retention(key.Namespace))
		}
		if err != nil {
			s.config.Log.Error("old runs could not be deleted", "error", err)
		}
		s.expireScenarios()
		if !clock.Pause(ctx, expireEvery) {
			return
		}
	}
}

// handler answers a request, or returns what is wrong with it.
type handler func(w http.ResponseWriter, r *http.Request, who Identity) error

func (s *Server) routes() {
	for route, handle := range s.handlers() {
		s.mux.Handle(route, s.handle(route, handle))
	}
	s.mux.HandleFunc("GET /healthz", serveHealth)
}

// handlers of the routes, which package openapi describes.
func (s *Server) handlers() map[string]handler {
	return map[string]handler{
		"GET /v1/runs":                               s.listRuns,
		"PUT /v1/runs/{uid}":                         s.putPlan,
		"GET /v1/runs/{uid}":                         s.getState,
		"DELETE /v1/runs/{uid}":                      s.deleteRun,
		"POST /v1/runs/{uid}/incidents":              s.postIncident,
		"POST /v1/runs/{uid}/events":                 s.postEvents,
		"POST /v1/runs/{uid}/seal":                   s.postSeal,
		"GET /v1/runs/{uid}/files":                   s.listFiles,
		"GET /v1/runs/{uid}/files/{path...}":         s.getFile,
		"PUT /v1/runs/{uid}/files/results/{path...}": s.putResult,
		"GET /v1/runs/{uid}/archive.tar":             s.getArchive,
		"GET /v1/runs/{uid}/report":                  s.getReport,
		"GET /v1/news":                               s.getUpdates,
		"GET /v1/compare":                            s.getCompare,
		"GET /v1/metrics":                            s.getMetrics,
		"GET /v1/usage":                              s.getUsage,
		"GET /v1/agent/plan":                         s.getAgentPlan,
		"POST /v1/agent/report":                      s.postReport,
		"GET /v1/agent/clock":                        s.getClock,
		"GET /v1/agent/movement":                     s.getMovement,
		"POST /v1/agent/logs/{app}":                  s.postLogs,
		"POST /v1/radio/{host}/{uid}/captures/{capture}/{network}/{node}": s.postCapture,
		"POST /v1/radio/{host}/{uid}":                                     s.postRadio,
		"PUT /v1/scenarios/{digest}":                                      s.putScenario,
		"GET /v1/scenarios/{digest}":                                      s.getScenario, // and HEAD
		"GET /v1/openapi.json":                                            s.getDescription,
	}
}

// getDescription describes the API. It reveals nothing, so anybody may read it.
func (s *Server) getDescription(w http.ResponseWriter, _ *http.Request, _ Identity) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	send(w, http.StatusOK, runapi.OpenAPI)
	return nil
}

func serveHealth(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// ServeHTTP implements http.Handler. What a handler leaves to be sent has a time limit, too.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // not that of the connection's request before
	s.mux.ServeHTTP(w, r)
	_ = control.SetWriteDeadline(time.Now().Add(pieceTimeout))
}

// handle identifies the caller, limits its rate, and turns errors into answers.
func (s *Server) handle(route string, handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &responseRecorder{ResponseWriter: w, status: http.StatusOK, received: s.config.Now()}
		who, err := s.identify(r)
		if err == nil {
			err = handle(answer, r, who)
		}
		if err != nil {
			s.writeError(answer, r, err)
		}
		s.metrics.requests.WithLabelValues(route, strconv.Itoa(answer.status)).Inc()
	})
}

func (s *Server) identify(r *http.Request) (Identity, error) {
	if who, vouched := r.Context().Value(verifiedIdentityKey{}).(Identity); vouched {
		return who, s.checkRate("user " + who.Username)
	}
	header := r.Header.Get("Authorization")
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if header == "" {
		return Identity{}, s.checkRate("address " + host)
	}
	token, bearer := strings.CutPrefix(header, "Bearer ")
	if !bearer || token == "" {
		return Identity{}, statusErrorf(http.StatusUnauthorized, "the Authorization header is not of the form: Bearer TOKEN")
	}
	sum := sha256.Sum256([]byte(token))
	if err := s.checkRate("token " + string(sum[:])); err != nil {
		return Identity{}, err
	}
	if !s.auth.Cached(token) && !s.reviews.allow(host, s.config.Now()) {
		return Identity{}, statusErrorf(http.StatusTooManyRequests, "more than %d unknown tokens a second", reviewsPerSecond)
	}
	who, err := s.auth.Authenticate(r.Context(), token)
	if errors.Is(err, ErrBadToken) {
		return who, statusErrorf(http.StatusUnauthorized, "%v", err)
	}
	return who, err
}

// checkRate returns an error if a caller exceeds its rate.
func (s *Server) checkRate(caller string) error {
	if !s.limit.allow(caller, s.config.Now()) {
		return statusErrorf(http.StatusTooManyRequests, "more than %d requests a second", requestsPerSecond)
	}
	return nil
}

// responseRecorder remembers the status for the metrics, and the time of the request.
type responseRecorder struct {
	http.ResponseWriter
	received time.Time
	status   int
	written  bool
}

func (r *responseRecorder) WriteHeader(status int) {
	r.status, r.written = status, true
	r.ResponseWriter.WriteHeader(status)
}

func (r *responseRecorder) Write(p []byte) (int, error) {
	r.written = true
	return r.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController access to the connection.
func (r *responseRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// statusError is an error with the status of its answer.
type statusError struct {
	status int
	runapi.Problem
}

func (p statusError) Error() string { return p.Problem.Error }

func (s *Server) writeError(w *responseRecorder, r *http.Request, err error) {
	p := classify(err)
	if p.status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		s.config.Log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if w.written {
		return // the caller sees that the length is wrong
	}
	if p.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if _, aggregated := r.Context().Value(verifiedIdentityKey{}).(Identity); aggregated {
		_ = writeJSON(w, p.status, kubernetesProblem{kubernetesStatus(p), p.Problem})
		return
	}
	_ = writeJSON(w, p.status, p.Problem)
}

// classify returns the answer for an error.
func classify(err error) statusError {
	var (
		known  statusError
		denied conflict
		offset *archive.OffsetError
		large  *http.MaxBytesError
		status = http.StatusInternalServerError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &offset):
		return statusError{http.StatusConflict, runapi.Problem{Error: err.Error(), Size: &offset.Size}}
	case errors.As(err, &denied):
		status = http.StatusConflict
	case errors.As(err, &large):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, context.Canceled):
		return statusError{http.StatusServiceUnavailable, runapi.Problem{Error: "the request was given up: the server is about to end, or the client has left"}}
	case errors.Is(err, archive.ErrDigest):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, archive.ErrQuota), errors.Is(err, archive.ErrTeamQuota), errors.Is(err, archive.ErrScenarioQuota):
		return statusError{http.StatusInsufficientStorage, runapi.Problem{Error: err.Error(), Quota: true}}
	case errors.Is(err, archive.ErrFull):
		status = http.StatusInsufficientStorage
	case errors.Is(err, archive.ErrSealed), errors.Is(err, archive.ErrDeleted):
		status = http.StatusGone
	case errors.Is(err, fs.ErrNotExist):
		status = http.StatusNotFound
	}
	return statusError{status, runapi.Problem{Error: err.Error()}}
}

func writeJSON(w http.ResponseWriter, status int, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	send(w, status, append(text, '\n'))
	return nil
}

// send an answer, for which a reader has a limited time.
func send(w http.ResponseWriter, status int, content []byte) {
	limitSending(w, int64(len(content)))
	w.WriteHeader(status)
	_, _ = w.Write(content) // the reader may be gone
}

// limitSending gives a reader of so many bytes a time limit.
func limitSending(w http.ResponseWriter, bytes int64) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(pieceTimeout + time.Duration(bytes/slowestReader)*time.Second))
}

// maxHeaderBytes of a request: a comparison of runapi.MaxCompared runs has 41 kB of UIDs, its reference figures at most
// three times reference.MaxBytes, a token about 1 kB.
const maxHeaderBytes = 160 << 10

// NewHTTP makes the HTTP server whose requests end with ctx. Headers and idle connections have a time limit.
// Handlers limit bodies and answers piece by piece, as logs may be long and some requests wait on purpose.
func NewHTTP(ctx context.Context, address string, handler http.Handler, header, idle time.Duration) *http.Server {
	return &http.Server{
		Addr: address, Handler: handler, ReadHeaderTimeout: header, IdleTimeout: idle, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}
