package zmq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Type of a socket (zmq_socket(3)).
type Type int

// The types of sockets used here.
const (
	pair Type = 0
	PUB  Type = 1
	SUB  Type = 2
	XPUB Type = 9
	XSUB Type = 10
)

func (t Type) String() string {
	return map[Type]string{pair: "PAIR", PUB: "PUB", SUB: "SUB", XPUB: "XPUB", XSUB: "XSUB"}[t]
}

// Option is a socket's option whose value is a C int (zmq_setsockopt(3)).
type Option int

// The options used here. Times are in milliseconds unless stated otherwise.
const (
	subscribe Option = 6
	// Rate is PGM's rate in kbit/s, RecoveryInterval how long sent messages are kept for repetition.
	Rate             Option = 8
	RecoveryInterval Option = 9
	descriptor       Option = 14
	events           Option = 15
	// Linger is how long a closed socket continues to send.
	Linger Option = 17
	// ReconnectInterval is the pause before reconnecting; -1 for none.
	ReconnectInterval Option = 18
	// SendHighWater and ReceiveHighWater are in messages for each connection.
	SendHighWater    Option = 23
	ReceiveHighWater Option = 24
	// HandshakeInterval is how long a handshake may take.
	HandshakeInterval Option = 66
	// NoDrop refuses messages with EAGAIN that do not fit into every subscriber's queue, instead of dropping them.
	NoDrop Option = 69
	// HeartbeatInterval is the time between two PINGs, HeartbeatTimeout that for the answer.
	HeartbeatInterval Option = 75
	HeartbeatTimeout  Option = 77
	ConnectTimeout    Option = 79
)

// Flags of sends and receives, and of a socket's readiness.
const (
	dontWait = 1
	sendMore = 2
	pollIn   = 1
)

// message is a zmq_msg_t: 64 opaque bytes, aligned as pointers.
type message [8]uint64

// Socket is a ZeroMQ socket. It is for one goroutine at a time; sharing it needs a lock.
type Socket struct {
	f       *functions
	context *Context
	address uintptr
	kind    Type
	frame   *message
	// watcher receives the events of its connections; nil without a monitor.
	watcher *Socket
	// ready is a copy of the descriptor that signals changes, for Wait.
	ready *os.File
}

// Socket returns a new socket.
func (c *Context) Socket(kind Type) (*Socket, error) {
	address, errno := c.f.make(c.f.socket, c.address, uintptr(kind))
	if errno != 0 {
		return nil, c.f.failed(errno, "zmq_socket %s", kind)
	}
	s := &Socket{f: c.f, context: c, address: address, kind: kind, frame: &message{}}
	c.f.call(c.f.messageInit, uintptr(unsafe.Pointer(s.frame)))
	return s, nil
}

// Close closes the socket and its monitor. Queued messages are sent during its Linger.
func (s *Socket) Close() {
	if s.watcher != nil {
		// First, as a socket waits forever to notify a closed monitor.
		s.f.call(s.f.monitor, s.address, 0, 0)
		s.watcher.Close()
	}
	if s.ready != nil {
		s.ready.Close()
	}
	s.f.call(s.f.messageClose, uintptr(unsafe.Pointer(s.frame)))
	s.f.call(s.f.close, s.address)
}

// Set sets an option.
func (s *Socket) Set(option Option, value int) error {
	v := int32(value)
	_, errno := s.f.call(s.f.setOption, s.address, uintptr(option), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v))
	return s.f.failed(errno, "zmq_setsockopt of option %d to %d", option, value)
}

// SetAll sets options. The error names the refused one.
func (s *Socket) SetAll(options map[Option]int) error {
	for option, value := range options {
		if err := s.Set(option, value); err != nil {
			return err
		}
	}
	return nil
}

// Subscribe subscribes to messages that begin with a prefix. Every message begins with the empty one.
func (s *Socket) Subscribe(prefix string) error {
	text := cString(prefix)
	_, errno := s.f.call(s.f.setOption, s.address, uintptr(subscribe), uintptr(unsafe.Pointer(&text[0])), uintptr(len(prefix)))
	return s.f.failed(errno, "zmq_setsockopt: subscribe to %q", prefix)
}

func (s *Socket) get(option Option) (int, error) {
	value, size := int32(0), unsafe.Sizeof(int32(0))
	_, errno := s.f.call(s.f.getOption, s.address, uintptr(option), uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)))
	return int(value), s.f.failed(errno, "zmq_getsockopt of option %d", option)
}

// Bind accepts peers at an endpoint, such as tcp://*:5555.
func (s *Socket) Bind(endpoint string) error {
	return s.attach("zmq_bind", s.f.bind, endpoint)
}

// Connect starts to connect to an endpoint, such as tcp://198.18.9.1:5555.
func (s *Socket) Connect(endpoint string) error {
	return s.attach("zmq_connect", s.f.connect, endpoint)
}

func (s *Socket) attach(call string, function uintptr, endpoint string) error {
	text := cString(endpoint)
	_, errno := s.f.call(function, s.address, uintptr(unsafe.Pointer(&text[0])))
	return s.f.failed(errno, "%s %s", call, endpoint)
}

// Send sends a message of several frames. After an error for which Again is true nothing of it was sent, as the queue is full.
func (s *Socket) Send(frames ...[]byte) error {
	for i, frame := range frames {
		flags := uintptr(dontWait)
		if i < len(frames)-1 {
			flags |= sendMore
		}
		if err := s.sendFrame(frame, flags); err != nil {
			if i > 0 { // libzmq counts complete messages: later frames always fit
				return fmt.Errorf("frame %d of %d: %s", i+1, len(frames), err)
			}
			return err
		}
	}
	return nil
}

func (s *Socket) sendFrame(frame []byte, flags uintptr) error {
	_, errno := s.f.call(s.f.send, s.address, uintptr(unsafe.Pointer(unsafe.SliceData(frame))), uintptr(len(frame)), flags)
	return s.f.failed(errno, "zmq_send")
}

// Receive receives a complete message. Without one it returns an error for which Again is true.
func (s *Socket) Receive() ([][]byte, error) {
	var frames [][]byte
	for {
		if err := s.Next(); err != nil {
			return nil, err
		}
		frames = append(frames, append([]byte{}, s.Frame()...))
		if !s.More() {
			return frames, nil
		}
	}
}

// Next receives a frame, for Frame, More and Forward. Without one it returns an error for which Again is true.
func (s *Socket) Next() error {
	_, errno := s.f.call(s.f.messageReceive, uintptr(unsafe.Pointer(s.frame)), s.address, dontWait)
	return s.f.failed(errno, "zmq_msg_recv")
}

// Forward passes the last received frame to another socket without copying it. Frame and More no longer have it.
func (s *Socket) Forward(to *Socket, more bool) error {
	flags := uintptr(dontWait)
	if more {
		flags |= sendMore
	}
	_, errno := s.f.call(s.f.messageSend, uintptr(unsafe.Pointer(s.frame)), to.address, flags)
	return s.f.failed(errno, "zmq_msg_send")
}

// Frame returns the last received frame. It belongs to the library and lasts until the next call.
func (s *Socket) Frame() []byte {
	size, _, _ := purego.SyscallN(s.f.messageSize, uintptr(unsafe.Pointer(s.frame)))
	if size == 0 {
		return nil
	}
	data, _, _ := purego.SyscallN(s.f.messageData, uintptr(unsafe.Pointer(s.frame)))
	return unsafe.Slice((*byte)(pointer(data)), size)
}

// More reports whether another frame follows the last received one in its message.
func (s *Socket) More() bool {
	more, _, _ := purego.SyscallN(s.f.messageMore, uintptr(unsafe.Pointer(s.frame)))
	return int32(more) != 0
}

// Wait waits for a message until ctx ends, and then returns its error. It blocks no thread.
func (s *Socket) Wait(ctx context.Context) error {
	if err := s.openReady(); err != nil {
		return err
	}
	raw, err := s.ready.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	// The descriptor signals changes only. The socket's state has to be read after each.
	var asked error
	waited := raw.Read(func(uintptr) bool {
		var state int
		state, asked = s.get(events)
		return asked != nil || state&pollIn != 0
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(asked, waited)
}

// openReady copies the descriptor, as the library closes the original.
func (s *Socket) openReady() error {
	if s.ready != nil {
		return nil
	}
	theirs, err := s.get(descriptor)
	if err != nil {
		return err
	}
	ours, err := syscall.Dup(theirs)
	if err != nil {
		return fmt.Errorf("descriptor of a socket %s: %w", s.kind, err)
	}
	syscall.CloseOnExec(ours)
	s.ready = os.NewFile(uintptr(ours), "zmq")
	return nil
}

// Event is an event of a socket's connections (zmq_socket_monitor(3)).
type Event uint16

// The events used here.
const (
	Connected         Event = 0x0001
	Accepted          Event = 0x0020
	Closed            Event = 0x0080
	Disconnected      Event = 0x0200
	HandshakeFailed   Event = 0x0800
	HandshakeDone     Event = 0x1000
	HandshakeProtocol Event = 0x2000
	HandshakeAuth     Event = 0x4000
)

var eventNames = map[Event]string{
	Connected: "connected", Accepted: "accepted", Closed: "no connection", Disconnected: "disconnected", HandshakeFailed: "the handshake failed",
	HandshakeDone: "the handshake is done", HandshakeProtocol: "the far end does not speak ZMTP", HandshakeAuth: "the far end wants another authentication",
}

func (e Event) String() string {
	if name, ok := eventNames[e]; ok {
		return name
	}
	return fmt.Sprintf("event %#x", uint16(e))
}

// Monitor returns the socket for ReceiveEvent on which the events of this one's connections arrive. They have to be received:
// the context's input and output stop at a thousand queued events.
func (s *Socket) Monitor() (*Socket, error) {
	s.context.mu.Lock()
	s.context.sockets++
	name := fmt.Sprintf("inproc://monitor-%d", s.context.sockets)
	s.context.mu.Unlock()
	var wanted Event
	for event := range eventNames {
		wanted |= event
	}
	text := cString(name)
	if _, errno := s.f.call(s.f.monitor, s.address, uintptr(unsafe.Pointer(&text[0])), uintptr(wanted)); errno != 0 {
		return nil, s.f.failed(errno, "zmq_socket_monitor %s", name)
	}
	m, err := s.context.Socket(pair)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(m.Set(Linger, 0), m.Connect(name)); err != nil {
		s.f.call(s.f.monitor, s.address, 0, 0)
		m.Close()
		return nil, err
	}
	s.watcher = m
	return m, nil
}

// ReceiveEvent receives an event and its endpoint from a monitor.
func (s *Socket) ReceiveEvent() (Event, string, error) {
	frames, err := s.Receive()
	if err != nil {
		return 0, "", err
	}
	if len(frames) != 2 || len(frames[0]) < 2 {
		return 0, "", fmt.Errorf("event of %d frames: want 2", len(frames))
	}
	return Event(binary.NativeEndian.Uint16(frames[0])), string(frames[1]), nil
}
