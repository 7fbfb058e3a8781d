package samples

import (
	"encoding/json"
	"fmt"

	"vignette.dev/vignette/internal/runapi"
)

// stolenTime measures how long a hypervisor made a host's processors wait while they had work.
type stolenTime struct {
	directory string
	before    float64
	known     bool
}

// sinceLastCall returns the time since the last call; 0 at first, and if the kernel does not report it.
func (s *stolenTime) sinceLastCall() (seconds float64, err error) {
	total, _, err := processorsOf(s.directory)
	if err != nil {
		return 0, fmt.Errorf("time that the hypervisor took: %w", err)
	}
	before, known := s.before, s.known
	s.before, s.known = total.Steal, true
	if !known {
		return 0, nil
	}
	return max(wholeTicks(total.Steal-before), 0), nil
}

// sampleStolen writes a line into every active run's log if there was stolen time since the last one.
func (s *Sampler) sampleStolen(now int64) error {
	stolen, err := s.stolen.sinceLastCall()
	if err != nil || stolen == 0 {
		return err
	}
	line, err := json.Marshal(runapi.RadioStealTime{TimeNanoseconds: now, StolenSeconds: stolen})
	if err != nil {
		return err
	}
	return s.appendToActive(now, append(line, '\n'))
}
