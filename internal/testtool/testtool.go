// Package testtool has what tests of several packages need.
package testtool

import (
	"os/exec"
	"testing"
	"time"
)

// Eventually waits up to a minute, as hosts of tests are busy, for what happens elsewhere.
func Eventually(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute still not: %s", what)
		}
	}
}

// Need looks for programs, and returns the path of the first one. If one is not installed it skips the test.
func Need(t testing.TB, programs ...string) string {
	t.Helper()
	paths := make([]string, len(programs))
	for i, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			path, err = exec.LookPath("/usr/sbin/" + program)
		}
		if err != nil {
			t.Skipf("%s is not installed (hack/test-packages)", program)
		}
		paths[i] = path
	}
	return paths[0]
}
