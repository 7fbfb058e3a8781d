package agent

import (
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/runapi"
)

// state is the agent's report. Every change wakes the reporter.
type state struct {
	mu      sync.Mutex
	report  runapi.AgentReport
	changed bell.Bell
	// failedCode is the exit code of the app that was given up.
	failedCode int
}

func newState(app string) *state {
	return &state{report: runapi.AgentReport{App: app, Phase: runapi.AgentReady}, changed: bell.New()}
}

// change applies a change to the report and wakes the reporter.
func (s *state) change(f func(r *runapi.AgentReport)) {
	s.mu.Lock()
	f(&s.report)
	s.mu.Unlock()
	s.changed.Ring()
}

// snapshot returns a copy of the report.
func (s *state) snapshot() runapi.AgentReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.Gaps = slices.Clone(r.Gaps)
	return r
}

// phase sets the phase; a failed agent stays failed until it is done, and one that is done stays so.
func (s *state) phase(p runapi.AgentPhase) {
	s.change(func(r *runapi.AgentReport) {
		if r.Phase != runapi.AgentFailed && r.Phase != runapi.AgentDone || p == runapi.AgentDone {
			r.Phase = p
		}
	})
}

// armed sets the version of the actions, and how many of them have been executed.
func (s *state) armed(version int64, executed int) {
	s.change(func(r *runapi.AgentReport) { r.ArmedVersion, r.ExecutedActions = version, executed })
}

func (s *state) armedTooLate(id string) {
	s.change(func(r *runapi.AgentReport) {
		if len(r.ArmedTooLate) == 0 {
			r.ArmedTooLate = []string{id}
		}
	})
}

func (s *state) restarted() { s.change(func(r *runapi.AgentReport) { r.Restarts++ }) }

func (s *state) noteLateness(d time.Duration) {
	s.change(func(r *runapi.AgentReport) { r.WorstLatenessSeconds = max(r.WorstLatenessSeconds, d.Seconds()) })
}

// archivedUntil sets until when the archive is complete. It sends no report: the next one has it.
func (s *state) archivedUntil(nanoseconds int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.ArchivedUntilNanoseconds = nanoseconds
}

// gapBegins notes a time from which logs may be incomplete. Beyond the limit, the last gap is extended.
func (s *state) gapBegins(nanoseconds int64, reason string) {
	s.change(func(r *runapi.AgentReport) {
		if n := len(r.Gaps); n == runapi.MaxAgentGaps {
			r.Gaps[n-1].ToNanoseconds = 0
			return
		}
		r.Gaps = append(r.Gaps, runapi.AgentGap{FromNanoseconds: nanoseconds, Reason: reason})
	})
}

// gapEnds ends the last gap.
func (s *state) gapEnds(nanoseconds int64) {
	s.change(func(r *runapi.AgentReport) {
		if n := len(r.Gaps); n > 0 {
			r.Gaps[n-1].ToNanoseconds = nanoseconds
		}
	})
}

// fail keeps the first failure's message, as later ones mostly follow from it.
func (s *state) fail(message string, code int) (first bool) {
	s.change(func(r *runapi.AgentReport) {
		if first = r.Phase != runapi.AgentFailed; first {
			r.Phase, r.Message = runapi.AgentFailed, message
			s.failedCode = code
		}
	})
	return first
}

func (s *state) exitCode() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failedCode
}
