// Package testtool has what tests of several packages need.
package testtool

import (
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
