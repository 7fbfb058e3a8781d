// Package quietio reads sockets and writes files at the lowest cost in processor time that Go's runtime has, for programs that wake for one small message
// now and then and of which a host runs hundreds.
//
// Each system call that the runtime takes for one that may block wakes its monitor thread (sysmon) where that sleeps, and it goes on to look every 20 µs until
// the program waits again: where a program wakes to read and log one message, that is a third of its processor time. Calls that do not block need none of it. So
// sockets, which are in non-blocking mode, are read past the runtime, and so are regular files written, whose bytes go to the page cache. All
// waiting is the runtime's, and deadlines and closing work as ever.
package quietio

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bufferBytes hold what one read takes off a socket: some tens of messages.
const bufferBytes = 4 << 10

// Conn is a connection that is read in large pieces, whatever small ones are asked for. Writing is the connection's own.
type Conn struct {
	net.Conn
	mu   sync.Mutex
	raw  syscall.RawConn
	read call
	// waiting is what was read and not asked for yet, a part of buffer.
	waiting, buffer []byte
}

// NewConn wraps a connection; one that is no socket's is read in large pieces only.
func NewConn(inner net.Conn) *Conn {
	c := &Conn{Conn: inner, buffer: make([]byte, bufferBytes)}
	if socket, ok := inner.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			c.raw = raw
			c.read.init(raw.Read, syscall.SYS_READ)
		}
	}
	return c
}

// Read is as of net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if len(c.waiting) == 0 {
		if len(b) >= len(c.buffer) {
			return c.fill(b)
		}
		n, err := c.fill(c.buffer)
		if err != nil {
			return 0, err
		}
		c.waiting = c.buffer[:n]
	}
	n := copy(b, c.waiting)
	c.waiting = c.waiting[n:]
	return n, nil
}

// SyscallConn is the socket's, of which nothing must be read.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if c.raw == nil {
		return nil, errors.ErrUnsupported
	}
	return c.raw, nil
}

func (c *Conn) fill(b []byte) (int, error) {
	if c.raw == nil {
		return c.Conn.Read(b)
	}
	n, err := c.read.make(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	switch {
	case err != nil:
		return 0, c.failed(err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// failed is an error as the connection's own reading has it.
func (c *Conn) failed(err error) error {
	var number syscall.Errno
	var operation *net.OpError
	switch {
	case errors.As(err, &number):
		err = os.NewSyscallError("read", number)
	case errors.As(err, &operation):
		err = operation.Err
	}
	return &net.OpError{Op: "read", Net: c.RemoteAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// Datagrams receives from a UDP socket.
type Datagrams struct {
	receive       call
	header        unix.Msghdr
	vector        unix.Iovec
	buffer, extra []byte
}

// NewDatagrams receives into a buffer, and what the kernel says of a datagram (SO_RXQ_OVFL and others) into extra.
func NewDatagrams(socket *net.UDPConn, buffer, extra []byte) (*Datagrams, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	d := &Datagrams{buffer: buffer, extra: extra}
	d.receive.init(raw.Read, syscall.SYS_RECVMSG)
	d.vector.Base = unsafe.SliceData(buffer)
	d.vector.SetLen(len(buffer))
	d.header.Iov = &d.vector
	d.header.SetIovlen(1)
	d.header.Control = unsafe.SliceData(extra)
	return d, nil
}

// Receive waits for the next datagram. Both results are parts of the buffers, which the next call uses again.
func (d *Datagrams) Receive() (datagram, extra []byte, err error) {
	d.header.SetControllen(len(d.extra))
	n, err := d.receive.make(unsafe.Pointer(&d.header), 0)
	var number syscall.Errno
	if errors.As(err, &number) {
		return nil, nil, os.NewSyscallError("recvmsg", number)
	}
	if err != nil {
		return nil, nil, err
	}
	return d.buffer[:n], d.extra[:d.header.Controllen], nil
}

// call of the kernel that is made again and again on one descriptor, whenever that is ready. Its functions are made once, as they would else be memory for each time.
type call struct {
	// wait is the descriptor's Read or Write; nil where there is none.
	wait   func(func(descriptor uintptr) bool) error
	trap   uintptr
	at     unsafe.Pointer
	third  int
	n      int
	number syscall.Errno
	try    func(descriptor uintptr) bool
}

func (c *call) init(wait func(func(descriptor uintptr) bool) error, trap uintptr) {
	c.wait, c.trap = wait, trap
	c.try = func(descriptor uintptr) bool {
		c.n, c.number = ignoringInterrupts(c.trap, descriptor, c.at, c.third)
		return c.number != syscall.EAGAIN
	}
}

// make the call once the descriptor is ready. Errors of the kernel are syscall.Errno.
func (c *call) make(at unsafe.Pointer, third int) (int, error) {
	c.at, c.third = at, third
	err := c.wait(c.try)
	c.at = nil
	if err == nil && c.number != 0 {
		err = c.number
	}
	return c.n, err
}

// File is a regular file, or another thing to write to that is written as ever.
type File struct {
	*os.File
	mu    sync.Mutex
	write call
}

// NewFile wraps an open file.
func NewFile(file *os.File) *File {
	f := &File{File: file}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		if raw, err := file.SyscallConn(); err == nil {
			f.write.init(raw.Write, syscall.SYS_WRITE)
		}
	}
	return f
}

// Write is as of os.File.
func (f *File) Write(b []byte) (int, error) {
	if f.write.wait == nil {
		return f.File.Write(b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	written := 0
	for written < len(b) {
		rest := b[written:]
		n, err := f.write.make(unsafe.Pointer(unsafe.SliceData(rest)), len(rest))
		var number syscall.Errno
		switch {
		case errors.As(err, &number):
			return written, &os.PathError{Op: "write", Path: f.Name(), Err: number}
		case err != nil: // nothing else can be wrong before the call
			return written, &os.PathError{Op: "write", Path: f.Name(), Err: os.ErrClosed}
		}
		if n == 0 {
			return written, io.ErrUnexpectedEOF
		}
		written += n
	}
	return written, nil
}

// ignoringInterrupts makes a call that does not block: read, write or recvmsg.
func ignoringInterrupts(call, descriptor uintptr, at unsafe.Pointer, third int) (int, syscall.Errno) {
	for {
		n, _, number := syscall.RawSyscall(call, descriptor, uintptr(at), uintptr(third)) //nolint:gosec // a length
		switch number {
		case 0:
			return int(n), 0 //nolint:gosec // a length too
		case syscall.EINTR:
		default:
			return 0, number
		}
	}
}
