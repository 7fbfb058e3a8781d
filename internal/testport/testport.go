// Package testport finds TCP ports for servers of tests.
package testport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// The kernel takes ports from 32768 on for outgoing connections by default. A client that keeps
// trying to reach one of those before its server listens can meet itself there.
const first, last = 20000, 32000

// Ports are counted from a random one on: none is given twice, and programs that run at once rarely give the same.
var (
	begin = rand.IntN(last - first)
	given atomic.Int64
)

// Free is a port of 127.0.0.1 on which nobody listens, below those of outgoing connections. The next one is given to nobody else:
// some servers have two.
func Free(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := first + (begin+int(given.Add(2)))%(last-first)
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
