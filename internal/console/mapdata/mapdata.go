// Package mapdata is what the console's map of a run shows: where nodes are over time, which links their radios have, jammers and
// radio silence. It reads the archive with the rights of the page's user, and asks the operator's and the scenarios' own code.
package mapdata

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Objects are those of a namespace that the map may need. An error means that the user may not read them, or that there are none.
type Objects interface {
	Scenario(ctx context.Context, namespace, name string) (*v1alpha1.Scenario, error)
	// ConfigMap returns the content of a key.
	ConfigMap(ctx context.Context, namespace, name, key string) ([]byte, error)
}

// Source is what a user may read.
type Source struct {
	Archive *client.Client
	Objects Objects
	// Namespace of the run.
	Namespace string
}

// Error is an answer for the page.
type Error struct {
	// Status of HTTP.
	Status  int
	Message string
}

func (e *Error) Error() string { return e.Message }

func errorf(status int, format string, args ...any) error {
	return &Error{status, fmt.Sprintf(format, args...)}
}

// explain an error of the archive.
func explain(err error, what string) error {
	var answer *client.Error
	told := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests}
	if errors.As(err, &answer) && slices.Contains(told, answer.Status) {
		return errorf(answer.Status, "%s: %s", what, answer.Said())
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err // the browser's end is no failure of the archive
	}
	return errorf(http.StatusBadGateway, "%s: the archive cannot be read now: try again", what)
}

// Maps makes maps. It keeps what it has read of runs, and gives it only to those who may read the run.
type Maps struct {
	scenarios recent[string, keptScenario]
	runs      recent[string, keptRun]
	tracks    recent[string, []track]
	logs      recent[string, *radioLog]
	routes    recent[string, *routeLog]
	previews  recent[string, *compile.Prepared]
	// working bounds the requests that compute at a time.
	working chan struct{}
	// PreviewTime is the most time that a preview may take.
	PreviewTime time.Duration
}

const (
	// maxWorking requests compute at a time: each may take a core for seconds.
	maxWorking = 2
	// previewTime of one preview.
	previewTime = 30 * time.Second
)

// New makes Maps.
func New() *Maps {
	return &Maps{working: make(chan struct{}, maxWorking), PreviewTime: previewTime,
		scenarios: newRecent[string, keptScenario](math.MaxInt), runs: newRecent[string, keptRun](maxKeptRuns),
		tracks: newRecent[string, []track](maxKeptTracks), logs: newRecent[string, *radioLog](maxKeptLogs),
		routes: newRecent[string, *routeLog](maxKeptRouteLogs), previews: newRecent[string, *compile.Prepared](maxKeptPreviews)}
}

// work waits for its turn, and returns the end of it.
func (m *Maps) work(ctx context.Context) (done func(), err error) {
	select {
	case m.working <- struct{}{}:
		return func() { <-m.working }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
