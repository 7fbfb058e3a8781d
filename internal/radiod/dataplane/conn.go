package dataplane

import (
	"errors"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/holder"
)

// conn is one end of the stream socket between a worker and the data plane. Descriptors travel beside the bytes, and arrive
// no later than the bytes that are written next.
type conn struct {
	*net.UnixConn
	control []byte // of Read
	// ended is closed when nothing comes any more.
	ended chan struct{}
	end   sync.Once

	mu       sync.Mutex
	sending  []int // with the next Write
	received []int
}

// maxDescriptors of a request.
const maxDescriptors = 2

func newConn(c *net.UnixConn) *conn {
	return &conn{UnixConn: c, control: make([]byte, unix.CmsgSpace(4*maxDescriptors)), ended: make(chan struct{})}
}

// Read implements io.Reader, for one goroutine.
func (c *conn) Read(b []byte) (int, error) {
	n, controlled, _, _, err := c.ReadMsgUnix(b, c.control)
	var fds []int
	if err == nil {
		fds, err = holder.Descriptors(c.control[:controlled])
	}
	if err != nil {
		c.end.Do(func() { close(c.ended) })
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, fds...)
	return n, nil
}

// Write implements io.Writer, for one goroutine.
func (c *conn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	sending := c.sending
	c.sending = nil
	c.mu.Unlock()
	if len(sending) > 0 {
		if n, _, err = c.WriteMsgUnix(b, unix.UnixRights(sending...), nil); err != nil {
			return n, err
		}
	}
	rest, err := c.UnixConn.Write(b[n:])
	return n + rest, err
}

// send sends descriptors with what is written next.
func (c *conn) send(fds ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending = append(c.sending, fds...)
}

var errNoDescriptor = errors.New("no descriptor came with the request")

// receive returns the oldest descriptor that has arrived. The caller closes it.
func (c *conn) receive() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.received) == 0 {
		return -1, errNoDescriptor
	}
	fd := c.received[0]
	c.received = c.received[1:]
	return fd, nil
}

// close closes the connection and descriptors that nobody has taken.
func (c *conn) close() {
	_ = c.UnixConn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fd := range c.received {
		_ = unix.Close(fd)
	}
	c.received = nil
}
