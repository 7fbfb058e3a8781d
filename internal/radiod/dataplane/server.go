package dataplane

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/rpc"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/framering"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/radiod/state"
)

// Server lets workers in another process use a Plane, one after the other. Networks and ports stay when a worker goes. The
// next one takes them up by the requests that it would make anyway, and then drops what it has not asked for.
type Server struct {
	log     *slog.Logger
	serving sync.Mutex            // of one worker at a time
	plane   atomic.Pointer[Local] // nil before the first worker's Start

	mu       sync.Mutex // protects the rest
	ports    map[PortID]*servedPort
	networks map[string]bool // whether this worker has asked for them
	relays   map[string]bool // the same
	unread   NumberedEvents
	// hosts that this worker has set, and those before it, which stay until DropLeft.
	hosts, leftHosts map[string]peers.Address
}

// servedPort is an attached port, with the descriptor of this process.
type servedPort struct {
	Port
	taken bool // by this worker
}

// ProcessOptions are how the data plane's process works. They are the same for all of its workers.
type ProcessOptions struct {
	Driver driver.Options
	// StateDirectory of the host.
	StateDirectory string
	// Host is this host's name, Listen the address for other hosts' data planes; empty for none.
	Host, Listen string
	Key          []byte
}

// NewServer makes a server whose Plane begins with the first worker.
func NewServer(log *slog.Logger) *Server {
	return &Server{log: log, ports: map[PortID]*servedPort{}, networks: map[string]bool{}, relays: map[string]bool{}}
}

// Serve carries out a worker's requests, until the connection ends, which it closes.
func (s *Server) Serve(connection *net.UnixConn) error {
	s.serving.Lock()
	defer s.serving.Unlock()
	c := newConn(connection)
	defer c.close()
	s.forgetWorker()
	server := rpc.NewServer()
	if err := server.RegisterName(service, &requests{s, c}); err != nil {
		return err
	}
	server.ServeConn(c)
	return nil
}

// Close ends the Plane and closes the descriptors.
func (s *Server) Close() error {
	plane := s.plane.Load()
	if plane == nil {
		return nil
	}
	err := plane.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.ports {
		s.release(id)
	}
	return err
}

// forgetWorker notes that the next worker has asked for nothing yet.
func (s *Server) forgetWorker() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.ports {
		p.taken = false
	}
	for uid := range s.networks {
		s.networks[uid] = false
	}
	for uid := range s.relays {
		s.relays[uid] = false
	}
	s.leftHosts, s.hosts = s.allHosts(), nil
}

// allHosts are those to talk to; the lock is held.
func (s *Server) allHosts() map[string]peers.Address {
	all := map[string]peers.Address{}
	maps.Copy(all, s.leftHosts)
	maps.Copy(all, s.hosts)
	return all
}

// start makes the Plane for the first worker.
func (s *Server) start(o *ProcessOptions) error {
	if s.plane.Load() != nil {
		return nil
	}
	folder, err := state.Open(o.StateDirectory)
	if err != nil {
		return err
	}
	loops, err := driver.New(o.Driver)
	if err != nil {
		return err
	}
	if o.Driver != (driver.Options{}) {
		if err := loops.RaisePriority(); err != nil {
			s.log.Warn("the data plane runs with a lower priority than configured and may be late", "options", o.Driver, "error", err)
		}
	}
	plane := New(loops)
	if o.Listen != "" {
		if err := listen(plane, o, s.log); err != nil {
			return errors.Join(err, plane.Close())
		}
	}
	plane.KeepSign(folder, s.log)
	s.plane.Store(plane)
	return nil
}

// listen for other hosts.
func listen(l *Local, o *ProcessOptions, log *slog.Logger) error {
	key, err := peers.ParsePrivateKey(o.Key)
	if err != nil {
		return err
	}
	socket, err := peers.Listen(o.Listen)
	if err == nil {
		l.OpenHosts(HostOptions{Host: o.Host, Key: key, Conn: socket, Log: log})
	}
	return err
}

// takeUp returns the port of an earlier worker that is the same, or 0.
func (s *Server) takeUp(r *Port) PortID {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.ports {
		if !p.taken && p.Network == r.Network && p.Name == r.Name && p.NEM == r.NEM && p.MAC == r.MAC && p.Host == r.Host && p.CounterFile == r.CounterFile &&
			p.Neighbour == r.Neighbour && p.NeighbourOffset == r.NeighbourOffset {
			p.taken = true
			return id
		}
	}
	return 0
}

// release closes the descriptor of a detached port; the lock is held.
func (s *Server) release(id PortID) {
	if p := s.ports[id]; p != nil {
		delete(s.ports, id)
		if p.IsHere() {
			_ = unix.Close(p.Descriptor)
		}
	}
}

// left returns what no request of this worker has asked for; the lock is held.
func left(asked map[string]bool) (all []string) {
	for uid, is := range asked {
		if !is {
			all = append(all, uid)
		}
	}
	return all
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

// TapRequest has the arguments of SetTap.
type TapRequest struct {
	Port PortID
	Tap  *framering.Tap
}

// RelayRequest has the arguments of SetRelay.
type RelayRequest struct {
	Network string
	To      Relay
}

// ChannelRequest has the arguments of SetChannel.
type ChannelRequest struct {
	Network string
	Of      *ota.Sockets
}

// NumberedEvents are given again until a request says that those with the number have arrived.
type NumberedEvents struct {
	Number uint64
	Events []Event
}

// requests are the methods of a Plane, as package rpc calls them.
type requests struct {
	*Server
	conn *conn
}

func (r *requests) local() *Local { return r.plane.Load() }

// Start is a worker's first request. It answers the process id.
func (r *requests) Start(o *ProcessOptions, process *int) error {
	*process = os.Getpid()
	return r.start(o)
}

func (r *requests) Left(_ None, l *Left) (err error) {
	*l, err = r.local().Left()
	r.mu.Lock()
	defer r.mu.Unlock()
	l.Networks = left(r.networks)
	l.Steps = r.local().lastSteps(l.Networks)
	return err
}

func (r *requests) Restored(None, *None) error { return r.local().Restored() }

// DropLeft ends what earlier workers asked for and this one did not.
func (r *requests) DropLeft(None, *None) (err error) {
	r.mu.Lock()
	networks, relays := left(r.networks), left(r.relays)
	var ports []PortID
	for id, p := range r.ports {
		if !p.taken {
			ports = append(ports, id)
		}
	}
	r.mu.Unlock()
	for _, id := range ports {
		err = errors.Join(err, r.Detach(id, &PortCounters{}))
	}
	for _, uid := range networks {
		err = errors.Join(err, r.EndNetwork(uid, &map[PortID]radio.Counters{}))
	}
	for _, uid := range relays {
		err = errors.Join(err, r.local().SetRelay(uid, Relay{}), r.local().SetChannel(uid, nil))
		r.note(r.relays, uid, false)
	}
	return errors.Join(err, r.dropHosts())
}

// dropHosts ends what goes to hosts that only earlier workers have set.
func (r *requests) dropHosts() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.leftHosts) == 0 {
		return nil
	}
	r.leftHosts = nil
	defer r.local().hosts.tellLost()
	return r.local().SetHosts(r.allHosts())
}

// note notes whether this worker has asked for a network, or has ended it.
func (s *Server) note(of map[string]bool, uid string, asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of[uid] = asked; !asked {
		delete(of, uid)
	}
}

func (r *requests) SetNetwork(n *Network, _ *None) error {
	r.note(r.networks, n.UID, true)
	return r.local().SetNetwork(n)
}

func (r *requests) EndNetwork(uid string, last *map[PortID]radio.Counters) (err error) {
	*last, err = r.local().EndNetwork(uid)
	r.note(r.networks, uid, false)
	return err
}

func (r *requests) Resume(None, *None) error { return r.local().Resume() }

func (r *requests) SetEnvironment(e *Environment, _ *None) error {
	return r.local().SetEnvironment(e)
}

func (r *requests) Attach(p *Port, id *PortID) (err error) {
	if p.IsHere() {
		if p.Descriptor, err = r.conn.receive(); err != nil {
			return err
		}
	}
	if *id = r.takeUp(p); *id != 0 {
		if p.IsHere() {
			err = unix.Close(p.Descriptor)
		}
		r.tellAgain(*id)
		return errors.Join(err, r.local().SetTap(*id, p.Tap))
	}
	if *id, err = r.local().Attach(p); err != nil {
		if p.IsHere() {
			err = errors.Join(err, unix.Close(p.Descriptor))
		}
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ports[*id] = &servedPort{*p, true}
	return nil
}

// tellAgain tells again of a port's interface that has gone, because the worker that was told may not know the port.
func (r *requests) tellAgain(id PortID) {
	if p, err := r.local().findPort(id); err == nil && p.gone.Load() {
		r.local().events.add(Event{Gone: id})
	}
}

func (r *requests) Detach(id PortID, last *PortCounters) (err error) {
	*last, err = r.local().Detach(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(id)
	return err
}

func (r *requests) Counters(id PortID, c *radio.Counters) (err error) {
	*c, err = r.local().Counters(id)
	return err
}

func (r *requests) Snapshot(a SnapshotRequest, s **Snapshot) (err error) {
	*s, err = r.local().Snapshot(a.Network, a.Reset)
	return err
}

func (r *requests) Links(a LinksRequest, links *[][]phy.LinkStatistics) (err error) {
	*links, err = r.local().Links(a.Network, a.Receivers)
	return err
}

func (r *requests) LateIntervals(_ None, all *[][]radio.Interval) (err error) {
	*all, err = r.local().LateIntervals()
	return err
}

func (r *requests) ForgetLateIntervals(None, *None) error { return r.local().ForgetLateIntervals() }

func (r *requests) SetTap(a TapRequest, _ *None) error { return r.local().SetTap(a.Port, a.Tap) }

func (r *requests) SetHosts(all map[string]peers.Address, _ *None) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts = all
	return r.local().SetHosts(r.allHosts())
}

func (r *requests) Hosts(reset bool, states *HostStates) (err error) {
	*states, err = r.local().Hosts(reset)
	return err
}

func (r *requests) SetRelay(a RelayRequest, _ *None) error {
	r.note(r.relays, a.Network, len(a.To.Hosts)+len(a.To.Neighbours) > 0)
	return r.local().SetRelay(a.Network, a.To)
}

func (r *requests) SetChannel(a ChannelRequest, _ *None) (err error) {
	if a.Of == nil {
		return r.local().SetChannel(a.Network, nil)
	}
	if a.Of.Receiver, err = r.conn.receive(); err != nil {
		return err
	}
	if a.Of.Sender, err = r.conn.receive(); err != nil {
		return errors.Join(err, unix.Close(a.Of.Receiver))
	}
	return r.local().SetChannel(a.Network, a.Of)
}

// Events answers once there are some, or the connection has ended. Events are kept until the next request says that they
// have arrived.
func (r *requests) Events(seen uint64, next *NumberedEvents) error {
	if seen == r.unread.Number {
		r.unread.Events = nil
	}
	if len(r.unread.Events) == 0 {
		r.unread.Events = r.local().events.next(r.conn.ended)
		r.unread.Number++
	}
	*next = r.unread
	return nil
}

func (r *requests) AwaitLoops(None, *None) error { return r.local().AwaitLoops() }
