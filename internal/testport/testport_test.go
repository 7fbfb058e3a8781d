package testport

import (
	"runtime"
	"testing"
)

func TestNoPortIsGivenTwiceNorTheNextOne(t *testing.T) {
	given := map[int]bool{}
	for range 1000 {
		port := Free(t)
		if given[port] || given[port-1] || given[port+1] || port < first || port >= last {
			t.Fatalf("port %d is given after %d others", port, len(given))
		}
		given[port] = true
	}
}

func TestAnotherProgramGetsNoBlockOfThisOne(t *testing.T) {
	Free(t)
	runtime.GC()
	if l, err := listen(end - blockSize); err == nil {
		_ = l.Close()
		t.Error("nobody listens on the first port of the block: another program would take it")
	}
}
