// Package holder is the small parent process that keeps TAP descriptors open while the worker is replaced, so
// that no radio loses its carrier. Parent and worker use a socket pair: one JSON message per packet, with
// descriptors beside it.
package holder

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

type message struct {
	// Do is hold or drop from the worker; held, ready or done from the parent.
	Do string `json:"do"`
	ID string `json:"id,omitempty"`
}

const maxMessage = 4096

// Holder keeps descriptors by id.
type Holder struct {
	mu   sync.Mutex
	held map[string]int
}

// Held is the number of descriptors.
func (h *Holder) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

// Serve sends all descriptors to a new worker and then obeys its messages, until the worker has gone.
func (h *Holder) Serve(worker *net.UnixConn) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, fd := range h.held {
		if err := send(worker, message{"held", id}, fd); err != nil {
			return err
		}
	}
	if err := send(worker, message{Do: "ready"}, -1); err != nil {
		return err
	}
	for {
		h.mu.Unlock()
		request, fd, err := receive(worker)
		h.mu.Lock()
		if err != nil {
			return err
		}
		h.handle(request, fd)
		if err := send(worker, message{"done", request.ID}, -1); err != nil {
			return err
		}
	}
}

func (h *Holder) handle(request message, fd int) {
	if old, ok := h.held[request.ID]; ok {
		_ = unix.Close(old)
		delete(h.held, request.ID)
	}
	switch {
	case fd < 0:
	case request.Do == "hold":
		if h.held == nil {
			h.held = map[string]int{}
		}
		h.held[request.ID] = fd
	default:
		_ = unix.Close(fd)
	}
}

// Client is the worker's side.
type Client struct {
	mu     sync.Mutex
	parent *net.UnixConn
}

// Connect takes over the descriptors that the parent holds.
func Connect(parent *net.UnixConn) (*Client, map[string]int, error) {
	held := map[string]int{}
	for {
		m, fd, err := receive(parent)
		if err != nil {
			return nil, nil, fmt.Errorf("take over from the parent: %w", err)
		}
		if m.Do == "ready" {
			return &Client{parent: parent}, held, nil
		}
		held[m.ID] = fd
	}
}

// Hold makes the parent keep a duplicate of the descriptor under the id, replacing a previous one.
func (c *Client) Hold(id string, fd int) error { return c.ask(message{"hold", id}, fd) }

// Drop makes the parent close the id's descriptor.
func (c *Client) Drop(id string) error { return c.ask(message{"drop", id}, -1) }

func (c *Client) ask(m message, fd int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := send(c.parent, m, fd); err != nil {
		return fmt.Errorf("%s %s: %w", m.Do, m.ID, err)
	}
	if _, _, err := receive(c.parent); err != nil {
		return fmt.Errorf("%s %s: %w", m.Do, m.ID, err)
	}
	return nil
}

func send(to *net.UnixConn, m message, fd int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	_, _, err = to.WriteMsgUnix(text, rights, nil)
	return err
}

func receive(from *net.UnixConn) (m message, fd int, err error) {
	text, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := from.ReadMsgUnix(text, oob)
	if err != nil {
		return m, -1, err
	}
	if n == 0 {
		return m, -1, errors.New("the other process has gone")
	}
	fd, err = Descriptor(oob[:oobn])
	if err != nil {
		return m, -1, err
	}
	if err := json.Unmarshal(text[:n], &m); err != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		return m, -1, fmt.Errorf("packet of %d bytes: %w", n, err)
	}
	return m, fd, nil
}

// Descriptor returns the descriptor in a packet's control data, or -1 if there is none.
func Descriptor(control []byte) (int, error) {
	if len(control) == 0 {
		return -1, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return -1, fmt.Errorf("descriptor in a packet: %w", err)
	}
	fd := -1
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, extra := range fds {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
			fd = extra
			unix.CloseOnExec(fd)
		}
	}
	return fd, nil
}

// Pair makes the two ends of a parent's connection with its worker.
func Pair() (parent *net.UnixConn, worker *os.File, err error) {
	return SocketPair(unix.SOCK_SEQPACKET)
}

// SocketPair makes the two ends of a connection with a process that is about to start, a unix socket of that
// type.
func SocketPair(kind int) (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "child")
	ours, err = Conn(os.NewFile(uintptr(fds[0]), "parent"))
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// Duplicate duplicates a descriptor so that started programs do not inherit it.
func Duplicate(fd int) (int, error) {
	duplicate, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return duplicate, os.NewSyscallError("fcntl", err)
}

// WaitForEnd returns when the other end of the socket is gone, and closes the descriptor.
func WaitForEnd(socket int) error {
	defer unix.Close(socket)
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(socket)}}, -1) // a hang-up is always reported
		if err == nil {
			return errors.New("the parent has gone")
		}
		if err != unix.EINTR {
			return fmt.Errorf("socket of the parent: %w", err)
		}
	}
}

// Conn makes a connection of a socket's file, which it closes.
func Conn(file *os.File) (*net.UnixConn, error) {
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", file.Name(), err)
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("socket %s: want a unix socket", file.Name()), conn.Close())
	}
	return unixConn, nil
}

// Close closes all descriptors, as the end of the process would.
func (h *Holder) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, fd := range h.held {
		_ = unix.Close(fd)
		delete(h.held, id)
	}
}
