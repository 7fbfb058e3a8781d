// Package testport finds TCP ports for servers of tests.
package testport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// The kernel takes ports from 32768 on for outgoing connections by default. A client that keeps
// trying to reach one of those before its server listens can meet itself there.
const first, last = 20000, 32000

// Free is a port of 127.0.0.1 on which nobody listens, below those of outgoing connections.
func Free(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := first + rand.IntN(last-first)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		return port
	}
	t.Fatalf("no free port from %d to %d", first, last)
	return 0
}
