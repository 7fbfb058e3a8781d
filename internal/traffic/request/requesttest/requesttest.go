// Package requesttest has what tests of request/response protocols share.
package requesttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/request"
)

// Address returns a free one of loopback.
func Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testport.Free(t))
}

// Start opens a peer, which ends with the test. By default it waits 20 s for a response, and answers each request without content.
func Start(t testing.TB, open request.Open, s request.Setup) request.Peer {
	t.Helper()
	if s.TimeoutSeconds == 0 {
		s.TimeoutSeconds = 20
	}
	if s.Handler == nil {
		s.Handler = func(time.Time, request.Request) request.Response { return request.Response{} }
	}
	p, err := open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		p.Close(ctx)
	})
	return p
}

// Events has those of one request, in order.
type Events struct {
	Sent, Retransmitted []time.Time
}

// Record returns what notes them.
func (e *Events) Record() request.Events {
	return request.Events{
		Sent:          func(at time.Time) { e.Sent = append(e.Sent, at) },
		Retransmitted: func(at time.Time) { e.Retransmitted = append(e.Retransmitted, at) },
	}
}

// RequirePrograms skips the test where programs, or libraries by their path, are missing.
func RequirePrograms(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := os.Stat(program); err == nil {
			continue
		}
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (hack/test-packages)", filepath.Base(program))
		}
	}
}
