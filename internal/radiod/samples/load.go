package samples

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"vignette.dev/vignette/internal/runapi"
)

// ProcDirectory has the kernel's data of the host, also in a container.
const ProcDirectory = "/proc"

// hostLoad measures how busy a host was.
type hostLoad struct {
	directory string
	// now is time.Now, except in tests.
	now    func() time.Time
	before loadCounters
	at     time.Time
	known  bool
}

// loadCounters only grow, unless a live migration resets them.
type loadCounters struct {
	busySeconds float64
	cpus        int
	// Pressures in microseconds; nil if the kernel does not report them.
	cpu, memory *uint64
}

// sinceLastCall returns the load since the last call. ok is false for the first call, and after counters were reset.
func (l *hostLoad) sinceLastCall() (load runapi.RadioLoad, ok bool, err error) {
	now, err := l.read()
	if err != nil {
		return load, false, err
	}
	before, known, at := l.before, l.known, l.at
	l.before, l.known, l.at = now, true, l.now()
	if load.LoadAverage, err = l.average(); err != nil || !known || now.busySeconds < before.busySeconds {
		return load, false, err
	}
	load.Seconds, load.CPUs = l.at.Sub(at).Seconds(), now.cpus
	load.BusySeconds = wholeTicks(now.busySeconds - before.busySeconds)
	load.CPUPressureSeconds = increase(before.cpu, now.cpu)
	load.MemoryPressureSeconds = increase(before.memory, now.memory)
	return load, true, nil
}

func increase(before, now *uint64) *float64 {
	if before == nil || now == nil || *now < *before {
		return nil
	}
	seconds := (time.Duration(*now-*before) * time.Microsecond).Seconds() //nolint:gosec // microseconds of a few seconds
	return &seconds
}

func (l *hostLoad) read() (c loadCounters, err error) {
	total, cpus, err := processorsOf(l.directory)
	if err != nil {
		return c, fmt.Errorf("load of the host: %w", err)
	}
	// User and Nice include guests' time.
	c.busySeconds, c.cpus = total.User+total.Nice+total.System+total.IRQ+total.SoftIRQ, cpus
	c.cpu, c.memory = l.pressure("cpu"), l.pressure("memory")
	return c, nil
}

// processorsOf returns the time that the host's processors have spent, summed, and their number.
func processorsOf(directory string) (total procfs.CPUStat, cpus int, err error) {
	proc, err := procfs.NewFS(directory)
	if err != nil {
		return total, 0, err
	}
	stat, err := proc.Stat()
	return stat.CPUTotal, len(stat.CPU), err
}

// wholeTicks rounds seconds to the kernel's unit (USER_HZ).
func wholeTicks(seconds float64) float64 { return math.Round(seconds*100) / 100 }

func (l *hostLoad) average() (float64, error) {
	proc, err := procfs.NewFS(l.directory)
	if err != nil {
		return 0, fmt.Errorf("load of the host: %w", err)
	}
	average, err := proc.LoadAvg()
	if err != nil {
		return 0, fmt.Errorf("load of the host: loadavg: %w", err)
	}
	return average.Load1, nil
}

// pressure returns the total of the line "some" of a file of PSI, in microseconds. It is nil if the kernel
// lacks it or has it disabled.
func (l *hostLoad) pressure(resource string) *uint64 {
	proc, err := procfs.NewFS(l.directory)
	if err != nil {
		return nil
	}
	pressure, err := proc.PSIStatsForResource(resource)
	if err != nil || pressure.Some == nil {
		return nil
	}
	return &pressure.Some.Total
}

// CPUModel returns the first processor's model as the kernel names it. It is empty if it does not, as on
// most machines other than x86.
func CPUModel(directory string) string {
	text, _ := os.ReadFile(filepath.Join(directory, "cpuinfo"))
	for line := range strings.Lines(string(text)) {
		if field, value, _ := strings.Cut(line, ":"); strings.TrimSpace(field) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// sampleLoad writes the host's load into every active run's log.
func (s *Sampler) sampleLoad(now int64) error {
	load, ok, err := s.load.sinceLastCall()
	if err != nil || !ok {
		return err
	}
	load.TimeNanoseconds = now
	line, err := json.Marshal(load)
	if err != nil {
		return err
	}
	return s.appendToActive(now, append(line, '\n'))
}
