package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// volley sends one signal to several processes by one system call: a byte goes into a pipe of which each process owns an open file that
// reports input to it (fcntl(2): O_ASYNC, F_SETOWN and F_SETSIG). Told by one call each, those that were told first would take the
// processor before the others are: a dozen programs that begin at one moment take milliseconds each.
type volley struct {
	signal syscall.Signal
	pids   []int
	pipe   *os.File
	owned  []int
}

// newVolley prepares a signal to processes of this agent. A volley that cannot be prepared sends it to one after the other.
func newVolley(signal syscall.Signal, pids []int) *volley {
	v := &volley{signal: signal, pids: pids}
	if len(pids) == 0 {
		return v
	}
	if err := v.prepare(); err != nil {
		v.close()
	}
	return v
}

func (v *volley) prepare() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	v.pipe = write
	// Each owner needs an open file of its own.
	path := fmt.Sprintf("/proc/self/fd/%d", read.Fd())
	for _, pid := range v.pids {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("open", err)
		}
		v.owned = append(v.owned, fd)
		_, ownErr := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, pid)
		_, signalErr := unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(v.signal))
		_, asyncErr := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK)
		if err := errors.Join(ownErr, signalErr, asyncErr); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return nil
}

// fire sends the signal to these processes, and to others that it was prepared for. Those that it was not prepared for are told one by one;
// 0 is none.
func (v *volley) fire(pids []int) {
	all := v.pipe != nil
	if all {
		// Not by the file's own method: Go's scheduler need not know of a call that does not block.
		_, err := unix.Write(int(v.pipe.Fd()), []byte{0})
		all = err == nil
	}
	for _, pid := range pids {
		if pid != 0 && (!all || !slices.Contains(v.pids, pid)) {
			_ = unix.Kill(pid, v.signal) // it may have ended this moment
		}
	}
}

// close gives up what the volley has. The processes' files go first: the end of a pipe is news to those who wait for input, too.
func (v *volley) close() {
	for _, fd := range v.owned {
		_ = unix.Close(fd)
	}
	v.owned = nil
	if v.pipe != nil {
		_ = v.pipe.Close()
		v.pipe = nil
	}
}
