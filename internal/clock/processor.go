package clock

import (
	"os"

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

// Bind binds a thread to some processors; thread 0 is the calling one, which the caller must have locked.
func Bind(thread int, processors ...int) error {
	var only unix.CPUSet
	for _, number := range processors {
		only.Set(number)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(thread, &only))
}
