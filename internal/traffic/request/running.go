package request

import (
	"context"
	"sync"
	"time"
)

// Running is what a peer has under way. Its zero value is not valid.
type Running struct {
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	work   sync.WaitGroup
}

// NewRunning begins.
func NewRunning() *Running {
	r := &Running{}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Context ends when Stop is called.
func (r *Running) Context() context.Context { return r.ctx }

// Begin counts a piece of work, for which Wait waits until done is called. It returns false, and counts nothing, after Stop.
func (r *Running) Begin() (done func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, false
	}
	r.work.Add(1)
	return r.work.Done, true
}

// Request begins a request that has so much time. Its context ends with Stop too. After Stop the error is a *Failure.
func (r *Running) Request(ctx context.Context, timeout time.Duration) (of context.Context, end func(), err error) {
	done, ok := r.Begin()
	if !ok {
		return nil, nil, Failed(Cancelled, "")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	stop := context.AfterFunc(r.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		done()
	}, nil
}

// Go runs a piece of work; not after Stop.
func (r *Running) Go(work func()) {
	if done, ok := r.Begin(); ok {
		go func() {
			defer done()
			work()
		}()
	}
}

// Stop ends the context.
func (r *Running) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel()
}

// Wait waits for the work under way, until ctx ends. It follows Stop.
func (r *Running) Wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		r.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
