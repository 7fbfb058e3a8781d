package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

const (
	// maxComparisonBytes of an answer. A comparison of 500 runs with 32 publishers each has a quarter of it.
	maxComparisonBytes = 64 << 20
	// defaultComparisonTime exceeds the analysis' own limit.
	defaultComparisonTime = 330 * time.Second
)

// comparisonTypes are the forms of a comparison, with their content types.
var comparisonTypes = map[string]string{
	"json":  "application/json",
	"csv":   "text/csv; charset=utf-8",
	"text":  "text/plain; charset=utf-8",
	"latex": "application/x-tex; charset=utf-8",
	"html":  "text/html; charset=utf-8",
}

// comparer sends comparisons to the analysis beside the server, over a Unix socket. The analysis reads the same archive.
type comparer struct {
	client http.Client

	mu    sync.Mutex
	turns map[string]*turn
}

// maxComparisons of a namespace run or wait in the server.
const maxComparisons = 8

// turn is a namespace's: one comparison at a time is sent to the analysis, so that no team fills its queue.
type turn struct {
	taken chan struct{}
	asked int
}

// newComparer returns nil if there is no analysis beside the server.
func newComparer(socket string, limit time.Duration) *comparer {
	if socket == "" {
		return nil
	}
	limit = cmp.Or(limit, defaultComparisonTime)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Timeout: limit, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return &comparer{client: client, turns: map[string]*turn{}}
}

// begin waits for the turns of all namespaces of the runs, whose keys have the namespace first.
func (c *comparer) begin(ctx context.Context, runs []string) (end func(), err error) {
	names := map[string]bool{}
	for _, run := range runs {
		namespace, _, _ := strings.Cut(run, "/")
		names[namespace] = true
	}
	var ends []func()
	end = func() {
		for _, one := range ends {
			one()
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(names)) { // in one order: two never wait for each other
		one, err := c.takeTurn(ctx, namespace)
		if err != nil {
			end()
			return nil, err
		}
		ends = append(ends, one)
	}
	return end, nil
}

func (c *comparer) takeTurn(ctx context.Context, namespace string) (end func(), err error) {
	c.mu.Lock()
	t := c.turns[namespace]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		c.turns[namespace] = t
	}
	full := t.asked >= maxComparisons
	if !full {
		t.asked++
	}
	c.mu.Unlock()
	if full {
		return nil, statusErrorf(http.StatusTooManyRequests, "%d comparisons of runs of namespace %s run or wait: try again when one has ended", maxComparisons, namespace)
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken; c.leave(namespace) }, nil
	case <-ctx.Done():
		c.leave(namespace)
		return nil, statusErrorf(http.StatusServiceUnavailable, "the comparison waited for another one of namespace %s until its client left", namespace)
	}
}

// leave forgets a namespace's turn with its last comparison.
func (c *comparer) leave(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns[namespace].asked--; c.turns[namespace].asked == 0 {
		delete(c.turns, namespace)
	}
}

func (s *Server) getCompare(w http.ResponseWriter, r *http.Request, who Identity) error {
	asked := r.URL.Query()
	form := cmp.Or(asked.Get("format"), "json")
	if _, known := comparisonTypes[form]; !known {
		return statusErrorf(http.StatusBadRequest, "format %q: want json, csv, text, latex or html", form)
	}
	if n := len(asked["run"]); n < 2 || n > runapi.MaxCompared {
		return statusErrorf(http.StatusBadRequest, "%d times run=UID: want 2 to %d runs", n, runapi.MaxCompared)
	}
	query := url.Values{"format": {form}}
	for _, name := range []string{"by", "reference", "referenceName"} {
		if value := asked.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	for _, uid := range asked["run"] {
		key, err := s.comparableRun(r, who, uid)
		if err != nil {
			return err
		}
		query.Add("run", key)
	}
	if s.comparer == nil {
		return statusErrorf(http.StatusNotImplemented, "this platform compares no runs: the chart's value server.analysis.enabled is false. "+
			"Downloaded runs are compared by: python3 -m vignette_analysis compare DIR DIR")
	}
	end, err := s.comparer.begin(r.Context(), query["run"])
	if err != nil {
		return err
	}
	defer end()
	text, err := s.comparer.compare(r.Context(), query)
	if err != nil {
		return err
	}
	sendComparison(w, form, text)
	return nil
}

// comparableRun returns a run's folder below the archive, if the caller may read it.
func (s *Server) comparableRun(r *http.Request, who Identity, uid string) (string, error) {
	named := r.Clone(r.Context())
	named.SetPathValue("uid", uid)
	run, err := s.findFor(named, who, "reading run "+uid, s.mayRead)
	if err != nil {
		return "", err
	}
	results, err := run.files.Open(resultsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", statusErrorf(http.StatusConflict, "run %s has no results yet: it must have been analysed", run.files.Key())
	}
	if err != nil {
		return "", err
	}
	return run.files.Key().String(), results.Close()
}

// compare has the analysis compare runs. If it cannot, its own message says why.
func (c *comparer) compare(ctx context.Context, query url.Values) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://analysis/compare", strings.NewReader(query.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.client.Do(request)
	if err != nil {
		return nil, comparisonError(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxComparisonBytes+1))
	if err != nil {
		return nil, comparisonError(err)
	}
	if len(text) > maxComparisonBytes {
		return nil, statusErrorf(http.StatusUnprocessableEntity, "the comparison has more than %d MiB: compare fewer runs", maxComparisonBytes>>20)
	}
	if answer.StatusCode == http.StatusOK {
		return text, nil
	}
	var said runapi.Problem
	if err := json.Unmarshal(text, &said); err != nil || said.Error == "" {
		return nil, fmt.Errorf("the analysis beside the server answered %d: %.200q", answer.StatusCode, text)
	}
	return nil, statusErrorf(answer.StatusCode, "%s", said.Error)
}

// comparisonError distinguishes an analysis that cannot be reached from one that takes too long.
func comparisonError(err error) error {
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &late) && late.Timeout():
		return statusErrorf(http.StatusGatewayTimeout, "the analysis beside the server did not answer in time: compare fewer runs, or try again later")
	}
	return statusErrorf(http.StatusServiceUnavailable, "the analysis beside the server cannot be reached: %v: see the container analysis of the pod vignette-server",
		strings.ReplaceAll(err.Error(), "\n", " "))
}

func sendComparison(w http.ResponseWriter, form string, text []byte) {
	header := w.Header()
	setFileHeader(header, "comparison")
	header.Set("Content-Type", comparisonTypes[form])
	// A page may use its own styles, and nothing else.
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
	send(w, http.StatusOK, text)
}
