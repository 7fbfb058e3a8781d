// Package testport finds TCP ports for servers of tests.
package testport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// The kernel takes ports from 32768 on for outgoing connections by default. A client that keeps
// trying to reach one of those before its server listens can meet itself there.
const first, last = 20000, 32000

// blockSize is how many ports a program takes at once.
const blockSize = 100

// Ports are given one after the other: next is the next one of the program's last block, before end.
var (
	mu        sync.Mutex
	next, end int
	blocks    []net.Listener // at the first port of each block; they stay open
)

// Free is a port of 127.0.0.1 on which nobody listens, below those of outgoing connections. The next one is given to nobody else:
// some servers have two.
func Free(t testing.TB) int {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		if next >= end && !takeBlock() {
			break
		}
		port := next
		next += 2
		if l, err := listen(port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("no free port from %d to %d", first, last)
	return 0
}

// Listen listens on a port of 127.0.0.1 until the test ends.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := listen(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// takeBlock takes ports that no other test program gives: this one listens on the block's first port until it ends.
func takeBlock() bool {
	for _, block := range rand.Perm((last - first) / blockSize) {
		begin := first + block*blockSize
		if l, err := listen(begin); err == nil {
			next, end, blocks = begin+2, begin+blockSize, append(blocks, l)
			return true
		}
	}
	return false
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
