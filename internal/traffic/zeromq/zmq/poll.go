package zmq

import (
	"time"
	"unsafe"
)

// pollItem is a zmq_pollitem_t.
type pollItem struct {
	socket         uintptr
	descriptor     int32
	wanted, become int16
}

// Poller waits for messages at several sockets. It blocks its thread.
type Poller struct {
	f     *functions
	items []pollItem
}

// NewPoller returns a poller of at least one socket.
func NewPoller(sockets ...*Socket) *Poller {
	p := &Poller{f: sockets[0].f}
	for _, s := range sockets {
		p.items = append(p.items, pollItem{socket: s.address, wanted: pollIn})
	}
	return p
}

// Poll waits for a message at any of the sockets. A timeout is no error.
func (p *Poller) Poll(timeout time.Duration) error {
	_, errno := p.f.call(p.f.poll, uintptr(unsafe.Pointer(&p.items[0])), uintptr(len(p.items)), uintptr(timeout.Milliseconds()))
	return p.f.failed(errno, "zmq_poll")
}

// Ready reports whether the i-th socket had a message at the last Poll.
func (p *Poller) Ready(i int) bool { return p.items[i].become&pollIn != 0 }
