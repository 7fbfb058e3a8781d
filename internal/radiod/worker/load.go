package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

// procDir has what the kernel tells of the host, in a container too.
const procDir = "/proc"

// Columns of the first line of proc_stat(5) in which processors did nothing for the host. guest and guest_nice are in user and nice
// already.
const (
	columnIdle, columnIOWait, columnSteal = 4, 5, 8
	columnsCounted                        = 9
)

// hostLoad reads how busy a host was.
type hostLoad struct {
	directory string
	// now is time.Now, except in tests.
	now    func() time.Time
	before loadCounters
	at     time.Time
	known  bool
}

// loadCounters only grow, except where a live migration begins anew.
type loadCounters struct {
	busyTicks uint64
	cpus      int
	// Pressures in microseconds; nil where the kernel does not tell.
	cpu, memory *uint64
}

// since the last call; ok is false for the first one and for one after which counters began anew.
func (l *hostLoad) since() (load runapi.RadioLoad, ok bool, err error) {
	now, err := l.read()
	if err != nil {
		return load, false, err
	}
	before, known, at := l.before, l.known, l.at
	l.before, l.known, l.at = now, true, l.now()
	if load.LoadAverage, err = l.average(); err != nil || !known || now.busyTicks < before.busyTicks {
		return load, false, err
	}
	load.Seconds, load.CPUs = l.at.Sub(at).Seconds(), now.cpus
	load.BusySeconds = float64(now.busyTicks-before.busyTicks) / userTicksPerSecond
	load.CPUPressureSeconds = grown(before.cpu, now.cpu)
	load.MemoryPressureSeconds = grown(before.memory, now.memory)
	return load, true, nil
}

func grown(before, now *uint64) *float64 {
	if before == nil || now == nil || *now < *before {
		return nil
	}
	seconds := (time.Duration(*now-*before) * time.Microsecond).Seconds() //nolint:gosec // microseconds of a few seconds
	return &seconds
}

func (l *hostLoad) read() (c loadCounters, err error) {
	stat, err := os.ReadFile(filepath.Join(l.directory, "stat"))
	if err == nil {
		c.busyTicks, c.cpus, err = parseBusy(stat)
	}
	if err != nil {
		return c, fmt.Errorf("load of the host: %w", err)
	}
	if c.cpu, err = l.pressure("cpu"); err != nil {
		return c, err
	}
	c.memory, err = l.pressure("memory")
	return c, err
}

// parseBusy gives the ticks in which processors were busy, added over all of them, and how many there are.
func parseBusy(stat []byte) (ticks uint64, cpus int, err error) {
	lines := bytes.Split(stat, []byte("\n"))
	fields := bytes.Fields(lines[0])
	if len(fields) < columnsCounted || string(fields[0]) != "cpu" {
		return 0, 0, fmt.Errorf("the line %q has no time of all processors; want cpu and at least 8 figures", lines[0])
	}
	for column, field := range fields[:columnsCounted] {
		if column == 0 || column == columnIdle || column == columnIOWait || column == columnSteal {
			continue
		}
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("the line %q: %w", lines[0], err)
		}
		ticks += n
	}
	for _, line := range lines[1:] {
		if bytes.HasPrefix(line, []byte("cpu")) {
			cpus++
		}
	}
	return ticks, cpus, nil
}

func (l *hostLoad) average() (float64, error) {
	text, err := os.ReadFile(filepath.Join(l.directory, "loadavg"))
	if err != nil {
		return 0, fmt.Errorf("load of the host: %w", err)
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	average, err := strconv.ParseFloat(string(first), 64)
	if err != nil {
		return 0, fmt.Errorf("load of the host: loadavg %q: %w", text, err)
	}
	return average, nil
}

// pressure is the total of the line some of a file of PSI, in microseconds; nil where the kernel has none, or has it turned off.
func (l *hostLoad) pressure(resource string) (*uint64, error) {
	text, err := os.ReadFile(filepath.Join(l.directory, "pressure", resource))
	if err != nil {
		return nil, nil //nolint:nilerr // a kernel without PSI has no such file, one with psi=0 cannot read it
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || string(fields[0]) != "some" {
			continue
		}
		if total, found := bytes.CutPrefix(fields[len(fields)-1], []byte("total=")); found {
			n, err := strconv.ParseUint(string(total), 10, 64)
			return &n, err
		}
	}
	return nil, fmt.Errorf("pressure of %s: %q has no total of some", resource, text)
}

// cpuModelOf the first processor, as the kernel names it; empty where it does not, as on most machines that are not x86.
func cpuModelOf(directory string) string {
	text, _ := os.ReadFile(filepath.Join(directory, "cpuinfo"))
	model, _ := clock.ProcessorField(string(text), "model name")
	return model
}

// sampleLoad writes how busy the host was into every active run's log.
func (s *Sampler) sampleLoad(now int64) error {
	load, ok, err := s.load.since()
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
