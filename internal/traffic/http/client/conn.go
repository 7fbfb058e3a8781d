package client

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/quietio"
)

// conn notes when bytes go over a connection, which net/http does not tell. One exchange at a time uses it.
type conn struct {
	net.Conn
	// writing is locked while a write is under way.
	writing sync.Mutex

	mu sync.Mutex
	// written is the time before the exchange's first byte was written, or zero.
	written time.Time
	// read is the time after the last byte was read.
	read time.Time
	// failed: not all of the exchange could be written.
	failed bool
	// flushed is called after the next write that succeeds; nil for nothing.
	flushed func()
	// lost is why the other side cannot be read or written any more; nil while it can.
	lost error
}

func newConn(inner net.Conn) *conn { return &conn{Conn: quietio.NewConn(inner)} }

// begin starts an exchange.
func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written, c.failed, c.flushed = time.Time{}, false, nil
}

// whenFlushed has a function called after the next write.
func (c *conn) whenFlushed(flushed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushed = flushed
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		c.read = time.Now()
	}
	c.note(err)
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, flushed, err := c.write(b)
	if flushed != nil {
		flushed()
	}
	return n, err
}

func (c *conn) write(b []byte) (n int, flushed func(), err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	if c.written.IsZero() {
		c.written = time.Now()
	}
	c.mu.Unlock()
	n, err = c.Conn.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed = true
		c.note(err)
		return n, nil, err
	}
	flushed, c.flushed = c.flushed, nil
	return n, flushed, nil
}

// abandon closes the connection, and waits for the end of a write that is under way.
func (c *conn) abandon() {
	_ = c.Close()
	c.writing.Lock()
	defer c.writing.Unlock()
}

// wrote returns the time before the exchange's first byte, and whether all that was to be written was.
func (c *conn) wrote() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written, !c.written.IsZero() && !c.failed
}

// note keeps an error that is the other side's doing, not that of a deadline or of closing here.
func (c *conn) note(err error) {
	if _, ok := errors.AsType[syscall.Errno](err); errors.Is(err, io.EOF) || ok {
		c.lost = err
	}
}

// lastRead returns when the last byte was read.
func (c *conn) lastRead() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}
