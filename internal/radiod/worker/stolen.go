package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// statFile has the time of the host's processors, in a container too.
const statFile = "/proc/stat"

// userTicksPerSecond is the unit of statFile (USER_HZ), the same on all architectures that Go knows of Linux.
const userTicksPerSecond = 100

// stolenTime reads how long a hypervisor let a host's processors wait while they had work.
type stolenTime struct {
	file   string
	before uint64
	known  bool
}

// since the last call; 0 at first, and where the kernel does not tell.
func (s *stolenTime) since() (time.Duration, error) {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return 0, fmt.Errorf("time that the hypervisor took: %w", err)
	}
	now, err := parseStolen(text)
	if err != nil {
		return 0, fmt.Errorf("time that the hypervisor took: %s: %w", s.file, err)
	}
	before, known := s.before, s.known
	s.before, s.known = now, true
	if !known || now < before {
		return 0, nil
	}
	return time.Duration(now-before) * time.Second / userTicksPerSecond, nil //nolint:gosec // ticks of a second
}

// parseStolen gives the ticks stolen from all processors together: the eighth figure of the first line (proc_stat(5)).
func parseStolen(stat []byte) (ticks uint64, err error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 || string(fields[0]) != "cpu" {
		return 0, fmt.Errorf("the line %q has no time of all processors; want cpu and at least 8 figures", line)
	}
	return strconv.ParseUint(string(fields[8]), 10, 64)
}

// sampleStolen writes a line into every active run's log if the hypervisor took something since the last one.
func (s *Sampler) sampleStolen(now int64) error {
	stolen, err := s.stolen.since()
	if err != nil || stolen == 0 {
		return err
	}
	line, err := json.Marshal(runapi.RadioStolen{TimeNanoseconds: now, StolenSeconds: stolen.Seconds()})
	if err != nil {
		return err
	}
	return s.appendToActive(now, append(line, '\n'))
}
