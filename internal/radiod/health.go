package radiod

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	askInterval = time.Second
	// stuckAfter so long without an answer of the loops, which run before everything else of this host: a
	// machine that is merely busy lets them run within milliseconds.
	stuckAfter = 10 * time.Second
)

// health tells whether the loops that carry the frames still do.
type health struct{ answered atomic.Int64 }

func newHealth() *health {
	h := &health{}
	h.answered.Store(time.Now().UnixNano())
	return h
}

// watch asks the loops each second until ctx ends; ask returns when all have answered.
func (h *health) watch(ctx context.Context, ask func()) {
	for ctx.Err() == nil {
		ask()
		h.answered.Store(time.Now().UnixNano())
		select {
		case <-ctx.Done():
		case <-time.After(askInterval):
		}
	}
}

func (h *health) check(now time.Time) error {
	if silent := now.Sub(time.Unix(0, h.answered.Load())); silent > stuckAfter {
		return fmt.Errorf("a loop of the radio engine has not answered for %v", silent.Round(time.Second))
	}
	return nil
}
