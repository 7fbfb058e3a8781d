package dataplane

import (
	"net"
	"net/rpc"
	"sync"

	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/framering"
	"vignette.dev/vignette/internal/radiod/peers"
)

// Client is a Plane in another process.
type Client struct {
	rpc     *rpc.Client
	conn    *conn
	process int
	// sending serialises requests that come with descriptors.
	sending sync.Mutex
	seen    uint64 // number of the last events
}

// Connect makes the Client of a connection with a Server. The options are those of the first worker that connects.
func Connect(connection *net.UnixConn, o ProcessOptions) (*Client, error) {
	c := newConn(connection)
	client := &Client{rpc: rpc.NewClient(c), conn: c}
	return client, client.call("Start", o, &client.process)
}

// Process returns the data plane's process id.
func (c *Client) Process() (int, error) { return c.process, nil }

// Ended is closed when the data plane has gone.
func (c *Client) Ended() <-chan struct{} { return c.conn.ended }

func (c *Client) call(method string, request, answer any) error {
	if answer == nil {
		answer = &None{}
	}
	return c.rpc.Call(service+"."+method, request, answer)
}

// callWith makes a call with descriptors.
func (c *Client) callWith(method string, request, answer any, fds ...int) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.conn.send(fds...)
	return c.call(method, request, answer)
}

// ask makes a call that is answered.
func ask[A any](c *Client, method string, request any) (answer A, err error) {
	err = c.call(method, request, &answer)
	return answer, err
}

// Left implements Plane.
func (c *Client) Left() (Left, error) { return ask[Left](c, "Left", None{}) }

// Restored implements Plane.
func (c *Client) Restored() error { return c.call("Restored", None{}, nil) }

// DropLeft implements Plane.
func (c *Client) DropLeft() error { return c.call("DropLeft", None{}, nil) }

// SetNetwork implements Plane.
func (c *Client) SetNetwork(n *Network) error { return c.call("SetNetwork", n, nil) }

// EndNetwork implements Plane.
func (c *Client) EndNetwork(uid string) (map[PortID]radio.Counters, error) {
	return ask[map[PortID]radio.Counters](c, "EndNetwork", uid)
}

// Resume implements Plane.
func (c *Client) Resume() error { return c.call("Resume", None{}, nil) }

// SetEnvironment implements Plane.
func (c *Client) SetEnvironment(e *Environment) error { return c.call("SetEnvironment", e, nil) }

// Attach implements Plane.
func (c *Client) Attach(p *Port) (id PortID, err error) {
	if !p.IsHere() {
		err = c.call("Attach", p, &id)
	} else {
		err = c.callWith("Attach", p, &id, p.Descriptor)
	}
	return id, err
}

// Detach implements Plane.
func (c *Client) Detach(id PortID) (PortCounters, error) {
	return ask[PortCounters](c, "Detach", id)
}

// Counters implements Plane.
func (c *Client) Counters(id PortID) (radio.Counters, error) {
	return ask[radio.Counters](c, "Counters", id)
}

// Snapshot implements Plane.
func (c *Client) Snapshot(uid string, reset bool) (*Snapshot, error) {
	return ask[*Snapshot](c, "Snapshot", SnapshotRequest{uid, reset})
}

// Links implements Plane.
func (c *Client) Links(uid string, receivers []PortID) ([][]phy.LinkStatistics, error) {
	return ask[[][]phy.LinkStatistics](c, "Links", LinksRequest{uid, receivers})
}

// LateIntervals implements Plane.
func (c *Client) LateIntervals() ([][]radio.Interval, error) {
	return ask[[][]radio.Interval](c, "LateIntervals", None{})
}

// ForgetLateIntervals implements Plane.
func (c *Client) ForgetLateIntervals() error { return c.call("ForgetLateIntervals", None{}, nil) }

// SetTap implements Plane.
func (c *Client) SetTap(id PortID, t *framering.Tap) error {
	return c.call("SetTap", TapRequest{id, t}, nil)
}

// SetHosts implements Plane.
func (c *Client) SetHosts(all map[string]peers.Address) error { return c.call("SetHosts", all, nil) }

// Hosts implements Plane.
func (c *Client) Hosts(reset bool) (HostStates, error) {
	return ask[HostStates](c, "Hosts", reset)
}

// SetRelay implements Plane.
func (c *Client) SetRelay(uid string, to Relay) error {
	return c.call("SetRelay", RelayRequest{uid, to}, nil)
}

// SetChannel implements Plane.
func (c *Client) SetChannel(uid string, of *ota.Sockets) error {
	if of == nil {
		return c.call("SetChannel", ChannelRequest{Network: uid}, nil)
	}
	defer of.Close()
	return c.callWith("SetChannel", ChannelRequest{uid, of}, nil, of.Receiver, of.Sender)
}

// AwaitLoops implements Plane.
func (c *Client) AwaitLoops() error { return c.call("AwaitLoops", None{}, nil) }

// Events implements Plane.
func (c *Client) Events() []Event {
	next, err := ask[NumberedEvents](c, "Events", c.seen)
	if err != nil {
		return nil // the connection has ended
	}
	c.seen = next.Number
	return next.Events
}

// Close implements Plane. The networks go on without this Client.
func (c *Client) Close() error { return c.rpc.Close() }
