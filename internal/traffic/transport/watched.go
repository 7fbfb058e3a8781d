package transport

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// WatchedConn is a TCP connection, or TLS over one, that records its peer's last sign of life.
type WatchedConn struct {
	net.Conn
	// read is when bytes were last read, wrote when the kernel last took some, in nanoseconds since 1970.
	read, wrote atomic.Int64
	// acknowledged is the last count of acknowledged bytes, and progress when it last grew. For LastSign alone.
	acknowledged uint64
	progress     time.Time
}

// Watch watches a connection. Its beginning is the first sign of life.
func Watch(conn net.Conn) *WatchedConn {
	c := &WatchedConn{Conn: conn}
	c.read.Store(time.Now().UnixNano())
	return c
}

// Read implements net.Conn.
func (c *WatchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read.Store(time.Now().UnixNano())
	}
	return n, err
}

// Write implements net.Conn.
func (c *WatchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.wrote.Store(time.Now().UnixNano())
	}
	return n, err
}

// LastWrite returns when a write last ended.
func (c *WatchedConn) LastWrite() time.Time { return time.Unix(0, c.wrote.Load()) }

// LastSign returns when bytes were last read, or the peer's host last acknowledged a part of the data in flight.
// An acknowledgement of all data is no sign that the peer itself is alive. It is for one goroutine.
func (c *WatchedConn) LastSign(now time.Time) time.Time {
	if acknowledged, waiting := c.flight(); acknowledged > c.acknowledged {
		c.acknowledged = acknowledged
		if waiting {
			c.progress = now
		}
	}
	if read := time.Unix(0, c.read.Load()); read.After(c.progress) {
		return read
	}
	return c.progress
}

// flight returns how many bytes the peer's host has acknowledged, and whether others wait for that.
func (c *WatchedConn) flight() (acknowledged uint64, waiting bool) {
	below := c.Conn
	if secure, ok := below.(*tls.Conn); ok {
		below = secure.NetConn()
	}
	socket, ok := below.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil { //nolint:gosec // a descriptor
			acknowledged, waiting = info.Bytes_acked, info.Unacked > 0 || info.Notsent_bytes > 0
		}
	})
	return acknowledged, waiting
}
