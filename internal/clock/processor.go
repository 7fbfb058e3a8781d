package clock

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Processors that the calling thread may use, in order.
func Processors() (numbers []int, err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	for number := 0; len(numbers) < allowed.Count(); number++ {
		if allowed.IsSet(number) {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// Bind keeps a thread on some processors; thread 0 is the calling one, which the caller has locked.
func Bind(thread int, processors ...int) error {
	var only unix.CPUSet
	for _, number := range processors {
		only.Set(number)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(thread, &only))
}

// ProcessorField gives what the text of /proc/cpuinfo has under a name for its first processor, as it has on x86; not ok without one.
func ProcessorField(cpuinfo, name string) (value string, ok bool) {
	for line := range strings.Lines(cpuinfo) {
		if field, value, _ := strings.Cut(line, ":"); strings.TrimSpace(field) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
