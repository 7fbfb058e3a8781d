package dataplane

import (
	"errors"
	"io"
	"net"
	"net/rpc"
	"sync"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/holder"
)

// conn is one end of the stream socket between agent and data plane. Descriptors travel beside the bytes, and arrive no
// later than the bytes that are written next.
type conn struct {
	*net.UnixConn
	control []byte // of Read

	mu       sync.Mutex
	sending  []int // with the next Write
	received []int
}

func newConn(c *net.UnixConn) *conn {
	return &conn{UnixConn: c, control: make([]byte, unix.CmsgSpace(4))}
}

// Read implements io.Reader, for one goroutine.
func (c *conn) Read(b []byte) (int, error) {
	n, controlled, _, _, err := c.ReadMsgUnix(b, c.control)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return 0, err
	}
	fd, err := holder.Descriptor(c.control[:controlled])
	if fd >= 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.received = append(c.received, fd)
	}
	return n, err
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

// send sends a descriptor with what is written next.
func (c *conn) send(fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending = append(c.sending, fd)
}

var errNoDescriptor = errors.New("attach: no descriptor came with the request")

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

// Server lets an agent in another process use a Plane. The agent may go and another one come: networks and ports stay.
type Server struct {
	plane *Local

	mu          sync.Mutex
	descriptors map[PortID]int // of this process
}

// NewServer makes the server of a Plane.
func NewServer(plane *Local) *Server {
	return &Server{plane: plane, descriptors: map[PortID]int{}}
}

// Serve carries out an agent's requests, until the connection ends, which it closes.
func (s *Server) Serve(connection *net.UnixConn) error {
	c := newConn(connection)
	defer c.close()
	server := rpc.NewServer()
	if err := server.RegisterName(service, &requests{s, c}); err != nil {
		return err
	}
	server.ServeConn(c)
	return nil
}

// hold keeps the descriptor of a port until it is detached.
func (s *Server) hold(id PortID, fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.descriptors[id] = fd
}

// release closes the descriptor of a detached port.
func (s *Server) release(id PortID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fd, ok := s.descriptors[id]; ok {
		delete(s.descriptors, id)
		_ = unix.Close(fd)
	}
}

// service is the name of the requests.
const service = "Plane"

// None is the argument or answer of a request without one.
type None struct{}

// SnapshotRequest has the arguments of Snapshot.
type SnapshotRequest struct {
	Network string
	Reset   bool
}

// LinksRequest has the arguments of Links.
type LinksRequest struct {
	Network   string
	Receivers []PortID
}

// ClockRequest has the arguments of FollowClock.
type ClockRequest struct {
	Network string
	Ahead   int64
}

// requests are the methods of a Plane, as package rpc calls them.
type requests struct {
	*Server
	conn *conn
}

func (r *requests) SetNetwork(n *Network, _ *None) error { return r.plane.SetNetwork(n) }

func (r *requests) EndNetwork(uid string, _ *None) error { return r.plane.EndNetwork(uid) }

func (r *requests) Resume(None, *None) error { return r.plane.Resume() }

func (r *requests) SetEnvironment(e *Environment, _ *None) error { return r.plane.SetEnvironment(e) }

func (r *requests) FollowClock(a ClockRequest, _ *None) error {
	return r.plane.FollowClock(a.Network, a.Ahead)
}

func (r *requests) Attach(p *Port, id *PortID) (err error) {
	if p.Descriptor, err = r.conn.receive(); err != nil {
		return err
	}
	if *id, err = r.plane.Attach(p); err != nil {
		return errors.Join(err, unix.Close(p.Descriptor))
	}
	r.hold(*id, p.Descriptor)
	return nil
}

func (r *requests) Detach(id PortID, last *PortCounters) (err error) {
	*last, err = r.plane.Detach(id)
	r.release(id)
	return err
}

func (r *requests) Counters(id PortID, c *radio.Counters) (err error) {
	*c, err = r.plane.Counters(id)
	return err
}

func (r *requests) Snapshot(a SnapshotRequest, s *Snapshot) error {
	got, err := r.plane.Snapshot(a.Network, a.Reset)
	if err == nil {
		*s = *got
	}
	return err
}

func (r *requests) Links(a LinksRequest, links *[][]Link) (err error) {
	*links, err = r.plane.Links(a.Network, a.Receivers)
	return err
}

func (r *requests) LateIntervals(_ None, all *[][]radio.Interval) (err error) {
	*all, err = r.plane.LateIntervals()
	return err
}

func (r *requests) Ports(_ None, all *[]AttachedPort) (err error) {
	*all, err = r.plane.Ports()
	return err
}

// Events answers after eventsWait at the latest, so that the connection can end. Events are kept until the next request
// says that they have arrived.
func (r *requests) Events(seen uint64, all *[]Event) error {
	*all = r.plane.events.after(seen, eventsWait)
	return nil
}

func (r *requests) AwaitLoops(None, *None) error { return r.plane.AwaitLoops() }
