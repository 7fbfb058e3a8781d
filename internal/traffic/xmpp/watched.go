package xmpp

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchedConn is a TCP connection that knows when its peer last gave a sign of life.
type watchedConn struct {
	net.Conn
	// read is when something was, in nanoseconds since 1970.
	read    atomic.Int64
	written atomic.Int64
	// acknowledged bytes as last seen, and when some of several more were; for lastLife alone.
	acknowledged int64
	progress     time.Time
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read.Store(time.Now().UnixNano())
	}
	return n, err
}

// pieceBytes of a write that waits for the socket: progress is seen after each.
const pieceBytes = 64 << 10

func (c *watchedConn) Write(b []byte) (total int, err error) {
	for {
		n, err := c.Conn.Write(b[:min(len(b), pieceBytes)])
		c.written.Add(int64(n))
		total += n
		if b = b[n:]; err != nil || len(b) == 0 {
			return total, err
		}
	}
}

// lastLife is when something was read, or the peer's host was seen to have acknowledged a part of what is under way. That it has
// acknowledged all says nothing of the server, which is to answer then.
func (c *watchedConn) lastLife(now time.Time) time.Time {
	waiting := c.waiting()
	if acknowledged := c.written.Load() - waiting; acknowledged > c.acknowledged {
		c.acknowledged = acknowledged
		if waiting > 0 {
			c.progress = now
		}
	}
	if read := time.Unix(0, c.read.Load()); read.After(c.progress) {
		return read
	}
	return c.progress
}

// waiting bytes are in the kernel's buffer without an acknowledgement (SIOCOUTQ, tcp(7)).
func (c *watchedConn) waiting() (bytes int64) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			bytes = int64(n)
		}
	})
	return bytes
}
