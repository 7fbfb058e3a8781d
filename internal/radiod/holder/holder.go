// Package holder is the small parent process that keeps TAP descriptors open while data plane and worker are replaced, so
// that no radio loses its carrier. Parent and child use a socket pair: one JSON message per packet, with
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
	// Do is hold or drop from the worker; held, ready or done to it, serve to the data plane.
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
		if err := Send(worker, message{"held", id}, fd); err != nil {
			return err
		}
	}
	if err := Send(worker, message{Do: "ready"}, -1); err != nil {
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
		if err := Send(worker, message{"done", request.ID}, -1); err != nil {
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
	if err := Send(c.parent, m, fd); err != nil {
		return fmt.Errorf("%s %s: %w", m.Do, m.ID, err)
	}
	if _, _, err := receive(c.parent); err != nil {
		return fmt.Errorf("%s %s: %w", m.Do, m.ID, err)
	}
	return nil
}

// Send sends a value as JSON in one packet, with a descriptor beside it unless fd is negative.
func Send(to *net.UnixConn, value any, fd int) error {
	text, err := json.Marshal(value)
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
	fd, err = Receive(from, maxMessage, &m)
	return m, fd, err
}

// Receive reads a packet of at most that many bytes into a value. It returns the descriptor beside it, which is the caller's,
// or -1.
func Receive(from *net.UnixConn, most int, value any) (fd int, err error) {
	text, oob := make([]byte, most), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := from.ReadMsgUnix(text, oob)
	if err != nil {
		return -1, err
	}
	fd, err = descriptor(oob[:oobn])
	if err != nil {
		return -1, err
	}
	if err := json.Unmarshal(text[:n], value); err != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		return -1, fmt.Errorf("packet of %d bytes: %w", n, err)
	}
	return fd, nil
}

// descriptor returns the descriptor in a packet's control data, or -1 if there is none. It closes more than one.
func descriptor(control []byte) (fd int, err error) {
	all, err := Descriptors(control)
	fd = -1
	for _, next := range all {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		fd = next
	}
	return fd, err
}

// Descriptors returns the descriptors in control data.
func Descriptors(control []byte) (all []int, err error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("descriptors in control data: %w", err)
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // it is of another kind
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			all = append(all, fd)
		}
	}
	return all, nil
}

// Pair makes the two ends of a parent's connection with a child.
func Pair() (parent *net.UnixConn, child *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	child = os.NewFile(uintptr(fds[1]), "child")
	parent, err = Conn(os.NewFile(uintptr(fds[0]), "parent"))
	if err != nil {
		return nil, nil, errors.Join(err, child.Close())
	}
	return parent, child, nil
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
