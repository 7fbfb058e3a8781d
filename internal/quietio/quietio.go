// Package quietio reads sockets and writes files with the least processor time that Go's runtime allows. It is for programs that wake for
// one small message at a time, of which a host runs hundreds.
//
// A system call that may block wakes the runtime's monitor thread (sysmon), which then looks every 20 µs until the program waits again.
// For a program that reads and logs one message at a time, that is a third of its processor time. Calls that do not block need no
// monitor. So this package reads sockets, which are in non-blocking mode, and writes regular files, whose bytes go to the page
// cache, without telling the runtime. The runtime still does all waiting, so that deadlines and closing work as usual.
package quietio

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bufferBytes of one read: some tens of messages.
const bufferBytes = 4 << 10

// Conn is a connection that is read in large pieces, however small the requested ones are. Writing is the connection's own.
type Conn struct {
	net.Conn
	mu   sync.Mutex
	raw  syscall.RawConn
	read call
	// unread is the part of buffer that was read and not requested yet.
	unread, buffer []byte
}

// NewConn wraps a connection; one that is no socket is only read in large pieces.
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

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if len(c.unread) == 0 {
		if len(b) >= len(c.buffer) {
			return c.fill(b)
		}
		n, err := c.fill(c.buffer)
		if err != nil {
			return 0, err
		}
		c.unread = c.buffer[:n]
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// SyscallConn is the socket's; nothing may be read from it.
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
	n, err := c.read.do(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	switch {
	case err != nil:
		return 0, c.wrapError(err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// wrapError returns an error like that of the connection's own reading.
func (c *Conn) wrapError(err error) error {
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
	from          unix.RawSockaddrInet4
	buffer, extra []byte
}

// NewDatagrams receives into a buffer, and the kernel's control messages about a datagram (SO_RXQ_OVFL and others) into extra.
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
	d.header.Name = (*byte)(unsafe.Pointer(&d.from))
	return d, nil
}

// Receive waits for the next datagram. Both results are parts of the buffers, which the next call reuses.
func (d *Datagrams) Receive() (datagram, extra []byte, err error) {
	d.header.SetControllen(len(d.extra))
	d.header.Namelen = unix.SizeofSockaddrInet4
	n, err := d.receive.do(unsafe.Pointer(&d.header), 0)
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return nil, nil, os.NewSyscallError("recvmsg", number)
	}
	if err != nil {
		return nil, nil, err
	}
	return d.buffer[:n], d.extra[:d.header.Controllen], nil
}

// From returns the sender of the last datagram; zero if its address is not of IPv4.
func (d *Datagrams) From() netip.AddrPort {
	if d.from.Family != unix.AF_INET {
		return netip.AddrPort{}
	}
	port := (*[2]byte)(unsafe.Pointer(&d.from.Port))
	return netip.AddrPortFrom(netip.AddrFrom4(d.from.Addr), binary.BigEndian.Uint16(port[:]))
}

// Drops is how many datagrams a socket with SO_RXQ_OVFL has dropped since it was opened.
type Drops uint32

// More returns how many were dropped since its last call, from the control messages about a datagram.
func (d *Drops) More(control []byte) uint32 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4 {
			before := uint32(*d)
			*d = Drops(binary.NativeEndian.Uint32(m.Data))
			return uint32(*d) - before
		}
	}
	return 0
}

// Destination returns a datagram's local address and its destination, from the control messages of a socket with IP_PKTINFO.
func Destination(control []byte) (local, to netip.Addr) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return local, to
	}
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo {
			return netip.AddrFrom4([4]byte(m.Data[4:8])), netip.AddrFrom4([4]byte(m.Data[8:12]))
		}
	}
	return local, to
}

// Control sets options of a socket.
func Control(conn syscall.Conn, set func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	err = raw.Control(func(fd uintptr) { failure = set(int(fd)) })
	return errors.Join(err, failure)
}

// call is a repeated system call on one descriptor, made when that is ready. Its functions are made once, to save memory for each call.
type call struct {
	// wait is the descriptor's Read or Write; nil if there is none.
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
		c.n, c.number = retryOnInterrupt(c.trap, descriptor, c.at, c.third)
		return c.number != syscall.EAGAIN
	}
}

// do the call when the descriptor is ready. Errors of the kernel are syscall.Errno.
func (c *call) do(at unsafe.Pointer, third int) (int, error) {
	c.at, c.third = at, third
	err := c.wait(c.try)
	c.at = nil
	if err == nil && c.number != 0 {
		err = c.number
	}
	return c.n, err
}

// File is a regular file, or another file, which is written as usual.
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

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	if f.write.wait == nil {
		return f.File.Write(b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	written := 0
	for written < len(b) {
		rest := b[written:]
		n, err := f.write.do(unsafe.Pointer(unsafe.SliceData(rest)), len(rest))
		var number syscall.Errno
		switch {
		case errors.As(err, &number):
			return written, &os.PathError{Op: "write", Path: f.Name(), Err: number}
		case err != nil: // any other error precedes the call
			return written, &os.PathError{Op: "write", Path: f.Name(), Err: os.ErrClosed}
		}
		if n == 0 {
			return written, io.ErrUnexpectedEOF
		}
		written += n
	}
	return written, nil
}

// retryOnInterrupt makes a call that does not block: read, write or recvmsg.
func retryOnInterrupt(call, descriptor uintptr, at unsafe.Pointer, third int) (int, syscall.Errno) {
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
