package transport

import (
	"io"
	"net"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
)

func TestALargeMessageOnASlowLinkIsASignOfLifeWhileItMoves(t *testing.T) {
	t.Parallel()
	listener := testport.Listen(t)
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c := Watch(conn)
	go func() { _, _ = c.Write(make([]byte, 32<<20)) }()
	begin := time.Now()
	life := func(after time.Duration) time.Duration { return c.LastSign(begin.Add(after)).Sub(begin) }
	acknowledged := func() uint64 { n, _ := c.flight(); return n }
	settle := func() { // until the kernels' buffers are full
		for last := uint64(0); last < 1000 || last != acknowledged(); time.Sleep(100 * time.Millisecond) {
			last = acknowledged()
		}
	}
	settle()
	if got := life(time.Second); got != time.Second {
		t.Errorf("last life after %v; want it to have begun", got)
	}
	if got := life(2 * time.Second); got != time.Second {
		t.Errorf("last life after %v though nobody reads; want 1s", got)
	}
	if _, err := io.CopyN(io.Discard, peer, 8<<20); err != nil {
		t.Fatal(err)
	}
	settle()
	if got := life(3 * time.Second); got != 3*time.Second {
		t.Errorf("last life after %v though the peer reads; want 3s", got)
	}
	if _, err := io.CopyN(io.Discard, peer, 24<<20); err != nil {
		t.Fatal(err)
	}
	settle()
	if got := life(4 * time.Second); got != 3*time.Second {
		t.Errorf("last life after %v when all was acknowledged; want 3s", got)
	}
}
