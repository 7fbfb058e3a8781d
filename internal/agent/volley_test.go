package agent

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sleepers are processes that SIGTERM ends.
func sleepers(t *testing.T, count int) (all []*exec.Cmd, pids []int) {
	t.Helper()
	for range count {
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		all, pids = append(all, c), append(pids, c.Process.Pid)
	}
	return all, pids
}

// endedBy is the signal that has ended a process; 0 for one that still runs.
func endedBy(t *testing.T, c *exec.Cmd, wait time.Duration) syscall.Signal {
	t.Helper()
	for end := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, c.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
		if info.Signo != 0 {
			_ = c.Wait()
			return c.ProcessState.Sys().(syscall.WaitStatus).Signal()
		}
		if time.Now().After(end) {
			return 0
		}
	}
}

func TestAVolleyTellsAllByOneCall(t *testing.T) {
	all, pids := sleepers(t, 8)
	v := newVolley(syscall.SIGTERM, pids)
	defer v.close()
	if v.pipe == nil {
		t.Fatal("not prepared")
	}
	v.fire(nil) // none is told by a call of its own
	for i, c := range all {
		if by := endedBy(t, c, 10*time.Second); by != syscall.SIGTERM {
			t.Errorf("process %d ended by %v; want SIGTERM", i, by)
		}
	}
}

func TestAVolleyThatIsNotFiredTellsNobody(t *testing.T) {
	all, pids := sleepers(t, 2)
	newVolley(syscall.SIGTERM, pids).close()
	for i, c := range all {
		if by := endedBy(t, c, 50*time.Millisecond); by != 0 {
			t.Errorf("process %d ended by %v; want it to run on", i, by)
		}
	}
}

func TestProcessesThatAVolleyWasNotPreparedForAreToldAsWell(t *testing.T) {
	all, pids := sleepers(t, 2)
	v := newVolley(syscall.SIGTERM, pids[:1])
	defer v.close()
	v.fire(append(pids, 0))
	for i, c := range all {
		if by := endedBy(t, c, 10*time.Second); by != syscall.SIGTERM {
			t.Errorf("process %d ended by %v; want SIGTERM", i, by)
		}
	}
}

func TestAVolleyThatCannotBePreparedTellsOneAfterTheOther(t *testing.T) {
	all, pids := sleepers(t, 2)
	v := newVolley(syscall.SIGTERM, pids)
	v.close()
	v.fire(pids)
	for i, c := range all {
		if by := endedBy(t, c, 10*time.Second); by != syscall.SIGTERM {
			t.Errorf("process %d ended by %v; want SIGTERM", i, by)
		}
	}
}
