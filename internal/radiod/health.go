package radiod

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/clock"
)

const (
	checkInterval = time.Second
	// stuckAfter is the time without an answer after which a loop counts as stuck. On a busy machine loops
	// still run within milliseconds, because they have the best priority.
	stuckAfter = 10 * time.Second
)

// health checks that the event loops still run.
type health struct{ answered atomic.Int64 }

func newHealth() *health {
	h := &health{}
	h.answered.Store(time.Now().UnixNano())
	return h
}

// watch asks the loops each second until ctx ends. ask returns when all have answered, or cannot.
func (h *health) watch(ctx context.Context, ask func() error) {
	for ctx.Err() == nil {
		if ask() == nil {
			h.answered.Store(time.Now().UnixNano())
		}
		clock.Pause(ctx, checkInterval)
	}
}

func (h *health) check(now time.Time) error {
	if silent := now.Sub(time.Unix(0, h.answered.Load())); silent > stuckAfter {
		return fmt.Errorf("a loop of the radio engine has not answered for %v", silent.Round(time.Second))
	}
	return nil
}
