package clock

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Processor that the calling thread is on at the moment; -1 where the kernel does not tell.
func Processor() int {
	var here uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&here)), 0, 0); errno != 0 {
		return -1
	}
	return int(here)
}

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

// Bind keeps a thread on one processor; thread 0 is the calling one, which the caller has locked.
func Bind(thread, processor int) error {
	var only unix.CPUSet
	only.Set(processor)
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(thread, &only))
}
