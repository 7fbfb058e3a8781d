package clock

import (
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAThreadOfShortSlicesStartsProgramsWithOrdinaryOnes(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	ordinary := slice(t, 0)
	RunInShortSlices()
	if ordinary == 0 || slice(t, 0) != LeastSlice {
		t.Skipf("this kernel gives threads no slices of their own: %d ns before, %d ns now", ordinary, slice(t, 0))
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	if got := slice(t, child.Process.Pid); got != ordinary {
		t.Errorf("the program has slices of %d ns, want %d ns as this thread had before", got, ordinary)
	}
}

func slice(t *testing.T, id int) uint64 {
	t.Helper()
	has, err := unix.SchedGetAttr(id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return has.Runtime
}
