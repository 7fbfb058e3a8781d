package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

// clockStepThreshold is the smallest jump that counts as a step. Slewing, at most 500 ppm, stays below it in the second
// between two checks.
const clockStepThreshold = time.Millisecond

// clockWatch detects steps of CLOCK_REALTIME against CLOCK_MONOTONIC.
type clockWatch struct {
	offset  func() int64
	last    int64
	started bool
}

// check compares the clocks, and returns the jump since the last check, or 0.
func (w *clockWatch) check() time.Duration {
	offset := w.offset()
	jump := time.Duration(offset - w.last)
	first := !w.started
	w.last, w.started = offset, true
	if first || jump.Abs() <= clockStepThreshold {
		return 0
	}
	return jump
}

// watchClock logs every step of the clock until ctx ends.
func (a *Agent) watchClock(ctx context.Context) {
	watch := clockWatch{offset: clock.EpochOffset}
	watch.check()
	clock.Every(ctx, checkPeriod, func() {
		if jump := watch.check(); jump != 0 {
			a.events.add(runapi.AgentEvent{Event: eventClockStep, LatenessSeconds: jump.Seconds(),
				Message: fmt.Sprintf("the node's clock was stepped by %v: times before and after cannot be compared", jump)})
		}
	})
}

// readClock returns the state of the node's own clock; nil if it has none.
func readClock(path string) *runapi.AgentClock {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var known runapi.AgentClock
	if json.Unmarshal(text, &known) != nil {
		return nil // replaced atomically, so another program wrote it
	}
	return &known
}

// scarceBytes of free space or less count as full: the next writes fail.
const scarceBytes = 64 << 10

// diskWatch detects a full disk of the logs. Programs that write them may not report it, and perhaps cannot.
type diskWatch struct {
	state *state
	free  func() int64
	full  bool
	// lastRoom is when there was last room, Unix nanoseconds.
	lastRoom int64
}

// check the disk once. A gap exceeds the shortage by at most the time between two checks.
func (w *diskWatch) check(now int64) {
	free := w.free()
	switch {
	case free < scarceBytes && !w.full:
		w.full = true
		w.state.gapBegins(w.lastRoom, fmt.Sprintf("the disk of the logs was full (%d bytes free): what the app logged meanwhile may be lost", free))
	case free >= scarceBytes && w.full:
		w.full = false
		w.state.gapEnds(now)
	}
	if !w.full {
		w.lastRoom = now
	}
}

// freeBytes of a folder's file system; unlimited if it does not say.
func freeBytes(dir string) int64 {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil || stat.Blocks == 0 {
		return math.MaxInt64
	}
	return int64(min(stat.Bavail, 1<<40)) * stat.Bsize //nolint:gosec // bounded
}

// cpuUse is how long a cgroup waited for processors; a negative duration is unknown.
type cpuUse struct {
	throttled, pressure time.Duration
	periods             int64
}

// readCPU reads the container's own cgroup below root: version 2 at the root itself, version 1 below cpu.
func readCPU(root string) cpuUse {
	use := cpuUse{throttled: -1, pressure: -1}
	for _, sub := range []string{"", "cpu", "cpu,cpuacct"} {
		values, err := readPairs(filepath.Join(root, sub, "cpu.stat"))
		if err != nil {
			continue
		}
		use.periods = values["nr_throttled"]
		if microseconds, ok := values["throttled_usec"]; ok {
			use.throttled = time.Duration(microseconds) * time.Microsecond
		} else if nanoseconds, ok := values["throttled_time"]; ok {
			use.throttled = time.Duration(nanoseconds)
		}
		break
	}
	if total, err := readPressure(filepath.Join(root, "cpu.pressure")); err == nil {
		use.pressure = total
	}
	return use
}

// outOfMemory reports whether the kernel ended a process of the container for its memory limit, by its cgroup of version 2 or 1.
func outOfMemory(root string) bool {
	for _, file := range []string{"memory.events", "memory/memory.oom_control"} {
		if values, err := readPairs(filepath.Join(root, file)); err == nil && values["oom_kill"] > 0 {
			return true
		}
	}
	return false
}

// readPairs reads lines with a name and a number.
func readPairs(path string) (map[string]int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values := map[string]int64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			values[name] = n
		}
	}
	return values, lines.Err()
}

// readPressure reads the total of the line "some avg10=… avg60=… avg300=… total=MICROSECONDS" (the kernel's accounting/psi.rst):
// the time in which at least one task waited.
func readPressure(path string) (time.Duration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "some ") {
			continue
		}
		_, total, _ := strings.Cut(line, "total=")
		microseconds, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
		return time.Duration(microseconds) * time.Microsecond, err
	}
	return 0, errors.New("no line of some")
}

// reportCPU logs at the end how long the container waited for processors.
func (a *Agent) reportCPU(before, after cpuUse) {
	if before.throttled >= 0 && after.throttled >= 0 {
		d := after.throttled - before.throttled
		a.events.add(runapi.AgentEvent{Event: eventCPUThrottled, LatenessSeconds: d.Seconds(),
			Message: fmt.Sprintf("%v in %d periods", d, after.periods-before.periods)})
	}
	if before.pressure >= 0 && after.pressure >= 0 {
		d := after.pressure - before.pressure
		a.events.add(runapi.AgentEvent{Event: eventCPUPressure, LatenessSeconds: d.Seconds(),
			Message: fmt.Sprintf("some task waited for a processor for %v", d)})
	}
}
