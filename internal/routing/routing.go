// Package routing makes nodes route. It runs the OLSR routers of package olsr in the nodes' network
// namespaces, on one thread for all nodes, sets static routes, and supervises babeld. The kernel's routes are
// written by netlink, and only those that have changed.
package routing

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"time"

	"vignette.dev/vignette/internal/olsr"
	v1 "vignette.dev/vignette/internal/olsr/v1"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Config of one routing domain at one node. Zero durations mean the protocol's defaults.
type Config struct {
	Protocol   v1alpha1.RoutingProtocol
	Interfaces []Interface
	// Metric of OLSRv2, and Topologies beside that of it.
	Metric     olsr.Metric
	Topologies []Topology
	// Seed of jitter and of the first sequence numbers.
	Seed int64
}

// ConfigOf a network's routing, without interfaces.
func ConfigOf(r *v1alpha1.Routing, seed int64) Config {
	return Config{Protocol: r.Protocol, Metric: metricOf(r.Metric), Seed: seed}
}

// Add adds an interface with the times and topologies of its network's routing.
func (c *Config) Add(i Interface, r *v1alpha1.Routing) {
	i.SetTimes(r)
	i.Topologies = c.addTopologies(r)
	c.Interfaces = append(c.Interfaces, i)
}

// Check returns what every instance would refuse of its configuration, or nil.
func (c *Config) Check() (err error) {
	switch c.Protocol {
	case v1alpha1.RoutingOLSRv2:
		_, err = olsr.New(c.olsr(), nil)
	case v1alpha1.RoutingOLSRv1:
		_, err = v1.New(c.olsr(), nil)
	case v1alpha1.RoutingStatic, v1alpha1.RoutingBabel, v1alpha1.RoutingNone, "":
	default:
		err = fmt.Errorf("routing.protocol %q: want static, olsrv2, olsrv1 or babel", c.Protocol)
	}
	return err
}

// SetTimes sets the times of the interface's network.
func (i *Interface) SetTimes(r *v1alpha1.Routing) {
	i.Hello, i.HelloValidity = durationOf(r.Hello), durationOf(r.HelloValidity)
	i.TC, i.TCValidity = durationOf(r.TC), durationOf(r.TCValidity)
}

func durationOf(d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Std()
}

// Interface of the node in the domain.
type Interface struct {
	Name  string
	Index int
	// Address with the network's prefix length.
	Address netip.Prefix
	// MTU in bytes.
	MTU int
	// RateBitsPerSecond of a link, for the metric DAT; 0 is unknown.
	RateBitsPerSecond float64
	// Hello, HelloValidity, TC and TCValidity as in olsr.Interface; babel has Hello only.
	Hello, HelloValidity, TC, TCValidity time.Duration
	// Topologies as in olsr.Interface.
	Topologies []uint8
	// Routes of protocol static.
	Routes []StaticRoute
}

// StaticRoute to a network or node.
type StaticRoute struct {
	To  netip.Prefix
	Via netip.Addr
}

// State of an Instance with which a successor continues.
type State struct {
	Router []byte `json:"router,omitempty"`
	// Counters by interface name.
	Counters map[string]Counters `json:"counters,omitempty"`
	// Process is babeld's id; 0 for none.
	Process int `json:"process,omitempty"`
	// Absent is how long the Instance and its predecessors were absent, which the router's time leaves out.
	Absent time.Duration `json:"absent,omitempty"`
}

// Counters of control packets at one interface since the node was attached. Bytes are as long as the frames that radios
// count: with UDP, IP and Ethernet headers.
type Counters struct {
	PacketsSent     uint64 `json:"packetsSent"`
	BytesSent       uint64 `json:"bytesSent"`
	PacketsReceived uint64 `json:"packetsReceived"`
	BytesReceived   uint64 `json:"bytesReceived"`
	// SendErrors are packets that the kernel did not accept.
	SendErrors uint64 `json:"sendErrors,omitempty"`
	// ReceiveDrops are packets that the radio delivered but found no room in the router's socket: overload,
	// not radio.
	ReceiveDrops uint64 `json:"receiveDrops,omitempty"`
}

// Instance is a node's part in one routing domain.
type Instance struct {
	config Config
	host   *Host
	kernel *kernel
	babel  *babel
	// The following fields are for OLSR. They belong to the host's thread, except ports' counters.
	router     olsr.Router
	ports      []*port
	absent     time.Duration
	keepUntil  time.Time // until when the kernel's routes of an earlier instance stay
	generation uint64
	nextTick   time.Time
	heapIndex  int // in the host's heap, -1 for none
	pending    bool
}

// Start starts routing in a namespace. Routes of an earlier instance with the same interfaces are replaced by
// this one's.
func (h *Host) Start(namespace *os.File, c Config) (*Instance, error) {
	return h.Adopt(namespace, c, State{}, 0)
}

// Adopt continues from the State of an instance that has been absent for some time. It heard nothing meanwhile, so nothing
// expires because of it. A State that does not fit is ignored.
func (h *Host) Adopt(namespace *os.File, c Config, s State, absent time.Duration) (i *Instance, err error) {
	// No router has this generation, so that the first Tick tells the kernel, even of no routes.
	i = &Instance{config: c, host: h, heapIndex: -1, absent: s.Absent + absent, generation: math.MaxUint64}
	if i.kernel, err = openKernel(namespace, &c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Leave())
		}
	}()
	switch c.Protocol {
	case v1alpha1.RoutingStatic:
		i.kernel.setWanted(staticRoutes(&c), time.Time{})
		h.writer.add(i.kernel)
		return i, nil
	case v1alpha1.RoutingBabel:
		i.babel, err = startBabel(namespace, &c, s.Process, h.log)
		return i, err
	case v1alpha1.RoutingOLSRv1, v1alpha1.RoutingOLSRv2:
		return i, i.startRouter(namespace, s)
	}
	return i, fmt.Errorf("routing.protocol %q: want static, olsrv2, olsrv1 or babel", c.Protocol)
}

func (i *Instance) startRouter(namespace *os.File, s State) (err error) {
	create, port, to := olsr.New, uint16(olsr.Port), func(*Interface) netip.Addr { return olsr.Group }
	if i.config.Protocol == v1alpha1.RoutingOLSRv1 {
		create, port, to = v1.New, olsr.PortV1, func(n *Interface) netip.Addr { return broadcastOf(n.Address) }
	}
	if i.router, err = create(i.config.olsr(), i.send); err != nil {
		return err
	}
	for n := range i.config.Interfaces {
		if a := i.config.Interfaces[n].Address; !a.Addr().Is4() {
			return fmt.Errorf("interface %s: address %v: want IPv4", i.config.Interfaces[n].Name, a)
		}
		p, err := openPort(namespace, &i.config.Interfaces[n], port, to(&i.config.Interfaces[n]))
		if err != nil {
			return err
		}
		p.instance, p.number = i, n
		p.setCounters(s.Counters[i.config.Interfaces[n].Name])
		i.ports = append(i.ports, p)
	}
	c, err := i.config.olsr().WithDefaults()
	if err != nil {
		return err
	}
	// Routes of an earlier instance are removed when the domain has had time to announce itself.
	i.keepUntil = time.Now().Add(2*c.LongestHello() + c.LongestTC())
	i.host.do(func() { err = i.startOnThread(s.Router) })
	return err
}

// startOnThread starts the router on the host's thread.
func (i *Instance) startOnThread(snapshot []byte) error {
	if len(snapshot) > 0 {
		if err := i.router.Restore(i.time(i.host.now), snapshot); err != nil {
			i.host.log.Info("routing starts without its earlier state", "interface", i.config.Interfaces[0].Name, "address", i.config.Interfaces[0].Address, "error", err)
		}
	}
	for _, p := range i.ports {
		if err := i.host.watch(p); err != nil {
			return err
		}
	}
	i.host.tick(i)
	return nil
}

func (c *Config) olsr() olsr.Config {
	o := olsr.Config{Metric: c.Metric, Seed: c.Seed}
	for _, t := range c.Topologies {
		o.Topologies = append(o.Topologies, t.Topology)
	}
	for k := range c.Interfaces {
		n := &c.Interfaces[k]
		o.Interfaces = append(o.Interfaces, olsr.Interface{Name: n.Name, Address: n.Address.Addr(),
			MTU: n.MTU - headersInIP, RateBitsPerSecond: n.RateBitsPerSecond,
			Hello: n.Hello, HelloValidity: n.HelloValidity, TC: n.TC, TCValidity: n.TCValidity,
			Topologies: n.Topologies})
	}
	return o
}

// time returns the router's time, which excludes the time of absence.
func (i *Instance) time(now time.Time) time.Time { return now.Add(-i.absent) }

// Stop ends routing and removes the node's routes.
func (i *Instance) Stop() error {
	err := i.end(true)
	i.kernel.setWanted(nil, time.Time{})
	return errors.Join(err, i.kernel.write(), i.kernel.forgetTopologies(), i.kernel.close())
}

// Leave ends this instance for a successor: the routes stay, and babeld continues.
func (i *Instance) Leave() error { return errors.Join(i.end(false), i.kernel.close()) }

func (i *Instance) end(stop bool) (err error) {
	if i.babel != nil {
		err = i.babel.end(stop)
	}
	if len(i.ports) > 0 {
		i.host.do(func() { err = errors.Join(err, i.host.removeInstance(i)) })
	}
	return err
}

// Transmit sets whether the node may transmit on the interface of that index in Config; see olsr.Router.
func (i *Instance) Transmit(number int, allowed bool) {
	if i.router == nil {
		return
	}
	i.host.do(func() {
		i.router.Transmit(i.time(i.host.now), number, allowed)
		i.host.tick(i)
	})
}

// Config that the instance was started with.
func (i *Instance) Config() Config { return i.config }

// AppendRoutes appends the instance's routes by destination, which may still be on their way to the kernel. Protocols static
// and babel have none.
func (i *Instance) AppendRoutes(to []olsr.Route) []olsr.Route {
	if i.router == nil {
		return to
	}
	return i.kernel.appendWanted(to)
}

// Tables of the router; none for static and babel.
func (i *Instance) Tables() (t olsr.Tables) {
	if i.router != nil {
		i.host.do(func() { t = i.router.Tables() })
	}
	return t
}

// Counters of the interface of that index in Config.
func (i *Instance) Counters(number int) Counters {
	if number >= len(i.ports) {
		return Counters{}
	}
	return i.ports[number].counters()
}

// Err returns the instance's current error, or nil.
func (i *Instance) Err() error {
	err := i.kernel.trouble()
	if i.babel != nil {
		err = errors.Join(err, i.babel.trouble())
	}
	return err
}

// Process is babeld's id; 0 for none.
func (i *Instance) Process() int {
	if i.babel == nil {
		return 0
	}
	return i.babel.process()
}

// State for a successor.
func (i *Instance) State() (s State, err error) {
	s.Process, s.Absent = i.Process(), i.absent
	if i.router != nil {
		i.host.do(func() { s.Router, err = i.router.Snapshot(i.time(i.host.now)) })
	}
	s.Counters = map[string]Counters{}
	for n, p := range i.ports {
		s.Counters[i.config.Interfaces[n].Name] = p.counters()
	}
	return s, err
}

func broadcastOf(p netip.Prefix) netip.Addr {
	a := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(a)
}
