// Package olsrtest runs many Routers in one process and in simulated time, over a simple simulated medium.
package olsrtest

import (
	"container/heap"
	"fmt"
	"math/rand"
	"net/netip"
	"time"

	"vignette.dev/vignette/internal/olsr"
)

// Maker of a Router.
type Maker func(olsr.Config, olsr.Send) (olsr.Router, error)

// Start of simulated time.
var Start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// packetDelay from sending to receiving.
const packetDelay = time.Millisecond

// Overhead of a packet below the routing protocol: UDP and IPv4.
const Overhead = 28

// Network of nodes that receive each other by Links.
type Network struct {
	Now   time.Time
	Nodes []*Node
	// Links[a][b] is the share of a's packets that b receives, on every common interface.
	Links [][]float64
	// Topology whose routes are held against shortest paths in hops.
	Topology int
	// Packets is called for every packet sent, if it is set.
	Packets func(node, iface int, packet []byte)

	make   Maker
	random *rand.Rand
	events events
	// nearOf identifies the links for which nearby and distances were computed.
	nearOf    string
	nearby    [][]int
	distances [][]int
}

// Node of a Network.
type Node struct {
	Router olsr.Router
	Config olsr.Config
	// Down nodes neither send nor receive.
	Down bool
	// Errors that Receive returned.
	Errors []error

	index int
	tick  time.Time
	// media has each interface's medium. Interfaces of one medium receive each other.
	media []int
}

type event struct {
	at     time.Time
	order  int
	node   *Node
	router olsr.Router
	iface  int
	from   netip.Addr
	packet []byte // nil for a tick
}

type events struct {
	all   []event
	count int
}

func (e *events) Len() int { return len(e.all) }
func (e *events) Less(i, j int) bool {
	a, b := &e.all[i], &e.all[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.order < b.order
}
func (e *events) Swap(i, j int) { e.all[i], e.all[j] = e.all[j], e.all[i] }

// Push is for heap.
func (e *events) Push(x any) { e.all = append(e.all, x.(event)) }

// Pop is for heap.
func (e *events) Pop() any {
	last := e.all[len(e.all)-1]
	e.all = e.all[:len(e.all)-1]
	return last
}

// New makes a network of n nodes, without links, all with one interface on medium 0.
func New(n int, seed int64, base olsr.Config, make Maker) (*Network, error) {
	return NewOn(onOne(n), seed, base, make)
}

// onOne has one interface on medium 0 for each of n nodes.
func onOne(n int) (media [][]int) {
	for range n {
		media = append(media, []int{0})
	}
	return media
}

// NewOn makes a network of nodes with interfaces on the media given for each. HELLOs are slower on media after the
// first, which has base's interval.
func NewOn(media [][]int, seed int64, base olsr.Config, maker Maker) (*Network, error) {
	return NewWithTimes(media, func(medium int) olsr.Interface { return olsr.Interface{Hello: base.Hello * time.Duration(medium)} }, seed, base, maker)
}

// NewWithTimes makes a network of nodes with interfaces on the media given for each. An interface has its medium's times,
// and all topologies of base unless its medium has others.
func NewWithTimes(media [][]int, times func(medium int) olsr.Interface, seed int64, base olsr.Config, maker Maker) (*Network, error) {
	net := &Network{Now: Start, make: maker, random: rand.New(rand.NewSource(seed))}
	for i, on := range media {
		node := &Node{index: i, media: on, Config: base}
		node.Config.Seed = seed*1000 + int64(i)
		node.Config.Interfaces = nil
		for k, medium := range on {
			n := times(medium)
			if n.Topologies == nil {
				for _, t := range base.Topologies {
					n.Topologies = append(n.Topologies, t.Type)
				}
			}
			n.Name, n.Address = fmt.Sprintf("if%d", k), Address(i, medium)
			node.Config.Interfaces = append(node.Config.Interfaces, n)
		}
		net.Nodes = append(net.Nodes, node)
		net.Links = append(net.Links, make([]float64, len(media)))
		if err := net.Boot(i, nil); err != nil {
			return nil, err
		}
	}
	return net, nil
}

// Address of a node's interface on a medium.
func Address(node, medium int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(medium), byte((node + 1) >> 8), byte(node + 1)})
}

// Boot starts a node, with or without a snapshot.
func (net *Network) Boot(i int, snapshot []byte) error {
	node := net.Nodes[i]
	router, err := net.make(node.Config, func(iface int, packet []byte) { net.send(node, iface, packet) })
	if err != nil {
		return err
	}
	if snapshot != nil {
		if err := router.Restore(net.Now, snapshot); err != nil {
			return err
		}
	}
	node.Router = router
	net.Tick(i)
	return nil
}

// Tick ticks a node now, after its Router was changed.
func (net *Network) Tick(i int) {
	node := net.Nodes[i]
	net.tickAt(node, node.Router.Tick(net.Now))
}

func (net *Network) tickAt(node *Node, at time.Time) {
	if !at.After(net.Now) {
		at = net.Now.Add(time.Microsecond)
	}
	node.tick = at
	net.push(event{at: at, node: node, router: node.Router})
}

func (net *Network) push(e event) {
	net.events.count++
	e.order = net.events.count
	heap.Push(&net.events, e)
}

func (net *Network) send(from *Node, iface int, packet []byte) {
	if from.Down {
		return
	}
	if net.Packets != nil {
		net.Packets(from.index, iface, packet)
	}
	for _, to := range net.Nodes {
		share := net.Links[from.index][to.index]
		if to == from || to.Down || share <= 0 || share < 1 && net.random.Float64() >= share {
			continue
		}
		for k, medium := range to.media {
			if medium == from.media[iface] {
				net.push(event{at: net.Now.Add(packetDelay), node: to, router: to.Router, iface: k, from: Address(from.index, medium), packet: packet})
			}
		}
	}
}

// Run for a time.
func (net *Network) Run(d time.Duration) {
	end := net.Now.Add(d)
	for len(net.events.all) > 0 && !net.events.all[0].at.After(end) {
		e := heap.Pop(&net.events).(event)
		net.Now = e.at
		if e.router != e.node.Router || e.packet == nil && !e.at.Equal(e.node.tick) {
			continue // of a router that has ended, or a tick put off since
		}
		if e.packet != nil && !e.node.Down {
			if err := e.node.Router.Receive(net.Now, e.iface, e.from, e.packet); err != nil {
				e.node.Errors = append(e.node.Errors, err)
			}
		}
		if next := e.node.Router.Tick(net.Now); e.packet == nil || next.Before(e.node.tick) {
			net.tickAt(e.node, next)
		}
	}
	net.Now = end
}

// Link two nodes both ways, or not at all.
func (net *Network) Link(a, b int, up bool) {
	share := 0.0
	if up {
		share = 1
	}
	net.Links[a][b], net.Links[b][a] = share, share
}

// Distances in hops from a node to all, over links that exist both ways; -1 is out of reach.
func (net *Network) Distances(from int) []int {
	distance := make([]int, len(net.Nodes))
	for i := range distance {
		distance[i] = -1
	}
	if net.Nodes[from].Down {
		return distance
	}
	distance[from] = 0
	near := net.neighbours()
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, to := range near[at] {
			if distance[to] < 0 {
				distance[to] = distance[at] + 1
				queue = append(queue, to)
			}
		}
	}
	return distance
}

// neighbours returns each node's neighbours with links both ways. They are computed again when a link or node has
// changed.
func (net *Network) neighbours() [][]int {
	up := make([]byte, 0, len(net.Nodes)*(len(net.Nodes)+1))
	for a, node := range net.Nodes {
		up = append(up, flag(node.Down))
		for b := range net.Nodes {
			up = append(up, flag(net.Links[a][b] > 0))
		}
	}
	if string(up) == net.nearOf {
		return net.nearby
	}
	net.nearOf, net.nearby, net.distances = string(up), make([][]int, len(net.Nodes)), nil
	for a := range net.Nodes {
		for b := range net.Nodes {
			if a != b && net.both(a, b) {
				net.nearby[a] = append(net.nearby[a], b)
			}
		}
	}
	return net.nearby
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (net *Network) both(a, b int) bool {
	return !net.Nodes[a].Down && !net.Nodes[b].Down && net.Links[a][b] > 0 && net.Links[b][a] > 0 && net.shareMedium(a, b)
}

// shareMedium reports whether two nodes share a medium.
func (net *Network) shareMedium(a, b int) bool {
	for _, medium := range net.Nodes[a].media {
		for _, other := range net.Nodes[b].media {
			if medium == other {
				return true
			}
		}
	}
	return false
}

// FirstDifference returns the first difference between the nodes' routes and shortest paths; "" if there is none. Every
// node must have a route to exactly the addresses within reach, with the right number of hops, over a
// neighbour one hop nearer.
func (net *Network) FirstDifference() string {
	net.neighbours()
	if net.distances == nil {
		for i := range net.Nodes {
			net.distances = append(net.distances, net.Distances(i))
		}
	}
	distances := net.distances
	for i, node := range net.Nodes {
		if node.Down {
			continue
		}
		if wrong := net.differenceAt(i, distances); wrong != "" {
			return fmt.Sprintf("node %d: %s", i, wrong)
		}
	}
	return ""
}

func (net *Network) differenceAt(i int, distances [][]int) string {
	routes := map[netip.Prefix]olsr.Route{}
	for _, r := range net.Nodes[i].Router.Routes() {
		if r.Topology == net.Topology {
			routes[r.Destination] = r
		}
	}
	expected := 0
	for j, other := range net.Nodes {
		if j == i || distances[i][j] < 0 {
			continue
		}
		for _, medium := range other.media {
			expected++
			route, there := routes[netip.PrefixFrom(Address(j, medium), 32)]
			if !there || route.Hops != distances[i][j] {
				return fmt.Sprintf("node %d is %d hops away, and the route to its interface on %d is %+v", j, distances[i][j], medium, route)
			}
			bytes := route.NextHop.As4()
			next := int(bytes[2])<<8 + int(bytes[3]) - 1
			if !net.both(i, next) || distances[next][j] != distances[i][j]-1 || int(bytes[1]) != net.Nodes[i].media[route.Interface] {
				return fmt.Sprintf("node %d is reached over %v on interface %d", j, route.NextHop, route.Interface)
			}
		}
	}
	if len(routes) != expected {
		return fmt.Sprintf("%d routes, not %d", len(routes), expected)
	}
	return ""
}

// Converge runs until routes are right, and returns how long that took.
func (net *Network) Converge(limit time.Duration) (time.Duration, error) {
	const step = 100 * time.Millisecond
	wrong := ""
	for took := time.Duration(0); took <= limit; took += step {
		if wrong = net.FirstDifference(); wrong == "" {
			return took, nil
		}
		net.Run(step)
	}
	return limit, fmt.Errorf("not converged after %v: %s", limit, wrong)
}

// Random connects the nodes. Each has a place in a unit square and receives those within a range that gives
// about degree neighbours. Separate parts are joined by their nearest nodes.
func (net *Network) Random(seed int64, degree float64) {
	r := rand.New(rand.NewSource(seed))
	n := len(net.Nodes)
	x, y := make([]float64, n), make([]float64, n)
	for i := range n {
		x[i], y[i] = r.Float64(), r.Float64()
	}
	square := func(a, b int) float64 { return (x[a]-x[b])*(x[a]-x[b]) + (y[a]-y[b])*(y[a]-y[b]) }
	reach := degree / (float64(n) * 3.14)
	for a := range n {
		for b := range a {
			net.Link(a, b, square(a, b) <= reach)
		}
	}
	for {
		distance := net.Distances(0)
		a, b, least := -1, -1, 4.0
		for i := range n {
			for j := range n {
				if distance[i] >= 0 && distance[j] < 0 && net.shareMedium(i, j) && square(i, j) < least {
					a, b, least = i, j, square(i, j)
				}
			}
		}
		if a < 0 {
			return
		}
		net.Link(a, b, true)
	}
}

// Counters of all nodes together.
func (net *Network) Counters() olsr.Counters {
	var sum olsr.Counters
	for _, node := range net.Nodes {
		c := node.Router.Counters()
		sum.PacketsSent += c.PacketsSent
		sum.BytesSent += c.BytesSent
		sum.HellosSent += c.HellosSent
		sum.TCsSent += c.TCsSent
		sum.Forwarded += c.Forwarded
		sum.Duplicates += c.Duplicates
		sum.Refused += c.Refused
		sum.Overflows += c.Overflows
		sum.RouteCalculations += c.RouteCalculations
		sum.RouteChanges += c.RouteChanges
	}
	return sum
}
