package dataplane

import (
	"errors"
	"net"
	"net/rpc"
	"sync"

	"vignette.dev/vignette/internal/radio"
)

// Client is a Plane in another process.
type Client struct {
	rpc  *rpc.Client
	conn *conn
	// attaching serialises requests that come with a descriptor.
	attaching sync.Mutex
	seen      uint64 // number of the last event
}

// Dial makes the Client of a connection with a Server.
func Dial(connection *net.UnixConn) *Client {
	c := newConn(connection)
	return &Client{rpc: rpc.NewClient(c), conn: c}
}

func (c *Client) call(method string, request, answer any) error {
	return c.rpc.Call(service+"."+method, request, answer)
}

// SetNetwork implements Plane.
func (c *Client) SetNetwork(n *Network) error { return c.call("SetNetwork", n, &None{}) }

// EndNetwork implements Plane.
func (c *Client) EndNetwork(uid string) error { return c.call("EndNetwork", uid, &None{}) }

// Resume implements Plane.
func (c *Client) Resume() error { return c.call("Resume", None{}, &None{}) }

// SetEnvironment implements Plane.
func (c *Client) SetEnvironment(e *Environment) error { return c.call("SetEnvironment", e, &None{}) }

// FollowClock implements Plane.
func (c *Client) FollowClock(uid string, ahead int64) error {
	return c.call("FollowClock", ClockRequest{uid, ahead}, &None{})
}

var errInProcess = errors.New("attach: radios of other hosts and taps need the data plane in the agent's own process")

// Attach implements Plane.
func (c *Client) Attach(p *Port) (id PortID, err error) {
	if p.Host != nil || p.Tap != nil {
		return 0, errInProcess
	}
	c.attaching.Lock()
	defer c.attaching.Unlock()
	c.conn.send(p.Descriptor)
	err = c.call("Attach", p, &id)
	return id, err
}

// Detach implements Plane.
func (c *Client) Detach(id PortID) (last PortCounters, err error) {
	err = c.call("Detach", id, &last)
	return last, err
}

// Counters implements Plane.
func (c *Client) Counters(id PortID) (counters radio.Counters, err error) {
	err = c.call("Counters", id, &counters)
	return counters, err
}

// Ports implements Plane.
func (c *Client) Ports() (all []AttachedPort, err error) {
	err = c.call("Ports", None{}, &all)
	return all, err
}

// Snapshot implements Plane.
func (c *Client) Snapshot(uid string, reset bool) (*Snapshot, error) {
	s := &Snapshot{}
	err := c.call("Snapshot", SnapshotRequest{uid, reset}, s)
	return s, err
}

// Links implements Plane.
func (c *Client) Links(uid string, receivers []PortID) (links [][]Link, err error) {
	err = c.call("Links", LinksRequest{uid, receivers}, &links)
	return links, err
}

// LateIntervals implements Plane.
func (c *Client) LateIntervals() (all [][]radio.Interval, err error) {
	err = c.call("LateIntervals", None{}, &all)
	return all, err
}

// SetTap implements Plane.
func (c *Client) SetTap(_ PortID, t radio.Tap) error {
	if t != nil {
		return errInProcess
	}
	return nil
}

// ReceiveShipment implements Plane.
func (c *Client) ReceiveShipment(string, *radio.Shipment) (useful bool) { return false }

// AwaitLoops implements Plane.
func (c *Client) AwaitLoops() error { return c.call("AwaitLoops", None{}, &None{}) }

// Events implements Plane.
func (c *Client) Events() (all []Event) {
	for len(all) == 0 {
		if err := c.call("Events", c.seen, &all); err != nil {
			return nil // the connection has ended
		}
	}
	c.seen = all[len(all)-1].Number
	return all
}

// Close implements Plane. The networks go on without this Client.
func (c *Client) Close() error { return c.rpc.Close() }
