// Package zmq binds the calls of libzmq that ZeroMQ clients and brokers here need (api.zeromq.org, version 4.3). It loads the
// library at run time, so that programs build without a C compiler. Without the library only Open fails.
//
// Only Poll blocks. Other calls that would block fail with EAGAIN, and Socket.Wait waits in Go's runtime.
package zmq

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// soname is the library's name since version 4.0.
const soname = "libzmq.so.5"

// functions has the addresses of libzmq's functions.
type functions struct {
	has, errno, strerror                                         uintptr
	ctxNew, ctxTerm                                              uintptr
	socket, close, bind, connect, setOption, getOption, monitor  uintptr
	send, messageInit, messageReceive, messageSend, messageClose uintptr
	messageData, messageSize, messageMore                        uintptr
	poll                                                         uintptr
}

// load loads the library once.
var load = sync.OnceValues(func() (*functions, error) {
	handle, err := purego.Dlopen(soname, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("ZeroMQ's library %s (Debian package libzmq5): %w", soname, err)
	}
	f := &functions{}
	for name, to := range map[string]*uintptr{
		"zmq_has": &f.has, "zmq_errno": &f.errno, "zmq_strerror": &f.strerror,
		"zmq_ctx_new": &f.ctxNew, "zmq_ctx_term": &f.ctxTerm,
		"zmq_socket": &f.socket, "zmq_close": &f.close, "zmq_bind": &f.bind, "zmq_connect": &f.connect,
		"zmq_setsockopt": &f.setOption, "zmq_getsockopt": &f.getOption, "zmq_socket_monitor": &f.monitor,
		"zmq_send": &f.send, "zmq_msg_init": &f.messageInit, "zmq_msg_recv": &f.messageReceive, "zmq_msg_send": &f.messageSend, "zmq_msg_close": &f.messageClose,
		"zmq_msg_data": &f.messageData, "zmq_msg_size": &f.messageSize, "zmq_msg_more": &f.messageMore,
		"zmq_poll": &f.poll,
	} {
		if *to, err = purego.Dlsym(handle, name); err != nil {
			return nil, fmt.Errorf("ZeroMQ's library %s: %w", soname, err)
		}
	}
	return f, nil
})

// Error of a call to libzmq; errors.Is compares it with a syscall.Errno.
type Error struct {
	// Call is the failed call and its argument.
	Call  string
	Errno syscall.Errno
	// Text is libzmq's, which has error numbers of its own.
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Call, e.Text) }

func (e *Error) Unwrap() error { return e.Errno }

// Again reports whether an error means that the call would have to wait.
func Again(err error) bool { return errors.Is(err, syscall.EAGAIN) }

// call calls a function that returns a C int below 0 for failure, and repeats it after a signal. libzmq's error number is per thread.
//
//go:uintptrescapes
func (f *functions) call(function uintptr, args ...uintptr) (int, syscall.Errno) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		result, _, _ := purego.SyscallN(function, args...)
		if int32(result) >= 0 {
			return int(int32(result)), 0
		}
		if errno := f.lastErrno(); errno != syscall.EINTR {
			return -1, errno
		}
	}
}

// make calls a function that returns an address, which is 0 for failure.
func (f *functions) make(function uintptr, args ...uintptr) (uintptr, syscall.Errno) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	address, _, _ := purego.SyscallN(function, args...)
	if address == 0 {
		return 0, f.lastErrno()
	}
	return address, 0
}

func (f *functions) lastErrno() syscall.Errno {
	errno, _, _ := purego.SyscallN(f.errno)
	return syscall.Errno(int32(errno))
}

// failed returns the error of a call; nil for success.
func (f *functions) failed(errno syscall.Errno, call string, args ...any) error {
	if errno == 0 {
		return nil
	}
	text, _, _ := purego.SyscallN(f.strerror, uintptr(errno))
	return &Error{Call: fmt.Sprintf(call, args...), Errno: errno, Text: goString(text)}
}

// pointer converts an address of memory outside of Go.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// goString copies a C string; empty for none.
func goString(address uintptr) string {
	if address == 0 {
		return ""
	}
	start := pointer(address)
	n := 0
	for *(*byte)(unsafe.Add(start, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(start), n))
}

// cString appends C's final NUL.
func cString(s string) []byte { return append([]byte(s), 0) }

// Has reports whether the library was built with a transport, such as pgm.
func Has(capability string) (bool, error) {
	f, err := load()
	if err != nil {
		return false, err
	}
	name := cString(capability)
	r, _ := f.call(f.has, uintptr(unsafe.Pointer(&name[0])))
	return r == 1, nil
}

// Context holds sockets and their input and output thread. It is safe for use by several goroutines.
type Context struct {
	f       *functions
	address uintptr
	mu      sync.Mutex
	sockets int // the number of sockets so far, for the names of their monitors
}

// Open loads the library and returns a context.
func Open() (*Context, error) {
	f, err := load()
	if err != nil {
		return nil, err
	}
	address, errno := f.make(f.ctxNew)
	if errno != 0 {
		return nil, f.failed(errno, "zmq_ctx_new")
	}
	return &Context{f: f, address: address}, nil
}

// Close ends the context once all its sockets are closed, and their messages sent or their linger periods over.
func (c *Context) Close() error {
	_, errno := c.f.call(c.f.ctxTerm, c.address)
	return c.f.failed(errno, "zmq_ctx_term")
}
