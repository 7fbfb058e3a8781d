package dataplane

import (
	"context"
	"log/slog"
	"sync"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/state"
)

// sign of life, by which the next data plane knows when frames stopped.
type sign struct {
	folder state.Folder
	log    *slog.Logger
	stop   context.CancelFunc // nil for no sign
	ended  sync.WaitGroup

	mu            sync.Mutex // protects the rest
	restored      bool
	seen, resumed int64
}

// KeepSign keeps a sign of life in a folder once the gap since the last one is recorded, before anything is asked of the
// Plane.
func (s *sign) KeepSign(folder state.Folder, log *slog.Logger) {
	s.folder, s.log, s.seen = folder, log, folder.LastSeen(state.Plane)
}

// Left implements Plane.
func (s *sign) Left() (Left, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restored {
		return Left{}, nil
	}
	return Left{New: true, Seen: s.seen, Resumed: s.resumed}, nil
}

// Restored implements Plane.
func (s *sign) Restored() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restored || s.folder == (state.Folder{}) {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	s.restored, s.stop = true, stop
	s.ended.Go(func() {
		if err := s.folder.WriteHeartbeat(ctx, state.Plane); err != nil {
			s.log.Error("sign of life of the data plane", "error", err)
		}
	})
	return nil
}

// DropLeft implements Plane. Nothing is left in the process of its only worker.
func (l *Local) DropLeft() error { return nil }

// resumedNow notes that frames flow again.
func (s *sign) resumedNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == 0 {
		s.resumed = clock.Realtime()
	}
}

func (s *sign) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
		s.ended.Wait()
	}
}
