// Package client sends runapi requests to the server: for the operator, the collect step, radiod, agents and the command line.
// Its methods have no time limit but their context's, as some requests wait on purpose.
package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/scenario"
)

// TokenSource returns the bearer token for a request. It is called for every request, as projected tokens are replaced while a
// program runs. No token is sent if it is empty.
type TokenSource func() (string, error)

// TokenFile reads the token from a file, such as a projected service account token.
func TokenFile(path string) TokenSource {
	return func() (string, error) {
		token, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("token for the server: %w", err)
		}
		return strings.TrimSpace(string(token)), nil
	}
}

// NoToken sends no token: for reads through the API server, whose HTTP client authenticates the user.
func NoToken() (string, error) { return "", nil }

// Client sends requests to one server; it is safe for concurrent use.
type Client struct {
	base  string
	http  *http.Client
	token TokenSource
}

// New makes a client of the server at baseURL, such as http://vignette-server.vignette-system.svc.
// A nil httpClient is http.DefaultClient, a nil token NoToken.
func New(baseURL string, httpClient *http.Client, token TokenSource) *Client {
	if httpClient == nil {
		httpClient = http.DefaultClient
	}
	if token == nil {
		token = NoToken
	}
	return &Client{base: strings.TrimRight(baseURL, "/"), http: httpClient, token: token}
}

// Error is an unsuccessful answer of the server.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Message is the server's explanation.
	Message string
	// Size is the archived size, with status 409 of an append.
	Size *int64
	// Quota is set with status 507 if a quota is used up, and the volume is not full.
	Quota bool
}

func (e *Error) Error() string {
	return fmt.Sprintf("server answered %d %s: %s", e.Status, http.StatusText(e.Status), e.Message)
}

// Said is the explanation in words for people: the message of a Kubernetes Status, which comes from the API server before the archive.
func (e *Error) Said() string {
	var status struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(e.Message), &status) == nil && status.Kind == "Status" && status.Message != "" {
		return status.Message
	}
	return strings.TrimSpace(e.Message)
}

// IsNotFound reports whether the server knows no such run, agent or file.
func IsNotFound(err error) bool { return HasStatus(err, http.StatusNotFound) }

// HasStatus reports whether the server answered with this HTTP status.
func HasStatus(err error, status int) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Status == status
}

// PutPlan sends the plan of a run; idempotent. The answer is the state with that plan.
func (c *Client) PutPlan(ctx context.Context, plan runapi.Plan) (runapi.State, error) {
	var state runapi.State
	err := c.sendJSON(ctx, http.MethodPut, runPath(plan.UID), nil, plan, &state)
	return state, err
}

// State returns the server's state of a run.
func (c *Client) State(ctx context.Context, uid string) (runapi.State, error) {
	var state runapi.State
	err := c.sendJSON(ctx, http.MethodGet, runPath(uid), nil, nil, &state)
	return state, err
}

// LiveState returns the server's state of a run, with its live figures.
func (c *Client) LiveState(ctx context.Context, uid string) (runapi.State, error) {
	var state runapi.State
	err := c.sendJSON(ctx, http.MethodGet, runPath(uid), url.Values{"live": {"true"}}, nil, &state)
	return state, err
}

// Updates waits for changes of any run after an epoch and sequence, "" and 0 at first. It returns within half a minute, also without any.
func (c *Client) Updates(ctx context.Context, epoch string, sequence int64) (runapi.Updates, error) {
	var updates runapi.Updates
	query := url.Values{"epoch": {epoch}, "since": {strconv.FormatInt(sequence, 10)}}
	err := c.sendJSON(ctx, http.MethodGet, "/v1/news", query, nil, &updates)
	return updates, err
}

// Incident adds an incident to a run; repeating it changes nothing, except that it may end.
func (c *Client) Incident(ctx context.Context, uid string, incident runapi.Incident) error {
	return c.sendJSON(ctx, http.MethodPost, runPath(uid)+"/incidents", nil, incident, nil)
}

// Events adds up to runapi.MaxEvents Kubernetes events to a run; known ones change nothing.
// An empty list means that the archive has all events that the caller knows of; the seal waits for that.
func (c *Client) Events(ctx context.Context, uid string, events []runapi.KubernetesEvent) error {
	return c.sendJSON(ctx, http.MethodPost, runPath(uid)+"/events", nil, events, nil)
}

// Seal ends the collection of a run: it waits until every log is complete or the request's time has passed.
func (c *Client) Seal(ctx context.Context, uid string, request runapi.SealRequest) (runapi.Manifest, error) {
	var manifest runapi.Manifest
	err := c.sendJSON(ctx, http.MethodPost, runPath(uid)+"/seal", nil, request, &manifest)
	return manifest, err
}

// Files lists the archived files of a run. Before the seal, sizes are the present ones and checksums are absent.
func (c *Client) Files(ctx context.Context, uid string) (runapi.Manifest, error) {
	var manifest runapi.Manifest
	err := c.sendJSON(ctx, http.MethodGet, runPath(uid)+"/files", nil, nil, &manifest)
	return manifest, err
}

// File opens one archived file, such as results/results.json. The caller closes it.
func (c *Client) File(ctx context.Context, uid, path string) (io.ReadCloser, error) {
	response, err := c.do(ctx, http.MethodGet, runPath(uid)+"/files/"+escapePath(path), nil, nil, "")
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// FileRange reads up to this many bytes of an archived file from an offset on; fewer at its end, and none beyond.
func (c *Client) FileRange(ctx context.Context, uid, path string, offset, bytes int64) ([]byte, error) {
	address := c.base + runPath(uid) + "/files/" + escapePath(path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+bytes-1))
	response, err := c.send(request)
	if HasStatus(err, http.StatusRequestedRangeNotSatisfiable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusPartialContent {
		return nil, fmt.Errorf("the server sent all of %s: want bytes %d to %d", path, offset, offset+bytes-1)
	}
	return io.ReadAll(io.LimitReader(response.Body, bytes))
}

// PutResult writes results/NAME of a run, and replaces an existing file.
func (c *Client) PutResult(ctx context.Context, uid, name string, content io.Reader) error {
	path := runPath(uid) + "/files/results/" + url.PathEscape(name)
	response, err := c.do(ctx, http.MethodPut, path, nil, content, "application/octet-stream")
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// Delete removes a run and its archive.
func (c *Client) Delete(ctx context.Context, uid string) error {
	return c.sendJSON(ctx, http.MethodDelete, runPath(uid), nil, nil, nil)
}

// Runs lists the archived runs, newest first. An empty namespace or name matches all.
func (c *Client) Runs(ctx context.Context, namespace, name string) ([]runapi.RunSummary, error) {
	query := url.Values{}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	if name != "" {
		query.Set("name", name)
	}
	var runs []runapi.RunSummary
	err := c.sendJSON(ctx, http.MethodGet, "/v1/runs", query, nil, &runs)
	return runs, err
}

// Usage returns a namespace's share of the archive.
func (c *Client) Usage(ctx context.Context, namespace string) (runapi.Usage, error) {
	var usage runapi.Usage
	err := c.sendJSON(ctx, http.MethodGet, "/v1/usage", url.Values{"namespace": {namespace}}, nil, &usage)
	return usage, err
}

// Comparison is how runs are compared.
type Comparison struct {
	// Format is text, json, csv, latex or html.
	Format string
	// By is a field of the spec, run, or empty.
	By string
	// Reference is the text of a file of reference figures, and ReferenceName the file's name in messages. Empty: those of the runs' campaigns.
	Reference, ReferenceName string
}

// Compare compares analysed runs. The caller closes the answer.
func (c *Client) Compare(ctx context.Context, uids []string, how Comparison) (io.ReadCloser, error) {
	query := url.Values{"run": uids, "format": {how.Format}}
	if how.By != "" {
		query.Set("by", how.By)
	}
	if how.Reference != "" {
		query.Set("reference", how.Reference)
		query.Set("referenceName", how.ReferenceName)
	}
	response, err := c.do(ctx, http.MethodGet, "/v1/compare", query, nil, "")
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// AgentPlan waits up to 30 s for a plan of the calling pod's app that is newer than revision. Without a change it returns the
// plan of that revision.
func (c *Client) AgentPlan(ctx context.Context, app string, revision int64) (runapi.AgentPlan, error) {
	query := url.Values{"app": {app}, "revision": {strconv.FormatInt(revision, 10)}}
	var plan runapi.AgentPlan
	err := c.sendJSON(ctx, http.MethodGet, "/v1/agent/plan", query, nil, &plan)
	return plan, err
}

// Report sends the report of the calling pod's agent.
func (c *Client) Report(ctx context.Context, report runapi.AgentReport) error {
	return c.sendJSON(ctx, http.MethodPost, "/v1/agent/report", nil, report, nil)
}

// Clock reads the server's clock, for a node that has its own.
func (c *Client) Clock(ctx context.Context) (runapi.ClockReading, error) {
	var reading runapi.ClockReading
	err := c.sendJSON(ctx, http.MethodGet, "/v1/agent/clock", nil, nil, &reading)
	return reading, err
}

// Movement reads the movement of the platform of the calling pod's node, or of the one that an instance on it reports: a compiled
// scenario of this platform alone. It is empty if the platform has no position.
func (c *Client) Movement(ctx context.Context, instance string) ([]byte, error) {
	var query url.Values
	if instance != "" {
		query = url.Values{"instance": {instance}}
	}
	response, err := c.do(ctx, http.MethodGet, "/v1/agent/movement", query, nil, "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, scenario.MaxMovementBytes+1))
	if err == nil && len(content) > scenario.MaxMovementBytes {
		err = fmt.Errorf("the movement has more than %d bytes", scenario.MaxMovementBytes)
	}
	return content, err
}

// AppendRadio archives RadioSample lines of one run from radiod on host, from offset on. If offset is not the archived size, the
// error is a conflict with that Size.
func (c *Client) AppendRadio(ctx context.Context, host, uid string, offset int64, content io.Reader) (runapi.LogPosition, error) {
	return c.appendTo(ctx, "/v1/radio/"+url.PathEscape(host)+"/"+url.PathEscape(uid), offset, content)
}

func (c *Client) appendTo(ctx context.Context, path string, offset int64, content io.Reader) (runapi.LogPosition, error) {
	var position runapi.LogPosition
	query := url.Values{"offset": {strconv.FormatInt(offset, 10)}}
	response, err := c.do(ctx, http.MethodPost, path, query, content, "application/octet-stream")
	if err != nil {
		return position, err
	}
	defer response.Body.Close()
	return position, decode(response, &position)
}

// Capture names one file of captures.
type Capture struct {
	// Name of the capture, the network and the node.
	Name, Network, Node string
}

// Path of the file below the run.
func (c Capture) Path() string {
	return "captures/" + c.Name + "/" + c.Network + "/" + c.Node + ".pcapng"
}

// AppendCapture archives bytes of a capture from offset on, for radiod of a host; see AppendRadio. No bytes at offset 0
// return the size.
func (c *Client) AppendCapture(ctx context.Context, host, uid string, which Capture, offset int64, content io.Reader) (runapi.LogPosition, error) {
	path := "/v1/radio/" + url.PathEscape(host) + "/" + url.PathEscape(uid) + "/captures/" +
		url.PathEscape(which.Name) + "/" + url.PathEscape(which.Network) + "/" + url.PathEscape(which.Node)
	return c.appendTo(ctx, path, offset, content)
}

// Follow opens an archived file from offset on and continues as it grows, until the run is sealed or the file's capture ends.
// It waits for a file that does not exist yet. A read error other than io.EOF means that the connection broke:
// follow again from there. The caller closes it.
func (c *Client) Follow(ctx context.Context, uid, path string, offset int64) (io.ReadCloser, error) {
	query := url.Values{"offset": {strconv.FormatInt(offset, 10)}, "follow": {"true"}}
	response, err := c.do(ctx, http.MethodGet, runPath(uid)+"/files/"+escapePath(path), query, nil, "")
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

func runPath(uid string) string { return "/v1/runs/" + url.PathEscape(uid) }

// needsCleaning reports whether a server or proxy would read another path than this one.
func needsCleaning(path string) bool {
	return slices.ContainsFunc(strings.Split(strings.TrimPrefix(path, "/"), "/"), func(name string) bool { return name == "" || name == "." || name == ".." })
}

func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

func (c *Client) sendJSON(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	response, err := c.do(ctx, method, path, query, body, "application/json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if out == nil {
		return nil
	}
	return decode(response, out)
}

func decode(response *http.Response, out any) error {
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		return fmt.Errorf("answer of %s: %w", response.Request.URL.Path, err)
	}
	return nil
}

// do sends a request and returns a successful response; every other one is an *Error.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body io.Reader, contentType string) (*http.Response, error) {
	if method == http.MethodGet && needsCleaning(path) {
		return nil, fmt.Errorf("%q: want names separated by single slashes, and no empty name, . or .. among them", path)
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	switch known := body.(type) {
	case *logBody:
		request.ContentLength = known.bytes
	case *bytes.Reader:
		digest, err := contentDigest(known)
		if err != nil {
			return nil, err
		}
		request.Header.Set(runapi.DigestHeader, digest)
	}
	return c.send(request)
}

// send a request with the token, and return a successful response; every other one is an *Error.
func (c *Client) send(request *http.Request) (*http.Response, error) {
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, answerError(response)
}

// contentDigest of a body, which is rewound for reading.
func contentDigest(body *bytes.Reader) (string, error) {
	hash := sha256.New()
	if _, err := body.WriteTo(hash); err != nil {
		return "", err
	}
	_, err := body.Seek(0, io.SeekStart)
	return runapi.ContentDigest([sha256.Size]byte(hash.Sum(nil))), err
}

// maxErrorBytes of an error answer are read.
const maxErrorBytes = 16 << 10

func answerError(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	answer := &Error{Status: response.StatusCode, Message: strings.TrimSpace(string(text))}
	var problem runapi.Problem
	if json.Unmarshal(text, &problem) == nil && problem.Error != "" {
		answer.Message, answer.Size, answer.Quota = problem.Error, problem.Size, problem.Quota
	}
	return answer
}
