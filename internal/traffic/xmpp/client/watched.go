package client

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchedConn is a TCP connection that records its peer's last sign of life.
type watchedConn struct {
	net.Conn
	// read is when the last byte was read, in nanoseconds since 1970.
	read    atomic.Int64
	written atomic.Int64
	// acknowledged is the last count of acknowledged bytes, and progress when it last grew. For lastSign alone.
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

// pieceBytes is the size of a piece of a write. Progress shows after each piece.
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

// lastSign returns when a byte was last read, or the peer's host last acknowledged a part of the data in flight.
// An acknowledgement of all data is no sign that the server itself is alive.
func (c *watchedConn) lastSign(now time.Time) time.Time {
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

// waiting returns the unacknowledged bytes in the kernel's buffer (SIOCOUTQ, tcp(7)).
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
