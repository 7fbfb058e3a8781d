package routing

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// RouteProtocol marks the routes of this package in the kernel (rtm_protocol; `ip route show proto 86`).
// rtnetlink.h and iproute2 do not assign the number.
const RouteProtocol = 86

// priorities (metrics) of the kernel's routes, one for each protocol so that none replaces another's. A
// node's own routes, which have 0 by default, come first.
var priorities = map[v1alpha1.RoutingProtocol]int{v1alpha1.RoutingStatic: 20, v1alpha1.RoutingOLSRv2: 30, v1alpha1.RoutingOLSRv1: 31}

// route is a destination in a topology.
type route struct {
	netip.Prefix
	topology int
}

// hop is an interface, and a next hop there unless the destination is a neighbour.
type hop struct {
	index int
	via   netip.Addr
}

// kernel has one domain's routes in a namespace.
type kernel struct {
	priority   int
	namespace  *os.File // only while it has topologies
	topologies int      // their number, beside the first
	indexes    []int    // of the domain's interfaces, by their numbers in olsr.Route

	// writing is held while routes are written, which the kernel may delay. The routers' thread takes it only
	// to close.
	writing sync.Mutex
	socket  *rtnetlink // nil when closed
	written map[route]entry
	round   uint64 // of writing
	changes []change

	mu     sync.Mutex
	wanted []olsr.Route
	closed bool
	// keepUntil is until when unwanted routes stay.
	keepUntil time.Time
	err       error
}

// entry is a route in the kernel, and the last round of writing in which it was wanted.
type entry struct {
	hop
	lastWanted uint64
}

// openKernel reads the domain's existing routes: those of this package through the domain's interfaces.
func openKernel(namespace *os.File, c *Config) (*kernel, error) {
	k := &kernel{priority: priorities[c.Protocol], topologies: len(c.Topologies), written: map[route]entry{}}
	if err := k.open(namespace, c); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *kernel) open(namespace *os.File, c *Config) (err error) {
	ours := map[int]bool{}
	for n := range c.Interfaces {
		ours[c.Interfaces[n].Index] = true
		k.indexes = append(k.indexes, c.Interfaces[n].Index)
	}
	if k.topologies > 0 {
		if k.namespace, err = again(namespace); err != nil {
			return err
		}
	}
	if err := k.adopt(namespace, c, ours); err != nil {
		return err
	}
	if k.socket, err = openRtnetlink(namespace); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	return nil
}

// adopt reads the routes of earlier instances through the interfaces with these indexes, and sets which packets take a
// topology's routes.
func (k *kernel) adopt(namespace *os.File, c *Config, interfaces map[int]bool) error {
	handle, err := openHandle(namespace)
	if err != nil {
		return err
	}
	defer handle.Close()
	if c.Protocol == v1alpha1.RoutingOLSRv2 {
		if err := chooseTopologies(namespace, handle, c.Topologies); err != nil {
			return err
		}
	}
	return k.adoptRoutes(handle, interfaces)
}

func openHandle(namespace *os.File) (*netlink.Handle, error) {
	handle, err := netns.Get(namespace, func() (*netlink.Handle, error) { return netlink.NewHandle(unix.NETLINK_ROUTE) })
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	return handle, nil
}

func (k *kernel) adoptRoutes(handle *netlink.Handle, interfaces map[int]bool) error {
	routes, err := handle.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: RouteProtocol, Table: unix.RT_TABLE_UNSPEC},
		netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("kernel's routes: %w", err)
	}
	for n := range routes {
		if r := &routes[n]; interfaces[r.LinkIndex] {
			if err := k.adoptRoute(handle, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// adoptRoute records an existing route. It removes one of another protocol or topology, which the network had before.
func (k *kernel) adoptRoute(handle *netlink.Handle, r *netlink.Route) error {
	topology, known := topologyOf(r.Table)
	if r.Priority != k.priority || !known || topology > k.topologies {
		if err := handle.RouteDel(r); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove route to %v: %w", r.Dst, err)
		}
		return nil
	}
	if r.Dst == nil {
		r.Dst = &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	}
	ones, _ := r.Dst.Mask.Size()
	to, ok := netip.AddrFromSlice(r.Dst.IP)
	if !ok {
		return nil
	}
	h := hop{index: r.LinkIndex}
	if via, ok := netip.AddrFromSlice(r.Gw); ok {
		h.via = via.Unmap()
	}
	k.written[route{netip.PrefixFrom(to.Unmap(), ones), topology}] = entry{hop: h}
	return nil
}

// setWanted sets the wanted routes, of which it makes a copy. Until keepUntil other existing routes stay.
func (k *kernel) setWanted(wanted []olsr.Route, keepUntil time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted, k.keepUntil = append(k.wanted[:0], wanted...), keepUntil
}

func (k *kernel) appendWanted(to []olsr.Route) []olsr.Route {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append(to, k.wanted...)
}

func (k *kernel) trouble() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// write updates the kernel to the wanted routes. New routes come before old ones go.
func (k *kernel) write() (err error) {
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.socket == nil {
		return nil
	}
	keepUntil := k.findChanges()
	err = k.add()
	if !time.Now().Before(keepUntil) {
		err = cmp.Or(k.remove(), err)
	}
	k.mu.Lock()
	k.err = err
	k.mu.Unlock()
	return err
}

// findChanges collects the routes to add as changes.
func (k *kernel) findChanges() (keepUntil time.Time) {
	k.round++
	k.changes = k.changes[:0]
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.wanted {
		to, h := route{k.wanted[i].Destination, k.wanted[i].Topology}, k.hop(&k.wanted[i])
		before, there := k.written[to]
		if there {
			k.written[to] = entry{before.hop, k.round}
		}
		if !there || before.hop != h {
			k.changes = append(k.changes, change{to: to, hop: h})
		}
	}
	return k.keepUntil
}

// add the changes.
func (k *kernel) add() error {
	if err := k.socket.apply(addRoute, k.priority, k.changes); err != nil {
		return err
	}
	var refused error
	for i := range k.changes {
		c := &k.changes[i]
		if c.err != nil {
			refused = fmt.Errorf("route to %v via %v: %w", c.to, c.via, c.err)
			continue
		}
		k.written[c.to] = entry{c.hop, k.round}
	}
	return refused
}

// remove removes the routes that were not wanted in this round.
func (k *kernel) remove() error {
	k.changes = k.changes[:0]
	for to, e := range k.written {
		if e.lastWanted != k.round {
			k.changes = append(k.changes, change{to: to, hop: e.hop})
		}
	}
	if err := k.socket.apply(deleteRoute, k.priority, k.changes); err != nil {
		return err
	}
	var failed error
	for i := range k.changes {
		c := &k.changes[i]
		// Routes go with their interface.
		if c.err != nil && !errors.Is(c.err, unix.ESRCH) && !errors.Is(c.err, unix.ENODEV) {
			failed = fmt.Errorf("remove route to %v: %w", c.to, c.err)
			continue
		}
		delete(k.written, c.to)
	}
	return failed
}

// hop returns a route's hop.
func (k *kernel) hop(r *olsr.Route) hop {
	next := hop{index: k.indexes[r.Interface]}
	if !r.Destination.IsSingleIP() || r.Destination.Addr() != r.NextHop {
		next.via = r.NextHop
	}
	return next
}

// retryAfter returns when write must be called again even if nothing changes; zero for never.
func (k *kernel) retryAfter(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return 0
	case k.err != nil:
		return retryInterval
	case now.Before(k.keepUntil):
		return k.keepUntil.Sub(now)
	}
	return 0
}

func (k *kernel) close() (err error) {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.socket != nil {
		err = k.socket.close()
		k.socket = nil
	}
	if k.namespace != nil {
		err = errors.Join(err, k.namespace.Close())
		k.namespace = nil
	}
	return err
}

// forgetTopologies has no packets take a topology's routes any more.
func (k *kernel) forgetTopologies() error {
	if k.namespace == nil {
		return nil
	}
	handle, err := openHandle(k.namespace)
	if err != nil {
		return err
	}
	defer handle.Close()
	return chooseTopologies(k.namespace, handle, nil)
}

// staticRoutes of a node.
func staticRoutes(c *Config) (routes []olsr.Route) {
	for n := range c.Interfaces {
		for _, r := range c.Interfaces[n].Routes {
			routes = append(routes, olsr.Route{Destination: r.To, NextHop: r.Via, Interface: n})
		}
	}
	return routes
}

const retryInterval = time.Second

// writer writes routes, one node after the other. While pods come and go the kernel may delay it, which the
// routers' thread cannot afford.
type writer struct {
	mu     sync.Mutex
	queue  []*kernel
	queued map[*kernel]bool
	wake   bell.Bell
	ended  chan struct{}
}

func newWriter() *writer {
	w := &writer{queued: map[*kernel]bool{}, wake: bell.New(), ended: make(chan struct{})}
	go w.run()
	return w
}

func (w *writer) add(k *kernel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queued == nil || w.queued[k] {
		return
	}
	w.queued[k] = true
	w.queue = append(w.queue, k)
	w.wake.Ring()
}

func (w *writer) next() (*kernel, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, w.queued != nil
	}
	k := w.queue[0]
	w.queue = w.queue[1:]
	delete(w.queued, k)
	return k, true
}

func (w *writer) run() {
	defer close(w.ended)
	for {
		k, open := w.next()
		switch {
		case !open:
			return
		case k == nil:
			<-w.wake
			continue
		}
		_ = k.write() // trouble returns the error
		if wait := k.retryAfter(time.Now()); wait > 0 {
			time.AfterFunc(wait, func() { w.add(k) })
		}
	}
}

func (w *writer) close() {
	w.mu.Lock()
	w.queue, w.queued = nil, nil
	w.mu.Unlock()
	w.wake.Ring()
	<-w.ended
}
