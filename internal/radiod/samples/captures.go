package samples

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// sampleCaptures writes the state of captures into their runs' logs.
func (s *Sampler) sampleCaptures(now int64) error {
	if s.Captures == nil {
		return nil
	}
	var failed error
	for _, uid := range s.Captures.Runs() {
		r, err := s.openRunLog(uid)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		var lines []byte
		for _, sample := range s.Captures.Samples(uid, now) {
			line, err := json.Marshal(sample)
			if err != nil {
				return fmt.Errorf("sample of a capture: %w", err)
			}
			lines = append(append(lines, line...), '\n')
		}
		if len(lines) > 0 {
			s.mu.Lock()
			r.capturesCompleted = false
			s.mu.Unlock()
			failed = errors.Join(failed, r.spool.append(now, lines))
		}
	}
	return failed
}

// capturesCompleted reports whether a run's captures have ended and are archived, and the log that says so was
// shipped.
func (s *Sampler) capturesCompleted(r *runLog) bool {
	if s.Captures == nil || r.capturesCompleted {
		return true
	}
	if !s.Captures.Completed(r.spool.uid) {
		return false
	}
	if slices.Contains(s.Captures.Runs(), r.spool.uid) {
		r.finished = time.Now() // so that its last line is shipped too
	}
	r.capturesCompleted = true
	return false
}
