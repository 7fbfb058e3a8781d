package samples

import (
	"encoding/json"
	"errors"
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

// hostLoad measures how busy a host was, and how long a hypervisor made its processors wait while they had work.
type hostLoad struct {
	proc procfs.FS
	// now is time.Now, except in tests.
	now    func() time.Time
	before loadCounters
	at     time.Time
	known  bool
}

// loadCounters only grow, unless a live migration resets them.
type loadCounters struct {
	busySeconds, stolenSeconds float64
	cpus                       int
	// Pressures in microseconds; nil if the kernel does not report them.
	cpu, memory *uint64
}

// sinceLastCall returns the load, and the time that the hypervisor took, since the last call. There is no load at first,
// and after counters were reset.
func (l *hostLoad) sinceLastCall() (load *runapi.RadioLoad, stolenSeconds float64, err error) {
	now, err := l.read()
	if err != nil {
		return nil, 0, err
	}
	before, known, at := l.before, l.known, l.at
	l.before, l.known, l.at = now, true, l.now()
	if known {
		stolenSeconds = max(wholeTicks(now.stolenSeconds-before.stolenSeconds), 0)
	}
	average, err := l.proc.LoadAvg()
	if err != nil {
		return nil, stolenSeconds, fmt.Errorf("load of the host: loadavg: %w", err)
	}
	if !known || now.busySeconds < before.busySeconds {
		return nil, stolenSeconds, nil
	}
	return &runapi.RadioLoad{Seconds: l.at.Sub(at).Seconds(), CPUs: now.cpus, LoadAverage: average.Load1,
		BusySeconds:        wholeTicks(now.busySeconds - before.busySeconds),
		CPUPressureSeconds: increase(before.cpu, now.cpu), MemoryPressureSeconds: increase(before.memory, now.memory)}, stolenSeconds, nil
}

func increase(before, now *uint64) *float64 {
	if before == nil || now == nil || *now < *before {
		return nil
	}
	seconds := (time.Duration(*now-*before) * time.Microsecond).Seconds() //nolint:gosec // microseconds of a few seconds
	return &seconds
}

func (l *hostLoad) read() (c loadCounters, err error) {
	stat, err := l.proc.Stat()
	if err != nil {
		return c, fmt.Errorf("load of the host: %w", err)
	}
	total := &stat.CPUTotal
	// User and Nice include guests' time.
	c.busySeconds, c.stolenSeconds = total.User+total.Nice+total.System+total.IRQ+total.SoftIRQ, total.Steal
	c.cpus, c.cpu, c.memory = len(stat.CPU), l.pressure("cpu"), l.pressure("memory")
	return c, nil
}

// wholeTicks rounds seconds to the kernel's unit (USER_HZ).
func wholeTicks(seconds float64) float64 { return math.Round(seconds*100) / 100 }

// pressure returns the total of the line "some" of a file of PSI, in microseconds. It is nil if the kernel
// lacks it or has it disabled.
func (l *hostLoad) pressure(resource string) *uint64 {
	pressure, err := l.proc.PSIStatsForResource(resource)
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

// sampleLoad writes the host's load, and the time that the hypervisor took if it took any, into every active run's log.
func (s *Sampler) sampleLoad(now int64) error {
	load, stolenSeconds, err := s.load.sinceLastCall()
	if stolenSeconds > 0 {
		err = errors.Join(err, s.appendToActive(now, runapi.RadioStealTime{TimeNanoseconds: now, StolenSeconds: stolenSeconds}))
	}
	if load != nil {
		load.TimeNanoseconds = now
		err = errors.Join(err, s.appendToActive(now, load))
	}
	return err
}

// appendToActive writes a line into the log of every run that has attachments on this host.
func (s *Sampler) appendToActive(now int64, line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	var failed error
	for _, r := range s.active() {
		failed = errors.Join(failed, r.spool.append(now, append(text, '\n')))
	}
	return failed
}
