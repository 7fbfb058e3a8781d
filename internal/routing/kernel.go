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

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// RouteProtocol marks the routes of this package in the kernel (rtm_protocol; `ip route show proto 86`). rtnetlink.h and
// iproute2 give the number to nobody else.
const RouteProtocol = 86

// priorities (metrics) of the kernel's routes, one for each protocol so that none replaces another's. A node's own routes, which
// have 0 unless told otherwise, come first.
var priorities = map[v1alpha1.RoutingProtocol]int{v1alpha1.RoutingStatic: 20, v1alpha1.RoutingOLSRv2: 30, v1alpha1.RoutingOLSRv1: 31}

type route = netip.Prefix

// hop is where a route leads: an interface, and a neighbour there unless the destination is one.
type hop struct {
	index int
	via   netip.Addr
}

// kernel has one domain's routes in a namespace.
type kernel struct {
	priority int
	indexes  []int // of the domain's interfaces, by their numbers in olsr.Route

	// writing is held while routes are written, which the kernel may keep waiting: nothing that the routers' thread does takes it, but to close.
	writing sync.Mutex
	handle  *netlink.Handle // nil when closed
	written map[route]entry
	round   uint64 // of writing

	mu     sync.Mutex
	wanted []olsr.Route
	closed bool
	// keepUntil then routes that are not wanted stay.
	keepUntil time.Time
	err       error
}

// entry is a route that the kernel has, and the last round of writing in which it was wanted.
type entry struct {
	hop
	wanted uint64
}

// openKernel reads the domain's routes that are there: those of this package through the domain's interfaces.
func openKernel(namespace *os.File, c *Config) (*kernel, error) {
	k := &kernel{priority: priorities[c.Protocol], written: map[route]entry{}}
	err := netns.Do(namespace, func() (err error) {
		k.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	routes, err := k.handle.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: RouteProtocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		k.handle.Close()
		return nil, fmt.Errorf("kernel's routes: %w", err)
	}
	ours := map[int]bool{}
	for n := range c.Interfaces {
		ours[c.Interfaces[n].Index] = true
		k.indexes = append(k.indexes, c.Interfaces[n].Index)
	}
	for n := range routes {
		if r := &routes[n]; ours[r.LinkIndex] {
			if err := k.take(r); err != nil {
				k.handle.Close()
				return nil, err
			}
		}
	}
	return k, nil
}

// take notes a route that is there; one of another protocol that the network had before goes.
func (k *kernel) take(r *netlink.Route) error {
	if r.Priority != k.priority {
		if err := k.handle.RouteDel(r); err != nil && !errors.Is(err, unix.ESRCH) {
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
	k.written[netip.PrefixFrom(to.Unmap(), ones)] = entry{hop: h}
	return nil
}

// want routes, a slice that nobody changes afterwards. Until then others that are there stay.
func (k *kernel) want(wanted []olsr.Route, keepUntil time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted, k.keepUntil = wanted, keepUntil
}

func (k *kernel) trouble() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// write makes the kernel have what is wanted. New ways come before old ones go.
func (k *kernel) write() (err error) {
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.handle == nil {
		return nil
	}
	k.mu.Lock()
	wanted, keepUntil := k.wanted, k.keepUntil
	k.mu.Unlock()
	err = k.add(wanted)
	if !time.Now().Before(keepUntil) {
		err = cmp.Or(k.remove(), err)
	}
	k.mu.Lock()
	k.err = err
	k.mu.Unlock()
	return err
}

// add the routes that are wanted and not there.
func (k *kernel) add(wanted []olsr.Route) (err error) {
	k.round++
	for i := range wanted {
		to, h := wanted[i].Destination, k.hop(&wanted[i])
		before, there := k.written[to]
		if !there || before.hop != h {
			if refused := k.handle.RouteReplace(k.route(to, h)); refused == nil {
				before.hop, there = h, true
			} else {
				err = fmt.Errorf("route to %v via %v: %w", to, h.via, refused)
			}
		}
		if there {
			k.written[to] = entry{before.hop, k.round}
		}
	}
	return err
}

// remove the routes that were not wanted in this round.
func (k *kernel) remove() (err error) {
	for to, e := range k.written {
		if e.wanted == k.round {
			continue
		}
		// Routes go with their interface.
		if failed := k.handle.RouteDel(k.route(to, e.hop)); failed != nil && !errors.Is(failed, unix.ESRCH) && !errors.Is(failed, unix.ENODEV) {
			err = fmt.Errorf("remove route to %v: %w", to, failed)
			continue
		}
		delete(k.written, to)
	}
	return err
}

// hop that a route leads to.
func (k *kernel) hop(r *olsr.Route) hop {
	next := hop{index: k.indexes[r.Interface]}
	if !r.Destination.IsSingleIP() || r.Destination.Addr() != r.NextHop {
		next.via = r.NextHop
	}
	return next
}

func (k *kernel) route(to route, h hop) *netlink.Route {
	r := &netlink.Route{Dst: &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), to.Addr().BitLen())}, LinkIndex: h.index,
		Protocol: RouteProtocol, Priority: k.priority, Scope: netlink.SCOPE_LINK}
	if h.via.IsValid() {
		// The neighbour has been heard on the link, whatever the kernel's routes say of it.
		r.Gw, r.Scope, r.Flags = h.via.AsSlice(), netlink.SCOPE_UNIVERSE, int(netlink.FLAG_ONLINK)
	}
	return r
}

// again is when write has to be called again though nothing else is wanted; zero for never.
func (k *kernel) again(now time.Time) time.Duration {
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

func (k *kernel) close() error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.handle != nil {
		k.handle.Close()
		k.handle = nil
	}
	return nil
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

// writer writes routes, one node's after the other's: while pods come and go, the kernel may keep it waiting for long, which
// the routers' thread cannot afford.
type writer struct {
	mu     sync.Mutex
	queue  []*kernel
	queued map[*kernel]bool
	wake   chan struct{}
	ended  chan struct{}
}

func newWriter() *writer {
	w := &writer{queued: map[*kernel]bool{}, wake: make(chan struct{}, 1), ended: make(chan struct{})}
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
	select {
	case w.wake <- struct{}{}:
	default:
	}
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
		_ = k.write() // kept in trouble
		if wait := k.again(time.Now()); wait > 0 {
			time.AfterFunc(wait, func() { w.add(k) })
		}
	}
}

func (w *writer) close() {
	w.mu.Lock()
	w.queue, w.queued = nil, nil
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	<-w.ended
}
