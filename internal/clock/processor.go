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

// Bind keeps a thread on one processor; thread 0 is the calling one, which the caller has locked.
func Bind(thread, processor int) error {
	var only unix.CPUSet
	only.Set(processor)
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(thread, &only))
}
